// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <iconv.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "tests/tap.h"

typedef int (*writer_fn)(const struct profile *profile, const struct output_opts *opts, FILE *out);

static const struct output_opts plain = { 0 };

/* Returns the output of @writer, owned by the caller. */
static char *render(writer_fn writer, const struct profile *profile, const struct output_opts *opts)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err = writer(profile, opts, out);

	fclose(out);
	if (err)
		tap__diag("writer failed: %d", err);
	return text;
}

static void check_rendered(writer_fn writer, const struct profile *profile,
			   const struct output_opts *opts, const char *want, const char *what)
{
	char *got = render(writer, profile, opts);

	is_str(got, want, "%s", what);
	free(got);
}

static uint32_t frame_of(struct profile *profile, uint8_t kind, const char *name, const char *file,
			 uint32_t line)
{
	uint32_t frame = 0;

	profile__frame(profile, kind, name, file, line, &frame);
	return frame;
}

static void check_escapes(void)
{
	static const struct {
		const char *text, *markup, *json, *printable;
	} cases[] = {
		{ "<a href=\"x\">&'", "&lt;a href=&quot;x&quot;&gt;&amp;&#39;",
		  "\"\\u003ca href=\\u0022x\\u0022\\u003e\\u0026'\"", "<a href=\"x\">&'" },
		{ "a\\b", "a\\b", "\"a\\u005cb\"", "a\\b" },
		{ "a\n\t\x1b\x7f", "a  \xef\xbf\xbd\xef\xbf\xbd", "\"a  \xef\xbf\xbd\xef\xbf\xbd\"",
		  "a????" },
		{ "\xc2\x9b", "\xef\xbf\xbd", "\"\xef\xbf\xbd\"", "?" },
		/* the first and the last control character, and the next one */
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "\xef\xbf\xbd\xef\xbf\xbd\xc2\xa0",
		  "\"\xef\xbf\xbd\xef\xbf\xbd\xc2\xa0\"", "??\xc2\xa0" },
		/* byte order mark, zero-width space, variation selector, tag */
		{ "\xef\xbb\xbf\xe2\x80\x8b\xef\xb8\x8f\xf3\xa0\x81\x81",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
		  "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", "????" },
		{ "\xe2\x80\xa8\xe2\x80\xae", "\xef\xbf\xbd\xef\xbf\xbd",
		  "\"\xef\xbf\xbd\xef\xbf\xbd\"", "??" },
		{ "\xe6\xbc\xa2\xf0\x9f\x94\xa5", "\xe6\xbc\xa2\xf0\x9f\x94\xa5",
		  "\"\xe6\xbc\xa2\xf0\x9f\x94\xa5\"", "\xe6\xbc\xa2\xf0\x9f\x94\xa5" },
	};
	size_t i, size;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = NULL, *copy = strdup(cases[i].text);
		FILE *out = open_memstream(&text, &size);

		escape__markup(out, cases[i].text);
		fputc('|', out);
		escape__json(out, cases[i].text);
		fclose(out);
		text[strlen(cases[i].markup)] = '\0';
		is_str(text, cases[i].markup, "markup %zu", i);
		is_str(text + strlen(cases[i].markup) + 1, cases[i].json, "JSON %zu", i);
		escape__printable(copy);
		is_str(copy, cases[i].printable, "printable %zu", i);
		free(text);
		free(copy);
	}
}

static int is_utf8(char *text)
{
	iconv_t convert = iconv_open("UTF-32LE", "UTF-8");
	size_t left = strlen(text), room = left * 4 + 4;
	char *buf = malloc(room), *to = buf;
	int valid = iconv(convert, &text, &left, &to, &room) != (size_t)-1;

	iconv_close(convert);
	free(buf);
	return valid;
}

/* Writes random bytes, weighted towards bytes that begin and continue characters. iconv is the
 * oracle. */
static void check_random_bytes(void)
{
	unsigned int bad = 0, i, k;
	char text[24], *json;
	size_t size;
	FILE *out;

	srand(2);
	for (k = 0; k < 20000; k++) {
		memset(text, 0, sizeof(text));
		for (i = 0; i < sizeof(text) - 1; i++)
			text[i] = rand() % 3 ? 0x80 + rand() % 0x80 : 1 + rand() % 0x7f;
		out = open_memstream(&json, &size);
		escape__json(out, text);
		fclose(out);
		bad += !is_utf8(json) || strpbrk(json, "<>&\n\r");
		/* a text without a character to replace must not change */
		bad += is_utf8(text) && !strpbrk(json, "\\") && !strstr(json, "\xef\xbf\xbd") &&
		       strpbrk(text, "\t\n\r") == NULL &&
		       strncmp(json + 1, text, strlen(text)) != 0;
		escape__printable(text);
		bad += !is_utf8(text);
		free(json);
	}
	is_int(bad, 0, "random bytes always become UTF-8");
}

/* Makes a profile with the same label from different frames, characters that the format needs, and
 * a stack without frames. */
static struct profile *tricky_profile(void)
{
	struct profile *profile = profile__new();
	int python = profile__kind(profile, "python", "_[py]");
	uint32_t root = frame_of(profile, KIND_NATIVE, "main", NULL, 0);
	uint32_t x = frame_of(profile, python, "f", "/one/x.py", 0);
	uint32_t y = frame_of(profile, python, "f", "/two/x.py", 0);
	uint32_t z = frame_of(profile, KIND_KERNEL, "a;b;\x1b\n", NULL, 0);
	uint32_t longer = frame_of(profile, KIND_NATIVE, "main1", NULL, 0);

	profile__add(profile, (uint32_t[]) { root, y, z }, 3, 4);
	profile__add(profile, (uint32_t[]) { longer }, 1, 16);
	profile__add(profile, (uint32_t[]) { root, x, z }, 3, 1);
	profile__add(profile, (uint32_t[]) { root }, 1, 8);
	profile__add(profile, (uint32_t[]) { root, x, x }, 3, 2);
	profile__add(profile, NULL, 0, 32);
	profile__add(profile, (uint32_t[]) { root, x }, 2, 0);
	return profile;
}

static void check_folded(void)
{
	struct profile *profile = tricky_profile();

	check_rendered(output__folded, profile, &plain,
		       "[no stack] 32\n"
		       "main 8\n"
		       "main1 16\n"
		       "main;f (x.py);a:b:?? 5\n"
		       "main;f (x.py);f (x.py) 2\n",
		       "folded: like stacks are one line, sorted, printable");
	check_rendered(output__folded, profile, &(struct output_opts) { .annotate = 1 },
		       "[no stack] 32\n"
		       "main1_[n] 16\n"
		       "main_[n] 8\n"
		       "main_[n];f (x.py)_[py];a:b:??_[k] 5\n"
		       "main_[n];f (x.py)_[py];f (x.py)_[py] 2\n",
		       "folded, annotated");
	profile__free(profile);
}

static void check_table(void)
{
	struct profile *profile = tricky_profile();

	profile->target = strdup("pid 1\x1b[2J (app)");
	profile->duration_s = 2.5;
	profile->frequency_hz = 99;
	profile__add_loss(profile, "ring buffer full", 3);
	check_rendered(
		output__table, profile, &plain,
		"pid 1?[2J (app)\n"
		"63 samples, 2.5 s, 99 Hz\n"
		"lost: ring buffer full: 3\n"
		"\n"
		"Script%    Script  Self%       Self Total%      Total  Kind     Function\n"
		" 50.8%     323 ms  50.8%     323 ms  50.8%     323 ms  -        [no stack]\n"
		" 25.4%     162 ms  25.4%     162 ms  25.4%     162 ms  native   main1\n"
		" 12.7%    80.8 ms  12.7%    80.8 ms  23.8%     152 ms  native   main\n"
		"  6.3%    40.4 ms   0.0%          0   6.3%    40.4 ms  python   f (x.py)\n"
		"  4.8%    30.3 ms   3.2%    20.2 ms   4.8%    30.3 ms  python   f (x.py)\n"
		"  0.0%          0   7.9%    50.5 ms   7.9%    50.5 ms  kernel   a;b;??\n"
		"Script: a function's own weight, with the native code that it calls\n",
		"table: a function per file, recursion counted once");
	check_rendered(
		output__table, profile, &(struct output_opts) { .rows = 1, .annotate = 1 },
		"pid 1?[2J (app)\n"
		"63 samples, 2.5 s, 99 Hz\n"
		"lost: ring buffer full: 3\n"
		"\n"
		"Script%    Script  Self%       Self Total%      Total  Kind     Function\n"
		" 50.8%     323 ms  50.8%     323 ms  50.8%     323 ms  -        [no stack]\n"
		"(5 more)\n"
		"Script: a function's own weight, with the native code that it calls\n",
		"table: as many rows as wanted");
	profile__free(profile);
}

/* Weights of any size, below and above the points where rounding adds a digit. */
static void check_weights(void)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 us" },
		{ 9994, "9.99 us" },
		{ 9996, "10.0 us" },
		{ 99949, "99.9 us" },
		{ 99951, "100 us" },
		{ 999499, "999 us" },
		{ 999501, "1.00 ms" },
		{ 1230000, "1.23 ms" },
		{ 999500001, "1.00 s" },
		{ 45600000000, "45.6 s" },
		{ 7200000000000, "7200 s" },
		{ UINT64_MAX, "18446744074 s" },
	};
	struct profile *profile = profile__new();
	char text[32];
	size_t i;

	output__weight(profile, UINT64_MAX, text, sizeof(text));
	is_str(text, "18446744073709551615", "samples are a number");
	profile->unit = PROFILE_NANOSECONDS;
	profile->counts_calls = true;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		output__weight(profile, cases[i].ns, text, sizeof(text));
		is_str(text, cases[i].text, "%llu ns", (unsigned long long)cases[i].ns);
	}
	profile__free(profile);
}

/* Calls of three functions, one of which took no measurable time. */
static void check_times(void)
{
	struct profile *profile = profile__new();
	uint32_t f = frame_of(profile, KIND_NATIVE, "f", NULL, 0);
	uint32_t g = frame_of(profile, KIND_NATIVE, "g", NULL, 0);
	uint32_t tiny = frame_of(profile, KIND_NATIVE, "tiny", NULL, 0);
	char *text;

	profile->unit = PROFILE_NANOSECONDS;
	profile->counts_calls = true;
	profile->duration_s = 2;
	profile__add_calls(profile, &f, 1, 1500000, 3);
	profile__add_calls(profile, (uint32_t[]) { f, f }, 2, 500000, 20000);
	profile__add_calls(profile, (uint32_t[]) { f, g }, 2, 1999000, 1);
	profile__add_calls(profile, (uint32_t[]) { f, g }, 2, 1000, 1);
	profile__add_calls(profile, (uint32_t[]) { f, tiny }, 2, 0, 7);
	check_rendered(output__table, profile, &plain,
		       "4.00 ms in 20012 calls, recorded for 2.0 s\n"
		       "\n"
		       " Self%       Self Total%      Total      Calls  Kind     Function\n"
		       " 50.0%    2.00 ms 100.0%    4.00 ms      20003  native   f\n"
		       " 50.0%    2.00 ms  50.0%    2.00 ms          2  native   g\n"
		       "  0.0%       0 ns   0.0%       0 ns          7  native   tiny\n",
		       "table of times");
	check_rendered(output__folded, profile, &plain, "f 1500000\nf;f 500000\nf;g 2000000\n",
		       "folded: nanoseconds");
	text = render(output__flame_html, profile, &plain);
	ok(strstr(text, "\"calls\":\"ADgxTCH\""), "flame graph: calls by node: 0 3 20000 2 7");
	free(text);
	profile->unit = PROFILE_SAMPLES;
	profile->counts_calls = false;
	text = render(output__flame_html, profile, &plain);
	ok(!strstr(text, "\"calls\":"), "flame graph of samples: no calls");
	free(text);
	profile__free(profile);
}

/* Random stacks of ten functions. The expected sums are counted stack by stack. */
static void check_sums(void)
{
	struct profile *profile = profile__new();
	uint64_t self[10] = { 0 }, total[10] = { 0 }, samples = 0, folded = 0;
	uint32_t frames[10], stack[12], i, k, n, bad = 0, rows = 0;
	char name[8], *text, *line, *rest;

	srand(3);
	for (i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		frames[i] = frame_of(profile, KIND_NATIVE, name, NULL, 0);
	}
	for (k = 0; k < 3000; k++) {
		uint32_t weight = rand() % 4, leaf = 0, seen = 0;

		for (i = 0, n = 1 + rand() % ARRAY_SIZE(stack); i < n; i++) {
			leaf = rand() % 10;
			stack[i] = frames[leaf];
			total[leaf] += seen & 1U << leaf ? 0 : weight;
			seen |= 1U << leaf;
		}
		self[leaf] += weight;
		samples += weight;
		profile__add(profile, stack, n, weight);
	}
	text = render(output__table, profile, &plain);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long got_self, got_total;

		if (sscanf(line, "%*f%% %llu %*f%% %llu native f%u", &got_self, &got_total, &i) !=
		    3)
			continue;
		rows++;
		bad += i > 9 || self[i] != got_self || total[i] != got_total;
	}
	is_int(rows, 10, "a row for each function");
	is_int(bad, 0, "self and total are those counted stack by stack");
	is_int(profile->total, samples, "samples");
	free(text);
	text = render(output__folded, profile, &plain);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		folded += strtoull(strrchr(line, ' '), NULL, 10);
	is_int(folded, samples, "folded lines sum up to the samples");
	free(text);
	profile__free(profile);
}

static size_t count_of(const char *text, const char *part)
{
	size_t n = 0;

	for (text = strstr(text, part); text; text = strstr(text + 1, part))
		n++;
	return n;
}

/* The markup of a page consists only of the writer's own: the two scripts and the style. */
static void check_flame(writer_fn writer, const char *what)
{
	static const char *const evils[] = { "<script>x()</script>", "]]></script>", "</style>",
					     "<!-- \xff\n", "a\"b'c\\d" };
	struct profile *profile = profile__new();
	uint32_t frame;
	char *text;
	size_t i;

	profile->target = strdup("</title><script>x()</script>");
	for (i = 0; i < ARRAY_SIZE(evils); i++) {
		frame = frame_of(profile, KIND_NATIVE, evils[i], evils[i], 1);
		profile__add(profile, &frame, 1, 1);
		profile__add_loss(profile, evils[i], 1);
	}
	profile__kind(profile, "</script><script>", "");
	text = render(writer, profile, &plain);
	is_int(count_of(text, "<script"), 2, "%s: two scripts", what);
	is_int(count_of(text, "</script"), 2, "%s: both end once", what);
	is_int(count_of(text, "</style"), 1, "%s: one style", what);
	is_int(count_of(text, "</title"), 1, "%s: one title", what);
	is_int(count_of(text, "<!--"), *what == 's', "%s: no comment but braid's mark", what);
	is_int(count_of(text, "<![CDATA["), count_of(text, "]]>"), "%s: sections end once", what);
	is_int(count_of(text, "http"), count_of(text, "http://www.w3.org/") + 1 - (*what == 's'),
	       "%s: no address but of name spaces (and http-equiv)", what);
	ok(is_utf8(text), "%s: UTF-8", what);
	free(text);
	profile__free(profile);
}

/* A stack that overflows any recursive walk, an empty profile, and a full disk. */
static void check_extremes(writer_fn writer, const char *what)
{
	enum { DEPTH = 300000 };
	struct profile *profile = profile__new();
	uint32_t *stack = malloc(DEPTH * sizeof(*stack)), i;
	char *text;
	FILE *full;

	text = render(writer, profile, &plain);
	ok(text != NULL, "%s: an empty profile", what);
	free(text);
	for (i = 0; i < DEPTH; i++)
		stack[i] = frame_of(profile, KIND_NATIVE, i % 2 ? "odd" : "even", NULL, 0);
	profile__add(profile, stack, DEPTH, 1);
	text = render(writer, profile, &plain);
	ok(text && *text, "%s: %d frames deep", what, DEPTH);
	free(text);
	full = fopen("/dev/full", "w");
	is_int(writer(profile, &plain, full), -ENOSPC, "%s: a full disk is told", what);
	fclose(full);
	free(stack);
	profile__free(profile);
}

/* Weights whose sum overflows, with names that fill a line. */
static void check_overflow(writer_fn writer, const char *what)
{
	struct profile *profile = profile__new();
	char name[20001], *text;
	uint32_t i, frame;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (i = 0; i < 4; i++) {
		name[0] = 'a' + i;
		frame = frame_of(profile, KIND_NATIVE, name, NULL, 0);
		profile__add(profile, &frame, 1, UINT64_MAX - i);
	}
	text = render(writer, profile, &plain);
	ok(text && strstr(text, "18446744073709551615"), "%s: weights without bounds", what);
	free(text);
	profile__free(profile);
}

int main(void)
{
	check_escapes();
	check_random_bytes();
	check_folded();
	check_table();
	check_weights();
	check_times();
	check_sums();
	check_flame(output__flame_html, "html");
	check_flame(output__flame_svg, "svg");
	check_extremes(output__table, "table");
	check_extremes(output__folded, "folded");
	check_extremes(output__flame_html, "html");
	check_extremes(output__flame_svg, "svg");
	check_extremes(output__pprof, "pprof");
	check_extremes(output__speedscope, "speedscope");
	check_extremes(output__perf, "perf");
	check_extremes(output__dot, "dot");
	check_overflow(output__table, "table");
	check_overflow(output__folded, "folded");
	check_overflow(output__flame_html, "html");
	check_overflow(output__flame_svg, "svg");
	return tap__done();
}
