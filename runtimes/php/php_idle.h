/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_IDLE_H
#define BRAID_PHP_IDLE_H

#include "runtimes/idle.h"

/* Idle waits of PHP programs: member `idle` of runtime_php. */
extern const struct idle_rule php_idle[];

#endif
