/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_VERSIONS_H
#define BRAID_RUBY_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/ruby.h"

/* Layouts of CRuby on x86-64 Linux, one row per minor version (or per range of patch levels where
 * they differ). */

/* What user space reads of threads and fibers, and the kernel half does not. `name` and `proc` are
 * distances in bytes from rb_thread_t.root_fiber, which is found by what it points to. */
struct ruby_thread_offsets {
	/* rb_thread_t.name; two places where it is behind a rb_jmpbuf_t, of one size or another:
	 * see FIBER_JMP_BUF in bpf/ruby.bpf.c */
	uint16_t name[2];
	uint16_t proc; /* rb_thread_t.invoke_arg.proc.proc lies so far before it */
	/* Of rb_fiber_t, from prev on: status, two bits; the coroutine_context. first_proc is a
	 * word before prev. */
	uint16_t fiber_status, fiber_context;
};

struct ruby_version {
	unsigned int major, minor;
	unsigned int teeny_first, teeny_last; /* of the patch levels that the row is for */
	bool verified; /* walked and compared with a real build; else computed from headers only */
	struct ruby_offsets offsets;
	struct ruby_thread_offsets threads;
};

/* NULL: none for this version. */
const struct ruby_version *ruby_version__find(unsigned int major, unsigned int minor,
					      unsigned int teeny);

#endif
