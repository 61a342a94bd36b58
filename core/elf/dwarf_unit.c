// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/demangle.h"

/* Limit of the recursion; entries nested deeper are left out. */
#define DEPTH_MAX 192

/* Limits of one unit. Seen: 60,000 of each, in a program that was linked as one unit. */
#define NODES_MAX  (1U << 20)
#define PIECES_MAX (4U << 20)

#define ORIGINS_MAX 16 /* steps from one entry to the next; entries can form a ring */

struct walk {
	struct dwarf_unit *unit;
	uint64_t *work_left;
	int rc;
};

static bool spend(struct walk *walk)
{
	if (walk->rc || !*walk->work_left)
		return false;
	walk->rc = quota__look_at(--*walk->work_left);
	return !walk->rc;
}

/* Returns true for the tags that libdw's own scope search visits (libdw/libdw_visit_scopes.c). */
static bool may_own_code(int tag)
{
	switch (tag) {
	case DW_TAG_module:
	case DW_TAG_namespace:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_with_stmt:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

static int add_piece(struct dwarf_unit *unit, uint64_t start, uint64_t end, uint32_t node)
{
	if (unit->n_pieces >= PIECES_MAX)
		return -EFBIG;
	if (array__reserve(&unit->pieces, &unit->cap_pieces, unit->n_pieces + 1,
			   sizeof(*unit->pieces)) != 0)
		return -ENOMEM;
	unit->pieces[unit->n_pieces++] =
		(struct dwarf_piece) { .start = start, .end = end, .node = node };
	return 0;
}

/* Adds a node. Returns its number, or @parent if the entry has no code (nothing refers to the entry
 * then) or memory is exhausted. */
static uint32_t add_node(struct walk *walk, Dwarf_Die *die, bool inlined, uint32_t parent)
{
	struct dwarf_unit *unit = walk->unit;
	uint32_t node = unit->n_nodes;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool any = false;

	while (spend(walk) && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		/* Code that the linker dropped has address 0. */
		if (!start || start >= end)
			continue;
		any = true;
		walk->rc = inlined ? add_piece(unit, start, end, node)
				   : range_map__add(&unit->functions, start, end, node);
	}
	if (!walk->rc && unit->n_nodes >= NODES_MAX)
		walk->rc = -EFBIG;
	if (!walk->rc && any)
		walk->rc = array__reserve(&unit->nodes, &unit->cap_nodes, unit->n_nodes + 1,
					  sizeof(*unit->nodes));
	if (walk->rc || !any)
		return parent;
	unit->nodes[unit->n_nodes++] = (struct dwarf_node) {
		.die = *die,
		.parent = inlined ? parent : DWARF_NO_NODE,
		.piece_at = unit->n_pieces,
	};
	return node;
}

static void walk_children(struct walk *walk, Dwarf_Die *die, uint32_t parent, unsigned int depth)
{
	struct dwarf_unit *unit = walk->unit;
	Dwarf_Die child;

	if (depth >= DEPTH_MAX || dwarf_child(die, &child) != 0)
		return;
	do {
		int tag = dwarf_tag(&child);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		uint32_t node = parent;

		if (!may_own_code(tag))
			continue;
		if (tag == DW_TAG_subprogram || (inlined && parent != DWARF_NO_NODE))
			node = add_node(walk, &child, inlined, parent);
		walk_children(walk, &child, node, depth + 1);
		if (node != parent)
			unit->nodes[node].piece_end = unit->n_pieces;
	} while (spend(walk) && dwarf_siblingof(&child, &child) == 0);
}

int dwarf_unit__load(struct dwarf_unit *unit, uint64_t *work_left)
{
	struct walk walk = { .unit = unit, .work_left = work_left };

	if (unit->loaded || unit->too_large)
		return 0;
	walk_children(&walk, unit->has_other ? &unit->other : &unit->die, DWARF_NO_NODE, 0);
	if (!walk.rc)
		walk.rc = range_map__seal(&unit->functions);
	if (walk.rc)
		dwarf_unit__done(unit);
	unit->loaded = !walk.rc;
	return walk.rc;
}

size_t dwarf_unit__find(const struct dwarf_unit *unit, uint64_t vaddr, uint32_t *ret_nodes,
			size_t max)
{
	uint32_t current;
	size_t n = 0;

	if (!max || !range_map__find(&unit->functions, vaddr, &current))
		return 0;
	ret_nodes[n++] = current;
	for (size_t i = unit->nodes[current].piece_at;
	     i < unit->nodes[ret_nodes[0]].piece_end && n < max; i++) {
		const struct dwarf_piece *piece = &unit->pieces[i];

		if (vaddr < piece->start || vaddr >= piece->end ||
		    unit->nodes[piece->node].parent != current)
			continue;
		current = piece->node;
		ret_nodes[n++] = current;
	}
	return n;
}

/* Finds an attribute as dwarf_attr_integrate(), which however opens any file that a unit names as
 * its other half. */
static bool find_attribute(Dwarf_Die die, unsigned int name, Dwarf_Attribute *ret)
{
	Dwarf_Attribute origin;

	for (unsigned int i = 0; i < ORIGINS_MAX; i++) {
		if (dwarf_attr(&die, name, ret))
			return true;
		if ((!dwarf_attr(&die, DW_AT_abstract_origin, &origin) &&
		     !dwarf_attr(&die, DW_AT_specification, &origin)) ||
		    !dwarf_formref_die(&origin, &die))
			break;
	}
	return false;
}

const char *dwarf_unit__name(struct dwarf_unit *unit, uint32_t node)
{
	struct dwarf_node *found = &unit->nodes[node];
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (found->name)
		return found->name;
	if (find_attribute(found->die, DW_AT_linkage_name, &attr) ||
	    find_attribute(found->die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name && find_attribute(found->die, DW_AT_name, &attr))
		name = dwarf_formstring(&attr);
	found->name = demangle(name ? name : "?");
	return found->name;
}

static bool read_unsigned(Dwarf_Die *die, unsigned int name, Dwarf_Word *ret)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, name, &attr) && dwarf_formudata(&attr, ret) == 0;
}

void dwarf_unit__call_site(struct dwarf_unit *unit, uint32_t node, const char **ret_file,
			   uint32_t *ret_line)
{
	Dwarf_Die *die = &unit->nodes[node].die;
	Dwarf_Word line = 0, index;
	Dwarf_Files *files;
	size_t n_files;

	read_unsigned(die, DW_AT_call_line, &line);
	*ret_line = line;
	*ret_file = NULL;
	if ((unit->has_lines || unit->other_has_files) &&
	    read_unsigned(die, DW_AT_call_file, &index) &&
	    dwarf_getsrcfiles(unit->has_other ? &unit->other : &unit->die, &files, &n_files) == 0 &&
	    index < n_files)
		*ret_file = dwarf_filesrc(files, index, NULL, NULL);
}

void dwarf_unit__done(struct dwarf_unit *unit)
{
	for (size_t i = 0; i < unit->n_nodes; i++)
		free(unit->nodes[i].name);
	free(unit->nodes);
	free(unit->pieces);
	range_map__done(&unit->functions);
	*unit = (struct dwarf_unit) { .die = unit->die,
				      .other = unit->other,
				      .is_skeleton = unit->is_skeleton,
				      .join_tried = unit->join_tried,
				      .has_other = unit->has_other,
				      .other_has_files = unit->other_has_files,
				      .checked = unit->checked,
				      .too_large = unit->too_large,
				      .has_lines = unit->has_lines };
}

uint64_t dwarf_unit__bytes(const struct dwarf_unit *unit)
{
	return unit->cap_nodes * sizeof(*unit->nodes) + unit->cap_pieces * sizeof(*unit->pieces) +
	       unit->functions.cap * sizeof(*unit->functions.ranges);
}
