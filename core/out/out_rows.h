/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_ROWS_H
#define BRAID_OUT_ROWS_H

#include "core/out/output.h"

/* The rows of a table: functions, regardless of lines, or files, libraries, ... */

/* The key of a row. Its texts are those of the profile for functions, otherwise of the rows. */
struct out_row_key {
	uint32_t name, file;
	uint32_t line; /* 0: functions do not differ by line */
	uint8_t kind;
};

struct out_rows {
	const struct profile *profile;
	enum output_group group;
	bool lines; /* functions with a name differ by line, too */
	struct strtab *texts;
	struct out_row_key *frame_keys; /* private: by frame */
	struct out_row_key *keys;	/* by row; the first row is for samples without a stack */
	size_t n;
	uint32_t *row_of; /* by frame */
};

/* Makes rows. Functions without a name always differ by line; with @lines all functions do. Returns
 * 0 or -ENOMEM; the caller calls out_rows__done() in any case. */
int out_rows__init(struct out_rows *rows, const struct profile *profile, enum output_group group,
		   bool lines);
void out_rows__done(struct out_rows *rows);

/* Returns the row of a node's frame; the root's row is 0. */
static inline uint32_t out_rows__of(const struct out_rows *rows, uint32_t node)
{
	return node ? rows->row_of[rows->profile->nodes[node].frame] : 0;
}

/* Returns true for a row of a group that the user requested. */
bool out_rows__is_group(const struct out_rows *rows, uint32_t row);

const char *out_rows__name(const struct out_rows *rows, uint32_t row);

/* Returns the label of a row, printable. Owned by the caller; NULL: out of memory. */
char *out_rows__label(const struct out_rows *rows, uint32_t row, int annotate);

/* the sums of a row */
struct out_row {
	uint32_t number;
	uint64_t self, script, total, calls;
	uint64_t waiting, preempted, samples; /* parts of total */
	uint64_t occurrences;		      /* occurrences in total */
	uint32_t line; /* line with most of script, or of total if there is no script; 0: unknown */
	double line_share;
};

/* As out_rows__label(), with the row's line and its share: "items (app.py:27, 87 %)". */
char *out_row__label(const struct out_rows *rows, const struct out_row *row, int annotate);

/* Counts all rows. @ret: by row, room for of->n. *@ret_scripts: script and self differ in some row.
 * Returns 0 or -ENOMEM. */
int out_rows__count(const struct out_rows *of, struct out_row *ret, bool *ret_scripts);

/* The rows that a table of a profile shows, in its order. */
struct out_list {
	struct out_rows of;
	struct out_row *rows;
	size_t n;     /* length of `rows`; groups alone if the table is of groups */
	size_t n_put; /* number of rows that opts->rows allows */
	bool scripts; /* the table has a column for script */
	enum output_sort sort;
};

/* Makes a list, sorted by opts->sort, then by self, total, calls, name. Rows of groups come first.
 * Returns 0 or -ENOMEM; the caller calls out_list__done() in any case. */
int out_list__init(struct out_list *list, const struct profile *profile,
		   const struct output_opts *opts);
void out_list__done(struct out_list *list);

/* Writes the row's kind, printable; "-" for samples without a stack. */
#define OUT_KIND_BYTES sizeof(((struct profile_kind *)0)->name)
void out_rows__kind(const struct out_rows *rows, uint32_t row, char ret[OUT_KIND_BYTES]);

/* Returns the width of a column for kinds. */
int out_rows__kind_width(const struct profile *profile);

/* Returns "Function", or the title for other rows. */
const char *out_rows__title(enum output_group group);

#endif
