// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/x86_code.h"

static bool defines(const struct elf_file *file, const char *name)
{
	uint64_t vaddr;

	return elf_file__find_symbol(file, name, &vaddr, NULL) == 0;
}

bool ruby_build__is_ruby(const struct elf_file *file)
{
	return defines(file, "ruby_version") && defines(file, "ruby_init");
}

const char *ruby_build__other(const struct elf_file *file)
{
	/* TruffleRuby needs libtruffleposix.so (src/main/c/truffleposix). Its own librubyvm.so
	 * is an image of Java code, and may also run in a JVM. */
	return defines(file, "truffleposix_stat") ? "TruffleRuby" : NULL;
}

/* --- version --- */

int ruby_build__version(const struct elf_file *file, struct ruby_number *ret)
{
	struct ruby_number number;
	uint64_t vaddr, size;
	char text[16];
	int n = -1;

	if (elf_file__find_symbol(file, "ruby_version", &vaddr, &size) || size > sizeof(text) ||
	    elf_file__read(file, vaddr, text, size) || !memchr(text, 0, size) ||
	    sscanf(text, "%2u.%2u.%3u%n", &number.major, &number.minor, &number.teeny, &n) != 3 ||
	    text[n])
		return -ENOENT;
	*ret = number;
	return 0;
}

/* --- state --- */

/* Finds native_thread_key of 2.7 (thread_pthread.c), which is static: `mov key(%rip),%edi`
 * before a call of pthread_getspecific. */
static int find_key(const struct elf_file *file, struct ruby_state *ret)
{
	struct ruby_state state = {};
	struct x86_stub stub;

	if (elf_file__find_symbol(file, "native_thread_key", &state.key_vaddr, NULL) == 0) {
		*ret = state;
		return 0;
	}
	if (x86_stub__read(file, "ruby_native_thread_p", &stub))
		return -ENOENT;
	for (size_t i = 0; i + 7 <= stub.size; i++) {
		uint64_t vaddr = 0;

		if (x86_stub__has(&stub, i, "\x8b\x3d", 2))
			vaddr = x86_stub__relative(&stub, i + 2);
		if (x86_stub__has(&stub, i, "\x8b\x3c\x25", 3)) /* mov key,%edi */
			vaddr = x86_stub__value(&stub, i + 3);
		if (!vaddr || vaddr % sizeof(int) || !x86_code__is_data(file, vaddr))
			continue;
		state.key_vaddr = vaddr;
		*ret = state;
		return 0;
	}
	return -ENOENT;
}

int ruby_build__state(const struct elf_file *file, const struct ruby_number *number,
		      struct ruby_state *ret)
{
	/* Functions that read ruby_current_ec before anything else. The first is hidden (vm.c,
	 * from 3.3 on), but the same for all ways of inlining. */
	static const char *const readers[] = { "rb_current_ec_noinline", "rb_thread_current" };
	struct x86_stub stub;
	struct x86_tls tls;

	if (number->major < 3)
		return find_key(file, ret);
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++) {
		if (x86_stub__read(file, readers[i], &stub) || x86_stub__tls(&stub, &tls) ||
		    (tls.kind != X86_TLS_FIXED && !x86_code__is_data(file, tls.slot_vaddr)))
			continue;
		*ret = (struct ruby_state) { .tls = tls };
		return 0;
	}
	return -ENOENT;
}

/* --- symbols --- */

/* symbol.c: rb_symbols_t. Its initial value is {tNEXT_ID-1}: an ID slightly above that of the
 * last operator, 168 to 170. */
struct symbols {
	uint64_t last_id;  /* 32 bits and padding */
	uint64_t str, ids; /* up to 3.4 a further table follows */
};
#define LAST_ID_MIN 171
#define LAST_ID_MAX 1000

static bool is_symbols(const struct elf_file *file, uint64_t vaddr)
{
	struct symbols symbols;

	return vaddr % 8 == 0 && x86_code__is_data(file, vaddr) &&
	       elf_file__read(file, vaddr, &symbols, sizeof(symbols)) == 0 &&
	       symbols.last_id >= LAST_ID_MIN && symbols.last_id <= LAST_ID_MAX && !symbols.str &&
	       !symbols.ids;
}

int ruby_build__symbols(const struct elf_file *file, uint64_t *ret_vaddr)
{
	uint64_t found = 0;
	struct x86_stub stub;

	if (elf_file__find_symbol(file, "ruby_global_symbols", ret_vaddr, NULL) == 0)
		return 0;
	/* The function begins with ruby_global_symbols.str->num_entries. Unoptimized code loads
	 * the address first. */
	if (x86_stub__read(file, "rb_sym_all_symbols", &stub))
		return -ENOENT;
	for (size_t i = 0; i + 4 <= stub.size; i++) {
		uint64_t relative = x86_stub__relative(&stub, i);
		uint64_t absolute = x86_stub__value(&stub, i);
		uint64_t at[] = { relative, relative - offsetof(struct symbols, str), absolute,
				  absolute - offsetof(struct symbols, str) };

		for (size_t k = 0; k < ARRAY_SIZE(at); k++) {
			if (at[k] == found || !is_symbols(file, at[k]))
				continue;
			if (found)
				return -ENOENT;
			found = at[k];
		}
	}
	if (!found)
		return -ENOENT;
	*ret_vaddr = found;
	return 0;
}

/* --- loops --- */

#define CORE_BYTES_MIN 4096
#define CORE_BYTES_MAX (256 * 1024)
#define CORE_JUMPS_MIN 64 /* it has about 130, after most of its instructions */
#define CALLEES_MAX    32

struct callees {
	const struct runtime_range *list[CALLEES_MAX]; /* borrowed */
	size_t n;
};

/* Finds the functions of at least `size_min` bytes, outside of the range, that the range calls
 * or jumps to. */
static void find_callees(const struct elf_file *file, const struct x86_functions *functions,
			 const struct runtime_range *range, uint64_t size_min, struct callees *ret)
{
	uint8_t *code = x86_code__read(file, range);
	size_t size = code ? range->end - range->start : 0;

	ret->n = 0;
	for (size_t i = 0; i + 5 <= size && ret->n < CALLEES_MAX; i++) {
		const struct runtime_range *callee;
		int32_t relative;
		size_t k = 0;

		if (code[i] != 0xe8 && code[i] != 0xe9)
			continue;
		memcpy(&relative, code + i + 1, sizeof(relative));
		callee = x86_functions__at(functions, range->start + i + 5 + (int64_t)relative);
		if (!callee || callee == range || callee->end - callee->start < size_min)
			continue;
		while (k < ret->n && ret->list[k] != callee)
			k++;
		ret->list[k] = callee;
		ret->n += k == ret->n;
	}
	free(code);
}

/* Returns true if the range may be vm_exec_core, which ends most of its instructions with an
 * indirect jump to the next one. */
static bool is_core(const struct elf_file *file, const struct runtime_range *range)
{
	uint64_t size = range->end - range->start;
	size_t n = 0;
	uint8_t *code;

	if (size < CORE_BYTES_MIN || size > CORE_BYTES_MAX)
		return false;
	code = x86_code__read(file, range);
	for (size_t i = 0; code && i + 2 <= size; i++)
		n += code[i] == 0xff && (code[i + 1] & 0x38) == 0x20;
	free(code);
	return n >= CORE_JUMPS_MIN;
}

/* Finds vm_exec_core among the functions that rb_vm_exec calls. NULL: it is a part of
 * rb_vm_exec, or not found. */
static const struct runtime_range *find_core(const struct elf_file *file,
					     const struct x86_functions *functions,
					     const struct runtime_range *exec)
{
	const struct runtime_range *core = NULL;
	struct callees callees;
	uint64_t vaddr;

	if (is_core(file, exec))
		return NULL;
	if (elf_file__find_symbol(file, "vm_exec_core", &vaddr, NULL) == 0)
		return x86_functions__at(functions, vaddr);
	find_callees(file, functions, exec, CORE_BYTES_MIN, &callees);
	for (size_t i = 0; i < callees.n; i++)
		if (is_core(file, callees.list[i]) &&
		    (!core ||
		     callees.list[i]->end - callees.list[i]->start > core->end - core->start))
			core = callees.list[i];
	return core;
}

/* Finds rb_vm_exec by its symbol. From 3.3 on the symbol is hidden, but rb_iseq_eval (vm.c)
 * returns the result of rb_vm_exec. */
static const struct runtime_range *find_exec(const struct elf_file *file,
					     const struct x86_functions *functions)
{
	const struct runtime_range *caller, *exec = NULL;
	struct callees callees;
	uint64_t vaddr;

	if (elf_file__find_symbol(file, "rb_vm_exec", &vaddr, NULL) == 0)
		return x86_functions__at(functions, vaddr);
	if (elf_file__find_symbol(file, "rb_iseq_eval", &vaddr, NULL))
		return NULL;
	caller = x86_functions__at(functions, vaddr);
	if (!caller)
		return NULL;
	find_callees(file, functions, caller, 0, &callees);
	for (size_t i = 0; i < callees.n; i++) {
		if (!is_core(file, callees.list[i]) && !find_core(file, functions, callees.list[i]))
			continue;
		if (exec)
			return NULL;
		exec = callees.list[i];
	}
	return exec;
}

/* Finds vm_exec_loop of 3.3 and later, if it is not inlined: rb_vm_exec calls it, and it calls
 * vm_exec_core. */
static const struct runtime_range *find_between(const struct elf_file *file,
						const struct x86_functions *functions,
						const struct runtime_range *exec,
						const struct runtime_range *core)
{
	struct callees callees, further;

	find_callees(file, functions, exec, 0, &callees);
	for (size_t i = 0; i < callees.n; i++) {
		if (callees.list[i] == core)
			continue;
		find_callees(file, functions, callees.list[i], CORE_BYTES_MIN, &further);
		for (size_t k = 0; k < further.n; k++)
			if (further.list[k] == core)
				return callees.list[i];
	}
	return NULL;
}

size_t ruby_build__loops(const struct elf_file *file, struct runtime_range ret[RUBY_LOOPS_MAX])
{
	const struct runtime_range *hot[3] = { NULL };
	struct x86_functions functions;
	size_t n = 0;

	if (x86_functions__read(file, &functions))
		return 0;
	hot[0] = find_exec(file, &functions);
	if (hot[0])
		hot[1] = find_core(file, &functions, hot[0]);
	if (hot[1])
		hot[2] = find_between(file, &functions, hot[0], hot[1]);
	for (size_t i = 0; i < ARRAY_SIZE(hot) && hot[i]; i++) {
		ret[n++] = *hot[i];
		n += x86_functions__cold(&functions, file, hot[i], &ret[n]);
	}
	x86_functions__done(&functions);
	return n;
}

/* --- virtual machine --- */

int ruby_build__vm(const struct elf_file *file, uint64_t *ret_vaddr)
{
	struct x86_stub stub;
	uint64_t vaddr;

	if (elf_file__find_symbol(file, "ruby_current_vm_ptr", ret_vaddr, NULL) == 0)
		return 0;
	/* The function begins with ruby_current_vm_ptr->objspace: `mov` or `lea`, 64 bits,
	 * relative to rip. */
	if (x86_stub__read(file, "rb_during_gc", &stub))
		return -ENOENT;
	for (size_t i = 0; i + 7 <= stub.size; i++) {
		if (!(x86_stub__has(&stub, i, "\x48\x8b", 2) ||
		      x86_stub__has(&stub, i, "\x48\x8d", 2)) ||
		    (stub.code[i + 2] & 0xc7) != 0x05)
			continue;
		vaddr = x86_stub__relative(&stub, i + 3);
		if (vaddr % 8 || !x86_code__is_data(file, vaddr))
			continue;
		*ret_vaddr = vaddr;
		return 0;
	}
	return -ENOENT;
}

int ruby_build__zjit(const struct elf_file *file, uint64_t *ret_vaddr)
{
	return elf_file__find_symbol(file, "rb_zjit_entry", ret_vaddr, NULL) ? -ENOENT : 0;
}
