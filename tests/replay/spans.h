/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_SPANS_H
#define BRAID_TESTS_REPLAY_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ranges of addresses or offsets, in any order and perhaps overlapping until they are joined. */
struct span {
	uint64_t start, end;
};

struct spans { /* zeroed: empty */
	struct span *list;
	size_t n, cap;
};

int spans__add(struct spans *spans, uint64_t start,
	       uint64_t end);	       /* 0 or -ENOMEM; ignores an empty span */
void spans__join(struct spans *spans); /* sorts, and joins spans that touch */
bool spans__meet(const struct spans *spans, uint64_t start, uint64_t end);
void spans__done(struct spans *spans); /* idempotent */

#endif
