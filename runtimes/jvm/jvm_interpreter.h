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

/* Reads *@ret_bcp_words, which becomes bcp_words of struct jvm_proc_rec, from the @n bytes of
 * machine @code of an interpreter. Returns 0, or -ENOTSUP if bpf/jvm_frames.bpf.h does not
 * support the layout of the frames. */
int jvm_interpreter__read(const uint8_t *code, size_t n, uint32_t *ret_bcp_words);

/* As jvm_interpreter__read(), for a JVM whose record has the interpreter's address. A recorded
 * process lacks that machine code, so that its version decides. Returns 0, -ENOTSUP, -EFAULT,
 * -ESRCH or -ENOMEM. */
int jvm_interpreter__find(const struct jvm_vm *vm, uint32_t *ret_bcp_words);

#endif
