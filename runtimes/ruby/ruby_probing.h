/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_PROBING_H
#define BRAID_RUBY_PROBING_H

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Probes in CRuby processes that feed their threads' shadow stacks (bpf/ruby_probes.bpf.c). */
struct ruby_probing;

/* `object` has the loaded probe programs. */
int ruby_probing__new(struct bpf_object *object, struct ruby_probing **ret, struct err *err);
void ruby_probing__free(struct ruby_probing *probing); /* detaches; NULL is fine */

/* As runtime.probe and unprobe. */
int ruby_probing__attach(struct ruby_probing *probing, const struct runtime_target *target,
			 enum runtime_source source, struct runtime_probing *ret, struct err *err);
void ruby_probing__detach(struct ruby_probing *probing, uint32_t pid);
void ruby_probing__detach_all(struct ruby_probing *probing); /* NULL is fine */

/* As runtime.prepare_command: sets RUBYOPT and RUBYLIB, so that commands started from now on
 * load the hook (braid_hook.rb) with which their probes at methods fire. Does nothing if the
 * hook is not found. */
void ruby_probing__prepare_command(char *const *command);

#endif
