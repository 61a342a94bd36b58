/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROTOBUF_H
#define BRAID_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Encodes messages by https://protobuf.dev/programming-guides/encoding/, as far as braid's output
 * needs. A zeroed struct is an empty message. A failed allocation sets `failed` permanently;
 * callers check it at the end. */
struct protobuf {
	unsigned char *data;
	size_t len, cap;
	bool failed;
};

/* Appends one element of a packed list, whose message is a separate struct. */
void protobuf__varint(struct protobuf *message, uint64_t value);

/* Appends an integer field. Appends nothing if @value is 0, the default of a missing field. */
void protobuf__number(struct protobuf *message, int field, uint64_t value);

/* Appends an integer field of eight bytes, also if @value is 0. */
void protobuf__fixed64(struct protobuf *message, int field, uint64_t value);

void protobuf__text(struct protobuf *message, int field, const void *text, size_t len);

/* Appends @submessage, a message or a packed list, as a field of @message, and empties @submessage.
 */
void protobuf__submessage(struct protobuf *message, int field, struct protobuf *submessage);

/* Appends the fields of @more. */
void protobuf__append(struct protobuf *message, const struct protobuf *more);

void protobuf__done(struct protobuf *message); /* leaves an empty message */

#endif
