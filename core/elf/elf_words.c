// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/elf/elf_symbols.h"

/* Limit of all data of a file. An interpreter with all its modules built in has 4 MB. */
#define BYTES_MAX (64ULL << 20)

struct piece { /* one of the file's segments */
	uint64_t vaddr, size;
	uint64_t memsz; /* bytes; at least @size, zeros follow */
	uint8_t *bytes; /* NULL: code */
	bool writable;
};

struct elf_words {
	struct piece *pieces;
	size_t n;
};

void elf_words__free(struct elf_words *words)
{
	if (!words)
		return;
	for (size_t i = 0; i < words->n; i++)
		free(words->pieces[i].bytes);
	free(words->pieces);
	free(words);
}

static bool is_writable(const struct elf_file *file, const struct elf_segment *segment)
{
	size_t n = 0;
	GElf_Phdr phdr;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(file->elf, i, &phdr) && phdr.p_type == PT_LOAD &&
		    phdr.p_vaddr == segment->vaddr)
			return phdr.p_flags & PF_W;
	return false;
}

static int read_pieces(struct elf_words *words, const struct elf_file *file)
{
	uint64_t left = BYTES_MAX;

	words->pieces = calloc(file->n_segments, sizeof(*words->pieces));
	if (!words->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		struct piece *piece = &words->pieces[words->n];

		*piece = (struct piece) { .vaddr = segment->vaddr,
					  .size = segment->filesz,
					  .memsz = segment->memsz };
		if (segment->exec && !is_writable(file, segment)) {
			words->n++;
			continue;
		}
		if (!segment->filesz)
			continue;
		if (segment->filesz > left)
			return -ENOENT;
		left -= segment->filesz;
		piece->writable = is_writable(file, segment);
		piece->bytes = malloc(segment->filesz);
		if (!piece->bytes)
			return -ENOMEM;
		words->n++;
		if (elf_file__read(file, segment->vaddr, piece->bytes, segment->filesz))
			return -ENOENT;
	}
	return 0;
}

static struct piece *find(const struct elf_words *words, uint64_t vaddr, size_t size)
{
	for (size_t i = 0; i < words->n; i++) {
		struct piece *piece = &words->pieces[i];
		uint64_t at = vaddr - piece->vaddr;

		if (vaddr >= piece->vaddr && at <= piece->size && size <= piece->size - at)
			return piece;
	}
	return NULL;
}

/* Sets *@ret to the pointer that a relocation makes. Returns false if it does not make a pointer.
 */
static bool value_of(const struct arch *arch, const GElf_Rela *rela,
		     const struct elf_symbols *dynsym, uint64_t *ret)
{
	GElf_Sym sym;

	switch (arch->relocation(GELF_R_TYPE(rela->r_info))) {
	case ARCH_RELOCATION_RELATIVE:
		*ret = rela->r_addend;
		return true;
	case ARCH_RELOCATION_ABS64:
	case ARCH_RELOCATION_GLOB_DAT:
		if (!dynsym->n || !elf_symbols__get(dynsym, GELF_R_SYM(rela->r_info), &sym))
			return false;
		/* A symbol that the file defines and another file may replace is treated as the
		 * file's own. */
		*ret = sym.st_shndx == SHN_UNDEF ? ELF_WORD_IMPORT : sym.st_value + rela->r_addend;
		return true;
	default:
		return false;
	}
}

/* Applies the relocations of .rela.dyn. Words with RELR relocations (.relr.dyn) already contain
 * their link-time value. */
static void relocate(struct elf_words *words, const struct elf_file *file)
{
	Elf_Data *data = elf_file__section(file, ".rela.dyn", NULL);
	size_t n = data && data->d_type == ELF_T_RELA ? data->d_size / sizeof(Elf64_Rela) : 0;
	struct elf_symbols dynsym = {};

	elf_symbols__open(file, ".dynsym", &dynsym);
	for (size_t i = 0; i < n; i++) {
		struct piece *piece;
		GElf_Rela rela;
		uint64_t value;

		if (quota__look_at(i))
			break;
		memcpy(&rela, (const Elf64_Rela *)data->d_buf + i, sizeof(rela));
		piece = find(words, rela.r_offset, sizeof(value));
		if (piece && piece->bytes && value_of(file->arch, &rela, &dynsym, &value))
			memcpy(piece->bytes + (rela.r_offset - piece->vaddr), &value,
			       sizeof(value));
	}
}

int elf_words__open(const struct elf_file *file, struct elf_words **ret)
{
	struct elf_words *words;
	int rc;

	if (!file->n_segments)
		return -ENOENT;
	words = calloc(1, sizeof(*words));
	if (!words)
		return -ENOMEM;
	rc = read_pieces(words, file);
	if (rc) {
		elf_words__free(words);
		return rc;
	}
	relocate(words, file);
	*ret = words;
	return 0;
}

/* Returns true for a word of data after the end of a segment's contents in the file, which is 0. */
static bool is_zero(const struct elf_words *words, uint64_t vaddr)
{
	for (size_t i = 0; i < words->n; i++) {
		const struct piece *piece = &words->pieces[i];
		uint64_t at = vaddr - piece->vaddr;

		if (piece->writable && vaddr >= piece->vaddr && at >= piece->size &&
		    at < piece->memsz && piece->memsz - at >= sizeof(vaddr))
			return true;
	}
	return false;
}

bool elf_words__get(const struct elf_words *words, uint64_t vaddr, uint64_t *ret)
{
	const struct piece *piece = find(words, vaddr, sizeof(*ret));

	if (!piece && is_zero(words, vaddr)) {
		*ret = 0;
		return true;
	}
	if (!piece || !piece->bytes)
		return false;
	memcpy(ret, piece->bytes + (vaddr - piece->vaddr), sizeof(*ret));
	return true;
}

const char *elf_words__text(const struct elf_words *words, uint64_t vaddr, size_t max)
{
	const struct piece *piece = find(words, vaddr, 1);
	const uint8_t *text;
	uint64_t left;

	if (!piece || !piece->bytes)
		return NULL;
	text = piece->bytes + (vaddr - piece->vaddr);
	left = piece->size - (vaddr - piece->vaddr);
	return memchr(text, '\0', left <= max ? left : max + 1) ? (const char *)text : NULL;
}

bool elf_words__is_code(const struct elf_words *words, uint64_t vaddr)
{
	const struct piece *piece = find(words, vaddr, 1);

	return piece && !piece->bytes;
}

bool elf_words__writable(const struct elf_words *words, size_t i, uint64_t *ret_vaddr,
			 size_t *ret_n)
{
	for (size_t k = 0; k < words->n; k++) {
		const struct piece *piece = &words->pieces[k];
		uint64_t skip = -piece->vaddr & 7;

		if (!piece->writable || piece->size < skip + 8 || i--)
			continue;
		*ret_vaddr = piece->vaddr + skip;
		*ret_n = (piece->size - skip) / 8;
		return true;
	}
	return false;
}
