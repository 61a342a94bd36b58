/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_LINES_H
#define BRAID_JVM_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_stream.h"

/* The LineNumberTable of a method, in its order: the source line of each bytecode. */
struct jvm_method_lines {
	size_t n;
	struct jvm_line {
		uint32_t bci;  /* index of the first bytecode of the line */
		uint32_t line; /* from 1 */
	} list[];
};

/* Decodes the table that follows a method's bytecodes (CompressedLineNumberReadStream in
 * src/hotspot/share/oops/method.hpp). `ret` is NULL if the table is empty. Returns 0, -EBADMSG
 * or -ENOMEM. */
int jvm_lines__decode(struct jvm_stream *stream, struct jvm_method_lines **ret);

/* Returns the line of bytecode @bci; 0: unknown, also if `lines` is NULL. */
uint32_t jvm_lines__find(const struct jvm_method_lines *lines, uint32_t bci);

#endif
