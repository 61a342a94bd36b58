// SPDX-License-Identifier: GPL-2.0-or-later
/* One thread. The way to read it depends on its state and on the privileges of braid:
 *
 *   waits         /proc shows its place in user space, and that it has not run meanwhile. The
 *                 callee-saved registers are unknown, which hardly ever matters: the functions
 *                 around a system call have saved them.
 *   waits, and    The kernel half reads them (dump_sampler.c). Without the privilege for that the
 *   registers     thread is stopped, if the program cannot notice the stop (restart.h); else the
 *   are needed    stack is cut.
 *   runs          The kernel half samples it. Without the privilege for that the thread is stopped,
 *                 after one more check: it may have begun to wait.
 *
 * A stop is invisible to a thread in user mode. In a system call it acts like a signal without a
 * handler, so that some calls return EINTR or a partial result. With the kernel half no thread is
 * ever stopped. Without it one gap is left: a thread may begin a call between the last check and
 * the stop. thread_stop.c repairs EINTR of such a call; a transfer that was cut short cannot be
 * repaired. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/target/restart.h"
#include "core/target/thread_stop.h"

/* --- conditions of a stop --- */

static bool is_writable(void *ctx, uint64_t address, size_t size)
{
	return thread_bases__can_write(ctx, address, size);
}

static bool may_stop(const struct dump *dump, const struct thread_now *now)
{
	const struct restart_wait wait = { .pid = dump->process->pid,
					   .tid = now->tid,
					   .call = now->call,
					   .args = now->args,
					   .is_writable = is_writable,
					   .ctx = dump->bases };

	if (dump->opts.nonblocking || dump->samples || now->state == 'D')
		return false;
	return restart__is_invisible(&wait);
}

/* --- one sample --- */

void dump__note(void *ctx, const void *data, size_t size)
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

/* Drops a rejected sample. Records of code objects stay, as they are sent only once. */
void dump__drop_samples(struct dump *dump)
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

#define READ_MAX 64 /* blocks of machine code that are read for one thread */

/* Removes and returns the first record that announces a deferred rule; NULL: there is none. */
static struct dump_record *take_later(struct dump *dump)
{
	struct dump_record **at = &dump->records, *record;

	while ((record = *at) && type_of(record) != REC_LATER)
		at = &record->next;
	if (!record)
		return NULL;
	*at = record->next;
	if (dump->end == &record->next)
		dump->end = at;
	return record;
}

/* Makes the deferred rule that cuts the sample. Returns 1 if the sample should be taken again, 0,
 * or a negative errno. */
static int read_code(struct dump *dump)
{
	struct dump_record *record =
		dump->sampled && dump->sample.stop == COUNT_RULE_LATER ? take_later(dump) : NULL;
	int ret;

	if (!record)
		return 0;
	ret = routing__record(&dump->routing, record->data, record->size, NULL);
	free(record);
	return ret < 0 ? ret : 1;
}

static int take_sample(struct dump *dump, const struct host_thread *thread,
		       const struct memory *memory)
{
	dump__drop_samples(dump);
	dump->sampled = false;
	dump->record_ret = 0;
	memory__forget(dump->cached);
	host.memory = memory;
	host.on_record = dump__note;
	host.record_ctx = dump;
	host_programs__sample(thread, now_ns());
	host.on_record = NULL;
	host.memory = NULL;
	return dump->record_ret;
}

int dump__sample(struct dump *dump, const struct host_thread *thread, const struct memory *memory)
{
	int ret, again = 0;

	for (int i = 0; i < READ_MAX; i++) {
		ret = take_sample(dump, thread, memory);
		again = ret ? ret : read_code(dump);
		if (again <= 0)
			break;
	}
	return min_of(again, 0);
}

bool dump__is_whole(const struct dump *dump)
{
	return dump->sampled && dump->sample.flags & SAMPLE_COMPLETE &&
	       !(dump->sample.flags & SAMPLE_RUNTIME_BROKEN);
}

/* --- without a stop --- */

static const uint64_t no_kernel_frames[1];

/* Returns the thread as /proc shows it. */
struct host_thread dump__as_it_stands(const struct dump *dump, const struct thread_now *now)
{
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = now->tid,
				      .name = now->name,
				      .syscall = now->call,
				      .own_ids = dump->own_ids,
				      .start_stack = dump->start_stack,
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

/* Returns the name of the lock of the innermost runtime that has one, or NULL. */
static const char *lock_name(const struct dump *dump)
{
	for (int i = 0; i < dump->sample.n_sections; i++)
		for (int r = 0; dump->opts.runtimes[r]; r++)
			if (runtime__slot(dump->opts.runtimes[r]) ==
				    dump->sample.sections[i].walker &&
			    dump->opts.runtimes[r]->walker->lock)
				return dump->opts.runtimes[r]->walker->lock;
	return NULL;
}

struct rec_sample *dump__last_sample(const struct dump *dump)
{
	for (struct dump_record *at = dump->records; at; at = at->next)
		if (type_of(at) == REC_SAMPLE)
			return (struct rec_sample *)at->data;
	return NULL;
}

/* Finds the range of the stack, from about the innermost frame's stack pointer to the outermost
 * frame's. */
static void find_stack(const struct dump *dump, struct dump_thread *ret)
{
	const struct rec_sample *rec = dump__last_sample(dump);
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
	/* Walkers report no address for interpreters' locks; `object` is then the futex's address.
	 */
	ret->lock_address = ret->lock == LOCK_WAITED && dump->sample.object != ret->args[0]
				    ? dump->sample.object
				    : 0;
	ret->lock_name = ret->lock ? lock_name(dump) : NULL;
	dump__see_mutex(dump, ret);
}

static void begin(const struct thread_now *now, struct dump_thread *ret)
{
	memcpy(ret->name, now->name, sizeof(now->name));
	ret->state = now->state;
	ret->call = now->call;
}

void dump__note_look(struct dump_thread *thread, const struct thread_now *now,
		     const struct host_thread *from)
{
	thread->look = *now;
	memcpy(thread->regs, from->regs, sizeof(thread->regs));
}

/* Drops the locks of a thread that ran during the reading, as they may mix several instants. */
static void forget_locks(struct dump_thread *ret)
{
	ret->lock = LOCK_UNKNOWN;
	ret->lock_name = NULL;
	ret->lock_address = 0;
	ret->holder = 0;
}

/* Reads a waiting thread. *@ret_unchanged: it did not run meanwhile, so the data is valid. */
static int take_waiting_once(struct dump *dump, const struct thread_now *now,
			     struct dump_thread *ret, bool *ret_unchanged)
{
	struct host_thread thread = dump__as_it_stands(dump, now);
	char kernel[THREAD_KERNEL_BYTES];
	struct thread_now after;
	int code;

	dump_thread__clear(ret);
	thread__kernel_stack(dump->process->pid, now->tid, kernel);
	ret->waited_ns = thread__waited_ns(dump->process->pid, now);
	code = dump__sample(dump, &thread, dump->cached);
	if (code)
		return code;
	memcpy(ret->args, now->args, sizeof(ret->args));
	ret->fs_base = thread.fs_base;
	dump__describe(dump, ret);
	*ret_unchanged = thread__read(dump->process->pid, now->tid, &after) &&
			 thread__has_not_run(now, &after);
	if (!*ret_unchanged) {
		forget_locks(ret);
		return 0;
	}
	ret->way = DUMP_UNMOVED;
	dump__note_look(ret, now, &thread);
	return dump_thread__add_kernel(ret, kernel);
}

int dump__take_again(struct dump *dump, const struct dump_thread *thread,
		     const struct thread_now *now, struct dump_thread *ret)
{
	struct host_thread from = dump__as_it_stands(dump, now);
	int code;

	*ret = (struct dump_thread) { .tid = thread->tid };
	begin(now, ret);
	if (thread__has_not_run(&thread->look, now)) {
		memcpy(from.regs, thread->regs, sizeof(from.regs));
		from.fs_base = thread->fs_base;
	}
	memcpy(ret->args, now->args, sizeof(ret->args));
	ret->fs_base = from.fs_base;
	code = dump__sample(dump, &from, dump->cached);
	dump__describe(dump, ret);
	dump__drop_samples(dump);
	dump__note_look(ret, now, &from);
	return code;
}

/* --- stopped threads --- */

static int read_stopped(struct dump *dump, const struct thread_now *now, struct dump_thread *ret)
{
	struct host_thread thread = dump__as_it_stands(dump, now);
	struct stopped_thread stopped;
	int code = thread__hold(now->tid, &stopped);

	if (code)
		return code;
	memcpy(thread.regs, stopped.regs, sizeof(thread.regs));
	thread.fs_base = stopped.fs_base;
	thread.syscall = stopped.call;
	if (stopped.call < 0)
		thread.kernel = NULL;
	code = stopped.compat ? -ENOTSUP : dump__sample(dump, &thread, dump->cached);
	thread__release(now->tid);
	ret->stopped_ns = now_ns() - stopped.since_ns;
	ret->fs_base = stopped.fs_base;
	ret->way = DUMP_STOPPED;
	if (code)
		return code;
	if (stopped.call >= 0) {
		ret->call = stopped.call;
		memcpy(ret->args, now->args, sizeof(ret->args));
		ret->args[0] = stopped.regs[UNWIND_REG_RDI];
		ret->args[1] = stopped.regs[UNWIND_REG_RSI];
		ret->args[2] = stopped.regs[UNWIND_REG_RDX];
	} else { /* the earlier data is stale */
		dump_thread__clear(ret);
		ret->state = 'R';
		ret->call = THREAD_NO_CALL;
		ret->waited_ns = 0;
	}
	dump__describe(dump, ret);
	return 0;
}

/* --- all threads --- */

void dump__keep_runtimes(struct dump *dump, uint32_t tid)
{
	struct rec_sample *rec = dump__last_sample(dump);
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
	const struct rec_sample *rec = dump__last_sample(dump);
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

/* Reads a running thread without a stop, until two results are equal. */
int dump__take_running(struct dump *dump, const struct thread_now *now, struct dump_thread *ret)
{
	struct host_thread thread = dump__as_it_stands(dump, now);
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
		/* Its place in native code is unknown. */
		dump__keep_runtimes(dump, now->tid);
		hash = hash_of(dump);
		ret->way = i && hash == before ? DUMP_TWICE : DUMP_RUNNING;
		if (ret->way == DUMP_TWICE)
			break;
		before = hash;
	}
	return code;
}

/* Stops the thread and reads it, if its state still permits a stop. */
static int take_stopped(struct dump *dump, struct thread_now *now, struct dump_thread *ret)
{
	int code;

	if (!thread__read(dump->process->pid, now->tid, now) || strchr("ZX", now->state))
		return -ESRCH;
	begin(now, ret);
	if (!may_stop(dump, now))
		return -EAGAIN;
	code = read_stopped(dump, now, ret);
	if (code == -ETIMEDOUT || code == -EPERM)
		ret->why_cut =
			code == -EPERM ? "another program traces it" : "it could not be stopped";
	return code == -ETIMEDOUT || code == -EPERM ? -EAGAIN : code;
}

#define TRIES 3

/* Reads a waiting thread, with several attempts. *@ret_unchanged: the data is valid, though its
 * stack may be incomplete. */
static int take_waiting(struct dump *dump, struct thread_now *now, struct dump_thread *ret,
			bool *ret_unchanged)
{
	int code = 0;

	for (int i = 0; !code && !*ret_unchanged && i < TRIES; i++) {
		if (!thread__read(dump->process->pid, ret->tid, now) || strchr("ZX", now->state))
			return -ESRCH;
		begin(now, ret);
		if (!now->off_cpu || !now->sp)
			return 0;
		code = take_waiting_once(dump, now, ret, ret_unchanged);
	}
	return code;
}

int dump__take(struct dump *dump, uint32_t tid, struct dump_thread *ret)
{
	struct thread_now now;
	bool unchanged = false;
	int code;

	*ret = (struct dump_thread) { .tid = tid };
	code = take_waiting(dump, &now, ret, &unchanged);
	if (code || (unchanged && dump__is_whole(dump)))
		return code;
	if (dump->samples) {
		ret->pending = true;
		dump_thread__clear(ret);
		dump__drop_samples(dump);
		return 0;
	}
	if (unchanged && !may_stop(dump, &now))
		return 0;
	if (!dump->opts.nonblocking) {
		code = take_stopped(dump, &now, ret);
		if (code != -EAGAIN)
			return code;
		unchanged = false;
		code = now.off_cpu ? take_waiting(dump, &now, ret, &unchanged) : 0;
		if (code)
			return code;
	}
	return unchanged ? 0 : dump__take_running(dump, &now, ret);
}
