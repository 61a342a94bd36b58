/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_NAME_H
#define BRAID_RECORDING_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Names of the recordings in a directory that braid fills: "20261124T063000Z-000000.db". They sort
 * by the time when the recording began, and, as clocks are set back, in any case in the order in
 * which they were written: a name never has an earlier time than the one before it, and of those
 * with the same time the number tells. While it is written a recording has another suffix. */

#define RECORDING_NAME_BYTES 32

enum recording_state { RECORDING_DONE, RECORDING_BEING_WRITTEN };

struct recording_name {
	int64_t time_s;	 /* since 1970, UTC */
	uint32_t number; /* below a million */
};

/* Is it such a name? */
bool recording_name__parse(const char *text, struct recording_name *ret,
			   enum recording_state *ret_state);
void recording_name__text(const struct recording_name *name, enum recording_state state,
			  char ret[RECORDING_NAME_BYTES]);

/* Less than, equal to or greater than 0, as for strcmp. */
int recording_name__compare(const struct recording_name *a, const struct recording_name *b);

/* The name of one that begins at `now_s` and comes after `newest` (NULL: there is none yet). */
struct recording_name recording_name__next(const struct recording_name *newest, int64_t now_s);

#endif
