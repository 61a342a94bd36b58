// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/record_rotation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"

#define ROTATE_MAX_S   (366 * 86400.0)
#define KEEP_MAX       1e6
#define SIZE_MAX_BYTES 1e15

enum { OPT_ROTATE = 0x400, OPT_KEEP, OPT_KEEP_BYTES, OPT_METRICS };

static const struct argp_option options[] = {
	{ "rotate", OPT_ROTATE, "SECONDS", 0,
	  "Write one recording after the other, each SECONDS long, into the "
	  "directory given by -o",
	  2 },
	{ "keep", OPT_KEEP, "N", 0,
	  "With --rotate: keep at most N finished recordings; the oldest are removed", 2 },
	{ "keep-bytes", OPT_KEEP_BYTES, "SIZE", 0,
	  "With --rotate: keep at most SIZE bytes in all, such as 500m or 20g; the "
	  "oldest recordings are removed",
	  2 },
	{ "metrics", OPT_METRICS, "FILE|unix:PATH", 0,
	  "Write braid's own activity and cost every second as OpenMetrics text: "
	  "into FILE (for node_exporter's textfile collector), or in reply to GET "
	  "requests on the local socket PATH",
	  2 },
	{}
};

/* Parses a number of bytes, with an optional unit. */
static uint64_t parse_size(struct argp_state *state, const char *option, const char *arg)
{
	static const char units[] = "bkmgt";
	size_t len = strlen(arg);
	const char *unit = len > 1 ? strchr(units, tolower((unsigned char)arg[len - 1])) : NULL;
	char number[32];

	snprintf(number, sizeof(number), "%.*s", (int)min_of(len - !!unit, sizeof(number) - 1),
		 arg);
	return cli__number(state, option, number, 1, SIZE_MAX_BYTES) *
	       (unit ? 1ULL << 10 * (unit - units) : 1);
}

static uint32_t parse_keep(struct argp_state *state, const char *arg)
{
	double number = cli__number(state, "--keep", arg, 1, KEEP_MAX);

	if (number != (uint32_t)number)
		cli__misused(state, "--keep takes a whole number, not '%s'", arg);
	return number;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct session_opts *opts = state->input;

	switch (key) {
	case OPT_ROTATE:
		opts->rotation.seconds = cli__number(state, "--rotate", arg, 1, ROTATE_MAX_S);
		break;
	case OPT_KEEP:
		opts->rotation.keep = parse_keep(state, arg);
		break;
	case OPT_KEEP_BYTES:
		opts->rotation.keep_bytes = parse_size(state, "--keep-bytes", arg);
		break;
	case OPT_METRICS:
		if (!*arg)
			cli__misused(state, "--metrics takes a file, or unix: and a socket's path");
		opts->metrics = arg;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp record_rotation_argp = { .options = options, .parser = parse };

void record_rotation__check(struct argp_state *state, struct session_opts *opts, bool output_given)
{
	struct session_rotation *rotation = &opts->rotation;

	if (!rotation->seconds && (rotation->keep || rotation->keep_bytes))
		cli__misused(state, "--keep and --keep-bytes require --rotate SECONDS");
	if (!rotation->seconds)
		return;
	if (!rotation->keep && !rotation->keep_bytes)
		cli__misused(state,
			     "--rotate would fill the disk: limit the recordings with --keep N or "
			     "--keep-bytes SIZE");
	if (!output_given)
		cli__misused(state, "--rotate requires a directory: name it with -o");
	if (opts->force && !event_list__has_mapped(&opts->events))
		cli__misused(state,
			     "--force replaces only files and cannot be used with --rotate, which "
			     "writes into a directory");
	for (uint32_t i = 0; i < opts->events.n; i++)
		if (opts->events.list[i].kind->whole)
			cli__misused(state,
				     "%s covers a whole recording and cannot be used with --rotate",
				     opts->events.list[i].name);
	if (!rotation->keep)
		rotation->keep = UINT32_MAX;
}
