/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_FLAGS_H
#define BRAID_JVM_FLAGS_H

#include <stdbool.h>

#include "runtimes/jvm/jvm_vm.h"

/* Whether a boolean option (-XX:+NAME) is in force in a JVM, wherever it was set: read from its
 * memory. -ENOENT: this version has none of that name; -EFAULT; -EBADMSG; -ENOMEM. */
int jvm_flags__bool(const struct jvm_vm *vm, const char *name, bool *ret);

#endif
