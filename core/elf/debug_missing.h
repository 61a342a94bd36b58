/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUG_MISSING_H
#define BRAID_DEBUG_MISSING_H

#include <stddef.h>
#include <stdint.h>

/* Debug information that a file has, or refers to, and that braid does not use. It is collected for
 * the whole process, so that one sentence can state the missing part and the reason. */

enum debug_missing_reason {
	DEBUG_MISSING_SPLIT,	  /* a .dwo file that the file refers to was not found */
	DEBUG_MISSING_TOO_LARGE,  /* over the budget (core/base/quota.h) */
	DEBUG_MISSING_UNREADABLE, /* malformed, or compressed by an unknown method */
};

#define DEBUG_MISSING_FILES 16
#define DEBUG_MISSING_BYTES 512

struct debug_missing {
	char path[200];	  /* path of the file in its target; may be cut */
	char detail[100]; /* DEBUG_MISSING_SPLIT: the name of the first .dwo file; else empty */
	enum debug_missing_reason reason;
	uint64_t n; /* compilation units; 0: all */
};

/* Adds @n units of the file @path. @detail may be NULL. Files beyond DEBUG_MISSING_FILES are only
 * counted. */
void debug_missing__add(const char *path, enum debug_missing_reason reason, const char *detail,
			uint64_t n);

/* Returns entry @i, counted from 0, or NULL if there are no more. */
const struct debug_missing *debug_missing__get(size_t i);

/* Returns the number of files without an entry because of DEBUG_MISSING_FILES. */
uint64_t debug_missing__more(void);

/* Writes the sentence about @missing, unescaped. */
void debug_missing__text(const struct debug_missing *missing, char to[DEBUG_MISSING_BYTES]);

#endif
