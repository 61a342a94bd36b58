/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_INTERPRETER_H
#define BRAID_JVM_INTERPRETER_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_vm.h"

/* The layout of interpreted frames. libjvm's tables do not describe it, but the interpreter's own
 * code does: TemplateInterpreterGenerator::generate_fixed_frame pushes the words of a frame, and
 * InterpreterMacroAssembler::restore_bcp loads the bytecode's address (templateInterpreter_x86.cpp,
 * interp_masm_x86.cpp). */

/* Sets *@ret_bcp_words to what struct jvm_proc_rec has as bcp_words, by the @n bytes of machine
 * @code of an interpreter. -ENOTSUP: the frames are not those that bpf/jvm_frames.bpf.h reads. */
int jvm_interpreter__read(const uint8_t *code, size_t n, uint32_t *ret_bcp_words);

/* As jvm_interpreter__read(), for a JVM whose record has the interpreter's place. A recorded
 * process lacks that code, so there the version decides. -EFAULT, -ESRCH, -ENOMEM. */
int jvm_interpreter__find(const struct jvm_vm *vm, uint32_t *ret_bcp_words);

#endif
