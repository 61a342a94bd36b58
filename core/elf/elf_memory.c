// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"

#define PAGE_BYTES  4096ULL
#define PHDRS_MAX   64	       /* seen: 14 */
#define PHOFF_MAX   PAGE_BYTES /* linkers place program headers after the ELF header */
#define DYNAMIC_MAX 4096
#define COPY_MAX    (256ULL << 20) /* bytes of one image */

struct headers {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[PHDRS_MAX];
	size_t n;
	uint64_t bias;
	uint64_t size; /* bytes of the part of the file that segments contain */
};

static bool is_program(const Elf64_Ehdr *ehdr)
{
	return !memcmp(ehdr->e_ident, ELFMAG, SELFMAG) && ehdr->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ehdr->e_ident[EI_DATA] == ELFDATA2LSB && ehdr->e_machine == EM_X86_64 &&
	       (ehdr->e_type == ET_EXEC || ehdr->e_type == ET_DYN) &&
	       ehdr->e_phentsize == sizeof(Elf64_Phdr) && ehdr->e_phnum &&
	       ehdr->e_phnum <= PHDRS_MAX && ehdr->e_phoff <= PHOFF_MAX;
}

/* Checks the segments and computes size and bias. Returns 0, or -EBADMSG for segments that no
 * loader accepts. */
static int check_segments(struct headers *headers)
{
	bool found = false;

	headers->size = headers->ehdr.e_phoff + headers->n * sizeof(*headers->phdrs);
	for (size_t i = 0; i < headers->n; i++) {
		const Elf64_Phdr *phdr = &headers->phdrs[i];

		if (phdr->p_type != PT_LOAD)
			continue;
		if (!fits_in(phdr->p_vaddr, phdr->p_memsz, INT64_MAX) ||
		    !fits_in(phdr->p_offset, phdr->p_filesz, INT64_MAX) ||
		    phdr->p_filesz > phdr->p_memsz)
			return -EBADMSG;
		headers->size = max_of(headers->size, phdr->p_offset + phdr->p_filesz);
		if (phdr->p_offset < PAGE_BYTES && !found) { /* contains the header */
			headers->bias -= phdr->p_vaddr - phdr->p_offset;
			found = true;
		}
	}
	return found ? 0 : -EBADMSG;
}

static int read_headers(const struct elf_memory *memory, struct headers *ret)
{
	*ret = (struct headers) { .bias = memory->header };
	if (!memory->read(memory->ctx, memory->header, &ret->ehdr, sizeof(ret->ehdr)) ||
	    !is_program(&ret->ehdr))
		return -ENOEXEC;
	ret->n = ret->ehdr.e_phnum;
	if (!memory->read(memory->ctx, memory->header + ret->ehdr.e_phoff, ret->phdrs,
			  ret->n * sizeof(*ret->phdrs)))
		return -ENOEXEC;
	return check_segments(ret);
}

bool elf_memory__has_code(const struct elf_memory *memory, uint64_t address)
{
	struct headers headers;

	if (read_headers(memory, &headers))
		return false;
	for (size_t i = 0; i < headers.n; i++) {
		const Elf64_Phdr *phdr = &headers.phdrs[i];
		uint64_t start = (phdr->p_vaddr + headers.bias) & ~(PAGE_BYTES - 1);

		if (phdr->p_type == PT_LOAD && phdr->p_flags & PF_X && address >= start &&
		    address - start < phdr->p_memsz + (phdr->p_vaddr & (PAGE_BYTES - 1)))
			return true;
	}
	return false;
}

/* --- copying --- */

/* Copies a segment. Unreadable pages remain zero. */
static int copy_segment(const struct elf_memory *memory, const struct headers *headers,
			const Elf64_Phdr *phdr, char *image, struct quota_account *account)
{
	uint64_t at = 0, address = phdr->p_vaddr + headers->bias, n;
	bool by_page = false;
	int rc = 0;

	while (at < phdr->p_filesz && !rc) {
		n = by_page ? PAGE_BYTES - (address + at) % PAGE_BYTES : QUOTA_BLOCK;
		n = min_of(n, phdr->p_filesz - at);
		rc = quota__charge(account, QUOTA_READ, n);
		if (rc)
			break;
		if (memory->read(memory->ctx, address + at, image + phdr->p_offset + at, n) ||
		    by_page) {
			at += n;
			by_page = by_page && at % QUOTA_BLOCK >= PAGE_BYTES;
		} else {
			by_page = true;
		}
	}
	return rc;
}

/* --- changes by the dynamic linker --- */

static bool is_pointer(int64_t tag)
{
	static const int64_t pointers[] = { DT_PLTGOT, DT_HASH,	      DT_STRTAB,     DT_SYMTAB,
					    DT_RELA,   DT_INIT,	      DT_FINI,	     DT_REL,
					    DT_JMPREL, DT_INIT_ARRAY, DT_FINI_ARRAY, DT_GNU_HASH,
					    DT_VERSYM, DT_VERDEF,     DT_VERNEED };

	for (size_t i = 0; i < ARRAY_SIZE(pointers); i++)
		if (pointers[i] == tag)
			return true;
	return false;
}

/* Returns true if a loaded segment of the image contains @address. */
static bool is_loaded(const struct headers *headers, uint64_t address)
{
	for (size_t i = 0; i < headers->n; i++)
		if (headers->phdrs[i].p_type == PT_LOAD &&
		    address - headers->bias - headers->phdrs[i].p_vaddr <=
			    headers->phdrs[i].p_memsz)
			return true;
	return false;
}

/* Returns the bytes of the image from link-time address @vaddr on, or NULL if there are fewer than
 * @size. */
static char *bytes_at(const struct headers *headers, char *image, uint64_t vaddr, uint64_t size)
{
	for (size_t i = 0; i < headers->n; i++) {
		const Elf64_Phdr *phdr = &headers->phdrs[i];

		if (phdr->p_type == PT_LOAD && vaddr >= phdr->p_vaddr &&
		    fits_in(vaddr - phdr->p_vaddr, size, phdr->p_filesz))
			return image + phdr->p_offset + (vaddr - phdr->p_vaddr);
	}
	return NULL;
}

/* Restores link-time addresses in PT_DYNAMIC. Dynamic linkers (glibc's, not musl's) replace them by
 * addresses. */
static void restore_dynamic(const struct headers *headers, char *image)
{
	const Elf64_Phdr *phdr = NULL;
	Elf64_Dyn entry;
	char *at;

	for (size_t i = 0; i < headers->n && !phdr; i++)
		if (headers->phdrs[i].p_type == PT_DYNAMIC)
			phdr = &headers->phdrs[i];
	for (size_t i = 0; phdr && headers->bias && i < DYNAMIC_MAX; i++) {
		at = bytes_at(headers, image, phdr->p_vaddr + i * sizeof(entry), sizeof(entry));
		if (!at)
			return;
		memcpy(&entry, at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			return;
		if (!is_pointer(entry.d_tag) || !is_loaded(headers, entry.d_un.d_ptr))
			continue;
		entry.d_un.d_ptr -= headers->bias;
		memcpy(at, &entry, sizeof(entry));
	}
}

int elf_memory__copy(const struct elf_memory *memory, const char *path,
		     struct quota_account *account, struct elf_file **ret, uint64_t *ret_bias,
		     struct err *err)
{
	struct headers headers;
	char *image = NULL;
	int rc = read_headers(memory, &headers);

	if (!rc && headers.size > COPY_MAX)
		rc = quota__refuse(account);
	if (!rc) {
		image = calloc(1, headers.size);
		rc = image ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < headers.n && !rc; i++)
		if (headers.phdrs[i].p_type == PT_LOAD)
			rc = copy_segment(memory, &headers, &headers.phdrs[i], image, account);
	if (rc) {
		free(image);
		return err__set(err, rc, "%s: cannot read its memory: %s", path, strerror(-rc));
	}
	/* The checked headers, as the memory may have changed since. */
	headers.ehdr.e_shoff = headers.ehdr.e_shnum = headers.ehdr.e_shstrndx = 0;
	memcpy(image, &headers.ehdr, sizeof(headers.ehdr));
	memcpy(image + headers.ehdr.e_phoff, headers.phdrs, headers.n * sizeof(*headers.phdrs));
	restore_dynamic(&headers, image);
	*ret_bias = headers.bias;
	return elf_file__take_memory(image, headers.size, path, account, ret, err);
}

/* --- comparing --- */

static bool is_same_part(const struct elf_memory *memory, const struct elf_file *file,
			 uint64_t address, uint64_t offset, uint64_t size, char *blocks)
{
	for (uint64_t at = 0; at < size; at += QUOTA_BLOCK) {
		size_t n = min_of(size - at, (uint64_t)QUOTA_BLOCK);

		if (!memory->read(memory->ctx, address + at, blocks, n) ||
		    elf_file__read_at(file, offset + at, blocks + QUOTA_BLOCK, n) ||
		    memcmp(blocks, blocks + QUOTA_BLOCK, n) != 0)
			return false;
	}
	return true;
}

bool elf_memory__is_same(const struct elf_memory *memory, const struct elf_file *file)
{
	char *blocks = malloc(2 * QUOTA_BLOCK);
	struct headers headers;
	Elf64_Ehdr copied;
	bool same = blocks && !read_headers(memory, &headers) && headers.size == file->size &&
		    !elf_file__read_at(file, 0, &copied, sizeof(copied)) &&
		    copied.e_phoff == headers.ehdr.e_phoff && copied.e_phnum == headers.n &&
		    is_same_part(memory, file, memory->header + copied.e_phoff, copied.e_phoff,
				 headers.n * sizeof(*headers.phdrs), blocks);

	for (size_t i = 0; i < headers.n && same; i++) {
		const Elf64_Phdr *phdr = &headers.phdrs[i];
		uint64_t skipped = phdr->p_offset < sizeof(copied)
					   ? min_of(sizeof(copied) - phdr->p_offset, phdr->p_filesz)
					   : 0;

		if (phdr->p_type == PT_LOAD && !(phdr->p_flags & PF_W))
			same = is_same_part(memory, file, phdr->p_vaddr + headers.bias + skipped,
					    phdr->p_offset + skipped, phdr->p_filesz - skipped,
					    blocks);
	}
	free(blocks);
	return same;
}
