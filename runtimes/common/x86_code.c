// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/x86_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/cfi.h"
#include "core/elf/cfi_entries.h"
#include "core/target/procfs.h"

#define STUB_BYTES_MIN 7 /* mov $address,%edi; jmp function */
#define CODE_BYTES_MAX (1024 * 1024)

/* --- stubs --- */

int x86_stub__read(const struct elf_file *file, const char *name, struct x86_stub *ret)
{
	struct x86_stub stub;
	uint64_t size;

	if (elf_file__find_symbol(file, name, &stub.vaddr, &size) || size < STUB_BYTES_MIN)
		return -ENOENT;
	stub.size = min_of(size, sizeof(stub.code));
	if (elf_file__read(file, stub.vaddr, stub.code, stub.size))
		return -ENOENT;
	*ret = stub;
	return 0;
}

bool x86_stub__has(const struct x86_stub *stub, size_t i, const char *bytes, size_t n)
{
	return i + n <= stub->size && memcmp(stub->code + i, bytes, n) == 0;
}

uint32_t x86_stub__value(const struct x86_stub *stub, size_t i)
{
	uint32_t value;

	memcpy(&value, stub->code + i, sizeof(value));
	return value;
}

uint64_t x86_stub__relative(const struct x86_stub *stub, size_t i)
{
	return stub->vaddr + i + 4 + (int64_t)(int32_t)x86_stub__value(stub, i);
}

uint64_t x86_stub__loads_edi(const struct x86_stub *stub, size_t i)
{
	if (i + 6 <= stub->size && x86_stub__has(stub, i, "\x8b\x3d", 2)) /* mov at(%rip),%edi */
		return x86_stub__relative(stub, i + 2);
	if (i + 7 <= stub->size && x86_stub__has(stub, i, "\x8b\x3c\x25", 3)) /* mov at,%edi */
		return x86_stub__value(stub, i + 3);
	return 0;
}

/* --- thread-local variables --- */

/* Reads the displacement of a load or lea at byte `i` whose base is %rax. */
static bool distance_at(const struct x86_stub *stub, size_t i, uint8_t opcode, int64_t *ret)
{
	if (i + 3 > stub->size || stub->code[i] != 0x48 || stub->code[i + 1] != opcode)
		return false;
	switch (stub->code[i + 2]) {
	case 0x00: /* (%rax),%rax */
		*ret = 0;
		return true;
	case 0x40: /* 8 bits */
		if (i + 4 > stub->size)
			return false;
		*ret = (int8_t)stub->code[i + 3];
		return true;
	case 0x80: /* 32 bits */
		if (i + 7 > stub->size)
			return false;
		*ret = (int32_t)x86_stub__value(stub, i + 3);
		return true;
	}
	return false;
}

/* Reads the code behind `mov %fs:0,%rax`: a variable at a fixed distance, or a slot. */
static bool tls_after_base(const struct x86_stub *stub, size_t i, struct x86_tls *tls)
{
	tls->kind = X86_TLS_FIXED;
	if (distance_at(stub, i, 0x8d, &tls->offset) || distance_at(stub, i, 0x8b, &tls->offset))
		return true;
	if (x86_stub__has(stub, i, "\x48\x05", 2) && i + 6 <= stub->size) { /* add $offset,%rax */
		tls->offset = (int32_t)x86_stub__value(stub, i + 2);
		return true;
	}
	if (x86_stub__has(stub, i, "\x48\x03\x05", 3) && i + 7 <= stub->size) {
		tls->kind = X86_TLS_SLOT; /* add slot(%rip),%rax */
		tls->slot_vaddr = x86_stub__relative(stub, i + 3);
		return true;
	}
	return false;
}

/* Recognises `mov %fs:offset,%rax`. A positive offset is not a variable's, but the stack
 * protector's word. */
static bool tls_at_offset(const struct x86_stub *stub, size_t i, struct x86_tls *tls)
{
	if (!x86_stub__has(stub, i, "\x64\x48\x8b\x04\x25", 5) || i + 9 > stub->size)
		return false;
	tls->kind = X86_TLS_FIXED;
	tls->offset = (int32_t)x86_stub__value(stub, i + 5);
	if (!tls->offset && !tls_after_base(stub, i + 9, tls))
		return false;
	return tls->kind == X86_TLS_SLOT || tls->offset < 0;
}

/* Reads an instruction that shows the variable's place, before another instruction loads the
 * variable. */
static bool tls_announced(const struct x86_stub *stub, size_t i, struct x86_tls *tls)
{
	if (i + 7 > stub->size)
		return false;
	if (x86_stub__has(stub, i, "\x48\xc7\xc0", 3)) { /* mov $offset,%rax */
		tls->kind = X86_TLS_FIXED;
		tls->offset = (int32_t)x86_stub__value(stub, i + 3);
	} else if (x86_stub__has(stub, i, "\x48\x8b\x05", 3)) { /* mov slot(%rip),%rax */
		tls->kind = X86_TLS_SLOT;
		tls->slot_vaddr = x86_stub__relative(stub, i + 3);
	} else if (x86_stub__has(stub, i, "\x48\x8d\x3d", 3)) { /* lea index(%rip),%rdi */
		tls->kind = X86_TLS_INDEX;
		tls->slot_vaddr = x86_stub__relative(stub, i + 3);
	} else {
		return false;
	}
	return true;
}

int x86_tls__locate(const struct x86_tls *tls, uint32_t pid, uint64_t bias, uint32_t *ret_module,
		    uint64_t *ret_at)
{
	uint64_t slot[2] = {};
	size_t size = tls->kind == X86_TLS_INDEX ? sizeof(slot) : sizeof(slot[0]);

	*ret_module = 0;
	*ret_at = tls->offset;
	if (tls->kind == X86_TLS_FIXED)
		return 0;
	if (!procfs__read_memory(pid, bias + tls->slot_vaddr, slot, size) || !slot[0])
		return -EAGAIN;
	if (tls->kind == X86_TLS_SLOT) {
		*ret_at = slot[0];
		return 0;
	}
	*ret_module = slot[0];
	*ret_at += slot[1];
	return 0;
}

int x86_stub__tls(const struct x86_stub *stub, struct x86_tls *ret)
{
	struct x86_tls tls = {}, at_once = {};
	bool announced = false, called = false;

	for (size_t i = 0; i + 3 <= stub->size; i++) {
		bool loaded = false;

		if (tls_at_offset(stub, i, &at_once)) {
			*ret = at_once;
			return 0;
		}
		if (tls_announced(stub, i, &tls)) {
			announced = true;
			called = false;
		} else if (announced && tls.kind == X86_TLS_INDEX) { /* __tls_get_addr */
			called = called || stub->code[i] == 0xe8 ||
				 x86_stub__has(stub, i, "\xff\x15", 2);
			loaded = called && distance_at(stub, i, 0x8b, &tls.offset);
		} else if (announced) { /* mov %fs:(%rax),%rax */
			loaded = x86_stub__has(stub, i, "\x64\x48\x8b\x00", 4);
		}
		if (loaded) {
			*ret = tls;
			return 0;
		}
	}
	return -ENOENT;
}

static bool is_within(const struct elf_file *file, uint64_t vaddr, bool exec)
{
	for (size_t i = 0; i < file->n_segments; i++)
		if (file->segments[i].exec == exec && vaddr >= file->segments[i].vaddr &&
		    vaddr - file->segments[i].vaddr < file->segments[i].memsz)
			return true;
	return false;
}

bool x86_code__is_data(const struct elf_file *file, uint64_t vaddr)
{
	return is_within(file, vaddr, false);
}

bool x86_code__is_code(const struct elf_file *file, uint64_t vaddr)
{
	return is_within(file, vaddr, true);
}

uint8_t *x86_code__read(const struct elf_file *file, const struct runtime_range *range)
{
	uint64_t size = range->end - range->start;
	uint8_t *code;

	if (range->end <= range->start || size > CODE_BYTES_MAX)
		return NULL;
	code = malloc(size);
	if (code && elf_file__read(file, range->start, code, size)) {
		free(code);
		code = NULL;
	}
	return code;
}

/* Returns true if an instruction that accesses a field of 1 to 16 bytes is at byte @i. Opcodes have
 * one or two bytes. */
static bool reaches_field(const uint8_t *code, size_t i, enum x86_use use)
{
	static const uint8_t one[] = { 0x03, 0x0b, 0x2b, 0x39, 0x3b, 0x63, 0x80, 0x81, 0x83,
				       0x88, 0x89, 0x8a, 0x8b, 0x8d, 0xc6, 0xc7, 0xff };
	static const uint8_t two[] = { 0x10, 0x11, 0x12, 0x13, 0x16, 0x17, 0x28, 0x29,
				       0x6e, 0x6f, 0x7e, 0x7f, 0xb6, 0xb7, 0xd6 };

	if (use == X86_USE_ADDRESS)
		return code[i] == 0x8d;
	return memchr(one, code[i], sizeof(one)) ||
	       (i && code[i - 1] == 0x0f && memchr(two, code[i], sizeof(two)));
}

/* Returns true if the instruction whose opcode is at byte @i accesses @offset from a register, or
 * from @base. */
static bool uses_at(const uint8_t *code, size_t size, uint64_t vaddr, size_t i, uint64_t base,
		    uint32_t offset)
{
	uint8_t mod = code[i + 1] & 0xc0, rm = code[i + 1] & 7;
	size_t at = i + 2 + (mod == 0x80 && rm == 4);
	int32_t value;

	if (at + sizeof(value) > size)
		return false;
	memcpy(&value, code + at, sizeof(value));
	if (mod == 0x80)
		return (uint32_t)value == offset;
	return base && !mod && rm == 5 && vaddr + at + 4 + (int64_t)value == base + offset;
}

bool x86_code__uses(const struct elf_file *file, const char *function, uint64_t base,
		    uint32_t offset, enum x86_use use)
{
	struct runtime_range range;
	bool found = false;
	uint64_t size;
	uint8_t *code;

	if (offset < 128 || elf_file__find_symbol(file, function, &range.start, &size))
		return false;
	range.end = range.start + size;
	code = x86_code__read(file, &range);
	for (size_t i = 0; code && !found && i + 6 <= size; i++)
		found = reaches_field(code, i, use) &&
			uses_at(code, size, range.start, i, base, offset);
	free(code);
	return found;
}

/* --- functions --- */

static int functions__add(void *ctx, uint64_t start, uint64_t end)
{
	struct x86_functions *functions = ctx;

	if (functions->n == functions->cap) {
		size_t cap = functions->cap ? 2 * functions->cap : 1024;
		void *list = reallocarray(functions->list, cap, sizeof(*functions->list));

		if (!list)
			return -ENOMEM;
		functions->list = list;
		functions->cap = cap;
	}
	functions->list[functions->n++] = (struct runtime_range) { start, end };
	return 0;
}

int x86_functions__read(const struct elf_file *file, struct x86_functions *ret)
{
	struct x86_functions functions = {};
	int rc = cfi_entries__functions(file, functions__add, &functions, NULL);

	if (rc)
		x86_functions__done(&functions);
	else
		*ret = functions;
	return rc;
}

void x86_functions__done(struct x86_functions *functions)
{
	free(functions->list);
	*functions = (struct x86_functions) {};
}

/* Returns the last function that starts at or below @vaddr. */
static const struct runtime_range *last_from(const struct x86_functions *functions, uint64_t vaddr)
{
	size_t n =
		sorted__count_up_to(functions->list, functions->n, sizeof(*functions->list), vaddr);

	return n ? &functions->list[n - 1] : NULL;
}

const struct runtime_range *x86_functions__at(const struct x86_functions *functions, uint64_t vaddr)
{
	const struct runtime_range *range = last_from(functions, vaddr);

	return range && range->start == vaddr ? range : NULL;
}

/* --- cold parts --- */

#define CANDIDATES_MAX 64

/* The search for a function's cold part. */
struct cold {
	uint32_t *hits; /* owned; by function: jumps into it out of the hot part */
	struct {
		struct runtime_range range;
		uint32_t hits;
		bool entry; /* begins as functions do */
	} found[CANDIDATES_MAX];
	size_t n_found;
	struct unwind_rule rule;
	size_t next; /* the next candidate whose first rule must be read */
};

static void cold__count_jumps(struct cold *cold, const struct x86_functions *functions,
			      const struct runtime_range *hot, const uint8_t *code)
{
	size_t size = hot->end - hot->start;

	for (size_t i = 0; i + 6 <= size; i++) {
		size_t at = code[i] == 0xe9 ? i + 1 : i + 2; /* jmp, or jcc of two bytes */
		const struct runtime_range *range;
		int32_t relative;
		uint64_t target;

		if (code[i] != 0xe9 && (code[i] != 0x0f || (code[i + 1] & 0xf0) != 0x80))
			continue;
		memcpy(&relative, code + at, sizeof(relative));
		target = hot->start + at + 4 + (int64_t)relative;
		range = last_from(functions, target);
		if (range && target < range->end)
			cold->hits[range - functions->list]++;
	}
}

static void cold__find_candidates(struct cold *cold, const struct x86_functions *functions,
				  const struct runtime_range *hot, const GElf_Shdr *plt)
{
	for (size_t i = 0; i < functions->n && cold->n_found < CANDIDATES_MAX; i++) {
		const struct runtime_range *range = &functions->list[i];

		if (!cold->hits[i] || (range->start < hot->end && range->end > hot->start) ||
		    range->start - plt->sh_addr < plt->sh_size)
			continue;
		cold->found[cold->n_found].range = *range;
		cold->found[cold->n_found].entry = true;
		cold->found[cold->n_found++].hits = cold->hits[i];
	}
}

static bool is_entry(const struct unwind_rule *rule)
{
	return rule->kind == UNWIND_REG && rule->reg == UNWIND_REG_RSP && rule->cfa_off == 8;
}

/* Candidates come in the order of their start, and so do rows. */
static int cold__on_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct cold *cold = ctx;

	while (cold->next < cold->n_found && cold->found[cold->next].range.start < vaddr)
		cold->found[cold->next++].entry = is_entry(&cold->rule);
	cold->rule = *rule;
	return 0;
}

/* The cold part has a frame description of its own, which starts with the function's frame already
 * set up. If the function jumps into several such parts, the one with the most jumps is used. */
bool x86_functions__cold(const struct x86_functions *functions, const struct elf_file *file,
			 const struct runtime_range *hot, struct runtime_range *ret)
{
	struct cold *cold = calloc(1, sizeof(*cold));
	uint8_t *code = x86_code__read(file, hot);
	size_t best = CANDIDATES_MAX;
	GElf_Shdr plt = {};

	if (!cold || !code)
		goto out;
	cold->hits = calloc(functions->n + 1, sizeof(*cold->hits));
	if (!cold->hits)
		goto out;
	elf_file__section(file, ".plt", &plt); /* its description starts like that of a cold part */
	cold__count_jumps(cold, functions, hot, code);
	cold__find_candidates(cold, functions, hot, &plt);
	if (!cold->n_found || cfi__read(file, cold__on_row, cold, NULL))
		goto out;
	for (size_t i = 0; i < cold->n_found; i++)
		if (!cold->found[i].entry &&
		    (best == CANDIDATES_MAX || cold->found[i].hits > cold->found[best].hits))
			best = i;
	if (best != CANDIDATES_MAX)
		*ret = cold->found[best].range;
out:
	if (cold)
		free(cold->hits);
	free(cold);
	free(code);
	return best != CANDIDATES_MAX;
}
