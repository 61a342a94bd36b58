/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_VERSIONS_H
#define BRAID_PYTHON_VERSIONS_H

#include <stdbool.h>

#include "bpf/python.h"
#include "core/elf/elf_file.h"

/* Layout of a minor version of CPython. It is the same in all its releases from the first final one
 * on. */
struct python_version {
	unsigned int minor; /* N of CPython 3.N */
	enum python_state_kind state;
	unsigned int tss;	   /* STATE_KEY: offset of gilstate.autoTSSkey in _PyRuntime */
	unsigned int gil;	   /* offset of ceval.gil in _PyRuntime; 0: elsewhere */
	unsigned int interpreters; /* offset of interpreters.head in _PyRuntime; 0: none */
	unsigned int modules;	   /* offset of the pointer to sys.modules in PyInterpreterState; 0:
				      unknown */
	struct python_offsets offsets;
};

/* NULL: no walker for 3.`minor`. From 3.13 on the row is not complete: see below. */
const struct python_version *python_version__find(unsigned int minor);

/* Returns the newest row if @minor is newer than all rows, else NULL. */
const struct python_version *python_version__older(unsigned int minor);

/* Hides the rows that are newer than @minor, so that tests can have a version without a row. */
void python_version__hide(unsigned int minor);

/* Completes the row from the _Py_DebugOffsets at the start of _PyRuntime (link-time address
 * `runtime`), which interpreters have from 3.13 on. Returns NULL, or the reason why they are
 * unusable; then `version` is unusable, too. */
const char *python_version__read(const struct elf_file *file, uint64_t runtime, uint64_t hex,
				 struct python_version *version);
bool python_version__is_described(const struct python_version *version);

#endif
