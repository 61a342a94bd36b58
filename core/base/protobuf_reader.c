// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/protobuf_reader.h"

#include <endian.h>
#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

#define VARINT_BYTES_MAX 10

static bool read_varint(struct protobuf_reader *reader, uint64_t *ret)
{
	*ret = 0;
	for (unsigned i = 0; i < VARINT_BYTES_MAX && reader->at < reader->end; i++) {
		uint8_t byte = *reader->at++;

		*ret |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool read_bytes(struct protobuf_reader *reader, uint64_t size, struct protobuf_field *ret)
{
	if (size > (uint64_t)(reader->end - reader->at))
		return false;
	ret->bytes = reader->at;
	ret->len = size;
	reader->at += size;
	return true;
}

static bool read_fixed(struct protobuf_reader *reader, size_t size, struct protobuf_field *ret)
{
	uint64_t value = 0;

	if (!read_bytes(reader, size, ret))
		return false;
	memcpy(&value, ret->bytes, size);
	ret->value = le64toh(value);
	return true;
}

bool protobuf_reader__next(struct protobuf_reader *reader, struct protobuf_field *ret)
{
	uint64_t key, size;

	*ret = (struct protobuf_field) {};
	if (reader->at >= reader->end || !read_varint(reader, &key))
		return false;
	ret->number = key >> 3;
	switch (key & 7) {
	case WIRE_VARINT:
		return read_varint(reader, &ret->value);
	case WIRE_FIXED64:
		return read_fixed(reader, 8, ret);
	case WIRE_FIXED32:
		return read_fixed(reader, 4, ret);
	case WIRE_BYTES:
		ret->has_bytes = true;
		return read_varint(reader, &size) && read_bytes(reader, size, ret);
	default:
		return false;
	}
}
