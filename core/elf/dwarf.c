// SPDX-License-Identifier: GPL-2.0-or-later
/* Which functions a compiler has inlined at an address, and which source line it is.
 *
 * libdw could answer by itself (dwarf_addrdie, dwarf_getscopes), at a cost that grows with the unit
 * for each address, and a profile asks for thousands of addresses. So the units' ranges are
 * gathered once (.debug_aranges is optional, and clang leaves it out), and a unit's functions and
 * inlined calls when the first address in it is asked for (core/elf/dwarf_unit.c).
 *
 * Debug information of a hostile file may be nested, linked in rings or merely huge: `work_left`
 * bounds the steps over all of a file, and whoever runs out keeps what was found until then. */
#include "core/elf/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/elf/dwarf_unit.h"

/* Steps over debug information per file; all of libpython3.11 takes some 700,000. */
#define WORK_MAX (1ULL << 28)

struct dwarf {
	Dwarf *dw, *alt;
	struct dwarf_unit *units;
	size_t n_units, cap_units;
	struct range_map map; /* address to unit */
	uint64_t work_left;
};

static int add_unit(struct dwarf *dwarf, Dwarf_Die *die)
{
	uint32_t index = dwarf->n_units;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int rc;

	if (index == INT_MAX ||
	    array__reserve(&dwarf->units, &dwarf->cap_units, index + 1, sizeof(*dwarf->units)) != 0)
		return -ENOMEM;
	dwarf->units[dwarf->n_units++] = (struct dwarf_unit) { .die = *die };
	while (dwarf->work_left && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		dwarf->work_left--;
		/* Code that the linker dropped is left at address 0. */
		rc = start ? range_map__add(&dwarf->map, start, end, index) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Own table of the units' ranges: .debug_aranges is optional and clang leaves it out. */
static int read_units(struct dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	uint8_t type;
	Dwarf_Die die;
	int rc = 0;

	while (!rc && dwarf->work_left &&
	       dwarf_get_units(dwarf->dw, unit, &unit, NULL, &type, &die, NULL) == 0) {
		dwarf->work_left--;
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			rc = add_unit(dwarf, &die);
	}
	return rc ? rc : range_map__seal(&dwarf->map);
}

/* libdw would open whatever file the link names, unless it is given one. */
static int set_alt(struct dwarf *dwarf, const struct elf_file *alt)
{
	const char *name;
	const void *id;

	if (dwelf_dwarf_gnu_debugaltlink(dwarf->dw, &name, &id) <= 0)
		return 0;
	dwarf->alt = alt ? dwarf_begin_elf(alt->elf, DWARF_C_READ, NULL) : NULL;
	if (!dwarf->alt || dwelf_dwarf_gnu_debugaltlink(dwarf->alt, &name, &id) > 0)
		return -ENOENT;
	dwarf_setalt(dwarf->dw, dwarf->alt);
	return 0;
}

int dwarf__new(const struct elf_file *file, const struct elf_file *alt, struct dwarf **ret)
{
	struct dwarf *dwarf;
	int rc;

	if (!elf_file__section(file, ".debug_info", NULL))
		return -ENOENT;
	dwarf = calloc(1, sizeof(*dwarf));
	if (!dwarf)
		return -ENOMEM;
	dwarf->work_left = WORK_MAX;
	dwarf->dw = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	rc = dwarf->dw ? set_alt(dwarf, alt) : -ENOENT;
	if (!rc)
		rc = read_units(dwarf);
	if (rc) {
		dwarf__free(dwarf);
		return rc;
	}
	*ret = dwarf;
	return 0;
}

void dwarf__free(struct dwarf *dwarf)
{
	if (!dwarf)
		return;
	for (size_t i = 0; i < dwarf->n_units; i++)
		dwarf_unit__done(&dwarf->units[i]);
	free(dwarf->units);
	range_map__done(&dwarf->map);
	dwarf_end(dwarf->dw);
	dwarf_end(dwarf->alt);
	free(dwarf);
}

static void set_line(struct dwarf_unit *unit, uint64_t vaddr, struct symbol_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, vaddr);
	int number = 0;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		frame->line = number;
}

int dwarf__resolve(struct dwarf *dwarf, uint64_t vaddr, const char *owner, struct symbol_frame *ret,
		   size_t max)
{
	uint32_t index, nodes[SYMBOL_INLINES_MAX];
	struct dwarf_unit *unit;
	size_t n, n_found;
	int rc;

	if (!max || !range_map__find(&dwarf->map, vaddr, &index))
		return 0;
	unit = &dwarf->units[index];
	rc = dwarf_unit__load(unit, &dwarf->work_left);
	if (rc)
		return rc;
	n_found = dwarf_unit__find(unit, vaddr, nodes, ARRAY_SIZE(nodes));
	n = min_of(max_of(n_found, owner ? 1 : 0), max);
	for (size_t i = 0; i < n; i++) { /* outermost first, stored from the end */
		struct symbol_frame *frame = &ret[n - 1 - i];

		*frame = (struct symbol_frame) { .inlined = i > 0 };
		frame->function = !i && owner ? owner : dwarf_unit__name(unit, nodes[i]);
		if (!frame->function)
			return -ENOMEM;
		if (i + 1 < n_found)
			dwarf_unit__call_site(unit, nodes[i + 1], &frame->file, &frame->line);
		else
			set_line(unit, vaddr, frame);
	}
	return n;
}
