/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_FLAGS_H
#define BRAID_JVM_FLAGS_H

#include <stdbool.h>

#include "runtimes/jvm/jvm_vm.h"

/* Reads from the JVM's memory if a boolean option (-XX:+NAME) is in force, wherever it was set.
 * Returns 0, -ENOENT if this version has no option of that name, -EFAULT, -EBADMSG or -ENOMEM. */
int jvm_flags__bool(const struct jvm_vm *vm, const char *name, bool *ret);

#endif
