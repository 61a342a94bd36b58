/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAPS_LINE_H
#define BRAID_MAPS_LINE_H

#include <stdbool.h>
#include <stdint.h>

/* A line of /proc/PID/maps; the one parser of its text. */
struct maps_line {
	uint64_t start, end, offset, inode;
	unsigned dev_major, dev_minor;
	char perms[5];
	const char *path; /* within the text; "" for none */
};

/* Parses @text, and cuts it at its end of line. Returns false if it is no such line. */
bool maps_line__parse(char *text, struct maps_line *ret);

#endif
