/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_SLOTS_H
#define BRAID_PYTHON_SLOTS_H

#include <stdint.h>

/* Functions that make up a type (Include/cpython/object.h, Include/typeslots.h: the same numbers
 * and places from 3.6 to 3.15). */

enum python_slot_group { /* the structure that a static type has them in */
			 PYTHON_SLOT_TYPE,
			 PYTHON_SLOT_ASYNC,
			 PYTHON_SLOT_NUMBER,
			 PYTHON_SLOT_SEQUENCE,
			 PYTHON_SLOT_MAPPING,
			 PYTHON_SLOT_BUFFER,
			 PYTHON_SLOT_GROUPS
};

struct python_slot {
	uint8_t number; /* Py_NAME; 0: none, a static type only has it */
	uint8_t group;
	uint16_t offset; /* in bytes */
	uint8_t since;	 /* minor version whose structure has it; 0: all do */
	const char *name;
};

extern const struct python_slot python_slots[];
extern const unsigned python_slots_n;

#endif
