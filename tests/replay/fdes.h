/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_FDES_H
#define BRAID_TESTS_REPLAY_FDES_H

#include "tests/replay/elf_view.h"
#include "tests/replay/spans.h"

/* The frame descriptions of .eh_frame, so that most can be left out of an extract. */
struct fde {
	uint64_t at, size;   /* in the section */
	uint64_t start, end; /* of the code, link-time addresses */
};

struct fdes {		  /* zeroed: none */
	struct fde *list; /* sorted by their code */
	size_t n, cap;
};

/* Those in the usual pointer encoding; others are not listed, and never left out. -ENOMEM. */
int fdes__read(const struct elf_view *view, struct fdes *ret);
void fdes__done(struct fdes *fdes);

/* The section's bytes with those descriptions only that meet `code`; owned. What lies between is
 * one that describes no code, and has only operations that do nothing. NULL: out of memory. */
unsigned char *fdes__filter(const struct fdes *fdes, const struct elf_view *view,
			    const struct spans *code);

#endif
