/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLACE_H
#define BRAID_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/code_maps.h"
#include "core/target/process.h"

/* What code an address of a process is: the one answer for all who ask. It is kept per process, so
 * that an address that was met before costs one look into a hash table, and made again where the
 * mappings or the attached runtimes have changed since. */

enum place_kind {
	PLACE_UNKNOWN,	 /* nothing is known to be mapped there, or a file that cannot be read */
	PLACE_IMAGE,	 /* code of an ELF file */
	PLACE_COMPILED,	 /* of a compiler in the process: by its memory, or as a map says */
	PLACE_ANONYMOUS, /* memory that holds what the process has made itself, and no file */
};

struct place {
	/* Dense from 1 and of this code alone: other code at the same address has another number.
	 * What is known of a place can so be kept in an array, as long as places__epoch is the
	 * same. */
	uint32_t number;
	enum place_kind kind;
	uint64_t address;    /* in the process */
	struct image *image; /* of PLACE_IMAGE, else NULL */
	uint64_t vaddr;	     /* its link-time address in the image */
	uint32_t runtimes;   /* bit n: the image is (a usable one) of runtimes[n] ... */
	uint32_t loops;	     /* bit n: ... and this the code of its interpreter loop */
	int compiler;	     /* number of the runtime whose compiler's memory it is in; -1: none */
	/* Without an image: which code, of those that had the address one after the other. It
	 * grows from epoch to epoch, so that with the address it is never that of other code. */
	uint32_t generation;
};

/* Addresses of one process that are remembered; then all of them are forgotten, and a new epoch
 * begins. Some 100 bytes each. */
#define PLACES_MAX (1U << 17)

/* The code at `address` when a sample was taken at `time_ns`, by the mappings of that time. For
 * code that no image holds the process's maps are read up to then. `ret` is borrowed until the next
 * call for this process. 0 or -ENOMEM. */
int place__at(struct process *process, uint64_t address, uint64_t time_ns,
	      const struct place **ret);

/* Address in the process where the function begins, by the image's frame information; 0: unknown.
 * Asked for the first time it may have to read the image's symbols. `number` of the current
 * epoch. */
uint64_t place__function(struct process *process, uint32_t number);

/* What a map of the process calls the code of a place without an image. False: it has no name, or
 * none any more. */
bool place__symbol(struct process *process, uint32_t number, struct code_symbol *ret);

/* The place of a number of the current epoch, as it is now. Borrowed as that of place__at. */
const struct place *place__numbered(struct process *process, uint32_t number);

uint32_t places__epoch(const struct process *process); /* from 1; 0: no place yet */
uint32_t places__count(const struct process *process); /* numbers of this epoch */

/* Grows whenever a place that was met turns out to be a compiler's code, as it is in a map. */
uint32_t places__renamed(const struct process *process);

/* The images of all places are used: image__use. NULL is fine. */
void places__use_images(const struct places *places, uint64_t now_ns);

void places__free(struct places *places); /* NULL is fine */

#endif
