/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_RUBY_SYNTHETIC_H
#define BRAID_TESTS_UNIT_RUBY_SYNTHETIC_H

/* A process that does not exist, with a CRuby of any version: its thread, fibers, control frames
 * and objects. Numbers that are not offsets of a version are those of vm_core.h, method.h,
 * internal/imemo.h, st.h, symbol.h, rarray.h and rstring.h at 2.7 to 3.4. Include this file last.
 */

#include "tests/unit/ruby_host.h"

#define BROKEN	  SAMPLE_RUNTIME_BROKEN
#define TRUNCATED SAMPLE_RUNTIME_TRUNCATED
#define NOWHERE	  0x5550000ULL

static const struct ruby_number_of {
	unsigned int major, minor, teeny;
} synthetic_versions[] = {
	{ 2, 7, 8 }, { 3, 0, 7 }, { 3, 1, 2 }, { 3, 1, 7 }, { 3, 2, 2 }, { 3, 2, 3 },
	{ 3, 2, 9 }, { 3, 3, 8 }, { 3, 4, 5 }, { 4, 0, 1 }, { 4, 1, 0 },
};

/* Memory of the process, at its addresses in the test. */
static uint8_t arena[1 << 21] __attribute__((aligned(4096)));
static size_t used;

static const char *version; /* version of the interpreter, such as "3.1.2" */
static const struct ruby_offsets *o;
static struct ruby_proc_rec proc;
static uint64_t tcb, thread, vm, objspace; /* struct pthread, rb_thread_t, rb_vm_t, rb_objspace_t */
#define TLS_OFFSET (-64)		   /* offset of the thread-local variable */
#define KEY	   3			   /* key that 2.7 uses instead */

/* The execution context that the builder below changes. */
static uint64_t ec, cfp, sp;
static uint64_t ep; /* last word of the innermost frame's environment */

static inline uint64_t make(size_t size)
{
	size_t at = used;

	used += (size + 15) & ~15UL;
	if (used > sizeof(arena))
		abort();
	memset(arena + at, 0, size);
	return (uintptr_t)arena + at;
}

static inline void put(uint64_t at, uint64_t value)
{
	memcpy((void *)at, &value, sizeof(value));
}

static inline void put32(uint64_t at, uint32_t value)
{
	memcpy((void *)at, &value, sizeof(value));
}

static inline uint64_t get(uint64_t at)
{
	uint64_t value;

	memcpy(&value, (const void *)at, sizeof(value));
	return value;
}

/* --- objects --- */

#define T_CLASS	    0x02
#define T_MODULE    0x03
#define T_STRING    0x05
#define T_ARRAY	    0x07
#define T_OBJECT    0x01
#define T_ICLASS    0x1c
#define T_IMEMO	    0x1a
#define USER_1	    0x2000
#define IMEMO(n)    (T_IMEMO | (n) << 12)
#define MEMO_CREF   IMEMO(1)
#define MEMO_SVAR   IMEMO(2)
#define MEMO_METHOD IMEMO(6)

#define EMBEDDED_MAX 23 /* bytes; same in all versions */

static inline uint64_t make_string_of(const char *text, size_t len)
{
	uint64_t string = make(o->string_embedded + EMBEDDED_MAX + 1), data;

	if (len <= EMBEDDED_MAX) {
		put(string, T_STRING | (o->string_has_length ? 0 : len << 14));
		if (o->string_has_length)
			put(string + 16, len);
		memcpy((void *)(string + o->string_embedded), text, len);
		return string;
	}
	data = make(len);
	memcpy((void *)data, text, len);
	put(string, T_STRING | USER_1);
	put(string + 16, len);
	put(string + 24, data);
	return string;
}

static inline uint64_t make_string(const char *text)
{
	return make_string_of(text, strlen(text));
}

/* Makes an Array of @n elements. *@ret_at is the address where the caller writes them. */
static inline uint64_t make_array(size_t n, uint64_t *ret_at)
{
	uint64_t array = make(40 + 8 * 3);

	*ret_at = n <= 3 ? array + 16 : make(8 * n);
	put(array, T_ARRAY | (n <= 3 ? USER_1 : 0));
	if (n > 3) {
		put(array + 16, n);
		put(array + 32, *ret_at);
	}
	return array;
}

/* --- symbols: rb_symbols_t.ids, an Array of lists of 512 pairs --- */

#define T_DATA 0x0c

/* Makes a list of symbols: an Array, or from 4.1 on the data of an RTypedData. *@ret_at is the
 * address where the strings of the pairs begin. */
static inline uint64_t make_symbol_list(uint64_t *ret_at)
{
	uint64_t data, list;

	if (!o->jit_return)
		return make_array(1024, ret_at);
	data = make(40);
	list = make(16 + 1024 * 8);
	put(data, T_DATA);
	put(data + 32, list);
	put(list, 512);
	put(list + 8, 512);
	*ret_at = list + 16 + 8;
	return data;
}

static uint64_t symbol_pairs; /* pairs of the second list, for IDs from 512 << 4 on */
static uint64_t operator_pairs;
static uint32_t n_symbols;

static inline void make_symbols(void)
{
	uint64_t at, inner;

	proc.symbols = make(64);
	put(proc.symbols + 16, make_array(2, &at));
	inner = make_symbol_list(&operator_pairs);
	put(at, inner);
	inner = make_symbol_list(&symbol_pairs);
	put(at + 8, inner);
	n_symbols = 0;
}

static inline uint64_t make_id(const char *name)
{
	uint32_t nth = n_symbols++;

	if (nth >= 512)
		abort();
	put(symbol_pairs + 16 * nth, make_string(name));
	return (512 + nth) << 4 | 1;
}

/* --- classes --- */

/* Sets the hidden name of @class, in versions whose classes have a table of hidden names (up to
 * 3.1). */
static inline void set_hidden(uint64_t class, uint64_t value)
{
	uint64_t ext = make(256), table = make(56), entries = make(8 * 3 * 8);

	put(class + o->class_ext, ext);
	put(ext + o->class_iv_table, table);
	put(table + 16, 2); /* num_entries */
	put(table + 40, 3); /* entries_bound */
	put(table + 48, entries);
	put(entries + 8, 700 << 4 | 3 << 1); /* entry of a constant, unrelated to the name */
	put(entries + 16, make_string("wrong"));
	put(entries + 32, 701 << 4); /* hidden name */
	put(entries + 40, value);
}

static inline void set_own(uint64_t class, uint64_t value, uint16_t field)
{
	uint64_t ivs;

	if (o->class_iv_table) {
		set_hidden(class, value);
	} else if (o->class_ivs) {
		ivs = make(16);
		put(ivs, value);
		put(class + o->class_ivs, ivs);
	} else {
		put(class + o->class_ext + field, value);
	}
}

/* Makes a class. @path NULL: the class has no name yet. */
static inline uint64_t make_class(uint64_t type, const char *path)
{
	uint64_t class = make(320);

	put(class, type);
	if (path)
		set_own(class, make_string(path), o->class_path);
	return class;
}

static inline uint64_t make_singleton(uint64_t of, uint64_t super)
{
	uint64_t class = make(320);

	put(class, T_CLASS | 1ULL << o->singleton_bit);
	put(class + o->class_super, super);
	set_own(class, of, o->class_attached);
	return class;
}

/* --- methods and iseqs --- */

#define FUNCTION 0x7f0000001000ULL /* address of the code of methods in C */

/* Makes a rb_method_entry_t with its definition. */
static inline uint64_t make_method(uint64_t owner, uint64_t id)
{
	uint64_t method = make(48), definition = make(48);

	put(method, MEMO_METHOD);
	put(method + 8, owner);
	put(method + 16, definition);
	put(method + 24, id);
	put(method + 32, owner);
	put(definition, 1);
	put(definition + 8, FUNCTION);
	put(definition + 32, id);
	return method;
}

#define ISEQ_WORDS 30
#define FIRST_LINE 42

/* Sets three lines: FIRST_LINE, then the next ones from words 2 and 5 on. */
static inline void set_iseq_lines(uint64_t body)
{
	uint64_t entries = make(3 * o->entry_size), positions = make(48);

	for (uint32_t at = 0; at < 54; at++) {
		uint64_t word = positions + at / 9 * 8;

		put(word, get(word) | (uint64_t)(1 + (at >= 2) + (at >= 5)) << at % 9 * 7);
	}
	for (uint32_t i = 0; i < 3; i++)
		put32(entries + i * o->entry_size, FIRST_LINE + i);
	put(body + o->body_entries, entries);
	put32(body + o->body_n_entries, 3);
	put32(body + o->body_n_entries + 4, 0x55555555);
	put(body + o->body_positions, positions);
}

static inline uint64_t make_iseq_of(uint64_t label, uint64_t path)
{
	uint64_t iseq = make(40), body = make(512);

	put(iseq, IMEMO(7));
	put(iseq + 16, body);
	put32(body + 4, ISEQ_WORDS);
	put(body + 8, make(8 * ISEQ_WORDS));
	put(body + 64, path);
	put(body + 80, label);
	if (o->first_line_is_value)
		put(body + o->body_first_line, FIRST_LINE << 1 | 1);
	else
		put(body + o->body_first_line, 0x5555555500000000 | FIRST_LINE);
	set_iseq_lines(body);
	return iseq;
}

static inline uint64_t make_iseq(const char *label)
{
	uint64_t at, path = make_array(2, &at);

	put(at, make_string("/some/path/of/a/file.rb"));
	return make_iseq_of(make_string(label), path);
}

/* --- control frames --- */

#define METHOD	0x11110001
#define BLOCK	0x22220001
#define CLASS	0x33330001
#define TOP	0x44440001
#define CFUNC	0x55550001
#define IFUNC	0x66660001
#define EVAL	0x77770001
#define RESCUE	0x78880001
#define DUMMY	0x79990001
#define LOCAL	0x02
#define FINISH	0x20
#define BMETHOD 0x40

#define INDEX 4 /* word index of the instruction after the current one, in each frame */

/* Pushes a frame as vm_push_frame() does: two locals, the environment, then the frame itself. */
static inline void push(uint64_t flags, uint64_t iseq, uint64_t method, uint64_t previous)
{
	sp += 2 * 8;
	put(sp, method);
	put(sp + 8, previous);
	put(sp + 16, flags);
	ep = sp + 16;
	sp += 3 * 8;
	cfp -= o->cfp_size;
	if (sp > cfp)
		abort();
	put(cfp, iseq ? get(get(iseq + 16) + 8) + 8 * INDEX : 0);
	put(cfp + 8, sp);
	put(cfp + 16, iseq);
	put(cfp + 32, ep);
	put(ec + 16, cfp);
}

static inline uint64_t call_of(uint64_t owner, const char *name, uint64_t flags)
{
	uint64_t iseq = make_iseq(name);

	push(METHOD | LOCAL | flags, iseq, make_method(owner, make_id(name)), 0);
	return iseq;
}

static inline void call(const char *name)
{
	call_of(0, name, 0);
}

static inline void call_c_of(uint64_t owner, const char *name)
{
	push(CFUNC | LOCAL, 0, make_method(owner, make_id(name)), 0);
}

static inline void call_c(const char *name)
{
	call_c_of(0, name);
}

/* Enters an interpreter loop from C code. */
static inline void enter(const char *name)
{
	call_of(0, name, FINISH);
}

static inline void yield(const char *label)
{
	push(BLOCK, make_iseq(label), 0, ep | 1);
}

/* --- the process --- */

static inline void set_ec(uint64_t to)
{
	if (proc.state == RUBY_STATE_KEY)
		put(tcb + 784 + 16 * KEY + 8, to ? thread : 0);
	else
		put(tcb + TLS_OFFSET, to);
	put(thread + o->thread_ec, to);
}

/* Distance between fiber_prev and a fiber's first_proc, prev and resuming_fiber. It depends on the
 * size of a jmp_buf. */
static int fiber_shift;

static inline uint64_t prev_of(uint64_t fiber)
{
	return fiber + o->fiber_prev + fiber_shift;
}

/* Makes a rb_fiber_t with a VM stack of @stack_words words. The builder changes this fiber from now
 * on. */
static inline void make_fiber(uint64_t previous, size_t stack_words)
{
	uint64_t fiber = make(o->fiber_prev + 512), stack;

	stack = make(8 * stack_words);
	ec = fiber + o->fiber_ec;
	put(prev_of(fiber), previous);
	if (previous) {
		put(prev_of(fiber) - 8, make(40)); /* a Proc */
		put(prev_of(previous) + 8, fiber);
	}
	put(ec, stack);
	put(ec + 8, stack_words);
	put(ec + o->ec_thread, thread);
	sp = stack;
	cfp = stack + 8 * stack_words;
	push(DUMMY | LOCAL | FINISH, 0, 0, 0);
	set_ec(ec);
}

static inline void resume_fiber(void)
{
	make_fiber(ec - o->fiber_ec, 512);
}

/* Sets the machine stack of `ec` to the @bytes bytes that end at @end. Returns its lowest address.
 */
static inline uint64_t set_machine_stack(uint64_t end, uint64_t bytes)
{
	put(ec + o->ec_machine, end);
	put(ec + o->ec_machine + 16, bytes);
	return end - bytes;
}

#define STACK_WORDS 32768

/* Resets the process to one thread of version synthetic_versions[@nth] that runs no Ruby frame. */
static inline bool reset(size_t nth)
{
	static char text[16];
	const struct ruby_number_of *number = &synthetic_versions[nth];
	const struct ruby_version *found =
		ruby_version__find(number->major, number->minor, number->teeny);

	if (!found)
		return false;
	snprintf(text, sizeof(text), "%u.%u.%u", number->major, number->minor, number->teeny);
	version = text;
	o = &found->offsets;
	used = 0;
	host.n_ranges = 0;
	host__add_range((uintptr_t)arena, arena, sizeof(arena));
	host_map__clear(&ruby_codes);
	host.now_ns += 1000000000;
	tcb = make(4096 - TLS_OFFSET) - TLS_OFFSET;
	thread = make(512);
	vm = make(o->vm_objspace + 8);
	objspace = make(64);
	proc = (struct ruby_proc_rec) {
		.offsets = *o,
		.state = o->thread_native ? RUBY_STATE_KEY : RUBY_STATE_TLS,
		.state_at = o->thread_native ? make(8) : (uint64_t)TLS_OFFSET,
	};
	if (proc.state == RUBY_STATE_KEY)
		put(proc.state_at, KEY | 7ULL << 32);
	put(thread + o->thread_vm, vm);
	put(vm + o->vm_objspace, objspace);
	make_symbols();
	make_fiber(0, STACK_WORDS);
	walker__attach(&proc);
	return true;
}

static inline void run(void)
{
	walker__run(getpid(), tcb);
}

/* Returns true if chain() equals @want. */
static inline bool walked(const char *want, uint32_t flags)
{
	bool good = strcmp(chain(), want) == 0 && host.sample.head.flags == flags;

	if (!good)
		tap__diag("%s: '%s', want '%s'; flags %d, want %u", version, chain(), want,
			  host.sample.head.flags, flags);
	return good;
}

/* As walked(), for a new sample that must add @times to @counter. */
static inline bool loses(enum counter counter, uint64_t times, const char *want, uint32_t flags)
{
	uint64_t before = counted(counter);

	run();
	if (counted(counter) != before + times)
		tap__diag("%s: %d counted", version, (int)(counted(counter) - before));
	return walked(want, flags) && counted(counter) == before + times;
}

#endif
