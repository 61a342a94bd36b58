/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_BUILD_H
#define BRAID_RUBY_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/common/x86_code.h"
#include "runtimes/runtime.h"

/* What one build of CRuby has where, told from its symbols and its machine code. Addresses are
 * link-time ones. Works with .dynsym alone. */

/* Does the file define CRuby itself: libruby, a ruby without one, or a program that embeds it? */
bool ruby_build__is_ruby(const struct elf_file *file);

/* Name of the implementation other than CRuby that the file is a part of; NULL: of none that can be
 * told. JRuby cannot be: it is Java. */
const char *ruby_build__other(const struct elf_file *file);

struct ruby_number {
	unsigned int major, minor, teeny;
};

/* From the text ruby_version. 0, or -ENOENT: no such symbol, or not of the form "3.1.2". */
int ruby_build__version(const struct elf_file *file, struct ruby_number *ret);

/* Where a thread has the pointer to its rb_execution_context_t: ruby_current_ec. */
struct ruby_state {
	/* 2.7: not that, but its rb_thread_t is kept, under the pthread key that is an int at this
	 * address; 0: not so */
	uint64_t key_vaddr;
	struct x86_tls tls;
};

/* 0, or -ENOENT: cannot be told. Only an executable has FIXED ones. */
int ruby_build__state(const struct elf_file *file, const struct ruby_number *number,
		      struct ruby_state *ret);

/* ruby_global_symbols, the table of all symbols' names. 0, or -ENOENT: cannot be told. */
int ruby_build__symbols(const struct elf_file *file, uint64_t *ret_vaddr);

/* ruby_current_vm_ptr, or a pointer to it (in the table of a library's own addresses). 0, or
 * -ENOENT: cannot be told. */
int ruby_build__vm(const struct elf_file *file, uint64_t *ret_vaddr);

/* rb_zjit_entry, which is 0 while ZJIT is off. 0, or -ENOENT: the build has no ZJIT. */
int ruby_build__zjit(const struct elf_file *file, uint64_t *ret_vaddr);

/* Code of rb_vm_exec, of vm_exec_core and vm_exec_loop where they are functions of their own, and
 * of their cold parts. rb_vm_exec is the first one. Returns the number of ranges, 0 if rb_vm_exec
 * is not found (there must be frame descriptions for that). */
#define RUBY_LOOPS_MAX 8
size_t ruby_build__loops(const struct elf_file *file, struct runtime_range ret[RUBY_LOOPS_MAX]);

#endif
