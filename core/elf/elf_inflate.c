// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_inflate.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/quota.h"
#include "core/base/util.h"

/* Limits of the compression ratio. A larger claimed size is refused before memory is allocated for
 * it. */
#define ZLIB_RATIO_MAX 1040  /* deflate expands one byte to at most 1032 */
#define ZSTD_RATIO_MAX 65536 /* zstd expands four bytes to at most a block of 128 KiB */

/* The memory of the zstd decoder is its window: 8 MiB for most files, never more than the contents.
 * zstd --ultra, which linkers offer, has up to 128 MiB. */
#define WINDOW_LOG_MIN 23
#define WINDOW_LOG_MAX 27

#define GNU_MAGIC "ZLIB"

struct gnu_header {
	char magic[sizeof(GNU_MAGIC) - 1];
	uint8_t size[sizeof(uint64_t)]; /* big endian */
};
_Static_assert(sizeof(struct gnu_header) == 12, "as objcopy writes it");

/* --- headers --- */

static int check_size(const struct elf_section *section)
{
	uint64_t ratio = section->stored == ELFCOMPRESS_ZSTD ? ZSTD_RATIO_MAX : ZLIB_RATIO_MAX;

	return section->size / ratio > section->shdr.sh_size ? -EBADMSG : 0;
}

static int read_header(const struct elf_file *file, const struct elf_section *section, void *to,
		       size_t n)
{
	int ret = section->shdr.sh_size < n
			  ? -EBADMSG
			  : elf_file__read_at(file, section->shdr.sh_offset, to, n);

	return ret == -EFAULT ? -EBADMSG : ret;
}

int elf_inflate__describe(const struct elf_file *file, struct elf_section *section)
{
	Elf64_Chdr chdr;
	int ret = read_header(file, section, &chdr, sizeof(chdr));

	if (ret)
		return ret;
	section->size = chdr.ch_size;
	section->stored = chdr.ch_type;
	section->head = sizeof(chdr);
	if (chdr.ch_type != ELFCOMPRESS_ZLIB && chdr.ch_type != ELFCOMPRESS_ZSTD)
		return -EBADMSG;
	return check_size(section);
}

int elf_inflate__describe_gnu(const struct elf_file *file, struct elf_section *section)
{
	struct gnu_header header;
	uint64_t size;
	int ret = read_header(file, section, &header, sizeof(header));

	if (ret)
		return ret;
	if (memcmp(header.magic, GNU_MAGIC, sizeof(header.magic)) != 0)
		return -EBADMSG;
	memcpy(&size, header.size, sizeof(size));
	section->size = be64toh(size);
	section->stored = ELFCOMPRESS_ZLIB;
	section->head = sizeof(header);
	return check_size(section);
}

/* --- contents --- */

struct inflating {
	const struct elf_file *file;
	uint8_t *out;
	uint64_t left; /* bytes of out */
	z_stream zlib;
	ZSTD_DCtx *zstd;
	bool frame_ended; /* zstd: at the end of a frame, where the data may end */
};

/* Inflates a part of the @n bytes at *@in; writes at most @room bytes. Returns 1 at the end of the
 * data, 0 if there may be more, or -EBADMSG. */
static int step_zlib(struct inflating *inflating, const uint8_t **in, size_t *n, size_t room)
{
	z_stream *zlib = &inflating->zlib;
	int status;

	zlib->next_in = (Bytef *)*in;
	zlib->avail_in = *n;
	zlib->next_out = inflating->out;
	zlib->avail_out = room;
	status = inflate(zlib, Z_NO_FLUSH);
	*in = zlib->next_in;
	*n = zlib->avail_in;
	inflating->left -= room - zlib->avail_out;
	inflating->out = zlib->next_out;
	return status == Z_STREAM_END ? 1 : status == Z_OK ? 0 : -EBADMSG;
}

/* As step_zlib(). A section may consist of several consecutive frames (lld, mold). */
static int step_zstd(struct inflating *inflating, const uint8_t **in, size_t *n, size_t room)
{
	ZSTD_inBuffer input = { *in, *n, 0 };
	ZSTD_outBuffer output = { inflating->out, room, 0 };
	size_t status = ZSTD_decompressStream(inflating->zstd, &output, &input);

	/* The pointers may be NULL if there is no input or no output. */
	if (input.pos)
		*in += input.pos;
	if (output.pos)
		inflating->out += output.pos;
	*n -= input.pos;
	inflating->left -= output.pos;
	inflating->frame_ended = status == 0;
	return ZSTD_isError(status) || (!input.pos && !output.pos) ? -EBADMSG : 0;
}

/* Inflates the @n bytes at @in. Returns as step_zlib(), or -EFBIG or -EINTR. */
static int inflate_block(struct inflating *inflating, const uint8_t *in, size_t n)
{
	int ret = 0;

	while (!ret && n) {
		size_t room = min_of(inflating->left, (uint64_t)QUOTA_BLOCK);

		ret = quota__charge(inflating->file->account, QUOTA_INFLATED, room);
		if (!ret && inflating->zstd)
			ret = step_zstd(inflating, &in, &n, room);
		else if (!ret)
			ret = step_zlib(inflating, &in, &n, room);
	}
	return ret;
}

/* Writes pending output after the last input. Returns 1 at the end of a frame, 0 if the data are
 * cut, or a negative errno. */
static int flush_zstd(struct inflating *inflating)
{
	int ret = 0;

	while (!ret && !inflating->frame_ended && inflating->left) {
		size_t room = min_of(inflating->left, (uint64_t)QUOTA_BLOCK), n = 0;
		const uint8_t *none = NULL;

		ret = quota__charge(inflating->file->account, QUOTA_INFLATED, room);
		if (!ret)
			ret = step_zstd(inflating, &none, &n, room);
	}
	return ret ? ret : inflating->frame_ended;
}

/* Returns 1 if the data end properly, 0 if they are cut, or a negative errno. */
static int inflate_all(struct inflating *inflating, const struct elf_section *section)
{
	uint64_t at = section->head, end = section->shdr.sh_size;
	uint8_t *block = malloc(QUOTA_BLOCK);
	int ret = block ? 0 : -ENOMEM;
	size_t n;

	for (; at < end && !ret; at += n) {
		n = min_of(end - at, (uint64_t)QUOTA_BLOCK);
		ret = elf_file__read_at(inflating->file, section->shdr.sh_offset + at, block, n);
		if (!ret)
			ret = inflate_block(inflating, block, n);
	}
	if (!ret && inflating->zstd)
		ret = flush_zstd(inflating);
	free(block);
	return ret == -EFAULT ? -EBADMSG : ret;
}

static int begin_zstd(struct inflating *inflating, int window_log)
{
	inflating->zstd = ZSTD_createDCtx();
	if (!inflating->zstd)
		return -ENOMEM;
	return ZSTD_isError(
		       ZSTD_DCtx_setParameter(inflating->zstd, ZSTD_d_windowLogMax, window_log))
		       ? -EBADMSG
		       : 0;
}

static int read_zstd(struct inflating *inflating, const struct elf_section *section)
{
	struct quota_account *account = inflating->file->account;
	int window_log = WINDOW_LOG_MIN, ret;

	while (window_log < WINDOW_LOG_MAX && 1ULL << window_log < section->size)
		window_log++;
	ret = quota__charge(account, QUOTA_RETAINED, 1ULL << window_log);
	if (ret)
		return ret;
	ret = begin_zstd(inflating, window_log);
	if (!ret)
		ret = inflate_all(inflating, section);
	ZSTD_freeDCtx(inflating->zstd);
	quota__give_back(account, 1ULL << window_log);
	return ret;
}

static int read_zlib(struct inflating *inflating, const struct elf_section *section)
{
	int ret;

	if (inflateInit(&inflating->zlib) != Z_OK)
		return -ENOMEM;
	ret = inflate_all(inflating, section);
	inflateEnd(&inflating->zlib);
	return ret;
}

int elf_inflate__read(const struct elf_file *file, const struct elf_section *section, void *to)
{
	struct inflating inflating = { .file = file, .out = to, .left = section->size };
	int ret = section->stored == ELFCOMPRESS_ZSTD ? read_zstd(&inflating, section)
						      : read_zlib(&inflating, section);

	return ret < 0 ? ret : ret && !inflating.left ? 0 : -EBADMSG;
}
