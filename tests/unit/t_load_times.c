// SPDX-License-Identifier: GPL-2.0-or-later
/* Times of samples: columns of time in a loaded profile. */
#include "tests/unit/loaded.h"

/* Returns "COLUMN:TID:STATE:WEIGHT" of each cell, each followed by the innermost frame of its
 * stack. */
static const char *cells(const struct profile *profile)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < profile->n_cells && len < sizeof(text); i++) {
		const struct profile_cell *cell = &profile->cells[i];
		uint32_t frame = profile->nodes[cell->node].frame;

		len += snprintf(text + len, sizeof(text) - len,
				"%s%" PRIu64 ":%u:%u:%" PRIu64 ":%s", i ? " " : "", cell->column,
				profile->threads[cell->thread].tid, cell->state, cell->weight,
				cell->node
					? strtab__get(profile->strings, profile->frames[frame].name)
					: "-");
	}
	return text;
}

static void is_cells(const struct profile_filter *filter, const char *want, const char *name)
{
	struct profile *profile = NULL;

	if (load__profile(path, filter, &profile, NULL, &err))
		tap__diag("%s", err.text);
	is_str(profile ? cells(profile) : "none", want, "%s", name);
	profile__free(profile);
}

static void test_load(void)
{
	struct profile_filter filter = { .times = true };

	record();
	sqlite_text(path, "UPDATE sample SET time_ns = 1000 + 2500000 * (id - 1) WHERE id < 3");
	sqlite_text(path, "UPDATE sample SET time_ns = 2500001000 WHERE id = 3");
	sqlite_text(path, "UPDATE sample SET time_ns = 9999999999 + 1000 WHERE id = 4");
	is_cells(&(struct profile_filter) {}, "", "nothing unless it is asked for");
	is_cells(&filter, "0:42:0:4:sys_read 500:42:0:1:- 1999:44:0:1:helper",
		 "by column, thread and stack");
	filter = (struct profile_filter) { .instants = true };
	is_cells(&filter,
		 "0:42:0:2:sys_read 2500000:42:0:2:sys_read 2500000000:42:0:1:- "
		 "9999999999:44:0:1:helper",
		 "each at its instant");
	filter = (struct profile_filter) { .times = true };
	is_str(load_drawn(&filter),
	       " 1  main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n];sys_read_[k] 4  "
	       "main_[n];work_[n];helper_[i] 1",
	       "the same stacks");
	filter.pid = 43;
	is_cells(&filter, "1999:44:0:1:helper", "of what is selected");
	filter.pid = 0;
	sqlite_text(path, "UPDATE sample SET state = 3, lock = 3 WHERE id = 1");
	sqlite_text(path, "UPDATE sample SET state = 3, lock = 2 WHERE id = 3");
	sqlite_text(path, "UPDATE sample SET state = 2 WHERE id = 4");
	is_cells(&filter, "0:42:0:2:sys_read 0:42:3:2:sys_read 500:42:1:1:- 1999:44:2:1:helper",
		 "states stay apart");
	sqlite_text(path, "UPDATE sample SET time_ns = 9223372036854775807 WHERE id = 4");
	sqlite_text(path, "UPDATE sample SET time_ns = -7 WHERE id = 1");
	sqlite_text(path, "UPDATE sample SET time_ns = NULL WHERE id = 2");
	sqlite_text(path, "UPDATE sample SET time_ns = 'soon' WHERE id = 3");
	is_cells(&filter, "0:42:1:1:- 0:42:0:2:sys_read 0:42:3:2:sys_read 18446:44:2:1:helper",
		 "times that make no sense");
	sqlite_text(path, "DELETE FROM sample");
	is_cells(&filter, "", "no samples");
	workdir__run("rm r.db");
}

/* Columns are of 1, 2, 5, 10, ... ms. */
static void test_widths(void)
{
	static const struct {
		uint64_t duration_s, width_ms, n;
	} cases[] = {
		{ 0, 1, 1 },	      { 3, 1, 3001 },	    { 4, 2, 2001 },
		{ 60, 20, 3001 },     { 120, 50, 2401 },    { 600, 50, 12001 },
		{ 1200, 100, 12001 }, { 3600, 200, 18001 }, { 86400, 5000, 17281 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct profile_filter filter = { .times = true };
		struct profile *profile = NULL;
		char sql[100];

		record();
		snprintf(sql, sizeof(sql),
			 "UPDATE sample SET time_ns = 7 + %" PRIu64 " * 1000000000 * (id = 4)",
			 cases[i].duration_s);
		sqlite_text(path, sql);
		load__profile(path, &filter, &profile, NULL, &err);
		is_int(profile->column_ns, cases[i].width_ms * 1000000, "%" PRIu64 " s: width",
		       cases[i].duration_s);
		is_int(profile->n_columns, cases[i].n, "and how many");
		profile__free(profile);
		workdir__run("rm r.db");
	}
}

/* The number of columns is bounded at any input, and no weight is lost. */
static void test_most(void)
{
	struct profile *profile = profile__new();
	uint64_t sum = 0;
	uint32_t last = 0;

	profile->n_columns = 2000;
	profile->column_ns = 5;
	for (uint32_t i = 0; i < 6000; i++)
		profile__add_cell(profile, &(struct profile_cell) { .column = 1999 - i % 2000,
								    .thread = i % 3,
								    .weight = i });
	profile__finish_cells(profile, 1000);
	for (size_t i = 0; i < profile->n_cells; i++) {
		sum += profile->cells[i].weight;
		last = profile->cells[i].column;
	}
	is_int(profile->n_columns, 100, "columns are joined");
	is_int(profile->column_ns, 100, "and wider, 50 being left out");
	is_int(profile->n_cells, 300, "until it is not too much");
	is_int(sum, 6000 * 5999 / 2, "with all weight");
	is_int(last, 99, "in their order");
	for (uint32_t i = 0; i < 3000; i++)
		profile__add_cell(profile, &(struct profile_cell) { .node = i });
	profile__finish_cells(profile, 1000);
	is_int(profile->n_cells, 0, "none where that would say nothing");
	profile__free(profile);
}

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	test_load();
	test_widths();
	test_most();
	return tap__done();
}
