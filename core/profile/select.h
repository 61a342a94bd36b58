/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SELECT_H
#define BRAID_SELECT_H

#include "core/profile/build.h"

/* What a filter selects of what was recorded. */
struct selection {
	bool *events;
	uint32_t event; /* the first of them; RECORDED_NONE: there are no events */
	uint32_t states;
	bool *threads; /* NULL: all */
	bool *nodes;   /* from which outwards there is a frame of the wanted kind; NULL: all do */
};

/* The events alone, into one that is zeroed. Errors and the rest as selection__init. */
int selection__events(struct selection *selection, const struct recorded *recorded,
		      const char *what, const struct profile_filter *filter, struct err *err);

/* A filter that can select nothing is an error that says what there is: -ENOENT, -EINVAL, or
 * -ENOMEM. Call selection__done in any case. */
int selection__init(struct selection *selection, const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct err *err);
void selection__done(struct selection *selection);

bool selection__has(const struct selection *selection, const struct recorded_stack *stack);

/* Has the profile say what is measured. 0 or -ENOMEM. */
int selection__measures(const struct selection *selection, const struct recorded *recorded,
			struct profile *profile);

/* The names of all events but the selected ones, for people: "a, b"; "" if there are none. */
void selection__others(const struct selection *selection, const struct recorded *recorded,
		       char *buf, size_t size);

#endif
