// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/trap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernel/trap_sites.h"
#include "probes/attach.h"
#include "tests/tap.h"

/* The kernel's way to run a probed instruction, and the instructions at braid's own sites. */

static const struct {
	const char *name;
	uint8_t code[16];
	size_t size;
	enum trap_kind kind;
} rows[] = {
	{ "nop", { 0x90 }, 1, TRAP_NOP },
	{ "nopl (%rax)", { 0x0f, 0x1f, 0x00 }, 3, TRAP_NOP5 },
	{ "nopl 0(%rax)", { 0x0f, 0x1f, 0x40, 0x00 }, 4, TRAP_NOP5 },
	{ "nopl 0(%rax,%rax,1)", { 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 5, TRAP_NOP5 },
	{ "the same, cut", { 0x0f, 0x1f }, 2, TRAP_STEP },
	{ "push %rbp", { 0x55 }, 1, TRAP_PUSH },
	{ "push %r15", { 0x41, 0x57 }, 2, TRAP_PUSH },
	{ "pop %rbp", { 0x5d }, 1, TRAP_STEP },
	{ "call", { 0xe8, 0, 0, 0, 0 }, 5, TRAP_PUSH },
	{ "jmp", { 0xeb, 0 }, 2, TRAP_PUSH },
	{ "endbr64", { 0xf3, 0x0f, 0x1e, 0xfa }, 4, TRAP_STEP },
	{ "mov %rdi,%rax", { 0x48, 0x89, 0xf8 }, 3, TRAP_STEP },
	{ "REX prefix alone", { 0x41 }, 1, TRAP_STEP },
	{ "nothing", {}, 0, TRAP_STEP },
};

static enum trap_kind kind_of(void (*site)(uintptr_t, uintptr_t, uintptr_t))
{
	uint8_t code[8];

	memcpy(code, (const void *)(uintptr_t)site, sizeof(code));
	return trap__kind(code, sizeof(code), false);
}

/* The probed instruction is an endbr64 followed by a push. */
static void test_marker(void)
{
	const char *output = getenv("OUTPUT");
	struct probe_point point = {};
	struct elf_file *file = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/fixtures/native/marked", output ? output : "build");
	if (!ok(!elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, NULL), "%s", path))
		return;
	point.file = file;
	is_int(elf_file__find_symbol(file, "marked", &point.pc_vaddr, NULL), 0, "its function");
	is_int(probe_point__trap(&point), TRAP_PUSH, "endbr64, push: a probe is at the push");
	point.retprobe = true;
	is_int(probe_point__trap(&point), TRAP_RETURN, "its return");
	elf_file__free(file);
}

int main(void)
{
	uint64_t vaddr, offset;
	int local;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		is_int(trap__kind(rows[i].code, rows[i].size, false), rows[i].kind, "%s",
		       rows[i].name);
	is_int(trap__kind(rows[0].code, 1, true), TRAP_RETURN, "a return");
	is_int(kind_of(trap_site_nop), TRAP_NOP, "site: nop");
	is_int(kind_of(trap_site_nop5), TRAP_NOP5, "site: nop of five bytes");
	is_int(kind_of(trap_site_push), TRAP_PUSH, "site: push");
	is_int(kind_of(trap_site_step), TRAP_STEP, "site: anything else");
	is_int(kind_of(trap_site_pair), TRAP_NOP, "site: the pair's entry");
	is_int(((const uint8_t *)(uintptr_t)trap_site_pair)[TRAP_SITE_PAIR_RETURN], 0x90,
	       "site: the pair's return");
	is_int(trap_site__find((const void *)(uintptr_t)trap_site_nop, &vaddr, &offset), 0,
	       "a site is in this program");
	ok(vaddr && offset && vaddr % 4096 == offset % 4096, "at one place in its page");
	is_int(trap_site__find(&local, &vaddr, &offset) < 0, 1, "the stack is not");
	test_marker();
	return tap__done();
}
