/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_HEAP_H
#define BRAID_RUBY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "runtimes/ruby/ruby_objects.h"

/* Told of the objects of one type, in the order of their addresses: the Ruby object, and what it
 * stands for. A negative return ends the walk and is propagated. */
typedef int (*ruby_data_fn)(void *ctx, uint64_t object, uint64_t data);

/* All objects that C has made whose type has that name, as ObjectSpace.each_object sees them.
 * `ret_is_whole`: the heap was found, and all of it was looked at. -ENOMEM. */
int ruby_heap__each(struct ruby_reader *reader, uint64_t vm, const char *type, ruby_data_fn on_data,
		    void *ctx, bool *ret_is_whole);

#endif
