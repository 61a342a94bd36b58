/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_IDLE_H
#define BRAID_GO_IDLE_H

#include "runtimes/idle.h"

/* Idle waits of Go programs' threads: member `idle` of runtime_go. */
extern const struct idle_rule go_idle[];

#endif
