// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/fd_limit.h"
#include "core/util.h"

#define POLL_MS	     100
#define CONSUME_NS   100000000ULL
#define POLLED_FIRST 3 /* signals, the ring, mmap events */
#define TICK_NS	     NSEC_PER_SEC

double own_cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

uint64_t session__now_ns(const struct session *session)
{
	return session->opts.source == RUNTIME_SOURCE_CALLS
		       ? now_ns()
		       : kernel_half__sampled_until(session->half, now_ns());
}

static int consume_ring(struct session *session)
{
	int n;

	session->behind = false;
	session->consume_until_ns = now_ns();
	session->consume_end_ns = session->consume_until_ns + CONSUME_NS;
	n = ring_buffer__consume(session->ring);
	return n == -EAGAIN ? 0 : n;
}

/* Samples that are in the ring were taken before, and belong to the old mappings. What nobody has
 * looked at yet is found out with its first sample. */
static void refresh_remapped(struct session *session)
{
	struct process *process;
	size_t i;

	for (i = 0; i < session->n_remapped; i++) {
		process = tracker__find(session->tracker, session->remapped[i]);
		if (process && !process->gone && process->space)
			tracker__refresh(session->tracker, process);
	}
	session->n_remapped = 0;
}

int session__consume(struct session *session, struct err *err)
{
	int n;

	mmap_events__consume(session->mmap_events);
	n = session->ring_code < 0 ? session->ring_code : consume_ring(session);
	if (n >= 0 && !session->behind) /* else samples would meet mappings of later times */
		refresh_remapped(session);
	if (n >= 0)
		return 0;
	*err = session->ring_err;
	return err->text[0] ? n : err__set(err, n, "ring buffer: %s", strerror(-n));
}

void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	const uint64_t *recovered = capture__stats(session->capture)->recovered;
	int i;

	kernel_half__counters(session->half, ret_counters);
	ret_counters[COUNT_PROCESS_UNREAD] = tracker__unread(session->tracker);
	ret_counters[COUNT_IMAGE_UNREAD] = images__stats(session->images)->unread;
	ret_counters[COUNT_TABLE_UNPLACED] = images__stats(session->images)->tableless;
	for (i = 1; i < COUNTERS_N; i++)
		ret_counters[i] -= min_of(recovered[i], ret_counters[i]);
}

int session__write_counters(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	unsigned unread = unread_files__count(images__unread(session->images));
	uint64_t counters[COUNTERS_N];
	struct jit_frames_stats jit;
	char text[32];
	int i, code = 0;

	jit_frames__stats(capture__jit(session->capture), &jit);
	session__counters(session, counters);
	for (i = COUNT_FIRST_LOSS; !code && i < COUNTERS_N; i++)
		code = recording__counter(session->recording, counter__text(i), counters[i], err);
	if (!code)
		code = recording__counter(session->recording, JIT_SKIPPED, jit.skipped, err);
	if (!code && stats->kernel_unnamed)
		code = recording__counter(session->recording,
					  "kernel addresses without a name: the kernel hid its "
					  "symbols from braid",
					  stats->kernel_unnamed, err);
	if (!code && unread)
		code = recording__counter(session->recording,
					  "files with code that braid could not open", unread, err);
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = { { "samples", stats->samples },
		     { "samples_complete", stats->complete },
		     { "samples_kernel_only", counters[COUNT_NO_USER_REGS] },
		     { "jit_places", jit.places },
		     { "jit_places_named", jit.named },
		     { "jit_symbols", jit.symbols },
		     { "copies_used", stats->copies_used },
		     { "copy_stacks", stats->copy_stacks },
		     { "copy_stacks_equal", stats->copy_stacks_equal },
		     { "copy_frames", stats->copy_frames },
		     { "copy_frames_equal", stats->copy_frames_equal } };

	for (i = 0; !code && i < (int)ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)rows[i].value);
		code = recording__meta(session->recording, rows[i].key, text, err);
	}
	if (!code)
		code = session__write_limit(session, err);
	snprintf(text, sizeof(text), "%.3f", (session__now_ns(session) - session->start_ns) / 1e9);
	return code ? code : recording__meta(session->recording, "duration_s", text, err);
}

int session__commit(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	int code;

	fd_limit__open_reserve(); /* for the journal */
	code = recording__commit(session->recording, err);
	fd_limit__close_reserve();
	if (!code && recording__committed(session->recording) == stats->samples)
		session->in_file = *stats;
	return code;
}

/* What poll watches: the signals, the ring buffer, the processes that are about to end. */
static int fill_polled(struct session *session)
{
	struct process *process;
	size_t n = POLLED_FIRST;

	for (process = tracker__first_wanted(session->tracker); process;
	     process = process->next_wanted) {
		if (!process->ending || process->gone)
			continue;
		if (array__reserve(&session->polled, &session->cap_polled, n + 1,
				   sizeof(*session->polled)))
			return -ENOMEM;
		session->polled[n++] = (struct pollfd) { .fd = process->pidfd, .events = POLLIN };
	}
	if (array__reserve(&session->polled, &session->cap_polled, n, sizeof(*session->polled)))
		return -ENOMEM;
	session->n_polled = n;
	session->polled[0] =
		(struct pollfd) { .fd = stopper__fd(session->stopper), .events = POLLIN };
	session->polled[1] =
		(struct pollfd) { .fd = ring_buffer__epoll_fd(session->ring), .events = POLLIN };
	session->polled[2] =
		(struct pollfd) { .fd = mmap_events__fd(session->mmap_events), .events = POLLIN };
	return 0;
}

static int see_ended(struct session *session, struct err *err)
{
	struct process *process;
	int code = 0;

	for (process = tracker__first_wanted(session->tracker); !code && process;
	     process = process->next_wanted) {
		if (!process->ending || process->gone || !process__has_ended(process))
			continue;
		if ((int)process->pid == session->child.pid &&
		    waitpid(process->pid, &session->command_status, WNOHANG) == session->child.pid)
			session->child.pid = 0;
		code = capture__process_ended(session->capture, process, err);
		tracker__on_gone(session->tracker, process);
	}
	return code;
}

/* Before the first tick there may have been no events yet. */
static void look_for_lost_exits(struct session *session)
{
	uint64_t counters[COUNTERS_N], lost;

	kernel_half__counters(session->half, counters);
	lost = counters[COUNT_EVENT_LOST] + 1;
	if (lost != session->lost_events)
		tracker__look_for_exits(session->tracker);
	session->lost_events = lost;
}

static void report_progress(struct session *session, uint64_t now)
{
	struct session_progress progress = {};
	uint64_t counters[COUNTERS_N];
	double cpu = own_cpu_s();

	if (!session->opts.on_progress)
		return;
	kernel_half__counters(session->half, counters);
	progress.elapsed_s = (now - session->start_ns) / 1e9;
	progress.samples = capture__stats(session->capture)->samples;
	progress.lost = counters[COUNT_RING_FULL] + counters[COUNT_SCRATCH];
	progress.own_cpu_percent =
		100 * (cpu - session->last_cpu_s) * 1e9 / (now - session->last_tick_ns);
	session->last_cpu_s = cpu;
	session->opts.on_progress(session->opts.ctx, &progress);
}

/* Once a second: name what is new, commit. */
static int tick(struct session *session, uint64_t now, struct err *err)
{
	int code = tracker__tick(session->tracker);

	look_for_lost_exits(session);
	if (code)
		return err__set(err, code, "cannot follow the targets: %s", strerror(-code));
	code = capture__name_frames(session->capture, false, err);
	capture__reap(session->capture);
	if (!code)
		code = session__write_counters(session, err);
	if (!code)
		code = session__commit(session, err);
	report_progress(session, now);
	session__keep_pace(session, now - session->last_tick_ns);
	session->last_tick_ns = now;
	return code;
}

static bool is_over(struct session *session, uint64_t now)
{
	if (stopper__has_signal(session->stopper))
		session->end = SESSION_SIGNAL;
	else if (session->opts.duration_s > 0 &&
		 now - session->start_ns >= session->opts.duration_s * 1e9)
		session->end = SESSION_DURATION;
	else if (!tracker__count_wanted(session->tracker))
		session->end = SESSION_TARGETS_ENDED;
	else
		return false;
	return true;
}

static int poll_timeout_ms(const struct session *session, uint64_t now)
{
	double left_s = session->opts.duration_s - (now - session->start_ns) / 1e9;

	if (session->opts.duration_s <= 0 || left_s * 1000 > POLL_MS)
		return POLL_MS;
	return left_s > 0 ? (int)(left_s * 1000) + 1 : 0;
}

/* Processes that come and go wake braid with each of their mappings, which costs more than looking
 * at them does: where it was woken a moment ago it sleeps a little, unless there may be probes to
 * attach, which come late enough. */
#define REST_NS 2000000ULL

static bool rests(const struct session *session, uint64_t now)
{
	return now < session->woken_ns + REST_NS && session->opts.source != RUNTIME_SOURCE_CALLS &&
	       !tracker__has_probes(session->tracker);
}

static int wait_for_events(struct session *session, uint64_t now)
{
	int code;

	if (rests(session, now)) {
		session->polled[1].fd = session->polled[2].fd = -1;
		code = poll(session->polled, session->n_polled, REST_NS * 1000 / NSEC_PER_SEC);
		session->woken_ns = 0;
	} else {
		code = poll(session->polled, session->n_polled, poll_timeout_ms(session, now));
		session->woken_ns = code > 0 ? now_ns() : 0;
	}
	return code < 0 && errno != EINTR ? -errno : 0;
}

int session__step(struct session *session, bool *ret_over, struct err *err)
{
	uint64_t now = now_ns();
	int code;

	*ret_over = is_over(session, now);
	if (*ret_over)
		return 0;
	if (fill_polled(session))
		return err__set(err, -ENOMEM, "out of memory");
	code = wait_for_events(session, now);
	if (code)
		return err__set(err, code, "poll: %s", strerror(-code));
	code = session__consume(session, err);
	if (code)
		return code;
	code = see_ended(session, err);
	now = now_ns();
	if (!code && tracker__retry(session->tracker, now))
		code = err__set(err, -ENOMEM, "out of memory");
	if (!code)
		code = session__keep_limit(session, err);
	if (!code && now - session->last_tick_ns >= TICK_NS)
		code = tick(session, now, err);
	return code;
}

int session__run(struct session *session, struct err *err)
{
	bool over = false;
	int code = 0;

	while (!code && !over)
		code = session__step(session, &over, err);
	return code;
}

uint64_t session__taken(const struct session *session)
{
	uint64_t counters[COUNTERS_N];

	kernel_half__counters(session->half, counters);
	return counters[COUNT_SAMPLES];
}

uint64_t session__recorded(const struct session *session)
{
	return capture__stats(session->capture)->samples;
}
