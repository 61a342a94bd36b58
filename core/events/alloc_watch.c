// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "core/base/util.h"
#include "core/events/alloc_threads.h"
#include "core/events/alloc_windows.h"
#include "core/kernel/uprobe_multi.h"
#include "probes/probe_set.h"

#define ASSUMED_NS 1000 /* cost of a hit, if it cannot be measured */
#define PROGRAM_NS 500	/* the part of it for alloc_on_call, until measured */

/* Number of watchers. A probe is removed at once, but the kernel then waits for about 30 ms;
 * meanwhile other watchers open windows. */
#define WATCHERS 3

/* The watched processes. A single -1 stands for all processes that map the files. */
struct watched {
	pid_t pids[PROBE_SET_MEMBERS_MAX];
	size_t n;
};

struct watcher {
	struct alloc_watch *watch;
	pthread_t thread;
	bool started;
	struct probe_links *links;
	uint64_t number;	    /* number of the link: ALLOC_LINK */
	struct probe_point *points; /* copy of the watch's points, with this link's cookies */
	size_t cap_points;
	struct watched watched; /* copy of the watch's processes */
};

/* The session's loop takes the lock in every round, and must not wait for a window, which takes up
 * to WINDOW_OPEN_MAX_NS. So one watcher at a time claims `busy` for a window, and holds the lock
 * only while it copies or publishes. Only that watcher uses the kernel half's alloc_window,
 * `before`, `per_cpu` and `threads`. Only it attaches `links` when all calls are watched again. The
 * loop changes these while no watcher is busy. */

struct alloc_watch {
	struct event *event;
	pthread_mutex_t lock; /* protects all members that `busy` does not cover */
	pthread_cond_t wake;
	bool over;
	bool busy;	/* a watcher has a window open */
	struct err err; /* error of a watcher */
	int ret;

	/* --- attachment --- */
	struct probe_point *points;
	size_t n_points, cap_points;
	struct probe_links *links; /* used while all calls are watched; their link number is 0 */
	bool attached;
	struct watched watched;

	/* --- cost --- */
	double percent;
	int stats_fd; /* the kernel updates statistics while it is open; -1: no limit */
	double trap_ns, carried_ns;
	uint64_t runs, run_ns; /* runs of the program at the last check */

	/* --- windows --- */
	struct windows windows;
	struct watcher watchers[WATCHERS];
	struct alloc_threads *threads;
	struct alloc_sums before, *per_cpu; /* sums at the last window; buffer to read sums */
	int sums_fd, n_cpus;
};

/* --- attachment --- */

static int attach(const struct alloc_watch *watch, struct probe_links *links, uint64_t number,
		  const struct watched *watched, struct probe_point *points, size_t n,
		  struct err *err)
{
	int ret = 0;

	for (size_t i = 0; i < n; i++)
		points[i].cookie = (uint32_t)points[i].cookie | number << ALLOC_LINK_SHIFT;
	for (size_t i = 0; !ret && i < watched->n; i++) {
		ret = probe_links__attach(links, watch->event->program, watched->pids[i], points, n,
					  err);
		if (ret == -ESRCH && watched->pids[i] > 0) /* it just ended */
			ret = 0;
	}
	return ret;
}

int alloc_watch__add(struct alloc_watch *watch, const struct probe_point *points, size_t n,
		     struct err *err)
{
	size_t first;
	int ret = 0;

	pthread_mutex_lock(&watch->lock);
	first = watch->n_points;
	if (array__reserve(&watch->points, &watch->cap_points, first + n, sizeof(*points))) {
		ret = err__set(err, -ENOMEM, "out of memory");
	} else {
		memcpy(watch->points + first, points, n * sizeof(*points));
		watch->n_points += n;
		/* otherwise the next window attaches them, or the watcher that ends the last one */
		if (watch->windows.open_always && !watch->busy)
			ret = attach(watch, watch->links, 0, &watch->watched, watch->points + first,
				     n, err);
	}
	pthread_mutex_unlock(&watch->lock);
	return ret;
}

static bool is_everywhere(const struct watched *watched)
{
	return watched->n && watched->pids[0] < 0;
}

static size_t find(const struct watched *watched, pid_t pid)
{
	size_t i = 0;

	while (i < watched->n && watched->pids[i] != pid)
		i++;
	return i;
}

/* Watches all processes. Detaches first, so that no hit counts twice. */
static int go_everywhere(struct alloc_watch *watch, struct err *err)
{
	watch->watched = (struct watched) { { -1 }, 1 };
	if (!watch->windows.open_always || watch->busy)
		return 0; /* the next window attaches them, or the watcher that ends the last one */
	probe_links__detach(watch->links);
	return attach(watch, watch->links, 0, &watch->watched, watch->points, watch->n_points, err);
}

bool alloc_watch__is_everywhere(struct alloc_watch *watch)
{
	bool ret;

	pthread_mutex_lock(&watch->lock);
	ret = is_everywhere(&watch->watched);
	pthread_mutex_unlock(&watch->lock);
	return ret;
}

int alloc_watch__join(struct alloc_watch *watch, pid_t pid, struct err *err)
{
	const struct watched one = { { pid }, 1 };
	struct watched *watched = &watch->watched;
	int ret = 0;

	pthread_mutex_lock(&watch->lock);
	if (!is_everywhere(watched) && find(watched, pid) == watched->n) {
		if (watched->n == PROBE_SET_MEMBERS_MAX) {
			ret = go_everywhere(watch, err);
		} else {
			watched->pids[watched->n++] = pid;
			if (watch->windows.open_always && !watch->busy)
				ret = attach(watch, watch->links, 0, &one, watch->points,
					     watch->n_points, err);
		}
	}
	pthread_mutex_unlock(&watch->lock);
	return ret;
}

void alloc_watch__leave(struct alloc_watch *watch, pid_t pid)
{
	struct watched *watched = &watch->watched;
	size_t at;

	pthread_mutex_lock(&watch->lock);
	at = find(watched, pid);
	if (at < watched->n)
		watched->pids[at] = watched->pids[--watched->n];
	pthread_mutex_unlock(&watch->lock);
}

/* Returns the only process whose threads must be visited; -1: all processes. */
static pid_t only_process(const struct alloc_watch *watch)
{
	return watch->watched.n == 1 ? watch->watched.pids[0] : -1;
}

/* --- cost --- */

/* Returns the cost of hits since the last call. */
static double spent_ns(struct alloc_watch *watch)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	double spent = watch->carried_ns;

	watch->carried_ns = 0;
	if (bpf_obj_get_info_by_fd(bpf_program__fd(watch->event->program), &info, &size))
		return spent;
	spent += (info.run_cnt - watch->runs) * watch->trap_ns;
	spent += info.run_time_ns - watch->run_ns;
	watch->runs = info.run_cnt;
	watch->run_ns = info.run_time_ns;
	return spent;
}

void alloc_watch__begin_limit(struct alloc_watch *watch, double percent)
{
	/* the last point is the most frequent one */
	enum trap_kind trap = probe_point__trap(&watch->points[watch->n_points - 1]);
	struct trap_costs costs = {};
	struct err ignored = {};

	watch->percent = percent;
	watch->trap_ns = ASSUMED_NS;
	if (percent > 0) {
		watch->stats_fd = event__open_statistics(watch->event);
		if (watch->stats_fd >= 0 && !trap__measure(1U << trap, &costs, &ignored))
			watch->trap_ns = costs.ns[trap];
	}
	windows__init(&watch->windows, watch->stats_fd < 0 ? 0 : percent,
		      max_of(sysconf(_SC_NPROCESSORS_ONLN), 1), watch->trap_ns + PROGRAM_NS,
		      now_ns(), now_ns());
}

/* --- windows --- */

/* Reads the sums, with the time that probes took from a thread in window number @window. */
static void read_sums(struct alloc_watch *watch, uint64_t window, struct alloc_sums *ret)
{
	uint64_t *sums = (uint64_t *)ret, *cpu;
	uint32_t key = 0;

	*ret = (struct alloc_sums) {};
	if (bpf_map_lookup_elem(watch->sums_fd, &key, watch->per_cpu))
		return;
	for (int i = 0; i < watch->n_cpus; i++) {
		uint64_t lost_ns = ret->lost_ns;

		cpu = (uint64_t *)&watch->per_cpu[i];
		for (size_t k = 0; k < sizeof(*ret) / sizeof(*sums); k++)
			sums[k] += cpu[k];
		ret->lost_ns = watch->per_cpu[i].window == window
				       ? max_of(lost_ns, watch->per_cpu[i].lost_ns)
				       : lost_ns;
	}
}

static void take_sums(struct alloc_watch *watch, uint64_t window, struct alloc_sums *ret)
{
	struct alloc_sums now;
	uint64_t *sums = (uint64_t *)ret, *before = (uint64_t *)&watch->before;

	read_sums(watch, window, &now);
	*ret = now;
	for (size_t k = 0; k < sizeof(*ret) / sizeof(*sums); k++)
		sums[k] -= before[k];
	ret->lost_ns = now.lost_ns;
	watch->before = now;
}

static void sleep_until(uint64_t time_ns)
{
	struct timespec end = { time_ns / NSEC_PER_SEC, time_ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void visit(struct alloc_watch *watch, enum alloc_visit visit)
{
	kernel_half__alloc_window(watch->event->half)->visit = visit;
	alloc_threads__visit(watch->threads, only_process(watch));
}

/* Waits until each thread has had its share of the window. */
static void hold(struct alloc_watch *watch, uint64_t window, uint64_t width_ns)
{
	uint64_t from_ns = now_ns(), step_ns = width_ns;
	struct alloc_sums before, after;

	do {
		sleep_until(now_ns() + step_ns);
		step_ns += step_ns / 2;
		read_sums(watch, window, &before);
		visit(watch, ALLOC_LOOK);
		read_sums(watch, window, &after);
	} while (after.unfinished > before.unfinished && after.lost_ns < WINDOW_LOST_MAX_NS &&
		 now_ns() < from_ns + WINDOW_OPEN_MAX_NS);
}

/* Prepares the window; no call counts before it is opened. */
static void prepare(struct alloc_watch *watch, uint64_t number, uint64_t link)
{
	volatile struct alloc_window *window = kernel_half__alloc_window(watch->event->half);

	window->threads = 0;
	window->number = number;
	window->windows = 1;
	window->link = link;
	window->width_ns = watch->windows.width_ns;
	window->cost_ns = windows__cost_ns(&watch->windows);
	window->tick_ns = watch->threads ? alloc_threads__tick_ns(watch->threads) : 0;
	window->period = windows__period(&watch->windows, ALLOC_PERIOD_MAX);
}

/* Copies the points from number @first. Returns their number, or -ENOMEM. The lock must be held. */
static ssize_t copy_points(const struct alloc_watch *watch, size_t first, struct watcher *watcher)
{
	size_t n = watch->n_points - first;

	if (array__reserve(&watcher->points, &watcher->cap_points, n, sizeof(*watcher->points)))
		return -ENOMEM;
	memcpy(watcher->points, watch->points + first, n * sizeof(*watcher->points));
	watcher->watched = watch->watched;
	return n;
}

/* Attaches all points permanently, including points that are added meanwhile, in all processes. The
 * lock must be held; it is released during the attachment. */
static int attach_always(struct alloc_watch *watch, struct watcher *watcher, struct err *err)
{
	size_t first = 0;
	int ret = 0;

	while (!ret && first < watch->n_points) {
		ssize_t n = copy_points(watch, first, watcher);

		if (n < 0)
			return err__set(err, n, "out of memory");
		first += n;
		pthread_mutex_unlock(&watch->lock);
		ret = attach(watch, watch->links, 0, &watcher->watched, watcher->points, n, err);
		pthread_mutex_lock(&watch->lock);
		/* A process joined meanwhile, or all processes are watched now. */
		if (!ret && memcmp(&watcher->watched, &watch->watched, sizeof(watch->watched))) {
			probe_links__detach(watch->links);
			first = 0;
		}
	}
	return ret;
}

/* Opens and closes a window. Returns the calls that it saw in *@ret. The lock must not be held. */
static void watch_open(struct alloc_watch *watch, uint64_t number, uint64_t width_ns,
		       bool *ret_opened, struct alloc_sums *ret)
{
	volatile struct alloc_window *window = kernel_half__alloc_window(watch->event->half);

	visit(watch, ALLOC_OPEN);
	*ret_opened = window->opened == number;
	if (*ret_opened)
		hold(watch, number, width_ns);
	visit(watch, ALLOC_CLOSE);
	alloc_threads__tick(watch->threads, false);
	take_sums(watch, number, ret);
}

/* Watches one window. The lock is held on entry and on return, and the caller must own `busy`. */
static int watch_window(struct alloc_watch *watch, struct watcher *watcher, struct err *err)
{
	volatile struct alloc_window *window = kernel_half__alloc_window(watch->event->half);
	uint64_t number = watch->windows.n + 1, width_ns = watch->windows.width_ns;
	ssize_t n = copy_points(watch, 0, watcher);
	struct alloc_sums seen;
	bool opened;
	int ret;

	if (n < 0)
		return err__set(err, n, "out of memory");
	prepare(watch, number, watcher->number);
	pthread_mutex_unlock(&watch->lock);
	ret = attach(watch, watcher->links, watcher->number, &watcher->watched, watcher->points, n,
		     err);
	if (!ret)
		alloc_threads__tick(watch->threads, true);
	pthread_mutex_lock(&watch->lock);
	if (ret)
		return ret;
	windows__open(&watch->windows, now_ns());
	pthread_mutex_unlock(&watch->lock);
	watch_open(watch, number, width_ns, &opened, &seen);
	pthread_mutex_lock(&watch->lock);
	if (!windows__close(&watch->windows, spent_ns(watch), &seen, window->scale / 256.0,
			    opened ? window->represented_ns : 0, now_ns()))
		return 0;
	window->link = 0;
	ret = attach_always(watch, watcher, err);
	window->windows = 0;
	return ret;
}

/* Claims a window that is due. Returns false if the watcher waited instead; the state may have
 * changed meanwhile. The lock must be held. */
static bool claim_window(struct alloc_watch *watch)
{
	struct timespec next = { watch->windows.next_ns / NSEC_PER_SEC,
				 watch->windows.next_ns % NSEC_PER_SEC };

	if (watch->windows.open_always || watch->busy) {
		pthread_cond_wait(&watch->wake, &watch->lock);
		return false;
	}
	if (!windows__is_due(&watch->windows, now_ns())) {
		pthread_cond_timedwait(&watch->wake, &watch->lock, &next);
		return false;
	}
	watch->busy = true;
	return true;
}

static void *watch_windows(void *arg)
{
	struct watcher *watcher = arg;
	struct alloc_watch *watch = watcher->watch;
	struct err err = {};
	double began_ns;
	int ret;

	prctl(PR_SET_TIMERSLACK, 1);
	setpriority(PRIO_PROCESS, 0, -20); /* a late watcher costs others */
	pthread_mutex_lock(&watch->lock);
	while (!watch->over && !watch->ret) {
		if (!claim_window(watch))
			continue;
		began_ns = thread_cpu_ns();
		ret = watch_window(watch, watcher, &err);
		if (ret && !watch->ret) {
			watch->ret = ret;
			watch->err = err;
		}
		watch->busy = false;
		pthread_cond_broadcast(&watch->wake);
		pthread_mutex_unlock(&watch->lock);
		probe_links__detach(watcher->links);
		pthread_mutex_lock(&watch->lock);
		watch->carried_ns += thread_cpu_ns() - began_ns;
	}
	pthread_mutex_unlock(&watch->lock);
	return NULL;
}

/* Starts the watchers when they are first needed. */
static int start_watchers(struct alloc_watch *watch, struct err *err)
{
	int n = uprobe_multi__is_set(watch->event->program) ? WATCHERS : 1, ret = 0;

	if (!watch->threads)
		ret = alloc_threads__new(watch->event->half, &watch->threads, err);
	for (int i = 0; !ret && i < n && !watch->watchers[i].started; i++) {
		struct watcher *watcher = &watch->watchers[i];

		*watcher = (struct watcher) { .watch = watch, .number = i + 1 };
		watcher->links = probe_links__new();
		ret = watcher->links
			      ? -pthread_create(&watcher->thread, NULL, watch_windows, watcher)
			      : -ENOMEM;
		if (ret)
			return err__set(err, ret, "cannot start a thread: %s", strerror(-ret));
		watcher->started = true;
	}
	return ret;
}

/* --- the limit --- */

static void say(const struct alloc_watch *watch)
{
	const struct windows *windows = &watch->windows;
	double margin = windows__margin(windows);
	char known[64] = "with an unknown margin of error";

	if (windows->value <= 0)
		snprintf(known, sizeof(known), "(unknown: no window has a call)");
	else if (margin >= 0)
		snprintf(known, sizeof(known), "± %.1f %%", 100 * margin);
	snprintf(watch->event->note, sizeof(watch->event->note),
		 "probing every call would cost more than --max-overhead %g: calls were sampled in "
		 "%llu windows of %.3g ms at random times. The %llu windows in which a thread did "
		 "not wait for a CPU stand for the rest: %.4g GB %s, %.4g million calls; a probe "
		 "took %.0f ns",
		 watch->percent, (unsigned long long)windows->n, windows->width_ns / 1e6,
		 (unsigned long long)windows->n_used, windows->value / 1e9, known,
		 windows->calls / 1e6, windows__cost_ns(windows));
}

int alloc_watch__keep(struct alloc_watch *watch, struct err *err)
{
	int ret;

	if (watch->stats_fd < 0)
		return 0;
	pthread_mutex_lock(&watch->lock);
	ret = watch->ret;
	if (ret)
		*err = watch->err;
	if (!ret && watch->windows.open_always && !watch->busy &&
	    windows__spend(&watch->windows, spent_ns(watch), now_ns())) {
		kernel_half__alloc_window(watch->event->half)->since_ns = now_ns();
		kernel_half__alloc_window(watch->event->half)->life_ns = 0;
		prepare(watch, UINT64_MAX, UINT64_MAX);
		probe_links__detach(watch->links);
		ret = start_watchers(watch, err);
		pthread_cond_broadcast(&watch->wake);
	}
	if (watch->windows.n)
		say(watch);
	pthread_mutex_unlock(&watch->lock);
	return ret;
}

/* --- creation and destruction --- */

int alloc_watch__new(struct event *event, bool everywhere, struct alloc_watch **ret,
		     struct err *err)
{
	struct alloc_watch *watch = calloc(1, sizeof(*watch));
	pthread_condattr_t attr;

	if (!watch)
		return err__set(err, -ENOMEM, "out of memory");
	pthread_mutex_init(&watch->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->wake, &attr);
	pthread_condattr_destroy(&attr);
	watch->event = event;
	watch->stats_fd = -1;
	if (everywhere)
		watch->watched = (struct watched) { { -1 }, 1 };
	watch->windows.open_always = true;
	watch->links = probe_links__new();
	watch->n_cpus = libbpf_num_possible_cpus();
	watch->per_cpu = calloc(max_of(watch->n_cpus, 1), sizeof(*watch->per_cpu));
	watch->sums_fd = kernel_half__map_fd(event->half, "alloc_sums");
	*ret = watch;
	return watch->links && watch->per_cpu ? 0 : err__set(err, -ENOMEM, "out of memory");
}

void alloc_watch__free(struct alloc_watch *watch)
{
	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->over = true;
	pthread_cond_broadcast(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	for (int i = 0; i < WATCHERS; i++) {
		if (watch->watchers[i].started)
			pthread_join(watch->watchers[i].thread, NULL);
		probe_links__free(watch->watchers[i].links);
		free(watch->watchers[i].points);
	}
	alloc_threads__free(watch->threads);
	probe_links__free(watch->links);
	close_fd(&watch->stats_fd);
	pthread_cond_destroy(&watch->wake);
	pthread_mutex_destroy(&watch->lock);
	free(watch->per_cpu);
	free(watch->points);
	free(watch);
}
