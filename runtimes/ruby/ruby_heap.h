/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_HEAP_H
#define BRAID_RUBY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/ruby/ruby_objects.h"

/* Called for the objects of one type, by rising address, with the Ruby object and its data in C.
 * A negative return ends the walk and is propagated. */
typedef int (*ruby_data_fn)(void *ctx, uint64_t object, uint64_t data);

/* Finds all objects made in C whose type has that name, as ObjectSpace.each_object does. Sets
 * `ret_is_whole` if the heap was found, and all of it was read. Returns 0, -ENOMEM, or the value
 * with which @on_data ended the walk. */
int ruby_heap__each(struct ruby_reader *reader, uint64_t vm, const char *type, ruby_data_fn on_data,
		    void *ctx, bool *ret_is_whole);

#endif
