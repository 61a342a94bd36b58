/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_IDLE_H
#define BRAID_JVM_IDLE_H

#include "runtimes/idle.h"

/* Waits of Java programs, and of HotSpot's own threads, that mean nothing; the `idle` of struct
 * runtime. */
extern const struct idle_rule jvm_idle[];

#endif
