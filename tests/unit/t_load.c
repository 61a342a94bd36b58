// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/load.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>

#include "core/recording.h"
#include "core/util.h"
#include "tests/tap.h"
#include "tests/unit/sqlite_text.h"
#include "tests/unit/workdir.h"

static char path[100];
static struct err err;

/* All stacks, root first, with their weights, in the order in which the tree has them. */
static const char *drawn(const struct profile *profile)
{
	static char text[4096];
	size_t len = 0, i;

	text[0] = '\0';
	for (i = 0; i < profile->n_nodes; i++) {
		uint32_t chain[64], n = 0, node = i;

		if (!profile->nodes[i].self)
			continue;
		for (; node && n < ARRAY_SIZE(chain); node = profile->nodes[node].parent)
			chain[n++] = profile->nodes[node].frame;
		len += snprintf(text + len, sizeof(text) - len, "%s", len ? "  " : "");
		while (n--) {
			char label[256];

			profile__label(profile, &profile->frames[chain[n]], 1, label,
				       sizeof(label));
			len += snprintf(text + len, sizeof(text) - len, "%s%s", label,
					n ? ";" : "");
		}
		len += snprintf(text + len, sizeof(text) - len, " %" PRIu64,
				profile->nodes[i].self);
	}
	return text;
}

/* What load__profile makes of the file, drawn; or the name of its error. */
static const char *load_drawn(const struct load_filter *filter)
{
	struct profile *profile = NULL;
	static char text[4096];
	int code = load__profile(path, filter, &profile, NULL, &err);

	if (code)
		return strerrorname_np(-code);
	snprintf(text, sizeof(text), "%s", drawn(profile));
	profile__free(profile);
	return text;
}

static uint32_t add_node(struct recording *recording, uint32_t parent, int64_t offset,
			 const struct recording_frame *frame,
			 const struct recording_location *names, size_t n)
{
	uint32_t id, node = 0;
	bool new;

	recording__frame(recording, frame, &id, &new, &err);
	if (new)
		recording__locations(recording, id, names, n, &err);
	recording__node(recording, parent, id, offset, &node, &err);
	return node;
}

/* One thread in main > eval > strcmp (> sys_read) that runs mod > f, two samples of weight 2; one
 * in another process in main > work, with helper inlined into work, one sample; one sample
 * without any stack. */
static void record(void)
{
	static const struct recording_process app = { 42, 1, 1, "app", "app" };
	static const struct recording_process tool = { 43, 42, 2, "tool", "tool -v" };
	const struct recording_location in_main = { KIND_NATIVE, "main", "src/app.c", 10 };
	const struct recording_location in_eval = { KIND_NATIVE, "eval", NULL, 0 };
	const struct recording_location in_strcmp = { KIND_NATIVE, "strcmp", NULL, 0 };
	const struct recording_location in_read = { KIND_KERNEL, "sys_read", NULL, 0 };
	const struct recording_location in_mod = { KIND_RUNTIME, "<module>", "/x/app.py", 1 };
	const struct recording_location in_f = { KIND_RUNTIME, "f", "/x/app.py", 7 };
	const struct recording_location in_work[] = { { KIND_INLINED, "helper", "src/app.h", 3 },
						      { KIND_NATIVE, "work", "src/app.c", 20 } };
	struct recording_sample sample = { .time_ns = 1, .weight = 2 };
	struct recording *recording = NULL;
	uint32_t process[2], main_node, eval, image;

#define FRAME(...) (&(struct recording_frame) { __VA_ARGS__, .loop = false })
	recording__create(path, true, &recording, &err);
	recording__kind(recording, KIND_KERNEL, "kernel", "_[k]", &err);
	recording__kind(recording, KIND_NATIVE, "native", "_[n]", &err);
	recording__kind(recording, KIND_INLINED, "inlined", "_[i]", &err);
	recording__kind(recording, KIND_RUNTIME, "python", "_[py]", &err);
	recording__meta(recording, "target", "pid 42 (app)", &err);
	recording__meta(recording, "duration_s", "1.5", &err);
	recording__meta(recording, "frequency_hz", "999", &err);
	recording__counter(recording, "samples taken", 4, &err);
	recording__counter(recording, "ring full", 3, &err);
	recording__counter(recording, "nothing", 0, &err);
	recording__process(recording, &app, &process[0], &err);
	recording__process(recording, &tool, &process[1], &err);
	recording__image(recording, "/usr/bin/app", "ab", &image, &err);

	recording__thread(recording, process[0], 42, "app", &sample.thread, &err);
	main_node = add_node(recording, 0, 0, FRAME(1, image, 0, 0x10), &in_main, 1);
	eval = add_node(recording, main_node, 100, FRAME(1, image, 0, 0x20), &in_eval, 1);
	sample.native = add_node(recording, eval, 200, FRAME(1, image, 0, 0x30), &in_strcmp, 1);
	sample.native = add_node(recording, sample.native, RECORDING_NO_OFFSET,
				 FRAME(0, 0, 0, 0xffffffff80000000), &in_read, 1);
	sample.runtime = add_node(recording, 0, 150, FRAME(3, 0, process[0], 1), &in_mod, 1);
	sample.runtime =
		add_node(recording, sample.runtime, 160, FRAME(3, 0, process[0], 2), &in_f, 1);
	recording__sample(recording, &sample, &err);
	recording__sample(recording, &sample, &err);
	sample.weight = 1;
	sample.native = sample.runtime = 0;
	recording__sample(recording, &sample, &err);

	recording__thread(recording, process[1], 44, "worker", &sample.thread, &err);
	sample.native = add_node(recording, main_node, 50, FRAME(1, image, 0, 0x40), in_work, 2);
	recording__sample(recording, &sample, &err);
	if (recording__close(recording, &err))
		printf("Bail out! %s\n", err.text);
}

#define PYTHON "<module> (app.py)_[py];f (app.py)_[py];strcmp_[n];sys_read_[k]"
#define ALL    " 1  main_[n];" PYTHON " 4  main_[n];work_[n];helper_[i] 1"

static void test_profile(void)
{
	const struct load_filter filter = { 0 };
	struct profile *profile = NULL;
	struct merge_report report;

	record();
	is_int(load__profile(path, &filter, &profile, &report, &err), 0, "loaded");
	is_str(drawn(profile), ALL, "stacks");
	is_int(profile->samples, 6, "sum of weights");
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
		struct load_filter filter;
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
		struct load_filter filter;
		const char *code, *says;
	} cases[] = {
		{ { .pid = 7 }, "ENOENT", "no process 7; there are: 42 (app), 43 (tool)" },
		{ { .thread = "x" }, "ENOENT", "no thread x; there are: 42 (app), 44 (worker)" },
		{ { .pid = 42, .thread = "44" }, "ENOENT", "no thread 44; there are: 42 (app)" },
		{ { .runtime = "ruby" },
		  "EINVAL",
		  "no runtime ruby; there are: kernel, native, inlined, python" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		is_str(load_drawn(&cases[i].filter), cases[i].code, "%s", cases[i].says);
		if (!ok(strstr(err.text, cases[i].says), "and what there is instead"))
			tap__diag("%s", err.text);
	}
}

/* What readers make of a file after a change of it. */
static const struct {
	const char *what, *sql, *want;
} changes[] = {
	{ "an index that has all columns, in another order",
	  "CREATE INDEX i ON sample(weight, native, runtime, thread)", ALL },
	{ "ids with gaps",
	  "UPDATE node SET id = -id; UPDATE node SET id = -1000 * id, parent = 1000 * parent;"
	  "UPDATE sample SET native = native * 1000, runtime = runtime * 1000",
	  ALL },
	{ "frames that were not named yet", "DELETE FROM location",
	  " 1  [app+0x10]_[n];[unknown]_[py];[unknown]_[py];[app+0x30]_[n];"
	  "[kernel+0xffffffff80000000]_[k] 4  [app+0x10]_[n];[app+0x40]_[n] 1" },
	{ "and whose image is missing", "DELETE FROM location; DELETE FROM image",
	  " 1  [unknown]_[n];[unknown]_[py];[unknown]_[py];[unknown]_[n];"
	  "[kernel+0xffffffff80000000]_[k] 4  [unknown]_[n];[unknown]_[n] 1" },
	{ "functions missing", "DELETE FROM function WHERE name LIKE 's%'",
	  " 1  main_[n];<module> (app.py)_[py];f (app.py)_[py];[unknown]_[n];[unknown]_[k] 4  "
	  "main_[n];work_[n];helper_[i] 1" },
	{ "frames missing", "DELETE FROM frame WHERE id > 1",
	  " 1  main_[n];[unknown]_[n] 1  "
	  "main_[n];[unknown]_[n];[unknown]_[n];[unknown]_[n];[unknown]_[n] 4" },
	{ "nodes missing", "DELETE FROM node WHERE id < 3",
	  " 1  <module> (app.py)_[py];f (app.py)_[py];strcmp_[n];sys_read_[k] 4  "
	  "work_[n];helper_[i] 1" },
	{ "kinds missing", "DELETE FROM kind",
	  " 1  main_[n];<module>_[n];f_[n];strcmp_[n];sys_read_[k] 4  main_[n];work_[n];helper_[i] "
	  "1" },
	{ "threads missing", "DELETE FROM thread; DELETE FROM process", ALL },
	{ "kinds that there cannot be",
	  "UPDATE location SET kind = 1e300; UPDATE frame SET kind = -7",
	  " 1  main_[n];<module>_[n];f_[n];strcmp_[n];sys_read_[n] 4  "
	  "main_[n];work_[n];helper_[n] 1" },
	{ "offsets that there cannot be", "UPDATE node SET offset = 9223372036854775807",
	  " 1  <module> (app.py)_[py];f (app.py)_[py];main_[n];eval_[n];strcmp_[n];sys_read_[k] 4  "
	  "main_[n];work_[n];helper_[i] 1" },
	{ "names that are no text",
	  "UPDATE function SET name = x'41', file = x'00' "
	  "WHERE name <> 'main'",
	  " 1  main_[n];[unknown]_[py];[unknown]_[py];[unknown]_[n];[unknown]_[k] 4  "
	  "main_[n];[unknown]_[n];[unknown]_[i] 1" },
	{ "names that are no UTF-8",
	  "UPDATE function SET name = CAST(x'ff41' AS TEXT), file = NULL "
	  "WHERE name = 'main'",
	  " 1  \xff"
	  "A_[n];" PYTHON " 4  \xff"
	  "A_[n];work_[n];helper_[i] 1" },
	{ "weights of any kind", "UPDATE sample SET weight = CASE id WHEN 4 THEN 'x' ELSE -1 END",
	  "" },
	{ "weights beyond all bounds",
	  "UPDATE sample SET weight = 9223372036854775807 WHERE id < 3;"
	  "DELETE FROM sample WHERE id > 2",
	  "main_[n];" PYTHON " 18446744073709551614" },
	{ "stacks that lead nowhere", "UPDATE sample SET native = 999, runtime = 'x'", " 6" },
	{ "numbers in titles",
	  "UPDATE meta SET value = 'nan' WHERE key <> 'target'; "
	  "UPDATE counter SET value = -5",
	  ALL },
	{ "no samples", "DELETE FROM sample", "" },
	{ "a cycle", "UPDATE node SET parent = 4 WHERE id = 2", "EBADMSG" },
	{ "a node that is its own parent", "UPDATE node SET parent = id", "EBADMSG" },
	{ "a stack that is too deep",
	  "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 8300)"
	  "INSERT INTO node SELECT i, i - 1, 1, 0 FROM n",
	  "EBADMSG" },
	{ "an id that is too big", "UPDATE node SET id = 4294967296 WHERE id = 7", "EBADMSG" },
	{ "a table missing", "DROP TABLE sample", "EBADMSG" },
	{ "a column missing", "ALTER TABLE sample RENAME COLUMN weight TO wait", "EBADMSG" },
	{ "a view instead of a table",
	  "DROP TABLE counter; CREATE VIEW counter AS WITH RECURSIVE n(i) AS "
	  "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS rowid, i AS name, i AS value FROM "
	  "n",
	  "EBADMSG" },
	{ "a part of the loop, around it", "UPDATE frame SET loop = 1 WHERE address = 0x10",
	  " 1  " PYTHON " 4  main_[n];work_[n];helper_[i] 1" },
	{ "a part inside it, or with no loop around",
	  "UPDATE frame SET loop = 1 WHERE address IN (0x30, 0x40)", ALL },
	{ "marks that are none",
	  "UPDATE frame SET loop = CASE id WHEN 1 THEN 2 WHEN 2 THEN 'x' ELSE -1 END", ALL },
	{ "marks of a version that has none", "UPDATE frame SET loop = 1; PRAGMA user_version = 1",
	  ALL },
	{ "no column for them", "ALTER TABLE frame DROP COLUMN loop", "EBADMSG" },
	{ "no column for them in version 1",
	  "ALTER TABLE frame DROP COLUMN loop; PRAGMA user_version = 1", ALL },
	{ "compiled code that runs frames", "UPDATE frame SET image = NULL WHERE address = 0x20",
	  " 1  main_[n];<module> (app.py)_[py];f (app.py)_[py];eval_[n];strcmp_[n];sys_read_[k] 4  "
	  "main_[n];work_[n];helper_[i] 1" },
	{ "runtime frames that wait elsewhere",
	  "UPDATE node SET offset = -9223372036854775807 WHERE offset IN (150, 160)",
	  " 1  <module> (app.py)_[py];f (app.py)_[py];main_[n];eval_[n];strcmp_[n];sys_read_[k] 4  "
	  "main_[n];work_[n];helper_[i] 1" },
	{ "an outer one that does",
	  "UPDATE node SET offset = -9223372036854775807 WHERE offset = 150",
	  " 1  <module> (app.py)_[py];main_[n];f (app.py)_[py];strcmp_[n];sys_read_[k] 4  "
	  "main_[n];work_[n];helper_[i] 1" },
	{ "another version", "PRAGMA user_version = 99", "EBADMSG" },
	{ "the next version", "PRAGMA user_version = 3", "EBADMSG" },
	{ "no version", "PRAGMA user_version = 0", "EBADMSG" },
	{ "another application", "PRAGMA application_id = 99", "EBADMSG" },
};

static void test_changes(void)
{
	const struct load_filter filter = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(changes); i++) {
		sqlite3 *db;

		record();
		sqlite3_open(path, &db);
		if (sqlite3_exec(db, changes[i].sql, NULL, NULL, NULL))
			tap__diag("%s", sqlite3_errmsg(db));
		sqlite3_close(db);
		is_str(load_drawn(&filter), changes[i].want, "%s", changes[i].what);
	}
}

static void test_other_files(void)
{
	const struct load_filter filter = { 0 };

	workdir__run("rm r.db*");
	is_str(load_drawn(&filter), "ENOENT", "no file");
	ok(strstr(err.text, path), "the sentence names it");
	workdir__write("r.db", "");
	is_str(load_drawn(&filter), "EBADMSG", "an empty file");
	workdir__write("r.db", "not a database at all, but long enough to have a header of one "
			       "hundred bytes, which takes some words");
	is_str(load_drawn(&filter), "EBADMSG", "a text");
	workdir__run("rm r.db && mkfifo r.db");
	is_str(load_drawn(&filter), "EBADMSG", "a FIFO");
	workdir__run("rm r.db && mkdir r.db");
	is_str(load_drawn(&filter), "EBADMSG", "a directory");
	workdir__run("rmdir r.db");
}

/* In place: some file systems flush what is written after a truncation to nothing. */
static void write_bytes(const unsigned char *data, size_t size)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, size))
		exit(1);
	close(fd);
}

/* Any error that is an error of the file, or none. */
static bool survived(void)
{
	const struct load_filter filter = { .lines = true };
	const char *got = load_drawn(&filter);

	return strcmp(got, "ENOMEM") && strcmp(got, "EIO");
}

static void test_damage(void)
{
	uint32_t random = 1;
	unsigned char *data;
	size_t size, i, at;
	int wrong = 0;

	record();
	data = workdir__read("r.db", &size);
	for (i = size; i > 512; i -= 512) {
		write_bytes(data, i - 512);
		wrong += !survived();
	}
	is_int(wrong, 0, "a file cut short anywhere");
	for (i = 0; i < 1500; i++) {
		unsigned char old;

		random = random * 1664525 + 1013904223;
		at = random % size;
		old = data[at];
		data[at] = random >> 24;
		write_bytes(data, size);
		wrong += !survived();
		if (i % 3) /* every third change stays */
			data[at] = old;
	}
	is_int(wrong, 0, "a file with wrong bytes");
	free(data);
}

static void put_u32(unsigned char *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

/* Makes an interior page of a b-tree of tables, with so many children that are all one page. See
 * https://www.sqlite.org/fileformat2.html#b_tree_pages. */
static void make_interior(unsigned char *page, size_t header_at, uint32_t child)
{
	unsigned char *header = page + header_at;
	const size_t n = 20, cells_at = 4096 - 5 * n;
	size_t i;

	memset(header, 0, 4096 - header_at);
	header[0] = 5;
	header[4] = n;
	header[5] = cells_at >> 8;
	header[6] = cells_at & 0xff;
	put_u32(header + 8, child);
	for (i = 0; i < n; i++) {
		header[12 + 2 * i] = (cells_at + 5 * i) >> 8;
		header[13 + 2 * i] = (cells_at + 5 * i) & 0xff;
		put_u32(page + cells_at + 5 * i, child);
		page[cells_at + 5 * i + 4] = i + 1;
	}
}

/* A schema that would take the age of the universe to read: 20^12 times the same entries. */
static void test_endless(void)
{
	const struct load_filter filter = { 0 };
	const uint32_t depth = 12;
	unsigned char *data;
	uint32_t leaf, i, n;
	size_t size;

	record();
	data = workdir__read("r.db", &size);
	n = size / 4096;
	data = realloc(data, size + depth * 4096);
	if (!data || data[100] != 5) {
		ok(false, "the schema takes more than one page");
		return;
	}
	memcpy(&leaf, data + 108, sizeof(leaf));
	make_interior(data, 100, n + 1);
	for (i = 0; i < depth; i++)
		make_interior(data + size + i * 4096, 0, i + 1 < depth ? n + i + 2 : be32toh(leaf));
	put_u32(data + 28, n + depth);
	write_bytes(data, size + depth * 4096);
	is_str(load_drawn(&filter), "EBADMSG", "an endless schema");
	if (!ok(strstr(err.text, "interrupted"), "is given up on"))
		tap__diag("%s", err.text);
	free(data);
}

/* What the first version's recorder wrote. */
static void test_version_1(void)
{
	const struct load_filter filter = { 0 };
	FILE *file = fopen("tests/unit/recording_v1.sql", "r");
	char sql[8192] = "";
	sqlite3 *db;

	if (!file || !fread(sql, 1, sizeof(sql) - 1, file))
		tap__diag("no recording_v1.sql");
	if (file)
		fclose(file);
	sqlite3_open(path, &db);
	is_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "version 1: written");
	sqlite3_close(db);
	is_str(load_drawn(&filter), "main_[n];<module> (app.py)_[py];f (app.py)_[py];strcmp_[n] 2",
	       "version 1: read");
	workdir__run("rm r.db");
}

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	test_profile();
	test_filters();
	test_filter_errors();
	test_changes();
	test_other_files();
	test_version_1();
	test_damage();
	test_endless();
	return tap__done();
}
