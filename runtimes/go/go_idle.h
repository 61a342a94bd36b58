/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_IDLE_H
#define BRAID_GO_IDLE_H

#include "runtimes/idle.h"

/* Waits of Go programs' threads that mean nothing: what `idle` of its struct runtime is. */
extern const struct idle_rule go_idle[];

#endif
