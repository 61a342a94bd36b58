/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_LAYOUT_H
#define BRAID_NODE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/node.h"
#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Where V8's objects have what, in one build. Most of it the program exports for debuggers, as
 * constants named v8dbg_* (deps/v8/tools/gen-postmortem-metadata.py of Node's sources); what these
 * do not tell is a table of versions (node_versions.c). Offsets in bytes from the start of an
 * object, whose first word is its Map. */

#define NODE_BYTECODES_MAX 256

struct node_layout {
	struct node_proc_rec rec; /* what the walker has to know of it */

	/* String: its type tells what it is made of. More of it is in rec.text. */
	uint16_t external, sliced; /* representations; 0: the characters follow */
	uint16_t sliced_parent, sliced_offset;
	uint16_t external_resource; /* a word before the address of its characters */

	uint16_t array_length, array_data; /* of all arrays: a Smi, and what follows it */
	uint16_t type_fixed_array, type_code;

	uint16_t script_line_ends, script_line_offset;

	uint16_t scope_start; /* of ScopeInfo, as in rec.text; 0: behind the names */

	bool positions_with_bits; /* as node_positions__find wants it */

	uint16_t bytecode_positions; /* of BytecodeArray: a byte array */
	uint16_t bytecode_data;

	uint16_t code_deopt, code_positions; /* of Code */
	/* DeoptimizationData: elements, by number. */
	uint16_t deopt_n_inlined, deopt_literals, deopt_function, deopt_inlinings;
	uint16_t wrapped_function; /* of what deopt_function refers to; 0: it is the function */

	/* Bytes of each bytecode, of those behind the prefix Wide, and behind ExtraWide;
	 * n_bytecodes 0: not known. */
	uint8_t bytecode_sizes[3 * NODE_BYTECODES_MAX];
	uint16_t n_bytecodes;
};

/* V8's version, "13.6". 0, or -ENOENT: the file does not tell. */
int node_layout__version(const struct elf_file *file, uint32_t *ret_major, uint32_t *ret_minor);

/* 0, or -ENOTSUP with the sentence. */
int node_layout__read(const struct elf_file *file, struct node_layout *ret, struct err *err);

#endif
