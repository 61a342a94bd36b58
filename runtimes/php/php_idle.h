/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_IDLE_H
#define BRAID_PHP_IDLE_H

#include "runtimes/idle.h"

/* Waits of PHP programs that mean nothing: what `idle` of its struct runtime is. */
extern const struct idle_rule php_idle[];

#endif
