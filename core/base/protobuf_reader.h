/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROTOBUF_READER_H
#define BRAID_PROTOBUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the fields of an encoded message, which is untrusted. */
struct protobuf_reader {
	const uint8_t *at, *end;
};

struct protobuf_field {
	uint32_t number;
	bool has_bytes;	      /* `bytes`: a text, a message, or bytes; else `value` */
	uint64_t value;	      /* integer, or the bits of a number of fixed size */
	const uint8_t *bytes; /* within the message */
	size_t len;
};

/* Reads the next field. Returns false at the end of the message, and at its first error. */
bool protobuf_reader__next(struct protobuf_reader *reader, struct protobuf_field *ret);

/* Returns a reader of the message in the field. */
static inline struct protobuf_reader protobuf_field__open(const struct protobuf_field *field)
{
	return (struct protobuf_reader) { field->bytes, field->bytes + field->len };
}

#endif
