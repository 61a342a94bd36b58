// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>

#include "core/base/quota.h"
#include "core/base/util.h"

/* Limits of the memory for a small hostile section. */
#define INFLATED_BYTES_MAX (64ULL << 20)
#define DECODER_BYTES_MAX  (128ULL << 20)

struct inflating {
	const struct elf_file *file;
	lzma_stream stream;
	const uint8_t *in, *in_end;
	uint8_t *buf;
	size_t cap;
};

/* Reserves space for one more block. */
static int grow(struct inflating *inflating)
{
	size_t need = inflating->stream.total_out + QUOTA_BLOCK;
	int rc = quota__charge(inflating->file->account, QUOTA_INFLATED, QUOTA_BLOCK);

	if (!rc && need > INFLATED_BYTES_MAX)
		rc = -EBADMSG;
	return rc ? rc : array__reserve(&inflating->buf, &inflating->cap, need, 1);
}

/* Inflates one block. Returns 1 at the end, 0 if there may be more, or a negative errno. */
static int inflate_block(struct inflating *inflating)
{
	lzma_stream *stream = &inflating->stream;
	lzma_ret status;
	int rc = grow(inflating);

	if (rc)
		return rc;
	if (!stream->avail_in) {
		stream->next_in = inflating->in;
		stream->avail_in = min_of(inflating->in_end - inflating->in, (long)QUOTA_BLOCK);
		inflating->in += stream->avail_in;
	}
	stream->next_out = inflating->buf + stream->total_out;
	stream->avail_out = QUOTA_BLOCK;
	status = lzma_code(stream, inflating->in == inflating->in_end ? LZMA_FINISH : LZMA_RUN);
	if (status == LZMA_STREAM_END)
		return 1;
	return status == LZMA_OK ? 0 : status == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

int minidebug__open(const struct elf_file *file, struct elf_file **ret)
{
	Elf_Data *data = elf_file__section(file, ".gnu_debugdata", NULL);
	struct inflating inflating = { .file = file, .stream = LZMA_STREAM_INIT };
	int rc = 0;

	if (!data)
		return -ENOENT;
	if (lzma_stream_decoder(&inflating.stream, DECODER_BYTES_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	inflating.in = data->d_buf;
	inflating.in_end = inflating.in + data->d_size;
	while (!rc)
		rc = inflate_block(&inflating);
	if (rc > 0) {
		rc = elf_file__take_memory(inflating.buf, inflating.stream.total_out, file->path,
					   file->account, ret, NULL);
		inflating.buf = NULL;
	}
	free(inflating.buf);
	lzma_end(&inflating.stream);
	return rc && rc != -ENOMEM && rc != -EINTR ? -ENOENT : rc;
}
