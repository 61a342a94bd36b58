/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_BUILD_H
#define BRAID_PYTHON_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/python.h"
#include "core/elf/elf_file.h"
#include "runtimes/common/x86_code.h"
#include "runtimes/runtime.h"

/* Facts about a CPython build that only its machine code contains. No disassembler is used: a few
 * instruction forms are searched at each byte, and the addresses in them must be valid. */

/* PY_VERSION_HEX: major, minor, micro (8 bits each), level and serial (4 each). From Py_Version,
 * and before 3.11 from the string that Py_GetVersion uses. 0 or -ENOENT. */
int python_build__version(const struct elf_file *file, uint32_t *ret_hex);

#define PYTHON_MAJOR(hex)  ((hex) >> 24)
#define PYTHON_MINOR(hex)  ((hex) >> 16 & 0xff)
#define PYTHON_MICRO(hex)  ((hex) >> 8 & 0xff)
#define PYTHON_LEVEL(hex)  ((hex) >> 4 & 0xf)
#define PYTHON_LEVEL_FINAL 0xf

/* "3.10.0rc1" */
void python_build__format(uint32_t hex, char *to, size_t size);

/* Finds the link-time address of the thread key that PyGILState_GetThisThreadState uses: a Py_tss_t
 * in _PyRuntime (at `runtime`, `size` bytes), or a plain int in 3.6 (`runtime` 0). `expected` is
 * preferred if the code refers to it. Returns 0, or -ENOENT if the key is not certain. */
int python_build__key(const struct elf_file *file, uint64_t runtime, uint64_t size,
		      uint64_t expected, uint64_t *ret_vaddr);

/* From 3.15 on PyGILState_GetThisThreadState reads a thread-local variable instead. 0 or -ENOENT.
 */
int python_build__tls(const struct elf_file *file, struct x86_tls *ret);

/* The ranges of the interpreter loop, _PyEval_EvalFrameDefault: the range of its symbol, and the
 * cold part that the compiler may have put elsewhere. Returns their number, at most 2; 0: none. */
size_t python_build__loops(const struct elf_file *file, struct runtime_range ret[PYTHON_LOOPS_MAX]);

/* Returns true if the loop only calls the functions of the instructions, each of which jumps to the
 * function of the next instruction (--with-tail-call-interp). Uses the file's own symbols; false
 * without symbols. */
bool python_build__tail_calls(const struct elf_file *file);

/* Has it a compiler (--enable-experimental-jit)? */
bool python_build__compiles(const struct elf_file *file);

#endif
