// SPDX-License-Identifier: GPL-2.0-or-later
/* Recordings are untrusted. Tests the readers on files that braid did not write. */
#include <endian.h>
#include <stdlib.h>

#include "tests/unit/loaded.h"

/* The tables of samples up to version 2. */
#define OLD(version)                                                                   \
	"DROP VIEW leaf; DROP VIEW stack; ALTER TABLE sample DROP COLUMN event;"       \
	"ALTER TABLE sample DROP COLUMN weight; ALTER TABLE sample DROP COLUMN total;" \
	"ALTER TABLE sample RENAME COLUMN value TO weight; DROP TABLE event;"          \
	"PRAGMA user_version = " #version

/* Results of the readers after a change of a file. */
static const struct {
	const char *what, *sql, *want;
} changes[] = {
	{ "an index that has all columns, in another order",
	  "CREATE INDEX i ON sample(value, native, runtime, thread)", ALL },
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
	{ "values of any kind", "UPDATE sample SET total = CASE id WHEN 4 THEN 'x' ELSE -1 END",
	  "" },
	{ "values beyond all bounds",
	  "UPDATE sample SET total = 9223372036854775807 WHERE id < 3;"
	  "DELETE FROM sample WHERE id > 2",
	  "main_[n];" PYTHON " 18446744073709551614" },
	{ "stacks that lead nowhere", "UPDATE sample SET native = 999, runtime = 'x'", " 6" },
	{ "numbers in titles",
	  "UPDATE meta SET value = 'nan' WHERE key <> 'target'; "
	  "UPDATE counter SET value = -5",
	  ALL },
	{ "values of the greatest number there is, and one more",
	  "UPDATE sample SET total = CASE id WHEN 4 THEN 9223372036854775807 "
	  "WHEN 3 THEN -9223372036854775808 ELSE 0 END",
	  "main_[n];work_[n];helper_[i] 9223372036854775807" },
	{ "no events", "DELETE FROM event; UPDATE sample SET event = NULL", ALL },
	{ "events that lead nowhere",
	  "UPDATE sample SET event = CASE id WHEN 1 THEN 7 WHEN 2 "
	  "THEN 'x' WHEN 3 THEN -1 ELSE 1 END",
	  "main_[n];work_[n];helper_[i] 1" },
	{ "an event's id that is too big", "UPDATE event SET id = 4294967296", "EBADMSG" },
	{ "version 2", OLD(2), ALL },
	{ "no samples", "DELETE FROM sample", "" },
	{ "a cycle", "UPDATE node SET parent = 4 WHERE id = 2", "EBADMSG" },
	{ "a node that is its own parent", "UPDATE node SET parent = id", "EBADMSG" },
	{ "a stack that is too deep",
	  "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 8300)"
	  "INSERT INTO node SELECT i, i - 1, 1, 0, NULL FROM n",
	  "EBADMSG" },
	{ "an id that is too big", "UPDATE node SET id = 4294967296 WHERE id = 7", "EBADMSG" },
	{ "a table missing", "DROP TABLE sample", "EBADMSG" },
	{ "a column missing", "DROP VIEW leaf; ALTER TABLE sample RENAME COLUMN total TO wait",
	  "EBADMSG" },
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
	{ "marks of a version that has none", "UPDATE frame SET loop = 1;" OLD(1), ALL },
	{ "no column for them", "ALTER TABLE frame DROP COLUMN loop", "EBADMSG" },
	{ "no column for them in version 1", "ALTER TABLE frame DROP COLUMN loop;" OLD(1), ALL },
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
	{ "the next version", "PRAGMA user_version = 9", "EBADMSG" },
	{ "no version", "PRAGMA user_version = 0", "EBADMSG" },
	{ "another application", "PRAGMA application_id = 99", "EBADMSG" },
};

static void test_changes(void)
{
	const struct profile_filter filter = { 0 };
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
	const struct profile_filter filter = { 0 };

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

/* Overwrites the file in place: some file systems flush data that is written after a truncation to
 * 0. */
static void write_bytes(const unsigned char *data, size_t size)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, size))
		exit(1);
	close(fd);
}

/* Returns true if the file loads, or fails with an error of the file. */
static bool survived(void)
{
	const struct profile_filter filter = { .lines = true };
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
		if (i % 3) /* every third change remains */
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

/* Makes an interior page of a b-tree of tables whose children are all the page @child. See
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

/* A schema with 20^12 copies of the same entries, which cannot be read in the age of the universe.
 */
static void test_endless(void)
{
	const struct profile_filter filter = { 0 };
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

int main(void)
{
	workdir__make();
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	test_changes();
	test_other_files();
	test_damage();
	test_endless();
	return tap__done();
}
