// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/code_object_text.h"

/* include/ruby/internal/value_type.h, fl_type.h, core/{rstring,rarray,rtypeddata}.h; in 2.7
 * ruby/ruby.h. Equal from 2.7 to 4.0, except for the type in RTypedData, which 4.0 moved by a
 * word. */
#define TYPE_MASK   0x1f
#define TYPE_STRING 0x05
#define TYPE_ARRAY  0x07
#define TYPE_DATA   0x0c
#define NOEMBED	    0x2000 /* for strings; for arrays: embedded */
#define LENGTH_BITS 14	   /* in the flags, for embedded strings without a length field */
#define ARRAY_FIRST 16	   /* first element of embedded arrays */
#define ARRAY_AT    32	   /* pointer to the elements of other arrays */
#define DATA_WORDS  5
#define DATA_AT	    4 /* index of the word with the data */

/* vm_core.h (struct rb_block, struct rb_iseq_constant_body); equal from 2.7 to 4.0 */
#define BLOCK_CODE   16 /* iseq of a captured block */
#define BLOCK_TYPE   24
#define BLOCK_ISEQ   0
#define BLOCK_PROC   3 /* another Proc, at 0 */
#define ISEQ_BODY    16
#define BODY_PATHOBJ 64

#define PROCS_MAX 8
#define TEXT_MAX  1024

bool ruby_reader__read(struct ruby_reader *reader, uint64_t at, void *to, size_t size)
{
	if (!reader->reads_left)
		return false;
	reader->reads_left--;
	return procfs__read_memory(reader->pid, at, to, size);
}

uint64_t ruby_reader__word(struct ruby_reader *reader, uint64_t at)
{
	uint64_t word;

	return ruby_reader__read(reader, at, &word, sizeof(word)) ? word : 0;
}

bool ruby_value__is_object(uint64_t value)
{
	return value > 8 && !(value & 7);
}

static uint64_t type_of(struct ruby_reader *reader, uint64_t value)
{
	return ruby_value__is_object(value) ? ruby_reader__word(reader, value) & TYPE_MASK : 0;
}

char *ruby_string__dup(struct ruby_reader *reader, uint64_t value)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t words[4], from, length; /* flags, class, length, pointer */
	char text[TEXT_MAX];

	if (!ruby_value__is_object(value) ||
	    !ruby_reader__read(reader, value, words, sizeof(words)) ||
	    (words[0] & TYPE_MASK) != TYPE_STRING)
		return NULL;
	from = words[3];
	length = words[2];
	if (!(words[0] & NOEMBED)) {
		from = value + offsets->string_embedded;
		if (!offsets->string_has_length)
			length = words[0] >> LENGTH_BITS & 31;
	}
	if (!ruby_reader__read(reader, from, text, min_of(length, sizeof(text))))
		return NULL;
	return code_object_text__dup(text, sizeof(text), CODE_OBJECT_TEXT_UTF8, length);
}

/* Returns true if @type is a rb_data_type_t with that name. */
static bool is_type(struct ruby_reader *reader, uint64_t type, const char *name)
{
	char text[16] = "";
	size_t size = min_of(strlen(name) + 1, sizeof(text));

	return ruby_value__is_object(type) &&
	       ruby_reader__read(reader, ruby_reader__word(reader, type), text, size) &&
	       strncmp(text, name, size) == 0;
}

uint64_t ruby_data__get(struct ruby_reader *reader, uint64_t value, const char *type)
{
	uint64_t words[DATA_WORDS];

	if (!ruby_value__is_object(value) ||
	    !ruby_reader__read(reader, value, words, sizeof(words)) ||
	    (words[0] & TYPE_MASK) != TYPE_DATA)
		return 0;
	return is_type(reader, words[2], type) || is_type(reader, words[3] & ~(uint64_t)7, type)
		       ? words[DATA_AT]
		       : 0;
}

/* --- procs --- */

/* Reads the path of a path object: a String, or an array of path and real path. */
static char *read_path(struct ruby_reader *reader, uint64_t value)
{
	uint64_t first = value + ARRAY_FIRST;

	if (type_of(reader, value) != TYPE_ARRAY)
		return ruby_string__dup(reader, value);
	if (!(ruby_reader__word(reader, value) & NOEMBED))
		first = ruby_reader__word(reader, value + ARRAY_AT);
	return ruby_string__dup(reader, ruby_reader__word(reader, first));
}

static char *iseq__place(struct ruby_reader *reader, uint64_t iseq, bool full)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t body = ruby_reader__word(reader, iseq + ISEQ_BODY), line;
	char *path =
		body ? read_path(reader, ruby_reader__word(reader, body + BODY_PATHOBJ)) : NULL;
	char *slash = path && !full ? strrchr(path, '/') : NULL, *place = NULL;

	if (!path)
		return NULL;
	line = ruby_reader__word(reader, body + offsets->body_first_line);
	line = offsets->first_line_is_value ? line >> 1 : line;
	if (asprintf(&place, "%s:%d", slash ? slash + 1 : path, (int32_t)line) < 0)
		place = NULL;
	free(path);
	return place;
}

char *ruby_proc__place(struct ruby_reader *reader, uint64_t value, bool full)
{
	uint64_t block = 0;

	for (int i = 0; i < PROCS_MAX; i++) {
		block = ruby_data__get(reader, value, "proc");
		if (!block || (uint32_t)ruby_reader__word(reader, block + BLOCK_TYPE) != BLOCK_PROC)
			break;
		value = ruby_reader__word(reader, block);
	}
	if (!block || (uint32_t)ruby_reader__word(reader, block + BLOCK_TYPE) != BLOCK_ISEQ)
		return NULL;
	return iseq__place(reader, ruby_reader__word(reader, block + BLOCK_CODE), full);
}
