// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/fdes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define SECTION		      ".eh_frame"
#define ENCODING_PCREL_SDATA4 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

/* Returns true if a CIE has the usual pointer encoding. */
static bool is_usual(const unsigned char *cie, size_t size)
{
	const char *augmentation = (const char *)cie + 9;
	size_t length = size > 9 ? strnlen(augmentation, size - 9) : 0, i = 9 + length + 1;

	if (size < 16 || cie[8] != 1 || augmentation[0] != 'z' || i + 4 >= size)
		return false;
	i += 3; /* alignment factors, return address register: one byte each */
	i += 1; /* length of the augmentation */
	for (size_t k = 1; k < length && i < size; k++) {
		if (augmentation[k] == 'R')
			return cie[i] == ENCODING_PCREL_SDATA4;
		i += augmentation[k] == 'L' ? 1 : augmentation[k] == 'P' ? 5 : 0;
	}
	return false;
}

static int by_code(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Adds a frame description. @size is the value of its length field. */
static int add(struct fdes *fdes, const struct elf_view *view, const Elf64_Shdr *shdr,
	       uint64_t offset, uint32_t size)
{
	const unsigned char *entry = view->bytes + shdr->sh_offset + offset;
	struct fde fde = { offset, size + 4, 0, 0 };
	uint32_t cie_size, back, length;
	int32_t start;
	int ret;

	memcpy(&back, entry + 4, 4);
	if (!back || back > offset + 4 || size < 16)
		return 0; /* a CIE */
	memcpy(&cie_size, entry + 4 - back, 4);
	if (cie_size > shdr->sh_size - (offset + 4 - back) - 4 ||
	    !is_usual(entry + 4 - back, cie_size + 4))
		return 0;
	memcpy(&start, entry + 8, 4);
	memcpy(&length, entry + 12, 4);
	fde.start = shdr->sh_addr + offset + 8 + (int64_t)start;
	fde.end = fde.start + length;
	ret = array__reserve(&fdes->list, &fdes->cap, fdes->n + 1, sizeof(fde));
	if (!ret)
		fdes->list[fdes->n++] = fde;
	return ret;
}

int fdes__read(const struct elf_view *view, struct fdes *ret)
{
	const Elf64_Shdr *shdr = elf_view__find(view, SECTION);
	uint64_t offset = 0;
	uint32_t size;
	int code = 0;

	while (!code && shdr && shdr->sh_size - offset > 8) {
		memcpy(&size, view->bytes + shdr->sh_offset + offset, 4);
		if (!size || size > shdr->sh_size - offset - 4)
			break;
		code = add(ret, view, shdr, offset, size);
		offset += size + 4;
	}
	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), by_code);
	return code;
}

void fdes__done(struct fdes *fdes)
{
	free(fdes->list);
	*fdes = (struct fdes) {};
}

/* Joins neighbours of which only the head is left, from the first one on. */
static void join(unsigned char *bytes, uint64_t section_size)
{
	uint64_t filler = 0; /* start of the previous filler; 0: none */
	uint64_t offset = 0;
	uint32_t size, first, joined;

	while (section_size - offset > 16) {
		memcpy(&size, bytes + offset, 4);
		if (!size || size > section_size - offset - 4)
			return;
		memcpy(&first, bytes + offset + 12, 4); /* size of the code */
		if (first || memcmp(bytes + offset + 4, "\0\0\0", 4) == 0) {
			filler = 0;
		} else if (filler) {
			joined = offset + 4 + size - filler - 4;
			memset(bytes + offset, 0, 12);
			memcpy(bytes + filler, &joined, 4);
		} else {
			filler = offset;
		}
		offset += 4 + size;
	}
}

unsigned char *fdes__filter(const struct fdes *fdes, const struct elf_view *view,
			    const struct spans *code)
{
	const Elf64_Shdr *shdr = elf_view__find(view, SECTION);
	unsigned char *bytes = malloc(shdr->sh_size);

	if (!bytes)
		return NULL;
	memcpy(bytes, view->bytes + shdr->sh_offset, shdr->sh_size);
	for (size_t i = 0; i < fdes->n; i++) {
		const struct fde *fde = &fdes->list[i];

		if (!spans__meet(code, fde->start, fde->end))
			memset(bytes + fde->at + 12, 0, fde->size - 12);
	}
	join(bytes, shdr->sh_size);
	return bytes;
}
