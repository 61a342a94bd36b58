/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_IDLE_H
#define BRAID_PYTHON_IDLE_H

#include "runtimes/idle.h"

/* Waits of Python programs that mean nothing: what `idle` of its struct runtime is. */
extern const struct idle_rule python_idle[];

#endif
