// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/thread_base.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* glibc's struct pthread on x86-64 (nptl/descr.h): tcbhead_t with `tcb` and `self`, both its own
 * address; the list of all threads of its sort; the id. It lies in multiples of 64 bytes. */
#define TCB_SELF  16
#define TCB_NEXT  704
#define TCB_TID	  720
#define TCB_ALIGN 64
#define TCB_BYTES 724

#define CHUNK_BYTES 65536u
#define ABOVE_SP_MAX                                                                \
	(64u << 20) /* a thread's own is above its stack, whose depth is in between \
		     */
/* The main thread's is in a small mapping of the dynamic linker's; those of others are where their
 * stacks end. */
#define SMALL_BYTES (1u << 20)
#define LIST_MAX    65536

struct range {
	uint64_t start, end;
};

struct thread_bases {
	const struct memory *memory;
	struct range *ranges; /* anonymous memory that can be written, ascending */
	size_t n_ranges, cap_ranges;
	struct {
		uint32_t tid;
		uint64_t base;
	} * known;
	size_t n_known, cap_known;
	bool searched; /* the small ranges were */
};

static int read_ranges(struct thread_bases *bases, uint32_t pid)
{
	char path[64], line[512], perms[8];
	uint64_t start, end, inode;
	FILE *maps;
	int code = 0;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	maps = fopen(path, "re");
	while (maps && !code && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %" SCNu64, &start, &end,
			   perms, &inode) != 4 ||
		    strncmp(perms, "rw", 2) != 0 || inode)
			continue;
		code = array__reserve(&bases->ranges, &bases->cap_ranges, bases->n_ranges + 1,
				      sizeof(*bases->ranges));
		if (!code)
			bases->ranges[bases->n_ranges++] = (struct range) { start, end };
	}
	if (maps)
		fclose(maps);
	return code;
}

int thread_bases__new(uint32_t pid, const struct memory *memory, struct thread_bases **ret)
{
	struct thread_bases *bases = calloc(1, sizeof(*bases));
	int code;

	if (!bases)
		return -ENOMEM;
	bases->memory = memory;
	code = read_ranges(bases, pid);
	if (code)
		thread_bases__free(bases);
	else
		*ret = bases;
	return code;
}

void thread_bases__free(struct thread_bases *bases)
{
	if (!bases)
		return;
	free(bases->ranges);
	free(bases->known);
	free(bases);
}

static uint64_t find_known(const struct thread_bases *bases, uint32_t tid)
{
	for (size_t i = 0; i < bases->n_known; i++)
		if (bases->known[i].tid == tid)
			return bases->known[i].base;
	return 0;
}

static void keep(struct thread_bases *bases, uint32_t tid, uint64_t base)
{
	if (!tid || find_known(bases, tid) ||
	    array__reserve(&bases->known, &bases->cap_known, bases->n_known + 1,
			   sizeof(*bases->known)))
		return;
	bases->known[bases->n_known].tid = tid;
	bases->known[bases->n_known++].base = base;
}

static bool is_base(const struct thread_bases *bases, uint64_t at, uint32_t *ret_tid)
{
	uint64_t self[3];
	int32_t tid;

	if (memory__read(bases->memory, at, self, sizeof(self)) || self[0] != at ||
	    self[TCB_SELF / 8] != at || memory__read(bases->memory, at + TCB_TID, &tid, 4) ||
	    tid <= 0)
		return false;
	*ret_tid = tid;
	return true;
}

/* From one thread to all others of its list; the list's head is no thread. */
static void follow_list(struct thread_bases *bases, uint64_t base)
{
	uint64_t at = base, next;
	uint32_t tid;

	for (int i = 0; i < LIST_MAX; i++) {
		if (memory__read(bases->memory, at + TCB_NEXT, &next, sizeof(next)) || !next)
			return;
		at = next - TCB_NEXT;
		if (at == base)
			return;
		if (is_base(bases, at, &tid))
			keep(bases, tid, at);
	}
}

/* All that there are in a range; with `tid` only up to that one's. */
static void search(struct thread_bases *bases, uint64_t start, uint64_t end, uint32_t tid)
{
	static uint64_t words[CHUNK_BYTES / 8];
	uint32_t found;

	start &= ~(uint64_t)(TCB_ALIGN - 1);
	for (; start < end; start += CHUNK_BYTES) {
		size_t size = min_of(end - start, (uint64_t)CHUNK_BYTES);

		if (memory__read(bases->memory, start, words, size))
			return;
		for (size_t at = 0; at + TCB_ALIGN <= size; at += TCB_ALIGN) {
			if (words[at / 8] != start + at || words[at / 8 + 2] != start + at ||
			    !is_base(bases, start + at, &found) || find_known(bases, found))
				continue;
			keep(bases, found, start + at);
			follow_list(bases, start + at);
			if (found == tid)
				return;
		}
	}
}

uint64_t thread_bases__find(struct thread_bases *bases, uint32_t inner_tid, uint64_t sp)
{
	uint64_t base = find_known(bases, inner_tid);
	size_t i;

	for (i = 0; !base && sp && i < bases->n_ranges; i++) {
		const struct range *range = &bases->ranges[i];

		if (sp < range->start || sp >= range->end)
			continue;
		search(bases, sp, min_of(range->end, sp + ABOVE_SP_MAX), inner_tid);
		base = find_known(bases, inner_tid);
	}
	if (base || bases->searched)
		return base;
	for (i = bases->n_ranges; !base && i--;) { /* what was mapped first is at the end */
		const struct range *range = &bases->ranges[i];

		search(bases,
		       range->end - range->start <= SMALL_BYTES ? range->start
								: range->end - CHUNK_BYTES,
		       range->end, inner_tid);
		base = find_known(bases, inner_tid);
	}
	bases->searched = !base;
	return base;
}
