/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DWARF_UNIT_H
#define BRAID_DWARF_UNIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/range_map.h"

#define DWARF_NO_NODE UINT32_MAX

/* The results of dwarf_getscopes(), gathered once per compilation unit. The cost is that of one
 * walk over the unit, not of one per address. */
struct dwarf_unit {
	Dwarf_Die die;
	Dwarf_Die other;      /* other half of a skeleton, which has the functions */
	bool is_skeleton;     /* set by core/elf/dwarf.c, as are the next three */
	bool join_tried;      /* the other half was searched */
	bool has_other;	      /* the other half was found */
	bool other_has_files; /* the other half has file names of its own, small enough */
	bool loaded;
	bool checked;	    /* set by core/elf/dwarf.c, as are the next two */
	bool too_large;	    /* no function of the unit is loaded */
	bool has_lines;	    /* its line program may be read */
	struct dwarf_node { /* a function or an inlined call that has code */
		Dwarf_Die die;
		uint32_t parent;	      /* node that it is inlined into, or DWARF_NO_NODE */
		uint32_t piece_at, piece_end; /* functions: the pieces of all their inlines */
		char *name;		      /* demangled; set at the first use */
	} * nodes;
	size_t n_nodes, cap_nodes;
	struct dwarf_piece { /* a range of an inlined call; outer calls precede inner ones */
		uint64_t start, end;
		uint32_t node;
	} * pieces;
	size_t n_pieces, cap_pieces;
	struct range_map functions; /* address to node */
};

/* Walks the unit at the first call. @work_left bounds the steps over hostile input, for all units
 * together. Returns 0, -ENOMEM, -EFBIG or -EINTR. Leaves out malformed entries. */
int dwarf_unit__load(struct dwarf_unit *unit, uint64_t *work_left);

/* Finds the function at @vaddr and the calls that are inlined there, outermost first. Returns their
 * number, at most @max. Leaves out inner calls beyond @max. */
size_t dwarf_unit__find(const struct dwarf_unit *unit, uint64_t vaddr, uint32_t *ret_nodes,
			size_t max);

/* Returns the name of @node, borrowed until dwarf_unit__done(); "?" for a function without name.
 * NULL: out of memory. */
const char *dwarf_unit__name(struct dwarf_unit *unit, uint32_t node);

/* Sets the place where the inlined function @node is called. *@ret_file is borrowed from libdw and
 * may be NULL. */
void dwarf_unit__call_site(struct dwarf_unit *unit, uint32_t node, const char **ret_file,
			   uint32_t *ret_line);

uint64_t dwarf_unit__bytes(const struct dwarf_unit *unit); /* bytes of memory */

/* Frees the loaded functions. The unit itself remains. Idempotent. */
void dwarf_unit__done(struct dwarf_unit *unit);

#endif
