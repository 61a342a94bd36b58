/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_HEAP_H
#define BRAID_NODE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/common/allowance.h"
#include "runtimes/node/node_layout.h"

/* Objects in the heap of a process, which runs on meanwhile: anything may come out, and nothing is
 * believed but by the type that an object's Map tells. Objects are words as V8 has them: tagged. */
struct node_heap {
	uint32_t pid;
	const struct node_layout *layout;
	struct allowance *allowance; /* which all reads take from */
};

/* The word at the offset. 0 or -EFAULT; also for what is no object. */
int node_heap__word(const struct node_heap *heap, uint64_t object, uint32_t offset, uint64_t *ret);

/* Bytes of it. 0 or -EFAULT. */
int node_heap__bytes(const struct node_heap *heap, uint64_t object, uint32_t offset, void *to,
		     size_t size);

/* Is it an object of this type? */
bool node_heap__is(const struct node_heap *heap, uint64_t object, uint16_t type);
/* The type. 0 or -EFAULT. */
int node_heap__type(const struct node_heap *heap, uint64_t object, uint16_t *ret);

/* The characters of a string, part by part in their order, each `width` bytes (1: Latin-1, 2:
 * UTF-16); not 0 ends it. */
typedef int (*node_chars_fn)(void *ctx, const void *chars, size_t n, unsigned int width);

/* 0; -EBADMSG: it is no string, one of more than `max` characters, or made of too many others;
 * -EFAULT, -ENOMEM; or what `on_chars` returned. */
int node_heap__chars(const struct node_heap *heap, uint64_t string, size_t max,
		     node_chars_fn on_chars, void *ctx);

/* As UTF-8, owned; of a long string its beginning, and "...". As above; `*ret` is NULL then. */
int node_heap__text(const struct node_heap *heap, uint64_t string, char **ret);

/* Of an array: its elements of `size` bytes, owned, at most `max`; `*ret_n` of them, maybe none.
 * 0; -EBADMSG: it is no array, or a longer one; -EFAULT, -ENOMEM. What kind of array it is, nobody
 * asks: all are laid out alike. */
int node_heap__array(const struct node_heap *heap, uint64_t array, size_t size, size_t max,
		     void **ret, size_t *ret_n);

#endif
