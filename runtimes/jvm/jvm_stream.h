/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_STREAM_H
#define BRAID_JVM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* HotSpot's compressed numbers, "UNSIGNED5" (src/hotspot/share/utilities/unsigned5.hpp; until JDK
 * 19 in code/compressedStream.hpp). */
struct jvm_stream {
	const uint8_t *bytes;
	size_t size, at;
	bool is_without_zero; /* no byte is 0, since JDK 20 */
	bool failed; /* read beyond its end, or not such a number; all reads yield 0 then */
};

/* The first major version without bytes of 0. */
#define JVM_STREAM_WITHOUT_ZERO 20

uint8_t jvm_stream__byte(struct jvm_stream *stream);
uint32_t jvm_stream__u32(struct jvm_stream *stream);
int32_t jvm_stream__i32(struct jvm_stream *stream);

#endif
