/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_VERSIONS_H
#define BRAID_PYTHON_VERSIONS_H

#include <stdbool.h>

#include "bpf/python.h"
#include "core/elf/elf_file.h"

/* What differs between CPython's minor versions; the same within one, from its first final
 * release on. */
struct python_version {
	unsigned int minor; /* of 3.minor */
	enum python_state_kind state;
	unsigned int tss;	   /* STATE_KEY: of gilstate.autoTSSkey in _PyRuntime */
	unsigned int gil;	   /* of ceval.gil in _PyRuntime; 0: elsewhere */
	unsigned int interpreters; /* of interpreters.head in _PyRuntime; 0: there is none */
	unsigned int
		modules; /* of the pointer to sys.modules in PyInterpreterState; 0: not known */
	struct python_offsets offsets;
};

/* NULL: no walker for 3.`minor`. From 3.13 on the row is not complete: see below. */
const struct python_version *python_version__find(unsigned int minor);

/* Returns the newest row if @minor is newer than all rows, else NULL. */
const struct python_version *python_version__older(unsigned int minor);

/* Hides the rows that are newer than @minor, so that tests can have a version without a row. */
void python_version__hide(unsigned int minor);

/* From 3.13 on interpreters describe themselves: fills in what the row leaves open from the
 * _Py_DebugOffsets at the start of _PyRuntime (link-time address `runtime`). NULL, or the reason
 * why it cannot be used; then `version` is of no use either. */
const char *python_version__read(const struct elf_file *file, uint64_t runtime, uint64_t hex,
				 struct python_version *version);
bool python_version__is_described(const struct python_version *version);

#endif
