// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile/build.h"

static int build_other(const struct recorded *recorded, const char *what,
		       const struct profile_filter *filter, size_t event, struct profile **others,
		       size_t *n, struct err *err)
{
	struct profile_filter of = *filter;
	int code;

	of.event = recorded__text(recorded, recorded->events.rows[event].name);
	code = build__profile(recorded, what, &of, &others[*n], NULL, err);
	if (code ==
	    -EINVAL) /* this event's samples lack a property of the filter, such as an age */
		return 0;
	if (!code && others[*n]->total)
		++*n;
	else if (!code)
		profile__free(others[*n]);
	return code;
}

int build__profiles(const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct profile **ret,
		    struct profile ***ret_others, size_t *ret_n, struct err *err)
{
	struct profile **others = NULL;
	size_t n = 0;
	int code = build__profile(recorded, what, filter, ret, NULL, err);

	*ret_others = NULL;
	*ret_n = 0;
	if (code)
		return code;
	others = calloc(recorded->events.n + 1, sizeof(struct profile *));
	if (!others)
		code = err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !code && i < recorded->events.n; i++) {
		const char *name = recorded__text(recorded, recorded->events.rows[i].name);

		if (!(*ret)->event || strcmp((*ret)->event, name) != 0)
			code = build_other(recorded, what, filter, i, others, &n, err);
	}
	if (!code) {
		*ret_others = others;
		*ret_n = n;
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		profile__free(others[i]);
	free(others);
	return code;
}
