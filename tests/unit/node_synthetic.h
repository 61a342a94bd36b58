/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_NODE_SYNTHETIC_H
#define BRAID_TESTS_UNIT_NODE_SYNTHETIC_H

/* A heap of V8 that does not exist: objects in the test's own memory, laid out as in V8 13.6. Tests
 * and the fuzz target can change each word. */

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "runtimes/node/node_codes.h"
#include "runtimes/node/node_text.h"

#define HEAP_WORDS 2048

static uint64_t heap_words[HEAP_WORDS];
static size_t heap_used;

enum {			   /* types of objects */
       TYPE_STRING = 0x08, /* Latin-1 string */
       TYPE_STRING2 = 0x00,
       TYPE_CONS = 0x09,
       TYPE_EXTERNAL = 0x0a,
       TYPE_SLICED = 0x0b,
       TYPE_THIN = 0x0d,
       TYPE_BYTES = 196,
       TYPE_ARRAY = 205,
       TYPE_BYTECODES = 186,
       TYPE_CODE = 187,
       TYPE_STREAM = 192,
       TYPE_MAP = 272,
       TYPE_SCOPE = 280,
       TYPE_SCRIPT = 167,
       TYPE_SFI = 282,
       TYPE_WRAPPER = 195,
};

#define SMI(n)	      ((uint64_t)(uint32_t)(n) << 32)
#define TAGGED(at)    ((uint64_t)(uintptr_t)(at) | NODE_TAG)
#define UNTAG(word)   ((uint64_t *)(uintptr_t)((word) & ~3ULL))
#define KIND_BASELINE 10
#define KIND_TURBOFAN 12

/* Returns a layout whose `rec` has all fields that a walker needs. */
static inline struct node_layout synthetic_layout(void)
{
	static const uint8_t sizes[3 * 8] = { 1, 1, 1, 1, 2, 3, 1, 4, 1, 1, 1, 1,
					      3, 5, 1, 7, 1, 1, 1, 1, 5, 9, 1, 13 };
	struct node_layout layout = {
		.rec = { .map_type = 12,
			 .function_shared = 32,
			 .sfi_data = 8,
			 .sfi_name = 24,
			 .sfi_script = 40,
			 .sfi_literal = 52,
			 .script_id = 64,
			 .script_source = 8,
			 .code_deopt = 8,
			 .type_script = TYPE_SCRIPT,
			 .stream_header = 32,
			 .stream_code = 8,
			 .code_start = 40,
			 .code_size = 56,
			 .code_flags = 52,
			 .kind_mask = 15,
			 .kind_baseline = KIND_BASELINE,
			 .type_map = TYPE_MAP,
			 .type_sfi = TYPE_SFI,
			 .type_stream = TYPE_STREAM,
			 .type_bytecodes = TYPE_BYTECODES },
		.rec.text.first_nonstring = 128,
		.rec.text.representation_mask = 7,
		.rec.text.one_byte = 8,
		.rec.text.cons = 1,
		.external = 2,
		.sliced = 3,
		.rec.text.thin = 5,
		.rec.text.string_length = 12,
		.rec.text.string_chars = 16,
		.rec.text.cons_first = 16,
		.rec.text.cons_second = 24,
		.rec.text.thin_actual = 16,
		.sliced_parent = 16,
		.sliced_offset = 24,
		.external_resource = 16,
		.array_length = 8,
		.array_data = 16,
		.rec.text.type_scope_info = TYPE_SCOPE,
		.type_fixed_array = TYPE_ARRAY,
		.type_code = TYPE_CODE,
		.rec.text.script_name = 16,
		.script_line_ends = 56,
		.script_line_offset = 24,
		.rec.text.scope_n_locals = 2,
		.rec.text.scope_variable = 5,
		.scope_start = 3,
		.rec.text.scope_module = 5,
		.bytecode_positions = 24,
		.bytecode_data = 64,
		.code_deopt = 8,
		.code_positions = 16,
		.deopt_n_inlined = 1,
		.deopt_literals = 3,
		.deopt_function = 7,
		.deopt_inlinings = 8,
		.wrapped_function = 8,
		.n_bytecodes = 8,
	};

	memcpy(layout.bytecode_sizes, sizes, sizeof(sizes));
	return layout;
}

/* Makes an object of @words zero words after its Map. */
static inline uint64_t make(uint16_t type, size_t words)
{
	uint64_t *map = &heap_words[heap_used], *object = map + 2;

	heap_used += 2 + 1 + words;
	memset(map, 0, (2 + 1 + words) * sizeof(*map));
	memcpy((char *)map + 12, &type, sizeof(type));
	object[0] = TAGGED(map);
	return TAGGED(object);
}

static inline void set(uint64_t object, uint32_t offset, uint64_t word)
{
	memcpy((char *)UNTAG(object) + offset, &word, sizeof(word));
}

static inline uint64_t make_text(const char *text)
{
	uint32_t n = strlen(text);
	uint64_t string = make(TYPE_STRING, 1 + (n + 7) / 8);

	memcpy((char *)UNTAG(string) + 12, &n, sizeof(n));
	memcpy((char *)UNTAG(string) + 16, text, n);
	return string;
}

/* Makes a string that consists of two others. */
static inline uint64_t make_string(uint16_t type, uint32_t n, uint64_t first, uint64_t second)
{
	uint64_t string = make(type, 3);

	memcpy((char *)UNTAG(string) + 12, &n, sizeof(n));
	set(string, 16, first);
	set(string, 24, second);
	return string;
}

static inline uint64_t make_bytes(const void *bytes, uint32_t n)
{
	uint64_t array = make(TYPE_BYTES, 1 + (n + 7) / 8);

	set(array, 8, SMI(n));
	memcpy((char *)UNTAG(array) + 16, bytes, n);
	return array;
}

static inline uint64_t make_array(const uint64_t *words, uint32_t n)
{
	uint64_t array = make(TYPE_ARRAY, 1 + n);

	set(array, 8, SMI(n));
	memcpy((char *)UNTAG(array) + 16, words, n * sizeof(*words));
	return array;
}

#define SOURCE "function one() {\n  two(1);\n}\r\nfunction two(n) { return n; }\n"

static inline uint64_t make_script(void)
{
	uint64_t script = make(TYPE_SCRIPT, 9);

	set(script, 8, make_text(SOURCE));
	set(script, 16, make_text("file:///srv/a%20b.mjs"));
	set(script, 64, SMI(7));
	return script;
}

/* Makes the scope of a function with one variable in its context, the name @name and parameters
 * from @start on. */
static inline uint64_t make_scope(const char *name, uint32_t start)
{
	uint64_t scope = make(TYPE_SCOPE, 10);

	set(scope, 8, 4 | 3 << 12); /* scope of a function whose name is not a variable */
	set(scope, 24, SMI(1));
	set(scope, 32, SMI(start));
	set(scope, 48, make_text("variable"));
	set(scope, 64, make_text(name));
	return scope;
}

/* A table of source positions, as V8 writes it. */
struct positions {
	uint8_t bytes[256];
	size_t n;
	int64_t code, value; /* values of the last entry */
};
#define POSITIONS_EMPTY    \
	{                  \
		.code = -1 \
	}

static inline void put_number(struct positions *to, uint64_t number)
{
	do {
		to->bytes[to->n++] = (number & 0x7f) | (number > 0x7f ? 0x80 : 0);
		number >>= 7;
	} while (number);
}

static inline uint64_t position(int32_t at, int32_t inlining)
{
	return (uint64_t)(at + 1) << 1 | (uint64_t)(inlining + 1) << 31;
}

static inline void put_position(struct positions *to, int64_t code, uint64_t value)
{
	int64_t difference = (int64_t)value - to->value;

	put_number(to, (uint64_t)(code - to->code) << 1); /* a statement */
	put_number(to, (uint64_t)difference << 1 ^ (uint64_t)(difference >> 63));
	to->code = code;
	to->value = value;
}

static inline uint64_t make_function(uint64_t script, uint64_t scope, uint64_t positions,
				     const char *bytecodes, uint32_t n)
{
	uint64_t sfi = make(TYPE_SFI, 8), code = make(TYPE_BYTECODES, 7 + (n + 7) / 8);

	set(code, 8, SMI(n));
	set(code, 24, positions);
	memcpy((char *)UNTAG(code) + 64, bytecodes, n);
	set(sfi, 8, code);
	set(sfi, 24, scope);
	set(sfi, 40, script);
	return sfi;
}

/* Returns the walker's words for the function @sfi and its code. */
static inline struct node_code sent(uint64_t sfi)
{
	const uint64_t *words = UNTAG(sfi);

	const uint64_t *script = UNTAG(words[5]);
	struct node_code code = { .function = { .sfi = sfi, .name = words[3], .script = words[5] },
				  .space = 1 };

	struct node_layout layout = synthetic_layout();
	struct allowance allowance = { .rate = 1 << 30, .burst = 1 << 30 };
	struct node_heap heap = { .pid = getpid(), .layout = &layout, .allowance = &allowance };

	if (script >= heap_words && script + 9 <= heap_words + HEAP_WORDS) {
		code.function.script_id = script[8];
		code.function.source = script[1];
	}
	code.function.texts =
		node_text__hash(&heap, words[3], code.function.script_id ? words[5] : 0);
	return code;
}

static inline uint64_t make_code(uint32_t kind, uint64_t deopt, uint64_t positions)
{
	uint64_t code = make(TYPE_CODE, 9);
	uint32_t size = 100;

	set(code, 8, deopt);
	set(code, 16, positions);
	set(code, 40, 0x7f0000001000);
	memcpy((char *)UNTAG(code) + 52, &kind, sizeof(kind));
	memcpy((char *)UNTAG(code) + 56, &size, sizeof(size));
	return code;
}

static inline int announce(struct node_codes *codes, uint32_t number, uint32_t kind,
			   const struct node_code *code)
{
	struct rec_code_object rec = {
		.type = REC_CODE_OBJECT, .code = number, .walker = WALKER_NODE, .table_format = kind
	};

	memcpy(rec.name, code, sizeof(*code));
	return node_codes__add(codes, &rec, REC_CODE_OBJECT_HEADER + sizeof(*code));
}

/* --- a program: one() calls two(), which is inlined into the code of one() --- */

struct program {
	struct node_layout layout;
	struct node_codes *codes;
	uint64_t script, one, two, optimized, baseline;
};

#define AT(text) ((int32_t)(strstr(SOURCE, text) - SOURCE))

static inline uint64_t make_deopt(uint64_t owner, uint64_t inlined, int32_t call)
{
	const uint64_t inlining[] = { position(call, -1), 0 };
	uint64_t wrapper = make(TYPE_WRAPPER, 1), words[9] = { [1] = SMI(1) };

	set(wrapper, 8, owner);
	words[3] = make_array(&inlined, 1);
	words[7] = wrapper;
	words[8] = make_bytes(inlining, sizeof(inlining));
	return make_array(words, 9);
}

static inline int make_program(struct program *program)
{
	struct positions of_one = POSITIONS_EMPTY, of_two = POSITIONS_EMPTY;
	struct positions optimized = POSITIONS_EMPTY, lengths = POSITIONS_EMPTY;
	const int bytes[] = { 8, 10, 20,
			      5 }; /* bytes of each piece of baseline code, prologue first */

	heap_used = 0;
	program->layout = synthetic_layout();
	program->script = make_script();
	put_position(&of_one, -1, position(AT("() {"), -1));
	put_position(&of_one, 2, position(AT("two(1"), -1));
	put_position(&of_one, 5, position(AT("}\r"), -1));
	put_position(&of_two, -1, position(AT("(n)"), -1));
	put_position(&of_two, 0, position(AT("return"), -1));
	program->one =
		make_function(program->script, make_scope("one", AT("() {")),
			      make_bytes(of_one.bytes, of_one.n), "\x04\x04\x05\x04\x04\x04", 6);
	program->two = make_function(program->script, make_scope("two", AT("(n)")),
				     make_bytes(of_two.bytes, of_two.n), "\x04\x04", 2);
	put_position(&optimized, 10, position(AT("two(1"), -1));
	put_position(&optimized, 20, position(AT("return"), 0));
	put_position(&optimized, 30, position(AT("}\r"), -1));
	program->optimized =
		make_code(KIND_TURBOFAN, make_deopt(program->one, program->two, AT("two(1")),
			  make_bytes(optimized.bytes, optimized.n));
	for (size_t i = 0; i < 4; i++)
		put_number(&lengths, bytes[i]);
	program->baseline = make_code(KIND_BASELINE, 0, make_bytes(lengths.bytes, lengths.n));
	program->codes = node_codes__new();
	return program->codes ? node_codes__attach(program->codes, getpid(), 1, &program->layout)
			      : -1;
}

/* Returns the walker's words for compiled code of one(). */
static inline struct node_code sent_code(const struct program *program, uint64_t code)
{
	struct node_code ret = sent(program->one);

	ret.code = code;
	ret.deopt = UNTAG(code)[1];
	ret.start = UNTAG(code)[5];
	ret.size = 100;
	return ret;
}

#endif
