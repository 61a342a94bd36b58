/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_BUILD_H
#define BRAID_RUBY_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/common/x86_code.h"
#include "runtimes/runtime.h"

/* Addresses in one build of CRuby, found by its symbols and its machine code. They are link-time
 * addresses. Works with .dynsym alone. */

/* Returns true if the file defines CRuby itself: libruby, a ruby without one, or a program that
 * embeds it. */
bool ruby_build__is_ruby(const struct elf_file *file);

/* Returns the name of another implementation that the file is a part of; NULL: none was
 * detected. JRuby is Java, and is not detected. */
const char *ruby_build__other(const struct elf_file *file);

struct ruby_number {
	unsigned int major, minor, teeny;
};

/* Reads the version from the text ruby_version. Returns 0, or -ENOENT if there is no such
 * symbol, or its text is not of the form "3.1.2". */
int ruby_build__version(const struct elf_file *file, struct ruby_number *ret);

/* The place of a thread's pointer to its rb_execution_context_t: ruby_current_ec. */
struct ruby_state {
	/* address of the pthread key (an int) for the rb_thread_t, which 2.7 has instead; 0: a
	 * later version */
	uint64_t key_vaddr;
	struct x86_tls tls;
};

/* Finds that place. Returns 0, or -ENOENT if it is not found. Only an executable has FIXED ones. */
int ruby_build__state(const struct elf_file *file, const struct ruby_number *number,
		      struct ruby_state *ret);

/* Finds ruby_global_symbols, the table of all symbols' names. Returns 0, or -ENOENT if it is not
 * found. */
int ruby_build__symbols(const struct elf_file *file, uint64_t *ret_vaddr);

/* Finds ruby_current_vm_ptr, or a pointer to it (in the table of a library's own addresses).
 * Returns 0, or -ENOENT if it is not found. */
int ruby_build__vm(const struct elf_file *file, uint64_t *ret_vaddr);

/* Finds rb_zjit_entry, which is 0 while ZJIT is off. Returns 0, or -ENOENT if the build has no
 * ZJIT. */
int ruby_build__zjit(const struct elf_file *file, uint64_t *ret_vaddr);

/* Finds the code of rb_vm_exec, of vm_exec_core and vm_exec_loop if these are separate
 * functions, and of their cold parts. rb_vm_exec is the first one. Returns the number of ranges;
 * 0 if rb_vm_exec is not found, which needs frame descriptions. */
#define RUBY_LOOPS_MAX 8
size_t ruby_build__loops(const struct elf_file *file, struct runtime_range ret[RUBY_LOOPS_MAX]);

#endif
