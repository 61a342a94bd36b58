/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_NAME_H
#define BRAID_RECORDING_NAME_H

#include <stdbool.h>
#include <stdint.h>

/* Names of the recordings in a directory that braid fills: "20261124T063000Z-000000.db". They sort
 * by the start of the recordings, and always in the order in which the recordings were written,
 * even if clocks are set back. A name never has an earlier time than the name before it; the number
 * orders names with the same time. A recording that is being written has another suffix. */

#define RECORDING_NAME_BYTES 32

enum recording_state { RECORDING_DONE, RECORDING_BEING_WRITTEN };

struct recording_name {
	int64_t time_s;	 /* seconds since 1970, UTC */
	uint32_t number; /* less than 1,000,000 */
};

/* Returns true if @text is such a name. */
bool recording_name__parse(const char *text, struct recording_name *ret,
			   enum recording_state *ret_state);
void recording_name__text(const struct recording_name *name, enum recording_state state,
			  char ret[RECORDING_NAME_BYTES]);

/* Returns less than, equal to or greater than 0, as strcmp() does. */
int recording_name__compare(const struct recording_name *a, const struct recording_name *b);

/* Returns the name of a recording that begins at @now_s and follows @newest (NULL: there is none
 * yet). */
struct recording_name recording_name__next(const struct recording_name *newest, int64_t now_s);

#endif
