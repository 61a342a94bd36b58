/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_IDLE_H
#define BRAID_NODE_IDLE_H

#include "runtimes/idle.h"

/* Waits of Node's threads that mean nothing: what `idle` of its struct runtime is. */
extern const struct idle_rule node_idle[];

#endif
