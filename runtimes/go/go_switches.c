// SPDX-License-Identifier: GPL-2.0-or-later
/* All names and code here are of src/runtime/asm_amd64.s, sys_linux_amd64.s and time_linux_amd64.s
 * of Go 1.16 to 1.24. The search matches whole instructions, in functions of a few hundred bytes
 * that contain each of them once or twice. */
#include "runtimes/go/go_switches.h"

#include <string.h>

#include "bpf/go.h"
#include "core/base/quota.h"
#include "core/base/util.h"

#define CODE_MAX 4096

/* Offsets of struct g and gobuf (src/runtime/runtime2.go), which assembly of programs relies on:
 * the same since Go 1.5. In words. */
#define G_M	   (GO_G_M / 8) /* g.m */
#define G_SCHED_SP 7		/* g.sched.sp; g.sched.pc follows */
#define M_G0	   0		/* m.g0 */

struct code {
	uint8_t bytes[CODE_MAX];
	size_t n;
	uint64_t start;
};

static bool read_code(const struct elf_file *file, const struct go_function *function,
		      struct code *ret)
{
	ret->start = function->start;
	ret->n = min_of(function->end - function->start, (uint64_t)CODE_MAX);
	return !elf_file__read(file, ret->start, ret->bytes, ret->n);
}

bool go_function__is(const struct go_function *function, const char *name)
{
	size_t len = strlen(name);

	return !strncmp(function->name, name, len) &&
	       (!function->name[len] || !strcmp(function->name + len, ".abi0"));
}

/* Behind the first instruction from `from` on that has these bytes; 0: there is none. */
static size_t after(const struct code *code, size_t from, const char *bytes, size_t n)
{
	const uint8_t *at =
		from < code->n ? memmem(code->bytes + from, code->n - from, bytes, n) : NULL;

	return at ? at - code->bytes + n : 0;
}
#define AFTER(code, from, bytes) after(code, from, bytes, sizeof(bytes) - 1)

/* Returns the offset behind the next `mov 0x38(reg),%rsp` (g.sched.sp), or behind a `mov %rbx,%rsp`
 * whose %rbx was loaded from there. */
static size_t after_switch(const struct code *code, size_t from)
{
	for (size_t i = from; i + 4 <= code->n; i++) {
		const uint8_t *at = code->bytes + i;

		if ((at[0] == 0x48 || at[0] == 0x49) && at[1] == 0x8b && (at[2] & 0xf8) == 0x60 &&
		    at[3] == 0x38)
			return i + 4;
		if (at[0] == 0x48 && at[1] == 0x89 && at[2] == 0xdc)
			return i + 3;
	}
	return 0;
}

static int32_t number_at(const struct code *code, size_t at)
{
	int32_t number = 0;

	if (at + sizeof(number) <= code->n)
		memcpy(&number, code->bytes + at, sizeof(number));
	return number;
}

static bool find_places(const struct code *code, struct go_places *ret)
{
	size_t tls = AFTER(code, 0, "\x64\x48\x8b\x04\x25"); /* mov %fs:N,%rax */
	size_t register_ = AFTER(code, 0, "\x48\xc7\xc1");   /* mov $N,%rcx: may be anywhere */
	size_t curg = AFTER(code, 0, "\x48\x3b\x83");	     /* cmp N(%rbx),%rax */

	if (!tls)
		tls = register_;
	if (!tls || !curg)
		return false;
	ret->g_at = number_at(code, tls);
	ret->curg_at = number_at(code, curg);
	return ret->g_at < 0 && ret->g_at % 8 == 0 && ret->curg_at % 8 == 0 &&
	       ret->curg_at < 8 * 256;
}

/* casgstatus changes the status of a goroutine by its only `lock cmpxchg %reg,N(%reg)`. Since
 * Go 1.4 the status is followed in struct g (src/runtime/runtime2.go) by the 32 bits of a lock, and
 * by goid. */
static uint32_t find_goid(const struct code *code)
{
	uint32_t found = 0;

	for (size_t at = 0; (at = AFTER(code, at, "\xf0\x0f\xb1"));) {
		uint8_t mode = at < code->n ? code->bytes[at] : 0;
		int32_t status = 0;

		if ((mode & 0xc7) == 0x84) /* with an index */
			continue;
		if ((mode & 0xc0) == 0x80)
			status = number_at(code, at + 1);
		if (found || status <= 8 * G_SCHED_SP || status % 8 || status >= 8 * 256)
			return 0;
		found = status + 8;
	}
	return found;
}

struct go_places go_places__of(const struct elf_file *file, const struct go_table *table)
{
	struct go_places places = {};
	struct go_function function;
	struct code code;

	for (size_t i = 0;
	     !(places.known && places.goid_at) && i < table->n_functions && !quota__look_at(i);
	     i++) {
		if (!go_table__function(table, i, &function))
			continue;
		if (go_function__is(&function, "runtime.systemstack") &&
		    read_code(file, &function, &code))
			places.known = find_places(&code, &places);
		else if (go_function__is(&function, "runtime.casgstatus") &&
			 read_code(file, &function, &code))
			places.goid_at = find_goid(&code);
	}
	return places;
}

static uint32_t stack_words(const struct go_table *table, const struct go_function *function,
			    size_t at)
{
	int32_t bytes = go_values__at(table, function, function->sp, function->start + at);

	return bytes >= 0 && bytes < 8 * 200 ? bytes / 8 + 1 : 1;
}

static struct unwind_rule to_stack(const struct go_places *places, uint32_t hop, uint32_t last,
				   uint32_t words)
{
	return (struct unwind_rule) { .kind = places->known ? UNWIND_SWITCH : UNWIND_UNSUPPORTED,
				      .reg = 3,
				      .cfa_off = places->g_at,
				      .cfa_add = G_M | hop << 8 | last << 16 | words << 24,
				      .fp_words = UNWIND_WORDS_LOST,
				      .aux_words = UNWIND_WORDS_LOST };
}

/* One part of the function, up to its end if `end` is 0. */
static size_t one(const struct code *code, size_t start, size_t end, struct unwind_rule rule,
		  struct go_switch *ret)
{
	if (!start)
		return 0;
	*ret = (struct go_switch) { .start = code->start + start,
				    .end = code->start + (end ? end : code->n),
				    .rule = rule };
	return 1;
}

/* Runs a function on g0's stack; the goroutine's pointer is in its sched, as of in here. */
static size_t of_systemstack(const struct code *code, const struct go_table *table,
			     const struct go_places *places, const struct go_function *function,
			     struct go_switch *ret)
{
	size_t start = after_switch(code, 0);

	return one(code, start, after_switch(code, start),
		   to_stack(places, places->curg_at / 8, G_SCHED_SP,
			    stack_words(table, function, start)),
		   ret);
}

/* These functions never return: the goroutine continues at the place in its sched, or no goroutine
 * continues. */
static size_t of_leaving(const struct code *code, const struct go_table *table,
			 const struct go_places *places, const struct go_function *function,
			 struct go_switch *ret)
{
	struct unwind_rule rule = to_stack(places, places->curg_at / 8, G_SCHED_SP, 0);

	(void)table, (void)function;
	rule.flags = UNWIND_PC_FOLLOWS;
	return one(code, after_switch(code, 0), 0, rule, ret);
}

/* Behind the next `sub $N,%rsp`; 0: there is none. */
static size_t after_room(const struct code *code, size_t from)
{
	size_t at = AFTER(code, from, "\x48\x83\xec");

	return at ? at + 1 : 0;
}

/* asmcgocall calls C. The old stack pointer is in the frame, since C may call Go again, which
 * changes g.sched. The second call is for callers that were on g0's stack already. The old stack
 * pointer is in rdx until it is stored in the frame. */
static size_t of_asmcgocall(const struct code *code, const struct go_table *table,
			    const struct go_places *places, const struct go_function *function,
			    struct go_switch *ret)
{
	size_t start = after_switch(code, 0), goroutine, saved, back, n;
	uint32_t words = stack_words(table, function, start);
	struct unwind_rule rule = { .kind = UNWIND_RESUME,
				    .cfa_add = words << 24,
				    .fp_words = UNWIND_WORDS_LOST,
				    .aux_words = UNWIND_WORDS_LOST };

	struct unwind_rule in_rdx = { .kind = AFTER(code, 0, "\x48\x89\xe2") /* mov %rsp,%rdx */
						      ? UNWIND_REG
						      : UNWIND_UNSUPPORTED,
				      .reg = UNWIND_REG_RDX,
				      .cfa_off = 8 * (int)words,
				      .fp_words = UNWIND_WORDS_LOST,
				      .aux_words = UNWIND_WORDS_LOST };

	goroutine = start ? AFTER(code, start, "\x48\x89\x7c\x24") : 0; /* mov %rdi,N(%rsp) */
	saved = goroutine ? AFTER(code, goroutine, "\x48\x29\xd7") : 0; /* sub %rdx,%rdi */
	if (!saved || saved + 8 > code->n)
		return 0;
	rule.cfa_off = code->bytes[goroutine];
	saved += code->bytes[saved + 2] == 0x3c ? 4 : 5; /* mov %rdi,(%rsp) or N(%rsp) */
	back = AFTER(code, saved, "\x48\x89\xf4");	 /* mov %rsi,%rsp */
	n = one(code, start, saved, to_stack(places, places->curg_at / 8, G_SCHED_SP, words), ret);
	n += one(code, saved, back, rule, ret + n);
	saved = back ? AFTER(code, back, "\x48\x89\x14\x24") : 0; /* mov %rdx,(%rsp) */
	if (back && !saved)
		saved = AFTER(code, back, "\x48\x89\x54\x24"); /* N(%rsp); N is passed, too */
	if (!saved)
		return n;
	n += one(code, after_room(code, back), saved, in_rdx, ret + n);
	return n + one(code, saved, AFTER(code, saved, "\x48\x89\xf4"), rule, ret + n);
}

/* Behind the last instruction in front of @end that stores the stack pointer to g.sched.sp. */
static size_t after_publishing(const struct code *code, size_t end)
{
	size_t found = 0;

	for (size_t at = 0; (at = AFTER(code, at, "\x48\x89\x66\x38")) && at <= end;)
		found = at; /* mov %rsp,0x38(%rsi) */
	return found;
}

/* cgocallback continues on the goroutine's stack; its own frame and its callers are on g0's stack.
 * g0.sched.sp points to that frame, and the frame's first word has the pointer of the outer
 * callback. The pointer is stored before the switch and restored after the way back. In between, on
 * g0's stack, it is the pointer of the frame that was left. */
static size_t of_cgocallback(const struct code *code, const struct go_table *table,
			     const struct go_places *places, const struct go_function *function,
			     struct go_switch *ret)
{
	size_t start = AFTER(code, 0, "\x48\x89\xfc"); /* mov %rdi,%rsp */
	size_t back = after_switch(code, start), published = after_publishing(code, start);
	size_t restored = back ? AFTER(code, back, "\x48\x89\x46\x38") : 0; /* %rax,0x38(%rsi) */
	uint32_t words = stack_words(table, function, start);
	struct unwind_rule rule = to_stack(places, M_G0, G_SCHED_SP, words);
	struct unwind_rule own = { .kind = UNWIND_REG,
				   .reg = UNWIND_REG_RSP,
				   .flags = UNWIND_CHAINED,
				   .cfa_off = 8 * (int)words,
				   .fp_words = UNWIND_WORDS_LOST,
				   .aux_words = UNWIND_WORDS_LOST };
	size_t n = 0;

	if (!start)
		return 0;
	if (!back || !published || !restored)
		rule.kind = own.kind = UNWIND_UNSUPPORTED;
	rule.flags = UNWIND_CHAINED;
	n += one(code, published, start, own, ret + n);
	n += one(code, start, back, rule, ret + n);
	return n + one(code, back, restored, own, ret + n);
}

/* Calls the vDSO on g0's stack; the caller's stack pointer is in m.vdsoSP. */
static size_t of_vdso(const struct code *code, const struct go_table *table,
		      const struct go_places *places, const struct go_function *function,
		      struct go_switch *ret)
{
	size_t start = after_switch(code, 0), stored = AFTER(code, 0, "\x48\x89\x93");
	size_t end = AFTER(code, start, "\x4c\x89\xe4"); /* mov %r12,%rsp */
	struct unwind_rule rule = to_stack(places, 0, 0, 0);
	int32_t at = stored ? number_at(code, stored) : 0; /* mov %rdx,N(%rbx) */

	(void)table, (void)function;
	if (!end || stored > start || at <= 0 || at % 8 || at >= 8 * 256)
		return 0;
	rule.reg = 2;
	rule.cfa_add = G_M | at / 8 << 8;
	return one(code, start, end, rule, ret);
}

size_t go_switches__of(const struct elf_file *file, const struct go_table *table,
		       const struct go_places *places, const struct go_function *function,
		       struct go_switch ret[GO_SWITCHES_MAX])
{
	static const struct {
		const char *name;
		size_t (*find)(const struct code *code, const struct go_table *table,
			       const struct go_places *places, const struct go_function *function,
			       struct go_switch *ret);
	} kinds[] = {
		{ "runtime.systemstack", of_systemstack },
		{ "runtime.mcall", of_leaving },
		{ "runtime.morestack", of_leaving },
		{ "runtime.asmcgocall", of_asmcgocall },
		{ "runtime.cgocallback", of_cgocallback },
		{ "runtime.nanotime1", of_vdso },
		{ "runtime.walltime", of_vdso },
		{ "runtime.walltime1", of_vdso },
		{ "time.now", of_vdso },
	};
	struct code code;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (go_function__is(function, kinds[i].name))
			return read_code(file, function, &code)
				       ? kinds[i].find(&code, table, places, function, ret)
				       : 0;
	return 0;
}
