// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/util.h"

int interrupt__open(struct interrupt *ret, struct err *err)
{
	sigset_t requested;

	sigemptyset(&requested);
	sigaddset(&requested, SIGINT);
	ret->fd = signalfd(-1, &requested, SFD_CLOEXEC | SFD_NONBLOCK);
	if (ret->fd < 0)
		return err__set(err, -errno, "cannot watch signals: %s", strerror(errno));
	sigprocmask(SIG_BLOCK, &requested, &ret->old);
	return 0;
}

bool interrupt__came(const struct interrupt *interrupt)
{
	struct pollfd polled = { .fd = interrupt->fd, .events = POLLIN };

	return poll(&polled, 1, 0) == 1;
}

void interrupt__close(struct interrupt *interrupt)
{
	struct signalfd_siginfo info;

	/* A pending signal would end this process when it is unblocked. */
	while (read(interrupt->fd, &info, sizeof(info)) == sizeof(info))
		;
	close_fd(&interrupt->fd);
	sigprocmask(SIG_SETMASK, &interrupt->old, NULL);
}
