// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_stream.h"

#define HIGH_BITS    6 /* bits of the number in a byte that is not the last one */
#define FIRST_HIGH   192
#define NUMBER_BYTES 5

uint8_t jvm_stream__byte(struct jvm_stream *stream)
{
	if (stream->failed || stream->at >= stream->size) {
		stream->failed = true;
		return 0;
	}
	return stream->bytes[stream->at++];
}

uint32_t jvm_stream__u32(struct jvm_stream *stream)
{
	uint32_t excluded = stream->is_without_zero, sum = 0;
	uint8_t byte;

	for (size_t i = 0; i < NUMBER_BYTES; i++) {
		byte = jvm_stream__byte(stream);
		if (byte < excluded)
			stream->failed = true;
		if (stream->failed)
			return 0;
		sum += (byte - excluded) << (HIGH_BITS * i);
		if (byte < FIRST_HIGH)
			break;
	}
	return sum;
}

int32_t jvm_stream__i32(struct jvm_stream *stream)
{
	uint32_t value = jvm_stream__u32(stream);

	return (int32_t)(value >> 1 ^ -(value & 1));
}
