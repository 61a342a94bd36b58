// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_build.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/elf/cfi.h"
#include "runtimes/common/x86_code.h"

static bool find(const struct elf_file *file, const char *name, uint64_t *ret_vaddr)
{
	return elf_file__find_symbol(file, name, ret_vaddr, NULL) == 0;
}

/* The version is in the header that PHP sends (main/SAPI.h). */
int php_build__version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES])
{
	static const char before[] = "X-Powered-By: PHP/";
	const Elf_Data *data = elf_file__section(file, ".rodata", NULL);
	const char *text, *end;
	size_t n = 0;

	text = data ? memmem(data->d_buf, data->d_size, before, strlen(before)) : NULL;
	if (!text)
		return -ENOENT;
	end = (const char *)data->d_buf + data->d_size;
	text += strlen(before);
	while (text + n < end && n < RUNTIME_VERSION_BYTES - 1 &&
	       (isalnum((unsigned char)text[n]) || strchr(".-+~", text[n])) && text[n])
		n++;
	snprintf(ret, RUNTIME_VERSION_BYTES, "%.*s", (int)n, text);
	return n ? 0 : -ENOENT;
}

/* --- run loop --- */

static size_t find_loops(const struct elf_file *file, struct runtime_range ret[PHP_LOOPS_MAX])
{
	struct x86_functions functions;
	const struct runtime_range *hot = NULL;
	uint64_t vaddr;
	size_t n = 0;

	if (x86_functions__read(file, &functions))
		return 0;
	if (find(file, "execute_ex", &vaddr))
		hot = x86_functions__at(&functions, vaddr);
	if (hot) {
		ret[n++] = *hot;
		n += x86_functions__cold(&functions, file, hot, &ret[n]);
	}
	x86_functions__done(&functions);
	return n;
}

struct search { /* for the rule that holds at an address */
	uint64_t vaddr;
	struct unwind_rule *rule;
};

static int search__on_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct search *search = ctx;

	if (vaddr > search->vaddr)
		return 1;
	*search->rule = *rule;
	return 0;
}

/* Returns the address after the only `call *(%reg)`; 0: there is none, or several. */
static uint64_t find_call(const uint8_t *code, const struct runtime_range *loop)
{
	uint64_t found = 0;

	for (uint64_t i = 0; i + 2 <= loop->end - loop->start; i++) {
		uint8_t reg = code[i + 1] & 7;

		if (code[i] != 0xff || (code[i + 1] & 0xf8) != 0x10 || reg == 4 || reg == 5)
			continue;
		if (found)
			return 0;
		found = loop->start + i + 2;
	}
	return found;
}

/* Finds the rule at the place where execute_ex jumps to a script's first operation: `jmp *(%r15)`.
 * In builds by clang, operations are functions that execute_ex calls. Then *@ret_returns is the
 * address to which they return. */
static void find_left(const struct elf_file *file, const struct runtime_range *loop,
		      struct unwind_rule *ret, uint64_t *ret_returns)
{
	static const uint8_t jump[] = { 0x41, 0xff, 0x27 };
	uint8_t *code = x86_code__read(file, loop);
	const uint8_t *at = code ? memmem(code, loop->end - loop->start, jump, sizeof(jump)) : NULL;
	struct search search = { .rule = ret };

	if (at) {
		search.vaddr = loop->start + (at - code);
		if (cfi__read(file, search__on_row, &search, NULL) < 0 || ret->kind != UNWIND_REG)
			*ret = (struct unwind_rule) {};
	} else if (code) {
		*ret_returns = find_call(code, loop);
	}
	free(code);
}

/* --- interpreter --- */

/* Returns the address of tsrm_get_ls_cache()'s thread key, or 0 if its code has another form. */
static uint64_t find_key(const struct elf_file *file)
{
	struct x86_stub stub;
	uint64_t vaddr;

	if (x86_stub__read(file, "tsrm_get_ls_cache", &stub))
		return 0;
	for (size_t i = 0; i < stub.size; i++) {
		vaddr = x86_stub__loads_edi(&stub, i);
		if (vaddr && x86_code__is_data(file, vaddr))
			return vaddr;
	}
	return 0;
}

const char *php_build__read(const struct elf_file *file, struct php_build *ret)
{
	struct php_build build = {};

	if (find(file, "executor_globals_offset", &build.globals_vaddr)) {
		build.key_vaddr = find_key(file);
		if (!build.key_vaddr)
			return "built with thread safety (ZTS), and the state of its threads "
			       "cannot be found";
	} else if (!find(file, "executor_globals", &build.globals_vaddr)) {
		return "its variables were stripped";
	}
	if (!find(file, "zend_flf_functions", &build.frameless_vaddr) ||
	    !find(file, "zend_flf_handlers", &build.handlers_vaddr))
		build.frameless_vaddr = build.handlers_vaddr = 0;
	build.n_loops = find_loops(file, build.loops);
	if (build.n_loops)
		find_left(file, &build.loops[0], &build.left, &build.returns_vaddr);
	*ret = build;
	return NULL;
}
