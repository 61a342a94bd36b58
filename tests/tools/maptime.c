// SPDX-License-Identifier: GPL-2.0-or-later
/* How long a perf map takes: maptime FILE */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/perf_map.h"
#include "core/util.h"

#define LOOKUPS	 1000000
#define MS(from) ((cpu_ns() - (from)) / 1e6)

/* CPU time: other processes do not count. */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static double memory_mb(void)
{
	struct mallinfo2 info = mallinfo2();

	return (info.uordblks + info.hblkhd) / 1e6;
}

int main(int argc, char **argv)
{
	struct code_file file = CODE_FILE_NONE;
	struct perf_map_counts counts = {};
	struct code_index index = {};
	struct code_entry entry;
	struct err err = {};
	uint64_t start, random = 1;
	size_t i, n, hits = 0, named = 0;
	double read_ms, index_ms, find_ns, before = memory_mb();
	char name[1024], path[PATH_MAX];

	if (argc != 2 || !realpath(argv[1], path) ||
	    code_file__open(open("/", O_PATH | O_CLOEXEC), path, getuid(), 0, &file, &err)) {
		fprintf(stderr, "maptime FILE: %s\n", err.text);
		return 1;
	}
	start = cpu_ns();
	if (perf_map__read(&file, UINT64_MAX, 0, &index, &counts) < 0 || !index.n)
		return 1;
	read_ms = MS(start);
	start = cpu_ns();
	n = index.n;
	code_index__find(&index, 0, 0, &entry);
	index_ms = MS(start);
	start = cpu_ns();
	for (i = 0; i < LOOKUPS; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		entry = index.entries[(random >> 33) % n];
		hits += code_index__find(&index, entry.start + entry.size / 2, UINT64_MAX, &entry);
	}
	find_ns = MS(start) * 1e6 / LOOKUPS;
	start = cpu_ns();
	for (i = 0; i < n; i += n / 1000 + 1)
		named += perf_map__name(&file, &index.entries[i], name, sizeof(name));
	printf("symbols %zu skipped %" PRIu64 " bytes %" PRIu64 "\n", n, counts.skipped, file.done);
	printf("read %.1f ms index %.1f ms find %.0f ns name %.0f ns\n", read_ms, index_ms, find_ns,
	       MS(start) * 1e6 / (named ? named : 1));
	printf("memory %.1f MB bytes per symbol %.1f\n", memory_mb() - before,
	       (memory_mb() - before) * 1e6 / n);
	code_index__done(&index);
	code_file__close(&file);
	return hits != LOOKUPS || !named;
}
