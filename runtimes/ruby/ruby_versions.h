/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_VERSIONS_H
#define BRAID_RUBY_VERSIONS_H

#include <stdbool.h>

#include "bpf/ruby.h"

/* Layouts of CRuby on x86-64 Linux, one row per minor version (or per range of patch levels where
 * they differ). */

struct ruby_version {
	unsigned int major, minor;
	unsigned int teeny_first, teeny_last; /* of the patch levels that the row is for */
	bool verified; /* walked and compared with a real build; else computed from headers only */
	struct ruby_offsets offsets;
};

/* NULL: none for this version. */
const struct ruby_version *ruby_version__find(unsigned int major, unsigned int minor,
					      unsigned int teeny);

#endif
