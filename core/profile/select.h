/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SELECT_H
#define BRAID_SELECT_H

#include "core/profile/build.h"

/* the part of a recording that a filter selects */
struct selection {
	bool *events;
	uint32_t event; /* the first selected event; RECORDED_NONE: the recording has no events */
	uint32_t states;
	bool *threads; /* NULL: all */
	bool *nodes;   /* nodes with a frame of the requested kind here or outwards; NULL: all */
};

/* Selects the events only; @selection must be zeroed. Otherwise as selection__init(). */
int selection__events(struct selection *selection, const struct recorded *recorded,
		      const char *what, const struct profile_filter *filter, struct err *err);

/* Applies a filter. Returns 0, -ENOMEM, or -ENOENT or -EINVAL if the filter can select nothing; the
 * message then lists the possible choices. The caller calls selection__done() in any case. */
int selection__init(struct selection *selection, const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct err *err);
void selection__done(struct selection *selection);

bool selection__has(const struct selection *selection, const struct recorded_stack *stack);

/* Sets the event and unit of @profile. Returns 0 or -ENOMEM. */
int selection__measures(const struct selection *selection, const struct recorded *recorded,
			struct profile *profile);

/* Writes the names of all events except the selected ones, for messages: "a, b"; "" if there are no
 * others. */
void selection__others(const struct selection *selection, const struct recorded *recorded,
		       char *buf, size_t size);

#endif
