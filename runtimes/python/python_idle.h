/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_IDLE_H
#define BRAID_PYTHON_IDLE_H

#include "runtimes/idle.h"

/* Idle waits of Python programs: member `idle` of runtime_python. */
extern const struct idle_rule python_idle[];

#endif
