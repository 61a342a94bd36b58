/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NEAREST_H
#define BRAID_NEAREST_H

#include <stddef.h>

/* Which of many names somebody may have meant. */

#define NEAREST_N     3
#define NEAREST_BYTES 64 /* of a name; longer ones are not offered */

struct nearest {
	char wanted[NEAREST_BYTES];
	struct {
		char name[NEAREST_BYTES];
		unsigned distance;
	} list[NEAREST_N]; /* the nearest first */
	size_t n;
	char text[NEAREST_N * (NEAREST_BYTES + 4)];
};

struct nearest nearest__to(const char *wanted, size_t len);
void nearest__add(struct nearest *nearest, const char *name);

/* "a, b or c"; borrowed. "" where nothing is near. */
const char *nearest__text(struct nearest *nearest);

#endif
