/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_VERSIONS_H
#define BRAID_PERL_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/perl.h"

/* Layouts of Perl on x86-64 Linux, one row per minor version: they are the same in all its patch
 * releases. */

struct perl_version {
	unsigned int minor; /* N of Perl 5.N */
	bool verified;	    /* walked and compared with a real build; else from headers only */
	struct perl_offsets offsets;
	/* struct interpreter of builds with threads (intrpvar.h). Fields that come later depend on
	 * more options of the build: they are where the row says only if `size` is the build's own
	 * PL_interp_size, too. */
	uint16_t defstash, curcop, curstackinfo, comppad;
	uint16_t phase, size;
};

const struct perl_version *perl_version__find(unsigned int minor); /* NULL: none */

/* Returns the newest row if @minor is newer than all rows, else NULL. */
const struct perl_version *perl_version__older(unsigned int minor);

/* Hides the rows that are newer than @minor, so that tests can have a version without a row. */
void perl_version__hide(unsigned int minor);

#endif
