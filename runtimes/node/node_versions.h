/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_VERSIONS_H
#define BRAID_NODE_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Offsets that V8 does not export in all versions, as in struct node_layout. If a build exports the
 * constant as well, both must be equal. */
struct node_version {
	uint32_t major, minor; /* V8's version */
	const char *source;
	uint16_t code_deopt, code_positions, code_start, code_flags, code_size;
	uint16_t stream_code;
	uint16_t sfi_data;
	uint16_t bytecode_positions;
	uint16_t scope_start, scope_module;
	bool scope_flags_is_smi;
	bool positions_with_bits; /* argument of node_positions__find */
};

/* Returns the row of a version; NULL: there is none. */
const struct node_version *node_versions__find(uint32_t major, uint32_t minor);

/* Returns row @i, from 0; NULL: there is none. */
const struct node_version *node_versions__at(uint32_t i);

#endif
