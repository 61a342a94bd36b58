/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FILTER_H
#define BRAID_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/btf.h>

#include "bpf/filter.h"
#include "core/base/err.h"

/* Filters of tracepoints: `prev->prio < 100 && next->comm == "bash" || prev->pid == 4711`.
 * Comparisons of an argument, or of a field of what it points to, with a number or a text; && binds
 * tighter than
 * ||. Names are those of the kernel's types. */

/* One comparison as it is written. */
#define FILTER_NAMES_MAX 4 /* argument->a->b.c */
#define FILTER_NAME_MAX	 64

struct filter_term {
	char names[FILTER_NAMES_MAX][FILTER_NAME_MAX];
	size_t n_names;
	enum filter_op op;
	bool is_text;
	uint64_t value;
	char text[FILTER_TEXT_WORDS * 8];
	bool begins; /* after || */
};

struct filter_terms {
	struct filter_term list[FILTER_TESTS_MAX];
	size_t n;
};

/* -EINVAL with a sentence for what is none, or too long. */
int filter_terms__parse(const char *text, struct filter_terms *ret, struct err *err);

/* Tests for the tracepoint's arguments, behind those that are in `ret` already, which are then
 * required. -ENOENT: a name that the kernel does not have, -ENOTSUP: what cannot be compared,
 * -E2BIG; each with the way out. */
int filter__compile(const struct filter_terms *terms, const struct btf *btf, const char *tracepoint,
		    struct event_filter *ret, struct err *err);

/* The type of the arguments of a tracepoint, of which the first is not its own: a function's or a
 * prototype's; NULL: there is no such tracepoint. `ret_named`: its parameters have names. */
const struct btf_type *filter__arguments(const struct btf *btf, const char *tracepoint,
					 bool *ret_named);

#endif
