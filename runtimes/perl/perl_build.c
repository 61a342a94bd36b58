// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/x86_code.h"

#define OP_AT 8 /* PL_op, the second field of struct interpreter in all versions (intrpvar.h) */

static bool find(const struct elf_file *file, const char *name, uint64_t *ret_vaddr)
{
	return elf_file__find_symbol(file, name, ret_vaddr, NULL) == 0;
}

bool perl_build__is_perl(const struct elf_file *file)
{
	uint64_t vaddr;

	return find(file, "Perl_runops_standard", &vaddr) && find(file, "perl_run", &vaddr);
}

/* The version is in three bytes, each of which has a symbol (perl.h, globvar.sym). */
int perl_build__version(const struct elf_file *file, struct perl_number *ret)
{
	static const char *const names[] = { "PL_revision", "PL_version", "PL_subversion" };
	uint8_t numbers[ARRAY_SIZE(names)];
	uint64_t vaddr;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!find(file, names[i], &vaddr) ||
		    elf_file__read(file, vaddr, &numbers[i], sizeof(numbers[i])))
			return -ENOENT;
	*ret = (struct perl_number) { numbers[0], numbers[1], numbers[2] };
	return 0;
}

/* --- the interpreter --- */

bool perl_build__reads_first(const struct elf_file *file, const char *function, uint16_t offset)
{
	struct x86_stub stub;

	if (x86_stub__read(file, function, &stub))
		return false;
	for (size_t i = 0; i + 7 <= stub.size; i++)
		if ((stub.code[i] & 0xf8) == 0x48 && stub.code[i + 1] == 0x8b &&
		    (stub.code[i + 2] & 0xc0) == 0x80 && (stub.code[i + 2] & 7) != 4)
			return x86_stub__value(&stub, i + 3) == offset;
	return false;
}

/* Perl_block_gimme (pp_ctl.c) reads PL_curstackinfo first. Perl_dowantarray calls it. In a program,
 * the compiler has inlined it there, but not in a shared library. */
static bool reads_field(const struct elf_file *file, uint16_t offset)
{
	return perl_build__reads_first(file, "Perl_dowantarray", offset) ||
	       perl_build__reads_first(file, "Perl_block_gimme", offset);
}

static const char *place_variables(const struct elf_file *file, struct perl_place *ret)
{
	ret->state = PERL_STATE_GLOBAL;
	if (!find(file, "PL_op", &ret->op) || !find(file, "PL_curcop", &ret->curcop) ||
	    !find(file, "PL_comppad", &ret->comppad) || !find(file, "PL_phase", &ret->phase) ||
	    !find(file, "PL_defstash", &ret->defstash))
		return "its variables were stripped";
	return NULL;
}

const char *perl_build__place(const struct elf_file *file, const struct perl_version *version,
			      struct perl_place *ret)
{
	uint16_t size = 0;
	uint64_t vaddr;

	*ret = (struct perl_place) {};
	if (find(file, "PL_curstackinfo", &ret->curstackinfo))
		return place_variables(file, ret);
	if (!find(file, "PL_thr_key", &ret->key_vaddr))
		return "built with several interpreters but without threads";
	ret->state = PERL_STATE_KEY;
	find(file, "PL_curinterp", &ret->first_vaddr);
	if (!reads_field(file, version->curstackinfo))
		return "built with options that move the fields of its interpreter";
	ret->op = OP_AT;
	ret->curcop = version->curcop;
	ret->curstackinfo = version->curstackinfo;
	ret->comppad = version->comppad;
	ret->defstash = version->defstash;
	if (find(file, "PL_interp_size", &vaddr) &&
	    !elf_file__read(file, vaddr, &size, sizeof(size)) && size == version->size)
		ret->phase = version->phase;
	return NULL;
}

/* --- loops --- */

/* Code of pp_ctl.c: `if (CATCH_GET) return docatch(Perl_pp_entertry)`. It loads the function's own
 * address as the second argument, and then jumps or calls. */
#define JUMP_WITHIN 24 /* the jump or call is in this number of bytes after the load */

static uint64_t find_docatch(const struct elf_file *file, const char *caller)
{
	uint64_t self, size;
	struct runtime_range range;
	uint64_t found = 0;
	uint8_t *code;

	if (elf_file__find_symbol(file, caller, &self, &size) || !size)
		return 0;
	range = (struct runtime_range) { self, self + size };
	code = x86_code__read(file, &range);
	for (size_t i = 0; code && !found && i + 7 <= size; i++) {
		int32_t value;
		size_t at;

		memcpy(&value, code + i + 3, sizeof(value));
		/* lea self(%rip),%rsi; mov $self,%rsi; mov $self,%esi */
		if (memcmp(code + i, "\x48\x8d\x35", 3) == 0 && self + i + 7 + value == self)
			at = i + 7;
		else if (memcmp(code + i, "\x48\xc7\xc6", 3) == 0 && (uint32_t)value == self)
			at = i + 7;
		else if (code[i] == 0xbe && memcmp(code + i + 1, &(uint32_t) { self }, 4) == 0)
			at = i + 5;
		else
			continue;
		for (size_t end = at + JUMP_WITHIN; at < end && at + 5 <= size; at++) {
			if (code[at] != 0xe9 && code[at] != 0xe8)
				continue;
			memcpy(&value, code + at + 1, sizeof(value));
			found = self + at + 5 + (int64_t)value;
			break;
		}
	}
	free(code);
	return found;
}

static size_t add_function(const struct x86_functions *functions, const struct elf_file *file,
			   uint64_t vaddr, struct runtime_range *ret)
{
	const struct runtime_range *hot = x86_functions__at(functions, vaddr);

	if (!hot)
		return 0;
	ret[0] = *hot;
	return 1 + x86_functions__cold(functions, file, hot, &ret[1]);
}

size_t perl_build__loops(const struct elf_file *file, struct runtime_range ret[PERL_LOOPS_MAX])
{
	/* A program that embeds Perl evaluates a text without a loop until the text is compiled:
	 * eval_sv (perl.c) calls Perl_pp_entereval itself. */
	static const char *const runners[] = { "Perl_runops_standard", "Perl_runops_debug",
					       "Perl_pp_entereval" };
	static const char *const callers[] = { "Perl_pp_entertry", "Perl_pp_entereval",
					       "Perl_pp_require" };
	struct x86_functions functions;
	uint64_t vaddr = 0;
	size_t n = 0;

	if (x86_functions__read(file, &functions))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(runners); i++)
		if (find(file, runners[i], &vaddr))
			n += add_function(&functions, file, vaddr, ret + n);
	vaddr = 0;
	for (size_t i = 0; i < ARRAY_SIZE(callers) && !vaddr; i++)
		vaddr = find_docatch(file, callers[i]);
	if (vaddr)
		n += add_function(&functions, file, vaddr, ret + n);
	x86_functions__done(&functions);
	return n;
}
