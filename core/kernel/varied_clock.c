// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/varied_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/sample_rate.h"

#define HOLD_TICKS 30	       /* approximate number of ticks */
#define HOLD_NS	   250000000.0 /* approximate minimum at high rates */

/* Delay after the last tick, so that a timer that restarts slightly early does not skip the
 * tick. */
#define MARGIN_NS 1000000ULL

/* --- periods --- */

/* Returns a random number in [0, 1), by splitmix64. */
static double any(struct varied_period *varied)
{
	uint64_t x = varied->seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (double)((x ^ x >> 31) >> 11) / (double)(1ULL << 53);
}

/* Draws the next period. Longer and shorter periods are equally likely, by equal amounts. The
 * number of ticks of a hold does not depend on that, so that the mean over ticks is exact. */
static void draw(struct varied_period *varied, uint64_t now_ns)
{
	double mean = (double)varied->mean_ns;
	double differs = VARIED_LEAST + (VARIED_MOST - VARIED_LEAST) * any(varied);
	double ticks = max_of((double)HOLD_TICKS, HOLD_NS / mean) * (0.75 + 0.5 * any(varied));
	double regained = min_of(varied->lost_ns / ticks, VARIED_REGAINED * mean);
	double period = mean * (any(varied) < 0.5 ? 1 - differs : 1 + differs) - regained;

	varied->ticks = (uint32_t)ticks;
	varied->period_ns = (uint64_t)(period + 0.5);
	varied->regained_ns = regained;
	varied->since_ns = now_ns;
}

void varied_period__begin(struct varied_period *varied, uint64_t seed, uint64_t mean_ns,
			  uint64_t now_ns)
{
	*varied = (struct varied_period) { .seed = seed, .mean_ns = mean_ns };
	draw(varied, now_ns);
}

/* Counts the past ticks, and adds the time lost since the last tick. */
static void settle(struct varied_period *varied, uint64_t now_ns)
{
	uint64_t elapsed = now_ns > varied->since_ns ? now_ns - varied->since_ns : 0;
	uint64_t ticks = elapsed / varied->period_ns;

	varied->lost_ns +=
		(double)(elapsed % varied->period_ns) - (double)ticks * varied->regained_ns;
}

void varied_period__set_mean(struct varied_period *varied, uint64_t mean_ns, uint64_t now_ns)
{
	settle(varied, now_ns);
	/* The time that has passed counts as a fraction of a period of this length. */
	varied->lost_ns *= (double)mean_ns / (double)varied->mean_ns;
	varied->mean_ns = mean_ns;
	draw(varied, now_ns);
}

uint64_t varied_period__due(const struct varied_period *varied)
{
	return varied->since_ns + varied->ticks * varied->period_ns +
	       min_of(varied->period_ns / 4, MARGIN_NS);
}

uint64_t varied_period__next(struct varied_period *varied, uint64_t now_ns)
{
	settle(varied, now_ns);
	draw(varied, now_ns);
	return varied->period_ns;
}

/* --- events --- */

struct varied_clock {
	struct varied_period period;
	pthread_mutex_t lock; /* protects the period, and the order of setting it in events */
	pthread_cond_t changed;
	pthread_t thread;
	bool ends;
	size_t n;
	int fds[]; /* owned */
};

static int apply(struct varied_clock *clock)
{
	int ret = 0;

	/* Set the events one after the other, always in the same order: each timer then starts with
	 * the same delay as the last time. */
	for (size_t i = 0; i < clock->n; i++)
		if (ioctl(clock->fds[i], PERF_EVENT_IOC_PERIOD, &clock->period.period_ns))
			ret = -errno;
	return ret;
}

static void *vary(void *arg)
{
	struct varied_clock *clock = arg;

	privilege__keep_for_recording();
	pthread_mutex_lock(&clock->lock);
	while (!clock->ends) {
		uint64_t due_ns = varied_period__due(&clock->period);
		struct timespec due = { .tv_sec = due_ns / NSEC_PER_SEC,
					.tv_nsec = due_ns % NSEC_PER_SEC };

		if (now_ns() < due_ns) {
			pthread_cond_timedwait(&clock->changed, &clock->lock, &due);
			continue;
		}
		varied_period__next(&clock->period, now_ns());
		apply(clock);
	}
	pthread_mutex_unlock(&clock->lock);
	return NULL;
}

/* Starts the thread with all signals blocked: another thread waits for signals. */
static int start(struct varied_clock *clock)
{
	sigset_t all, old;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	ret = pthread_create(&clock->thread, NULL, vary, clock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -ret;
}

static int hold(struct varied_clock *clock, const int *fds, size_t n)
{
	for (; clock->n < n; clock->n++) {
		clock->fds[clock->n] = fcntl(fds[clock->n], F_DUPFD_CLOEXEC, 0);
		if (clock->fds[clock->n] < 0)
			return -errno;
	}
	return 0;
}

static void destroy(struct varied_clock *clock)
{
	while (clock->n)
		close(clock->fds[--clock->n]);
	pthread_cond_destroy(&clock->changed);
	pthread_mutex_destroy(&clock->lock);
	free(clock);
}

int varied_clock__new(const int *fds, size_t n, uint64_t mean_ns, struct varied_clock **ret,
		      struct err *err)
{
	struct varied_clock *clock = calloc(1, sizeof(*clock) + n * sizeof(clock->fds[0]));
	uint64_t seed = now_ns();
	pthread_condattr_t monotonic;
	int rc;

	if (!clock)
		return err__set(err, -ENOMEM, "out of memory");
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&clock->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&clock->lock, NULL);
	rc = hold(clock, fds, n);
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		seed = now_ns(); /* too early after the machine's start */
	varied_period__begin(&clock->period, seed, mean_ns, now_ns());
	if (!rc)
		rc = apply(clock);
	if (!rc)
		rc = start(clock);
	if (rc) {
		destroy(clock);
		return err__set(err, rc, "cannot vary the clock's period: %s", strerror(-rc));
	}
	*ret = clock;
	return 0;
}

int varied_clock__set_mean(struct varied_clock *clock, uint64_t mean_ns)
{
	int ret;

	pthread_mutex_lock(&clock->lock);
	varied_period__set_mean(&clock->period, mean_ns, now_ns());
	ret = apply(clock);
	pthread_cond_signal(&clock->changed);
	pthread_mutex_unlock(&clock->lock);
	return ret;
}

double varied_clock__stopped(const struct varied_clock *clock)
{
	return sample_rate__stopped(clock->fds, clock->n);
}

void varied_clock__free(struct varied_clock *clock)
{
	if (!clock)
		return;
	pthread_mutex_lock(&clock->lock);
	clock->ends = true;
	pthread_cond_signal(&clock->changed);
	pthread_mutex_unlock(&clock->lock);
	pthread_join(clock->thread, NULL);
	destroy(clock);
}
