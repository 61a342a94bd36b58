/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TEXT_IDS_H
#define BRAID_TEXT_IDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ids, dense from 1, of keys that consist of two numbers and two texts. Memory is bounded. After
 * 131,072 distinct keys (about 20 MB of typical texts) all keys are dropped, and a key that recurs
 * gets a second id. A zeroed struct is empty. */
struct text_ids {
	struct strtab *strtab;
	uint32_t base; /* number of ids of dropped keys */
	char *key;     /* key of the current look-up */
	size_t cap_key;
};

void text_ids__done(struct text_ids *ids); /* leaves an empty struct */

/* Drops all keys, so that each key gets a new id when it recurs. */
void text_ids__forget(struct text_ids *ids);

/* Finds or adds a key. *@ret_new is true if the id is new. Returns 0 or -ENOMEM. */
int text_ids__at(struct text_ids *ids, uint32_t a, uint32_t b, const char *c, const char *d,
		 uint32_t *ret_id, bool *ret_new);

#endif
