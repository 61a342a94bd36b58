/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_FDES_H
#define BRAID_TESTS_REPLAY_FDES_H

#include "tests/replay/elf_view.h"
#include "tests/replay/spans.h"

/* The frame descriptions of .eh_frame. Most can be left out of an extract. */
struct fde {
	uint64_t at, size;   /* offset and size in the section */
	uint64_t start, end; /* code; link-time addresses */
};

struct fdes {		  /* zeroed: empty */
	struct fde *list; /* sorted by their code */
	size_t n, cap;
};

/* Reads the descriptions with the usual pointer encoding. Others are not listed, and never left
 * out. Returns 0 or -ENOMEM. */
int fdes__read(const struct elf_view *view, struct fdes *ret);
void fdes__done(struct fdes *fdes);

/* Returns the section's bytes with only those descriptions that overlap @code; owned by the caller.
 * The gaps contain descriptions without code, whose operations do nothing. NULL: out of memory. */
unsigned char *fdes__filter(const struct fdes *fdes, const struct elf_view *view,
			    const struct spans *code);

#endif
