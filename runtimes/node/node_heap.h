/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_HEAP_H
#define BRAID_NODE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtimes/common/allowance.h"
#include "runtimes/node/node_layout.h"

/* Objects in the heap of a process that continues to run: any read may return garbage. An object is
 * trusted only if its Map has the expected type. Objects are tagged words, as in V8. */
struct node_heap {
	uint32_t pid;
	const struct node_layout *layout;
	struct allowance *allowance; /* charged for all reads */
};

/* Reads the word at the offset. Returns 0, or -EFAULT, also if @object is no object. */
int node_heap__word(const struct node_heap *heap, uint64_t object, uint32_t offset, uint64_t *ret);

/* Reads @size bytes at the offset. Returns 0 or -EFAULT. */
int node_heap__bytes(const struct node_heap *heap, uint64_t object, uint32_t offset, void *to,
		     size_t size);

/* Returns true if the word is an object of this type. */
bool node_heap__is(const struct node_heap *heap, uint64_t object, uint16_t type);
/* Reads the object's type. Returns 0 or -EFAULT. */
int node_heap__type(const struct node_heap *heap, uint64_t object, uint16_t *ret);

/* The characters of a string, part by part in their order, each `width` bytes (1: Latin-1, 2:
 * UTF-16). A return value other than 0 ends the string. */
typedef int (*node_chars_fn)(void *ctx, const void *chars, size_t n, unsigned int width);

/* Passes the characters of a string to `on_chars`. Returns 0; -EBADMSG if the object is no string,
 * has more than `max` characters, or too many parts; -EFAULT; -ENOMEM; or the error of `on_chars`.
 */
int node_heap__chars(const struct node_heap *heap, uint64_t string, size_t max,
		     node_chars_fn on_chars, void *ctx);

/* Reads a string as UTF-8, owned by the caller; a long one is truncated and ends with "...".
 * Returns errors as above, with `*ret` NULL. */
int node_heap__text(const struct node_heap *heap, uint64_t string, char **ret);

/* Reads an array's elements of `size` bytes, owned by the caller, at most `max`; `*ret_n` may be 0.
 * Returns 0; -EBADMSG if the object is no array, or a longer one; -EFAULT; -ENOMEM. All kinds of
 * arrays have the same layout, so the kind is not checked. */
int node_heap__array(const struct node_heap *heap, uint64_t array, size_t size, size_t max,
		     void **ret, size_t *ret_n);

#endif
