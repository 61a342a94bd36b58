// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"
#include "core/target/images.h"

#define POLL_MS	     100
#define POLLED_FIRST 4 /* signals, the ring, mmap events, children */
#define TICK_NS	     NSEC_PER_SEC

bool session__is_urgent(const struct session *session)
{
	return !session->targets.scope && event_list__has_mapped(&session->opts.events);
}

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

/* Fills the list for poll(): the signals, the ring buffer, and the processes that are about to end.
 */
static int fill_polled(struct session *session)
{
	struct process *process;
	size_t n = POLLED_FIRST;

	for (process = tracker__first_requested(session->tracker); process;
	     process = process->next_requested) {
		if (process->state != PROCESS_ENDING)
			continue;
		if (array__reserve(&session->loop.polled, &session->loop.cap_polled, n + 1,
				   sizeof(*session->loop.polled)))
			return -ENOMEM;
		session->loop.polled[n++] =
			(struct pollfd) { .fd = process->pidfd, .events = POLLIN };
	}
	if (array__reserve(&session->loop.polled, &session->loop.cap_polled, n,
			   sizeof(*session->loop.polled)))
		return -ENOMEM;
	session->loop.n_polled = n;
	session->loop.polled[0] =
		(struct pollfd) { .fd = stopper__fd(session->stopper), .events = POLLIN };
	session->loop.polled[1] =
		(struct pollfd) { .fd = ring_buffer__epoll_fd(session->ring.buffer),
				  .events = POLLIN };
	session->loop.polled[2] = (struct pollfd) { .fd = mmap_events__fd(session->mappings.events),
						    .events = POLLIN };
	session->loop.polled[3] =
		(struct pollfd) { .fd = session->command.child.signal_fd, .events = POLLIN };
	return 0;
}

static int follow_ended(struct session *session, struct err *err)
{
	struct process *process;
	int ret = 0;

	for (process = tracker__first_requested(session->tracker); !ret && process;
	     process = process->next_requested) {
		if (process->state != PROCESS_ENDING || !process__has_ended(process))
			continue;
		session__reap_command(session, process->pid);
		ret = routing__end(&session->routing, process, err);
	}
	return ret;
}

/* Searches for ended processes if events were lost, and at the first tick, since events may have
 * been missing before it. */
static int find_lost_exits(struct session *session, struct err *err)
{
	uint64_t counters[COUNTERS_N], lost;

	kernel_half__counters(session->half, counters);
	lost = counters[COUNT_EVENT_LOST] + 1;
	if (lost != session->loop.lost_events)
		tracker__look_for_exits(session->tracker);
	session->loop.lost_events = lost;
	(void)err;
	return 0;
}

static int report_progress(struct session *session, struct err *err)
{
	struct session_progress progress = {};
	uint64_t counters[COUNTERS_N];
	uint64_t cpu_ns = now_ns(); /* later than loop.now_ns: a tick may take long */
	double cpu = own_cpu_s();

	(void)err;
	if (!session->opts.on_progress)
		return 0;
	kernel_half__counters(session->half, counters);
	progress.elapsed_s = (session->loop.now_ns - session->start_ns) / 1e9;
	progress.samples = capture__stats(session->capture)->samples;
	progress.lost = counters[COUNT_RING_FULL] + counters[COUNT_SCRATCH];
	progress.unread = session->ahead.unread;
	progress.own_cpu_percent =
		100 * (cpu - session->loop.cpu_s) * 1e9 / max_of(cpu_ns - session->loop.cpu_ns, 1u);
	session->loop.cpu_s = cpu;
	session->loop.cpu_ns = cpu_ns;
	session->opts.on_progress(session->opts.ctx, &progress);
	return 0;
}

struct event_place session__place(const struct session *session)
{
	return (struct event_place) { .tracker = session->tracker,
				      .images = session->code.images,
				      .runtimes = session->opts.runtimes,
				      .max_overhead_percent = session__events_percent(session),
				      .launched = session->opts.command != NULL,
				      .everywhere = session->targets.scope != NULL,
				      .force = session->opts.force };
}

/* Attaches probes to children that the ring has reported, before anything else is done. */
static int join_new(struct session *session, struct err *err)
{
	const struct event_place place = session__place(session);
	uint64_t newest = images__last_file(session->code.images);
	int ret = events__join(session->events, &place, err);

	/* New mappings of targets get their probes at once, too. */
	if (ret || newest == session->loop.last_file ||
	    !event_list__has_mapped(&session->opts.events))
		return ret;
	session->loop.last_file = newest;
	return session__follow(session, err);
}

int session__follow(struct session *session, struct err *err)
{
	const struct event_place place = session__place(session);

	return events__follow(session->events, &place, err);
}

static int tick_tracker(struct session *session, struct err *err)
{
	int ret = tracker__tick(session->tracker);

	return ret ? err__set(err, ret, "cannot follow the targets: %s", strerror(-ret)) : 0;
}

static int look_at_scope(struct session *session, struct err *err)
{
	(void)err;
	session__look_at_scope(session);
	return 0;
}

static int keep_pace(struct session *session, struct err *err)
{
	(void)err;
	session__keep_pace(session, session->loop.now_ns - session->loop.tick_ns);
	return 0;
}

static int watch_ahead(struct session *session, struct err *err)
{
	const struct session_loop *loop = &session->loop;

	return session__watch_ahead(session, loop->now_ns, loop->now_ns - loop->tick_ns, err);
}

static int rotate(struct session *session, struct err *err)
{
	return session__rotate(session, session->loop.now_ns, err);
}

typedef int (*step_fn)(struct session *session, struct err *err);

/* Runs the steps until one fails. */
static int run_steps(struct session *session, const step_fn *steps, size_t n, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++)
		ret = steps[i](session, err);
	return ret;
}

static int tick(struct session *session, struct err *err)
{
	static const step_fn on_tick[] = {
		tick_tracker,	      find_lost_exits, look_at_scope,
		session__name_frames, session__follow, session__write_counters,
		session__commit,      rotate,	       session__publish,
		watch_ahead,	      report_progress, keep_pace,
	};
	int ret;

	if (session->loop.now_ns - session->loop.tick_ns < TICK_NS)
		return 0;
	ret = run_steps(session, on_tick, ARRAY_SIZE(on_tick), err);
	session->loop.tick_ns = session->loop.now_ns;
	return ret;
}

static bool is_over(struct session *session, uint64_t now)
{
	if (stopper__has_signal(session->stopper))
		session->loop.end = SESSION_SIGNAL;
	else if (session->limit.exceeded_ns && session->opts.source == RUNTIME_SOURCE_CALLS)
		session->loop.end = SESSION_EXCEEDED;
	else if (session->opts.duration_s > 0 &&
		 now - session->start_ns >= session->opts.duration_s * 1e9)
		session->loop.end = SESSION_DURATION;
	else if (!session->targets.scope && !tracker__count_requested(session->tracker))
		session->loop.end = SESSION_TARGETS_ENDED;
	else
		return false;
	return true;
}

#define PENDING_POLL_MS 10 /* while a runtime is not ready (tracker__retry) */

static int poll_timeout_ms(const struct session *session, uint64_t now)
{
	double left_s = session->opts.duration_s - (now - session->start_ns) / 1e9;
	int most = tracker__retries_soon(session->tracker) ? PENDING_POLL_MS : POLL_MS;

	if (session->opts.duration_s <= 0 || left_s * 1000 > most)
		return most;
	return left_s > 0 ? (int)(left_s * 1000) + 1 : 0;
}

/* Short-lived processes wake braid with each of their mappings, and waking costs more than reading
 * the mappings. So braid sleeps for this time if it woke just before, unless probes may have to be
 * attached. */
#define REST_NS 2000000ULL

static bool rests(const struct session *session, uint64_t now)
{
	return now < session->loop.woken_ns + REST_NS &&
	       session->opts.source != RUNTIME_SOURCE_CALLS &&
	       !tracker__has_probes(session->tracker) && !session__is_urgent(session);
}

static int wait_for_events(struct session *session, uint64_t now)
{
	int ret;

	if (rests(session, now)) {
		session->loop.polled[1].fd = session->loop.polled[2].fd = -1;
		ret = poll(session->loop.polled, session->loop.n_polled,
			   REST_NS * 1000 / NSEC_PER_SEC);
		session->loop.woken_ns = 0;
	} else {
		ret = poll(session->loop.polled, session->loop.n_polled,
			   poll_timeout_ms(session, now));
		session->loop.woken_ns = ret > 0 ? now_ns() : 0;
	}
	return ret < 0 && errno != EINTR ? -errno : 0;
}

/* Returns true if a new runtime may appear. Children may execute any program, and so may a command
 * that is no program of a runtime: a shell, a launcher. */
static bool expects_runtimes(const struct session *session)
{
	const struct process *process;

	if (session->opts.source != RUNTIME_SOURCE_AUTO &&
	    session->opts.source != RUNTIME_SOURCE_WALK)
		return false;
	if (session->targets.scope)
		return true;
	for (process = tracker__first(session->tracker); process; process = process->hh.next)
		if (!process->requested ||
		    (session->opts.command && process->space && !process__attached(process)))
			return true;
	return false;
}

/* The verifier takes up to a tenth of a second for a walker. If it were loaded when it is needed,
 * it would be missing in all samples of that time. If it were loaded at the start, it would delay
 * the first sample, and the tables of a command's first children. So walkers that may be needed are
 * loaded a little later, between two rounds of the loop, one at a time. A walker that cannot be
 * loaded is reported when a process needs it. While a launcher is followed, walkers are loaded in
 * rounds in which nothing happened: the program that the launcher executes is held, and names its
 * walker. None is loaded while a process loads its runtime, which is attached when it is ready. */
#define AHEAD_AFTER_NS 200000000ULL

static int load_ahead(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	uint64_t now = session->loop.now_ns;
	struct err ignored = {};
	int i = session->loop.n_loaded;

	if (!opts->runtimes[i] || session->ring.is_lagging || !session__has_read_ahead(session) ||
	    session__is_linking(session) || tracker__expects_runtime(session->tracker, now) ||
	    (now < session->command.follow_until_ns && session->loop.woken_ns) ||
	    now < session->start_ns + AHEAD_AFTER_NS || !expects_runtimes(session))
		return 0;
	session->loop.n_loaded++;
	if (opts->enabled & 1U << i)
		kernel_half__load_runtime(session->half, i, &ignored);
	(void)err;
	return 0;
}

/* Starts programs whose tables were delayed, and repeats reads that failed. */
static int retry(struct session *session, struct err *err)
{
	session->loop.now_ns = now_ns();
	return tracker__retry(session->tracker, session->loop.now_ns)
		       ? err__set(err, -ENOMEM, "out of memory")
		       : 0;
}

static int keep_events(struct session *session, struct err *err)
{
	return events__keep(session->events, err);
}

static int sample_parked(struct session *session, struct err *err)
{
	return session__sample_parked(session, false, err);
}

int session__step(struct session *session, bool *ret_over, struct err *err)
{
	static const step_fn on_round[] = {
		session__consume,
		session__follow_holds,
		join_new,
		follow_ended,
		retry,
		session__keep_limit,
		keep_events,
		session__read_ahead,
		load_ahead,
		sample_parked,
		tick,
	};
	uint64_t now = now_ns();
	int ret;

	*ret_over = is_over(session, now);
	if (*ret_over)
		return 0;
	if (fill_polled(session))
		return err__set(err, -ENOMEM, "out of memory");
	ret = wait_for_events(session, now);
	if (ret)
		return err__set(err, ret, "poll: %s", strerror(-ret));
	return run_steps(session, on_round, ARRAY_SIZE(on_round), err);
}

int session__begin_loop(struct session *session, struct err *err)
{
	(void)err;
	session->loop.tick_ns = session->start_ns;
	session->loop.cpu_s = own_cpu_s();
	session->loop.cpu_ns = now_ns();
	return 0;
}

int session__run(struct session *session, struct err *err)
{
	bool over = false;
	int ret = 0;

	while (!ret && !over)
		ret = session__step(session, &over, err);
	return ret;
}

int session__name_frames(struct session *session, struct err *err)
{
	return capture__name_frames(session->capture, false, err);
}

bool session__has_signal(const struct session *session)
{
	return stopper__has_signal(session->stopper);
}

unsigned session__children(const struct session *session)
{
	return session->targets.n_children;
}

const char *session__target(const struct session *session)
{
	return session->targets.text;
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
