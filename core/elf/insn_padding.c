// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/insn_padding.h"

#include "core/base/util.h"

#define OPERAND_SIZE   0x66
#define SEGMENT_CS     0x2e
#define NOP	       0x90
#define INT3	       0xcc
#define MODRM_MOD(b)   ((b) >> 6)
#define MODRM_REG(b)   ((b) >> 3 & 7)
#define MODRM_SIB(b)   ((b) % 8 == 4)
#define NOPL_BYTES_MIN 3 /* 0f 1f and a memory operand */

/* Returns the size of a `nop` with a memory operand (0f 1f) at @code, or 0. */
static size_t nopl_bytes(const uint8_t *code, size_t size)
{
	static const uint8_t displacement[] = { 0, 1, 4 };
	size_t bytes;

	if (size < NOPL_BYTES_MIN || code[0] != 0x0f || code[1] != 0x1f || MODRM_REG(code[2]) ||
	    MODRM_MOD(code[2]) == 3)
		return 0;
	bytes = NOPL_BYTES_MIN + MODRM_SIB(code[2]) + displacement[MODRM_MOD(code[2])];
	return bytes <= size ? bytes : 0;
}

bool insn_padding__is_filling(const uint8_t *code, size_t size)
{
	size_t at = 0, bytes;

	while (at < size) {
		bytes = code[at] == INT3 || !code[at];
		while (!bytes && at < size && (code[at] == OPERAND_SIZE || code[at] == SEGMENT_CS))
			at++;
		if (!bytes && at < size)
			bytes = code[at] == NOP ? 1 : nopl_bytes(code + at, size - at);
		if (!bytes)
			return false;
		at += bytes;
	}
	return true;
}

/* Returns the @size bytes at @vaddr, or NULL. Borrowed until the next call. */
static const uint8_t *find_bytes(struct insn_padding *padding, uint64_t vaddr, size_t size)
{
	const struct elf_file *file = padding->file;

	if (vaddr - padding->at < padding->n && padding->n - (vaddr - padding->at) >= size)
		return padding->bytes + (vaddr - padding->at);
	padding->n = 0;
	for (size_t i = 0; i < file->n_segments && !padding->n; i++) {
		uint64_t at = vaddr - file->segments[i].vaddr;

		if (vaddr >= file->segments[i].vaddr && fits_in(at, size, file->segments[i].filesz))
			padding->n = min_of(file->segments[i].filesz - at,
					    (uint64_t)sizeof(padding->bytes));
	}
	padding->at = vaddr;
	if (!padding->n || elf_file__read(file, vaddr, padding->bytes, padding->n))
		padding->n = 0;
	return padding->n ? padding->bytes : NULL;
}

bool insn_padding__has_code(struct insn_padding *padding, const struct cfi_fde *fde)
{
	uint64_t gap = padding->described, size = fde->start - gap;
	const uint8_t *bytes;
	bool ret = false;

	if (fde->end <= fde->start)
		return false;
	if (fde->start > gap && size < INSN_GAP_BYTES) {
		bytes = find_bytes(padding, gap, size);
		ret = !bytes || !insn_padding__is_filling(bytes, size);
	}
	padding->described = max_of(gap, fde->end);
	return ret;
}
