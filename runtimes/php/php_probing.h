/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_PROBING_H
#define BRAID_PHP_PROBING_H

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "runtimes/runtime.h"

/* Probes in PHP processes that feed their threads' shadow stacks (bpf/php_probes.bpf.c). */
struct php_probing;

/* `object` is loaded with the probe programs. */
int php_probing__new(struct bpf_object *object, struct php_probing **ret, struct err *err);
void php_probing__free(struct php_probing *probing); /* detaches; NULL is fine */

/* As runtime.probe and unprobe. */
int php_probing__attach(struct php_probing *probing, const struct runtime_target *target,
			struct runtime_probing *ret, struct err *err);
void php_probing__detach(struct php_probing *probing, uint32_t pid);
void php_probing__detach_all(struct php_probing *probing); /* NULL is fine */

/* As runtime.prepare_command: by USE_ZEND_DTRACE, commands that are run from now on have the
 * functions in which the probes are, unless the user has set that variable. */
void php_probing__prepare_command(char *const *command);

#endif
