// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_summary.h"

#include <string.h>

#include "core/base/escape.h"
#include "core/out/out_findings.h"

#define BUSY 0.5 /* CPUs; a process with a lower use waits most of the time */

/* Prefers the event wall, as waiting is more informative than CPU time alone. */
static const struct profile *choose(const struct profile *profile, struct profile *const *others,
				    size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (others[i]->event && !strcmp(others[i]->event, "wall"))
			return others[i];
	return profile;
}

/* Writes "-p 4711", or "" if the recording has several processes. */
static void pid_of(const struct profile *profile, char *buf, size_t size)
{
	unsigned pid;
	char paren;

	*buf = '\0';
	if (profile->target && sscanf(profile->target, "pid %u %c", &pid, &paren) == 2 &&
	    paren == '(')
		snprintf(buf, size, " -p %u", pid);
}

static void put_next(const struct view_opts *opts, const struct profile *profile,
		     const struct output_advice *advice, FILE *out)
{
	const char *file = opts->file_given ? opts->file : "";
	bool cpu = profile->unit == PROFILE_SAMPLES && profile->frequency_hz > 0;
	double used = cpu && profile->duration_s > 0
			      ? profile->total / profile->frequency_hz / profile->duration_s
			      : 1;
	char pid[32];

	pid_of(profile, pid, sizeof(pid));
	fputs("next:", out);
	if (used < BUSY)
		fprintf(out, " braid record -e wall%s,", pid);
	if (advice->locks)
		fprintf(out, " braid dump%s,", *pid ? pid : " -p PID");
	escape__line(out, " braid flame%s%s%s, braid report%s%s", advice->native ? " --source" : "",
		     *file ? " " : "", file, *file ? " " : "", file);
}

int view_summary__print(const struct view_opts *opts, const struct runtime *const *runtimes,
			FILE *out)
{
	struct view_opts own = *opts;
	struct profile *profile = NULL, **others = NULL;
	const struct profile *chosen;
	struct output_advice advice;
	size_t n_others = 0;
	int status;

	own.filter.lines = true;
	own.filter.by = PROFILE_BY_STATE;
	status = view__load_all(&own, runtimes, &profile, &others, &n_others);
	if (!status) {
		chosen = choose(profile, others, n_others);
		if (profile__shorten_files((struct profile *)chosen) ||
		    output__findings(chosen, out, &advice))
			status = cli__fail("out of memory");
		else
			put_next(opts, chosen, &advice, out);
	}
	for (size_t i = 0; i < n_others; i++)
		profile__free(others[i]);
	free(others);
	profile__free(profile);
	return status;
}
