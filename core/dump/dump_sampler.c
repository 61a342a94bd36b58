// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that cannot be read from outside without a stop: running ones, and waiting ones whose
 * stack cannot be walked without the callee-saved registers. With the privilege to load the kernel
 * half, they need no stop. A session samples the process by the clock, at a high rate, until each
 * running thread has a sample. The registers of waiting threads come from an iterator over tasks.
 * Neither sends a signal or wakes a thread, so no system call ends early. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/record/parts.h"

#define FREQUENCY_HZ 997
#define WAIT_US	     2000

/* A running thread gets a CPU within some milliseconds, unless the machine is overloaded. */
#define SAMPLER_NS (2 * NSEC_PER_SEC)

/* Truncated stacks of a thread that are rejected, as the next one may be complete. */
#define CUT_MAX 8

struct sampler {
	struct dump *dump;
	struct session *session;
	struct live_profile *live;
	struct waiting_lister *lister; /* NULL: not needed yet */
	struct waiting_thread *listed; /* threads of this round; NULL: not needed yet */
	size_t n_listed;
	unsigned *n_cut; /* by index of the thread */
	int code;
};

/* --- running threads --- */

static struct dump_thread *find_pending(const struct dump *dump, uint32_t tid)
{
	for (size_t i = 0; i < dump->result->n_threads; i++) {
		struct dump_thread *thread = &dump->result->threads[i];

		if (thread->tid == tid && thread->pending)
			return thread;
	}
	return NULL;
}

/* Returns true if the sample is accepted for the thread. */
static bool take_sample(struct sampler *sampler, struct dump_thread *thread,
			const struct rec_sample *sample, size_t size)
{
	struct dump *dump = sampler->dump;
	unsigned *n_cut = &sampler->n_cut[thread - dump->result->threads];

	dump__drop_samples(dump);
	dump__note(dump, sample, size);
	if (!dump__is_whole(dump) && (*n_cut)++ < CUT_MAX)
		return false;
	thread->pending = false;
	thread->way = DUMP_SAMPLED;
	thread->state = 'R';
	thread->call = sample->condition.syscall >= 0 ? sample->condition.syscall : THREAD_NO_CALL;
	thread->waited_ns = 0;
	memset(thread->args, 0, sizeof(thread->args));
	thread->args[0] = sample->object;
	dump__describe(dump, thread);
	return true;
}

/* Accepts one sample of each pending thread, and all records that are not samples. */
static bool filter(void *ctx, const void *data, size_t size)
{
	struct sampler *sampler = ctx;
	const struct rec_sample *sample = data;
	struct dump_thread *thread;

	if (size < sizeof(*sample) || sample->type != REC_SAMPLE)
		return true;
	thread = sample->tgid == sampler->dump->process->pid
			 ? find_pending(sampler->dump, sample->tid)
			 : NULL;
	return thread && take_sample(sampler, thread, sample, size);
}

/* --- waiting threads --- */

static int list(struct sampler *sampler, struct err *err)
{
	int code = 0;

	if (sampler->listed)
		return 0;
	if (!sampler->lister)
		code = waiting_lister__new(sampler->session->half, &sampler->lister, err);
	if (!code)
		code = waiting_lister__list(sampler->lister, &sampler->listed, &sampler->n_listed,
					    err);
	return code;
}

static const struct waiting_thread *find_listed(const struct sampler *sampler, uint32_t tid)
{
	for (size_t i = 0; i < sampler->n_listed; i++)
		if (sampler->listed[i].tid == tid)
			return &sampler->listed[i];
	return NULL;
}

/* Reads the thread with its own registers, which are valid if it has not run since @now was read.
 */
static int take_listed(struct sampler *sampler, const struct thread_now *now,
		       struct dump_thread *thread)
{
	const struct waiting_thread *listed = find_listed(sampler, now->tid);
	struct dump *dump = sampler->dump;
	struct host_thread host = dump__as_it_stands(dump, now);
	char kernel[THREAD_KERNEL_BYTES];
	struct thread_now after;
	int code;

	if (!listed || listed->runs || !listed->cs)
		return 0;
	memcpy(host.regs, listed->regs, sizeof(host.regs));
	host.fs_base = listed->fs_base;
	thread__kernel_stack(dump->process->pid, now->tid, kernel);
	thread->waited_ns = thread__waited_ns(dump->process->pid, now);
	code = dump__sample(dump, &host, dump->cached);
	if (code || !thread__read(dump->process->pid, now->tid, &after) ||
	    !thread__has_not_run(now, &after))
		return code;
	thread->pending = false;
	thread->way = DUMP_UNMOVED;
	thread->state = now->state;
	thread->call = now->call;
	memcpy(thread->args, now->args, sizeof(thread->args));
	thread->fs_base = listed->fs_base;
	dump__describe(dump, thread);
	dump__note_look(thread, now, &host);
	return dump_thread__add_kernel(thread, kernel);
}

static int look_at(struct sampler *sampler, struct dump_thread *thread, struct err *err)
{
	struct dump *dump = sampler->dump;
	struct thread_now now;
	int code = 0;

	if (!thread__read(dump->process->pid, thread->tid, &now) || strchr("ZX", now.state)) {
		thread->tid = 0; /* it has ended */
		thread->pending = false;
		return 0;
	}
	if (!now.off_cpu || !now.sp || now.state == 'R')
		return 0;
	code = list(sampler, err);
	if (!code)
		code = take_listed(sampler, &now, thread);
	if (code)
		return err->text[0] ? code : err__set(err, code, "out of memory");
	if (thread->pending)
		dump__drop_samples(dump);
	return dump__route(dump, err);
}

/* --- all threads --- */

static int open_sampler(struct sampler *sampler, struct err *err)
{
	const struct dump *dump = sampler->dump;
	struct session_opts opts = { .runtimes = dump->opts.runtimes,
				     .enabled = dump->opts.enabled,
				     .pids = &dump->process->pid,
				     .n_pids = 1,
				     .no_children = true,
				     .frequency_hz = FREQUENCY_HZ,
				     .source = RUNTIME_SOURCE_WALK,
				     .filter = filter,
				     .ctx = sampler };
	int code;

	sampler->n_cut = calloc(dump->result->n_threads + 1, sizeof(*sampler->n_cut));
	code = sampler->n_cut ? live_profile__new(SIZE_MAX, &sampler->live) : -ENOMEM;
	opts.live = sampler->live;
	return code ? err__set(err, code, "out of memory")
		    : session__open(&opts, &sampler->session, err);
}

static size_t count_pending(const struct dump *dump)
{
	size_t n = 0;

	for (size_t i = 0; i < dump->result->n_threads; i++)
		n += dump->result->threads[i].pending;
	return n;
}

static int run(struct sampler *sampler, struct err *err)
{
	struct dump_process *result = sampler->dump->result;
	uint64_t end_ns = now_ns() + SAMPLER_NS;
	int code = 0;

	while (!code && count_pending(sampler->dump) && now_ns() < end_ns &&
	       !session__has_signal(sampler->session)) {
		code = session__consume(sampler->session, err);
		dump__drop_samples(sampler->dump);
		for (size_t i = 0; !code && i < result->n_threads; i++)
			if (result->threads[i].pending)
				code = look_at(sampler, &result->threads[i], err);
		free(sampler->listed);
		sampler->listed = NULL;
		if (count_pending(sampler->dump))
			usleep(WAIT_US);
	}
	return code;
}

/* Reads the remaining threads from memory alone. */
static int take_rest(struct dump *dump, struct err *err)
{
	struct dump_process *result = dump->result;
	struct thread_now now;
	int code = 0;

	for (size_t i = 0; !code && i < result->n_threads; i++) {
		struct dump_thread *thread = &result->threads[i];

		if (!thread->pending)
			continue;
		thread->pending = false;
		if (!thread__read(dump->process->pid, thread->tid, &now)) {
			thread->tid = 0;
			continue;
		}
		thread->why_cut = "it did not run in time";
		code = dump__take_running(dump, &now, thread);
		code = code ? err__set(err, code, "out of memory") : dump__route(dump, err);
	}
	return code;
}

static int take_without(struct dump *dump, struct err *err)
{
	struct dump_process *result = dump->result;
	int code = 0;

	dump->unprivileged = true;
	dump->samples = false;
	for (size_t i = 0; !code && i < result->n_threads; i++)
		if (result->threads[i].pending)
			code = dump__take_thread(dump, &result->threads[i], err);
	return code;
}

int dump__take_pending(struct dump *dump, struct err *err)
{
	struct sampler sampler = { .dump = dump };
	struct err why = {};
	int code;

	if (!count_pending(dump))
		return 0;
	code = open_sampler(&sampler, &why);
	if (code) {
		code = code == -ENOMEM ? err__set(err, code, "out of memory")
				       : take_without(dump, err);
		goto out;
	}
	code = run(&sampler, err);
	kernel_half__sample_until(sampler.session->half, now_ns());
	if (!code)
		code = session__name_frames(sampler.session, err);
	if (!code)
		code = take_rest(dump, err);
	if (!code)
		code = session__fetch_names(sampler.session, err);
	if (!code)
		code = dump__add_frames(dump, sampler.live, false, err);
out:
	waiting_lister__free(sampler.lister);
	session__free(sampler.session);
	live_profile__free(sampler.live);
	free(sampler.n_cut);
	return code;
}
