// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares the decoder of line tables with the lines that each CRuby on this machine reports of its
 * own code (tests/tools/dump_ruby_lines.rb). */
#include "runtimes/ruby/ruby_lines.h"
#include "runtimes/ruby/ruby_versions.h"
#include "tests/tap.h"
#include "tests/unit/rubies.h"

#define DUMP	  "tests/tools/dump_ruby_lines.rb"
#define WRONG_MAX 10 /* number of errors that are printed */

struct totals {
	size_t iseqs, large, instructions, without_line, wrong;
};

/* Returns the bytes of a hexadecimal text, owned by the caller. */
static uint8_t *parse_hex(const char *hex, size_t *ret_size)
{
	size_t n = strlen(hex) / 2, i = 0;
	uint8_t *bytes = malloc(n ? n : 1);

	while (bytes && i < n && sscanf(hex + 2 * i, "%2hhx", &bytes[i]) == 1)
		i++;
	*ret_size = i;
	return bytes;
}

/* Checks a text "POSITION:LINE,...", with a "~" where the line may also be 0. */
static void check_lines(const struct ruby_lines *lines, char *text, struct totals *totals)
{
	unsigned int position, want, got;
	char *rest, *token;

	for (token = strtok_r(text, ",\n", &rest); token; token = strtok_r(NULL, ",\n", &rest)) {
		if (sscanf(token, "%u:%u", &position, &want) != 2)
			continue;
		got = ruby_lines__find(lines, position);
		totals->instructions++;
		if (!got && strchr(token, '~'))
			totals->without_line++;
		else if (got != want && totals->wrong++ < WRONG_MAX)
			tap__diag("iseq %zu, position %u: line %u, not %u", totals->iseqs, position,
				  got, want);
	}
}

static void check_iseq(char *text, size_t entry_size, struct totals *totals)
{
	struct ruby_lines lines = { .entry_size = entry_size };
	char *rest, *size = strtok_r(text, " ", &rest), *positions = strtok_r(NULL, " ", &rest);
	char *entries = strtok_r(NULL, " ", &rest);
	size_t bytes;

	if (!entries)
		return;
	lines.positions = parse_hex(positions, &lines.positions_size);
	lines.entries = parse_hex(entries, &bytes);
	lines.n_entries = bytes / entry_size;
	if (lines.positions && lines.entries)
		check_lines(&lines, rest, totals);
	totals->iseqs++;
	totals->large += strtoul(size, NULL, 10) > 54 + 512;
	free((void *)lines.positions);
	free((void *)lines.entries);
}

static void check_ruby(const struct ruby *ruby)
{
	struct totals totals = { 0 };
	const struct ruby_version *version;
	unsigned int major, minor, teeny;
	char command[1024], *text = NULL;
	size_t room = 0;
	FILE *pipe;

	if (sscanf(ruby->version, "%u.%u.%u", &major, &minor, &teeny) != 3)
		return;
	version = ruby_version__find(major, minor, teeny);
	if (!version)
		return;
	snprintf(command, sizeof(command), "%s --disable=gems -W0 " DUMP " %u %u %u %u 2>/dev/null",
		 ruby->command, version->offsets.body_entries, version->offsets.body_n_entries,
		 version->offsets.body_positions, version->offsets.entry_size);
	pipe = popen(command, "r");
	while (pipe && getline(&text, &room, pipe) > 0)
		check_iseq(text, version->offsets.entry_size, &totals);
	free(text);
	if (!pipe || pclose(pipe) != 0) {
		tap__skip("it cannot read its own memory (fiddle)", "%s: lines", ruby->version);
		return;
	}
	is_int(totals.wrong, 0, "%s: lines of %zu instructions in %zu iseqs", ruby->version,
	       totals.instructions, totals.iseqs);
	ok(totals.iseqs > 100 && totals.large, "%s: %zu of them of several blocks", ruby->version,
	   totals.large);
	ok(totals.without_line < totals.instructions / 20, "%s: %zu instructions without a line",
	   ruby->version, totals.without_line);
}

int main(void)
{
	struct rubies rubies;

	workdir__make();
	rubies__find(&rubies);
	for (size_t i = 0; i < rubies.n; i++)
		check_ruby(&rubies.list[i]);
	if (!rubies.n)
		tap__skip("no CRuby found", "lines of real iseqs");
	return tap__done();
}
