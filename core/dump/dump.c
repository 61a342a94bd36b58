// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bpf/host/programs.h"
#include "core/base/util.h"
#include "core/target/access.h"
#include "core/target/thread_stop.h"

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct dump *dump = ctx;
	struct dump_process *result = dump->result;
	struct dump_source *to;

	(void)process;
	if (array__reserve(&result->sources, &result->cap_sources, result->n_sources + 1,
			   sizeof(*result->sources)))
		return;
	to = &result->sources[result->n_sources++];
	*to = (struct dump_source) { .runtime = runtime };
	snprintf(to->version, sizeof(to->version), "%s", version);
	snprintf(to->source, sizeof(to->source), "%s", source);
	snprintf(to->reason, sizeof(to->reason), "%s", reason);
}

static int open_runtimes(struct dump *dump, struct err *err)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	int code = 0;

	for (int i = 0; !code && runtimes[i]; i++)
		if (dump->opts.enabled & 1U << i && runtimes[i]->open)
			code = runtimes[i]->open(NULL, &dump->sessions[i], err);
	return code;
}

static int open_images(struct dump *dump)
{
	struct images_opts images = { .files_fd = -1,
				      .runtimes = dump->opts.runtimes,
				      .enabled = dump->opts.enabled };

	dump->table_arena = table_arena__new(kernel_half__map_fd(dump->half, "chunks"), 0);
	dump->cache_dir = unwind_table__default_dir();
	images.table_arena = dump->table_arena;
	images.cache_dir = dump->cache_dir;
	return dump->table_arena ? images__new(&images, &dump->images) : -ENOMEM;
}

int dump__new(const struct dump_opts *opts, struct dump **ret, struct err *err)
{
	struct dump *dump = calloc(1, sizeof(*dump));
	struct tracker_opts tracker = { .runtimes = opts->runtimes,
					.enabled = opts->enabled,
					.source = RUNTIME_SOURCE_WALK,
					.on_source = on_source };
	int code = -ENOMEM;

	if (!dump)
		return err__set(err, -ENOMEM, "out of memory");
	dump->opts = *opts;
	dump->end = &dump->records;
	code = kernel_half__on_host(&dump->half);
	if (!code) {
		host_programs__look_at_locks();
		code = open_runtimes(dump, err);
	}
	if (!code)
		code = open_images(dump);
	tracker.half = dump->half;
	tracker.images = dump->images;
	tracker.sessions = dump->sessions;
	tracker.ctx = dump;
	if (!code)
		code = tracker__new(&tracker, &dump->tracker);
	if (code) {
		dump__free(dump);
		return err->text[0] ? code
				    : err__set(err, code, "cannot begin: %s", strerror(-code));
	}
	*ret = dump;
	return 0;
}

void dump__free(struct dump *dump)
{
	if (!dump)
		return;
	capture__free(dump->capture);
	live_profile__free(dump->live);
	tracker__free(dump->tracker);
	images__free(dump->images);
	table_arena__free(dump->table_arena);
	for (int i = 0; dump->opts.runtimes[i]; i++)
		if (dump->sessions[i])
			dump->opts.runtimes[i]->close(dump->sessions[i]);
	kernel_half__free(dump->half);
	free(dump->cache_dir);
	free(dump);
}

/* --- one process --- */

static int open_capture(struct dump *dump, struct err *err)
{
	static const struct capture_event event = { { "dump", SINK_UNIT_SAMPLES }, .timed = false };
	const struct runtime *const *runtimes = dump->opts.runtimes;
	int code = live_profile__new(SIZE_MAX, &dump->live);

	for (int i = 0; !code && runtimes[i]; i++)
		code = live_profile__kind(dump->live, KIND_RUNTIME + i, runtimes[i]->name,
					  runtimes[i]->suffix);
	if (code)
		return err__set(err, code, "out of memory");
	code = capture__new(&(struct capture_opts) { .sink = live_profile__sink(dump->live),
						     .events = &event,
						     .n_events = 1,
						     .tracker = dump->tracker,
						     .images = dump->images,
						     .runtimes = runtimes,
						     .sessions = dump->sessions,
						     .kallsyms_path = "/dev/null",
						     .enabled = dump->opts.enabled },
			    &dump->capture, err);
	dump->routing = (struct routing) { dump->tracker, dump->capture };
	return code;
}

static bool has_own_ids(uint32_t pid)
{
	struct stat ours, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", procfs__living(pid));
	return !stat("/proc/self/ns/pid", &ours) && !stat(path, &its) && ours.st_ino == its.st_ino;
}

int dump__open_process(struct dump *dump, uint32_t pid, const struct memory *memory,
		       struct err *err)
{
	int code = tracker__add(dump->tracker, pid, false, &dump->process, err);

	if (!code && !memory)
		code = process__check_access(&dump->process->info, err);
	if (code)
		return code;
	pid = dump->process->pid;
	dump->result->info = dump->process->info;
	dump->samples = !memory && !dump->opts.nonblocking && !dump->unprivileged;
	dump->own_ids = memory || has_own_ids(pid);
	dump->start_stack = procfs__start_stack(pid);
	if (!memory && memory__of_process(pid, &dump->own_memory))
		return err__set(err, -ENOMEM, "out of memory");
	dump->memory = memory ? memory : dump->own_memory;
	if (tracker__refresh(dump->tracker, dump->process) ||
	    memory__cached(dump->memory, &dump->cached) ||
	    (!memory && thread_bases__new(pid, dump->memory, &dump->bases)))
		return err__set(err, -ENOMEM, "out of memory");
	return open_capture(dump, err);
}

void dump__close_process(struct dump *dump)
{
	struct err ignored = {};

	dump__route(dump, &ignored);
	capture__free(dump->capture);
	live_profile__free(dump->live);
	thread_bases__free(dump->bases);
	memory__free(dump->cached);
	memory__free(dump->own_memory);
	dump->capture = NULL;
	dump->live = NULL;
	dump->bases = NULL;
	dump->cached = dump->own_memory = NULL;
	dump->memory = NULL;
	if (dump->process)
		tracker__forget(dump->tracker, dump->process);
	dump->process = NULL;
	dump->result = NULL;
}

int dump__take_thread(struct dump *dump, struct dump_thread *thread, struct err *err)
{
	uint32_t tid = thread->tid;
	int code = dump__take(dump, tid, thread);

	if (code == -ESRCH) { /* it ended after the list was read */
		thread->tid = 0;
		return 0;
	}
	if (code == -ENOTSUP)
		return err__set(
			err, code,
			"cannot dump PID %u: it executes 32-bit code, which braid cannot unwind",
			dump->process->pid);
	if (code)
		return err__set(err, code, "cannot read thread %u: %s", tid, strerror(-code));
	return dump__route(dump, err);
}

static int take_threads(struct dump *dump, struct err *err)
{
	struct dump_process *result = dump->result;
	uint32_t *tids = NULL;
	size_t n = 0, retained = 0;
	int code = threads__list(dump->process->pid, &tids, &n);

	if (code)
		return err__set(err, code, "cannot list the threads of PID %u: %s",
				dump->process->pid, strerror(-code));
	result->threads = calloc(n + 1, sizeof(*result->threads));
	if (!result->threads)
		code = err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !code && i < n; i++)
		result->threads[i].tid = tids[i];
	result->n_threads = code ? 0 : n;
	for (size_t i = 0; !code && i < n; i++)
		code = dump__take_thread(dump, &result->threads[i], err);
	if (!code)
		code = dump__take_pending(dump, err);
	threads__let_go();
	for (size_t i = 0; i < result->n_threads; i++)
		if (result->threads[i].tid)
			result->threads[retained++] = result->threads[i];
	result->n_threads = retained;
	free(tids);
	return code;
}

int dump__finish_process(struct dump *dump, struct err *err)
{
	struct dump_process *result = dump->result;
	int code = capture__name_frames(dump->capture, true, err);

	if (!code)
		code = capture__fetch_names(dump->capture, err);
	if (!code)
		code = dump__frames(dump, err);
	if (!code && dump__find_holders(dump, result))
		code = err__set(err, -ENOMEM, "out of memory");
	dump__find_names(dump, result);
	if (!code && dump__find_deadlocks(dump, result))
		code = err__set(err, -ENOMEM, "out of memory");
	dump__find_idle(dump, result);
	return code;
}

int dump__process(struct dump *dump, uint32_t pid, struct dump_process *ret, struct err *err)
{
	int code;

	*ret = (struct dump_process) {};
	dump->result = ret;
	code = dump__open_process(dump, pid, NULL, err);
	if (!code)
		code = take_threads(dump, err);
	if (!code)
		code = dump__take_tasks(dump, err);
	if (!code)
		code = dump__finish_process(dump, err);
	dump__close_process(dump);
	if (code)
		dump_process__done(ret);
	return code;
}

static void free_threads(struct dump_thread *threads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dump_thread__clear(&threads[i]);
		free(threads[i].frames);
		free(threads[i].alike);
	}
	free(threads);
}

void dump_process__done(struct dump_process *process)
{
	free_threads(process->threads, process->n_threads);
	free_threads(process->tasks, process->n_tasks);
	free(process->sources);
	*process = (struct dump_process) {};
}
