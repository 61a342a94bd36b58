// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/push/where.h"
#include "tests/fuzz/fuzz.h"

/* Checks that SQL contains only braid's own text outside of its strings, and that these end. */
static void check(const char *sql)
{
	static const char outside[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_ (),=<>!";
	bool quoted = false;
	int depth = 0;

	for (; *sql; sql++) {
		if (*sql == '\'')
			quoted = !quoted;
		else if (!quoted && !strchr(outside, *sql))
			abort();
		else if (quoted && (*sql < ' ' || *sql > '~' || (*sql == '\\' && sql[1] != 'x')))
			abort();
		if (!quoted)
			depth += *sql == '(' ? 1 : *sql == ')' ? -1 : 0;
		if (depth < 0)
			abort();
	}
	if (quoted || depth)
		abort();
}

/* Parses the argument of --where. */
bool target__run(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct where where;
	struct err err;
	bool taken = text && !where__parse(text, 1800000000, &where, &err);

	if (taken) {
		check(where.series);
		check(where.samples);
	}
	if (text)
		where__done(&where);
	free(text);
	return taken && size;
}

void target__seeds(void)
{
	fuzz__seed_text("service = web and time >= now-1h and not (host ~ '^a' or pid != 3)");
	fuzz__seed_text("(time < 2026-11-24T06:30 or tid=1) and thread !~ \"a \"\"b\"");
	fuzz__seed_text("time = '2026-11-24 06:30:15' or event == off-cpu or container = ''");
}
