// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/condition.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/diff_rows.h"

static const char *const measures[] = {
	[CONDITION_SELF] = "self(", [CONDITION_TOTAL] = "total(", [CONDITION_CHANGE] = "change("
};

static int malformed(const char *text, struct err *err)
{
	return err__set(
		err, -EINVAL,
		"cannot parse the condition '%s'. Write self(FUNCTION), total(FUNCTION) or "
		"change(FUNCTION), then > or <, and a percentage, such as total(json.*) > 20%%",
		text);
}

/* Parses " > 20%". */
static bool parse_limit(const char *at, struct condition *ret)
{
	char *end;

	at += strspn(at, " ");
	if (*at != '>' && *at != '<')
		return false;
	ret->below = *at++ == '<';
	at += strspn(at, " ");
	if (!*at || at[strspn(at, "0123456789.+- %")])
		return false;
	ret->limit = strtod(at, &end) / 100;
	return end > at && !strcmp(end + strspn(end, " "), "%");
}

/* Parses @text. The last parenthesis ends the pattern, as names of C++ contain parentheses, too. */
int condition__parse(const char *text, struct condition *ret, struct err *err)
{
	const char *at = text + strspn(text, " "), *end = strrchr(text, ')');
	size_t len;

	*ret = (struct condition) {};
	for (size_t i = 0; i < ARRAY_SIZE(measures); i++) {
		len = strlen(measures[i]);
		if (strncmp(at, measures[i], len) != 0)
			continue;
		at += len;
		if (end <= at || (size_t)(end - at) >= sizeof(ret->pattern) ||
		    !parse_limit(end + 1, ret))
			break;
		ret->measure = i;
		memcpy(ret->pattern, at, end - at);
		return 0;
	}
	return malformed(text, err);
}

/* Returns an array by node: 1 if its frame matches, otherwise 0. Returns NULL if out of memory. */
static uint32_t *match(const struct condition *condition, const struct profile *profile)
{
	uint32_t *matches = calloc(profile->n_nodes, sizeof(*matches));

	for (size_t i = 1; matches && i < profile->n_nodes; i++) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[i].frame];

		matches[i] =
			!profile->kinds[frame->kind].label &&
			!fnmatch(condition->pattern, strtab__get(profile->strings, frame->name), 0);
	}
	return matches;
}

static int share_of(const struct condition *condition, const struct profile *profile, double *ret)
{
	uint32_t *matches = match(condition, profile);
	uint64_t sum = 0;

	if (!matches)
		return -ENOMEM;
	for (size_t i = 1; i < profile->n_nodes; i++) {
		if (condition->measure == CONDITION_TOTAL)
			matches[i] |= matches[profile->nodes[i].parent];
		if (matches[i])
			sum += profile->nodes[i].self;
	}
	*ret = profile->total ? (double)sum / profile->total : 0;
	free(matches);
	return 0;
}

static int change_of(const struct condition *condition, const struct diff *diff,
		     struct diff_change *ret)
{
	uint32_t *matches = match(condition, diff->both);
	struct diff_rows rows = {};
	int code = matches ? diff_rows__init(&rows, diff, DIFF_TOTAL, matches, 2) : -ENOMEM;

	if (!code)
		*ret = diff_rows__change(&rows, 1);
	diff_rows__done(&rows);
	free(matches);
	return code;
}

int condition__check(const struct condition *condition, const struct profile *profile,
		     const struct diff *diff, double *ret_share, bool *ret_holds)
{
	struct diff_change change = {};
	bool proven = true;
	int ret;

	if (condition->measure == CONDITION_CHANGE) {
		ret = change_of(condition, diff, &change);
		*ret_share = change.new - change.old;
		proven = change.verdict == DIFF_MORE || change.verdict == DIFF_LESS;
	} else {
		ret = share_of(condition, diff ? diff->sides[DIFF_NEW].profile : profile,
			       ret_share);
	}
	*ret_holds = proven && (condition->below ? *ret_share < condition->limit
						 : *ret_share > condition->limit);
	return ret;
}
