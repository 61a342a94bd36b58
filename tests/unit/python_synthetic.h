/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_PYTHON_SYNTHETIC_H
#define BRAID_TESTS_UNIT_PYTHON_SYNTHETIC_H

/* A process that does not exist, with a CPython of any version: its thread, frames, code objects
 * and strings. Include this file last. */

#include "tests/unit/python_host.h"

#define BROKEN	  SAMPLE_RUNTIME_BROKEN
#define TRUNCATED SAMPLE_RUNTIME_TRUNCATED
#define NOWHERE	  0x5550000ULL

#define MINOR_FIRST 6
#define MINOR_LAST  15
#define LOOPS_MAX   8

/* Memory of the process, at its addresses in the test. */
static uint8_t arena[1 << 19] __attribute__((aligned(4096)));
static size_t used;

static unsigned int minor; /* minor version of the interpreter */
static const struct python_offsets *o;
static struct python_proc_rec proc;
static uint64_t thread, tss; /* struct pthread, Py_tss_t */
#define TLS_OFFSET (-64)     /* offset of the thread-local variable of 3.15 */

/* The thread state that the builder below changes. */
static uint64_t tstate, cframe, frame;
static uint64_t loops[LOOPS_MAX]; /* addresses of variables for native loops, outermost first */
static size_t n_loops;
static bool at_entry; /* 3.11: true if the next frame begins a loop */

/* The data that interpreters from 3.13 on have in their _Py_DebugOffsets. */
#define DESCRIBED(thread_id, owner, frame_size, bytecode, next, threads)                        \
	{                                                                                       \
		.chain = PYTHON_CHAIN_SHIMS, .instr = PYTHON_INSTR_ADDRESS, .tstate_frame = 72, \
		.tstate_thread_id = thread_id, .frame_previous = 8, .frame_code = 0,            \
		.frame_instr = 56, .frame_owner = owner, .frame_bytes = frame_size,             \
		.code_base = 64, .code_first_line = 68, .code_file = 112, .code_name = 128,     \
		.code_line_table = 136, .code_version = 92, .code_bytecode = bytecode,          \
		.unicode_ascii_data = 40, .unicode_compact_data = 56, .interp_next = next,      \
		.interp_threads = threads, .tstate_native_id = thread_id + 8, .interp_gil = 16, \
		.object_bytes = 16                                                              \
	}
static const struct python_offsets described[] = {
	DESCRIBED(152, 70, 72, 200, 7264, 7344), /* 3.13.0 */
	DESCRIBED(152, 74, 80, 208, 7272, 7344), /* 3.14.0 */
	DESCRIBED(176, 74, 80, 208, 7264, 7336), /* 3.15.0 */
};

/* As DESCRIBED, for an interpreter without the GIL, whose objects have a longer head. */
#define DESCRIBED_FREE(thread_id, owner, bytecode, shift, copy, copies)                            \
	{                                                                                          \
		.chain = PYTHON_CHAIN_SHIMS, .instr = PYTHON_INSTR_ADDRESS, .tstate_frame = 72,    \
		.tstate_thread_id = thread_id, .frame_previous = 8, .frame_code = 0,               \
		.frame_instr = 56, .frame_owner = owner, .frame_bytes = 80, .code_base = 80,       \
		.code_first_line = 84, .code_file = 128, .code_name = 144, .code_line_table = 152, \
		.code_version = 108, .code_bytecode = bytecode, .unicode_ascii_data = 56,          \
		.unicode_compact_data = 72, .interp_next = 7264, .interp_threads = 7344,           \
		.tstate_native_id = thread_id + 8, .object_bytes = 32, .unicode_shift = shift,     \
		.frame_copy = copy, .code_copies = copies                                          \
	}
static const struct python_offsets described_free[] = {
	DESCRIBED_FREE(152, 70, 216, 0, 0, 0),	  /* 3.13.5 */
	DESCRIBED_FREE(152, 78, 232, 6, 72, 224), /* 3.14.10 */
	DESCRIBED_FREE(176, 78, 232, 6, 72, 224), /* 3.15.2 */
};
static bool without_gil; /* argument of reset() */

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

/* --- code objects --- */

/* Makes a compact string. @ascii is the flag that CPython has for it. */
static inline uint64_t make_text(const void *chars, size_t len, unsigned int kind, bool ascii)
{
	uint32_t data = ascii ? o->unicode_ascii_data : o->unicode_compact_data;
	uint64_t text = make(data + len * kind + kind);

	put(text + o->object_bytes, len);
	put(text + o->object_bytes + 8, 1000 + len + *(const uint8_t *)chars); /* hash */
	put32(text + o->object_bytes + 16, (kind << 2 | 1 << 5 | (ascii ? 1U << 6 : 0))
						   << o->unicode_shift);
	memcpy((void *)(text + data), chars, len * kind);
	return text;
}

static inline uint64_t make_ascii(const char *text)
{
	return make_text(text, strlen(text), 1, true);
}

static inline uint64_t make_code_of(uint64_t name, uint64_t table_bytes)
{
	uint64_t code = make(256);
	uint64_t table = make(o->object_bytes + PYTHON_BYTES_DATA + table_bytes + 1);

	put(table + o->object_bytes + PYTHON_BYTES_SIZE, table_bytes);
	put32(code + o->code_first_line, 42);
	put(code + o->code_name, name);
	put(code + o->code_file, make_ascii("/some/file.py"));
	put(code + o->code_line_table, table);
	return code;
}

static inline uint64_t make_code(const char *name)
{
	return make_code_of(make_ascii(name), 0);
}

/* --- frames --- */

#define INDEX 8 /* bytes from the start of the code to the instruction that each frame executes */

static inline bool with_cframes(void)
{
	return o->chain == PYTHON_CHAIN_CFRAMES || o->chain == PYTHON_CHAIN_CFRAME_SHIMS;
}

static inline bool with_shims(void)
{
	return o->chain >= PYTHON_CHAIN_CFRAME_SHIMS;
}

static inline uint64_t make_frame(uint64_t code, uint64_t previous, unsigned int owner)
{
	uint64_t at = make(o->frame_bytes);

	/* The 32 bits beside the index have another value. */
	put(at + o->frame_instr, o->instr == PYTHON_INSTR_ADDRESS ? code + o->code_bytecode + INDEX
				 : o->instr == PYTHON_INSTR_UNITS ? 7ULL << 32 | INDEX / 2
								  : 7ULL << 32 | INDEX);
	put(at + o->frame_code, code | (minor >= 14)); /* tagged reference */
	put(at + o->frame_previous, previous);
	if (o->frame_owner)
		*(uint8_t *)(at + o->frame_owner) = owner;
	return at;
}

static inline uint64_t make_shim(uint64_t previous)
{
	return make_frame(NOWHERE, previous, PYTHON_OWNER_SHIM);
}

static inline uint64_t make_cframe(uint64_t current, uint64_t previous)
{
	uint64_t at = make(24);

	put(at + o->cframe_current_frame, current);
	put(at + o->cframe_current_frame + 8, previous);
	return at;
}

/* Makes @to the innermost frame of the thread state. */
static inline void set_frame(uint64_t to)
{
	frame = to;
	put(with_cframes() ? cframe + o->cframe_current_frame : tstate + o->tstate_frame, frame);
}

static inline void set_cframe(uint64_t to)
{
	cframe = to;
	put(tstate + o->tstate_frame, cframe);
}

/* Enters an interpreter loop from C code. */
static inline void enter(void)
{
	uint64_t loop = 0;

	if (with_cframes()) {
		loop = make_cframe(0, cframe);
		set_cframe(loop);
	}
	if (with_shims())
		set_frame(loop = make_shim(frame));
	at_entry = o->chain == PYTHON_CHAIN_CFRAMES;
	loops[n_loops++] = loop;
}

/* Makes the innermost loop run the function @code. */
static inline void call_code(uint64_t code)
{
	set_frame(make_frame(code, frame, at_entry));
	at_entry = false;
}

static inline void call(const char *name)
{
	call_code(make_code(name));
}

/* --- the process --- */

#define NO_KEY_YET UINT32_MAX

static inline void set_key(uint32_t key)
{
	if (minor == 6) /* an int as the state itself */
		put(tss, key | 7ULL << 32);
	else
		put(tss, key == NO_KEY_YET ? 0 : 1 | (uint64_t)key << 32);
}

/* Numbers of the newest musl. */
static const struct c_library musl = { .values = 128, .tid = 48 };

/* Stores the thread's state under key 3, or in the thread-local variable. */
static inline void set_state(uint64_t to)
{
	if (minor < 15 && proc.libc.values) {
		put(thread + proc.libc.values, make(8 * MUSL_KEYS_MAX));
		put(get(thread + proc.libc.values) + 8 * 3, to);
	} else if (minor < 15)
		put(thread + PTHREAD_SPECIFIC_FIRST + 16 * 3 + 8, to);
	else
		put(thread + TLS_OFFSET, to);
}

/* Makes a state of the thread without frames, first in the list of @interp. The builder changes
 * this state from now on. */
static inline void make_tstate(uint64_t interp)
{
	tstate = make(512);
	put(tstate + o->tstate_thread_id, thread);
	put(tstate + PYTHON_TSTATE_NEXT, get(interp + o->interp_threads));
	put(tstate + PYTHON_TSTATE_INTERP, interp);
	put(interp + o->interp_threads, tstate);
	frame = cframe = n_loops = 0;
	if (with_cframes())
		set_cframe(tstate + o->tstate_root_cframe);
}

/* Makes an interpreter that is first in the list of interpreters. */
static inline uint64_t make_interpreter(void)
{
	uint64_t interp =
		make(max_of(max_of(o->interp_next, o->interp_threads), o->interp_gil) + 8U);

	put(interp + o->interp_next, get(proc.interpreters));
	put(proc.interpreters, interp);
	return interp;
}

/* Resets the process to one thread of CPython 3.@of_minor that runs no Python frame. */
static inline void reset(unsigned int of_minor)
{
	used = 0;
	host.n_ranges = 0;
	host__add_range((uintptr_t)arena, arena, sizeof(arena));
	host_map__clear(&python_codes);
	host.now_ns += 1000000000;
	minor = of_minor;
	o = minor < 13	  ? &python_version__find(minor)->offsets
	    : without_gil ? &described_free[minor - 13]
			  : &described[minor - 13];
	tss = make(8);
	thread = make(4096 - TLS_OFFSET) - TLS_OFFSET;
	proc = (struct python_proc_rec) {
		.offsets = *o,
		.state = minor == 6   ? PYTHON_STATE_PLAIN_KEY
			 : minor < 15 ? PYTHON_STATE_KEY
				      : PYTHON_STATE_TLS,
		.state_at = minor < 15 ? tss : (uint64_t)TLS_OFFSET,
		.interpreters = make(8),
	};
	make_tstate(make_interpreter());
	set_key(3);
	set_state(tstate);
	walker__attach(&proc);
}

static inline void run(void)
{
	walker__run(getpid(), thread);
}

/* Returns true if chain() equals @want. A '|' in @want is ignored in versions without shims. */
static inline bool walked(const char *want, uint32_t flags)
{
	char text[256];
	size_t n = 0;
	bool good;

	for (; *want; want++)
		if (*want != '|' || with_shims())
			text[n++] = *want;
	text[n] = 0;
	good = strcmp(chain(), text) == 0 && host.sample.head.flags == flags;
	if (!good)
		tap__diag("3.%u: '%s', want '%s'; flags %d, want %u", minor, chain(), text,
			  host.sample.head.flags, flags);
	return good;
}

/* As walked(), for a new sample that must add @times to @counter. */
static inline bool loses(enum counter counter, uint64_t times, const char *want, uint32_t flags)
{
	uint64_t before = counted(counter);

	run();
	if (counted(counter) != before + times)
		tap__diag("3.%u: %d counted", minor, (int)(counted(counter) - before));
	return walked(want, flags) && counted(counter) == before + times;
}

#endif
