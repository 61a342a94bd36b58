// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/text_ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/strtab.h"
#include "core/base/util.h"

#define TEXTS_MAX (1U << 17)

void text_ids__done(struct text_ids *ids)
{
	strtab__free(ids->strtab);
	free(ids->key);
	*ids = (struct text_ids) {};
}

void text_ids__forget(struct text_ids *ids)
{
	if (!ids->strtab)
		return;
	ids->base += strtab__count(ids->strtab) - 1; /* its id 0, "", is not one of these ids */
	strtab__free(ids->strtab);
	ids->strtab = NULL;
}

static int make_room(struct text_ids *ids)
{
	if (ids->strtab && strtab__count(ids->strtab) > TEXTS_MAX)
		text_ids__forget(ids);
	if (!ids->strtab)
		ids->strtab = strtab__new();
	return ids->strtab ? 0 : -ENOMEM;
}

int text_ids__at(struct text_ids *ids, uint32_t a, uint32_t b, const char *c, const char *d,
		 uint32_t *ret_id, bool *ret_new)
{
	/* a number has up to 20 digits and a colon */
	size_t len_c = strlen(c), size = len_c + strlen(d) + 3 * 21 + 1;
	uint32_t before, id;

	if (array__reserve(&ids->key, &ids->cap_key, size, 1) || make_room(ids))
		return -ENOMEM;
	/* The length of the first text distinguishes ("ab", "c") from ("a", "bc"). */
	snprintf(ids->key, size, "%" PRIu32 ":%" PRIu32 ":%zu:%s%s", a, b, len_c, c, d);
	before = strtab__count(ids->strtab);
	if (strtab__intern(ids->strtab, ids->key, &id))
		return -ENOMEM;
	*ret_new = strtab__count(ids->strtab) > before;
	*ret_id = ids->base + id;
	return 0;
}
