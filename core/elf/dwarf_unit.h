/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_UNIT_H
#define BRAID_DWARF_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/range_map.h"

#define DWARF_NO_NODE UINT32_MAX

/* What dwarf_getscopes would find, gathered once per compilation unit: its cost is that of one walk
 * over the unit, not of one per address. */
struct dwarf_unit {
	Dwarf_Die die;
	Dwarf_Die other;      /* of a skeleton: its other half, which has the functions */
	bool is_skeleton;     /* set by core/elf/dwarf.c, as the next three: */
	bool join_tried;      /* the other half was looked for */
	bool has_other;	      /* and found */
	bool other_has_files; /* it has file names of its own, small enough */
	bool loaded;
	bool checked;	    /* by core/elf/dwarf.c, which says: */
	bool too_large;	    /* nothing is loaded of it */
	bool has_lines;	    /* its line program may be read */
	struct dwarf_node { /* a function or an inlined call that has code */
		Dwarf_Die die;
		uint32_t parent;	      /* the node it is inlined into, or DWARF_NO_NODE */
		uint32_t piece_at, piece_end; /* functions: the pieces of all their inlines */
		char *name;		      /* demangled, made at first use */
	} * nodes;
	size_t n_nodes, cap_nodes;
	struct dwarf_piece { /* a range of an inlined call; outer calls come first */
		uint64_t start, end;
		uint32_t node;
	} * pieces;
	size_t n_pieces, cap_pieces;
	struct range_map functions; /* to nodes */
};

/* Walks the unit at the first call. `work_left` bounds the steps over hostile input, of all units
 * together. 0, -ENOMEM, -EFBIG or -EINTR; what is malformed is left out. */
int dwarf_unit__load(struct dwarf_unit *unit, uint64_t *work_left);

/* The function at `vaddr` and what is inlined there, outermost first. Returns their number, at
 * most `max`; inner ones that do not fit are left out. */
size_t dwarf_unit__find(const struct dwarf_unit *unit, uint64_t vaddr, uint32_t *ret_nodes,
			size_t max);

/* Borrowed until dwarf_unit__done; "?" for a function without name. NULL: out of memory. */
const char *dwarf_unit__name(struct dwarf_unit *unit, uint32_t node);

/* Where the inlined function `node` is called. `*ret_file` borrowed from libdw, may be NULL. */
void dwarf_unit__call_site(struct dwarf_unit *unit, uint32_t node, const char **ret_file,
			   uint32_t *ret_line);

uint64_t dwarf_unit__bytes(const struct dwarf_unit *unit); /* of memory */

/* Frees what was loaded, of which the unit remains. Idempotent. */
void dwarf_unit__done(struct dwarf_unit *unit);

#endif
