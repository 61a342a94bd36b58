// SPDX-License-Identifier: GPL-2.0-or-later
/* Notes of probes, compared with readelf; argument strings; and malformed notes. */
#include <errno.h>
#include <inttypes.h>

#include "core/base/util.h"
#include "probes/usdt.h"
#include "probes/usdt_args.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define LINES_MAX 2000

/* Files that may have notes, as shell patterns. */
#define CANDIDATES                                                            \
	"/usr/bin/python3.[0-9] /usr/bin/python3.[0-9][0-9] "                 \
	"/usr/lib/*-linux-gnu/libpython3*.so.* "                              \
	"/usr/lib/*-linux-gnu/libruby*.so.* "                                 \
	"/usr/lib/jvm/*/lib/server/libjvm.so /usr/lib/*-linux-gnu/libc.so.6 " \
	"/usr/lib/*-linux-gnu/libstdc++.so.6 /usr/bin/node /usr/lib/*-linux-gnu/ld-linux*.so.*"

static const char *fixture_path(void)
{
	static char absolute[4096];
	const char *output = getenv("OUTPUT");
	char path[4096];

	snprintf(path, sizeof(path), "%s/fixtures/native/usdt", output ? output : "build");
	return realpath(path, absolute) ? absolute : "/no/fixture";
}

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *file = NULL;

	elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, NULL);
	return file;
}

/* --- notes --- */

static void add_line(char lines[LINES_MAX][256], size_t *n, const char *provider, const char *name,
		     uint64_t pc, uint64_t semaphore, const char *arguments)
{
	if (*n < LINES_MAX)
		snprintf(lines[(*n)++], 256, "%s:%s %" PRIx64 " %" PRIx64 " %s", provider, name, pc,
			 semaphore, arguments);
}

static size_t read_with_readelf(const char *path, char lines[LINES_MAX][256])
{
	FILE *pipe = workdir__pipe("LC_ALL=C readelf -n '%s' 2>/dev/null", path);
	char line[512], provider[128] = "", name[128] = "";
	uint64_t pc = 0, base = 0, semaphore = 0;
	size_t n = 0;

	while (fgets(line, sizeof(line), pipe)) {
		line[strcspn(line, "\n")] = '\0';
		sscanf(line, " Provider: %127s", provider);
		sscanf(line, " Name: %127s", name);
		sscanf(line, " Location: 0x%" SCNx64 ", Base: 0x%" SCNx64 ", Semaphore: 0x%" SCNx64,
		       &pc, &base, &semaphore);
		if (strstr(line, " Arguments: "))
			add_line(lines, &n, provider, name, pc, semaphore,
				 strstr(line, "Arguments: ") + strlen("Arguments: "));
	}
	pclose(pipe);
	return n;
}

static size_t read_with_braid(const char *path, char lines[LINES_MAX][256], int *ret_unparsed)
{
	struct elf_file *file = open_elf(path);
	struct probe_arg args[USDT_ARGS_MAX];
	struct usdt_sites sites = {};
	size_t n = 0;

	if (!file || usdt__read(file, &sites, NULL))
		tap__diag("%s: not read", path);
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];

		add_line(lines, &n, site->provider, site->name, site->pc_vaddr,
			 site->semaphore_vaddr, site->arguments);
		if (usdt_args__parse(site->arguments, file, site->pc_vaddr, args, NULL) < 0)
			++*ret_unparsed;
	}
	usdt_sites__done(&sites);
	elf_file__free(file);
	return n;
}

static size_t compare_with_readelf(const char *path, int want_unparsed)
{
	static char got[LINES_MAX][256], want[LINES_MAX][256];
	int unparsed = 0, wrong = 0;
	size_t n_got = read_with_braid(path, got, &unparsed),
	       n_want = read_with_readelf(path, want);

	for (size_t i = 0; i < n_got && i < n_want; i++)
		if (strcmp(got[i], want[i]) != 0 && !wrong++)
			tap__diag("got '%s', want '%s'", got[i], want[i]);
	is_int(n_got, n_want, "%s: as many sites as readelf finds", path);
	is_int(wrong, 0, "%s: the same sites", path);
	is_int(unparsed, want_unparsed, "%s: arguments parsed", path);
	return n_got;
}

static void test_notes(void)
{
	FILE *list = workdir__pipe("ls -d " CANDIDATES " 2>/dev/null | xargs realpath | sort -u");
	char path[4096];

	ok(compare_with_readelf(fixture_path(), 1) >= 9, "the fixture has sites");
	while (fgets(path, sizeof(path), list)) {
		path[strcspn(path, "\n")] = '\0';
		compare_with_readelf(path, 0);
	}
	pclose(list);
}

/* The base of the notes has moved, as in a program that prelink moved. */
static void test_base(void)
{
	static char before[LINES_MAX][256], after[LINES_MAX][256];
	uint64_t pc[2] = {}, semaphore[2] = {};
	int unparsed = 0;

	workdir__run(
		"objcopy --change-section-address .stapsdt.base+0x10000 '%s' moved 2>/dev/null",
		fixture_path());
	workdir__run("cp '%s' unmoved", fixture_path());
	strcat(strcpy(before[0], workdir), "/unmoved");
	strcat(strcpy(after[0], workdir), "/moved");
	is_int(read_with_braid(before[0], before, &unparsed),
	       read_with_braid(after[0], after, &unparsed), "moved: as many sites");
	sscanf(before[0], "%*s %" SCNx64 " %" SCNx64, &pc[0], &semaphore[0]);
	sscanf(after[0], "%*s %" SCNx64 " %" SCNx64, &pc[1], &semaphore[1]);
	is_int(pc[1] - pc[0], 0x10000, "moved: addresses follow");
	is_int(semaphore[1] - semaphore[0], 0x10000, "moved: semaphores follow");
	ok(strstr(after[1], " 0 "), "moved: no semaphore stays none");
}

/* Reads a file with one note. @flags are the section's flags and type. */
static int read_note(const char *flags, const char *body)
{
	struct usdt_sites sites = {};
	struct elf_file *file;
	struct err err = {};
	char source[1024], path[128];
	int code;

	snprintf(source, sizeof(source),
		 ".globl _start\n_start: nop\n.section .note.stapsdt,%s\n%s\n", flags, body);
	workdir__write("note.s", source);
	workdir__run("gcc -nostdlib -static -o note note.s 2>/dev/null");
	snprintf(path, sizeof(path), "%s/note", workdir);
	file = open_elf(path);
	code = file ? usdt__read(file, &sites, &err) : -ENOENT;
	if (!code)
		code = sites.n;
	else
		ok(strstr(err.text, "malformed"), "malformed notes: %s", err.text);
	usdt_sites__done(&sites);
	elf_file__free(file);
	return code;
}

#define HEAD(name_size, desc_size) \
	".4byte " name_size ", " desc_size ", 3\n.asciz \"stapsdt\"\n.8byte _start, 0, 0\n"
#define NOTE "\"\",@note"

static void test_malformed(void)
{
	is_int(read_note(NOTE, HEAD("8", "27") ".asciz \"a\", \"b\", \"\"\n.balign 4"), -EBADMSG,
	       "no third string");
	is_int(read_note(NOTE, HEAD("8", "29") ".asciz \"a\", \"b\", \"\"\n.balign 4"), 1,
	       "with a third string, although it is empty");
	is_int(read_note(NOTE, HEAD("8", "24")), -EBADMSG, "no strings");
	is_int(read_note(NOTE, HEAD("8", "20")), -EBADMSG, "descriptor smaller than its addresses");
	is_int(read_note(NOTE, HEAD("8", "28") ".ascii \"abcd\""), -EBADMSG, "no NUL");
	is_int(read_note(NOTE, HEAD("8", "0xfffffff0") ".4byte 0"), -EBADMSG,
	       "size beyond the end");
	is_int(read_note(NOTE, HEAD("0xfffffffc", "28") ".4byte 0"), -EBADMSG,
	       "name beyond the end");
	is_int(read_note(NOTE, ".4byte 8, 0"), -EBADMSG, "half a header");
	is_int(read_note(NOTE, ".4byte 4, 0, 3\n.asciz \"GNU\""), 0, "somebody else's note");
	is_int(read_note("\"\",@progbits", HEAD("8", "29") ".asciz \"a\", \"b\", \"\""), -EBADMSG,
	       "section of another type");
	is_int(read_note("\"\",@progbits", "\n.section .other"), 0, "empty section");
}

/* On any bytes, the reader returns an error, or terminated strings. */
static void test_damaged(void)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0xff };
	const char *owner;
	unsigned char *data;
	size_t len, begin, n = 0;
	uint64_t sum = 0;

	workdir__run("cp '%s' damaged", fixture_path());
	data = workdir__read("damaged", &len);
	owner = memmem(data, len, "stapsdt\0", 8);
	begin = owner ? (size_t)(owner - (char *)data) - 12 : len;
	for (size_t i = begin; i < len && i < begin + 1100; i++) {
		unsigned char saved = data[i];

		for (size_t k = 0; k < ARRAY_SIZE(values); k++) {
			struct usdt_sites sites = {};
			struct probe_arg args[USDT_ARGS_MAX];
			struct elf_file *file = NULL;

			data[i] = values[k];
			if (elf_file__open_memory(data, len, "damaged", &file, NULL))
				continue;
			n += usdt__read(file, &sites, NULL) == 0;
			for (size_t s = 0; s < sites.n; s++) {
				sum += strlen(sites.list[s].provider) + strlen(sites.list[s].name);
				usdt_args__parse(sites.list[s].arguments, file, 0, args, NULL);
			}
			usdt_sites__done(&sites);
			elf_file__free(file);
		}
		data[i] = saved;
	}
	ok(n > 1000 && sum, "damaged notes: %zu of them readable", n);
	free(data);
}

/* --- arguments --- */

static const struct {
	const char *text;
	struct probe_arg want;
} forms[] = {
#define NONE PROBE_REG_NONE
#define REGISTER(r, bytes, sign)                                                        \
	{                                                                               \
		.kind = PROBE_ARG_REGISTER, .reg = r, .index_reg = NONE, .size = bytes, \
		.is_signed = sign                                                       \
	}
#define MEMORY(r, index, scale, bytes, sign, offset)                                         \
	{                                                                                    \
		.kind = PROBE_ARG_MEMORY, .reg = r, .index_reg = index, .scale_log2 = scale, \
		.size = bytes, .is_signed = sign, .value = offset                            \
	}
#define CONSTANT(v, bytes, sign)                                                           \
	{                                                                                  \
		.kind = PROBE_ARG_CONSTANT, .reg = NONE, .index_reg = NONE, .size = bytes, \
		.is_signed = sign, .value = v                                              \
	}
	{ "8@%rbp", REGISTER(PROBE_RBP, 8, 0) },
	{ "-4@%eax", REGISTER(PROBE_RAX, 4, 1) },
	{ "2@%bp", REGISTER(PROBE_RBP, 2, 0) },
	{ "1@%bpl", REGISTER(PROBE_RBP, 1, 0) },
	{ "-1@%dl", REGISTER(PROBE_RDX, 1, 1) },
	{ "1@%sil", REGISTER(PROBE_RSI, 1, 0) },
	{ "4@%r8d", REGISTER(PROBE_R8, 4, 0) },
	{ "-2@%r10w", REGISTER(PROBE_R10, 2, 1) },
	{ "1@%r15b", REGISTER(PROBE_R15, 1, 0) },
	{ "8@%r9", REGISTER(PROBE_R9, 8, 0) },
	{ "8@%rsp", REGISTER(PROBE_RSP, 8, 0) },
	{ "8@(%rsp)", MEMORY(PROBE_RSP, NONE, 0, 8, 0, 0) },
	{ "8@16(%rsp)", MEMORY(PROBE_RSP, NONE, 0, 8, 0, 16) },
	{ "-4@-296(%rbp)", MEMORY(PROBE_RBP, NONE, 0, 4, 1, -296) },
	{ "8@0x10(%r12)", MEMORY(PROBE_R12, NONE, 0, 8, 0, 16) },
	{ "8@16(%rsp,%rax,8)", MEMORY(PROBE_RSP, PROBE_RAX, 3, 8, 0, 16) },
	{ "-2@(%rdi,%rsi)", MEMORY(PROBE_RDI, PROBE_RSI, 0, 2, 1, 0) },
	{ "8@8(,%rcx,2)", MEMORY(NONE, PROBE_RCX, 1, 8, 0, 8) },
	{ "-4@$5", CONSTANT(5, 4, 1) },
	{ "-8@$-5", CONSTANT(-5, 8, 1) },
	{ "8@$0xffffffffffffffff", CONSTANT(-1, 8, 0) },
	{ " 8@$9223372036854775807 ", CONSTANT(INT64_MAX, 8, 0) },
};

static const struct {
	const char *text;
	int code;
} bad_forms[] = {
	{ "%rax", -EINVAL },
	{ "8%rax", -EINVAL },
	{ "8@", -EINVAL },
	{ "8@%", -ENOTSUP },
	{ "3@%rax", -EINVAL },
	{ "0@%rax", -EINVAL },
	{ "16@%rax", -EINVAL },
	{ "-9223372036854775808@%rax", -EINVAL },
	{ "8@%rax,", -EINVAL },
	{ "8@%raxx", -ENOTSUP },
	{ "8@%ah", -ENOTSUP },
	{ "8@%xmm0", -ENOTSUP },
	{ "8f@%xmm0", -ENOTSUP },
	{ "8@%fs:0(%rax)", -ENOTSUP },
	{ "8@16", -EINVAL },
	{ "8@16(", -EINVAL },
	{ "8@16()", -EINVAL },
	{ "8@16(%rsp", -EINVAL },
	{ "8@16(%rsp,", -EINVAL },
	{ "8@16(%esp)", -ENOTSUP },
	{ "8@(%rax,%rbx,3)", -EINVAL },
	{ "8@(%rax,%rbx,0)", -EINVAL },
	{ "8@(%rax,%rsp,8)", -EINVAL },
	{ "8@(%rax)x", -EINVAL },
	{ "8@$", -EINVAL },
	{ "8@$x", -EINVAL },
	{ "8@x(%rip)", -ENOTSUP },
	{ "8@16(%rip)", -ENOTSUP },
	{ "8@$99999999999999999999", -EINVAL },
};

static void test_arguments(void)
{
	struct probe_arg args[USDT_ARGS_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		memset(args, 0xff, sizeof(args));
		is_int(usdt_args__parse(forms[i].text, NULL, 0, args, NULL), 1, "%s: one argument",
		       forms[i].text);
		ok(!memcmp(&args[0], &forms[i].want, sizeof(args[0])), "%s: as it is meant",
		   forms[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad_forms); i++) {
		struct err err = {};

		is_int(usdt_args__parse(bad_forms[i].text, NULL, 0, args, &err), bad_forms[i].code,
		       "refused: %s", bad_forms[i].text);
		ok(strstr(err.text, bad_forms[i].text), "it is named: %s", err.text);
	}
	is_int(usdt_args__parse("", NULL, 0, args, NULL), 0, "no arguments");
	is_int(usdt_args__parse("1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8 1@$9 1@$10 1@$11 1@$12",
				NULL, 0, args, NULL),
	       12, "twelve arguments");
	is_int(args[11].value, 12, "the twelfth of them");
	is_int(usdt_args__parse("1@$1 1@$2 1@$3 1@$4 1@$5 1@$6 1@$7 1@$8 1@$9 1@$1 1@$1 1@$1 1@$1",
				NULL, 0, args, NULL),
	       -E2BIG, "thirteen");
}

static void test_symbols(void)
{
	struct elf_file *file = open_elf(fixture_path());
	struct probe_arg args[USDT_ARGS_MAX];
	uint64_t vaddr = 0;

	elf_file__find_symbol(file, "usdt_counter", &vaddr, NULL);
	is_int(usdt_args__parse("-4@usdt_counter(%rip) 4@usdt_counter+2(%rip)", file, 0x1000, args,
				NULL),
	       2, "symbols that the file has");
	is_int(args[0].reg, PROBE_RIP, "relative to the site");
	is_int(args[0].value, vaddr - 0x1000, "the distance");
	is_int(args[1].value, vaddr + 2 - 0x1000, "with an addend");
	is_int(usdt_args__parse("8@usdt_nothing(%rip)", file, 0, args, NULL), -ENOTSUP,
	       "no symbol");
	is_int(usdt_args__parse("8@usdt_counter(%rax)", file, 0, args, NULL), -ENOTSUP,
	       "symbol and another base");
	elf_file__free(file);
}

int main(void)
{
	workdir__make();
	test_notes();
	test_base();
	test_malformed();
	test_damaged();
	test_arguments();
	test_symbols();
	return tap__done();
}
