/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_IDLE_H
#define BRAID_RUBY_IDLE_H

#include "runtimes/idle.h"

/* Waits of Ruby programs that mean nothing; the `idle` of struct runtime. */
extern const struct idle_rule ruby_idle[];

#endif
