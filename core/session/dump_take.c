// SPDX-License-Identifier: GPL-2.0-or-later
/* One thread. What waits in the kernel is not stopped: its stack does not change, /proc tells where
 * it is in user space, and a stop would end some waits (epoll_wait returns EINTR to a program that
 * may not expect it). That leaves its callee-saved registers unknown, which hardly ever matters:
 * the functions around a system call have saved them. Where it does matter, and for what runs, the
 * thread is stopped for as long as its stack is walked. */
#include "core/session/dump_state.h"

#include <asm/unistd.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/target/thread_stop.h"

/* Those that return EINTR after a stop (signal(7), "Interruption of system calls ... by stop
 * signals"): a thread in them is not stopped. */
static bool must_not_stop(int call)
{
	static const short calls[] = { __NR_epoll_wait,	     __NR_epoll_pwait,
				       __NR_epoll_pwait2,    __NR_semop,
				       __NR_semtimedop,	     __NR_io_getevents,
				       __NR_io_pgetevents,   __NR_io_uring_enter,
				       __NR_rt_sigtimedwait, __NR_futex_waitv };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == call)
			return true;
	return false;
}

/* --- one sample --- */

static void on_record(void *ctx, const void *data, size_t size)
{
	struct dump *dump = ctx;
	const uint32_t *type = data;
	struct dump_record *record = malloc(sizeof(*record) + size);

	if (!record) {
		dump->record_ret = -ENOMEM;
		return;
	}
	if (*type == REC_SAMPLE) {
		memcpy(&dump->sample, data, sizeof(dump->sample));
		dump->sampled = true;
	}
	record->next = NULL;
	record->size = size;
	memcpy(record->data, data, size);
	*dump->end = record;
	dump->end = &record->next;
}

static uint32_t type_of(const struct dump_record *record)
{
	return (uint32_t)record->data[0]; /* little-endian: the first half of the word */
}

/* A sample that was not good enough; what came with it of code objects stays, as they are told of
 * once. */
static void drop_samples(struct dump *dump)
{
	struct dump_record **at = &dump->records, *record;

	while ((record = *at)) {
		if (type_of(record) == REC_SAMPLE || type_of(record) == REC_STACK) {
			*at = record->next;
			free(record);
		} else {
			at = &record->next;
		}
	}
	dump->end = at;
}

int dump__route(struct dump *dump, struct err *err)
{
	struct dump_record *record;
	int ret = 0;

	while ((record = dump->records)) {
		dump->records = record->next;
		if (!ret)
			ret = routing__record(&dump->routing, record->data, record->size, err);
		free(record);
	}
	dump->end = &dump->records;
	return ret;
}

int dump__sample(struct dump *dump, const struct host_thread *thread, const struct memory *memory)
{
	drop_samples(dump);
	dump->sampled = false;
	dump->record_ret = 0;
	memory__forget(dump->cached);
	host.memory = memory;
	host.on_record = on_record;
	host.record_ctx = dump;
	host_programs__sample(thread, now_ns());
	host.on_record = NULL;
	host.memory = NULL;
	return dump->record_ret;
}

static bool is_whole(const struct dump *dump)
{
	return dump->sampled && dump->sample.flags & SAMPLE_COMPLETE &&
	       !(dump->sample.flags & SAMPLE_RUNTIME_BROKEN);
}

/* --- as it stands --- */

static const uint64_t no_kernel_frames[1];

/* As /proc tells of it. */
static struct host_thread as_it_stands(const struct dump *dump, const struct thread_now *now)
{
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = now->tid,
				      .name = now->name,
				      .syscall = now->call,
				      .own_ids = dump->own_ids,
				      .kernel = no_kernel_frames };

	for (int i = 0; i < UNWIND_REGS; i++)
		thread.regs[i] = UNKNOWN_REG;
	thread.regs[UNWIND_REG_RDI] = now->args[0];
	thread.regs[UNWIND_REG_RSI] = now->args[1];
	thread.regs[UNWIND_REG_RSP] = now->sp;
	thread.regs[UNWIND_REG_PC] = now->pc;
	if (dump->bases && dump->process->space && dump->process->space->walkers)
		thread.fs_base = thread_bases__find(dump->bases, now->inner_tid, now->sp);
	return thread;
}

/* What the walker of the innermost runtime with a lock calls it. */
static const char *lock_name(const struct dump *dump)
{
	for (int i = 0; i < dump->sample.n_sections; i++)
		for (int r = 0; dump->opts.runtimes[r]; r++)
			if (dump->opts.runtimes[r]->walker == dump->sample.sections[i].walker &&
			    dump->opts.runtimes[r]->lock)
				return dump->opts.runtimes[r]->lock;
	return NULL;
}

/* The last sample's record; NULL: there is none. */
static struct rec_sample *last_sample(const struct dump *dump)
{
	for (struct dump_record *at = dump->records; at; at = at->next)
		if (type_of(at) == REC_SAMPLE)
			return (struct rec_sample *)at->data;
	return NULL;
}

/* From the innermost frame's stack pointer, or near it, to the outermost frame's. */
static void find_stack(const struct dump *dump, struct dump_thread *ret)
{
	const struct rec_sample *rec = last_sample(dump);
	const uint64_t *pairs = (const uint64_t *)(rec + 1) + (rec ? rec->n_kernel : 0);

	if (!rec || !rec->n_native)
		return;
	ret->stack_start = pairs[1];
	for (int i = 0; i < rec->n_native; i++) /* the outermost may have none */
		ret->stack_end = max_of(ret->stack_end, pairs[2 * i + 1]);
}

void dump__describe(const struct dump *dump, struct dump_thread *ret)
{
	ret->complete = dump->sampled && dump->sample.flags & SAMPLE_COMPLETE;
	if (dump->sampled)
		find_stack(dump, ret);
	ret->lock = dump->sampled ? dump->sample.condition.lock : LOCK_UNKNOWN;
	ret->holder = ret->lock == LOCK_WAITED ? dump->sample.peer : 0;
	/* Of interpreters' locks the walkers tell no address: that is the futex's. */
	ret->lock_address = ret->lock == LOCK_WAITED && dump->sample.object != ret->args[0]
				    ? dump->sample.object
				    : 0;
	ret->lock_name = ret->lock ? lock_name(dump) : NULL;
	dump__see_mutex(dump, ret);
}

/* `ret_still`: it did not run meanwhile, so that this is true. */
static int take_still(struct dump *dump, const struct thread_now *now, struct dump_thread *ret,
		      bool *ret_still)
{
	struct host_thread thread = as_it_stands(dump, now);
	char kernel[THREAD_KERNEL_BYTES];
	struct thread_now after;
	int code;

	thread__kernel_stack(dump->process->pid, now->tid, kernel);
	ret->waited_ns = thread__waited_ns(dump->process->pid, now);
	code = dump__sample(dump, &thread, dump->cached);
	if (code)
		return code;
	memcpy(ret->args, now->args, sizeof(ret->args));
	ret->fs_base = thread.fs_base;
	dump__describe(dump, ret);
	*ret_still = thread__read(dump->process->pid, now->tid, &after) &&
		     thread__stood_still(now, &after);
	if (!*ret_still)
		return 0;
	ret->way = DUMP_STILL;
	return dump_thread__add_kernel(ret, kernel);
}

/* --- stopped --- */

static int take_held(struct dump *dump, const struct thread_now *now, struct dump_thread *ret)
{
	struct host_thread thread = as_it_stands(dump, now);
	struct thread_held held;
	int code = thread__hold(now->tid, &held);

	if (code)
		return code;
	memcpy(thread.regs, held.regs, sizeof(thread.regs));
	thread.fs_base = held.fs_base;
	thread.syscall = held.call;
	if (held.call < 0)
		thread.kernel = NULL;
	code = held.compat ? -ENOTSUP : dump__sample(dump, &thread, dump->cached);
	thread__release(now->tid);
	ret->held_ns = now_ns() - held.since_ns;
	ret->fs_base = held.fs_base;
	ret->way = DUMP_STOPPED;
	if (code)
		return code;
	if (held.call >= 0) {
		ret->call = held.call;
		memcpy(ret->args, now->args, sizeof(ret->args));
		ret->args[0] = held.regs[UNWIND_REG_RDI];
		ret->args[1] = held.regs[UNWIND_REG_RSI];
		ret->args[2] = held.regs[UNWIND_REG_RDX];
	} else { /* what was read before is over */
		ret->state = 'R';
		ret->call = THREAD_NO_CALL;
		ret->waited_ns = 0;
	}
	dump__describe(dump, ret);
	return 0;
}

/* --- all of it --- */

void dump__keep_runtimes(struct dump *dump, uint32_t tid)
{
	struct rec_sample *rec = last_sample(dump);
	uint64_t *words = (uint64_t *)(rec + 1) + (rec ? rec->n_kernel : 0);
	size_t n = 0;

	if (!rec)
		return;
	for (int i = 0; i < rec->n_sections; i++)
		n += 2 * (size_t)rec->sections[i].n;
	memmove(words, words + 2 * (size_t)rec->n_native, n * sizeof(*words));
	rec->n_native = 0;
	rec->tid = tid;
	rec->flags &= ~(SAMPLE_COMPLETE | SAMPLE_HAS_STACK);
	dump->sample = *rec;
}

static uint64_t hash_of(const struct dump *dump)
{
	const struct rec_sample *rec = last_sample(dump);
	const uint64_t *words = (const uint64_t *)(rec + 1);
	uint64_t hash = 1469598103934665603ULL;
	size_t n = 0;

	for (int i = 0; rec && i < rec->n_sections; i++)
		n += 2 * (size_t)rec->sections[i].n;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ words[rec->n_kernel + i]) * 1099511628211ULL;
	return hash ^ n;
}

#define READS_MAX 10

/* One that runs, and is not to be stopped: read until it comes out the same twice. */
static int take_running(struct dump *dump, const struct thread_now *now, struct dump_thread *ret)
{
	struct host_thread thread = as_it_stands(dump, now);
	uint64_t before = 0, hash;
	int code = 0;

	thread.kernel = NULL;
	ret->fs_base = thread.fs_base;
	if (now->off_cpu) {
		memcpy(ret->args, now->args, sizeof(ret->args));
		ret->way = DUMP_RUNNING;
		code = dump__sample(dump, &thread, dump->cached);
		dump__describe(dump, ret);
		return code;
	}
	thread.regs[UNWIND_REG_PC] = thread.regs[UNWIND_REG_RSP] = UNKNOWN_REG;
	for (int i = 0; !code && i < READS_MAX; i++) {
		code = dump__sample(dump, &thread, dump->cached);
		if (code)
			return code;
		/* Where it is in native code nobody knows. */
		dump__keep_runtimes(dump, now->tid);
		hash = hash_of(dump);
		ret->way = i && hash == before ? DUMP_TWICE : DUMP_RUNNING;
		if (ret->way == DUMP_TWICE)
			break;
		before = hash;
	}
	return code;
}

#define TRIES 3

int dump__take(struct dump *dump, uint32_t tid, struct dump_thread *ret)
{
	struct thread_now now;
	bool still = false, may_stop = false;
	int code;

	*ret = (struct dump_thread) { .tid = tid };
	for (int i = 0; !still && i < TRIES; i++) {
		if (!thread__read(dump->process->pid, tid, &now) || strchr("ZX", now.state))
			return -ESRCH;
		may_stop = !dump->opts.nonblocking && now.state != 'D' && !must_not_stop(now.call);
		memcpy(ret->name, now.name, sizeof(now.name));
		ret->state = now.state;
		ret->call = now.call;
		if (!now.off_cpu || !now.sp)
			break;
		code = take_still(dump, &now, ret, &still);
		if (code)
			return code;
		if (may_stop)
			break;
	}
	if (still && (is_whole(dump) || !may_stop))
		return 0;
	if (!may_stop)
		return take_running(dump, &now, ret);
	code = take_held(dump, &now, ret);
	if (code != -ETIMEDOUT && code != -EPERM)
		return code;
	ret->why_cut = code == -EPERM ? "another program traces it" : "it could not be stopped";
	return still ? 0 : take_running(dump, &now, ret);
}
