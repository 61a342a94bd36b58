/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_VIRTUAL_H
#define BRAID_JVM_VIRTUAL_H

#include "runtimes/jvm/jvm_vm.h"
#include "runtimes/runtime.h"

#define JVM_VIRTUAL_NOTE_BYTES 400

/* Lists the virtual threads that are not mounted, as runtime.tasks does. `ret_note` is a
 * sentence about missing threads; "": none are missing. JDK 21 on. */
int jvm_virtual__list(const struct jvm_vm *vm, runtime_task_fn on_task, void *ctx,
		      char ret_note[JVM_VIRTUAL_NOTE_BYTES]);

#endif
