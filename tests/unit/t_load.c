// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/unit/loaded.h"

static void test_profile(void)
{
	const struct profile_filter filter = { 0 };
	struct profile *profile = NULL;
	struct merge_report report;

	record();
	is_int(load__profile(path, &filter, &profile, &report, &err), 0, "loaded");
	is_str(drawn(profile), ALL, "stacks");
	is_int(profile->total, 6, "sum of weights");
	is_str(profile->target, "pid 42 (app)", "target");
	ok(profile->duration_s == 1.5 && profile->frequency_hz == 999, "duration, frequency");
	is_int(profile->n_losses, 1, "one loss");
	ok(!strcmp(profile->losses[0].name, "ring full") && profile->losses[0].count == 3,
	   "which it is");
	ok(!strcmp(profile->kinds[KIND_RUNTIME].name, "python"), "kinds");
	ok(report.by_address == 4 && !report.by_order && !report.appended && !report.apart &&
		   report.loops == 2,
	   "report, by sample");
	profile__free(profile);
	sqlite_text(path,
		    "UPDATE node SET offset = -9223372036854775807 WHERE offset IN (150, 160)");
	load__profile(path, &filter, &profile, &report, &err);
	ok(!report.by_address && !report.appended && report.apart == 4 && !report.loops,
	   "report of frames apart");
	profile__free(profile);
	record();
}

static void test_filters(void)
{
	static const struct {
		struct profile_filter filter;
		const char *want;
	} cases[] = {
		{ { .lines = true },
		  " 1  main (app.c:10)_[n];<module> (app.py:1)_[py];f (app.py:7)_[py];strcmp_[n];"
		  "sys_read_[k] 4  main (app.c:10)_[n];work (app.c:20)_[n];"
		  "helper (app.h:3)_[i] 1" },
		{ { .keep_vm = true },
		  " 1  main_[n];eval_[n];" PYTHON " 4  main_[n];work_[n];helper_[i] 1" },
		{ { .pid = 43 }, "main_[n];work_[n];helper_[i] 1" },
		{ { .thread = "44" }, "main_[n];work_[n];helper_[i] 1" },
		{ { .thread = "app" }, " 1  main_[n];" PYTHON " 4" },
		{ { .pid = 42, .thread = "42" }, " 1  main_[n];" PYTHON " 4" },
		{ { .runtime = "python" }, "main_[n];" PYTHON " 4" },
		{ { .runtime = "kernel" }, "main_[n];" PYTHON " 4" },
		{ { .runtime = "inlined" }, "main_[n];work_[n];helper_[i] 1" },
		{ { .runtime = "native", .pid = 43 }, "main_[n];work_[n];helper_[i] 1" },
		{ { .runtime = "python", .pid = 43 }, "" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(load_drawn(&cases[i].filter), cases[i].want, "filter %zu", i);
}

static void test_filter_errors(void)
{
	static const struct {
		struct profile_filter filter;
		const char *code, *says;
	} cases[] = {
		{ { .pid = 7 }, "ENOENT", "no process 7. It has 42 (app), 43 (tool)" },
		{ { .thread = "x" }, "ENOENT", "no thread x. It has 42 (app), 44 (worker)" },
		{ { .pid = 42, .thread = "44" }, "ENOENT", "no thread 44. It has 42 (app)" },
		{ { .runtime = "ruby" },
		  "EINVAL",
		  "no runtime ruby. It has kernel, native, inlined, python" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		is_str(load_drawn(&cases[i].filter), cases[i].code, "%s", cases[i].says);
		if (!ok(strstr(err.text, cases[i].says), "and what there is instead"))
			tap__diag("%s", err.text);
	}
}

/* A recording of several events loads as a profile per event, with the event's unit. */
static void test_events(void)
{
	static const struct {
		const char *event, *want, *of;
		enum profile_unit unit;
		const char *others;
		uint64_t samples;
	} cases[] = {
		{ NULL, " 1  main_[n];work_[n];helper_[i] 1", "cpu", PROFILE_SAMPLES, "faults, odd",
		  2 },
		{ "faults", "main_[n];" PYTHON " 18446744073709551614", "faults", PROFILE_BYTES,
		  "cpu, odd", 2 },
		{ "odd", "", "odd", PROFILE_OTHER, "cpu, faults", 0 },
	};
	struct profile_filter filter = {};
	struct profile *profile = NULL;

	record();
	sqlite_text(path,
		    "INSERT INTO event VALUES (5, 'faults', 'bytes'), (9, 'odd', 'furlongs')");
	sqlite_text(path, "UPDATE sample SET event = 5, total = 9223372036854775807 WHERE id < 3");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		filter.event = cases[i].event;
		is_str(load_drawn(&filter), cases[i].want, "event %zu", i);
		if (load__profile(path, &filter, &profile, NULL, &err))
			continue;
		is_str(profile->event, cases[i].of, "its name");
		is_int(profile->unit, cases[i].unit, "its unit");
		is_str(profile->other_events, cases[i].others, "and which others there are");
		is_int(profile->samples, cases[i].samples, "samples");
		profile__free(profile);
	}
	filter.event = "fault";
	is_str(load_drawn(&filter), "EINVAL", "a prefix is not enough");
	if (!ok(strstr(err.text, "no event fault. It has cpu, faults, odd"), "which it says"))
		tap__diag("%s", err.text);
	sqlite_text(path, "UPDATE event SET name = 'a;' || name");
	filter.event = NULL;
	is_str(load_drawn(&filter), cases[0].want, "without cpu it is the first");
	filter = (struct profile_filter) { .event = "a;faults", .pid = 43 };
	is_str(load_drawn(&filter), "", "with other filters");
	workdir__run("rm r.db");
}

/* Frames without proof are marked and counted. With `evidence` they are separate from the same
 * frames with proof. */
static void test_evidence(void)
{
	static const struct profile_filter joined = {}, apart = { .evidence = true };
	static const char *const changes = "UPDATE node SET evidence = 3 WHERE id IN (2, 6);"
					   "UPDATE node SET evidence = 9 WHERE id = 1";
	struct profile *profile = NULL;
	char text[PROFILE_INFERRED_BYTES];
	sqlite3 *db;

	record();
	sqlite3_open(path, &db);
	is_int(sqlite3_exec(db, changes, NULL, NULL, NULL), SQLITE_OK, "nodes are inferred");
	sqlite3_close(db);
	is_str(load_drawn(&joined), ALL, "the frames are the same");
	is_str(load_drawn(&apart),
	       " 1  main_[n?];<module> (app.py)_[py];f (app.py)_[py?];strcmp_[n];"
	       "sys_read_[k] 4  main_[n?];work_[n];helper_[i] 1",
	       "the frames are marked");
	sqlite_text(path, "INSERT INTO location SELECT frame, 1, location.kind, function, line "
			  "FROM location JOIN node USING (frame) WHERE node.id = 6");
	is_str(load_drawn(&apart),
	       " 1  main_[n?];<module> (app.py)_[py];f (app.py)_[py];f (app.py)_[py?];strcmp_[n];"
	       "sys_read_[k] 4  main_[n?];work_[n];helper_[i] 1",
	       "of a runtime's frame what is inlined into it");
	load__profile(path, &joined, &profile, NULL, &err);
	is_int(profile->evidence.natives, 2 * 3 + 2, "native frames of all samples");
	is_int(profile->evidence.inferred_natives, 2 * 2 + 1, "of these, inferred");
	is_int(profile->evidence.runtimes, 2 * 2, "runtime frames of all samples");
	is_int(profile->evidence.inferred_runtimes, 2 * 1, "of these, inferred");
	profile__inferred(&profile->evidence, text);
	is_str(text, "62.5 % of native frames and 50 % of runtime frames are inferred", "said");
	profile__inferred(&(struct profile_evidence) { .natives = 10000000, .inferred_natives = 1 },
			  text);
	is_str(text, "less than 0.001 % of native frames are inferred", "never as 0 %%");
	profile__inferred(&(struct profile_evidence) { .natives = 10 }, text);
	is_str(text, "", "nothing where there are none");
	profile__free(profile);
	unlink(path);
}

/* Recordings of older versions. */
static void test_versions(void)
{
	static const struct {
		const char *file, *want;
	} versions[] = {
		{ "tests/unit/recording_v1.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 2" },
		{ "tests/unit/recording_v2.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
		{ "tests/unit/recording_v3.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
		{ "tests/unit/recording_v4.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
		{ "tests/unit/recording_v5.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
		{ "tests/unit/recording_v6.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
		{ "tests/unit/recording_v7.sql",
		  "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 3" },
	};
	static const struct profile_filter all = { .histogram = true }, cpu = { .event = "cpu" },
					   other = { .event = "faults" };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		FILE *file = fopen(versions[i].file, "r");
		struct profile *profile = NULL;
		char sql[16384] = "";
		sqlite3 *db;

		if (!file || !fread(sql, 1, sizeof(sql) - 1, file))
			tap__diag("no %s", versions[i].file);
		if (file)
			fclose(file);
		sqlite3_open(path, &db);
		is_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", versions[i].file);
		sqlite3_close(db);
		is_str(load_drawn(&all), versions[i].want, "is read");
		is_str(load_drawn(&cpu), versions[i].want, "as the event cpu");
		is_str(load_drawn(&other), "EINVAL", "and has no other");
		load__profile(path, &all, &profile, NULL, &err);
		is_str(profile->event, "cpu", "which it says");
		is_int(profile->unit, PROFILE_SAMPLES, "in samples");
		is_str(profile->other_events, "", "alone");
		ok(profile->histograms[0].occurrences == 2 &&
			   profile->histograms[0].value == profile->total,
		   "each sample has the value that it had, and stands for itself");
		ok(profile->samples == 2 && profile->frequency_hz == 999, "of which it has two");
		profile__free(profile);
		workdir__run("rm r.db");
	}
}

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	test_profile();
	test_filters();
	test_filter_errors();
	test_events();
	test_evidence();
	test_versions();
	return tap__done();
}
