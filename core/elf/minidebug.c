// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

/* Bounds what a small hostile section can blow up to. */
#define INFLATED_BYTES_MAX (64ULL << 20)
#define DECODER_BYTES_MAX  (128ULL << 20)

/* Inflates into a buffer that grows. 0 with the owned result, -EBADMSG or -ENOMEM. */
static int inflate_all(lzma_stream *stream, uint8_t **ret, size_t *ret_len)
{
	uint8_t *buf = NULL, *grown;
	size_t cap = 1 << 16;
	lzma_ret status = LZMA_OK;

	while (status == LZMA_OK) {
		if (cap > INFLATED_BYTES_MAX) {
			free(buf);
			return -EBADMSG;
		}
		grown = realloc(buf, cap);
		if (!grown) {
			free(buf);
			return -ENOMEM;
		}
		buf = grown;
		stream->next_out = buf + stream->total_out;
		stream->avail_out = cap - stream->total_out;
		status = lzma_code(stream, LZMA_FINISH);
		cap *= 2;
	}
	if (status != LZMA_STREAM_END) {
		free(buf);
		return status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	*ret = buf;
	*ret_len = stream->total_out;
	return 0;
}

int minidebug__open(const struct elf_file *file, struct elf_file **ret)
{
	Elf_Data *data = elf_file__section(file, ".gnu_debugdata", NULL);
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t *image = NULL;
	size_t len;
	int rc;

	if (!data)
		return -ENOENT;
	if (lzma_stream_decoder(&stream, DECODER_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	rc = inflate_all(&stream, &image, &len);
	if (!rc)
		rc = elf_file__open_memory(image, len, file->path, ret, NULL);
	free(image);
	lzma_end(&stream);
	return rc && rc != -ENOMEM ? -ENOENT : rc;
}
