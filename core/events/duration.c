// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/duration.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define LONGEST_S 86400

int duration__parse(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 } };
	char *end;
	double number;

	if (!isdigit((unsigned char)*text)) /* strtod() accepts other texts, too */
		return -EINVAL;
	number = strtod(text, &end);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(end, units[i].name) != 0)
			continue;
		if (!(number * units[i].ns <= LONGEST_S * 1e9))
			return -EINVAL;
		*ret_ns = number * units[i].ns;
		return 0;
	}
	return -EINVAL;
}
