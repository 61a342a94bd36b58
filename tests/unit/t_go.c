// SPDX-License-Identifier: GPL-2.0-or-later
/* Go's table of a program, compared with the linker's debug information: .debug_frame for the stack
 * at each instruction, and DWARF for lines and inlined functions. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/elf/symbols.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/go/go_layout.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"
#include "runtimes/go/go_switches.h"
#include "runtimes/go/go_table.h"
#include "tests/tap.h"

#define PROGRAM "fixtures/go/marked"

static struct err err;
static char program[4096];

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !elf_file__open(fd, path, &file, &err) ? file : NULL;
}

/* Functions that write the stack pointer in assembly are skipped: Go's debug information has no
 * more data on them than the table, or less. */
static bool is_compared(const struct elf_file *file, const struct go_table *table,
			const struct go_places *places, const struct go_function *function,
			const struct unwind_rule *rule)
{
	struct go_switch switches[GO_SWITCHES_MAX];

	return rule->kind == UNWIND_REG && rule->reg == UNWIND_REG_RSP &&
	       !go_switches__of(file, table, places, function, switches);
}

/* Returns the offset of a structure's member from readelf's dump of the debug information: the
 * names, each with the rest of its entry. */
static long member_at(const char *type, const char *member)
{
	char line[512], command[4200];
	bool inside = false, found = false;
	long offset = -1;
	FILE *out;

	snprintf(command, sizeof(command), "readelf --debug-dump=info %s 2>&1", program);
	out = popen(command, "r");
	while (out && offset < 0 && fgets(line, sizeof(line), out)) {
		const char *name = strstr(line, "DW_AT_name"), *value = strrchr(line, ':');

		if (strstr(line, "(DW_TAG_structure_type)"))
			inside = false;
		if (name && value) {
			line[strcspn(line, "\n")] = '\0';
			line[strlen(line) - (line[strlen(line) - 1] == ' ')] = '\0';
			found = inside && !strcmp(value + 2, member);
			inside |= !strcmp(value + 2, type);
		} else if (found && strstr(line, "DW_AT_data_member_location")) {
			offset = strtol(value + 1, NULL, 0);
		}
	}
	while (out && fgets(line, sizeof(line), out)) {
	}
	if (out)
		pclose(out);
	return offset;
}

/* Functions in assembly: C's registers in functions that C calls, and a stack pointer that is saved
 * in a register while the stack is aligned for C. */
static void test_assembly(const struct elf_file *file, const struct go_table *table)
{
	struct unwind_table own = {};
	struct go_function function;
	int saved = 0, aligned = 0, lost = 0;

	ok(!unwind_table__build_with(file, go_rows__read, &own, &err), "the table is built");
	for (size_t i = 0; i < table->n_functions; i++) {
		if (!go_table__function(table, i, &function))
			continue;
		for (uint64_t at = function.start; at < function.end; at++) {
			const struct unwind_rule *rule = unwind_table__find(&own, at);

			if (go_function__is(&function, "crosscall2") && rule->cfa_off == 80)
				saved += rule->fp_words == -2 && rule->aux_words == -7;
			if (go_function__is(&function, "runtime.sigfwd"))
				aligned += rule->kind == UNWIND_REG && rule->reg == UNWIND_REG_RBP;
			if (go_function__is(&function, "gogo"))
				lost += rule->kind == UNWIND_UNSUPPORTED;
		}
	}
	ok(saved > 16, "crosscall2 has saved rbp and rbx of its caller in C: %d bytes", saved);
	ok(aligned >= 2, "sigfwd has its stack pointer in rbp while it calls C: %d bytes", aligned);
	ok(lost >= 2, "gogo has left its stack before it jumps: %d bytes", lost);
	unwind_table__done(&own);
}

static void test_rows(const struct elf_file *file, const struct go_table *table)
{
	struct go_places places = go_places__of(file, table);
	struct unwind_table own = {}, debug = {};
	struct go_function function;
	size_t compared = 0, wrong = 0, n = 0;

	ok(places.known && places.g_at == -8 && places.curg_at > 8, "where a thread's g is");
	is_int(places.goid_at, member_at("runtime.g", "goid"), "where a goroutine's id is");
	is_int(places.curg_at, member_at("runtime.m", "curg"), "where a thread's goroutine is");
	ok(!unwind_table__build_with(file, go_rows__read, &own, &err) &&
		   !unwind_table__build(file, &debug, &err),
	   "both tables are built");
	for (size_t i = 0; i < table->n_functions; i++) {
		if (!go_table__function(table, i, &function))
			continue;
		n++;
		for (uint64_t at = function.start; at < function.end; at++) {
			const struct unwind_rule *got = unwind_table__find(&own, at);
			const struct unwind_rule *want = unwind_table__find(&debug, at);

			if (want->kind != UNWIND_REG ||
			    !is_compared(file, table, &places, &function, got))
				continue;
			compared++;
			if ((got->reg != want->reg || got->cfa_off != want->cfa_off) && !wrong++)
				printf("# %s+%ju: %d, want %d\n", function.name,
				       (uintmax_t)(at - function.start), got->cfa_off,
				       want->cfa_off);
		}
	}
	is_int(n, table->n_functions, "all functions can be read");
	ok(compared > 100000 && !wrong, "%zu of %zu bytes of code: the CFA is as in .debug_frame",
	   compared - wrong, compared);
	unwind_table__done(&own);
	unwind_table__done(&debug);
}

/* Returns true for the same function, such as "main.outer", which Go's symbols or the inlined
 * functions have. */
static bool is_same(const struct runtime_symbol *got, const struct symbol_frame *want)
{
	return !strncmp(got->function, want->function, strlen(got->function)) &&
	       got->line == want->line && got->file && want->file && !strcmp(got->file, want->file);
}

static void test_names(const struct elf_file *file, const struct go_table *table)
{
	/* Only functions outside the program itself: the lines of its calls are those of cgo's
	 * output. */
	static const char *const functions[] = { "runtime.mallocgc",	  "runtime.schedule",
						 "encoding/json.Marshal", "fmt.Fscan",
						 "bufio.(*Scanner).Scan", NULL };
	uint64_t data, at, size;
	struct runtime_symbol got[RUNTIME_SYMBOLS_MAX];
	struct symbol_frame want[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct go_names_buf buf;
	int inlined = 0, wrong = 0, n = 0;

	ok(!go_names__data(file, table, &data) && data, "where functions' data is");
	symbols__new(file, "", &symbols);
	for (const char *const *name = functions; *name; name++) {
		if (elf_file__find_symbol(file, *name, &at, &size))
			size = 0;
		for (uint64_t end = at + size; at < end; at++) {
			int n_got = go_names__resolve(file, table, data, at, &buf, got);
			int n_want = symbols__resolve(symbols, at, want, SYMBOL_INLINES_MAX);
			bool same = n_got == n_want;

			/* The linker pads with instructions that belong to no line. */
			if (n_want < 1 || !want[0].line)
				continue;
			for (int i = 0; same && i < n_got; i++)
				same = is_same(&got[i], &want[i]);
			n++;
			inlined += n_got > 1;
			if (!same && !wrong++)
				printf("# %s, %#jx: %s %s:%u (%d), want %s %s:%u (%d)\n", *name,
				       (uintmax_t)at, got[0].function, got[0].file, got[0].line,
				       n_got, want[0].function, want[0].file, want[0].line, n_want);
		}
	}
	ok(n > 1000 && inlined > 20 && !wrong,
	   "%d of %d places, %d of them inlined, are as in DWARF", n - wrong, n, inlined);
	symbols__free(symbols);
}

/* --- a file whose layout is not the one of its magic number --- */

#define MODULE_GOFUNC 304 /* in Go 1.18 and 1.19 */
#define MODULE_LATER  24  /* bytes by which Go 1.27 moved it */

struct bytes {
	uint8_t *at;
	size_t n;
};

static struct bytes read_program(void)
{
	struct bytes bytes = {};
	FILE *in = fopen(program, "rb");

	if (!in || fseek(in, 0, SEEK_END))
		abort();
	bytes.n = ftell(in);
	bytes.at = malloc(bytes.n);
	rewind(in);
	if (!bytes.at || fread(bytes.at, 1, bytes.n, in) != bytes.n)
		abort();
	fclose(in);
	return bytes;
}

/* Returns the offset in the file of the two words @first and @second, one after the other. */
static size_t find_words(struct bytes bytes, uint64_t first, uint64_t second)
{
	const uint64_t words[2] = { first, second };
	const uint8_t *at = memmem(bytes.at, bytes.n, words, sizeof(words));

	return at ? at - bytes.at : 0;
}

static struct elf_file *open_bytes(struct bytes bytes)
{
	struct elf_file *file = NULL;
	int fd = memfd_create("program", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes.at, bytes.n) != (ssize_t)bytes.n ||
	    elf_file__open(fd, "program", &file, &err))
		return NULL;
	return file;
}

/* Tests the names at places of a function that inlined others: the number of frames, and whether
 * the outermost one has a line. */
static bool all_placed(const struct elf_file *file, const struct go_table *table, uint64_t data,
		       int *ret_inlined)
{
	struct runtime_symbol got[RUNTIME_SYMBOLS_MAX];
	struct go_names_buf buf;
	bool placed = true;
	uint64_t at, size;

	*ret_inlined = 0;
	if (elf_file__find_symbol(file, "runtime.mallocgc", &at, &size))
		return false;
	for (uint64_t end = at + size; at < end; at++) {
		int n = go_names__resolve(file, table, data, at, &buf, got);

		*ret_inlined += n > 1;
		placed &= n > 0 && got[n - 1].file && got[n - 1].line;
	}
	return placed;
}

static void test_moved_data(const struct go_table *table, uint64_t data)
{
	struct bytes bytes = read_program();
	size_t module = find_words(bytes, table->vaddr, table->vaddr + table->names_at);
	uint8_t *gofunc = bytes.at + module + MODULE_GOFUNC;
	struct elf_file *file;
	struct go_table own;
	uint64_t found = 0;
	int inlined;

	ok(module && !memcmp(gofunc, &data, 8), "gofunc is where Go 1.19 has it");
	memmove(gofunc + MODULE_LATER, gofunc, 8);
	memcpy(gofunc, "\x40\x02\0\0\0\0\0\0", 8); /* an offset, as in Go 1.27 */
	file = open_bytes(bytes);
	ok(!go_table__open(file, &own) && !go_names__data(file, &own, &found) && found == data,
	   "it is found where Go 1.27 has it");
	ok(all_placed(file, &own, found, &inlined) && inlined > 20, "with inlined functions");
	go_table__done(&own);
	elf_file__free(file);
	memset(gofunc + MODULE_LATER, 0, 8);
	file = open_bytes(bytes);
	ok(!go_table__open(file, &own) && go_names__data(file, &own, &found) == -ENOENT &&
		   found == GO_NAMES_NO_DATA,
	   "no other word is taken for it");
	ok(!all_placed(file, &own, found, &inlined) && !inlined,
	   "then functions have no line of a function that is not shown");
	go_table__done(&own);
	elf_file__free(file);
	free(bytes.at);
}

/* Returns the fixed part of the table's function @i in the bytes. */
static uint8_t *function_at(const struct go_table *table, uint8_t *header, size_t i)
{
	uint32_t offset = 0;

	go_table__u32(table, table->functions_at + 8 * i + 4, &offset);
	return header + table->functions_at + offset;
}

static void check_refused(struct bytes bytes, const char *what)
{
	struct elf_file *file = open_bytes(bytes);
	struct go_table own;
	int code = go_table__open(file, &own);

	is_int(code, -ENOENT, "refused: %s", what);
	if (!code)
		go_table__done(&own);
	elf_file__free(file);
}

static void test_other_layout(const struct go_table *table)
{
	static const uint32_t magics[] = { 0xfffffff0, 0xfffffff1 }; /* Go 1.18, 1.20 */
	struct bytes bytes = read_program();
	uint8_t *header = memmem(bytes.at, bytes.n, table->bytes, 64);

	memcpy(header, &magics[table->layout == GO_118], sizeof(*magics));
	check_refused(bytes, "a layout with another magic number");
	memcpy(header, table->bytes, sizeof(*magics));
	for (size_t i = 0; i < table->n_functions; i++) {
		uint8_t *at = function_at(table, header, i);

		memmove(at + 16, at + 12, 12); /* sp, file, line */
	}
	check_refused(bytes, "functions with one more field");
	free(bytes.at);
}

/* Returns the code of a function in the bytes of the program. */
static uint8_t *code_in(struct bytes bytes, const struct elf_file *file, const char *name,
			uint64_t *ret_n)
{
	static uint8_t code[4096];
	uint64_t at;

	if (elf_file__find_symbol(file, name, &at, ret_n) || *ret_n > sizeof(code) ||
	    elf_file__read(file, at, code, *ret_n))
		abort();
	return memmem(bytes.at, bytes.n, code, *ret_n);
}

/* The offset of a field in the code of a program is a claim. */
static void test_far_fields(const struct elf_file *file, const struct go_table *table)
{
	struct go_places places = go_places__of(file, table);
	uint32_t status = places.goid_at - 8, reason = status + 32, far[] = { 1536, 1536 + 32 };
	struct bytes bytes = read_program();
	uint64_t n_changes, n_parks;
	uint8_t *changes = code_in(bytes, file, "runtime.casgstatus", &n_changes);
	uint8_t *parks = code_in(bytes, file, "runtime.gopark", &n_parks);
	struct go_fields fields;
	struct elf_file *other;

	go_layout__find(file, table, &places, &fields);
	ok(fields.goroutines, "the list of goroutines");
	memcpy((uint8_t *)memmem(changes, n_changes, "\xf0\x0f\xb1", 3) + 4, &far[0], 4);
	memcpy(memmem(parks, n_parks, &reason, 4), &far[1], 4);
	other = open_bytes(bytes);
	places = go_places__of(other, table);
	ok(places.goid_at == far[0] + 8, "fields that are farther away");
	go_layout__find(other, table, &places, &fields);
	ok(!fields.goroutines, "... have no list");
	elf_file__free(other);
	free(bytes.at);
}

/* A malformed table: -1 and the smallest number. */
static void test_wrapped(void)
{
	static const uint8_t bytes[] = { 0xff, 0xff, 0xff, 0xff, 0x0f, 4, 0 };
	struct go_values values = {
		.at = bytes, .end = bytes + sizeof(bytes), .start = 100, .until = 100, .value = -1
	};

	ok(go_values__next(&values) && values.value == INT32_MAX && values.start == 100 &&
		   values.until == 104,
	   "a value wraps around");
	ok(!go_values__next(&values), "... and the values end");
}

int main(void)
{
	const char *output = getenv("OUTPUT");
	struct elf_file *file;
	struct go_table table;
	uint64_t data;

	snprintf(program, sizeof(program), "%s/" PROGRAM, output ? output : "build");
	file = open_file(program);
	if (!file) {
		printf("1..0 # SKIP there is no Go\n");
		return 0;
	}
	ok(!go_table__open(file, &table), "a table");
	ok(table.layout < GO_LAYOUTS_N && table.n_functions > 1000, "with functions");
	test_assembly(file, &table);
	test_rows(file, &table);
	test_names(file, &table);
	test_other_layout(&table);
	if (table.layout == GO_118 && !go_names__data(file, &table, &data))
		test_moved_data(&table, data);
	test_far_fields(file, &table);
	test_wrapped();
	go_table__done(&table);
	elf_file__free(file);
	file = open_file("/proc/self/exe");
	is_int(go_table__open(file, &table), -ENOENT, "a program of another language has none");
	elf_file__free(file);
	return tap__done();
}
