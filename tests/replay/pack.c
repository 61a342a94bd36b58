// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/pack.h"

#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"

static const char magic[16] = "braid corpus 1\n";

struct header {
	uint32_t tag, name_size;
	uint64_t a, b, size;
};

void pack__done(struct pack *pack)
{
	free(pack->data);
	*pack = (struct pack) {};
}

static int append(struct pack *pack, const void *bytes, size_t size)
{
	int ret = array__reserve(&pack->data, &pack->cap, pack->n + size, 1);

	if (ret || !size)
		return ret;
	memcpy(pack->data + pack->n, bytes, size);
	pack->n += size;
	return 0;
}

int pack__add(struct pack *pack, enum pack_tag tag, const char *name, uint64_t a, uint64_t b,
	      const void *bytes, size_t size)
{
	struct header header = { tag, strlen(name), a, b, size };
	int ret = pack->n ? 0 : append(pack, magic, sizeof(magic));

	if (header.name_size >= PACK_NAME_BYTES)
		return -ENAMETOOLONG;
	if (!ret)
		ret = append(pack, &header, sizeof(header));
	if (!ret)
		ret = append(pack, name, header.name_size);
	return ret ? ret : append(pack, bytes, size);
}

int pack__write(const struct pack *pack, const char *path, struct err *err)
{
	size_t cap = lzma_stream_buffer_bound(pack->n), n = 0;
	unsigned char *xz = malloc(cap);
	char *beside = NULL;
	FILE *out = NULL;
	int ret = -ENOMEM;

	if (!xz || asprintf(&beside, "%s.new", path) < 0 ||
	    lzma_easy_buffer_encode(LZMA_PRESET_DEFAULT, LZMA_CHECK_CRC32, NULL, pack->data,
				    pack->n, xz, &n, cap) != LZMA_OK)
		goto out;
	out = fopen(beside, "we");
	ret = out && fwrite(xz, 1, n, out) == n ? 0 : -EIO;
	if (out && fclose(out))
		ret = -EIO;
	if (!ret && rename(beside, path))
		ret = -errno;
	if (ret)
		unlink(beside);
out:
	free(beside);
	free(xz);
	return ret ? err__set(err, ret, "%s: %s", path, strerror(-ret)) : 0;
}

int pack__parse(const unsigned char *xz, size_t size, struct pack *ret)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret status = lzma_stream_decoder(&stream, 1u << 30, 0);
	struct pack pack = {};
	int code = 0;

	stream.next_in = xz;
	stream.avail_in = size;
	while (!code && status == LZMA_OK) {
		if (pack.n >= PACK_BYTES_MAX)
			code = -EBADMSG;
		else
			code = array__reserve(&pack.data, &pack.cap, pack.n + 65536, 1);
		if (code)
			break;
		stream.next_out = pack.data + pack.n;
		stream.avail_out = pack.cap - pack.n;
		status = lzma_code(&stream, LZMA_FINISH);
		pack.n = pack.cap - stream.avail_out;
	}
	lzma_end(&stream);
	if (!code && (status != LZMA_STREAM_END || pack.n < sizeof(magic) ||
		      memcmp(pack.data, magic, sizeof(magic)) != 0))
		code = -EBADMSG;
	if (code)
		pack__done(&pack);
	else
		*ret = pack;
	return code;
}

int pack__read(const char *path, struct pack *ret, struct err *err)
{
	FILE *in = fopen(path, "re");
	struct pack file = {};
	size_t n = 1;
	int code = in ? 0 : -errno;

	while (!code && n) {
		code = array__reserve(&file.data, &file.cap, file.n + 65536, 1);
		n = code ? 0 : fread(file.data + file.n, 1, file.cap - file.n, in);
		file.n += n;
	}
	if (in)
		fclose(in);
	if (!code)
		code = pack__parse(file.data, file.n, ret);
	pack__done(&file);
	return code ? err__set(err, code, "%s: %s", path,
			       code == -EBADMSG ? "not a file of the corpus, or damaged"
						: strerror(-code))
		    : 0;
}

int pack__next(const struct pack *pack, size_t *at, struct pack_entry *ret)
{
	size_t from = *at ? *at : sizeof(magic), left;
	struct header header;

	if (from >= pack->n)
		return 0;
	left = pack->n - from;
	if (left < sizeof(header))
		return -EBADMSG;
	memcpy(&header, pack->data + from, sizeof(header));
	left -= sizeof(header);
	if (header.tag == 0 || header.tag >= PACK_TAGS || header.name_size >= PACK_NAME_BYTES ||
	    header.name_size > left || header.size > left - header.name_size)
		return -EBADMSG;
	*ret = (struct pack_entry) { .tag = header.tag, .a = header.a, .b = header.b };
	from += sizeof(header);
	memcpy(ret->name, pack->data + from, header.name_size);
	from += header.name_size;
	ret->bytes = pack->data + from;
	ret->size = header.size;
	*at = from + header.size;
	return memchr(ret->name, 0, header.name_size) ? -EBADMSG : 1;
}
