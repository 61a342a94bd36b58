// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/code_object_text.h"

#define TEXT_CHARS_MAX	   400	     /* characters of a name */
#define STRING_BLOCK_BYTES 65536     /* bytes of a string that one read covers */
#define STRINGS_MAX	   65536     /* parts of one string */
#define NESTED_MAX	   64	     /* strings whose second half is still to be read */
#define NAME_CHARS_MAX	   (1 << 20) /* a longer name is not read at all */

static bool is_object(uint64_t word)
{
	return (word & NODE_TAG_MASK) == NODE_TAG;
}

static bool read_memory(const struct node_heap *heap, uint64_t address, void *to, size_t size)
{
	return allowance__read(heap->allowance, size) &&
	       procfs__read_memory(heap->pid, address, to, size);
}

int node_heap__bytes(const struct node_heap *heap, uint64_t object, uint32_t offset, void *to,
		     size_t size)
{
	return is_object(object) && read_memory(heap, object - NODE_TAG + offset, to, size)
		       ? 0
		       : -EFAULT;
}

int node_heap__word(const struct node_heap *heap, uint64_t object, uint32_t offset, uint64_t *ret)
{
	return node_heap__bytes(heap, object, offset, ret, sizeof(*ret));
}

int node_heap__type(const struct node_heap *heap, uint64_t object, uint16_t *ret)
{
	uint64_t map;

	return node_heap__word(heap, object, 0, &map) ||
			       node_heap__bytes(heap, map, heap->layout->rec.map_type, ret,
						sizeof(*ret))
		       ? -EFAULT
		       : 0;
}

bool node_heap__is(const struct node_heap *heap, uint64_t object, uint16_t type)
{
	uint16_t its_type;

	return !node_heap__type(heap, object, &its_type) && its_type == type;
}

/* --- strings --- */

/* A part of a string that is still to be read: characters from an index on. */
struct part {
	uint64_t string;
	uint32_t from, n;
};

struct reading {
	const struct node_heap *heap;
	node_chars_fn on_chars;
	void *ctx;
	struct part parts[NESTED_MAX]; /* a stack: the part to be read next is the last */
	size_t n_parts, n_strings;
};

static int push(struct reading *reading, uint64_t string, uint32_t from, uint32_t n)
{
	if (!n)
		return 0;
	if (reading->n_parts == NESTED_MAX)
		return -EBADMSG;
	reading->parts[reading->n_parts++] = (struct part) { string, from, n };
	return 0;
}

static int length_of(const struct node_heap *heap, uint64_t string, uint32_t *ret)
{
	return node_heap__bytes(heap, string, heap->layout->rec.text.string_length, ret,
				sizeof(*ret));
}

/* Passes a part of a string to the callback. @address: first character of the whole string. */
static int give_chars(struct reading *reading, uint64_t address, const struct part *part,
		      unsigned int width)
{
	static char buf[STRING_BLOCK_BYTES];
	uint64_t at = address + (uint64_t)part->from * width, left = (uint64_t)part->n * width;
	int rc = 0;

	while (!rc && left) {
		size_t size = min_of(left, (uint64_t)sizeof(buf));

		if (!read_memory(reading->heap, at, buf, size))
			return -EFAULT;
		rc = reading->on_chars(reading->ctx, buf, size / width, width);
		at += size;
		left -= size;
	}
	return rc;
}

/* Pushes both halves of a string that consists of two strings. */
static int push_cons(struct reading *reading, const struct part *part)
{
	const struct node_layout *layout = reading->heap->layout;
	uint64_t first, second;
	uint32_t len, in_first;
	int rc;

	if (node_heap__word(reading->heap, part->string, layout->rec.text.cons_first, &first) ||
	    node_heap__word(reading->heap, part->string, layout->rec.text.cons_second, &second) ||
	    length_of(reading->heap, first, &len))
		return -EFAULT;
	in_first = part->from < len ? min_of(part->n, len - part->from) : 0;
	rc = push(reading, second, in_first ? 0 : part->from - len, part->n - in_first);
	return rc ? rc : push(reading, first, part->from, in_first);
}

static int push_sliced(struct reading *reading, const struct part *part)
{
	const struct node_layout *layout = reading->heap->layout;
	uint64_t parent, offset;

	if (node_heap__word(reading->heap, part->string, layout->sliced_parent, &parent) ||
	    node_heap__word(reading->heap, part->string, layout->sliced_offset, &offset))
		return -EFAULT;
	return push(reading, parent, part->from + NODE_SMI(offset), part->n);
}

static int give_part(struct reading *reading, const struct part *part)
{
	const struct node_layout *layout = reading->heap->layout;
	uint64_t word;
	uint32_t len;
	uint16_t type;
	unsigned int width;

	if (node_heap__type(reading->heap, part->string, &type) ||
	    length_of(reading->heap, part->string, &len))
		return -EFAULT;
	if (type >= layout->rec.text.first_nonstring || !fits_in(part->from, part->n, len))
		return -EBADMSG;
	width = type & layout->rec.text.one_byte ? 1 : 2;
	type &= layout->rec.text.representation_mask;
	if (!type)
		return give_chars(reading, part->string - NODE_TAG + layout->rec.text.string_chars,
				  part, width);
	if (type == layout->rec.text.cons)
		return push_cons(reading, part);
	if (type == layout->sliced)
		return push_sliced(reading, part);
	if (type == layout->rec.text.thin)
		return node_heap__word(reading->heap, part->string, layout->rec.text.thin_actual,
				       &word)
			       ? -EFAULT
			       : push(reading, word, part->from, part->n);
	/* An external string contains the address of its characters, unless it is an uncached one
	 * (ExternalString::resource_data, string.tq). */
	if (type == layout->external)
		return node_heap__word(reading->heap, part->string, layout->external_resource + 8,
				       &word)
			       ? -EFAULT
			       : give_chars(reading, word, part, width);
	return -EBADMSG;
}

static int read_string(const struct node_heap *heap, uint64_t string, uint32_t n,
		       node_chars_fn on_chars, void *ctx)
{
	struct reading reading = { .heap = heap, .on_chars = on_chars, .ctx = ctx };
	struct part part;
	int rc = push(&reading, string, 0, n);

	while (!rc && reading.n_parts) {
		part = reading.parts[--reading.n_parts];
		rc = ++reading.n_strings > STRINGS_MAX ? -EBADMSG : give_part(&reading, &part);
	}
	return rc;
}

/* Checks that @string is a string: in another object, the word of the length may be anything. */
static int check_string(const struct node_heap *heap, uint64_t string, size_t max, uint32_t *ret_n)
{
	uint16_t type;

	if (node_heap__type(heap, string, &type) || length_of(heap, string, ret_n))
		return -EFAULT;
	return type < heap->layout->rec.text.first_nonstring && *ret_n <= max ? 0 : -EBADMSG;
}

int node_heap__chars(const struct node_heap *heap, uint64_t string, size_t max,
		     node_chars_fn on_chars, void *ctx)
{
	uint32_t n;
	int rc = check_string(heap, string, max, &n);

	return rc ? rc : read_string(heap, string, n, on_chars, ctx);
}

struct text {
	uint16_t chars[TEXT_CHARS_MAX];
	size_t n;
};

static int add_chars(void *ctx, const void *chars, size_t n, unsigned int width)
{
	struct text *text = ctx;

	for (size_t i = 0; i < n && text->n < TEXT_CHARS_MAX; i++)
		text->chars[text->n++] =
			width == 1 ? ((const uint8_t *)chars)[i] : ((const uint16_t *)chars)[i];
	return 0;
}

int node_heap__text(const struct node_heap *heap, uint64_t string, char **ret)
{
	struct text text = {};
	uint32_t n;
	int rc = check_string(heap, string, NAME_CHARS_MAX, &n);

	*ret = NULL;
	if (!rc)
		rc = read_string(heap, string, min_of(n, (uint32_t)TEXT_CHARS_MAX), add_chars,
				 &text);
	if (rc)
		return rc;
	*ret = code_object_text__dup((const char *)text.chars, text.n * sizeof(text.chars[0]),
				     sizeof(text.chars[0]), n);
	return *ret ? 0 : -ENOMEM;
}

/* --- arrays --- */

int node_heap__array(const struct node_heap *heap, uint64_t array, size_t size, size_t max,
		     void **ret, size_t *ret_n)
{
	uint64_t length;
	void *elements;
	size_t n;

	if (node_heap__word(heap, array, heap->layout->array_length, &length))
		return -EFAULT;
	n = NODE_SMI(length);
	if (!NODE_IS_SMI(length) || (uint32_t)length || n > max)
		return -EBADMSG;
	elements = malloc(max_of(n * size, (size_t)1));
	if (!elements)
		return -ENOMEM;
	if (n && node_heap__bytes(heap, array, heap->layout->array_data, elements, n * size)) {
		free(elements);
		return -EFAULT;
	}
	*ret = elements;
	*ret_n = n;
	return 0;
}
