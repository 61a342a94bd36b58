/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_MAP_H
#define BRAID_JVM_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* The perf map that HotSpot writes on request, for JVMs whose frames are not walked. */
struct jvm_map;

struct jvm_map *jvm_map__new(void);	 /* NULL: out of memory */
void jvm_map__free(struct jvm_map *map); /* cancels pending requests; NULL is fine */

/* As runtime.ask_map and runtime.map_result. */
int jvm_map__ask(struct jvm_map *map, uint32_t pid, struct err *err);
int jvm_map__result(struct jvm_map *map, uint32_t pid, unsigned timeout_ms, struct err *err);

/* As runtime.label. "int java.lang.String.indexOf(int, int)" becomes java.lang.String.indexOf. */
bool jvm_map__label(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

#endif
