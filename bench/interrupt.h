/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_INTERRUPT_H
#define BRAID_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

#include "core/base/err.h"

/* Ctrl-C, which is checked between two measurements, so that the results so far are shown. */
struct interrupt {
	int fd; /* a signalfd: readable after SIGINT */
	sigset_t old;
};

int interrupt__open(struct interrupt *ret, struct err *err);
bool interrupt__came(const struct interrupt *interrupt);
void interrupt__close(struct interrupt *interrupt);

#endif
