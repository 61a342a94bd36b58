// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/function_names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/u64map.h"
#include "core/base/util.h"

/* Limit of functions, as a hostile file's tables may have millions of entries. */
#define FUNCTIONS_MAX (1 << 20)

struct function {
	uint64_t entry;
	char *text;
	unsigned n;
};

struct function_names {
	struct function *functions;
	size_t n, cap;
	struct u64map by_entry; /* index + 1 */
};

int function_names__new(struct function_names **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void function_names__free(struct function_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; i < names->n; i++)
		free(names->functions[i].text);
	free(names->functions);
	u64map__done(&names->by_entry);
	free(names);
}

/* Returns true if @text already contains @name. */
static bool has_name(const char *text, const char *name)
{
	size_t len = strlen(name), n;

	for (;; text += n + 1) {
		n = strcspn(text, "/");
		if (n == len && !memcmp(text, name, n))
			return true;
		if (!text[n])
			return false;
	}
}

/* Adds @name to the function's names. Takes ownership of @name. */
static int add_name(struct function *function, char *name)
{
	char *both;

	if (has_name(function->text, name) || ++function->n > FUNCTION_NAMES_MAX) {
		free(name);
		return 0;
	}
	if (asprintf(&both, "%s/%s", function->text, name) < 0)
		both = NULL;
	free(name);
	if (!both)
		return -ENOMEM;
	free(function->text);
	function->text = both;
	return 0;
}

int function_names__add(struct function_names *names, uint64_t entry, const char *fmt, ...)
{
	uint32_t at = u64map__get(&names->by_entry, entry);
	va_list args;
	char *name;
	int rc;

	if (!at && names->n >= FUNCTIONS_MAX)
		return 0;
	va_start(args, fmt);
	rc = vasprintf(&name, fmt, args);
	va_end(args);
	if (rc < 0)
		return -ENOMEM;
	if (at)
		return add_name(&names->functions[at - 1], name);
	rc = array__reserve(&names->functions, &names->cap, names->n + 1,
			    sizeof(*names->functions));
	if (!rc)
		rc = u64map__put(&names->by_entry, entry, names->n + 1);
	if (rc)
		free(name);
	else
		names->functions[names->n++] = (struct function) { entry, name, 1 };
	return rc;
}

static const char *text_of(const struct function *function)
{
	return function->n <= FUNCTION_NAMES_MAX ? function->text : NULL;
}

const char *function_names__find(const struct function_names *names, uint64_t entry)
{
	uint32_t at = u64map__get(&names->by_entry, entry);

	return at ? text_of(&names->functions[at - 1]) : NULL;
}
