// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/stopper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/stop.h"
#include "core/base/util.h"

#define APART_NS 300000000ULL /* minimum time between two signals that the user sent separately */

struct stopper {
	sigset_t signals, old_signals;
	int fd;
	uint64_t first_ns; /* time of the first signal; written by the thread */
	bool has_signal, hurries;
	stopper_fn on_signal;
	void *ctx;
	pthread_t thread;
	bool watches;
};

int stopper__new(struct stopper **ret, struct err *err)
{
	struct stopper *stopper = calloc(1, sizeof(*stopper));

	if (!stopper)
		return err__set(err, -ENOMEM, "out of memory");
	stopper->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stopper->fd < 0) {
		free(stopper);
		return err__set(err, -errno, "cannot watch signals: %s", strerror(errno));
	}
	sigemptyset(&stopper->signals);
	sigaddset(&stopper->signals, SIGINT);
	sigaddset(&stopper->signals, SIGTERM);
	sigaddset(&stopper->signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &stopper->signals, &stopper->old_signals);
	*ret = stopper;
	return 0;
}

static void take_signal(struct stopper *stopper)
{
	if (stopper->first_ns) {
		if (now_ns() < stopper->first_ns + APART_NS)
			return;
		__atomic_store_n(&stopper->hurries, true, __ATOMIC_RELEASE);
		stop__request();
		return;
	}
	stopper->first_ns = now_ns();
	stopper->on_signal(stopper->ctx);
	stop__request();
	__atomic_store_n(&stopper->has_signal, true, __ATOMIC_RELEASE);
}

static void *watch(void *arg)
{
	struct stopper *stopper = arg;
	int number;

	privilege__drop_all();
	for (;;) {
		if (sigwait(&stopper->signals, &number))
			continue;
		take_signal(stopper);
		eventfd_write(stopper->fd, 1);
	}
	return NULL;
}

int stopper__watch(struct stopper *stopper, stopper_fn on_signal, void *ctx, struct err *err)
{
	int ret;

	stopper->on_signal = on_signal;
	stopper->ctx = ctx;
	ret = pthread_create(&stopper->thread, NULL, watch, stopper);
	stopper->watches = !ret;
	return ret ? err__set(err, -ret, "cannot start a thread: %s", strerror(ret)) : 0;
}

void stopper__free(struct stopper *stopper)
{
	if (!stopper)
		return;
	if (stopper->watches) {
		pthread_cancel(stopper->thread); /* sigwait() is a cancellation point */
		pthread_join(stopper->thread, NULL);
	}
	stop__clear();
	pthread_sigmask(SIG_SETMASK, &stopper->old_signals, NULL);
	close_fd(&stopper->fd);
	free(stopper);
}

bool stopper__has_signal(const struct stopper *stopper)
{
	return __atomic_load_n(&stopper->has_signal, __ATOMIC_ACQUIRE);
}

bool stopper__hurries(const struct stopper *stopper)
{
	return __atomic_load_n(&stopper->hurries, __ATOMIC_ACQUIRE);
}

const sigset_t *stopper__users_mask(const struct stopper *stopper)
{
	return &stopper->old_signals;
}

int stopper__fd(const struct stopper *stopper)
{
	return stopper->fd;
}
