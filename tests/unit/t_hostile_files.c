// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that claim more data than a reader can process. Each reader ends when the work is stopped,
 * and reports it. Its charge is returned, and holes cost nothing. The stop occurs a few
 * milliseconds after the start of work that lasts a hundred times as long. */
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <zlib.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/elf/dwarf.h"
#include "core/elf/dwarf_image.h"
#include "core/elf/elf_words.h"
#include "core/elf/minidebug.h"
#include "core/elf/symbols.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/go/go_table.h"
#include "tests/hostile_elf.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define MB	   (1ULL << 20)
#define STOP_MS	   5
#define DATA_AT	   0x10000
#define HEADERS_AT 0x8000
#define TEXT	   0x400000

/* CPU time of work that was stopped. A reader that does not check for the stop needs seconds. */
#define STOPPED_NS (NSEC_PER_SEC / 2)

static struct quota_limits endless;
static uint64_t began_ns;

/* Stops the next work after a moment, at any state of the budget. */
static void stop_soon(void)
{
	for (int i = 0; i < QUOTA_LEVELS; i++)
		for (int kind = 0; kind < QUOTA_KINDS; kind++)
			endless.limits[i][kind] = (struct quota_limit) { UINT64_MAX / 2, 0 };
	quota__set_limits(&endless);
	began_ns = thread_cpu_ns();
	stop__set_deadline(now_ns() + STOP_MS * 1000000ULL);
}

static struct elf_file *open_elf(int fd, const Elf64_Phdr *phdrs, size_t n_phdrs,
				 const struct hostile_section *sections, size_t n_sections)
{
	struct elf_file *file = NULL;
	struct err err = { "" };

	if (!hostile_elf__write(fd, phdrs, n_phdrs, sections, n_sections, HEADERS_AT) ||
	    elf_file__open(fd, "/hostile", &file, &err)) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return file;
}

/* Makes a file of @size bytes. The caller writes [DATA_AT, DATA_AT + @n). */
static int make_file(uint64_t size, void **ret_data, size_t n)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size))
		exit(1);
	*ret_data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, DATA_AT);
	if (*ret_data == MAP_FAILED)
		exit(1);
	return fd;
}

static void end(struct elf_file *file, void *data, size_t n, const char *what)
{
	stop__clear();
	elf_file__free(file);
	munmap(data, n);
	is_int(quota__retained(), 0, "%s: nothing is kept", what);
}

static void test_go(void)
{
	enum { SEGMENTS = 1000, BYTES = 16 << 20 };
	static Elf64_Phdr phdrs[SEGMENTS];
	struct elf_file *file;
	struct go_table table;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	memset(data, 'x', BYTES);
	for (int i = 0; i < SEGMENTS; i++)
		phdrs[i] = (Elf64_Phdr) { .p_type = PT_LOAD,
					  .p_flags = PF_R,
					  .p_offset = DATA_AT,
					  .p_vaddr = TEXT + i * 2ULL * BYTES,
					  .p_filesz = BYTES,
					  .p_memsz = BYTES };
	file = open_elf(fd, phdrs, SEGMENTS, NULL, 0);
	stop_soon();
	is_int(go_table__open(file, &table), -EINTR, "a search for Go's table is stopped");
	stop__clear();
	quota__set_limits(NULL);
	is_int(go_table__open(file, &table), -EFBIG, "or ends with the budget");
	end(file, data, BYTES, "Go");
}

static void test_go_holes(void)
{
	enum { SEGMENTS = 40 };
	const uint64_t size = 512 * MB;
	Elf64_Phdr phdrs[SEGMENTS];
	struct elf_file *file;
	struct go_table table;
	uint64_t began;
	void *data;
	int fd = make_file(DATA_AT + size, &data, 4096);

	for (int i = 0; i < SEGMENTS; i++)
		phdrs[i] = (Elf64_Phdr) { .p_type = PT_LOAD,
					  .p_flags = PF_R,
					  .p_offset = DATA_AT,
					  .p_vaddr = (i + 1ULL) << 30,
					  .p_filesz = size,
					  .p_memsz = size };
	file = open_elf(fd, phdrs, SEGMENTS, NULL, 0);
	quota__set_limits(NULL);
	began = thread_cpu_ns();
	is_int(go_table__open(file, &table), -ENOENT, "segments of holes have no table");
	ok(thread_cpu_ns() - began < NSEC_PER_SEC, "and cost nothing");
	end(file, data, 4096, "holes");
}

/* Symbols of one address with similar names of 16 KB: each comparison takes two microseconds. */
static void test_symbols(void)
{
	enum { N = 400000, NAME = 16000, BYTES = N * sizeof(Elf64_Sym) + 4 * NAME };
	const struct hostile_section sections[] = {
		{ ".text", SHT_PROGBITS, 0, SHF_EXECINSTR, TEXT, DATA_AT, 4096 },
		{ ".symtab", SHT_SYMTAB, 3, 0, 0, DATA_AT, N * sizeof(Elf64_Sym) },
		{ ".strtab", SHT_STRTAB, 0, 0, 0, DATA_AT + N * sizeof(Elf64_Sym), 4 * NAME },
	};
	struct symbol_frame frame;
	struct symbols *symbols;
	struct elf_file *file;
	Elf64_Sym *all;
	char *strings;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	all = data;
	for (int i = 0; i < N; i++)
		all[i] = (Elf64_Sym) { .st_name = 1 + i * 7 % 3 * NAME,
				       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				       .st_shndx = 1,
				       .st_value = TEXT,
				       .st_size = 16 };
	strings = (char *)(all + N);
	memset(strings, 'a', 4 * NAME);
	for (int i = 0; i <= 3; i++)
		strings[i * NAME] = '\0';
	strings[4 * NAME - 1] = '\0';
	file = open_elf(fd, NULL, 0, sections, ARRAY_SIZE(sections));
	if (symbols__new(file, "", &symbols))
		exit(1);
	stop_soon();
	is_int(symbols__resolve(symbols, TEXT, &frame, 1), -EINTR, "sorting symbols is stopped");
	stop__clear();
	symbols__free(symbols);
	end(file, data, BYTES, "symbols");
}

static int seen;

static int compare_slowly(const void *a, const void *b)
{
	for (volatile int i = 0; i < 100; i++)
		seen++;
	return *(const int *)a - *(const int *)b;
}

static void test_sort(void)
{
	enum { N = 3000000 };
	int *numbers = malloc(N * sizeof(*numbers)), wrong = 0;
	uint32_t random = 1;

	for (int i = 0; i < N; i++)
		numbers[i] = (random = random * 1664525 + 1013904223) >> 8;
	stop_soon();
	is_int(sort__array(numbers, N, sizeof(*numbers), compare_slowly), -EINTR,
	       "a sort is stopped");
	stop__clear();
	is_int(sort__array(numbers, N / 10, sizeof(*numbers), compare_slowly), 0,
	       "or comes to an end");
	for (int i = 1; i < N / 10; i++)
		wrong += numbers[i - 1] > numbers[i];
	is_int(wrong, 0, "and is right");
	free(numbers);
}

/* Frame descriptions of 24 bytes each, with one common entry. */
static void test_frames(void)
{
	enum { N = 2000000, BYTES = 24 + N * 24 };
	const struct hostile_section sections[] = {
		{ ".eh_frame", SHT_PROGBITS, 0, SHF_ALLOC, TEXT + BYTES, DATA_AT, BYTES },
	};
	const Elf64_Phdr phdr = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = DATA_AT,
				  .p_vaddr = TEXT,
				  .p_filesz = BYTES,
				  .p_memsz = BYTES };
	static const uint8_t cie[24] = { 20, 0, 0,    0,  0, 0,	   0,	 0, 1, 'z',  'R',
					 0,  1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1 };
	struct unwind_table table = {};
	struct elf_file *file;
	uint8_t *at;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	memcpy(data, cie, sizeof(cie));
	at = (uint8_t *)data + sizeof(cie);
	for (uint32_t i = 0; i < N; i++, at += 24) {
		/* Unordered, so that they must be sorted. */
		uint32_t start = (i * 2654435761U) % (BYTES / 16) * 16;
		uint32_t words[6] = { 20, at + 4 - (uint8_t *)data,
				      start - (uint32_t)(BYTES + (at + 8 - (uint8_t *)data)), 16 };

		memcpy(at, words, sizeof(words));
	}
	file = open_elf(fd, &phdr, 1, sections, 1);
	stop_soon();
	is_int(unwind_table__build(file, &table, NULL), -EINTR, "frame descriptions are stopped");
	ok(thread_cpu_ns() - began_ns < STOPPED_NS, "in time");
	end(file, data, BYTES, "frames");
}

/* Code without descriptions. */
static void test_code(void)
{
	enum { BYTES = 15 << 20 };
	const Elf64_Phdr phdr = { .p_type = PT_LOAD,
				  .p_flags = PF_R | PF_X,
				  .p_offset = DATA_AT,
				  .p_vaddr = TEXT,
				  .p_filesz = BYTES,
				  .p_memsz = BYTES };
	struct unwind_table table = {};
	struct elf_file *file;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	for (size_t i = 0; i < BYTES / 4; i++)
		memcpy((char *)data + 4 * i, "\x48\x83\xc0\x01", 4); /* add $1,%rax */
	file = open_elf(fd, &phdr, 1, NULL, 0);
	stop_soon();
	is_int(unwind_table__build(file, &table, NULL), -EINTR, "decoding code is stopped");
	ok(thread_cpu_ns() - began_ns < STOPPED_NS, "in time");
	end(file, data, BYTES, "code");
}

static void test_inflating(void)
{
	enum { INFLATED = 512 << 20, BYTES = 1 << 20 };
	struct hostile_section sections[] = {
		{ ".debug_info", SHT_PROGBITS, 0, SHF_COMPRESSED, 0, DATA_AT, 0 },
		{ ".debug_abbrev", SHT_PROGBITS, 0, 0, 0, DATA_AT, 4096 },
	};
	z_stream stream = { 0 };
	struct elf_file *file, *image;
	char *zeroes = calloc(1, MB);
	Elf64_Chdr *chdr;
	GElf_Shdr shdr;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	chdr = data;
	*chdr = (Elf64_Chdr) { .ch_type = ELFCOMPRESS_ZLIB,
			       .ch_size = INFLATED,
			       .ch_addralign = 1 };
	deflateInit(&stream, 9);
	stream.next_out = (Bytef *)(chdr + 1);
	stream.avail_out = BYTES - sizeof(*chdr);
	for (int i = 0; i < INFLATED >> 20; i++) {
		stream.next_in = (Bytef *)zeroes;
		stream.avail_in = MB;
		deflate(&stream, i + 1 == INFLATED >> 20 ? Z_FINISH : Z_NO_FLUSH);
	}
	sections[0].size = sizeof(*chdr) + stream.total_out;
	deflateEnd(&stream);
	file = open_elf(fd, NULL, 0, sections, ARRAY_SIZE(sections));
	stop_soon();
	is_int(dwarf_image__open(file, &image), -EINTR, "inflating is stopped");
	ok(!elf_file__section(file, ".debug_info", NULL),
	   "no section is given while it is to stop");
	quota__set_limits(&endless);
	stop__clear();
	ok(elf_file__section(file, ".debug_info", &shdr) && shdr.sh_size == INFLATED,
	   "and it is read when it is asked for again");
	free(zeroes);
	end(file, data, BYTES, "inflating");
}

static void test_minidebug(void)
{
	enum { INFLATED = 60 << 20, BYTES = 1 << 20 };
	struct hostile_section section = { ".gnu_debugdata", SHT_PROGBITS, 0, 0, 0, DATA_AT, 0 };
	uint8_t *zeroes = calloc(1, INFLATED);
	struct elf_file *file, *mini;
	size_t n = 0;
	void *data;
	int fd = make_file(DATA_AT + BYTES, &data, BYTES);

	if (lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, zeroes, INFLATED, data, &n, BYTES))
		exit(1);
	section.size = n;
	file = open_elf(fd, NULL, 0, &section, 1);
	stop_soon();
	is_int(minidebug__open(file, &mini), -EINTR, "inflating symbols is stopped");
	free(zeroes);
	end(file, data, BYTES, "symbols inside");
}

/* The largest part of the debug information that libdw processes without a stop. */
static void test_line_programs(void)
{
	enum { BYTES = 1 << 20 };
	struct elf_file *image;
	const uint32_t length = 123;
	const struct hostile_section sections[] = {
		{ ".debug_info", SHT_PROGBITS, 0, 0, 0, DATA_AT, 64 },
		{ ".debug_abbrev", SHT_PROGBITS, 0, 0, 0, DATA_AT + 64, BYTES - 64 },
	};
	struct elf_file *file;
	uint8_t *bytes;
	void *data;
	int fd = make_file(DATA_AT + 4 * BYTES, &data, 4 * BYTES);

	memcpy(data, &length, sizeof(length));
	file = open_elf(fd, NULL, 0, sections, ARRAY_SIZE(sections));
	is_int(dwarf_image__open(file, &image), 0, "debug information by itself");
	is_int(dwarf_image__unit_bytes(image, ".debug_info", 0), 127, "the length of a unit");
	is_int(dwarf_image__unit_bytes(image, ".debug_info", 64), 0, "of none");
	elf_file__free(image);
	elf_file__free(file);

	fd = make_file(DATA_AT + 4 * BYTES, &data, 4 * BYTES);
	bytes = data;
	memcpy(bytes, "\x3c\0\0\0\4\0\0\0\0\0\10", 11);
	memset(bytes + 64, 1, 4 * BYTES - 64); /* endless abbreviations */
	file = open_elf(
		fd, NULL, 0,
		(const struct hostile_section[]) {
			{ ".debug_info", SHT_PROGBITS, 0, 0, 0, DATA_AT, 64 },
			{ ".debug_abbrev", SHT_PROGBITS, 0, 0, 0, DATA_AT + 64, 4 * BYTES - 64 } },
		2);
	is_int(dwarf_image__open(file, &image), -ENOENT, "abbreviations have an end");
	end(file, data, 4 * BYTES, "debug information");
}

/* Claims of gigabytes in a few KB. */
static void test_claims(void)
{
	const uint64_t size = 2048 * MB;
	const Elf64_Phdr note = { .p_type = PT_NOTE,
				  .p_offset = DATA_AT,
				  .p_filesz = size,
				  .p_memsz = size,
				  .p_align = 4 };
	const struct hostile_section strings = { ".strtab", SHT_STRTAB, 0, 0, 0, DATA_AT, size };
	struct rusage before, after;
	enum quota_level level;
	struct elf_words *words;
	struct elf_file *file;
	Elf64_Shdr first = { .sh_size = 100 << 20 };
	Elf64_Ehdr ehdr;
	void *data;
	int fd = make_file(DATA_AT + size, &data, 4096);

	quota__set_limits(NULL);
	getrusage(RUSAGE_SELF, &before);
	file = open_elf(fd, &note, 1, &strings, 1);
	ok(!elf_file__section(file, ".strtab", NULL), "a section of 2 GB is not read");
	is_str(quota__over(0, &level), "/hostile", "the file is named");
	is_int(elf_words__open(file, &words), -ENOENT, "no words");
	getrusage(RUSAGE_SELF, &after);
	ok(after.ru_maxrss - before.ru_maxrss < 64 << 10, "memory is not taken (%ld KB)",
	   after.ru_maxrss - before.ru_maxrss);
	end(file, data, 4096, "claims");

	/* A hundred million sections. */
	fd = make_file(DATA_AT + 8192 * MB, &data, 4096);
	file = NULL;
	hostile_elf__write(fd, NULL, 0, &strings, 1, HEADERS_AT);
	if (pread(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr))
		exit(1);
	ehdr.e_shnum = 0;
	if (pwrite(fd, &ehdr, sizeof(ehdr), 0) != sizeof(ehdr) ||
	    pwrite(fd, &first, sizeof(first), HEADERS_AT) != sizeof(first))
		exit(1);
	is_int(elf_file__open(fd, "/sections", &file, NULL), -EFBIG, "sections have a limit");
	munmap(data, 4096);
}

/* The checksum of a debug file without a build-id is computed once, for all callers, and within the
 * file's budget. */
static void test_checksum(void)
{
	struct symbol_frame frame;
	struct symbols *symbols;
	struct quota_limits limits = quota_usual;
	struct elf_file *file;
	uint64_t size = 0;

	workdir__write("a.c", "int function(void) { return 1; }\n");
	workdir__run("gcc -g -shared -fPIC -Wl,--build-id=none -o a.so a.c && "
		     "objcopy --only-keep-debug a.so a.debug && strip a.so && "
		     "objcopy --add-gnu-debuglink=a.debug a.so");
	limits.limits[QUOTA_ALL][QUOTA_HASHED] = (struct quota_limit) { 64 << 10, 0 };
	quota__set_limits(&limits);
	for (int i = 0; i < 8; i++) {
		struct err err = { "" };

		if (elf_file__open(workdir__open("a.so"), "/a.so", &file, &err) ||
		    symbols__new(file, workdir, &symbols))
			exit(1);
		symbols__stay_below_root(symbols);
		elf_file__find_symbol(file, "function", &size, NULL);
		is_int(symbols__resolve(symbols, size, &frame, 1), 1, "resolve");
		ok(frame.line == 1, "by the debug file, of which the sum is known");
		symbols__free(symbols);
		elf_file__free(file);
	}
	quota__set_limits(NULL);
}

int main(void)
{
	workdir__make();
	test_go();
	test_go_holes();
	test_sort();
	test_symbols();
	test_frames();
	test_code();
	test_inflating();
	test_minidebug();
	test_line_programs();
	test_claims();
	test_checksum();
	return tap__done();
}
