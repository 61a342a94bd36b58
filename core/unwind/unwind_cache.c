// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/base/util.h"
#include "core/unwind/unwind_source.h"

#define MAGIC	"BRDUTAB"
#define VERSION 11 /* version of this header, of unwind_rule, and of the builder's results */

/* Limits of the cache. Profiled users choose its content, as a build creates any number of images.
 */
#define CACHE_BYTES_MAX	 (512ULL << 20)
#define TRIM_EVERY_BYTES (32ULL << 20)

/* A cache file consists of this header, the words, the ranges of code that was read, and the
 * source: all bytes that the table was made from. All are in host byte order. The source identifies
 * the file: the author of a program chooses its build-id, and could choose the value of a weak
 * hash. */
struct header {
	char magic[sizeof(MAGIC)];
	uint32_t version;
	uint32_t crc; /* CRC-32 of the header with a crc of 0, and of the words */
	uint64_t source_bytes;
	uint64_t vaddr_start;
	uint32_t n_pages, rules_at, rows_at;
	uint32_t n_rules, n_rows, n_unsupported, n_words;
	uint32_t n_ranges; /* number of ranges of code that was read; CODE_NAMED: the whole file was
			      read */
};
_Static_assert(sizeof(struct header) == 64, "no holes: the checksum covers every byte");

#define CODE_NAMED UINT32_MAX

static uint32_t checksum(struct header header, const uint32_t *words)
{
	uLong crc = crc32_z(0, NULL, 0);

	header.crc = 0;
	crc = crc32_z(crc, (const Bytef *)&header, sizeof(header));
	return crc32_z(crc, (const Bytef *)words, (size_t)header.n_words * sizeof(*words));
}

static char *cache_name(const struct elf_file *file)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "", *name;

	if (!file->build_id_len || file->build_id_len > ELF_BUILD_ID_MAX)
		return NULL;
	for (size_t i = 0; i < file->build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", file->build_id[i]);
	return asprintf(&name, "%s.utab", hex) < 0 ? NULL : name;
}

/* --- validation of all indexes in a cache file --- */

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
		if (rules[i].kind > UNWIND_POINTER || rules[i].reg >= UNWIND_REGS ||
		    (rules[i].kind == UNWIND_LINK && (unsigned)rules[i].cfa_add >= UNWIND_REG_PC))
			return false;
	}
	if (rules[0].kind != UNWIND_NONE || rules[1].kind != UNWIND_UNSUPPORTED)
		return false;
	for (uint32_t i = 0; i < h->n_rows; i++) {
		uint32_t row = words[h->rows_at + i];

		if (UNWIND_ROW_RULE(row) >= h->n_rules)
			return false;
	}
	return true;
}

/* --- files --- */

/* Checks that @fd is of this @kind and that only this user can write it. Returns 0, -EPERM if
 * another user can write it, or another negative errno. */
static int check_ours(int fd, mode_t kind, struct stat *ret)
{
	if (fstat(fd, ret) != 0)
		return -errno;
	return (ret->st_mode & S_IFMT) == kind && ret->st_uid == geteuid() && !(ret->st_mode & 022)
		       ? 0
		       : -EPERM;
}

static int open_dir(const char *dir)
{
	int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = check_ours(fd, S_IFDIR, &st);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static int open_file(int dir_fd, const char *name, uint64_t *ret_bytes)
{
	/* O_NONBLOCK: a fifo must not block the open */
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = check_ours(fd, S_IFREG, &st);
	if (rc)
		close(fd);
	*ret_bytes = st.st_size;
	return rc ? rc : fd;
}

/* Reads and checks the header and the words. The caller frees *@ret_words. Returns 0, -EBADMSG or
 * another negative errno. */
static int read_words(int fd, uint64_t bytes, struct header *ret, uint32_t **ret_words)
{
	struct header h;
	uint32_t *words;
	int rc;

	rc = bytes < sizeof(h) ? -EBADMSG : file__read(fd, &h, sizeof(h));
	if (rc)
		return rc;
	if (memcmp(h.magic, MAGIC, sizeof(h.magic)) != 0 || h.version != VERSION ||
	    (uint64_t)h.n_words * sizeof(*words) > bytes - sizeof(h) || !layout_is_valid(&h))
		return -EBADMSG;
	words = malloc((size_t)h.n_words * sizeof(*words));
	if (!words)
		return -ENOMEM;
	rc = file__read(fd, words, (size_t)h.n_words * sizeof(*words));
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

static int read_ranges(int fd, const struct header *h, struct insn_ranges *ret)
{
	*ret = (struct insn_ranges) { .named = h->n_ranges == CODE_NAMED };
	if (ret->named || !h->n_ranges)
		return 0;
	if (h->n_ranges > INSN_RANGES_MAX)
		return -EBADMSG;
	ret->n = h->n_ranges;
	ret->list = calloc(ret->n, sizeof(*ret->list));
	return ret->list ? file__read(fd, ret->list, ret->n * sizeof(*ret->list)) : -ENOMEM;
}

/* Checks that the cache file ends with the source of the table of @file. Returns 0, -EBADMSG if the
 * cache file does not end so, or another negative errno. */
static int check_source(int fd, uint64_t bytes, const struct header *h, const struct elf_file *file)
{
	struct insn_ranges ranges;
	struct unwind_source source = {};
	int rc = read_ranges(fd, h, &ranges);

	if (!rc)
		rc = unwind_source__read(file, &ranges, &source);
	if (!rc && (h->source_bytes != source.bytes ||
		    bytes != sizeof(*h) + h->n_words * sizeof(uint32_t) +
				     ranges.n * sizeof(*ranges.list) + source.bytes))
		rc = -EBADMSG;
	if (!rc)
		rc = unwind_source__compare(&source, fd);
	unwind_source__done(&source);
	insn_ranges__done(&ranges);
	return rc;
}

static int load_from(int fd, uint64_t bytes, const struct elf_file *file, struct unwind_table *ret)
{
	struct header h;
	uint32_t *words;
	int rc = read_words(fd, bytes, &h, &words);

	if (rc)
		return rc;
	rc = check_source(fd, bytes, &h, file);
	if (rc) {
		free(words);
		return rc;
	}
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

int unwind_cache__load(const char *dir, const struct elf_file *file, struct unwind_table *ret)
{
	int dir_fd = open_dir(dir), fd = -1, rc = min_of(dir_fd, 0);
	char *name = cache_name(file);
	uint64_t bytes = 0;

	if (!rc)
		fd = name ? open_file(dir_fd, name, &bytes) : -EINVAL;
	if (!rc)
		rc = min_of(fd, 0);
	if (!rc)
		rc = load_from(fd, bytes, file, ret);
	free(name);
	close_fd(&fd);
	close_fd(&dir_fd);
	return rc;
}

/* Writes a temporary file in the same directory, and renames it to @name. */
static int write_file(int dir_fd, const char *name, const struct header *header,
		      const uint32_t *words, const struct insn_ranges *ranges,
		      const struct unwind_source *source)
{
	uint64_t random;
	char *temp;
	int fd, rc;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	if (asprintf(&temp, "%s.%016llx", name, (unsigned long long)random) < 0)
		return -ENOMEM;
	fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		rc = -errno;
		free(temp);
		return rc;
	}
	rc = file__write(fd, header, sizeof(*header));
	if (!rc)
		rc = file__write(fd, words, (size_t)header->n_words * sizeof(*words));
	if (!rc)
		rc = file__write(fd, ranges->list, ranges->n * sizeof(*ranges->list));
	if (!rc)
		rc = unwind_source__write(source, fd);
	if (close(fd) != 0 && !rc)
		rc = -errno;
	if (!rc && renameat(dir_fd, temp, dir_fd, name) != 0)
		rc = -errno;
	if (rc)
		unlinkat(dir_fd, temp, 0);
	free(temp);
	return rc;
}

/* --- limit of the size --- */

struct cache_entry {
	char name[2 * ELF_BUILD_ID_MAX + 32];
	uint64_t used_ns, bytes;
};

struct cache_entries {
	struct cache_entry *list;
	size_t n, cap;
	uint64_t bytes; /* total size */
};

/* Returns true for "<hex>.utab", and for the temporary file of a writer that died:
 * "<hex>.utab.<hex>". */
static bool is_cache_name(const char *name)
{
	size_t hex = strspn(name, "0123456789abcdef"), rest;

	if (!hex || strncmp(name + hex, ".utab", 5) != 0)
		return false;
	rest = strlen(name + hex + 5);
	return !rest || (rest == 17 && name[hex + 5] == '.' &&
			 strspn(name + hex + 6, "0123456789abcdef") == 16);
}

static uint64_t to_ns(const struct timespec *time)
{
	return time->tv_sec * NSEC_PER_SEC + time->tv_nsec;
}

static int add_entry(struct cache_entries *entries, int dir_fd, const char *name)
{
	struct cache_entry entry;
	struct stat st;

	if (!is_cache_name(name) || strlen(name) >= sizeof(entry.name) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_uid != geteuid())
		return 0;
	if (array__reserve(&entries->list, &entries->cap, entries->n + 1, sizeof(entry)) != 0)
		return -ENOMEM;
	strcpy(entry.name, name);
	entry.used_ns = max_of(to_ns(&st.st_atim), to_ns(&st.st_mtim));
	entry.bytes = st.st_size;
	entries->list[entries->n++] = entry;
	entries->bytes += entry.bytes;
	return 0;
}

static int by_use(const void *a, const void *b)
{
	const struct cache_entry *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

int unwind_cache__trim(const char *dir, uint64_t max_bytes)
{
	int dir_fd = open_dir(dir), rc = min_of(dir_fd, 0), list_fd;
	struct cache_entries entries = {};
	struct dirent *found;
	DIR *list = NULL;

	if (!rc) {
		list_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		list = list_fd < 0 ? NULL : fdopendir(list_fd);
		rc = list ? 0 : -errno;
	}
	while (!rc && (found = readdir(list)))
		rc = add_entry(&entries, dir_fd, found->d_name);
	if (!rc && entries.bytes > max_bytes) {
		qsort(entries.list, entries.n, sizeof(*entries.list), by_use);
		for (size_t i = 0; i < entries.n && entries.bytes > max_bytes / 4 * 3; i++) {
			unlinkat(dir_fd, entries.list[i].name, 0);
			entries.bytes -= entries.list[i].bytes;
		}
	}
	if (list)
		closedir(list);
	free(entries.list);
	close_fd(&dir_fd);
	return rc;
}

/* Trims the cache after every TRIM_EVERY_BYTES stored, and not at each table: reading the directory
 * takes a system call for each file. */
static void keep_bounded(const char *dir, uint64_t stored_bytes)
{
	static uint64_t since_trim = TRIM_EVERY_BYTES; /* the cache may be full at the first call */

	since_trim += stored_bytes;
	if (since_trim < TRIM_EVERY_BYTES)
		return;
	since_trim = 0;
	unwind_cache__trim(dir, CACHE_BYTES_MAX); /* a failure costs only disk space */
}

/* Adds the part [@start, @end) of @range to @ranges, whose end is before that part or in it. */
static int add_part(struct insn_ranges *ranges, const struct insn_range *range, uint64_t start,
		    uint64_t end)
{
	struct insn_range *last = ranges->n ? &ranges->list[ranges->n - 1] : NULL;

	start = max_of(start, range->start);
	end = min_of(end, range->end);
	if (last && start <= last->end) {
		last->end = max_of(last->end, end);
		return 0;
	}
	if (ranges->n == INSN_RANGES_MAX)
		return -EFBIG;
	if (array__reserve(&ranges->list, &ranges->cap, ranges->n + 1, sizeof(*ranges->list)))
		return -ENOMEM;
	ranges->list[ranges->n++] = (struct insn_range) { start, end };
	return 0;
}

/* Reduces @ranges to the code that the rules of @table depend on: the blocks that were read, and
 * INSN_BLOCK_REACH bytes around them. */
static int leave_read(struct insn_ranges *ranges, const struct unwind_table *table)
{
	struct insn_ranges left = {};
	int rc = 0;

	for (size_t i = 0; i < ranges->n && !rc; i++) {
		const struct insn_range *range = &ranges->list[i];
		uint64_t at = INSN_BLOCK_START(range->start);

		for (; at < range->end && !rc; at += INSN_BLOCK_BYTES) {
			uint64_t first = max_of(at, range->start);

			if (unwind_table__find(table, first)->kind == UNWIND_LATER)
				continue;
			rc = add_part(&left, range, at - min_of(at, INSN_BLOCK_REACH),
				      at + INSN_BLOCK_BYTES + INSN_BLOCK_REACH);
		}
	}
	free(ranges->list);
	ranges->list = left.list;
	ranges->n = left.n;
	ranges->cap = left.cap;
	return rc;
}

int unwind_cache__store(const char *dir, const struct elf_file *file,
			const struct unwind_table *table)
{
	struct header header = { .magic = MAGIC,
				 .version = VERSION,
				 .vaddr_start = table->vaddr_start,
				 .n_pages = table->n_pages,
				 .rules_at = table->rules_at,
				 .rows_at = table->rows_at,
				 .n_rules = table->n_rules,
				 .n_rows = table->n_rows,
				 .n_unsupported = table->n_unsupported,
				 .n_words = table->n_words };
	int dir_fd = open_dir(dir), rc = min_of(dir_fd, 0);
	char *name = cache_name(file);
	struct unwind_source source = {};
	struct insn_ranges ranges = {};

	if (!rc)
		rc = name ? insn_ranges__find(file, &ranges) : -EINVAL;
	if (ranges.named) /* all of the file */
		ranges.n = 0;
	if (!rc && ranges.later)
		rc = leave_read(&ranges, table);
	if (!rc)
		rc = unwind_source__read(file, &ranges, &source);
	if (!rc) {
		header.n_ranges = ranges.named ? CODE_NAMED : ranges.n;
		header.source_bytes = source.bytes;
		header.crc = checksum(header, table->words);
		rc = write_file(dir_fd, name, &header, table->words, &ranges, &source);
	}
	if (!rc)
		keep_bounded(dir, sizeof(header) + source.bytes +
					  (uint64_t)table->n_words * sizeof(*table->words));
	unwind_source__done(&source);
	insn_ranges__done(&ranges);
	free(name);
	close_fd(&dir_fd);
	return rc;
}
