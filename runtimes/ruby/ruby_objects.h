/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_OBJECTS_H
#define BRAID_RUBY_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/ruby.h"
#include "runtimes/ruby/ruby_versions.h"

/* Ruby's objects in the memory of a process, by their addresses; 0 is none. Nothing is stopped, so
 * all of it may change while it is read: what makes no sense is not there. */
struct ruby_reader {
	uint32_t pid;
	struct ruby_proc_rec rec; /* where this process has its state */
	struct ruby_thread_offsets threads;
	uint64_t vm_at;	  /* address of ruby_current_vm_ptr, or of a pointer to that; 0: unknown */
	uint32_t root_at; /* of rb_thread_t: root_fiber; 0: not seen yet */
	unsigned reads_left; /* bounds what is read of a process that changes all the time */
};

/* 0: not readable, or the word is 0. */
uint64_t ruby_reader__word(struct ruby_reader *reader, uint64_t at);
bool ruby_reader__read(struct ruby_reader *reader, uint64_t at, void *to, size_t size);

/* Is there an object at that value? Others are what they say. */
bool ruby_value__is_object(uint64_t value);

/* A String's text as UTF-8, owned; NULL: it is none, or out of memory. */
char *ruby_string__dup(struct ruby_reader *reader, uint64_t value);

/* What the object, which C has made, stands for, if its type has that name ("proc", "fiber"); 0: it
 * is no such one. */
uint64_t ruby_data__get(struct ruby_reader *reader, uint64_t value, const char *type);

/* "file.rb:12", where the block is that the Proc was made of; owned. `full`: with the file's path
 * as Ruby has it. NULL: it has none (methods in C), or out of memory. */
char *ruby_proc__place(struct ruby_reader *reader, uint64_t value, bool full);

#endif
