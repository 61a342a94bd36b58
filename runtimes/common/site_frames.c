// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/site_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sort.h"

#define SITE_FRAME_BYTES_MAX (1 << 20)

#define STEPS_MAX	  6    /* calls from a site up to the loop */
#define CALLERS_MAX	  4096 /* places that call one function */
#define SEGMENT_BYTES_MAX (256U << 20)

int site_frames__open(const struct elf_file *file, struct site_frames *ret, struct err *err)
{
	struct site_frames frames = { .file = file };
	char *dir = unwind_table__default_dir();
	int rc = unwind_table__get(file, dir, NULL, &frames.table, err);

	free(dir);
	if (!rc) {
		rc = x86_functions__read(file, &frames.functions);
		if (rc)
			err__set(err, rc, "cannot read the frame descriptions");
	}
	if (rc)
		site_frames__done(&frames);
	else
		*ret = frames;
	return rc;
}

void site_frames__done(struct site_frames *frames)
{
	unwind_table__done(&frames->table);
	x86_functions__done(&frames->functions);
}

const struct runtime_range *site_frames__function(const struct site_frames *frames, uint64_t vaddr)
{
	const struct runtime_range *list = frames->functions.list;
	size_t i = sorted__count_up_to(list, frames->functions.n, sizeof(*list), vaddr);

	return i && vaddr < list[i - 1].end ? &list[i - 1] : NULL;
}

int site_frames__own(const struct site_frames *frames, uint64_t vaddr, bool outside,
		     struct probe_rec *rec, struct err *err)
{
	const struct unwind_rule *rule = unwind_table__find(&frames->table, vaddr);

	if (rule->kind != UNWIND_REG ||
	    (rule->reg != UNWIND_REG_RSP && rule->reg != UNWIND_REG_RBP))
		return err__set(err, -ENOTSUP, "cannot determine the stack frame at the probe");
	if (rule->reg == UNWIND_REG_RBP)
		rec->flags |= PROBE_ANCHOR_AT_RBP;
	rec->anchor_offset = rule->cfa_off - (outside ? 0 : 8);
	return 0;
}

int site_frame__end(const struct elf_file *file, uint64_t vaddr, struct probe_rec *rec,
		    struct err *err)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(file->elf);
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops;
	size_t n_ops;
	int rc = 0;

	/* libdw expresses a register and an offset as one operation of this kind. */
	if (!cfi || dwarf_cfi_addrframe(cfi, vaddr, &frame) ||
	    dwarf_frame_cfa(frame, &ops, &n_ops) || n_ops != 1 || ops->atom != DW_OP_bregx ||
	    (ops->number != UNWIND_REG_RSP && ops->number != UNWIND_REG_RBP) ||
	    (int64_t)ops->number2 < 0 || ops->number2 > SITE_FRAME_BYTES_MAX)
		rc = err__set(err, -ENOTSUP, "cannot determine the stack frame at the probe");
	if (!rc && ops->number == UNWIND_REG_RBP)
		rec->flags |= PROBE_ANCHOR_AT_RBP;
	if (!rc)
		rec->anchor_offset = ops->number2;
	free(frame);
	dwarf_cfi_end(cfi);
	return rc;
}

/* --- on the way to the loop --- */

struct caller {
	uint64_t vaddr; /* address of the instruction behind a call, or of a jump */
	bool jumps;	/* it is a jump, which leaves no frame */
};

struct climb {
	const struct site_frames *frames;
	const struct runtime_range *loops;
	size_t n_loops;
	const struct runtime_range *function; /* the function that the search has reached */
	int32_t offset;			      /* the end of its frame, from the stack pointer */
	struct caller callers[CALLERS_MAX];   /* callers of the function */
	size_t n_callers;
};

static void find_in_segment(struct climb *climb, const struct elf_segment *segment,
			    const uint8_t *code)
{
	const struct runtime_range *function = climb->function;

	for (uint64_t i = 0; i + 5 <= segment->filesz && climb->n_callers < CALLERS_MAX; i++) {
		uint64_t at = segment->vaddr + i;
		bool jumps = code[i] == 0xe9;
		int32_t relative;

		if (code[i] != 0xe8 && !jumps)
			continue;
		memcpy(&relative, code + i + 1, sizeof(relative));
		if (at + 5 + (int64_t)relative != function->start ||
		    (jumps && at >= function->start && at < function->end))
			continue;
		climb->callers[climb->n_callers++] =
			(struct caller) { .vaddr = jumps ? at : at + 5, .jumps = jumps };
	}
}

/* Finds the direct calls of the function, and the jumps to it from other functions. */
static void find_callers(struct climb *climb)
{
	const struct elf_file *file = climb->frames->file;

	climb->n_callers = 0;
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint8_t *code = NULL;

		if (segment->exec && segment->filesz <= SEGMENT_BYTES_MAX)
			code = malloc(segment->filesz);
		if (code && !elf_file__read(file, segment->vaddr, code, segment->filesz))
			find_in_segment(climb, segment, code);
		free(code);
	}
}

static bool is_entry(const struct climb *climb, uint64_t vaddr)
{
	const struct unwind_rule *rule = unwind_table__find(&climb->frames->table, vaddr);

	return rule->kind == UNWIND_REG && rule->reg == UNWIND_REG_RSP && rule->cfa_off == 8;
}

/* Returns the loop's function that contains @vaddr. For a cold part, returns the function before it
 * in the list. NULL: none. */
static const struct runtime_range *loop_at(const struct climb *climb, uint64_t vaddr)
{
	for (size_t i = 0; i < climb->n_loops; i++) {
		if (vaddr < climb->loops[i].start || vaddr >= climb->loops[i].end)
			continue;
		while (i && !is_entry(climb, climb->loops[i].start))
			i--;
		return &climb->loops[i];
	}
	return NULL;
}

/* Drops callers of a loop's function that are outside the loop. Such a caller does not run anything
 * (rb_vm_get_insns_address_table, vm.c of CRuby). */
static void drop_outer_callers(struct climb *climb)
{
	size_t n = 0;

	for (size_t i = 0; i < climb->n_callers; i++)
		if (loop_at(climb, climb->callers[i].vaddr - !climb->callers[i].jumps))
			climb->callers[n++] = climb->callers[i];
	climb->n_callers = n;
}

/* Returns the function that contains all callers; NULL: they are in several functions. */
static const struct runtime_range *common_caller(const struct climb *climb)
{
	const struct runtime_range *common = NULL;

	for (size_t i = 0; i < climb->n_callers; i++) {
		uint64_t vaddr = climb->callers[i].vaddr - !climb->callers[i].jumps;
		const struct runtime_range *caller = loop_at(climb, vaddr);

		if (!caller)
			caller = site_frames__function(climb->frames, vaddr);
		if (!caller || caller == climb->function || (common && caller != common))
			return NULL;
		common = caller;
	}
	return common;
}

/* Returns true if one of the loop's functions calls @loop. */
static bool is_inner(struct climb *climb, const struct runtime_range *loop)
{
	climb->function = loop;
	find_callers(climb);
	drop_outer_callers(climb);
	return climb->n_callers > 0;
}

/* Adds the frame of the function that the callers are in. */
static int add_frame(struct climb *climb)
{
	int32_t bytes = 0;

	for (size_t i = 0; i < climb->n_callers; i++) {
		const struct caller *caller = &climb->callers[i];
		const struct unwind_rule *rule =
			unwind_table__find(&climb->frames->table, caller->vaddr);
		int32_t its = rule->cfa_off - (caller->jumps ? 8 : 0);

		if (rule->kind != UNWIND_REG || rule->reg != UNWIND_REG_RSP || (i && its != bytes))
			return -ENOTSUP;
		bytes = its;
	}
	climb->offset += bytes;
	return 0;
}

static int climb_to_loop(struct climb *climb)
{
	for (int step = 0; step < STEPS_MAX; step++) {
		const struct runtime_range *from = climb->function, *caller;

		find_callers(climb);
		if (loop_at(climb, from->start))
			drop_outer_callers(climb);
		caller = common_caller(climb);
		if (!caller)
			return step || climb->n_callers ? -ENOTSUP : -ENOENT;
		if (loop_at(climb, caller->start)) {
			if (!is_inner(climb, caller))
				return 0;
			climb->function = from;
			find_callers(climb);
		}
		if (add_frame(climb))
			return -ENOTSUP;
		climb->function = caller;
	}
	return -ENOTSUP;
}

int site_frames__loop(const struct site_frames *frames, uint64_t vaddr,
		      const struct runtime_range *loops, size_t n_loops, struct probe_rec *rec,
		      struct err *err)
{
	const struct unwind_rule *rule = unwind_table__find(&frames->table, vaddr);
	struct climb *climb = calloc(1, sizeof(*climb));
	const struct runtime_range *loop;
	int rc = 0;

	if (!climb)
		return err__set(err, -ENOMEM, "out of memory");
	*climb = (struct climb) { .frames = frames, .loops = loops, .n_loops = n_loops };
	loop = loop_at(climb, vaddr);
	if (!loop || is_inner(climb, loop)) {
		climb->function = loop ? loop : site_frames__function(frames, vaddr);
		climb->offset = rule->cfa_off;
		if (!climb->function || rule->kind != UNWIND_REG || rule->reg != UNWIND_REG_RSP)
			rc = -ENOTSUP;
		else
			rc = climb_to_loop(climb);
	}
	if (rc)
		err__set(err, rc,
			 "cannot determine the distance from the interpreter loop's stack frame to "
			 "the probe's");
	else
		rec->anchor_offset = climb->offset;
	free(climb);
	return rc;
}
