// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/extract.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/util.h"
#include "tests/replay/elf_view.h"
#include "tests/replay/fdes.h"
#include "tests/replay/spans.h"
#include "tests/replay/stubs.h"

#define WHOLE_BYTES_MAX (16 * 1024)  /* files of up to this size are stored whole */
#define UNSIZED_READ	1024	     /* bytes of these that core/insn/insn_ranges.c reads */
#define UNSIZED_BYTES	64	     /* assumed size of functions in assembly without a size */
#define BYTES_MAX	(128 * 1024) /* size of a request; longer reads are searches (needles) */
#define NEIGHBOURS	2	     /* frame descriptions on either side of a required one */
#define NEEDLE_HITS_MAX 16
#define NEEDLE_BYTES	96 /* stored on either side of a needle */

#define WANTED "wanted" /* name of PACK_REFERENCED for code that is required itself */

/* Texts that runtimes search for in a whole section or file. */
static const char *const needles[] = { " JRE (", "/node-v", "X-Powered-By: PHP/" };

/* Prefixes of symbols that runtimes search all symbols for. */
static const char *const prefixes[] = { "_ZN12StubRoutines" };

struct extract {
	char *path, *name;
	struct elf_view view;
	bool whole;
	struct spans required; /* link-time addresses of required code ... */
	struct spans code;     /* ... and of this code with its neighbours */
	struct spans pieces;   /* offsets in the file */
	char **symbols;	       /* required by name */
	size_t n_symbols, cap_symbols;
	struct fdes fdes;
};

/* Widens the required code to whole functions, and adds their neighbours. */
static int widen(struct extract *extract)
{
	int ret = 0;

	spans__join(&extract->required);
	for (size_t i = 0; !ret && i < extract->required.n; i++)
		ret = spans__add(&extract->code, extract->required.list[i].start,
				 extract->required.list[i].end);
	for (size_t i = 0; !ret && i < extract->fdes.n; i++) {
		const struct fde *fde = &extract->fdes.list[i];
		size_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;
		size_t to = min_of(i + NEIGHBOURS, extract->fdes.n - 1);
		/* A small gap before the next function counts as a part of this one. */
		uint64_t next = extract->fdes.list[min_of(i + 1, extract->fdes.n - 1)].start;

		if (!spans__meet(&extract->required, fde->start, max_of(fde->end, next)))
			continue;
		for (size_t k = from; !ret && k <= to; k++)
			ret = spans__add(&extract->code, extract->fdes.list[k].start,
					 extract->fdes.list[k].end);
	}
	spans__join(&extract->code);
	return ret;
}

/* --- requests --- */

static int name_it(struct extract *extract)
{
	const char *slash = strrchr(extract->path, '/'), *base = slash ? slash + 1 : extract->path;
	uint32_t crc = crc32_z(0, extract->view.bytes, extract->view.size);
	int n = asprintf(&extract->name, "%s-%08x", base, crc);

	if (n < 0)
		extract->name = NULL;
	return n < 0 ? -ENOMEM : 0;
}

int extract__new(int fd, const char *path, struct extract **ret)
{
	struct extract *extract = calloc(1, sizeof(*extract));
	int code = -ENOMEM;

	if (!extract)
		return -ENOMEM;
	extract->path = strdup(path);
	if (extract->path)
		code = elf_view__open(fd, &extract->view);
	extract->whole = extract->view.size <= WHOLE_BYTES_MAX;
	if (!code)
		code = name_it(extract);
	if (!code)
		code = fdes__read(&extract->view, &extract->fdes);
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
	elf_view__close(&extract->view);
	fdes__done(&extract->fdes);
	for (size_t i = 0; i < extract->n_symbols; i++)
		free(extract->symbols[i]);
	free(extract->symbols);
	spans__done(&extract->required);
	spans__done(&extract->code);
	spans__done(&extract->pieces);
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
	return spans__add(&extract->required, start, end);
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

/* A reader of code first finds the bounds of the function in the frame descriptions. */
int extract__want_bytes(struct extract *extract, uint64_t vaddr, uint64_t size)
{
	uint64_t offset;
	int ret;

	if (size > BYTES_MAX || !elf_view__to_offset(&extract->view, vaddr, &offset) ||
	    !elf_view__at(&extract->view, offset, size))
		return 0;
	ret = spans__add(&extract->pieces, offset, offset + size);
	if (!ret && elf_view__is_code(&extract->view, vaddr))
		ret = spans__add(&extract->required, vaddr, vaddr + size);
	return ret;
}

bool extract__has(struct extract *extract, uint64_t offset, const void *bytes, size_t size)
{
	const void *here = elf_view__at(&extract->view, offset, size);

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
			   symbol->st_value + (symbol->st_size ?: UNSIZED_BYTES));
}

static int keep_symbols(struct extract *extract, const char *section_name)
{
	const Elf64_Shdr *shdr = elf_view__find(&extract->view, section_name);
	const Elf64_Shdr *names = shdr ? elf_view__section(&extract->view, shdr->sh_link) : NULL;
	const char *texts =
		names ? elf_view__at(&extract->view, names->sh_offset, names->sh_size) : NULL;
	int ret = 0;

	for (size_t i = 0; texts && !ret && i < shdr->sh_size / sizeof(Elf64_Sym); i++) {
		uint64_t offset = shdr->sh_offset + i * sizeof(Elf64_Sym);
		const Elf64_Sym *symbol = (const Elf64_Sym *)(extract->view.bytes + offset);
		uint64_t name = symbol->st_name, length;

		if (name >= names->sh_size || !wants_symbol(extract, symbol, texts + name))
			continue;
		length = strnlen(texts + name, names->sh_size - name);
		ret = spans__add(&extract->pieces, offset, offset + sizeof(*symbol));
		if (!ret)
			ret = spans__add(&extract->pieces, names->sh_offset + name,
					 names->sh_offset + name + length);
		if (!ret && !symbol->st_size &&
		    elf_view__to_offset(&extract->view, symbol->st_value, &offset) &&
		    elf_view__at(&extract->view, offset, UNSIZED_READ))
			ret = spans__add(&extract->pieces, offset, offset + UNSIZED_READ);
	}
	return ret;
}

/* Adds the names of the libraries that the file needs. */
static int keep_needed(struct extract *extract)
{
	const Elf64_Shdr *shdr = elf_view__find(&extract->view, ".dynamic");
	const Elf64_Shdr *names = elf_view__find(&extract->view, ".dynstr");
	const Elf64_Dyn *dyn = shdr ? (const void *)(extract->view.bytes + shdr->sh_offset) : NULL;
	int ret = 0;

	for (size_t i = 0; dyn && names && !ret && i < shdr->sh_size / sizeof(*dyn); i++) {
		const char *name =
			(const char *)extract->view.bytes + names->sh_offset + dyn[i].d_un.d_val;
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
		const unsigned char *from = extract->view.bytes,
				    *end = extract->view.bytes + extract->view.size;

		for (int hits = 0; !ret && hits < NEEDLE_HITS_MAX; hits++) {
			from = memmem(from, end - from, needles[i], strlen(needles[i]));
			if (!from)
				break;
			ret = spans__add(
				&extract->pieces,
				max_of(from - extract->view.bytes, NEEDLE_BYTES) - NEEDLE_BYTES,
				min_of((uint64_t)(from - extract->view.bytes) + NEEDLE_BYTES,
				       extract->view.size));
			from++;
		}
	}
	return ret;
}

/* --- writing --- */

static int keep_headers(struct extract *extract)
{
	const Elf64_Ehdr *head = elf_view__head(&extract->view);
	const Elf64_Phdr *phdr = elf_view__segments(&extract->view);
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
		const Elf64_Shdr *shdr = elf_view__find(&extract->view, names[i]);

		if (shdr)
			ret = spans__add(&extract->pieces, shdr->sh_offset,
					 shdr->sh_offset + shdr->sh_size);
	}
	return ret;
}

static int add_fdes(struct extract *extract, struct pack *pack)
{
	const Elf64_Shdr *shdr = elf_view__find(&extract->view, ".eh_frame");
	unsigned char *bytes;
	int ret;

	if (!shdr)
		return 0;
	bytes = fdes__filter(&extract->fdes, &extract->view, &extract->code);
	ret = bytes ? pack__add(pack, PACK_PIECE, "", shdr->sh_offset, 0, bytes, shdr->sh_size)
		    : -ENOMEM;
	free(bytes);
	return ret;
}

/* Adds the pieces that the corpus already has of the same file. */
static int take_earlier(struct extract *extract, const char *path)
{
	const Elf64_Shdr *frames = elf_view__find(&extract->view, ".eh_frame");
	struct pack_entry entry;
	struct pack pack = {};
	size_t next = 0;
	int ret = access(path, R_OK) ? 0 : pack__read(path, &pack, NULL);

	while (!ret && pack.n && pack__next(&pack, &next, &entry) > 0) {
		if (entry.tag == PACK_REFERENCED && !strcmp(entry.name, WANTED))
			ret = spans__add(&extract->required, entry.a, entry.b);
		else if (entry.tag == PACK_PIECE && (!frames || entry.a != frames->sh_offset))
			ret = spans__add(&extract->pieces, entry.a, entry.a + entry.size);
	}
	pack__done(&pack);
	return ret;
}

static int add_referenced(const struct spans *spans, const char *name, struct pack *pack)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < spans->n; i++)
		ret = pack__add(pack, PACK_REFERENCED, name, spans->list[i].start,
				spans->list[i].end, NULL, 0);
	return ret;
}

static int add_pieces(struct extract *extract, struct pack *pack)
{
	int ret = 0;

	spans__join(&extract->pieces);
	for (size_t i = 0; !ret && i < extract->pieces.n; i++) {
		const struct span *span = &extract->pieces.list[i];

		assert(span->end <= extract->view.size);
		ret = pack__add(pack, PACK_PIECE, "", span->start, 0,
				extract->view.bytes + span->start, span->end - span->start);
	}
	if (!ret)
		ret = add_referenced(&extract->required, WANTED, pack);
	return ret ? ret : add_referenced(&extract->code, "", pack);
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
		ret = stubs__keep(&extract->view, &extract->required, &extract->pieces);
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
		ret = pack__add(&pack, PACK_SIZE, "", extract->view.size, 0, NULL, 0);
	if (!ret && extract->whole)
		ret = pack__add(&pack, PACK_PIECE, "", 0, 0, extract->view.bytes,
				extract->view.size);
	if (!ret && extract->whole)
		ret = pack__add(&pack, PACK_REFERENCED, "", 0, UINT64_MAX, NULL, 0);
	if (!ret && !extract->whole)
		ret = keep_parts(extract, &pack);
	ret = ret ? err__set(err, ret, "%s: %s", extract->path, strerror(-ret))
		  : pack__write(&pack, path, err);
	pack__done(&pack);
	return ret;
}
