/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NEAREST_H
#define BRAID_NEAREST_H

#include <stddef.h>

/* Finds names similar to a text that the user typed. */

#define NEAREST_N     3
#define NEAREST_BYTES 64 /* bytes of a name; longer ones are not offered */

struct nearest {
	char requested[NEAREST_BYTES];
	struct {
		char name[NEAREST_BYTES];
		unsigned distance;
	} list[NEAREST_N]; /* the nearest first */
	size_t n;
	char text[NEAREST_N * (NEAREST_BYTES + 4)];
};

struct nearest nearest__to(const char *requested, size_t len);
void nearest__add(struct nearest *nearest, const char *name);

/* Returns "a, b or c", borrowed; "" if no name is similar. */
const char *nearest__text(struct nearest *nearest);

#endif
