/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_IDLE_H
#define BRAID_NODE_IDLE_H

#include "runtimes/idle.h"

/* Idle waits of Node's threads: member `idle` of runtime_node. */
extern const struct idle_rule node_idle[];

#endif
