/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_OBJECTS_H
#define BRAID_RUBY_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/ruby.h"
#include "runtimes/ruby/ruby_versions.h"

/* Ruby's objects in the memory of a process, by their addresses; 0: none. The process is not
 * stopped, so that memory may change while it is read. Inconsistent objects are treated as
 * missing. */
struct ruby_reader {
	uint32_t pid;
	struct ruby_proc_rec rec; /* addresses and offsets of this process */
	struct ruby_thread_offsets threads;
	uint64_t vm_at;	  /* address of ruby_current_vm_ptr, or of a pointer to that; 0: unknown */
	uint32_t root_at; /* offset of root_fiber in rb_thread_t; 0: not found yet */
	unsigned reads_left; /* limit for reads of a process that changes all the time */
};

/* Returns the word at @at; 0: unreadable, or the word is 0. */
uint64_t ruby_reader__word(struct ruby_reader *reader, uint64_t at);
bool ruby_reader__read(struct ruby_reader *reader, uint64_t at, void *to, size_t size);

/* Returns true if the value is the address of an object. Other values are immediate. */
bool ruby_value__is_object(uint64_t value);

/* Returns a String's text as UTF-8, owned; NULL: not a String, or out of memory. */
char *ruby_string__dup(struct ruby_reader *reader, uint64_t value);

/* Returns the data of an object made in C if its type has that name ("proc", "fiber"), else 0. */
uint64_t ruby_data__get(struct ruby_reader *reader, uint64_t value, const char *type);

/* Returns the place of a Proc's block, "file.rb:12", owned. `full`: with the file's path as Ruby
 * stores it. NULL: no block (methods in C), or out of memory. */
char *ruby_proc__place(struct ruby_reader *reader, uint64_t value, bool full);

#endif
