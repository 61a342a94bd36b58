// SPDX-License-Identifier: GPL-2.0-or-later
/* Results as text and as JSON. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result.h"
#include "tests/tap.h"

/* Returns the output, owned by the caller. */
static char *write_all(const struct result *result, bool json)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	is_int(result__write(result, json, out), 0, "written as %s", json ? "JSON" : "text");
	fclose(out);
	return text;
}

static struct result *example(void)
{
	static const char *const columns[] = { "way", "a hit|ns", "ratio", NULL };
	struct result *result = result__new();
	struct figure sure = { .median = 1234.5, .low = 1200, .high = 1300.25, .n = 8 };
	struct figure unsure = { .median = 2, .low = 1, .high = 3, .n = 3, .unsure = true };

	result__note(result, "Linux %d", 6);
	result__table(result, "traps", "What a hit costs", columns);
	result__row(result);
	result__text(result, "nop");
	result__figure(result, &sure, 1);
	result__number(result, 1, 2);
	result__row(result);
	result__text(result, "push \xc3\xa9");
	result__figure(result, &unsure, 0);
	result__row(result);
	result__text(result, "none");
	result__empty(result);
	result__number(result, NAN, 2);
	result__note(result, "the \"floor\" <is> the kernel's");
	result__table(result, "empty", "Nothing\x1b[31m", columns);
	return result;
}

static void test_text(void)
{
	struct result *result = example();
	char *text = write_all(result, false);

	is_str(text,
	       "Linux 6\n"
	       "\n"
	       "What a hit costs\n"
	       "  way                     a hit, ns  ratio\n"
	       "  nop     1234.5 (1200.0 to 1300.2)   1.00\n"
	       "  push \xc3\xa9                2 (1 to 3?)      -\n"
	       "  none                            -      -\n"
	       "  the \"floor\" <is> the kernel's\n"
	       "\n"
	       "Nothing?[31m\n"
	       "  way  a hit, ns  ratio\n",
	       "as text");
	free(text);
	result__free(result);
}

static void test_json(void)
{
	struct result *result = example();
	char *text = write_all(result, true);

	is_str(text,
	       "{\"notes\": [\"Linux 6\"],\n"
	       "\"tables\": [\n"
	       "{\"name\": \"traps\", \"title\": \"What a hit costs\",\n"
	       " \"columns\": [{\"name\": \"way\", \"unit\": null}, {\"name\": \"a hit\", "
	       "\"unit\": \"ns\"}, {\"name\": \"ratio\", \"unit\": null}],\n"
	       " \"rows\": [\n"
	       "  [\"nop\", {\"median\": 1234.5000, \"low\": 1200.0000, \"high\": 1300.2500, "
	       "\"n\": 8, \"unsure\": false}, 1.00000],\n"
	       "  [\"push \xc3\xa9\", {\"median\": 2.000, \"low\": 1.000, \"high\": 3.000, "
	       "\"n\": 3, \"unsure\": true}, null],\n"
	       "  [\"none\", null, null]],\n"
	       " \"notes\": [\"the \\u0022floor\\u0022 \\u003cis\\u003e the kernel's\"]},\n"
	       "{\"name\": \"empty\", \"title\": \"Nothing?[31m\",\n"
	       " \"columns\": [{\"name\": \"way\", \"unit\": null}, {\"name\": \"a hit\", "
	       "\"unit\": \"ns\"}, {\"name\": \"ratio\", \"unit\": null}],\n"
	       " \"rows\": [],\n"
	       " \"notes\": []}]}\n",
	       "as JSON");
	free(text);
	result__free(result);
}

static void test_ratio(void)
{
	static const char *const columns[] = { "ratio|times", "slower|%", NULL };
	const struct figure ratios[] = {
		{ .median = 1.25, .low = 1.125, .high = 1.5, .n = 8 },
		{ .median = 0.5, .low = 0.4375, .high = 0.5625, .n = 3, .unsure = true },
		{ .median = 1.25, .low = 0.75, .high = 1.5, .n = 8 },
		{ .median = 1.5, .low = 1.25, .high = 1.75, .n = 5, .unsure = true },
		{ .median = 2, .low = 1.5, .high = 2.5, .n = 2, .unsure = true },
		{ .median = 5, .low = 5, .high = 5, .n = 1, .unsure = true },
		{},
	};
	struct result *result = result__new();
	char *text;

	result__table(result, "ratios", "Ratios", columns);
	for (size_t i = 0; i < sizeof(ratios) / sizeof(*ratios); i++) {
		result__row(result);
		result__ratio(result, &ratios[i], false);
		result__ratio(result, &ratios[i], true);
	}
	text = write_all(result, false);
	is_str(text,
	       "Ratios\n"
	       "  ratio, times                            slower, %\n"
	       "  1.250 (1.125 to 1.500)                  25.0 (12.5 to 50.0)\n"
	       "  0.500 (0.438 to 0.562?)                 -50.0 (-56.2 to -43.8?)\n"
	       "  within the noise (0.750 to 1.500)       within the noise (-25.0 to 50.0)\n"
	       "  unsure, too few runs (1.250 to 1.750)   unsure, too few runs (25.0 to 75.0)\n"
	       "  unknown, after two runs (1.500, 2.500)  unknown, after two runs (50, 150)\n"
	       "  unknown, after one run (5.000)          unknown, after one run (400)\n"
	       "  -                                       -\n",
	       "what does not differ is no number");
	free(text);
	result__free(result);
}

static void test_misuse(void)
{
	static const char *const columns[] = { "only", NULL };
	struct result *result = result__new();
	FILE *full = fopen("/dev/full", "w");

	result__table(result, "one", "One", columns);
	if (full)
		is_int(result__write(result, false, full), -ENOSPC, "a full disk is told");
	if (full)
		fclose(full);
	result__row(result);
	result__text(result, "cell");
	result__text(result, "too many");
	full = fopen("/dev/null", "w");
	ok(result__write(result, true, full) < 0, "a cell too many does not go unnoticed");
	fclose(full);
	result__free(result);
	result__free(NULL);
}

int main(void)
{
	test_text();
	test_json();
	test_ratio();
	test_misuse();
	return tap__done();
}
