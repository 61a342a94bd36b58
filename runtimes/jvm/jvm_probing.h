/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_PROBING_H
#define BRAID_JVM_PROBING_H

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Probes in HotSpot processes that feed their threads' shadow stacks (bpf/jvm_probes.bpf.c). */
struct jvm_probing;

/* `object` has the loaded probe programs. */
int jvm_probing__new(struct bpf_object *object, struct jvm_probing **ret, struct err *err);
void jvm_probing__free(struct jvm_probing *probing); /* detaches; NULL is fine */

/* As runtime.expect, runtime.probe and runtime.unprobe. */
void jvm_probing__expect(struct jvm_probing *probing, const struct runtime_target *target);
int jvm_probing__attach(struct jvm_probing *probing, const struct runtime_target *target,
			enum runtime_source source, struct runtime_probing *ret, struct err *err);
void jvm_probing__detach(struct jvm_probing *probing, uint32_t pid);
void jvm_probing__detach_all(struct jvm_probing *probing); /* NULL is fine */

/* As runtime.prepare_command: sets JAVA_TOOL_OPTIONS, so that JVMs started from now on have the
 * option with which their probes fire. */
void jvm_probing__prepare_command(char *const *command);

/* As runtime.on_code and runtime.symbolize, for methods reported by the probes; -ENOENT for
 * others. */
int jvm_probing__on_code(struct jvm_probing *probing, const struct rec_code_object *rec,
			 size_t size);
int jvm_probing__symbolize(struct jvm_probing *probing, uint64_t key, struct runtime_symbol *ret);

#endif
