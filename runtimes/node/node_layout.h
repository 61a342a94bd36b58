/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_LAYOUT_H
#define BRAID_NODE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/node.h"
#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Layout of V8's objects in one build. The program exports most of it for debuggers, as constants
 * named v8dbg_* (deps/v8/tools/gen-postmortem-metadata.py of Node's sources). A table of versions
 * has the rest (node_versions.c). Offsets are in bytes from the start of an object, whose first
 * word is its Map. */

#define NODE_BYTECODES_MAX 256

struct node_layout {
	struct node_proc_rec rec; /* the part that the walker needs */

	/* String: its type determines its representation. rec.text has more of it. */
	uint16_t external, sliced; /* representations; 0: the characters follow */
	uint16_t sliced_parent, sliced_offset;
	uint16_t external_resource; /* a word before the address of its characters */

	uint16_t array_length, array_data; /* all arrays: a Smi, and the elements behind it */
	uint16_t type_fixed_array, type_code;

	uint16_t script_line_ends, script_line_offset;

	uint16_t scope_start; /* ScopeInfo, as in rec.text; 0: after the names */

	bool positions_with_bits; /* argument of node_positions__find */

	uint16_t bytecode_positions; /* BytecodeArray: a byte array */
	uint16_t bytecode_data;

	uint16_t code_deopt, code_positions; /* Code */
	/* DeoptimizationData: elements, by number. */
	uint16_t deopt_n_inlined, deopt_literals, deopt_function, deopt_inlinings;
	uint16_t wrapped_function; /* member of the object in deopt_function; 0: the object itself
				      is the function */

	/* Bytes of each bytecode: without a prefix, after the prefix Wide, and after ExtraWide.
	 * n_bytecodes 0: unknown. */
	uint8_t bytecode_sizes[3 * NODE_BYTECODES_MAX];
	uint16_t n_bytecodes;
};

/* Reads V8's version, "13.6". Returns 0, or -ENOENT if the file has none. */
int node_layout__version(const struct elf_file *file, uint32_t *ret_major, uint32_t *ret_minor);

/* Returns 0, or -ENOTSUP with the message in @err. */
int node_layout__read(const struct elf_file *file, struct node_layout *ret, struct err *err);

#endif
