/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_LAYOUT_H
#define BRAID_GO_LAYOUT_H

#include <stdbool.h>

#include "runtimes/go/go_switches.h"
#include "runtimes/go/go_table.h"

/* The place of a program's list of goroutines, and of their fields. All of it is read from the code
 * of Go's runtime in the file, which is there in stripped files as well. */

#define GO_GOROUTINE_READ 512 /* bytes of a struct g that are read; all fields are in them */

struct go_fields {
	uint64_t goroutines; /* link-time address of runtime.allgs, a slice; 0: unknown */
	uint64_t
		reasons; /* address of runtime.waitReasonStrings, an array of strings; 0: unknown */
	uint32_t n_reasons;
	/* Offsets in struct g of atomicstatus (32 bits), goid, waitsince and waitreason (8 bits).
	 */
	uint32_t status, id, since, reason;
};

/* Sets ret->goroutines to 0 if a part of the code differs from all supported versions, or if a
 * field is not within GO_GOROUTINE_READ bytes. */
void go_layout__find(const struct elf_file *file, const struct go_table *table,
		     const struct go_places *places, struct go_fields *ret);

#endif
