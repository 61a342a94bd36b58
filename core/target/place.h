/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PLACE_H
#define BRAID_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/jit_maps.h"
#include "core/target/process.h"

/* The code at an address of a process, in one definition for all users. Results are cached per
 * process, so that a repeated lookup costs one access to a hash table. They are checked again when
 * the mappings or the attached runtimes change. */

enum place_kind {
	PLACE_UNKNOWN,	 /* nothing mapped, or a file that cannot be read */
	PLACE_IMAGE,	 /* code of an ELF file */
	PLACE_COMPILED,	 /* code of a compiler in the process: by its memory, or as a map reports */
	PLACE_ANONYMOUS, /* memory with contents that the process generated, without a file */
};

struct place {
	/* Dense from 1, and of this code alone: other code at the same address has another number.
	 * Users can index arrays by it while places__epoch() is unchanged. */
	uint32_t number;
	enum place_kind kind;
	uint64_t address;    /* address in the process */
	struct image *image; /* image of PLACE_IMAGE, else NULL */
	uint64_t vaddr;	     /* link-time address in the image */
	uint32_t runtimes;   /* bit n: the image is (a usable one) of runtimes[n] ... */
	uint32_t loops;	     /* bit n: ... and this is code of its interpreter loop */
	int compiler;	     /* number of the runtime whose compiler owns the memory; -1: none */
	/* Without an image: number of the code among those that had the address in turn. It grows
	 * across epochs, so that the pair with the address never identifies other code. */
	uint32_t generation;
};

/* Places of one process that are cached. At this number all are dropped, and a new epoch begins.
 * About 100 bytes each. */
#define PLACES_MAX (1U << 17)

/* Finds the code at @address when a sample was taken at @time_ns, by the mappings of that time. For
 * code without an image, reads the process's maps up to @time_ns. *@ret is borrowed until the next
 * call for this process. Returns 0 or -ENOMEM. */
int place__at(struct process *process, uint64_t address, uint64_t time_ns,
	      const struct place **ret);

/* Returns the process address of the start of the function, by the image's frame information; 0:
 * unknown. The first call may read the image's symbols. @number belongs to the current epoch. */
uint64_t place__function(struct process *process, uint32_t number);

/* Finds the name of the code of a place without an image in a map of the process. Returns false if
 * there is none, or none any longer. */
bool place__symbol(struct process *process, uint32_t number, struct jit_symbol *ret);

/* Returns the present place of a number of the current epoch. Borrowed as by place__at(). */
const struct place *place__numbered(struct process *process, uint32_t number);

uint32_t places__epoch(const struct process *process); /* from 1; 0: no place yet */
uint32_t places__count(const struct process *process); /* number of places of this epoch */

/* Returns a number that grows when a place turns out to be a compiler's code according to a map. */
uint32_t places__renamed(const struct process *process);

/* Marks the images of all places as used (image__use()). @places may be NULL. */
void places__use_images(const struct places *places, uint64_t now_ns);

void places__free(struct places *places); /* NULL is fine */

#endif
