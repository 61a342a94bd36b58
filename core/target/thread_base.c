// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/thread_base.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

/* glibc's struct pthread on x86-64 (nptl/descr.h): tcbhead_t with `tcb` and `self`, both its own
 * address; the list of all threads of its kind; the id. It is aligned to 64 bytes. */
#define TCB_SELF  16
#define TCB_NEXT  704
#define TCB_TID	  720
#define TCB_ALIGN 64

/* musl's struct pthread since 1.1.22 (src/internal/pthread_impl.h): its own address; the previous
 * and the next thread in a ring of all; the id. Up to 1.2.1 the id follows a second canary, which
 * is 0 here. The struct is aligned to words, or as thread-local variables need. Their vector begins
 * with the number of modules that have some. */
#define MUSL_DTV	8
#define MUSL_PREV	16
#define MUSL_NEXT	24
#define MUSL_TID	48
#define MUSL_TID_BEFORE 56
#define MUSL_BYTES	64

#define CHUNK_BYTES  65536u
#define ABOVE_SP_MAX (64u << 20) /* bytes from sp to the struct, across the stack */
/* Maximum size of a mapping that is searched as a whole.
 *
 * The main thread's struct is in a small mapping of the dynamic linker. With musl it may also be in
 * the linker's variables, or in the rest of the pages of a library's variables. The structs of
 * other threads are at the ends of their stacks. */
#define SMALL_BYTES  (1u << 20)
#define LIST_MAX     65536

struct range {
	uint64_t start, end;
	bool of_file;
};

struct cached {
	uint32_t tid;
	bool early; /* an early struct of the dynamic linker, which another may replace */
	uint64_t base;
};

struct thread_bases {
	const struct memory *memory;
	struct range *ranges; /* writable private memory of the process, ascending */
	size_t n_ranges, cap_ranges;
	struct cached *cached;
	size_t n_cached, cap_cached;
	bool searched; /* the small ranges were searched */
};

static int add_range(struct thread_bases *bases, const struct maps_line *line)
{
	int code;

	if (strncmp(line->perms, "rw", 2) != 0 || (line->inode && line->perms[3] != 'p'))
		return 0;
	code = array__reserve(&bases->ranges, &bases->cap_ranges, bases->n_ranges + 1,
			      sizeof(*bases->ranges));
	if (!code)
		bases->ranges[bases->n_ranges++] =
			(struct range) { line->start, line->end, line->inode };
	return code;
}

static int read_ranges(struct thread_bases *bases, uint32_t pid)
{
	struct maps_line parsed;
	char *line = NULL;
	size_t size = 0;
	FILE *maps;
	int code = 0;

	if (procfs__open_maps(pid, &maps))
		return 0; /* nothing will be found */
	while (!code && getline(&line, &size, maps) > 0)
		if (maps_line__parse(line, &parsed))
			code = add_range(bases, &parsed);
	free(line);
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
	free(bases->cached);
	free(bases);
}

bool thread_bases__can_write(const struct thread_bases *bases, uint64_t address, size_t size)
{
	for (size_t i = 0; i < bases->n_ranges; i++) {
		const struct range *range = &bases->ranges[i];

		if (address >= range->start && address < range->end && size <= range->end - address)
			return true;
	}
	return false;
}

static struct cached *cached_of(const struct thread_bases *bases, uint32_t tid)
{
	for (size_t i = 0; i < bases->n_cached; i++)
		if (bases->cached[i].tid == tid)
			return &bases->cached[i];
	return NULL;
}

static uint64_t find_cached(const struct thread_bases *bases, uint32_t tid)
{
	const struct cached *cached = cached_of(bases, tid);

	return cached && !cached->early ? cached->base : 0;
}

static void keep(struct thread_bases *bases, const struct cached *found)
{
	struct cached *cached = cached_of(bases, found->tid);

	if (cached && cached->early && !found->early)
		*cached = *found;
	if (!cached && !array__reserve(&bases->cached, &bases->cap_cached, bases->n_cached + 1,
				       sizeof(*bases->cached)))
		bases->cached[bases->n_cached++] = *found;
}

static bool is_glibc(const struct thread_bases *bases, uint64_t at, struct cached *ret)
{
	uint64_t self;
	int32_t tid;

	if (at % TCB_ALIGN || memory__read(bases->memory, at + TCB_SELF, &self, sizeof(self)) ||
	    self != at || memory__read(bases->memory, at + TCB_TID, &tid, sizeof(tid)) || tid <= 0)
		return false;
	*ret = (struct cached) { .tid = tid, .base = at };
	return true;
}

/* Returns true if the struct at @at begins with its own address and has @other at @offset. */
static bool names(const struct thread_bases *bases, uint64_t at, int offset, uint64_t other)
{
	uint64_t words[MUSL_NEXT / 8 + 1];

	return !memory__read(bases->memory, at, words, sizeof(words)) && words[0] == at &&
	       words[offset / 8] == other;
}

/* Returns true if a struct of musl is at @at. The dynamic linker starts with an early struct
 * without thread-local variables, and leaves it unchanged when it makes another one. With no or few
 * such variables, the early one remains the thread's. */
static bool is_musl(const struct thread_bases *bases, uint64_t at, struct cached *ret)
{
	uint64_t words[MUSL_BYTES / 8], n_modules;
	int32_t tid;

	if (memory__read(bases->memory, at, words, sizeof(words)) ||
	    !names(bases, words[MUSL_NEXT / 8], MUSL_PREV, at) ||
	    !names(bases, words[MUSL_PREV / 8], MUSL_NEXT, at) ||
	    memory__read(bases->memory, words[MUSL_DTV / 8], &n_modules, sizeof(n_modules)))
		return false;
	tid = (int32_t)words[MUSL_TID / 8] ?: (int32_t)words[MUSL_TID_BEFORE / 8];
	if (tid <= 0)
		return false;
	*ret = (struct cached) { .tid = tid, .early = !n_modules, .base = at };
	return true;
}

/* Follows the list from one thread to all others; the head of glibc's list is not a thread. */
static void follow_list(struct thread_bases *bases, uint64_t base, bool of_musl)
{
	uint64_t at = base, next;
	struct cached found;

	for (int i = 0; i < LIST_MAX; i++) {
		if (memory__read(bases->memory, at + (of_musl ? MUSL_NEXT : TCB_NEXT), &next,
				 sizeof(next)) ||
		    !next)
			return;
		at = of_musl ? next : next - TCB_NEXT;
		if (at == base)
			return;
		if (of_musl ? is_musl(bases, at, &found) : is_glibc(bases, at, &found))
			keep(bases, &found);
	}
}

/* Searches a range for the structs of all threads; with @tid, stops at the struct of that thread.
 */
static void search(struct thread_bases *bases, uint64_t start, uint64_t end, uint32_t tid)
{
	static uint64_t words[CHUNK_BYTES / 8];
	struct cached found;

	start &= ~(uint64_t)7;
	for (; start < end; start += CHUNK_BYTES) {
		size_t size = min_of(end - start, (uint64_t)CHUNK_BYTES);

		if (memory__read(bases->memory, start, words, size))
			return;
		for (size_t at = 0; at + 8 <= size; at += 8) {
			uint64_t base = start + at;
			bool of_musl;

			if (words[at / 8] != base)
				continue;
			of_musl = is_musl(bases, base, &found);
			if ((!of_musl && !is_glibc(bases, base, &found)) ||
			    find_cached(bases, found.tid))
				continue;
			keep(bases, &found);
			follow_list(bases, base, of_musl);
			if (find_cached(bases, tid))
				return;
		}
	}
}

/* Searches small mappings as a whole, and the last CHUNK_BYTES of others. Starts with the last
 * mapping, as the first mapped ones have the highest addresses. */
static uint64_t search_small(struct thread_bases *bases, uint32_t tid, bool of_file)
{
	uint64_t base = 0;

	for (size_t i = bases->n_ranges; !base && i--;) {
		const struct range *range = &bases->ranges[i];

		if (range->of_file != of_file)
			continue;
		search(bases,
		       range->end - range->start <= SMALL_BYTES ? range->start
								: range->end - CHUNK_BYTES,
		       range->end, tid);
		base = find_cached(bases, tid);
	}
	return base;
}

uint64_t thread_bases__find(struct thread_bases *bases, uint32_t inner_tid, uint64_t sp)
{
	uint64_t base = find_cached(bases, inner_tid);
	struct cached *cached;

	for (size_t i = 0; !base && sp && i < bases->n_ranges; i++) {
		const struct range *range = &bases->ranges[i];

		if (sp < range->start || sp >= range->end)
			continue;
		search(bases, sp, min_of(range->end, sp + ABOVE_SP_MAX), inner_tid);
		base = find_cached(bases, inner_tid);
	}
	if (!base && !bases->searched) {
		base = search_small(bases, inner_tid, false);
		if (!base)
			base = search_small(bases, inner_tid, true);
		bases->searched = !base;
	}
	cached = cached_of(bases, inner_tid);
	return cached ? cached->base : 0;
}
