/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_PROBING_H
#define BRAID_PYTHON_PROBING_H

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Probes in CPython processes that feed their threads' shadow stacks (bpf/python_probes.bpf.c). */
struct python_probing;

/* `object` is loaded with the probe programs. */
int python_probing__new(struct bpf_object *object, struct python_probing **ret, struct err *err);
void python_probing__free(struct python_probing *probing); /* detaches; NULL is fine */

/* As runtime_probes.probe and unprobe. `minor`: N of 3.N; 0: unknown. */
int python_probing__attach(struct python_probing *probing, const struct runtime_target *target,
			   unsigned int minor, enum runtime_source source,
			   struct runtime_probing *ret, struct err *err);
void python_probing__detach(struct python_probing *probing, uint32_t pid);
void python_probing__detach_all(struct python_probing *probing); /* NULL is fine */

#endif
