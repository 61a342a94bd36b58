// SPDX-License-Identifier: GPL-2.0-or-later
/* Distance from the interpreter loop's frame to a probe's site: computed from the file, and
 * compared with the measurement of a program that was built from the same source. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "core/elf/elf_file.h"
#include "runtimes/common/site_frames.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* site <- step <- core <- loop; `core` also has other callers. */
static const char source[] =
	"#include <stdio.h>\n"
	"#define F __attribute__((noipa))\n"
	"unsigned long at_site, at_loop, own_end;\n"
	"F void site(void) {\n"
	"    volatile char room[24];\n"
	"    room[0] = 1;\n"
	"    own_end = (unsigned long)__builtin_dwarf_cfa();\n"
	"    asm volatile(\".globl site_at\\nsite_at: mov %%rsp, %0\" : \"=m\"(at_site));\n"
	"}\n"
	"#ifdef TAIL\n"
	"F void jump(void) { asm volatile(\".skip 200, 0x90\"); site(); }\n"
	"#define site jump\n"
	"#endif\n"
	"F int step(int n) { volatile char room[200]; room[n] = 1; site(); return room[0]; }\n"
	"#ifdef TWO\n"
	"F int other(int n) { volatile char room[900]; room[n] = 1; site(); return room[0]; }\n"
	"#else\n"
	"#define other step\n"
	"#endif\n"
	"F int core(int n) { volatile int sum = step(n); sum += other(n); return n ? sum : 0; }\n"
	"F int reset(void) { return core(0); }\n"
	"F int loop(int n) {\n"
	"    volatile char room[80];\n"
	"    room[n] = 1;\n"
	"    n = core(n);\n"
	"    asm volatile(\"mov %%rsp, %0\" : \"=m\"(at_loop));\n"
	"    return n + room[0];\n"
	"}\n"
	"int main(int argc, char **argv) {\n"
	"    (void)argv;\n"
	"    reset();\n"
	"    loop(argc);\n"
	"    printf(\"%lu %lu\\n\", at_loop - at_site, own_end - at_site);\n"
	"    return 0;\n"
	"}\n";

static struct elf_file *build(const char *name, const char *flags)
{
	struct elf_file *file = NULL;
	char command[1024], path[512];
	struct err err = {};

	workdir__write("chain.c", source);
	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	snprintf(command, sizeof(command),
		 "gcc -O2 -fomit-frame-pointer %s -o '%s' '%s/chain.c' 2>&1", flags, path, workdir);
	if (system(command) || elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, &err))
		tap__diag("%s: %s", command, err.text);
	return file;
}

static struct runtime_range range_of(const struct elf_file *file, const char *name)
{
	uint64_t vaddr = 0, size = 0;

	elf_file__find_symbol(file, name, &vaddr, &size);
	return (struct runtime_range) { vaddr, vaddr + size };
}

static bool measure(const char *name, int *ret_loop, int *ret_own)
{
	char command[512];
	bool good;
	FILE *pipe;

	snprintf(command, sizeof(command), "'%s/%s'", workdir, name);
	pipe = popen(command, "r");
	good = pipe && fscanf(pipe, "%d %d", ret_loop, ret_own) == 2;
	return pipe && pclose(pipe) == 0 && good;
}

static void check(const char *name, const char *flags, int want)
{
	struct elf_file *file = build(name, flags);
	struct probe_rec rec = {}, own = {};
	struct site_frames frames = {};
	struct runtime_range loops[2];
	int loop = 0, end = 0;
	uint64_t site = 0;
	struct err err = {};

	if (!file) {
		ok(false, "%s: built", name);
		return;
	}
	loops[0] = range_of(file, "loop");
	loops[1] = range_of(file, "core");
	ok(!elf_file__find_symbol(file, "site_at", &site, NULL) && measure(name, &loop, &end),
	   "%s: runs", name);
	ok(!site_frames__open(file, &frames, &err), "%s: read", name);
	is_int(site_frames__loop(&frames, site, loops, 2, &rec, &err), want, "%s: %s", name,
	       want ? "refused" : "found");
	if (!want)
		is_int(rec.anchor_offset, loop, "%s: the loop's stack pointer", name);
	else
		ok(err.text[0], "%s: why", name);
	ok(!site_frames__own(&frames, site, true, &own, &err) && own.anchor_offset == end,
	   "%s: the end of the site's own frame", name);
	site_frames__done(&frames);
	elf_file__free(file);
}

int main(void)
{
	workdir__make();
	check("chain", "", 0);
	check("tail", "-DTAIL", 0);
	check("two", "-DTWO", -ENOTSUP);
	return tap__done();
}
