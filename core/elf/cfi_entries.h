/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_ENTRIES_H
#define BRAID_CFI_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* The entries of a file's call frame information (DWARF 5, section 6.4.1; .eh_frame as in the LSB):
 * the code that they describe, and the position of their instructions. core/unwind interprets the
 * instructions. */

/* The common part of the frame descriptions of one common entry. */
struct cfi_cie {
	uint64_t offset; /* offset of the entry in its section */
	uint64_t bias; /* bias of the section: link-time address minus address in braid's memory */
	uint64_t code_align;
	int64_t data_align;
	uint8_t encoding;      /* DW_EH_PE_* of addresses; DW_EH_PE_omit: unknown */
	uint8_t lsda_encoding; /* DW_EH_PE_* of the address of the exception table; DW_EH_PE_omit:
				  none */
	uint8_t ra_reg;	       /* DWARF number of the return address's column */
	bool sized;	       /* frame descriptions carry the size of their augmentation data */
	bool signal;	       /* frame descriptions are those of signal trampolines */
	const uint8_t *code;   /* the entry's own instructions, in the section's data */
	size_t code_size;
};

/* the description of one function's frame */
struct cfi_fde {
	uint64_t start, end; /* link-time addresses of its code; equal: not used */
	uint64_t lsda; /* link-time address of its language-specific data; 0: none; UINT64_MAX:
			  malformed */
	const uint8_t *code; /* in the section's data */
	uint32_t code_size;
	uint32_t cie;	  /* index of its common entry */
	bool debug_frame; /* from .debug_frame, which is the second choice */
};

struct cfi_entries {
	const struct elf_file *file; /* borrowed: the entries point into its sections */
	struct cfi_cie *cies;	     /* sorted by section, then by offset */
	size_t n_cies, cap_cies;
	struct cfi_fde *fdes; /* sorted by start */
	size_t n_fdes, cap_fdes;
	uint64_t charged; /* bytes charged to the file's account */
};

/* Reads all entries of .eh_frame, and those entries of .debug_frame whose functions .eh_frame does
 * not cover at all. Only code inside executable segments counts, and none at address 0 (discarded
 * sections). Returns 0, -EBADMSG or -ENOMEM. *@ret has the entries that were read before an error.
 * Call cfi_entries__done() in any case. */
int cfi_entries__read(const struct elf_file *file, struct cfi_entries *ret, struct err *err);
void cfi_entries__done(struct cfi_entries *entries);

/* Calls @function with each range that a frame description covers: the functions of a file, as far
 * as they can be found without symbols. The ranges are in order of their start, and may overlap. A
 * negative return value ends the walk and is propagated. Errors: as cfi_entries__read(). */
typedef int (*cfi_function_fn)(void *ctx, uint64_t start, uint64_t end);
int cfi_entries__functions(const struct elf_file *file, cfi_function_fn function, void *ctx,
			   struct err *err);

#endif
