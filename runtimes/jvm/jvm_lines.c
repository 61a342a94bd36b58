// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_lines.h"

#include <errno.h>
#include <stdlib.h>

#define TABLE_END  0
#define TABLE_LONG 0xff	  /* two numbers follow */
#define LINE_BITS  3	  /* bits for the line in a byte with both steps */
#define U2_MAX	   0xffff /* limit of bytecodes, lines and entries in class files */

/* Advances @at to the next entry. Returns 1, 0 at the end of the table, or -EBADMSG. */
static int next_line(struct jvm_stream *stream, struct jvm_line *at)
{
	uint8_t byte = jvm_stream__byte(stream);

	if (byte == TABLE_LONG) {
		at->bci += (uint32_t)jvm_stream__i32(stream);
		at->line += (uint32_t)jvm_stream__i32(stream);
	} else {
		at->bci += byte >> LINE_BITS;
		at->line += byte & ((1 << LINE_BITS) - 1);
	}
	if (stream->failed)
		return -EBADMSG;
	if (byte == TABLE_END)
		return 0;
	return at->bci > U2_MAX || at->line > U2_MAX ? -EBADMSG : 1;
}

int jvm_lines__decode(struct jvm_stream *stream, struct jvm_method_lines **ret)
{
	struct jvm_stream counting = *stream;
	struct jvm_line at = {};
	struct jvm_method_lines *lines;
	size_t n = 0;
	int rc;

	while ((rc = next_line(&counting, &at)) > 0)
		n++;
	if (rc || n > U2_MAX)
		return -EBADMSG;
	*ret = NULL;
	if (!n)
		return 0;
	lines = malloc(sizeof(*lines) + n * sizeof(*lines->list));
	if (!lines)
		return -ENOMEM;
	at = (struct jvm_line) {};
	lines->n = n;
	for (size_t i = 0; i < n && next_line(stream, &at) > 0; i++)
		lines->list[i] = at;
	*ret = lines;
	return 0;
}

/* As Method::line_number_from_bci: entries need not be sorted. */
uint32_t jvm_lines__find(const struct jvm_method_lines *lines, uint32_t bci)
{
	const struct jvm_line *best = NULL;

	if (bci > U2_MAX)
		return 0;

	for (size_t i = 0; lines && i < lines->n; i++) {
		const struct jvm_line *line = &lines->list[i];

		if (line->bci == bci)
			return line->line;
		if (line->bci < bci && (!best || line->bci >= best->bci))
			best = line;
	}
	return best ? best->line : 0;
}
