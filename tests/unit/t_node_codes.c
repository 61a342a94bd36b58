// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of V8's frames, over a heap that does not exist. */
#include <stdio.h>
#include <stdlib.h>

#include "runtimes/node/node_positions.h"
#include "tests/tap.h"
#include "tests/unit/node_synthetic.h"

static struct program program;

/* Returns "two (/srv/a b.mjs:4) < one (/srv/a b.mjs:2)". */
static const char *name(uint32_t number, uint32_t index)
{
	static char text[1024];
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX];
	int n = node_codes__symbolize(program.codes, FRAME_KEY(number, index), symbols), at = 0;

	text[0] = '\0';
	for (int i = 0; i < n; i++)
		at += snprintf(text + at, sizeof(text) - at, "%s%s (%s:%u)", i ? " < " : "",
			       symbols[i].function, symbols[i].file ? symbols[i].file : "-",
			       symbols[i].line);
	return text;
}

static void is_named(uint32_t number, uint32_t index, const char *want, const char *what)
{
	const char *got = name(number, index);

	ok(!strcmp(got, want), "%s: %s", what, got);
}

#define ANNOUNCED(number, kind, code) (!announce(program.codes, number, kind, code))
#define INDEX(bytecode)		      ((bytecode) + 64 - NODE_TAG) /* as in a frame */

static void test_interpreted(void)
{
	struct node_code code = sent(program.one);

	ok(ANNOUNCED(1, NODE_FUNCTION, &code), "a function is announced");
	is_named(1, INDEX(0), "one (/srv/a b.mjs:1)", "at its entry");
	is_named(1, INDEX(2), "one (/srv/a b.mjs:2)", "at the bytecode of a line");
	is_named(1, INDEX(4), "one (/srv/a b.mjs:2)", "behind it");
	is_named(1, INDEX(5), "one (/srv/a b.mjs:3)", "at the next one");
	is_named(1, INDEX(1000), "one (/srv/a b.mjs:1)", "behind its end: where it begins");
	is_named(1, 3, "one (/srv/a b.mjs:1)", "at what is no bytecode");
	is_named(1, NODE_NO_OFFSET, "one (/srv/a b.mjs:1)", "at none");
	code.function.name++;
	ok(ANNOUNCED(2, NODE_FUNCTION, &code), "one whose place another one has taken");
	is_named(2, INDEX(0), "[unknown JavaScript function] (-:0)", "it is not named");
	ok(node_codes__count_stale(program.codes, FRAME_KEY(2, INDEX(0))) == 1 &&
		   !node_codes__count_stale(program.codes, FRAME_KEY(1, INDEX(0))),
	   "it counts as stale, and the first one does not");
	code = sent(program.one);
	code.function.script_id = SMI(8);
	ok(ANNOUNCED(4, NODE_FUNCTION, &code), "one of another script, at the same addresses");
	is_named(4, INDEX(0), "[unknown JavaScript function] (-:0)", "it is not named");
	code = sent(program.one);
	code.function.texts++;
	ok(ANNOUNCED(6, NODE_FUNCTION, &code), "one that had another name, at the same addresses");
	is_named(6, INDEX(0), "[unknown JavaScript function] (-:0)", "it is not named");
	code = sent(program.one);
	code.function.literal = 1;
	ok(ANNOUNCED(5, NODE_FUNCTION, &code), "another one of the script, at the same addresses");
	is_named(5, INDEX(0), "[unknown JavaScript function] (-:0)", "it is not named");
	ok(announce(program.codes, 1, NODE_FUNCTION, &code) < 0, "a number comes once");
	code.space = 2;
	ok(announce(program.codes, 3, NODE_FUNCTION, &code) < 0, "of a process that is not known");
	is_named(77, 0, "", "a number that never came");
}

static void test_compiled(void)
{
	struct node_code code = sent_code(&program, program.optimized);

	ok(ANNOUNCED(10, NODE_CODE, &code), "optimized code is announced");
	is_named(10, 5, "one (/srv/a b.mjs:1)", "before its first position");
	is_named(10, 15, "one (/srv/a b.mjs:2)", "in the function");
	is_named(10, 20, "two (/srv/a b.mjs:4) < one (/srv/a b.mjs:2)", "in one inlined into it");
	is_named(10, 99, "one (/srv/a b.mjs:3)", "at its end");
	code.start++;
	ok(ANNOUNCED(11, NODE_CODE, &code), "code that other code has replaced");
	is_named(11, 20, "one (/srv/a b.mjs:1)", "the function alone is known");
	code = sent_code(&program, program.optimized);
	code.deopt += 8;
	ok(ANNOUNCED(14, NODE_CODE, &code), "code of the same size that was made anew there");
	is_named(14, 20, "one (/srv/a b.mjs:1)", "the function alone is known");
	code = sent_code(&program, program.optimized);
	code.function = sent(program.two).function;
	ok(ANNOUNCED(12, NODE_CODE, &code), "code of another function");
	is_named(12, 20, "two (/srv/a b.mjs:4)", "is not believed");
	code = sent_code(&program, make_code(KIND_TURBOFAN,
					     make_deopt(program.one, program.script, AT("two(1")),
					     UNTAG(program.optimized)[2]));
	ok(ANNOUNCED(15, NODE_CODE, &code), "code of which an inlined function is gone");
	is_named(15, 20, "[unknown JavaScript function] (-:0) < one (/srv/a b.mjs:2)",
		 "its caller alone is named");
	ok(node_codes__count_stale(program.codes, FRAME_KEY(15, 20)) == 1 &&
		   !node_codes__count_stale(program.codes, FRAME_KEY(15, 15)),
	   "the inlined one counts as stale, and the code outside of it does not");
	code = sent_code(&program, program.baseline);
	ok(ANNOUNCED(13, NODE_CODE, &code), "code of Sparkplug is announced");
	is_named(13, 3, "one (/srv/a b.mjs:1)", "before the first bytecode's");
	is_named(13, 17, "one (/srv/a b.mjs:1)", "of the first bytecode");
	is_named(13, 18, "one (/srv/a b.mjs:2)", "of the second one");
	is_named(13, 37, "one (/srv/a b.mjs:2)", "to its end");
	is_named(13, 38, "one (/srv/a b.mjs:3)", "of the third one");
	is_named(13, 50, "one (/srv/a b.mjs:1)", "behind the last one");
}

/* Returns the names of the scope, one after the other. */
static const char *name_of_scope(uint32_t number, uint64_t scope)
{
	uint64_t sfi = make_function(program.script, scope, make_bytes("", 0), "", 0);
	struct node_code code = sent(sfi);

	return ANNOUNCED(number, NODE_FUNCTION, &code) ? name(number, NODE_NO_OFFSET) : "failed";
}

static void test_names(void)
{
	uint64_t scope = make_scope("", AT("(n)"));
	const char *long_name = "a name that is longer than a word";

	is_named(0, 0, "", "nothing has the number 0");
	ok(!strcmp(name_of_scope(20, scope), "(anonymous) (/srv/a b.mjs:4)"), "no name");
	set(scope, 8, 4 | 3 << 12 | 1 << 14);
	set(scope, 80, make_text("inferred"));
	ok(!strcmp(name_of_scope(21, scope), "inferred (/srv/a b.mjs:4)"), "an inferred one");
	ok(!strcmp(name_of_scope(22, make_text(long_name)),
		   "a name that is longer than a word (/srv/a b.mjs:0)"),
	   "a name without a scope");
	ok(!strcmp(name_of_scope(23, make_string(TYPE_CONS, 6, make_text("one"), make_text("two"))),
		   "onetwo (/srv/a b.mjs:0)"),
	   "a string of two");
	ok(!strcmp(name_of_scope(24, make_string(TYPE_SLICED, 4, make_text(long_name), SMI(2))),
		   "name (/srv/a b.mjs:0)"),
	   "a part of a string");
	ok(!strcmp(name_of_scope(25, make_string(TYPE_THIN, 3, make_text("one"), 0)),
		   "one (/srv/a b.mjs:0)"),
	   "a string that another one stands for");
	ok(!strcmp(name_of_scope(26, make_string(TYPE_EXTERNAL, 6, 0, (uintptr_t)long_name)),
		   "a name (/srv/a b.mjs:0)"),
	   "a string outside of the heap");
	scope = make_string(TYPE_CONS, 6, 0, make_text("two"));
	set(scope, 16, scope);
	ok(!strcmp(name_of_scope(27, scope), "(anonymous) (/srv/a b.mjs:0)"), "one of itself");
	is_named(1, INDEX(2), "one (/srv/a b.mjs:2)", "the first one still has its name");
}

/* Tables of two versions of V8 for the same function: entry at 289, code 0 and 3 from 302, code 6
 * from 293. */
static void test_tables(void)
{
	uint8_t before[] = { 1, 0x88, 9, 2, 0x34, 7, 0, 7, 0x23 };
	uint8_t since[] = { 2, 0x88, 9, 7, 0x34, 14, 0, 14, 0x23 };
	const struct node_positions tables[] = { { before, sizeof(before), false },
						 { since, sizeof(since), true } };
	uint64_t at[3] = { 0, 0, 0 };

	for (int i = 0; i < 2; i++) {
		ok(node_positions__find(&tables[i], 0, &at[0]) &&
			   node_positions__find(&tables[i], 5, &at[1]) &&
			   node_positions__find(&tables[i], 1000, &at[2]) &&
			   NODE_POSITION_OFFSET(at[0]) == 302 &&
			   NODE_POSITION_OFFSET(at[1]) == 302 && NODE_POSITION_OFFSET(at[2]) == 293,
		   "a table of V8 %d: %d, %d, %d", i ? 14 : 13, NODE_POSITION_OFFSET(at[0]),
		   NODE_POSITION_OFFSET(at[1]), NODE_POSITION_OFFSET(at[2]));
	}
	ok(!node_positions__find(&(struct node_positions) { before, 0, false }, 0, &at[0]),
	   "an empty table");
	ok(!node_positions__find(&(struct node_positions) { before, 2, false }, 0, &at[0]),
	   "a table that ends in an entry");
}

/* Names of a process that ended remain as long as a sample may refer to its code. Then all are
 * freed. */
static void test_forget(void)
{
	struct u64map listed = {};

	u64map__put(&listed, 1, 1);
	node_codes__forget(program.codes, &listed);
	is_named(10, 15, "one (/srv/a b.mjs:2)", "missed once, code is named");
	node_codes__forget(program.codes, &listed);
	is_named(10, 15, "", "missed twice, it is gone");
	is_named(1, INDEX(2), "one (/srv/a b.mjs:2)",
		 "what is known stays, and what its name is in");
	u64map__clear(&listed);
	node_codes__forget(program.codes, &listed);
	node_codes__forget(program.codes, &listed);
	is_named(1, INDEX(2), "", "all of it is gone");
	u64map__done(&listed);
}

#define SCRIPTS	      24
#define LINES	      3000000
#define RETAINED_MOST (48U << 20)

/* A process that names any number of scripts, each with the maximum number of lines. */
static void test_many_lines(void)
{
	char *source = malloc(LINES);
	struct program many;
	uint64_t scope, positions, text;
	struct node_code code;
	size_t before;
	uint32_t i;

	ok(source && !make_program(&many), "a program of many scripts");
	memset(source, '\n', LINES);
	scope = make_scope("last", LINES - 1);
	positions = make_bytes("", 0);
	text = make_string(TYPE_EXTERNAL, LINES, 0, (uintptr_t)source);
	before = node_codes__charged(many.codes);
	for (i = 1; i <= SCRIPTS; i++) {
		uint64_t script = make_script();

		set(script, 8, text);
		set(script, 64, SMI(100 + i));
		code = sent(make_function(script, scope, positions, "", 0));
		if (announce(many.codes, i, NODE_FUNCTION, &code))
			break;
	}
	is_int(i, SCRIPTS + 1, "all are announced");
	ok(node_codes__charged(many.codes) > LINES * sizeof(uint32_t) &&
		   node_codes__charged(many.codes) <= RETAINED_MOST,
	   "of %d scripts with %d lines each %zu bytes are kept", SCRIPTS, LINES,
	   node_codes__charged(many.codes));
	program = many;
	is_named(1, NODE_NO_OFFSET, "last (/srv/a b.mjs:3000000)", "the first one has lines");
	is_named(SCRIPTS, NODE_NO_OFFSET, "last (/srv/a b.mjs:0)", "the last one has none");
	for (i = 0; i < 2; i++)
		node_codes__forget(many.codes, &(struct u64map) {});
	is_int(node_codes__charged(many.codes), before, "nothing is kept of what was forgotten");
	node_codes__free(many.codes);
	free(source);
}

int main(void)
{
	ok(!make_program(&program), "a program");
	test_interpreted();
	test_compiled();
	test_names();
	test_tables();
	node_codes__detach(program.codes, 1);
	is_named(1, INDEX(2), "one (/srv/a b.mjs:2)", "what has a name keeps it at the end");
	test_forget();
	is_int(node_codes__charged(program.codes), 0, "no memory is kept");
	node_codes__free(program.codes);
	test_many_lines();
	return tap__done();
}
