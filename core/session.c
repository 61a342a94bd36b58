// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "core/fd_limit.h"
#include "core/util.h"

#define KALLSYMS "/proc/kallsyms"

static int on_ring_record(void *ctx, void *data, size_t size)
{
	struct session *session = ctx;
	const struct rec_sample *rec = data;
	int code = capture__record(session->capture, data, size, &session->ring_err);

	if (code)
		return code;
	session->behind = now_ns() >= session->consume_end_ns;
	if (session->behind || (size >= sizeof(*rec) && rec->type == REC_SAMPLE &&
				rec->time_ns > session->consume_until_ns))
		return -EAGAIN;
	return 0;
}

static void on_mmap(void *ctx, uint32_t pid)
{
	struct session *session = ctx;

	if ((session->n_remapped && session->remapped[session->n_remapped - 1] == pid) ||
	    !tracker__find(session->tracker, pid))
		return;
	if (array__reserve(&session->remapped, &session->cap_remapped, session->n_remapped + 1,
			   sizeof(*session->remapped)))
		return; /* it will be seen within the second */
	session->remapped[session->n_remapped++] = pid;
}

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct session *session = ctx;
	uint32_t id;
	int code;

	if (session->opts.on_source)
		session->opts.on_source(session->opts.ctx, process, runtime, version, source,
					reason);
	code = capture__process_id(session->capture, process, &id, &session->ring_err);
	if (!code)
		code = recording__source(session->recording, id, runtime->name, version, source,
					 reason, &session->ring_err);
	if (code && session->ring_code >= 0)
		session->ring_code = code;
}

static int open_runtimes(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct bpf_object *object = kernel_half__object(session->half);
	int i, code = 0;

	for (i = 0; !code && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->open)
			code = opts->runtimes[i]->open(object, &session->sessions[i], err);
	return code;
}

/* 50 KiB each. With `auto` probes are the exception. */
#define SHADOWS	     1024
#define SHADOWS_AUTO 64

static uint32_t shadows_wanted(enum runtime_source source)
{
	return source == RUNTIME_SOURCE_WALK || source == RUNTIME_SOURCE_MAP ? 0
	       : source == RUNTIME_SOURCE_AUTO				     ? SHADOWS_AUTO
									     : SHADOWS;
}

/* Everything that looks at targets, up to but not including the recording. */
static int open_inside(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct images_opts images = { .runtimes = opts->runtimes, .enabled = opts->enabled };
	struct tracker_opts tracker = { .runtimes = opts->runtimes,
					.sessions = session->sessions,
					.enabled = opts->enabled,
					.source = opts->source,
					.probes = shadows_wanted(opts->source) > 0,
					.on_source = on_source,
					.ctx = session };
	struct kernel_half_opts half = { .runtimes = opts->runtimes,
					 .enabled = opts->enabled,
					 .unwind = opts->unwind,
					 .frequency_hz = opts->frequency_hz,
					 .shadows = shadows_wanted(opts->source),
					 .triggered = opts->trigger != NULL,
					 .ring_bytes = opts->ring_bytes,
					 .calls = opts->source == RUNTIME_SOURCE_CALLS };
	int code = kernel_half__load(&half, &session->half, err);

	if (!code && half.shadows && opts->source != RUNTIME_SOURCE_AUTO)
		code = kernel_half__load_probes(session->half, err);
	if (!code)
		code = open_runtimes(session, err);
	if (code)
		return code;
	session->wordspace =
		wordspace__new(kernel_half__map_fd(session->half, "chunks"), opts->table_bytes);
	session->cache_dir = unwind_table__default_dir();
	/* Without samples nothing is unwound, and the tables of a large library take their time. */
	if (opts->unwind != UNWIND_MODE_FP && opts->source != RUNTIME_SOURCE_CALLS)
		images.wordspace = session->wordspace;
	images.cache_dir = session->cache_dir;
	images.files_fd = images.wordspace ? kernel_half__map_fd(session->half, "image_files") : -1;
	code = session->wordspace ? images__new(&images, &session->images) : -ENOMEM;
	if (!code)
		code = session__begin_limit(session, half.shadows, err);
	tracker.half = session->half;
	tracker.images = session->images;
	if (!code)
		code = tracker__new(&tracker, &session->tracker);
	return code ? err__set(err, code, "cannot begin: %s", strerror(-code)) : 0;
}

static void prepare_command(const struct session_opts *opts)
{
	for (int i = 0; opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->prepare_command)
			opts->runtimes[i]->prepare_command(opts->command);
}

static int add_targets(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct process *process;
	uint32_t pid;
	size_t i;
	int code = 0;

	if (opts->command) {
		if (opts->source == RUNTIME_SOURCE_PROBES || opts->source == RUNTIME_SOURCE_CALLS)
			prepare_command(opts);
		code = child__fork(&session->child, opts->command, &session->users_files, err);
		pid = session->child.pid;
		return code ? code : tracker__add(session->tracker, pid, true, &process, err);
	}
	for (i = 0; !code && i < opts->n_pids; i++) {
		code = tracker__add(session->tracker, opts->pids[i], false, &process, err);
		if (!code && opts->n_pids == 1)
			snprintf(session->target, sizeof(session->target), "pid %u (%.300s)",
				 process->pid, process->info.command);
		else if (!code && strlen(session->target) + 60 < sizeof(session->target))
			sprintf(session->target + strlen(session->target), "%spid %u (%.30s)",
				i ? ", " : "", process->pid, process->info.name);
	}
	return code;
}

/* Reads what running targets have mapped, finds their runtimes. A command has nothing yet: its exec
 * will be seen. */
static int refresh_targets(struct session *session, struct err *err)
{
	struct process *process;

	if (session->opts.command)
		return 0;
	for (process = tracker__first(session->tracker); process; process = process->hh.next) {
		if (tracker__refresh(session->tracker, process))
			return err__set(err, -ENOMEM, "out of memory");
		if (session->opts.source != RUNTIME_SOURCE_CALLS &&
		    jit_frames__begin(capture__jit(session->capture), process, err))
			return -ENOMEM;
	}
	return 0;
}

static int write_meta(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	static const char *const unwinds[] = { "auto", "fp", "copy" };
	char hz[16], start[32];
	struct utsname uts = {};
	time_t now = time(NULL);
	int i, code;

	uname(&uts);
	snprintf(hz, sizeof(hz), "%u", opts->frequency_hz);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	const struct {
		const char *key, *value;
	} rows[] = { { "target", session->target },
		     { "frequency_hz", hz },
		     { "unwind", unwinds[opts->unwind] },
		     { "started_at", start },
		     { "host", uts.nodename },
		     { "kernel", uts.release },
		     { "machine", uts.machine } };

	code = recording__kind(session->recording, KIND_KERNEL, "kernel", "_[k]", err);
	if (!code)
		code = recording__kind(session->recording, KIND_NATIVE, "native", "_[n]", err);
	if (!code)
		code = recording__kind(session->recording, KIND_INLINED, "inlined", "_[i]", err);
	for (i = 0; !code && opts->runtimes[i]; i++)
		if (opts->runtimes[i]->walker >= 0 || opts->runtimes[i]->label)
			code = recording__kind(session->recording, KIND_RUNTIME + i,
					       opts->runtimes[i]->name, opts->runtimes[i]->suffix,
					       err);
	for (i = 0; !code && i < (int)ARRAY_SIZE(rows); i++)
		code = recording__meta(session->recording, rows[i].key, rows[i].value, err);
	return code;
}

static bool hurries(void *ctx)
{
	const struct session *session = ctx;

	return stopper__hurries(session->stopper);
}

static int open_recording(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	int code = recording__create(opts->output, opts->force, &session->recording, err);

	if (code)
		return code;
	code = write_meta(session, err);
	if (!code)
		code = capture__new(&(struct capture_opts) { session->recording, session->tracker,
							     session->images, opts->runtimes,
							     session->sessions, KALLSYMS,
							     opts->unwind, opts->enabled, on_source,
							     hurries, session },
				    &session->capture, err);
	if (code)
		return code;
	session->ring = ring_buffer__new(kernel_half__map_fd(session->half, "ring"), on_ring_record,
					 session, NULL);
	if (!session->ring)
		return err__set(err, -errno, "cannot map the ring buffer: %s", strerror(errno));
	mmap_events__new(on_mmap, session, &session->mmap_events);
	return 0;
}

/* In every target, whose mappings are known by now. */
static int set_trigger(struct session *session, struct err *err)
{
	const struct session_trigger *trigger = session->opts.trigger;
	struct process *process;
	uint64_t address;
	int code = 0;

	for (process = tracker__first(session->tracker); !code && trigger && process;
	     process = process->hh.next) {
		code = process__find_symbol(process, trigger->file, trigger->symbol, &address);
		code = code ? err__set(err, code, "PID %u has no function %s of a file %s",
				       process->pid, trigger->symbol, trigger->file)
			    : kernel_half__break_at(session->half, process->pid, address, err);
	}
	return code;
}

/* The exec is seen, and the tables of the program and of its dynamic linker are there, before its
 * first instruction runs; those of its libraries, and probes, before the first of its own. */
static int start_command(struct session *session, struct err *err)
{
	int code = child__exec(&session->child, session->opts.command[0], err);
	struct process *process;
	uint32_t id;

	if (code)
		return code;
	code = session__consume(session, err);
	child__run_to_entry(&session->child);
	if (!code)
		code = session__consume(session, err);
	process = tracker__find(session->tracker, session->child.pid);
	if (!code && process && tracker__refresh(session->tracker, process))
		code = err__set(err, -ENOMEM, "out of memory");
	if (!code && process) /* it may be too short-lived for a sample, and yet have children */
		code = capture__process_id(session->capture, process, &id, err);
	if (!code)
		code = set_trigger(session, err);
	if (!code)
		code = session__commit(session, err);
	if (!code) /* else it is not to run on */
		child__release(&session->child);
	return code;
}

/* The first commit, by which the recording takes its place, is the last thing that can fail. */
static int start_targets(struct session *session, struct err *err)
{
	int code = set_trigger(session, err);

	return code ? code : session__commit(session, err);
}

static void stop_sampling(void *ctx)
{
	kernel_half__sample_until(ctx, now_ns());
}

/* Sampling ends when it should, whether or not anything else gets to its end in time. */
static void begin(struct session *session)
{
	session->start_ns = session->last_tick_ns = now_ns();
	if (session->opts.duration_s > 0)
		kernel_half__sample_until(session->half,
					  session->start_ns + session->opts.duration_s * 1e9);
}

int session__open(const struct session_opts *opts, struct session **ret, struct err *err)
{
	struct session *session = calloc(1, sizeof(*session));
	int code, i;

	if (!session)
		return err__set(err, -ENOMEM, "out of memory");
	session->opts = *opts;
	session->child = CHILD_NONE;
	for (i = 0; opts->command && opts->command[i]; i++)
		snprintf(session->target + strlen(session->target),
			 sizeof(session->target) - strlen(session->target), "%s%s", i ? " " : "",
			 opts->command[i]);
	code = stopper__new(&session->stopper, err);
	if (!code)
		code = fd_limit__raise(&session->users_files, err);
	if (!code)
		code = open_inside(session, err);
	if (!code)
		code = add_targets(session, err);
	if (!code)
		code = open_recording(session, err);
	if (!code)
		code = refresh_targets(session, err);
	if (!code)
		code = session__keep_limit(session, err);
	if (!code)
		code = kernel_half__attach(session->half, err);
	if (!code)
		code = stopper__watch(session->stopper, stop_sampling, session->half, err);
	if (!code)
		code = opts->command ? start_command(session, err) : start_targets(session, err);
	if (!code)
		begin(session);
	if (code) {
		child__kill(&session->child);
		recording__discard(session->recording);
		session->recording = NULL;
		session__free(session);
		return code;
	}
	session->last_cpu_s = own_cpu_s();
	*ret = session;
	return 0;
}

int session__calls(struct session *session, bool lines, struct profile **ret, struct err *err)
{
	struct calls_opts opts = { .half = session->half,
				   .runtimes = session->opts.runtimes,
				   .sessions = session->sessions,
				   .end_ns = session->end_ns,
				   .cut = &session->cut,
				   .lines = lines };
	struct profile *profile;
	int code = calls__read(&opts, &profile, err);

	if (code)
		return code;
	profile->target = strdup(session->target);
	profile->duration_s = (session->end_ns - session->start_ns) / 1e9;
	*ret = profile;
	return 0;
}

/* Stack copies that have come are unwound for so long; each takes some milliseconds. */
#define DRAIN_NS NSEC_PER_SEC

/* What is in the ring; nothing comes any more. */
static int drain(struct session *session, struct err *err)
{
	uint64_t end_ns = now_ns() + DRAIN_NS;
	int code;

	do {
		if (now_ns() >= end_ns)
			capture__skip_copies(session->capture);
		code = session__consume(session, err);
	} while (!code && session->behind);
	return code;
}

int session__finish(struct session *session, struct session_summary *ret_summary, struct err *err)
{
	struct session_summary summary = { .end = session->end };
	int code, closed;

	/* The kernel takes its time over each probe, and shadow stacks are wrong meanwhile: no
	 * sample may see that. */
	kernel_half__sample_until(session->half, now_ns());
	session->end_ns = session__now_ns(session);
	summary.duration_s = (session->end_ns - session->start_ns) / 1e9;
	if (session->opts.source == RUNTIME_SOURCE_CALLS)
		tracker__stop_probes(session->tracker);
	kernel_half__detach(session->half);
	tracker__stop_probes(session->tracker);
	session__end_windows(session);
	session__limit(session, &summary.limit);
	program_stats__read(kernel_half__sampler_fd(session->half), &summary.sampler_runs,
			    &summary.sampler_ns);
	fd_limit__open_reserve();
	code = drain(session, err);
	if (!code)
		code = capture__name_frames(session->capture, true, err);
	closed = session__write_counters(session, code ? NULL : err);
	code = code ? code : closed;
	closed = recording__close(session->recording, code ? NULL : err);
	session->recording = NULL;
	if (!closed)
		session->in_file = *capture__stats(session->capture);
	session__counters(session, summary.counters);
	summary.stats = &session->in_file;
	summary.samples_lost = capture__stats(session->capture)->samples - session->in_file.samples;
	summary.unread = images__unread(session->images);
	jit_frames__stats(capture__jit(session->capture), &summary.jit);
	summary.table_bytes = wordspace__bytes(session->wordspace);
	summary.table_max_bytes = wordspace__max_bytes(session->wordspace);
	summary.images = images__stats(session->images);
	summary.command_pid = session->child.pid;
	summary.command_status = session->command_status;
	summary.own_cpu_s = own_cpu_s();
	*ret_summary = summary;
	return code ? code : closed;
}

int session__command_pid(const struct session *session)
{
	return session->child.pid;
}

void session__free(struct session *session)
{
	int i;

	if (!session)
		return;
	stopper__free(session->stopper);
	kernel_half__detach(session->half);
	session__end_limit(session);
	ring_buffer__free(session->ring);
	mmap_events__free(session->mmap_events);
	capture__free(session->capture);
	recording__close(session->recording, NULL);
	tracker__free(session->tracker);
	images__free(session->images);
	wordspace__free(session->wordspace);
	for (i = 0; session->opts.runtimes[i]; i++)
		if (session->sessions[i])
			session->opts.runtimes[i]->close(session->sessions[i]);
	kernel_half__free(session->half);
	free(session->remapped);
	fd_limit__restore(&session->users_files);
	free(session->polled);
	free(session->cache_dir);
	free(session);
}
