/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DOCTOR_H
#define BRAID_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

/* One check of this machine's abilities for braid, by trying. */
struct doctor_check {
	const char *name;
	int (*run)(char *detail,
		   size_t size); /* 0, or a negative errno; @detail is the observation */
	const char *remedy;
	bool needed; /* braid cannot record without it */
};

extern const struct doctor_check doctor_checks[];
extern const size_t doctor_checks_n;

#endif
