// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_words.h"
#include "core/elf/symbols.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"
#include "tests/fuzz/fuzz.h"
#include "tests/hostile_elf.h"

/* Files whose claims contradict their contents. They are sparse files of any size. Their segments
 * and sections overlap, lie in holes, refer to themselves or to one another, or are compressed.
 * They also name the file itself as its debug file. With a limited budget, no file may take more
 * memory or time than that. Costs that are not charged show here. */
#define RETAINED_MAX (64ULL << 20)
#define MEMORY_MAX   (256ULL << 20)
#define CPU_MAX_NS   (NSEC_PER_SEC / 5)
/* Limit for work that is not interrupted. With sanitizers all work takes several times as long. */
#define TIME_MAX_NS  NSEC_PER_SEC

#define DATA_AT	   0x2000
#define HEADERS_AT 0x10000
#define TEXT_AT	   0x401000
#define FUNCTION   "function"

/* A quarantine would count as memory. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=1:allocator_may_return_null=1";
}

static const char *const names[] = {
	".text",
	".symtab",
	".strtab",
	".dynsym",
	".dynstr",
	".eh_frame",
	".debug_frame",
	".debug_info",
	".debug_abbrev",
	".debug_line",
	".debug_str",
	".debug_ranges",
	".gnu_debuglink",
	".gnu_debugdata",
	".gnu_debugaltlink",
	".gopclntab",
	".note.gnu.build-id",
	".plt",
	".rela.plt",
	".rela.dyn",
};

static const uint32_t types[] = { SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_DYNSYM,
				  SHT_RELA,	SHT_NOTE,   SHT_NOBITS };

struct input {
	const uint8_t *at, *end;
	uint64_t file_size;
};

static uint8_t next(struct input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

/* Return a value for one byte: an offset in the data, the size of a piece of the data, or a lie. */
static uint64_t place(struct input *input)
{
	const uint64_t size = input->file_size;
	const uint64_t lies[] = { 0,	   64,	       size / 2,   size,       size - 4096,
				  1 << 20, 1ULL << 24, HEADERS_AT, UINT64_MAX, 1ULL << 63 };
	uint8_t byte = next(input);

	return byte >= 128 ? DATA_AT + (byte - 128) * 16 : lies[byte % ARRAY_SIZE(lies)];
}

static uint64_t length(struct input *input)
{
	const uint64_t size = input->file_size;
	const uint64_t lies[] = { 0,	      size,	  size / 2,   size - DATA_AT, 1ULL << 16,
				  1ULL << 20, 1ULL << 23, 1ULL << 25, 1ULL << 29,     UINT64_MAX };
	uint8_t byte = next(input);

	return byte >= 128 ? (byte - 128) * 8 : lies[byte % ARRAY_SIZE(lies)];
}

static bool write_file(const char *path, struct input *input)
{
	static const uint64_t sizes[] = { 1 << 18, 1 << 22, 1 << 26, 1ULL << 30, 1ULL << 36 };
	struct hostile_section sections[HOSTILE_SECTIONS_MAX];
	static Elf64_Phdr phdrs[HOSTILE_PHDRS_MAX];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t n_phdrs, n_sections, repeats, n;
	uint8_t byte;
	bool done;

	input->file_size = sizes[next(input) % ARRAY_SIZE(sizes)];
	byte = next(input);
	n_phdrs = byte % 16;
	repeats = byte & 0x80 ? 40 : 1;
	n_sections = next(input) % (HOSTILE_SECTIONS_MAX + 1);
	for (size_t i = 0; i < n_phdrs; i++) {
		byte = next(input);
		phdrs[i] = (Elf64_Phdr) { .p_type = byte & 0x80 ? PT_NOTE : PT_LOAD,
					  .p_flags = byte & 7,
					  .p_offset = place(input),
					  .p_filesz = length(input) };
		phdrs[i].p_vaddr = next(input) * 0x1000ULL + 0x400000;
		phdrs[i].p_memsz = phdrs[i].p_filesz;
	}
	for (size_t i = n_phdrs; i < n_phdrs * repeats && i < HOSTILE_PHDRS_MAX; i++)
		phdrs[i] = phdrs[i % n_phdrs];
	for (size_t i = 0; i < n_sections; i++) {
		sections[i].name = names[next(input) % ARRAY_SIZE(names)];
		byte = next(input);
		sections[i].type = types[(byte & 0x1f) % ARRAY_SIZE(types)];
		sections[i].flags = (byte & 0x80 ? SHF_COMPRESSED : 0) |
				    (byte & 0x40 ? SHF_EXECINSTR : 0) | SHF_ALLOC;
		sections[i].offset = place(input);
		sections[i].size = length(input);
		sections[i].link = next(input);
		sections[i].addr = next(input) * 0x1000ULL + 0x400000;
	}
	n = input->end - input->at;
	done = fd >= 0 && !ftruncate(fd, input->file_size) &&
	       pwrite(fd, input->at, n, DATA_AT) == (ssize_t)n &&
	       hostile_elf__write(fd, phdrs, min_of(n_phdrs * repeats, (size_t)HOSTILE_PHDRS_MAX),
				  sections, n_sections, HEADERS_AT);
	if (fd >= 0)
		close(fd);
	return done;
}

static bool read_names(const struct elf_file *file)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols;
	bool named = false;
	uint64_t start;

	if (symbols__new(file, fuzz__dir(), &symbols))
		return false;
	symbols__stay_below_root(symbols);
	for (size_t i = 0; i < file->n_segments && i < 4; i++) {
		uint64_t vaddr = file->segments[i].vaddr;

		if (symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX) > 0)
			named |= !strcmp(frames[0].function, FUNCTION);
		symbols__function_start(symbols, vaddr + 8, &start);
	}
	symbols__free(symbols);
	return named;
}

static void read_others(const struct elf_file *file)
{
	struct unwind_table table = { 0 };
	struct elf_words *words;
	struct go_table go;
	uint64_t word;

	if (!unwind_table__build(file, &table, NULL))
		unwind_table__done(&table);
	if (!unwind_table__build_with(file, go_rows__read, &table, NULL))
		unwind_table__done(&table);
	if (!go_table__open(file, &go)) {
		go_names__data(file, &go, &word);
		go_table__done(&go);
	}
	elf_file__find_symbol(file, FUNCTION, &word, NULL);
	if (!elf_words__open(file, &words)) {
		elf_words__get(words, TEXT_AT, &word);
		elf_words__free(words);
	}
}

/* Returns a field of /proc/self/status in KB, or -1. */
static long memory(const char *field)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	while (status && kb < 0 && fgets(line, sizeof(line), status))
		if (!strncmp(line, field, strlen(field)))
			kb = atol(line + strlen(field));
	if (status)
		fclose(status);
	return kb;
}

static void forget_most(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (write(fd, "5", 1) != 1)
			fuzz__die("the most memory cannot be reset");
		close(fd);
	}
}

static void check(uint64_t cpu_ns, long before_kb)
{
	long most_kb = memory("VmHWM:");

	if (cpu_ns > TIME_MAX_NS) {
		fprintf(stderr, "%.3f s of CPU\n", cpu_ns / 1e9);
		abort();
	}
	if (most_kb - before_kb > (long)(MEMORY_MAX >> 10)) {
		fprintf(stderr, "%ld KB of memory\n", most_kb - before_kb);
		abort();
	}
	if (quota__retained()) {
		fprintf(stderr, "%lu bytes are not given back\n", (unsigned long)quota__retained());
		abort();
	}
}

static void limit(void)
{
	static struct quota_limits limits;

	limits = quota_usual;
	for (int i = 0; i < QUOTA_LEVELS; i++) {
		limits.limits[i][QUOTA_RETAINED] = (struct quota_limit) { RETAINED_MAX, 0 };
		limits.limits[i][QUOTA_CPU_NS] = (struct quota_limit) { CPU_MAX_NS, 0 };
	}
	quota__set_limits(&limits);
}

bool target__run(const uint8_t *data, size_t size)
{
	struct input input = { .at = data, .end = data + size };
	const char *path = fuzz__file("", 1), *slash = strrchr(path, '/');
	struct quota_account *previous;
	struct elf_file *file = NULL;
	uint64_t began;
	long before_kb;
	bool named = false;

	if (!write_file(path, &input))
		fuzz__die("cannot write %s", path);
	limit();
	forget_most();
	before_kb = memory("VmRSS:");
	began = thread_cpu_ns();
	if (!elf_file__open(open(path, O_RDONLY | O_CLOEXEC), slash, &file, NULL)) {
		previous = quota__enter(file->account);
		named = read_names(file);
		read_others(file);
		quota__leave(previous);
		elf_file__free(file);
	}
	check(thread_cpu_ns() - began, before_kb);
	fuzz__file(NULL, 0);
	return named;
}

/* --- seeds --- */

#define PLACE(n)  (128 + (n))
#define LENGTH(n) (128 + (n))

/* Writes a seed with a sound .text, .symtab and .strtab, and @more sections that are unsound. */
static void seed(uint8_t size, const uint8_t *more, size_t n_more)
{
	static const uint8_t head[] = { 1, 0, 5, PLACE(0), LENGTH(4), 1 }; /* a segment */
	static const uint8_t good[] = {
		0, 0x40, PLACE(0), LENGTH(4), 0, 1, /* .text, PROGBITS */
		1, 1,	 PLACE(2), LENGTH(6), 3, 0, /* .symtab: two symbols of 24 bytes */
		2, 2,	 PLACE(5), LENGTH(2), 0, 0, /* .strtab */
	};
	const Elf64_Sym symbol = { .st_name = 1,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = 1,
				   .st_value = TEXT_AT,
				   .st_size = 16 };
	uint8_t bytes[512], *at = bytes;

	*at++ = size;
	*at++ = 1;
	*at++ = 3 + n_more / 6;
	memcpy(at, head + 2, 4);
	at += 4;
	memcpy(at, good, sizeof(good));
	at += sizeof(good);
	memcpy(at, more, n_more);
	at += n_more;
	memset(at, 0x90, 32);
	memset(at + 32, 0, 24);
	memcpy(at + 56, &symbol, sizeof(symbol));
	memcpy(at + 80, "\0" FUNCTION "\0\0\0\0\0\0\0", 16);
	fuzz__seed(bytes, at + 96 - bytes);
}

void target__seeds(void)
{
	static const uint8_t frames[] = { 5, 0, 0, 6, 0, 0, 12, 0, PLACE(5), LENGTH(2), 0, 0 };
	static const uint8_t debug[] = { 7, 0x80, PLACE(0), 7, 0, 0, 8, 0, 6,
					 7, 0,	  0,	    9, 0, 6, 7, 0, 0 };
	static const uint8_t go[] = { 15, 0, 7, 7, 0, 0, 16, 5, 7, 7, 0, 0 };

	seed(0, frames, 0);
	seed(2, frames, sizeof(frames));
	seed(3, debug, sizeof(debug));
	seed(4, go, sizeof(go));
}
