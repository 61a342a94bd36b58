// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the functions that a compiler inlined at an address, and its source line.
 *
 * libdw has functions for this (dwarf_addrdie, dwarf_getscopes). Their cost for each address grows
 * with the unit, and a profile has thousands of addresses. So the units' ranges are gathered once
 * (.debug_aranges is optional, and clang leaves it out). A unit's functions and inlined calls are
 * gathered at the first lookup of an address in it (core/elf/dwarf_unit.c).
 *
 * Debug information of a hostile file may be nested, linked in rings or merely huge. @work_left
 * bounds the steps over all of a file. When it is used up, the results so far remain in use. */
#include "core/elf/dwarf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/elf/debug_missing.h"
#include "core/elf/dwarf_image.h"
#include "core/elf/dwarf_split.h"
#include "core/elf/dwarf_unit.h"

/* Limit of steps over debug information per file; all of libpython3.11 takes about 700,000. */
#define WORK_MAX (1ULL << 28)

/* libdw reads the whole line program of a unit, and skips whole entries, in one call. */
#define LINE_BYTES_MAX (2ULL << 20)
#define UNIT_BYTES_MAX (32ULL << 20)

/* Memory that libdw allocates for a byte of a line program. Usual line programs have a row in three
 * bytes. */
#define LINE_ROW_BYTES 32

struct dwarf {
	struct elf_file *image, *alt_image; /* the files that libdw reads */
	uint64_t charged;		    /* bytes charged to the image's account */
	Dwarf *dw, *alt;
	struct dwarf_unit *units;
	size_t n_units, cap_units;
	struct range_map map; /* address to unit */
	struct dwarf_split split;
	uint64_t work_left;
};

static int add_unit(struct dwarf *dwarf, Dwarf_Die *die, bool is_skeleton)
{
	uint32_t index = dwarf->n_units;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	int rc;

	if (index == INT_MAX ||
	    array__reserve(&dwarf->units, &dwarf->cap_units, index + 1, sizeof(*dwarf->units)) != 0)
		return -ENOMEM;
	dwarf->units[dwarf->n_units++] =
		(struct dwarf_unit) { .die = *die, .is_skeleton = is_skeleton };
	while (dwarf->work_left && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		rc = quota__look_at(dwarf->work_left--);
		if (rc)
			return rc;
		/* Code that the linker dropped has address 0. */
		rc = start ? range_map__add(&dwarf->map, start, end, index) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

/* Builds the table of the units' ranges, as .debug_aranges is optional and clang leaves it out. */
static int read_units(struct dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	uint8_t type;
	Dwarf_Die die;
	int rc = 0;

	while (!rc && dwarf->work_left &&
	       dwarf_get_units(dwarf->dw, unit, &unit, NULL, &type, &die, NULL) == 0) {
		rc = quota__look_at(dwarf->work_left--);
		if (!rc && (type == DW_UT_compile || type == DW_UT_skeleton))
			rc = add_unit(dwarf, &die, type == DW_UT_skeleton);
	}
	return rc ? rc : range_map__seal(&dwarf->map);
}

/* Sets the file of the dwz link. Without it, libdw would open any file that the link names. */
static int set_alt(struct dwarf *dwarf, const struct elf_file *alt)
{
	const char *name;
	const void *id;
	int rc;

	if (dwelf_dwarf_gnu_debugaltlink(dwarf->dw, &name, &id) <= 0)
		return 0;
	rc = alt ? dwarf_image__open(alt, &dwarf->alt_image) : -ENOENT;
	if (rc)
		return rc;
	dwarf->alt = dwarf_begin_elf(dwarf->alt_image->elf, DWARF_C_READ, NULL);
	if (!dwarf->alt || dwelf_dwarf_gnu_debugaltlink(dwarf->alt, &name, &id) > 0)
		return -ENOENT;
	dwarf_setalt(dwarf->dw, dwarf->alt);
	return 0;
}

int dwarf__new(const struct elf_file *file, const struct elf_file *alt,
	       const struct dwarf_files *split, struct dwarf **ret)
{
	struct elf_file *image;
	struct dwarf *dwarf;
	int rc = dwarf_image__open(file, &image);

	if (rc)
		return rc;
	dwarf = calloc(1, sizeof(*dwarf));
	if (!dwarf) {
		elf_file__free(image);
		return -ENOMEM;
	}
	dwarf->image = image;
	dwarf->split.files = split;
	dwarf->work_left = WORK_MAX;
	dwarf->dw = dwarf_begin_elf(image->elf, DWARF_C_READ, NULL);
	rc = dwarf->dw ? set_alt(dwarf, alt) : -ENOENT;
	if (!rc)
		rc = read_units(dwarf);
	if (rc) {
		dwarf__free(dwarf);
		return rc == -EFBIG ? -ENOENT : rc;
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
	dwarf_split__done(&dwarf->split);
	if (dwarf->image)
		quota__give_back(dwarf->image->account, dwarf->charged);
	elf_file__free(dwarf->image);
	elf_file__free(dwarf->alt_image);
	free(dwarf);
}

/* Checks, once per unit, that the data that libdw will read are small enough and within the budget.
 */
static void check_unit(struct dwarf *dwarf, struct dwarf_unit *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Word at;
	uint64_t bytes;

	if (unit->checked)
		return;
	unit->checked = true;
	at = dwarf_dieoffset(&unit->die) - dwarf_cuoffset(&unit->die);
	bytes = dwarf_image__unit_bytes(dwarf->image, ".debug_info", at);
	unit->too_large = bytes > UNIT_BYTES_MAX;
	if (unit->too_large)
		quota__refuse(dwarf->image->account);
	if (!dwarf_attr(&unit->die, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &at))
		return;
	bytes = dwarf_image__unit_bytes(dwarf->image, ".debug_line", at);
	if (bytes > LINE_BYTES_MAX) {
		quota__refuse(dwarf->image->account);
	} else if (bytes &&
		   !quota__charge(dwarf->image->account, QUOTA_RETAINED, bytes * LINE_ROW_BYTES)) {
		dwarf->charged += bytes * LINE_ROW_BYTES;
		unit->has_lines = true;
	}
	unit->checked = unit->has_lines || !stop__is_due();
}

/* Finds the other half of a skeleton, once. Without it the unit has lines only. */
static int join_unit(struct dwarf *dwarf, struct dwarf_unit *unit)
{
	uint64_t bytes = 0;
	const char *name;
	int rc;

	if (!unit->is_skeleton || unit->join_tried)
		return 0;
	name = dwarf_split__name(&unit->die);
	rc = dwarf_split__join(&dwarf->split, dwarf->image, &unit->die, &unit->other,
			       &unit->other_has_files, &bytes);
	if (rc == -EINTR || rc == -ENOMEM)
		return rc;
	unit->join_tried = true;
	unit->has_other = !rc;
	if (!rc)
		dwarf->charged += bytes;
	else
		debug_missing__add(dwarf->image->path,
				   rc == -EFBIG ? DEBUG_MISSING_TOO_LARGE : DEBUG_MISSING_SPLIT,
				   name, 1);
	return 0;
}

static int load_unit(struct dwarf *dwarf, struct dwarf_unit *unit)
{
	bool loaded = unit->loaded;
	uint64_t bytes;
	int rc = join_unit(dwarf, unit);

	if (!rc)
		rc = dwarf_unit__load(unit, &dwarf->work_left);
	bytes = dwarf_unit__bytes(unit);
	if (!rc && !loaded)
		rc = quota__charge(dwarf->image->account, QUOTA_RETAINED, bytes);
	if (!rc && !loaded)
		dwarf->charged += bytes;
	if (rc)
		dwarf_unit__done(unit);
	if (rc == -EFBIG)
		unit->checked = unit->too_large = true;
	return rc;
}

static void set_line(struct dwarf_unit *unit, uint64_t vaddr, struct symbol_frame *frame)
{
	Dwarf_Line *line = unit->has_lines ? dwarf_getsrc_die(&unit->die, vaddr) : NULL;
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
	check_unit(dwarf, unit);
	rc = load_unit(dwarf, unit);
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
