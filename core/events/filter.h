/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FILTER_H
#define BRAID_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/btf.h>

#include "bpf/filter.h"
#include "core/base/err.h"

/* Filters of tracepoints: `prev->prio < 100 && next->comm == "bash" || prev->pid == 4711`. They
 * compare an argument, or a field behind it, with a number or a text. && binds tighter than ||.
 * Names are those of the kernel's types. */

/* one comparison as written */
#define FILTER_NAMES_MAX 4 /* argument->a->b.c */
#define FILTER_NAME_MAX	 64

struct filter_term {
	char names[FILTER_NAMES_MAX][FILTER_NAME_MAX];
	size_t n_names;
	enum filter_op op;
	bool is_text;
	uint64_t value;
	char text[FILTER_TEXT_WORDS * 8];
	bool begins; /* follows || */
};

struct filter_terms {
	struct filter_term list[FILTER_TESTS_MAX];
	size_t n;
};

/* Parses @text. Returns 0, or -EINVAL with a message if it is invalid or too long. */
int filter_terms__parse(const char *text, struct filter_terms *ret, struct err *err);

/* Appends tests for the tracepoint's arguments to @ret, whose present tests become required ones.
 * Returns 0, -ENOENT for a name that the kernel does not have, -ENOTSUP for an impossible
 * comparison, or -E2BIG; with the remedy in @err. */
int filter__compile(const struct filter_terms *terms, const struct btf *btf, const char *tracepoint,
		    struct event_filter *ret, struct err *err);

/* Returns the type of a tracepoint's function or prototype, whose first argument is not one of the
 * tracepoint. NULL: there is no such tracepoint. *@ret_named: its parameters have names. */
const struct btf_type *filter__arguments(const struct btf *btf, const char *tracepoint,
					 bool *ret_named);

/* --- types of arguments and of the fields behind them --- */

/* Returns the type without typedefs and qualifiers; NULL: unknown. */
const struct btf_type *filter__type(const struct btf *btf, uint32_t id);

bool filter__is_char(const struct btf_type *type); /* false for NULL */
bool filter__is_number(const struct btf_type *type);
bool filter__is_signed(const struct btf_type *type);

/* Returns the index of the tracepoint's argument with that name, or of argN; -1: there is none. */
int filter__argument(const struct btf *btf, const struct btf_type *proto, const char *name);

/* Parses a path of fields, such as prev->se.vruntime. Returns 0, or -EINVAL with a message. */
int filter_terms__parse_path(const char *text, struct filter_term *ret, struct err *err);

/* Follows the fields of @term from an argument of type @type. Adds the steps to @test, and stores
 * the last field's type. Returns 0, -ENOENT or -ENOTSUP with a message. */
int filter__follow(const struct filter_term *term, const struct btf *btf,
		   const struct btf_type *type, struct filter_test *test,
		   const struct btf_type **ret_type, struct err *err);

#endif
