/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUG_MISSING_H
#define BRAID_DEBUG_MISSING_H

#include <stddef.h>
#include <stdint.h>

/* Debug information that a file has, or refers to, and that is not used: collected for the whole
 * process, so that one sentence can state what is missing and why. */

enum debug_missing_reason {
	DEBUG_MISSING_SPLIT,	  /* a .dwo file that the file refers to was not found */
	DEBUG_MISSING_TOO_LARGE,  /* over the budget (core/base/quota.h) */
	DEBUG_MISSING_UNREADABLE, /* malformed, or compressed by an unknown method */
};

#define DEBUG_MISSING_FILES 16
#define DEBUG_MISSING_BYTES 512

struct debug_missing {
	char path[200];	  /* of the file, as its target has it; may be cut */
	char detail[100]; /* DEBUG_MISSING_SPLIT: the name of the first .dwo file; else empty */
	enum debug_missing_reason reason;
	uint64_t n; /* compilation units; 0: all */
};

/* Adds @n units of the file @path. @detail may be NULL. Files beyond DEBUG_MISSING_FILES are
 * counted only. */
void debug_missing__add(const char *path, enum debug_missing_reason reason, const char *detail,
			uint64_t n);

/* Returns the @i-th, counted from 0; NULL: there are no more. */
const struct debug_missing *debug_missing__get(size_t i);

/* Returns how many files have no entry, because there were too many. */
uint64_t debug_missing__more(void);

/* Writes the sentence on @missing. It is not escaped. */
void debug_missing__text(const struct debug_missing *missing, char to[DEBUG_MISSING_BYTES]);

#endif
