// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/top.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

void top__done(struct top *top)
{
	rows__done(&top->rows);
	profile__free(top->profile);
	top->profile = NULL;
}

/* Drops rows that do not match the search. Labels are cut for the terminal, and only the visible
 * part is searched. */
static void keep_found(struct top *top)
{
	struct rows *rows = &top->rows;
	regex_t regex;
	bool is_regex;
	size_t n = 0;

	top->n_all = rows->n;
	if (!*top->search)
		return;
	is_regex = !regcomp(&regex, top->search, REG_EXTENDED | REG_ICASE | REG_NOSUB);
	for (size_t i = 0; i < rows->n; i++) {
		char *label = rows->list[i].label;

		if (strlen(label) >= TOP_TEXT_BYTES)
			label[TOP_TEXT_BYTES - 1] = '\0';
		if (is_regex ? !regexec(&regex, label, 0, NULL, 0)
			     : strcasestr(label, top->search) != NULL)
			rows->list[n++] = rows->list[i];
		else
			free(label);
	}
	rows->n = n;
	if (is_regex)
		regfree(&regex);
}

static int find_functions(struct top *top)
{
	struct profile *viewed = top->profile;
	int ret = top->frames == FRAMES_ALL ? 0 : frames__view(top->profile, top->frames, &viewed);

	if (!ret)
		ret = rows__functions(viewed, &top->rows);
	if (viewed != top->profile)
		profile__free(viewed);
	return ret;
}

int top__arrange(struct top *top)
{
	int ret;

	rows__done(&top->rows);
	top->changed = true;
	if (!top->profile)
		return 0;
	ret = top->by == TOP_THREADS ? rows__threads(top->profile, &top->rows)
				     : find_functions(top);
	if (!ret && top->by == TOP_THREADS && !top->ended)
		ret = top__add_threads(top);
	if (ret)
		return ret;
	keep_found(top);
	rows__sort(&top->rows, top->sort);
	return 0;
}

int top__take(struct top *top, struct err *err)
{
	double elapsed_s = (now_ns() - top->begun_ns) / 1e9;
	struct profile *profile = NULL;
	int ret;

	top__done(top); /* before the next one is loaded, as it may be large */
	ret = cli__live_profile(top->live, top->opts.runtimes, &profile, err);
	if (ret)
		return ret;
	if (profile->unit == PROFILE_SAMPLES)
		profile->frequency_hz = top->opts.frequency_hz;
	top->profile = profile;
	top->shown_s = top->once ? elapsed_s : min_of(elapsed_s, top->window_s);
	return top__arrange(top) ? err__set(err, -ENOMEM, "out of memory") : 0;
}
