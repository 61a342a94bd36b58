// SPDX-License-Identifier: GPL-2.0-or-later
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "core/base/util.h"
#include "core/unwind/unwind_cache.h"
#include "tests/fuzz/fuzz.h"

/* Offsets in the file's header, which is private to core/unwind/unwind_cache.c. If they were wrong,
 * the seed would be rejected. */
#define CRC_AT	     12
#define N_WORDS_AT   56
#define HEADER_BYTES 64
#define SOURCE_BYTES 40 /* for an image without segments and sections */

static struct elf_file image = { .fd = -1, .build_id = "fuzz", .build_id_len = 4 };

/* Returns the path of the image in the cache. The image has a build-id, and no data for a table. */
static const char *cache_path(void)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/66757a7a.utab", fuzz__dir());
	return path;
}

/* Repairs the checksum and the number of words, which no fuzzer can guess. */
static void repair(uint8_t *data, size_t size)
{
	uint32_t crc = 0, n_words = (size - HEADER_BYTES - SOURCE_BYTES) / sizeof(uint32_t);

	memcpy(data + N_WORDS_AT, &n_words, sizeof(n_words));
	memcpy(data + CRC_AT, &crc, sizeof(crc));
	crc = crc32_z(0, data, HEADER_BYTES + n_words * sizeof(uint32_t));
	memcpy(data + CRC_AT, &crc, sizeof(crc));
}

/* Reads an unwind table from the cache. A search in an accepted table must not leave it. */
bool target__run(const uint8_t *data, size_t size)
{
	const char *path = cache_path();
	struct unwind_table table = {};
	uint8_t *copy = malloc(size + 1);
	FILE *file = fopen(path, "we");
	bool found = false;

	if (!copy || !file)
		fuzz__die("cannot write %s", path);
	memcpy(copy, data, size);
	if (size >= HEADER_BYTES + SOURCE_BYTES)
		repair(copy, size);
	fwrite(copy, 1, size, file);
	fclose(file);
	free(copy);
	chmod(path, 0600);
	if (unwind_cache__load(fuzz__dir(), &image, &table) == 0) {
		for (uint32_t page = 0; page < min_of(table.n_pages, 64u); page++) {
			for (uint64_t at = 0; at < UNWIND_PAGE_BYTES; at += 8) {
				uint64_t vaddr = table.vaddr_start + page * UNWIND_PAGE_BYTES + at;

				found |= unwind_table__find(&table, vaddr)->kind == UNWIND_REG;
			}
		}
		unwind_table__find(&table, 0);
		unwind_table__find(&table, UINT64_MAX);
	}
	unwind_table__done(&table);
	return found;
}

void target__seeds(void)
{
	struct unwind_table table = {};
	struct elf_file *elf = NULL;
	size_t size;
	uint8_t *data = fuzz__compile("", "int main(void) { return 0; }\n", &size);

	if (elf_file__open_memory(data, size, "seed", &elf, NULL) ||
	    unwind_table__build(elf, &table, NULL))
		fuzz__die("no unwind table of the seed");
	free(data);
	cache_path();
	if (unwind_cache__store(fuzz__dir(), &image, &table))
		fuzz__die("the unwind table cannot be stored");
	data = fuzz__read(cache_path(), &size);
	fuzz__seed(data, size);
	free(data);
	unwind_table__done(&table);
	elf_file__free(elf);
}
