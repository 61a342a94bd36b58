// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/extract.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/util.h"

#define WHOLE_BYTES_MAX (16 * 1024)  /* files up to this size are kept whole */
#define BYTES_MAX	(128 * 1024) /* of one want; longer reads look for something (needles) */
#define NEIGHBOURS	2	     /* frame descriptions on either side of a wanted one */
#define NEEDLE_HITS_MAX 16
#define NEEDLE_BYTES	96 /* kept on either side of a needle */

#define WANTED                                                                            \
	"wanted" /* name of the PACK_KNOWN of code that was asked for, not its neighbours \
		  */

/* Texts that runtimes look for in all of a section or a file. */
static const char *const needles[] = { " JRE (", "/node-v" };

/* Beginnings of the names of symbols that runtimes look through all symbols for. */
static const char *const prefixes[] = { "_ZN12StubRoutines" };

struct span {
	uint64_t start, end;
};

struct spans {
	struct span *list;
	size_t n, cap;
};

struct fde {		   /* a frame description of .eh_frame */
	uint64_t at, size; /* in the file */
	uint64_t start, end;
};

struct extract {
	char *path, *name;
	const unsigned char *file; /* mapped */
	uint64_t size;
	bool whole;
	struct spans wanted; /* link-time addresses of code ... */
	struct spans code;   /* ... and these with all that is around them */
	struct spans pieces; /* offsets */
	char **symbols;	     /* wanted by name */
	size_t n_symbols, cap_symbols;
	struct fde *fdes; /* by their start */
	size_t n_fdes, cap_fdes;
};

static int spans__add(struct spans *spans, uint64_t start, uint64_t end)
{
	int ret = array__reserve(&spans->list, &spans->cap, spans->n + 1, sizeof(*spans->list));

	if (!ret && start < end)
		spans->list[spans->n++] = (struct span) { start, end };
	return ret;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, and joins those that touch. */
static void spans__join(struct spans *spans)
{
	size_t n = 0;

	if (spans->n)
		qsort(spans->list, spans->n, sizeof(*spans->list), by_start);
	for (size_t i = 0; i < spans->n; i++) {
		if (n && spans->list[i].start <= spans->list[n - 1].end)
			spans->list[n - 1].end = max_of(spans->list[n - 1].end, spans->list[i].end);
		else
			spans->list[n++] = spans->list[i];
	}
	spans->n = n;
}

static bool spans__meet(const struct spans *spans, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < spans->n; i++)
		if (start < spans->list[i].end && end > spans->list[i].start)
			return true;
	return false;
}

/* --- the file --- */

static const Elf64_Ehdr *head_of(const struct extract *extract)
{
	return (const Elf64_Ehdr *)extract->file;
}

static const void *at(const struct extract *extract, uint64_t offset, uint64_t size)
{
	return offset <= extract->size && size <= extract->size - offset ? extract->file + offset
									 : NULL;
}

static const Elf64_Shdr *section(const struct extract *extract, size_t index)
{
	const Elf64_Ehdr *head = head_of(extract);

	return index < head->e_shnum
		       ? at(extract, head->e_shoff + index * sizeof(Elf64_Shdr), sizeof(Elf64_Shdr))
		       : NULL;
}

static const char *section_name(const struct extract *extract, const Elf64_Shdr *shdr)
{
	const Elf64_Shdr *names = section(extract, head_of(extract)->e_shstrndx);
	const char *text = names ? at(extract, names->sh_offset, names->sh_size) : NULL;

	return text && shdr->sh_name < names->sh_size ? text + shdr->sh_name : "";
}

static const Elf64_Shdr *find_section(const struct extract *extract, const char *name)
{
	for (size_t i = 0; i < head_of(extract)->e_shnum; i++) {
		const Elf64_Shdr *shdr = section(extract, i);

		if (shdr && !strcmp(section_name(extract, shdr), name) &&
		    shdr->sh_type != SHT_NOBITS && at(extract, shdr->sh_offset, shdr->sh_size))
			return shdr;
	}
	return NULL;
}

static bool to_offset(const struct extract *extract, uint64_t vaddr, uint64_t *ret)
{
	const Elf64_Ehdr *head = head_of(extract);
	const Elf64_Phdr *phdr = at(extract, head->e_phoff, head->e_phnum * sizeof(*phdr));

	for (size_t i = 0; phdr && i < head->e_phnum; i++) {
		if (phdr[i].p_type != PT_LOAD || vaddr < phdr[i].p_vaddr ||
		    vaddr - phdr[i].p_vaddr >= phdr[i].p_filesz)
			continue;
		*ret = phdr[i].p_offset + (vaddr - phdr[i].p_vaddr);
		return true;
	}
	return false;
}

/* --- frame descriptions --- */

#define ENCODING_PCREL_SDATA4 0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4 */

/* Reads the pointer encoding of a CIE. Others than the usual one keep their descriptions. */
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

static int add_fde(struct extract *extract, const Elf64_Shdr *shdr, uint64_t offset, uint32_t size)
{
	const unsigned char *entry = extract->file + shdr->sh_offset + offset;
	struct fde fde = { shdr->sh_offset + offset, size + 4, 0, 0 };
	uint32_t cie_size = 0, back;
	int32_t start;
	uint32_t length;
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
	ret = array__reserve(&extract->fdes, &extract->cap_fdes, extract->n_fdes + 1, sizeof(fde));
	if (!ret)
		extract->fdes[extract->n_fdes++] = fde;
	return ret;
}

static int read_fdes(struct extract *extract)
{
	const Elf64_Shdr *shdr = find_section(extract, ".eh_frame");
	uint64_t offset = 0;
	uint32_t size;
	int ret = 0;

	while (!ret && shdr && shdr->sh_size - offset > 8) {
		memcpy(&size, extract->file + shdr->sh_offset + offset, 4);
		if (!size || size > shdr->sh_size - offset - 4)
			break;
		ret = add_fde(extract, shdr, offset, size);
		offset += size + 4;
	}
	if (extract->n_fdes)
		qsort(extract->fdes, extract->n_fdes, sizeof(*extract->fdes), by_code);
	return ret;
}

/* Widens what is wanted to whole functions, and to those around them. */
static int widen(struct extract *extract)
{
	int ret = 0;

	spans__join(&extract->wanted);
	for (size_t i = 0; !ret && i < extract->wanted.n; i++)
		ret = spans__add(&extract->code, extract->wanted.list[i].start,
				 extract->wanted.list[i].end);
	for (size_t i = 0; !ret && i < extract->n_fdes; i++) {
		const struct fde *fde = &extract->fdes[i];
		size_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;
		size_t to = min_of(i + NEIGHBOURS, extract->n_fdes - 1);

		if (!spans__meet(&extract->wanted, fde->start, fde->end))
			continue;
		for (size_t k = from; !ret && k <= to; k++)
			ret = spans__add(&extract->code, extract->fdes[k].start,
					 extract->fdes[k].end);
	}
	spans__join(&extract->code);
	return ret;
}

/* --- what is wanted --- */

static int name_it(struct extract *extract)
{
	const char *slash = strrchr(extract->path, '/'), *base = slash ? slash + 1 : extract->path;
	uint32_t crc = crc32_z(0, extract->file, extract->size);
	int n = asprintf(&extract->name, "%s-%08x", base, crc);

	if (n < 0)
		extract->name = NULL;
	return n < 0 ? -ENOMEM : 0;
}

int extract__new(int fd, const char *path, struct extract **ret)
{
	struct extract *extract = calloc(1, sizeof(*extract));
	struct stat st;
	int code = -ENOMEM;

	if (!extract)
		return -ENOMEM;
	extract->path = strdup(path);
	if (!extract->path || fstat(fd, &st))
		goto out;
	extract->size = st.st_size;
	extract->whole = extract->size <= WHOLE_BYTES_MAX;
	extract->file = mmap(NULL, extract->size, PROT_READ, MAP_PRIVATE, fd, 0);
	code = -EBADMSG;
	if (extract->file == MAP_FAILED || extract->size < sizeof(Elf64_Ehdr) ||
	    memcmp(extract->file, ELFMAG, SELFMAG) != 0)
		goto out;
	code = name_it(extract);
	if (!code)
		code = read_fdes(extract);
out:
	if (code)
		extract__free(extract);
	else
		*ret = extract;
	return code;
}

void extract__free(struct extract *extract)
{
	if (!extract)
		return;
	if (extract->file && extract->file != MAP_FAILED)
		munmap((void *)extract->file, extract->size);
	for (size_t i = 0; i < extract->n_symbols; i++)
		free(extract->symbols[i]);
	free(extract->symbols);
	free(extract->wanted.list);
	free(extract->code.list);
	free(extract->pieces.list);
	free(extract->fdes);
	free(extract->name);
	free(extract->path);
	free(extract);
}

const char *extract__path(const struct extract *extract)
{
	return extract->path;
}

const char *extract__name(const struct extract *extract)
{
	return extract->name;
}

int extract__want_code(struct extract *extract, uint64_t start, uint64_t end)
{
	return spans__add(&extract->wanted, start, end);
}

int extract__want_symbol(struct extract *extract, const char *name)
{
	int ret = array__reserve(&extract->symbols, &extract->cap_symbols, extract->n_symbols + 1,
				 sizeof(*extract->symbols));

	for (size_t i = 0; !ret && i < extract->n_symbols; i++)
		if (!strcmp(extract->symbols[i], name))
			return 0;
	if (ret || !(extract->symbols[extract->n_symbols] = strdup(name)))
		return -ENOMEM;
	extract->n_symbols++;
	return 0;
}

int extract__want_bytes(struct extract *extract, uint64_t vaddr, uint64_t size)
{
	uint64_t offset;

	if (size > BYTES_MAX || !to_offset(extract, vaddr, &offset) || !at(extract, offset, size))
		return 0;
	return spans__add(&extract->pieces, offset, offset + size);
}

bool extract__has(struct extract *extract, uint64_t offset, const void *bytes, size_t size)
{
	const void *here = at(extract, offset, size);

	return here && memcmp(here, bytes, size) == 0 &&
	       !spans__add(&extract->pieces, offset, offset + size);
}

/* --- symbols --- */

static bool wants_symbol(const struct extract *extract, const Elf64_Sym *symbol, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	for (size_t i = 0; i < extract->n_symbols; i++)
		if (!strcmp(name, extract->symbols[i]))
			return true;
	return symbol->st_shndx != SHN_UNDEF &&
	       spans__meet(&extract->code, symbol->st_value,
			   symbol->st_value + max_of(symbol->st_size, (uint64_t)1));
}

static int keep_symbols(struct extract *extract, const char *section_name)
{
	const Elf64_Shdr *shdr = find_section(extract, section_name);
	const Elf64_Shdr *names = shdr ? section(extract, shdr->sh_link) : NULL;
	const char *texts = names ? at(extract, names->sh_offset, names->sh_size) : NULL;
	int ret = 0;

	for (size_t i = 0; texts && !ret && i < shdr->sh_size / sizeof(Elf64_Sym); i++) {
		uint64_t offset = shdr->sh_offset + i * sizeof(Elf64_Sym);
		const Elf64_Sym *symbol = (const Elf64_Sym *)(extract->file + offset);
		uint64_t name = symbol->st_name, length;

		if (name >= names->sh_size || !wants_symbol(extract, symbol, texts + name))
			continue;
		length = strnlen(texts + name, names->sh_size - name);
		ret = spans__add(&extract->pieces, offset, offset + sizeof(*symbol));
		if (!ret)
			ret = spans__add(&extract->pieces, names->sh_offset + name,
					 names->sh_offset + name + length);
	}
	return ret;
}

/* Names of the libraries that the file needs. */
static int keep_needed(struct extract *extract)
{
	const Elf64_Shdr *shdr = find_section(extract, ".dynamic");
	const Elf64_Shdr *names = find_section(extract, ".dynstr");
	const Elf64_Dyn *dyn = shdr ? (const void *)(extract->file + shdr->sh_offset) : NULL;
	int ret = 0;

	for (size_t i = 0; dyn && names && !ret && i < shdr->sh_size / sizeof(*dyn); i++) {
		const char *name =
			(const char *)extract->file + names->sh_offset + dyn[i].d_un.d_val;
		uint64_t offset = names->sh_offset + dyn[i].d_un.d_val;

		if (dyn[i].d_tag != DT_NEEDED || dyn[i].d_un.d_val >= names->sh_size)
			continue;
		ret = spans__add(&extract->pieces, offset,
				 offset + strnlen(name, names->sh_size - dyn[i].d_un.d_val));
	}
	return ret;
}

static int keep_needles(struct extract *extract)
{
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needles); i++) {
		const unsigned char *from = extract->file, *end = extract->file + extract->size;

		for (int hits = 0; !ret && hits < NEEDLE_HITS_MAX; hits++) {
			from = memmem(from, end - from, needles[i], strlen(needles[i]));
			if (!from)
				break;
			ret = spans__add(&extract->pieces,
					 max_of(from - extract->file, NEEDLE_BYTES) - NEEDLE_BYTES,
					 min_of((uint64_t)(from - extract->file) + NEEDLE_BYTES,
						extract->size));
			from++;
		}
	}
	return ret;
}

/* --- writing --- */

static int keep_headers(struct extract *extract)
{
	const Elf64_Ehdr *head = head_of(extract);
	const Elf64_Phdr *phdr = at(extract, head->e_phoff, head->e_phnum * sizeof(*phdr));
	static const char *const names[] = { ".dynamic", ".shstrtab", ".gnu_debuglink" };
	int ret = spans__add(&extract->pieces, 0, sizeof(*head));

	if (!ret)
		ret = spans__add(&extract->pieces, head->e_phoff,
				 head->e_phoff + head->e_phnum * sizeof(*phdr));
	if (!ret)
		ret = spans__add(&extract->pieces, head->e_shoff,
				 head->e_shoff + head->e_shnum * sizeof(Elf64_Shdr));
	for (size_t i = 0; phdr && !ret && i < head->e_phnum; i++)
		if (phdr[i].p_type == PT_NOTE && phdr[i].p_filesz < 4096)
			ret = spans__add(&extract->pieces, phdr[i].p_offset,
					 phdr[i].p_offset + phdr[i].p_filesz);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(names); i++) {
		const Elf64_Shdr *shdr = find_section(extract, names[i]);

		if (shdr)
			ret = spans__add(&extract->pieces, shdr->sh_offset,
					 shdr->sh_offset + shdr->sh_size);
	}
	return ret;
}

/* .eh_frame with those descriptions only that are wanted. What lies between is one that describes
 * no code, and has only operations that do nothing. */
static int add_fdes(struct extract *extract, struct pack *pack)
{
	const Elf64_Shdr *shdr = find_section(extract, ".eh_frame");
	unsigned char *bytes = shdr ? malloc(shdr->sh_size) : NULL;
	uint64_t filler = 0; /* where the one before begins in the section; 0: none */
	uint64_t offset = 0;
	uint32_t size, none = 0;
	int ret;

	if (!shdr)
		return 0;
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, extract->file + shdr->sh_offset, shdr->sh_size);
	for (size_t i = 0; i < extract->n_fdes; i++) {
		const struct fde *fde = &extract->fdes[i];

		if (!spans__meet(&extract->code, fde->start, fde->end))
			memset(bytes + (fde->at - shdr->sh_offset) + 12, 0, fde->size - 12);
	}
	while (shdr->sh_size - offset > 16) {
		memcpy(&size, bytes + offset, 4);
		if (!size || size > shdr->sh_size - offset - 4)
			break;
		memcpy(&none, bytes + offset + 12, 4);
		if (none || !memcmp(bytes + offset + 4, "\0\0\0", 4)) {
			filler = 0;
		} else if (filler) {
			uint32_t joined = offset + 4 + size - filler - 4;

			memset(bytes + offset, 0, 12);
			memcpy(bytes + filler, &joined, 4);
		} else {
			filler = offset;
		}
		offset += 4 + size;
	}
	ret = pack__add(pack, PACK_PIECE, "", shdr->sh_offset, 0, bytes, shdr->sh_size);
	free(bytes);
	return ret;
}

/* What is in the corpus already of the same file. */
static int take_earlier(struct extract *extract, const char *path)
{
	const Elf64_Shdr *frames = find_section(extract, ".eh_frame");
	struct pack_entry entry;
	struct pack pack = {};
	size_t next = 0;
	int ret = access(path, R_OK) ? 0 : pack__read(path, &pack, NULL);

	while (!ret && pack.n && pack__next(&pack, &next, &entry) > 0) {
		if (entry.tag == PACK_KNOWN && !strcmp(entry.name, WANTED))
			ret = spans__add(&extract->wanted, entry.a, entry.b);
		else if (entry.tag == PACK_PIECE && (!frames || entry.a != frames->sh_offset))
			ret = spans__add(&extract->pieces, entry.a, entry.a + entry.size);
	}
	pack__done(&pack);
	return ret;
}

static int add_known(const struct spans *spans, const char *name, struct pack *pack)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < spans->n; i++)
		ret = pack__add(pack, PACK_KNOWN, name, spans->list[i].start, spans->list[i].end,
				NULL, 0);
	return ret;
}

static int add_pieces(struct extract *extract, struct pack *pack)
{
	int ret = 0;

	spans__join(&extract->pieces);
	for (size_t i = 0; !ret && i < extract->pieces.n; i++) {
		const struct span *span = &extract->pieces.list[i];

		assert(span->end <= extract->size);
		ret = pack__add(pack, PACK_PIECE, "", span->start, 0, extract->file + span->start,
				span->end - span->start);
	}
	if (!ret)
		ret = add_known(&extract->wanted, WANTED, pack);
	return ret ? ret : add_known(&extract->code, "", pack);
}

static int keep_parts(struct extract *extract, struct pack *pack)
{
	int ret = widen(extract);

	if (!ret)
		ret = keep_headers(extract);
	if (!ret)
		ret = keep_symbols(extract, ".symtab");
	if (!ret)
		ret = keep_symbols(extract, ".dynsym");
	if (!ret)
		ret = keep_needed(extract);
	if (!ret)
		ret = keep_needles(extract);
	if (!ret)
		ret = add_pieces(extract, pack);
	return ret ? ret : add_fdes(extract, pack);
}

int extract__write(struct extract *extract, const char *dir, struct err *err)
{
	struct pack pack = {};
	char path[4096];
	int ret;

	snprintf(path, sizeof(path), "%s/%s", dir, extract->name);
	ret = extract->whole ? 0 : take_earlier(extract, path);
	if (!ret)
		ret = pack__add(&pack, PACK_SIZE, "", extract->size, 0, NULL, 0);
	if (!ret && extract->whole)
		ret = pack__add(&pack, PACK_PIECE, "", 0, 0, extract->file, extract->size);
	if (!ret && extract->whole)
		ret = pack__add(&pack, PACK_KNOWN, "", 0, UINT64_MAX, NULL, 0);
	if (!ret && !extract->whole)
		ret = keep_parts(extract, &pack);
	ret = ret ? err__set(err, ret, "%s: %s", extract->path, strerror(-ret))
		  : pack__write(&pack, path, err);
	pack__done(&pack);
	return ret;
}
