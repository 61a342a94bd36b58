// SPDX-License-Identifier: GPL-2.0-or-later
/* runtime.allgs has a pointer to each goroutine that was ever started. The struct g
 * of a goroutine that has ended is used again by a later one, and is never freed. So each pointer
 * of the list stays valid, and only the fields change while they are read.
 *
 * A goroutine that is on no thread has no m: dropg() of src/runtime/proc.go clears g.m after the
 * change of its status, and the next thread sets it before the change back. The status "waiting"
 * alone is not sufficient, because the runtime also gives it to goroutines that run on a thread
 * (casGToWaiting). The place where a goroutine continues is in g.sched: behind a call, or at the
 * first instruction of its function. */
#include "runtimes/go/go_tasks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/go.h"
#include "bpf/unwind_rule.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

/* src/runtime/runtime2.go: states of a goroutine, and the bit of a garbage collector that reads its
 * stack meanwhile. */
enum { G_RUNNABLE = 1, G_WAITING = 4, G_PREEMPTED = 9 };
#define G_SCAN 0x1000

#define G_STACK_LO 0
#define G_STACK_HI 8
#define G_SCHED_SP 56
#define G_SCHED_PC 64

#define GOROUTINES_MAX (1U << 24)
#define LISTED_AT_ONCE 1024
#define TRIES	       3
#define UNKNOWN_REG    0xdead000000000000ULL /* no valid address */

struct list {
	uint64_t at, n, cap;
};

/* Reads the list until two results are equal: it is three words, which grow one after another. */
static int read_list(const struct go_process *process, struct list *ret)
{
	uint64_t at = process->bias + process->layout.goroutines;
	struct list before = {};

	if (!process->layout.goroutines)
		return -ENOTSUP;
	for (int i = 0; i <= TRIES; i++) {
		if (!procfs__read_memory(process->pid, at, ret, sizeof(*ret)))
			return -EFAULT;
		if (i && !memcmp(&before, ret, sizeof(before)))
			break;
		before = *ret;
	}
	return ret->n <= ret->cap && ret->n <= GOROUTINES_MAX && ret->at % 8 == 0 ? 0 : -EFAULT;
}

/* --- one goroutine --- */

struct goroutine {
	uint8_t bytes[GO_GOROUTINE_READ];
};

static uint64_t word_at(const struct goroutine *goroutine, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, goroutine->bytes + offset, sizeof(word));
	return word;
}

static uint32_t status_of(const struct go_process *process, const struct goroutine *goroutine)
{
	return (uint32_t)word_at(goroutine, process->layout.status);
}

static size_t bytes_of(const struct go_process *process)
{
	return process->layout.reason + sizeof(uint64_t);
}

static bool read_goroutine(const struct go_process *process, uint64_t at, struct goroutine *ret)
{
	return at && at % 8 == 0 && procfs__read_memory(process->pid, at, ret, bytes_of(process));
}

static bool is_plausible(const struct go_process *process, const struct goroutine *goroutine)
{
	uint64_t sp = word_at(goroutine, G_SCHED_SP);

	return sp % 8 == 0 && sp >= word_at(goroutine, G_STACK_LO) &&
	       sp < word_at(goroutine, G_STACK_HI) && word_at(goroutine, process->layout.id) &&
	       word_at(goroutine, G_SCHED_PC);
}

/* Returns the state in words if the goroutine is on no thread; else NULL. */
static const char *state_of(const struct go_process *process, const struct goroutine *goroutine)
{
	if (word_at(goroutine, GO_G_M))
		return NULL;
	switch (status_of(process, goroutine) & ~G_SCAN) {
	case G_RUNNABLE:
		return "runnable";
	case G_WAITING:
		return "waits";
	case G_PREEMPTED:
		return "preempted";
	default:
		return NULL;
	}
}

bool go_tasks__is_parked(const struct go_process *process)
{
	struct goroutine now;

	return read_goroutine(process, process->at, &now) && !word_at(&now, GO_G_M) &&
	       (status_of(process, &now) & ~G_SCAN) == process->status &&
	       word_at(&now, G_SCHED_SP) == process->sp && word_at(&now, G_SCHED_PC) == process->pc;
}

/* --- reasons --- */

static void read_reason(const struct go_process *process, const uint64_t string[2],
			char ret[GO_REASON_BYTES])
{
	size_t n = string[1];

	if (!n || n >= GO_REASON_BYTES || !procfs__read_memory(process->pid, string[0], ret, n)) {
		ret[0] = '\0';
		return;
	}
	ret[n] = '\0';
	procfs__make_printable(ret, n);
}

static void read_reasons(struct go_process *process)
{
	uint64_t strings[GO_REASONS_MAX][2];
	size_t n = process->layout.n_reasons;

	process->has_reasons = true;
	if (!process->layout.reasons ||
	    !procfs__read_memory(process->pid, process->bias + process->layout.reasons, strings,
				 n * sizeof(strings[0])))
		return;
	for (size_t i = 0; i < n; i++)
		read_reason(process, strings[i], process->reasons[i]);
}

static const char *reason_of(struct go_process *process, const struct goroutine *goroutine)
{
	const char *text;

	if (!process->has_reasons)
		read_reasons(process);
	text = process->reasons[goroutine->bytes[process->layout.reason]];
	return text[0] ? text : NULL;
}

/* --- calls --- */

/* Passes the goroutine to @on_task. The pc of one that has not run yet is the first instruction of
 * its function. The caller takes it as a return address, so the next one stands for it. */
static int offer(struct go_process *process, uint64_t at, const struct goroutine *goroutine,
		 double stands_for, runtime_task_fn on_task, void *ctx)
{
	uint32_t status = status_of(process, goroutine) & ~G_SCAN;
	uint64_t since = word_at(goroutine, process->layout.since), now = now_ns();
	uint64_t regs[UNWIND_REGS];
	struct runtime_task task = {
		.name = "",
		.id = word_at(goroutine, process->layout.id),
		.regs = regs,
		.has_native_frames = true,
		.stands_for = stands_for,
	};

	for (int i = 0; i < UNWIND_REGS; i++)
		regs[i] = UNKNOWN_REG;
	process->at = at;
	process->status = status;
	process->sp = regs[UNWIND_REG_RSP] = word_at(goroutine, G_SCHED_SP);
	process->pc = regs[UNWIND_REG_PC] = word_at(goroutine, G_SCHED_PC);
	if (status == G_WAITING)
		task.reason = reason_of(process, goroutine);
	else
		task.state = state_of(process, goroutine);
	/* The collector that first sees the wait stores the end of the collection before, so that
	 * this is an upper limit (src/runtime/mgcmark.go). The clock of a core file is another
	 * one. */
	if (status == G_WAITING && since && since < now && !procfs__is_recorded())
		task.waited_ns = now - since;
	return on_task(ctx, &task);
}

int go_tasks__list(struct go_process *process, runtime_task_fn on_task, void *ctx,
		   size_t *ret_unread)
{
	uint64_t pointers[LISTED_AT_ONCE];
	struct goroutine goroutine;
	struct list list;
	int ret = read_list(process, &list);
	size_t n;

	*ret_unread = 0;
	for (uint64_t i = 0; !ret && i < list.n; i += n) {
		n = min_of(list.n - i, (uint64_t)LISTED_AT_ONCE);
		if (!procfs__read_memory(process->pid, list.at + 8 * i, pointers, 8 * n))
			return -EFAULT;
		for (size_t j = 0; !ret && j < n; j++) {
			if (!read_goroutine(process, pointers[j], &goroutine)) {
				++*ret_unread;
				continue;
			}
			if (!state_of(process, &goroutine))
				continue;
			if (is_plausible(process, &goroutine))
				ret = offer(process, pointers[j], &goroutine, 0, on_task, ctx);
			else
				++*ret_unread;
		}
	}
	return ret;
}

/* xorshift64* */
static uint64_t random_below(struct go_process *process, uint64_t n)
{
	uint64_t x = process->seed ?: now_ns() | 1;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	process->seed = x;
	return (unsigned __int128)(x * 0x2545f4914f6cdd1dULL) * n >> 64;
}

/* Reads one entry of each of @most parts of the list, chosen at random. All parts have the same
 * size, so that each entry has the same chance, and the number of parked ones varies little. */
int go_tasks__sample(struct go_process *process, uint32_t most, runtime_task_fn on_task, void *ctx)
{
	struct goroutine goroutine;
	struct list list;
	uint64_t n, pointer, index;
	int ret = read_list(process, &list);

	n = ret ? 0 : min_of(list.n, (uint64_t)most);
	for (uint64_t i = 0; !ret && i < n; i++) {
		index = n == list.n ? i : (i * list.n + random_below(process, list.n)) / n;
		if (!procfs__read_memory(process->pid, list.at + 8 * index, &pointer, 8) ||
		    !read_goroutine(process, pointer, &goroutine))
			continue;
		if (!word_at(&goroutine, GO_G_M) &&
		    (status_of(process, &goroutine) & ~G_SCAN) == G_WAITING &&
		    is_plausible(process, &goroutine))
			ret = offer(process, pointer, &goroutine, (double)list.n / n, on_task, ctx);
	}
	return ret == -EFAULT ? 0 : ret;
}
