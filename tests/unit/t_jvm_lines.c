// SPDX-License-Identifier: GPL-2.0-or-later
/* HotSpot's compressed numbers, line tables and scopes, written here after HotSpot's sources, and
 * broken ones. tests/long/jvm_tables.t has real ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_lines.h"
#include "runtimes/jvm/jvm_scopes.h"
#include "runtimes/jvm/jvm_stream.h"
#include "tests/tap.h"

#define BYTES_MAX 4096
#define ROUNDS	  200000

struct writer {
	uint8_t bytes[BYTES_MAX];
	size_t n;
	bool is_without_zero;
};

static uint32_t random_u32(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 33;
}

/* Writes a number as UNSIGNED5::write_uint does: as many digits of base 64 as needed, the last one
 * a low one. */
static void put_u32(struct writer *to, uint32_t value)
{
	uint32_t excluded = to->is_without_zero, low = 192 - excluded;

	for (size_t i = 0; i < 4 && value >= low; i++) {
		value -= low;
		to->bytes[to->n++] = 192 + value % 64;
		value /= 64;
	}
	to->bytes[to->n++] = excluded + value;
}

static void put_i32(struct writer *to, int32_t value)
{
	put_u32(to, (uint32_t)value << 1 ^ (value < 0 ? UINT32_MAX : 0));
}

static struct jvm_stream stream_of(const struct writer *from)
{
	return (struct jvm_stream) { .bytes = from->bytes,
				     .size = from->n,
				     .is_without_zero = from->is_without_zero };
}

/* --- numbers --- */

static void check_numbers(bool is_without_zero)
{
	static const uint32_t edges[] = { 0,	     1,		63,	   64,	       127,
					  128,	     189,	190,	   191,	       192,
					  193,	     255,	256,	   0x307e,     0x307f,
					  0x3080,    0xc207e,	0xc207f,   0xc3ff,     0x308207,
					  0x308207f, 0x3082080, INT32_MAX, 0x80000000, UINT32_MAX };
	const char *what = is_without_zero ? "without zero" : "old";
	size_t wrong = 0, zeros = 0;

	for (size_t i = 0; i < ROUNDS; i++) {
		struct writer writer = { .is_without_zero = is_without_zero };
		uint32_t value = random_u32() >> random_u32() % 32;
		struct jvm_stream stream;

		if (i < ARRAY_SIZE(edges))
			value = edges[i];
		put_u32(&writer, value);
		put_i32(&writer, (int32_t)value);
		stream = stream_of(&writer);
		wrong += jvm_stream__u32(&stream) != value;
		wrong += jvm_stream__i32(&stream) != (int32_t)value;
		wrong += stream.failed || stream.at != writer.n;
		zeros += memchr(writer.bytes, 0, writer.n) != NULL;
		jvm_stream__u32(&stream);
		wrong += !stream.failed;
	}
	is_int(wrong, 0, "numbers, %s", what);
	ok(is_without_zero ? !zeros : zeros, "numbers, %s: zero bytes", what);
}

/* The largest numbers of 1 to 4 bytes, as in unsigned5.hpp, except the last one, which is too large
 * by one there. */
static void check_lengths(void)
{
	static const uint32_t last[] = { 0xbe, 0x307e, 0xc207e, 0x308207e };
	size_t wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(last); i++)
		for (size_t more = 0; more < 2; more++) {
			struct writer writer = { .is_without_zero = true };

			put_u32(&writer, last[i] + more);
			wrong += writer.n != i + 1 + more;
		}
	is_int(wrong, 0, "numbers: lengths");
}

static void check_broken_numbers(void)
{
	static const uint8_t zero[] = { 200, 0 }, all_high[] = { 255, 255, 255, 255, 255, 255 };
	struct jvm_stream stream = { .bytes = zero, .size = sizeof(zero), .is_without_zero = true };

	is_int(jvm_stream__u32(&stream), 0, "a zero byte where there are none");
	ok(stream.failed, "is told");
	is_int(jvm_stream__u32(&stream), 0, "and nothing follows");
	stream = (struct jvm_stream) { .bytes = zero, .size = sizeof(zero) };
	is_int(jvm_stream__u32(&stream), 200, "a zero byte where there are some");
	stream = (struct jvm_stream) { .bytes = zero, .size = 1 };
	is_int(jvm_stream__u32(&stream), 0, "a number that is cut off");
	ok(stream.failed, "is told");
	stream = (struct jvm_stream) { .bytes = all_high, .size = sizeof(all_high) };
	jvm_stream__u32(&stream);
	ok(!stream.failed && stream.at == 5, "a number has at most 5 bytes");
}

/* --- lines --- */

/* CompressedLineNumberWriteStream::write_pair */
static void put_line(struct writer *to, int bci_step, int line_step)
{
	if (bci_step >= 0 && bci_step < 32 && line_step >= 0 && line_step < 8 &&
	    (bci_step || line_step) && !(bci_step == 31 && line_step == 7)) {
		to->bytes[to->n++] = bci_step << 3 | line_step;
		return;
	}
	to->bytes[to->n++] = 0xff;
	put_i32(to, bci_step);
	put_i32(to, line_step);
}

static void check_lines(bool is_without_zero)
{
	size_t wrong = 0, entries = 0;

	for (size_t round = 0; round < ROUNDS / 100; round++) {
		struct writer writer = { .is_without_zero = is_without_zero };
		struct jvm_line want[100], at = {};
		struct jvm_method_lines *lines = NULL;
		size_t n = random_u32() % ARRAY_SIZE(want);
		struct jvm_stream stream;

		for (size_t i = 0; i < n; i++) {
			want[i].bci = random_u32() % (i % 3 ? 65536 : 300);
			want[i].line = random_u32() % (i % 5 ? 65536 : 300);
			if (random_u32() % 2) { /* near the previous one */
				want[i].bci = (at.bci + random_u32() % 40) & 0xffff;
				want[i].line = (at.line + random_u32() % 10) & 0xffff;
			}
			put_line(&writer, (int)want[i].bci - (int)at.bci,
				 (int)want[i].line - (int)at.line);
			at = want[i];
		}
		writer.bytes[writer.n++] = 0;
		stream = stream_of(&writer);
		wrong += jvm_lines__decode(&stream, &lines) != 0;
		wrong += n ? !lines || lines->n != n ||
					 memcmp(lines->list, want, n * sizeof(*want)) != 0
			   : lines != NULL;
		entries += n;
		free(lines);
	}
	is_int(wrong, 0, "%zu lines, %s", entries, is_without_zero ? "without zero" : "old");
}

static int decode(const uint8_t *bytes, size_t size, struct jvm_method_lines **ret)
{
	struct jvm_stream stream = { .bytes = bytes, .size = size };

	return jvm_lines__decode(&stream, ret);
}

static void check_find(void)
{
	/* 0: line 3, 2: line 9, 7: line 4, then a second entry for 2, and one for 5 */
	static const uint8_t table[] = { 3, 2 << 3 | 6, 0xff, 10, 9, 0xff, 9, 1, 3 << 3 | 2, 0 };
	static const uint32_t want[] = { 3, 3, 9, 3, 3, 5, 5, 4, 4 };
	struct jvm_method_lines *lines = NULL;
	size_t wrong = 0;

	is_int(decode(table, sizeof(table), &lines), 0, "a table");
	is_int(lines ? lines->n : 0, 5, "its entries");
	for (uint32_t bci = 0; bci < ARRAY_SIZE(want); bci++)
		wrong += jvm_lines__find(lines, bci) != want[bci];
	is_int(wrong, 0, "lines as Method::line_number_from_bci tells them");
	is_int(jvm_lines__find(lines, 65535), 4, "the last bytecode");
	is_int(jvm_lines__find(lines, UINT32_MAX), 0, "no bytecode");
	is_int(jvm_lines__find(NULL, 0), 0, "no table");
	free(lines);
	lines = NULL;
	is_int(decode((const uint8_t *)"\x2b", 2, &lines), 0, "a table that begins later");
	is_int(jvm_lines__find(lines, 4), 0, "before its first line");
	is_int(jvm_lines__find(lines, 5), 3, "at its first line");
	free(lines);
}

static void check_broken_lines(void)
{
	static const uint8_t back[] = { 3, 0xff, 1, 0, 0 },
			     far[] = { 0xff, 0xff, 0xff, 0xff, 9, 0, 0 };
	struct jvm_method_lines *lines = NULL;
	size_t wrong = 0, good = 0;

	is_int(decode(back, 0, &lines), -EBADMSG, "nothing");
	is_int(decode(back, 1, &lines), -EBADMSG, "a table without its end");
	is_int(decode(back, 3, &lines), -EBADMSG, "... in the middle of an entry");
	is_int(decode(back, sizeof(back), &lines), -EBADMSG, "a negative bytecode index");
	is_int(decode(far, sizeof(far), &lines), -EBADMSG, "a bytecode index that is too large");
	ok(!lines, "nothing is left");
	for (size_t round = 0; round < ROUNDS; round++) {
		struct writer writer = { .n = random_u32() % 40, .is_without_zero = round % 2 };
		struct jvm_stream stream;
		uint8_t *exact; /* exact allocation, so that ASan reports a read beyond it */
		int rc;

		for (size_t i = 0; i < writer.n; i++)
			writer.bytes[i] = random_u32() % 4 ? random_u32() : 0xff;
		stream = stream_of(&writer);
		exact = malloc(writer.n + 1);
		memcpy(exact, writer.bytes, writer.n);
		exact = realloc(exact, writer.n ? writer.n : 1);
		stream.bytes = exact;
		lines = NULL;
		rc = jvm_lines__decode(&stream, &lines);
		wrong += rc && (rc != -EBADMSG || lines);
		for (size_t i = 0; lines && i < lines->n; i++)
			wrong += lines->list[i].bci > 65535 || lines->list[i].line > 65535;
		good += !rc;
		free(lines);
		free(exact);
	}
	is_int(wrong, 0, "broken tables");
	ok(good > 100, "%zu of them good by chance", good);
}

/* --- scopes --- */

static void put_scope(struct writer *to, uint32_t caller, uint32_t method, int bci)
{
	put_u32(to, caller);
	put_u32(to, method);
	put_u32(to, bci + 1);
}

/* Code of C2 (JDK 25). A jump decides which of two inlined methods is called. C2 moved a volatile
 * load of both in front of the jump, and removed all of the load but its fence. */
static void test_places_prove(void)
{
	static const uint8_t code[48] = "\x0f\x1f\x44\x00\x00"	   /* 0: nop */
					"\x83\xfa\x1c"		   /* 5: cmp $28,%edx */
					"\x75\x23"		   /* 8: jne */
					"\x45\x89\x53\x78"	   /* 10: mov %r10d,120(%r11) */
					"\xf0\x83\x44\x24\xc0\x00" /* 14: lock addl */
					"\x41\xbb\x01\x00\x00\x00" /* 20: mov $1,%r11d */
					"\x90\x90";

	ok(!jvm_scopes__prove(code, 0, 10) && !jvm_scopes__prove(code, 5, 14),
	   "a jump in front of the place behind");
	ok(!jvm_scopes__prove(code, 0, 8), "a place at a jump");
	ok(!jvm_scopes__prove(code, 10, 20) && !jvm_scopes__prove(code + 20, 0, 6),
	   "a place at a constant");
	ok(!jvm_scopes__prove(code, 10, 15), "a place within an instruction");
	ok(jvm_scopes__prove(code, 10, 14) && jvm_scopes__prove(code, 0, 5) &&
		   jvm_scopes__prove(code + 10, 4, 16),
	   "places that prove the methods");
}

static void check_scopes(bool is_without_zero)
{
	struct writer writer = { .bytes = { 0xff }, .n = 1, .is_without_zero = is_without_zero };
	uint32_t outer = 1, inner, entry;
	struct jvm_scopes scopes;
	struct jvm_scope_place place;
	uint32_t start = 0, end = 0;

	put_scope(&writer, 0, 1, 300);
	inner = writer.n;
	put_scope(&writer, outer, 2, 0);
	entry = writer.n;
	put_scope(&writer, outer, 3, -1);
	{
		struct jvm_pc pcs[] = {
			{ -1, 0 }, { 10, outer }, { 20, inner }, { 40, entry }, { INT32_MAX, 0 }
		};

		scopes = (struct jvm_scopes) { .pcs = pcs,
					       .n_pcs = ARRAY_SIZE(pcs),
					       .data = writer.bytes,
					       .size = writer.n,
					       .is_without_zero = is_without_zero };
		is_int(jvm_scopes__at(&scopes, 20, false), inner, "a return address");
		is_int(jvm_scopes__at(&scopes, 19, true), inner, "an instruction before it");
		is_int(jvm_scopes__at(&scopes, 20, true), entry, "the instruction there");
		is_int(jvm_scopes__at(&scopes, 0, false), outer, "before the first place");
		is_int(jvm_scopes__at(&scopes, 40, true), entry, "behind the last place");
		is_int(jvm_scopes__at(&scopes, 1U << 30, true), entry, "far behind it");
		ok(jvm_scopes__describe(&scopes, 20) && !jvm_scopes__describe(&scopes, 19) &&
			   !jvm_scopes__describe(&scopes, 21),
		   "return addresses that are described");
		ok(!jvm_scopes__describe(&scopes, INT32_MAX), "the last place describes nothing");
		ok(!jvm_scopes__agree(&scopes, 5, &start, &end) &&
			   !jvm_scopes__agree(&scopes, 15, &start, &end) &&
			   !jvm_scopes__agree(&scopes, 30, &start, &end) &&
			   !jvm_scopes__agree(&scopes, 50, &start, &end),
		   "places around an instruction that differ");
		pcs[3].scope = inner;
		ok(jvm_scopes__agree(&scopes, 20, &start, &end) &&
			   jvm_scopes__agree(&scopes, 39, &start, &end) &&
			   !jvm_scopes__agree(&scopes, 40, &start, &end),
		   "... and that agree");
		ok(jvm_scopes__agree(&scopes, 20, &start, &end) && start == 20 && end == 40,
		   "... and where they are");
		scopes.n_pcs = 1;
		is_int(jvm_scopes__at(&scopes, 5, true), 0, "no place at all");
		scopes.n_pcs = 0;
		is_int(jvm_scopes__at(&scopes, 5, false), 0, "no table");
	}
	is_int(jvm_scopes__read(&scopes, inner, &place), 0, "an inlined scope");
	ok(place.method == 2 && place.bci == 0 && place.caller == outer, "what it says");
	is_int(jvm_scopes__read(&scopes, outer, &place), 0, "its caller");
	ok(place.method == 1 && place.bci == 300 && !place.caller, "what it says");
	is_int(jvm_scopes__read(&scopes, entry, &place), 0, "a scope at its method's entry");
	is_int(place.bci, 0, "its bytecode index");
	is_int(jvm_scopes__read(&scopes, writer.n - 1, &place), -EBADMSG, "a scope cut off");
	is_int(jvm_scopes__read(&scopes, writer.n + 7, &place), -EBADMSG, "a scope outside");
}

/* A walk ends on any data. */
static void check_broken_scopes(void)
{
	size_t steps = 0, deepest = 0;

	for (size_t round = 0; round < ROUNDS / 10; round++) {
		struct writer writer = { .n = 200, .is_without_zero = round % 2 };
		struct jvm_scopes scopes = { .data = writer.bytes,
					     .size = writer.n,
					     .is_without_zero = round % 2 };
		struct jvm_scope_place place;
		size_t depth = 0;

		for (size_t i = 0; i < writer.n; i++)
			writer.bytes[i] = random_u32() % 210;
		for (uint32_t scope = random_u32() % 256; scope; scope = place.caller, depth++)
			if (jvm_scopes__read(&scopes, scope, &place))
				break;
		steps += depth;
		deepest = max_of(deepest, depth);
	}
	ok(deepest < 200 && steps > 1000, "broken scopes: %zu steps, up to %zu deep", steps,
	   deepest);
}

int main(void)
{
	check_numbers(false);
	check_numbers(true);
	check_lengths();
	check_broken_numbers();
	check_lines(false);
	check_lines(true);
	check_find();
	check_broken_lines();
	test_places_prove();
	check_scopes(false);
	check_scopes(true);
	check_broken_scopes();
	return tap__done();
}
