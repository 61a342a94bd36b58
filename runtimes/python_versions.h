/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_VERSIONS_H
#define BRAID_PYTHON_VERSIONS_H

#include "bpf/python.h"

/* What differs between CPython's minor versions; the same within one, from its first final
 * release on. */
struct python_version {
	unsigned int minor;	  /* of 3.minor */
	unsigned int runtime_tss; /* of gilstate.autoTSSkey in _PyRuntime */
	struct python_offsets offsets;
};

/* NULL: no walker for 3.`minor`. */
const struct python_version *python_version__find(unsigned int minor);

#endif
