/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TEXT_IDS_H
#define BRAID_TEXT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids, dense from 1, of what is told apart by two numbers and two texts. Memory is bounded: after
 * 131,072 distinct ones (some 20 MB of texts as they are usual) all are forgotten, and what comes
 * again gets a second id. A zeroed struct has none. */
struct text_ids {
	struct strtab *strtab;
	uint32_t base; /* the ids of those that were forgotten */
	char *key;     /* of the look-up */
	size_t cap_key;
};

void text_ids__done(struct text_ids *ids); /* leaves none */

/* What comes from now on gets a new id. */
void text_ids__forget(struct text_ids *ids);

/* `*ret_new`: whether the id is given for the first time. 0 or -ENOMEM. */
int text_ids__at(struct text_ids *ids, uint32_t a, uint32_t b, const char *c, const char *d,
		 uint32_t *ret_id, bool *ret_new);

#endif
