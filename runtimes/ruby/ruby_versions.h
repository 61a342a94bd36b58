/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_VERSIONS_H
#define BRAID_RUBY_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/ruby.h"

/* Layouts of CRuby on x86-64 Linux: one row per minor version, or per range of patch levels
 * where these differ. */

/* Offsets that only user space needs, for threads and fibers. `name` is a distance in bytes
 * from rb_thread_t.root_fiber, which is found by the object it points to. */
struct ruby_thread_offsets {
	/* rb_thread_t.name. There are two places if it is after a rb_jmpbuf_t, of one size or
	 * another: see FIBER_JMP_BUF in bpf/ruby.bpf.c */
	uint16_t name[2];
	uint16_t proc; /* bytes from rb_thread_t.invoke_arg.proc.proc up to root_fiber */
	/* Distances in rb_fiber_t from prev: the status, two bits; the coroutine_context.
	 * first_proc is a word before prev. */
	uint16_t fiber_status, fiber_context;
};

struct ruby_version {
	unsigned int major, minor;
	unsigned int teeny_first, teeny_last; /* patch levels that the row serves */
	bool verified; /* compared with a real build; else computed from headers only */
	struct ruby_offsets offsets;
	struct ruby_thread_offsets threads;
};

/* Returns the row for a version; NULL: none. */
const struct ruby_version *ruby_version__find(unsigned int major, unsigned int minor,
					      unsigned int teeny);

#endif
