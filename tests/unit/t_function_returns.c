// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses where functions provably return. The test's own functions are written in assembly, so
 * that the addresses of all returns are fixed. */
#include "core/insn/function_returns.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/trap_sites.h"
#include "tests/tap.h"

#define FUNCTION(name, body)                                                                   \
	asm(".pushsection .text\n.balign 16\n.globl " name "\n.type " name ",@function\n" name \
	    ":\n.cfi_startproc\n" body "\n.cfi_endproc\n.size " name ",.-" name                \
	    "\nint3\n.popsection");                                                            \
	extern const char
#define RET(name) ".globl " name "\n" name ": ret\n"

FUNCTION("two", "test %edi,%edi\nje 1f\n" RET("two_a") "1:\n" RET("two_b"))
two[], two_a[], two_b[];
FUNCTION("loops", "1: dec %edi\njne 1b\n.byte 0xf2\njmp 2f\n.byte 0xc3,0xc3\n2:\n" RET("loops_a"))
loops[], loops_a[];
FUNCTION("prefixed", ".globl prefixed_a\nprefixed_a: repz ret\n")
prefixed[], prefixed_a[];
/* Five cases; the last one is in the cold part. */
FUNCTION("table",
	 "cmp $4,%edi\nja 9f\nlea table_cases(%rip),%rax\nmovslq (%rax,%rdi,4),%rdx\n"
	 "add %rax,%rdx\nnotrack jmp *%rdx\n1:" RET("table_a") "2:" RET("table_b") "9:" RET(
		 "table_c") ".pushsection .rodata\n.balign 4\ntable_cases: .long "
			    "1b-table_cases,2b-table_cases,1b-table_cases,9b-table_cases,"
			    "table_cold+1-table_cases\n.popsection")
table[], table_a[], table_b[], table_c[];
FUNCTION("table_cold", "nop\n" RET("table_d"))
table_d[];
/* As "table", without a bound check: the length of the table is unknown. */
FUNCTION("boundless", "lea boundless_cases(%rip),%rax\nmovslq (%rax,%rdi,4),%rdx\n"
		      "add %rax,%rdx\njmp *%rdx\n1: ret\n2: ret\n.pushsection .rodata\n.balign 4\n"
		      "boundless_cases: .long 1b-boundless_cases,2b-boundless_cases\n.popsection")
boundless[];
FUNCTION("tail", "test %edi,%edi\nje two\n" RET("tail_a"))
tail[], tail_a[];
FUNCTION("tail_of_tail", "jmp tail")
tail_of_tail[];
FUNCTION(
	"away",
	"test %edi,%edi\nje 1f\n" RET(
		"away_a") "1: .globl away_b\naway_b: jmp "
			  "*away_slot(%rip)\n.pushsection .data\naway_slot: .quad two\n.popsection")
away[], away_a[], away_b[];
FUNCTION("in_register", "jmp *%rax")
in_register[];
FUNCTION("cleans_up", "ret $8")
cleans_up[];
FUNCTION("pushes", "push %rax\nret")
pushes[];
FUNCTION("writes", "mov %rax,(%rsp)\nret")
writes[];
FUNCTION("into", "jmp 1f+1\n1: mov $0xc3c3c3c3,%eax\nret")
into[];
FUNCTION("no_code", "jmp 1f\n1: .byte 0x06\nret")
no_code[];
FUNCTION("never", "ud2")
never[];
FUNCTION("exits", "test %edi,%edi\nje 1f\n" RET("exits_a") "1: call two")
exits[], exits_a[];
asm(".pushsection .text\nunsized: ret\n.type unsized,@function\nint3\n.popsection");
extern const char unsized[];

static struct elf_file *file;
static struct function_map *map;

static uint64_t vaddr_of(const char *code)
{
	uint64_t vaddr = 0, offset;

	trap_site__find(code, &vaddr, &offset);
	return vaddr;
}

static bool has(const uint64_t *list, size_t n, const char *code)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == vaddr_of(code))
			return true;
	return false;
}

/* The function returns at all of @want, NULL-terminated, and nowhere else. */
static void returns_at(const char *name, const char *code, const char *const *want, bool shared)
{
	struct function_returns returns;
	struct err why = {};
	size_t n = 0;
	int ret = function_returns__find(map, vaddr_of(code), false, &returns, &why);

	is_int(ret, 0, "%s: its returns are proven", name);
	if (ret)
		tap__diag("%s", why.text);
	for (; want[n]; n++)
		ok(has(returns.list, returns.n, want[n]), "%s: return %zu is found", name, n);
	is_int(returns.n, n, "%s: no others", name);
	is_int(returns.shared, shared, "%s: whether other functions end there", name);
}

#define AT(...) ((const char *const[]) { __VA_ARGS__, NULL })

static void refuses(const char *name, const char *code, const char *words)
{
	struct function_returns returns;
	struct err why = {};

	is_int(function_returns__find(map, vaddr_of(code), false, &returns, &why), -ENOTSUP,
	       "%s: refused", name);
	ok(strstr(why.text, words) != NULL, "%s: with the reason", name);
	if (!strstr(why.text, words))
		tap__diag("%s", why.text);
	is_int(returns.n, 0, "%s: nothing is to be probed", name);
}

static void test_jumps(void)
{
	struct function_returns returns;
	struct err why = {};

	is_int(function_returns__find(map, vaddr_of(away), false, &returns, &why), 0,
	       "away: its ends are proven");
	is_int(returns.n, 1, "away: one of them is a return");
	ok(returns.n_jumps == 1 && has(returns.jumps, 1, away_b), "... and one a jump");
}

/* Calls of `tail`, and of functions that jump to it, may end as calls of `two`, never the reverse.
 */
static void test_elsewhere(void)
{
	const uint64_t others[] = { vaddr_of(two), vaddr_of(loops) };

	is_int(function_returns__end_elsewhere(map, vaddr_of(tail), others, 2), 1, "tail: as two");
	is_int(function_returns__end_elsewhere(map, vaddr_of(tail_of_tail), others, 2), 1,
	       "tail_of_tail: as two");
	is_int(function_returns__end_elsewhere(map, vaddr_of(two), others, 2), 0,
	       "two: is no other function");
	is_int(function_returns__end_elsewhere(map, vaddr_of(prefixed), others, 2), 0,
	       "prefixed: as itself");
	is_int(function_returns__end_elsewhere(map, vaddr_of(away), others, 2), 1,
	       "away: in another library");
	is_int(function_returns__end_elsewhere(map, vaddr_of(in_register), others, 2), -ENOTSUP,
	       "in_register: not proven");
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (elf_file__open(fd, "self", &file, NULL) || function_map__new(file, &map))
		return 1;
	returns_at("two", two, AT(two_a, two_b), false);
	returns_at("loops", loops, AT(loops_a), false);
	returns_at("prefixed", prefixed, AT(prefixed_a), false);
	returns_at("table", table, AT(table_a, table_b, table_c, table_d), false);
	returns_at("tail", tail, AT(tail_a, two_a, two_b), true);
	returns_at("tail_of_tail", tail_of_tail, AT(tail_a, two_a, two_b), true);
	returns_at("exits", exits, AT(exits_a), false);
	refuses("boundless", boundless, "computed address");
	refuses("in_register", in_register, "computed address");
	refuses("cleans_up", cleans_up, "other means");
	refuses("pushes", pushes, "other means");
	refuses("writes", writes, "other means");
	refuses("into", into, "middle of an instruction");
	refuses("no_code", no_code, "not an instruction");
	refuses("never", never, "never returns");
	refuses("unsized", unsized, "does not contain its end");
	test_jumps();
	test_elsewhere();
	function_map__free(map);
	elf_file__free(file);
	return tap__done();
}
