// SPDX-License-Identifier: GPL-2.0-or-later
/* Sentences about a recording, made of its numbers: output__findings(). The profile is grouped by
 * state, has all frames, and their lines. */
#include "core/out/out_findings.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/causes.h"
#include "core/out/out_common.h"

#define SHOWN	    3	 /* causes in a sentence */
#define SHARE_LEAST 0.05 /* smallest share of the whole, except for the first cause */

static int percent(uint64_t part, uint64_t whole)
{
	return whole ? (int)(100.0 * part / whole + 0.5) : 0;
}

static int put_findings(const struct causes *causes, bool waits, uint64_t whole, FILE *out)
{
	const struct profile *profile = causes->profile;
	size_t n = 0;

	for (size_t i = 0; i < causes->n && n < SHOWN; i++) {
		const struct cause *at = &causes->list[i];
		char *label = NULL;

		if (!at->what == waits || (n && at->weight < SHARE_LEAST * whole) ||
		    (waits && !percent(at->weight, whole)))
			continue;
		if (at->frame) {
			label = output__label(profile, &profile->frames[at->frame - 1], false);
			if (!label)
				return -ENOMEM;
			escape__printable(label);
		}
		fputs(n++ ? ", " : ": ", out);
		if (waits)
			fprintf(out, "%d %% for %s%s%s", percent(at->weight, whole), at->what,
				label ? " in " : "", label ? label : "");
		else
			fprintf(out, "%s %d %%", label ? label : "[no stack]",
				percent(at->weight, whole));
		free(label);
	}
	fputs(".\n", out);
	return 0;
}

static int put_sentences(const struct causes *causes, FILE *out)
{
	const struct profile *profile = causes->profile;
	uint64_t whole = profile->total;
	const char *time = profile->parked ? "the time of threads and parked tasks" : "thread time";
	char text[32];
	int ret = 0;

	if (causes->waiting) {
		fprintf(out, "%d %% of %s is waiting", percent(causes->waiting, whole), time);
		ret = put_findings(causes, true, whole, out);
	}
	if (!ret && causes->preempted > SHARE_LEAST * whole)
		fprintf(out, "%d %% of %s another thread had the CPU.\n",
			percent(causes->preempted, whole), time);
	if (ret || !causes->cpu)
		return ret;
	output__amount(profile, causes->cpu, text, sizeof(text));
	if (profile__mixes(profile))
		fprintf(out, "CPU %d %%", percent(causes->cpu, whole));
	else if (output__names_event(profile))
		fprintf(out, "%s %s", profile->event, text);
	else
		fprintf(out, "CPU %s", text);
	return put_findings(causes, false, causes->cpu, out);
}

int output__findings(const struct profile *profile, FILE *out, struct output_advice *ret)
{
	struct causes causes;
	int code = causes__init(&causes, profile, NULL, 0);

	*ret = (struct output_advice) {};
	if (code)
		goto out;
	if (profile->total)
		code = put_sentences(&causes, out);
	else if (profile->idle.weight || profile->unbroken.weight)
		fputs("All threads were idle (--idle show shows them).\n", out);
	else if (profile->other_events && *profile->other_events)
		escape__line(out, "There is no sample of the event %s. Other events: %s (--event).",
			     profile->event ? profile->event : "cpu", profile->other_events);
	else
		fputs("This recording is empty.\n", out);
	ret->locks = causes.locks > 0.1 * profile->total;
	ret->native = causes.native > 0.3 * causes.cpu;
out:
	causes__done(&causes);
	return code;
}
