// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/util.h"

#define MAGIC	"BRDUTAB"
#define VERSION 2 /* of this header, of unwind_rule, and of what the builder makes of a file */

/* A file is this and the words, all in host byte order. */
struct header {
	char magic[sizeof(MAGIC)];
	uint32_t version;
	uint32_t crc; /* of the header with a crc of 0, and the words */
	uint64_t image_bytes;
	uint8_t build_id[ELF_BUILD_ID_MAX]; /* rest zero */
	uint64_t build_id_len;
	uint64_t vaddr_start;
	uint32_t n_pages, rules_at, rows_at;
	uint32_t n_rules, n_rows, n_unsupported, n_words;
	uint32_t pad;
};
_Static_assert(sizeof(struct header) == 136, "no holes: the checksum covers every byte");

static uint32_t checksum(struct header header, const uint32_t *words)
{
	uLong crc = crc32_z(0, NULL, 0);

	header.crc = 0;
	crc = crc32_z(crc, (const Bytef *)&header, sizeof(header));
	return crc32_z(crc, (const Bytef *)words, (size_t)header.n_words * sizeof(*words));
}

/* What identifies the image; the rest zero. */
static int init_header(struct header *header, const struct elf_file *file)
{
	struct stat st;

	if (!file->build_id_len || file->build_id_len > ELF_BUILD_ID_MAX)
		return -EINVAL;
	if (fstat(file->fd, &st) != 0)
		return -errno;
	memset(header, 0, sizeof(*header));
	memcpy(header->magic, MAGIC, sizeof(header->magic));
	header->version = VERSION;
	header->image_bytes = st.st_size;
	memcpy(header->build_id, file->build_id, file->build_id_len);
	header->build_id_len = file->build_id_len;
	return 0;
}

static char *cache_path(const char *dir, const struct elf_file *file)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1], *path;

	for (size_t i = 0; i < file->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", file->build_id[i]);
	return asprintf(&path, "%s/%s.utab", dir, hex) < 0 ? NULL : path;
}

/* --- is it safe to follow the numbers in it? --- */

static bool layout_is_valid(const struct header *h)
{
	uint64_t rules_end = (uint64_t)h->rules_at + (uint64_t)h->n_rules * UNWIND_RULE_WORDS;

	return h->n_pages && h->n_rows && h->n_rules >= 2 && h->n_rules <= UNWIND_RULES_MAX &&
	       h->rules_at > h->n_pages && h->rules_at % UNWIND_RULE_WORDS == 0 &&
	       rules_end <= h->rows_at && (uint64_t)h->rows_at + h->n_rows == h->n_words &&
	       h->vaddr_start % UNWIND_PAGE_BYTES == 0 && h->n_unsupported <= h->n_rows;
}

static bool words_are_valid(const struct header *h, const uint32_t *words)
{
	const struct unwind_rule *rules = (const struct unwind_rule *)(words + h->rules_at);

	for (uint32_t i = 0; i <= h->n_pages; i++) {
		if (words[i] > h->n_rows || (i && words[i] < words[i - 1]))
			return false;
	}
	for (uint32_t i = 0; i < h->n_rules; i++) {
		if (rules[i].kind > UNWIND_UNSUPPORTED || rules[i].reg >= UNWIND_REGS ||
		    (rules[i].kind == UNWIND_LINK && (unsigned)rules[i].cfa_add >= UNWIND_REG_PC))
			return false;
	}
	if (rules[0].kind != UNWIND_NONE || rules[1].kind != UNWIND_UNSUPPORTED)
		return false;
	for (uint32_t i = 0; i < h->n_rows; i++) {
		uint32_t row = words[h->rows_at + i];

		if ((row & 0xffff) >= h->n_rules || row >> 16 >= UNWIND_PAGE_BYTES)
			return false;
	}
	return true;
}

/* --- files --- */

static int read_all(int fd, void *buf, size_t len)
{
	char *at = buf;
	ssize_t n;

	while (len) {
		n = read(fd, at, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
	return 0;
}

static int write_all(int fd, const void *buf, size_t len)
{
	const char *at = buf;
	ssize_t n;

	while (len) {
		n = write(fd, at, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
	return 0;
}

static int open_ours(const char *path, uint64_t *ret_bytes)
{
	/* O_NONBLOCK: a fifo must not make us wait. */
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), rc = 0;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
		rc = -EPERM;
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_bytes = st.st_size;
	return fd;
}

/* The header must say of the image what `want` says. The words are owned by the caller. */
static int read_table(int fd, uint64_t bytes, const struct header *want, struct header *ret,
		      uint32_t **ret_words)
{
	struct header h;
	uint32_t *words;
	int rc;

	rc = bytes < sizeof(h) ? -EBADMSG : read_all(fd, &h, sizeof(h));
	if (rc)
		return rc;
	if (memcmp(h.magic, want->magic, sizeof(h.magic)) != 0 || h.version != want->version ||
	    h.image_bytes != want->image_bytes || h.build_id_len != want->build_id_len ||
	    memcmp(h.build_id, want->build_id, sizeof(h.build_id)) != 0)
		return -EBADMSG;
	if (bytes - sizeof(h) != (uint64_t)h.n_words * sizeof(*words) || !layout_is_valid(&h))
		return -EBADMSG;
	words = malloc((size_t)h.n_words * sizeof(*words));
	if (!words)
		return -ENOMEM;
	rc = read_all(fd, words, (size_t)h.n_words * sizeof(*words));
	if (!rc && (h.crc != checksum(h, words) || !words_are_valid(&h, words)))
		rc = -EBADMSG;
	if (rc) {
		free(words);
		return rc;
	}
	*ret = h;
	*ret_words = words;
	return 0;
}

int unwind_cache__load(const char *dir, const struct elf_file *file, struct unwind_table *ret)
{
	struct header want, h;
	uint64_t bytes = 0;
	uint32_t *words;
	char *path;
	int fd, rc;

	rc = init_header(&want, file);
	if (rc)
		return rc;
	path = cache_path(dir, file);
	if (!path)
		return -ENOMEM;
	fd = open_ours(path, &bytes);
	free(path);
	if (fd < 0)
		return fd;
	rc = read_table(fd, bytes, &want, &h, &words);
	close(fd);
	if (rc)
		return rc;
	*ret = (struct unwind_table) {
		.vaddr_start = h.vaddr_start,
		.n_pages = h.n_pages,
		.rules_at = h.rules_at,
		.rows_at = h.rows_at,
		.n_rules = h.n_rules,
		.n_rows = h.n_rows,
		.n_unsupported = h.n_unsupported,
		.n_words = h.n_words,
		.words = words,
	};
	return 0;
}

/* Into a file of its own beside `path`, which then takes its place. */
static int write_file(const char *path, const struct header *header, const uint32_t *words)
{
	char *temp;
	int fd, rc;

	if (asprintf(&temp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(temp, O_CLOEXEC); /* mode 0600 */
	if (fd < 0) {
		rc = -errno;
		free(temp);
		return rc;
	}
	rc = write_all(fd, header, sizeof(*header));
	if (!rc)
		rc = write_all(fd, words, (size_t)header->n_words * sizeof(*words));
	if (close(fd) != 0 && !rc)
		rc = -errno;
	if (!rc && rename(temp, path) != 0)
		rc = -errno;
	if (rc)
		unlink(temp);
	free(temp);
	return rc;
}

int unwind_cache__store(const char *dir, const struct elf_file *file,
			const struct unwind_table *table)
{
	struct header header;
	char *path;
	int rc;

	rc = init_header(&header, file);
	if (rc)
		return rc;
	path = cache_path(dir, file);
	if (!path)
		return -ENOMEM;
	header.vaddr_start = table->vaddr_start;
	header.n_pages = table->n_pages;
	header.rules_at = table->rules_at;
	header.rows_at = table->rows_at;
	header.n_rules = table->n_rules;
	header.n_rows = table->n_rows;
	header.n_unsupported = table->n_unsupported;
	header.n_words = table->n_words;
	header.crc = checksum(header, table->words);
	rc = write_file(path, &header, table->words);
	free(path);
	return rc;
}
