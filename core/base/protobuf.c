// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/protobuf.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* wire types of fields */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void append(struct protobuf *message, const void *data, size_t len)
{
	if (message->failed ||
	    array__reserve(&message->data, &message->cap, message->len + len, 1)) {
		message->failed = true;
		return;
	}
	if (len)
		memcpy(message->data + message->len, data, len);
	message->len += len;
}

void protobuf__varint(struct protobuf *message, uint64_t value)
{
	unsigned char digits[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		digits[n++] = value | 0x80;
	digits[n++] = value;
	append(message, digits, n);
}

void protobuf__number(struct protobuf *message, int field, uint64_t value)
{
	if (!value)
		return;
	protobuf__varint(message, field << 3 | WIRE_VARINT);
	protobuf__varint(message, value);
}

void protobuf__fixed64(struct protobuf *message, int field, uint64_t value)
{
	uint64_t little = htole64(value);

	protobuf__varint(message, field << 3 | WIRE_FIXED64);
	append(message, &little, sizeof(little));
}

void protobuf__text(struct protobuf *message, int field, const void *text, size_t len)
{
	protobuf__varint(message, field << 3 | WIRE_BYTES);
	protobuf__varint(message, len);
	append(message, text, len);
}

void protobuf__submessage(struct protobuf *message, int field, struct protobuf *submessage)
{
	protobuf__text(message, field, submessage->data, submessage->len);
	message->failed |= submessage->failed;
	submessage->len = 0;
}

void protobuf__append(struct protobuf *message, const struct protobuf *more)
{
	append(message, more->data, more->len);
	message->failed |= more->failed;
}

void protobuf__done(struct protobuf *message)
{
	free(message->data);
	*message = (struct protobuf) { 0 };
}
