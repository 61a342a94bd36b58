/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_LINES_H
#define BRAID_JVM_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_stream.h"

/* Which line a method's bytecodes come from: its LineNumberTable, in its order. */
struct jvm_method_lines {
	size_t n;
	struct jvm_line {
		uint32_t bci;  /* where it begins */
		uint32_t line; /* from 1 */
	} list[];
};

/* Decodes the table that follows a method's bytecodes (CompressedLineNumberReadStream in
 * src/hotspot/share/oops/method.hpp). NULL in `ret` if it is empty. 0, -EBADMSG, -ENOMEM. */
int jvm_lines__decode(struct jvm_stream *stream, struct jvm_method_lines **ret);

/* 0: unknown; so it is with NULL. */
uint32_t jvm_lines__find(const struct jvm_method_lines *lines, uint32_t bci);

#endif
