// SPDX-License-Identifier: GPL-2.0-or-later
/* Filters of tracepoints: written as text, resolved with types that the test makes, and tested by
 * the kernel half on structs of the test process. */
#include "core/events/filter.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "tests/tap.h"

#include "tests/unit/tables.h"

/* --- arguments of the tracepoint `made`: (thing, number, small, name, word) --- */

struct inner {
	uint32_t a;
	int32_t b;
};

struct thing {
	int16_t depth;
	char text[16];
	struct thing *next;
	const char *label;
	struct inner in;
	union {
		uint8_t flags;
		int8_t level;
	};
	uint64_t wide;
};

static struct thing last = { .depth = -7, .text = "last", .in = { 5, -5 }, .wide = 1ULL << 63 };
static struct thing first = { .depth = 40,
			      .text = "first one",
			      .next = &last,
			      .label = "a label",
			      .in = { 0xffffffff, -1 },
			      .flags = 0x81,
			      .wide = 7 };

static struct btf *types(void)
{
	struct btf *btf = btf__new_empty();
	int s16 = btf__add_int(btf, "short", 2, BTF_INT_SIGNED);
	int s32 = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	int s8 = btf__add_int(btf, "signed char", 1, BTF_INT_SIGNED);
	int u8 = btf__add_int(btf, "unsigned char", 1, 0);
	int u32 = btf__add_int(btf, "unsigned int", 4, 0);
	int u64 = btf__add_int(btf, "unsigned long", 8, 0);
	int c = btf__add_int(btf, "char", 1, BTF_INT_SIGNED);
	int text = btf__add_array(btf, s32, c, 16);
	int words = btf__add_array(btf, s32, u64, 2);
	int c_ptr = btf__add_ptr(btf, btf__add_const(btf, c)), data = btf__add_ptr(btf, 0);
	int inner = btf__add_struct(btf, "inner", 8), anonymous, thing, thing_ptr, alias, proto,
	    bits_ptr;

	btf__add_field(btf, "a", u32, 0, 0);
	btf__add_field(btf, "b", s32, 32, 0);
	anonymous = btf__add_union(btf, NULL, 1);
	btf__add_field(btf, "flags", u8, 0, 0);
	btf__add_field(btf, "level", s8, 0, 0);
	thing = btf__add_struct(btf, "thing", sizeof(struct thing));
	thing_ptr = thing + 1; /* type that is added next */
	btf__add_field(btf, "depth", s16, 8 * offsetof(struct thing, depth), 0);
	btf__add_field(btf, "text", text, 8 * offsetof(struct thing, text), 0);
	btf__add_field(btf, "next", thing_ptr, 8 * offsetof(struct thing, next), 0);
	btf__add_field(btf, "label", c_ptr, 8 * offsetof(struct thing, label), 0);
	btf__add_field(btf, "in", inner, 8 * offsetof(struct thing, in), 0);
	btf__add_field(btf, NULL, anonymous, 8 * offsetof(struct thing, flags), 0);
	btf__add_field(btf, "wide", u64, 8 * offsetof(struct thing, wide), 0);
	btf__add_ptr(btf, thing);
	alias = btf__add_typedef(btf, "thing_t", btf__add_const(btf, thing_ptr));
	btf__add_struct(btf, "bits", 8);
	btf__add_field(btf, "one", u32, 0, 3);
	btf__add_field(btf, "words", words, 64, 0);
	btf__add_struct(btf, "task_struct", sizeof(struct task_struct));
	btf__add_field(btf, "pid", s32, 8 * offsetof(struct task_struct, pid), 0);
	btf__add_field(btf, "tgid", s32, 8 * offsetof(struct task_struct, tgid), 0);
	bits_ptr = btf__add_ptr(btf, btf__find_by_name(btf, "bits"));
	proto = btf__add_func_proto(btf, 0);
	btf__add_func_param(btf, "__data", data);
	btf__add_func_param(btf, "thing", alias);
	btf__add_func_param(btf, "number", s32);
	btf__add_func_param(btf, "small", u8);
	btf__add_func_param(btf, "name", c_ptr);
	btf__add_func_param(btf, "word", u64);
	btf__add_func_param(btf, "bits", bits_ptr);
	btf__add_func(btf, "__traceiter_made", BTF_FUNC_STATIC, proto);
	btf__add_func_proto(btf, 0);
	btf__add_func_param(btf, "__data", 0);
	btf__add_func(btf, "__traceiter_bare", BTF_FUNC_STATIC, btf__type_cnt(btf) - 1);
	/* As in a kernel without such functions: without names. */
	proto = btf__add_func_proto(btf, 0);
	btf__add_func_param(btf, NULL, data);
	btf__add_func_param(btf, NULL, s32);
	btf__add_typedef(btf, "btf_trace_nameless", btf__add_ptr(btf, proto));
	return btf;
}

static int compile(const struct btf *btf, const char *tracepoint, const char *text,
		   struct event_filter *ret, struct err *err)
{
	struct filter_terms terms;
	int code = filter_terms__parse(text, &terms, err);

	*ret = (struct event_filter) {};
	return code ? code : filter__compile(&terms, btf, tracepoint, ret, err);
}

/* Runs @filter. Each argument is passed in a word, and the bytes behind a small argument have any
 * value. */
static int passes(const struct event_filter *filter)
{
	uint64_t arguments[] = { (uintptr_t)&first,
				 0xdeadbeef00000000 | (uint32_t)-3,
				 0xffffffffffffff00 | 200,
				 (uintptr_t) "passed",
				 1ULL << 40,
				 0 };
	uint32_t key = 3;

	bpf_map_update_elem(&filters, &key, filter, 0);
	return filter__passes(arguments, key);
}

static void holds(const struct btf *btf, const char *text, int expected)
{
	struct event_filter filter;
	struct err err = {};
	int code = compile(btf, "made", text, &filter, &err);

	if (!ok(!code && passes(&filter) == expected, "%s: %s", text,
		expected ? "holds" : "does not"))
		tap__diag("%d %s", code, err.text);
}

static void test_values(const struct btf *btf)
{
	holds(btf, "number == -3", 1);
	holds(btf, "number < 0", 1);
	holds(btf, "number > 0", 0);
	holds(btf, "number >= -3 && number <= -3", 1);
	holds(btf, "number == 4294967293", 0);
	holds(btf, "small == 200", 1);
	holds(btf, "small > 199", 1);
	holds(btf, "small < 0", 0);
	holds(btf, "word == 0x10000000000", 1);
	holds(btf, "word & 0x10000000000", 1);
	holds(btf, "word & 0xff", 0);
	holds(btf, "word > 5 && word != 6", 1);
	holds(btf, "arg1 == -3", 1);
	holds(btf, "thing != 0", 1);
}

static void test_fields(const struct btf *btf)
{
	holds(btf, "thing->depth == 40", 1);
	holds(btf, "thing.depth == 40", 1);
	holds(btf, "thing->next->depth == -7", 1);
	holds(btf, "thing->next->depth < -6", 1);
	holds(btf, "thing->next->next == 0", 1);
	holds(btf, "thing->next->next->depth == 0", 0);
	holds(btf, "thing->next->next->depth != 0", 0);
	holds(btf, "thing->in.a == 0xffffffff", 1);
	holds(btf, "thing->in.b == -1", 1);
	holds(btf, "thing->next->in.b == -5", 1);
	holds(btf, "thing->flags == 0x81", 1);
	holds(btf, "thing->level < 0", 1);
	holds(btf, "thing->wide < 8", 1);
	holds(btf, "thing->next->wide > 8", 1);
}

static void test_texts(const struct btf *btf)
{
	holds(btf, "thing->text == \"first one\"", 1);
	holds(btf, "thing->text == 'first one'", 1);
	holds(btf, "thing->text == first", 0);
	holds(btf, "thing->text != first", 1);
	holds(btf, "thing->next->text == last", 1);
	holds(btf, "thing->label == \"a label\"", 1);
	holds(btf, "name == passed", 1);
	holds(btf, "name != passed", 0);
	holds(btf, "name == passed2", 0);
}

static void test_joined(const struct btf *btf)
{
	struct event_filter filter = { .n = 1 };
	struct filter_terms terms;
	struct err err = {};

	holds(btf, "number == 1 || small == 200", 1);
	holds(btf, "number == -3 || small == 1", 1);
	holds(btf, "number == 1 || small == 1", 0);
	holds(btf, "number == 1 && small == 200 || word == 1", 0);
	holds(btf, "number == 1 && small == 200 || word == 0x10000000000", 1);
	holds(btf, "number == 1 || small == 200 && word == 1", 0);
	holds(btf,
	      "number==1||number==2||number==3||number==4||number==5||number==6||number==7||"
	      "number==-3",
	      1);
	holds(btf, "pid == 100 && tid == 100", 1);
	holds(btf, "tid == 101", 0);
	/* A required test applies to all alternatives. */
	filter_terms__parse("small == 1 || small == 200", &terms, &err);
	filter.tests[0] = (struct filter_test) { .argument = 1, .bytes = 4, .value = 77 };
	is_int(filter__compile(&terms, btf, "made", &filter, &err), 0, "behind what is required");
	is_int(filter.required, 1, "... which is one");
	is_int(passes(&filter), 0, "... and does not hold");
	filter.tests[0].value = (uint32_t)-3;
	is_int(passes(&filter), 1, "... or does");
	filter = (struct event_filter) {};
	is_int(passes(&filter), 1, "without tests all pass");
}

static void refuses(const struct btf *btf, const char *tracepoint, const char *text, int expected,
		    const char *words)
{
	struct event_filter filter;
	struct err err = {};
	int code = compile(btf, tracepoint, text, &filter, &err);

	if (!ok(code == expected && strstr(err.text, words), "%s: %s", text, words))
		tap__diag("%d %s", code, err.text);
}

static void test_refused(const struct btf *btf)
{
	refuses(btf, "made", "numbr == 1", -ENOENT,
		"no argument 'numbr'. Choose one of thing, number, small, name, word, bits");
	refuses(btf, "made", "arg6 == 1", -ENOENT, "no argument 'arg6'");
	refuses(btf, "made", "thing->dept == 1", -ENOENT, "no field 'dept': did you mean depth");
	refuses(btf, "made", "thing->xyz == 1", -ENOENT,
		"no field 'xyz': it has depth, text, next, label, in, flags, level, wide");
	refuses(btf, "made", "number->a == 1", -ENOENT, "number has no fields");
	refuses(btf, "made", "thing->depth.a == 1", -ENOENT, "depth has no fields");
	refuses(btf, "made", "thing->in == 1", -ENOTSUP,
		"compare in with a number: it is a struct");
	refuses(btf, "made", "thing->text == 1", -ENOTSUP,
		"compare text with a number: it is a text");
	refuses(btf, "made", "thing->depth == deep", -ENOTSUP,
		"compare depth with 'deep': the argument is not a text");
	refuses(btf, "made", "bits->one == 1", -ENOTSUP, "read one: it is a bit field");
	refuses(btf, "made", "bits->words == 1", -ENOTSUP,
		"compare words with a number: it is a whole array");
	refuses(btf, "made", "thing->next->next->label == x", -ENOTSUP, "too many pointers");
	refuses(btf, "nobody", "a == 1", -ENOENT, "cannot filter the tracepoint nobody");
	refuses(btf, "bare", "a == 1", -ENOENT, "has no arguments to filter by");
	refuses(btf, "nameless", "a == 1", -ENOENT, "Choose one of arg0 to arg0");
	refuses(btf, "made", "comm == x", -ENOTSUP, "cannot compare a thread's comm");
}

int main(void)
{
	struct btf *btf = types();

	sampler__open();
	HOST_ARRAY(filters, FILTERS_N);
	test_values(btf);
	test_fields(btf);
	test_texts(btf);
	test_joined(btf);
	test_refused(btf);
	sampler__close();
	btf__free(btf);
	return tap__done();
}
