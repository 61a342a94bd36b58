// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/elf_generated.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/cfi_reader.h"

/* Limits of program headers and dynamic entries. Seen: 14 and 40. */
#define PHDRS_MAX   1024
#define DYNAMIC_MAX 4096

/* Limit of the entries of a hash table or of call frame information, whose number no header has. */
#define ENTRIES_MAX (8U << 20)

enum part {
	PART_NONE,
	PART_NAMES,
	PART_INTERP,
	PART_EH_FRAME,
	PART_RODATA,
	PART_DYNAMIC,
	PART_DYNSTR,
	PART_DYNSYM,
	PART_RELA_DYN,
	PART_RELA_PLT,
	PART_PLT,
	PART_TEXT, /* the first of the executable segments */
	PARTS_N,
};

#define TEXTS_MAX    16
#define SECTIONS_MAX (PARTS_N + TEXTS_MAX - 1)

static const struct {
	const char *name;
	uint32_t type, link, entry_size;
	uint64_t flags;
} parts[PARTS_N] = {
	[PART_NONE] = { "", SHT_NULL, 0, 0, 0 },
	[PART_NAMES] = { ".shstrtab", SHT_STRTAB, 0, 0, 0 },
	[PART_INTERP] = { ".interp", SHT_PROGBITS, 0, 0, SHF_ALLOC },
	[PART_EH_FRAME] = { ".eh_frame", SHT_PROGBITS, 0, 0, SHF_ALLOC },
	[PART_RODATA] = { ".rodata", SHT_PROGBITS, 0, 0, SHF_ALLOC },
	[PART_DYNAMIC] = { ".dynamic", SHT_DYNAMIC, PART_DYNSTR, sizeof(Elf64_Dyn),
			   SHF_ALLOC | SHF_WRITE },
	[PART_DYNSTR] = { ".dynstr", SHT_STRTAB, 0, 0, SHF_ALLOC },
	[PART_DYNSYM] = { ".dynsym", SHT_DYNSYM, PART_DYNSTR, sizeof(Elf64_Sym), SHF_ALLOC },
	[PART_RELA_DYN] = { ".rela.dyn", SHT_RELA, PART_DYNSYM, sizeof(Elf64_Rela), SHF_ALLOC },
	[PART_RELA_PLT] = { ".rela.plt", SHT_RELA, PART_DYNSYM, sizeof(Elf64_Rela), SHF_ALLOC },
	[PART_PLT] = { ".plt", SHT_PROGBITS, 0, 16, SHF_ALLOC | SHF_EXECINSTR },
	[PART_TEXT] = { ".text", SHT_PROGBITS, 0, 0, SHF_ALLOC | SHF_EXECINSTR },
};

struct elf_generated {
	char *headers; /* owned */
	size_t size;
	Elf_Data names;
	char texts[256]; /* bytes of @names */
};

struct making {
	const struct elf_file *file;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[PHDRS_MAX];
	size_t n_phdrs;
	Elf64_Shdr shdrs[SECTIONS_MAX];
	size_t n_shdrs;
	uint64_t dynamic[DT_NUM]; /* values by tag; 0: absent */
	uint64_t gnu_hash;
};

/* --- addresses --- */

/* Returns the loaded segment that contains @vaddr in the file, or NULL. *@ret_left is the number of
 * bytes from @vaddr to its end in the file. */
static const Elf64_Phdr *segment_of(const struct making *m, uint64_t vaddr, uint64_t *ret_left)
{
	for (size_t i = 0; i < m->n_phdrs; i++) {
		const Elf64_Phdr *phdr = &m->phdrs[i];

		if (phdr->p_type != PT_LOAD || vaddr < phdr->p_vaddr ||
		    vaddr - phdr->p_vaddr >= phdr->p_filesz ||
		    !fits_in(phdr->p_offset, phdr->p_filesz, m->file->size))
			continue;
		*ret_left = phdr->p_filesz - (vaddr - phdr->p_vaddr);
		return phdr;
	}
	return NULL;
}

static int read_vaddr(const struct making *m, uint64_t vaddr, void *to, size_t size)
{
	uint64_t left;
	const Elf64_Phdr *phdr = segment_of(m, vaddr, &left);

	if (!phdr || size > left)
		return -EFAULT;
	return elf_file__read_at(m->file, phdr->p_offset + (vaddr - phdr->p_vaddr), to, size);
}

/* Adds a section for the part of [@vaddr, @vaddr + @size) that is in the file. */
static void put(struct making *m, size_t index, enum part part, uint64_t vaddr, uint64_t size)
{
	uint64_t left = 0;
	const Elf64_Phdr *phdr = segment_of(m, vaddr, &left);

	size = min_of(size, left);
	if (parts[part].entry_size)
		size -= size % parts[part].entry_size;
	if (!phdr || !size)
		return;
	m->shdrs[index] = (Elf64_Shdr) { .sh_type = parts[part].type,
					 .sh_flags = parts[part].flags,
					 .sh_addr = vaddr,
					 .sh_offset = phdr->p_offset + (vaddr - phdr->p_vaddr),
					 .sh_size = size,
					 .sh_link = parts[part].link,
					 .sh_addralign = 1,
					 .sh_entsize = parts[part].entry_size };
}

static const Elf64_Phdr *find_phdr(const struct making *m, uint32_t type)
{
	for (size_t i = 0; i < m->n_phdrs; i++)
		if (m->phdrs[i].p_type == type)
			return &m->phdrs[i];
	return NULL;
}

/* --- data for the dynamic linker --- */

static int read_dynamic(struct making *m)
{
	const Elf64_Phdr *phdr = find_phdr(m, PT_DYNAMIC);
	size_t n = phdr ? min_of(phdr->p_filesz / sizeof(Elf64_Dyn), (uint64_t)DYNAMIC_MAX) : 0;
	Elf64_Dyn entry;
	int rc;

	for (size_t i = 0; i < n; i++) {
		rc = read_vaddr(m, phdr->p_vaddr + i * sizeof(entry), &entry, sizeof(entry));
		if (rc || entry.d_tag == DT_NULL)
			return rc == -EFAULT ? 0 : rc;
		if (entry.d_tag > 0 && entry.d_tag < DT_NUM)
			m->dynamic[entry.d_tag] = entry.d_un.d_val;
		else if (entry.d_tag == DT_GNU_HASH)
			m->gnu_hash = entry.d_un.d_val;
	}
	return 0;
}

/* Sets *@ret to the largest of the @n words at @vaddr. Returns 0 or a negative errno. */
static int find_largest(const struct making *m, uint64_t vaddr, uint64_t n, uint32_t *ret)
{
	uint32_t words[1024];
	int rc = 0;

	*ret = 0;
	for (uint64_t i = 0; i < n && !rc; i += ARRAY_SIZE(words)) {
		size_t some = min_of(n - i, (uint64_t)ARRAY_SIZE(words));

		rc = read_vaddr(m, vaddr + i * sizeof(*words), words, some * sizeof(*words));
		for (size_t k = 0; k < some && !rc; k++)
			*ret = max_of(*ret, words[k]);
		if (!rc)
			rc = quota__look();
	}
	return rc;
}

/* Counts the symbols by DT_GNU_HASH. Defined symbols are last, sorted by bucket. The chain of the
 * bucket with the largest first symbol ends, by its lowest bit, at the last symbol. */
static int count_by_gnu_hash(const struct making *m, uint64_t *ret)
{
	struct {
		uint32_t n_buckets, first, n_bloom, shift;
	} head;
	uint64_t buckets, chains;
	uint32_t last, hash = 0;
	int rc = read_vaddr(m, m->gnu_hash, &head, sizeof(head));

	if (rc)
		return rc;
	buckets = m->gnu_hash + sizeof(head) + (uint64_t)head.n_bloom * sizeof(uint64_t);
	chains = buckets + (uint64_t)head.n_buckets * sizeof(uint32_t);
	if (head.n_buckets > ENTRIES_MAX || head.n_bloom > ENTRIES_MAX)
		return quota__refuse(m->file->account);
	rc = find_largest(m, buckets, head.n_buckets, &last);
	if (!rc && last < head.first) { /* no symbol is defined */
		*ret = head.first;
		return 0;
	}
	for (uint32_t i = last; !rc && !(hash & 1); i++) {
		if (i - last >= ENTRIES_MAX)
			return quota__refuse(m->file->account);
		rc = read_vaddr(m, chains + (uint64_t)(i - head.first) * sizeof(hash), &hash,
				sizeof(hash));
		*ret = (uint64_t)i + 1;
		if (!rc)
			rc = quota__look_at(i);
	}
	return rc;
}

static int count_symbols(const struct making *m, uint64_t *ret)
{
	uint64_t symbols = m->dynamic[DT_SYMTAB], strings = m->dynamic[DT_STRTAB];
	uint32_t head[2]; /* numbers in DT_HASH: buckets, and chains, one for each symbol */
	int rc = -EFAULT;

	if (m->dynamic[DT_HASH])
		rc = read_vaddr(m, m->dynamic[DT_HASH], head, sizeof(head));
	if (!rc)
		*ret = head[1];
	else if (rc == -EFAULT && m->gnu_hash)
		rc = count_by_gnu_hash(m, ret);
	if (rc == -EFAULT && strings > symbols) { /* linkers place the strings after the symbols */
		*ret = (strings - symbols) / sizeof(Elf64_Sym);
		rc = 0;
	}
	return rc;
}

/* Adds the table of stubs. Words of the global offset table that the dynamic linker has not filled
 * in point back into the stubs. The table extends from the lowest to the highest of these
 * addresses. */
static int put_stubs(struct making *m)
{
	const struct arch *arch = arch__of_machine(m->ehdr.e_machine);
	uint64_t n = m->dynamic[DT_PLTRELSZ] / sizeof(Elf64_Rela), low = UINT64_MAX, high = 0, left;
	const Elf64_Phdr *segment;
	int rc = 0;

	for (uint64_t i = 0; i < min_of(n, (uint64_t)ENTRIES_MAX) && !rc; i++) {
		Elf64_Rela rela;
		uint64_t to;

		rc = read_vaddr(m, m->dynamic[DT_JMPREL] + i * sizeof(rela), &rela, sizeof(rela));
		if (rc)
			break;
		rc = quota__look_at(i);
		if (arch->relocation(ELF64_R_TYPE(rela.r_info)) != ARCH_RELOCATION_JUMP_SLOT ||
		    read_vaddr(m, rela.r_offset, &to, sizeof(to)))
			continue;
		segment = segment_of(m, to, &left);
		if (!segment || !(segment->p_flags & PF_X))
			continue;
		low = min_of(low, to & ~15ULL);
		high = max_of(high, (to & ~15ULL) + 16);
	}
	/* Stubs further apart than their number allows are something else. */
	if (low < high && high - low <= 16 * n)
		put(m, PART_PLT, PART_PLT, low, high - low);
	return rc == -EFAULT ? 0 : rc;
}

static int put_dynamic(struct making *m)
{
	const Elf64_Phdr *phdr = find_phdr(m, PT_DYNAMIC);
	uint64_t n = 0;
	int rc = read_dynamic(m);

	if (rc || !phdr)
		return rc;
	put(m, PART_DYNAMIC, PART_DYNAMIC, phdr->p_vaddr, phdr->p_filesz);
	put(m, PART_DYNSTR, PART_DYNSTR, m->dynamic[DT_STRTAB], m->dynamic[DT_STRSZ]);
	put(m, PART_RELA_DYN, PART_RELA_DYN, m->dynamic[DT_RELA], m->dynamic[DT_RELASZ]);
	if (m->dynamic[DT_PLTREL] == DT_RELA) {
		put(m, PART_RELA_PLT, PART_RELA_PLT, m->dynamic[DT_JMPREL],
		    m->dynamic[DT_PLTRELSZ]);
		rc = put_stubs(m);
	}
	if (!rc)
		rc = count_symbols(m, &n);
	if (!rc)
		put(m, PART_DYNSYM, PART_DYNSYM, m->dynamic[DT_SYMTAB],
		    min_of(n, (uint64_t)ENTRIES_MAX) * sizeof(Elf64_Sym));
	return rc == -EFAULT ? 0 : rc;
}

/* --- call frame information --- */

/* Sets *@ret to the size of the entries from @vaddr on: up to an entry of length 0, or to bytes
 * that cannot be an entry. Returns 0 or a negative errno. */
static int measure_entries(const struct making *m, uint64_t vaddr, uint64_t *ret)
{
	uint64_t left = 0, at = 0, size;
	uint32_t length;
	int rc = 0;

	segment_of(m, vaddr, &left);
	for (uint32_t i = 0; i < ENTRIES_MAX && fits_in(at, sizeof(length), left); i++) {
		rc = read_vaddr(m, vaddr + at, &length, sizeof(length));
		if (!rc)
			rc = quota__look_at(i);
		if (rc)
			break;
		size = sizeof(length) + (uint64_t)length;
		if (!fits_in(at, size, left)) /* 0xffffffff precedes an entry of more than 4 GB */
			break;
		at += size;
		if (!length) /* the end */
			break;
	}
	*ret = at;
	return rc == -EFAULT ? 0 : rc;
}

/* Adds .eh_frame. PT_GNU_EH_FRAME is the address of .eh_frame_hdr, which begins with a version,
 * three encodings and the address of .eh_frame. */
static int put_frames(struct making *m)
{
	const Elf64_Phdr *phdr = find_phdr(m, PT_GNU_EH_FRAME);
	uint8_t head[4 + 10] = {};
	struct cfi_reader in = { .at = head + 4, .end = head + sizeof(head) };
	uint64_t vaddr, size;
	int rc;

	if (!phdr)
		return 0;
	rc = read_vaddr(m, phdr->p_vaddr, head, min_of(phdr->p_filesz, (uint64_t)sizeof(head)));
	if (rc || head[0] != 1 || head[1] == DW_EH_PE_omit || head[1] & DW_EH_PE_indirect)
		return rc == -EFAULT ? 0 : rc;
	vaddr = cfi_reader__address(&in, head[1], phdr->p_vaddr - (uintptr_t)head);
	if (in.bad)
		return 0;
	rc = measure_entries(m, vaddr, &size);
	if (!rc)
		put(m, PART_EH_FRAME, PART_EH_FRAME, vaddr, size);
	return rc;
}

/* --- code and constants --- */

/* Adds the constants. They are in the segment of the call frame information, or else in the last
 * segment that is neither writable nor executable. */
static void put_constants(struct making *m)
{
	const Elf64_Phdr *frames = find_phdr(m, PT_GNU_EH_FRAME), *found = NULL;
	uint64_t left;

	if (frames)
		found = segment_of(m, frames->p_vaddr, &left);
	for (size_t i = 0; i < m->n_phdrs && !frames; i++)
		if (m->phdrs[i].p_type == PT_LOAD && !(m->phdrs[i].p_flags & (PF_W | PF_X)))
			found = &m->phdrs[i];
	if (found)
		put(m, PART_RODATA, PART_RODATA, found->p_vaddr, found->p_filesz);
}

/* Narrows [*@start, *@end), which contains code at @code, to the part between tables. */
static void narrow(const struct making *m, uint64_t code, uint64_t *start, uint64_t *end)
{
	const Elf64_Phdr *frames = find_phdr(m, PT_GNU_EH_FRAME);
	uint64_t header = m->ehdr.e_phoff + m->n_phdrs * sizeof(Elf64_Phdr);

	if (!*start) /* the file's header, at address 0 */
		*start = min_of(header, *end);
	for (int i = PART_INTERP; i < PART_PLT; i++) {
		const Elf64_Shdr *shdr = &m->shdrs[i];

		if (i == PART_RODATA || !shdr->sh_size)
			continue;
		if (shdr->sh_addr + shdr->sh_size <= code)
			*start = max_of(*start, shdr->sh_addr + shdr->sh_size);
		else if (shdr->sh_addr > code)
			*end = min_of(*end, shdr->sh_addr);
	}
	if (frames && frames->p_vaddr > code)
		*end = min_of(*end, frames->p_vaddr);
}

/* Adds the code: the executable segments. If a segment also contains tables, adds only the part
 * between tables around an address that is proven to be code. */
static void put_code(struct making *m)
{
	const uint64_t known[] = { m->ehdr.e_entry, m->dynamic[DT_INIT], m->dynamic[DT_FINI] };
	size_t n = 0;

	for (size_t i = 0; i < m->n_phdrs && n < TEXTS_MAX; i++) {
		const Elf64_Phdr *phdr = &m->phdrs[i];
		uint64_t start = phdr->p_vaddr, end = phdr->p_vaddr + phdr->p_filesz;

		if (phdr->p_type != PT_LOAD || !(phdr->p_flags & PF_X) || end < start)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(known); k++)
			if (known[k] && known[k] - phdr->p_vaddr < phdr->p_filesz) {
				narrow(m, known[k], &start, &end);
				break;
			}
		if (!start)
			start = min_of(m->ehdr.e_phoff + m->n_phdrs * sizeof(*phdr), end);
		if (start < end)
			put(m, PART_TEXT + n, PART_TEXT, start, end - start);
		n += m->shdrs[PART_TEXT + n].sh_size != 0;
	}
	m->n_shdrs = PART_TEXT + n;
}

/* --- all together --- */

static int read_headers(struct making *m)
{
	int rc = elf_file__read_at(m->file, 0, &m->ehdr, sizeof(m->ehdr));

	if (rc)
		return rc == -EFAULT ? -ENOENT : rc;
	if (memcmp(m->ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    m->ehdr.e_ident[EI_CLASS] != ELFCLASS64 || m->ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    !arch__of_machine(m->ehdr.e_machine) || m->ehdr.e_phentsize != sizeof(Elf64_Phdr) ||
	    m->ehdr.e_phnum == 0 || m->ehdr.e_phnum > PHDRS_MAX)
		return -ENOENT;
	m->n_phdrs = m->ehdr.e_phnum;
	rc = elf_file__read_at(m->file, m->ehdr.e_phoff, m->phdrs, m->n_phdrs * sizeof(*m->phdrs));
	return rc == -EFAULT ? -ENOENT : rc;
}

static void write_names(struct elf_generated *generated, Elf64_Shdr *shdrs, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = parts[min_of(i, (size_t)PART_TEXT)].name;

		if (i <= PART_TEXT) {
			shdrs[i].sh_name = at;
			memcpy(generated->texts + at, name, strlen(name) + 1);
			at += strlen(name) + 1;
		} else {
			shdrs[i].sh_name = shdrs[PART_TEXT].sh_name;
		}
	}
	shdrs[PART_NAMES].sh_type = SHT_STRTAB;
	generated->names = (Elf_Data) { .d_buf = generated->texts,
					.d_type = ELF_T_BYTE,
					.d_version = EV_CURRENT,
					.d_size = at,
					.d_align = 1 };
}

static int write_headers(struct elf_generated *generated, struct making *m)
{
	size_t phdrs_at = sizeof(m->ehdr), shdrs_at = phdrs_at + m->n_phdrs * sizeof(*m->phdrs);

	write_names(generated, m->shdrs, m->n_shdrs);
	generated->size = shdrs_at + m->n_shdrs * sizeof(*m->shdrs);
	generated->headers = malloc(generated->size);
	if (!generated->headers)
		return -ENOMEM;
	m->ehdr.e_phoff = phdrs_at;
	m->ehdr.e_shoff = shdrs_at;
	m->ehdr.e_shentsize = sizeof(Elf64_Shdr);
	m->ehdr.e_shnum = m->n_shdrs;
	m->ehdr.e_shstrndx = PART_NAMES;
	memcpy(generated->headers, &m->ehdr, sizeof(m->ehdr));
	memcpy(generated->headers + phdrs_at, m->phdrs, m->n_phdrs * sizeof(*m->phdrs));
	memcpy(generated->headers + shdrs_at, m->shdrs, m->n_shdrs * sizeof(*m->shdrs));
	return 0;
}

int elf_generated__new(const struct elf_file *file, struct elf_generated **ret)
{
	struct making *m = calloc(1, sizeof(*m));
	struct elf_generated *generated = calloc(1, sizeof(*generated));
	const Elf64_Phdr *interp;
	int rc = m && generated ? 0 : -ENOMEM;

	if (rc)
		goto out;
	m->file = file;
	rc = read_headers(m);
	if (!rc)
		rc = put_dynamic(m);
	if (!rc)
		rc = put_frames(m);
	if (rc)
		goto out;
	interp = find_phdr(m, PT_INTERP);
	if (interp)
		put(m, PART_INTERP, PART_INTERP, interp->p_vaddr, interp->p_filesz);
	put_constants(m);
	put_code(m);
	rc = write_headers(generated, m);
out:
	free(m);
	if (rc)
		elf_generated__free(generated);
	else
		*ret = generated;
	return rc;
}

void elf_generated__free(struct elf_generated *generated)
{
	if (!generated)
		return;
	free(generated->headers);
	free(generated);
}

char *elf_generated__headers(const struct elf_generated *generated, size_t *ret_size)
{
	*ret_size = generated->size;
	return generated->headers;
}

const Elf_Data *elf_generated__names(const struct elf_generated *generated)
{
	return &generated->names;
}
