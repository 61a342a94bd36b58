// SPDX-License-Identifier: GPL-2.0-or-later
/* Announcements of code objects, valid and invalid ones. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "runtimes/python/python_codes.h"
#include "runtimes/python/python_lines.h"
#include "tests/tap.h"

#define FIXED offsetof(struct rec_code_object, table)

/* One unit each: lines 10, 11, then no line. */
static const uint8_t table[] = { 0x80 | 10 << 3, 0, 0, 0x80 | 11 << 3, 0, 0, 0x80 | 15 << 3 };

static void set_text(char *to, uint8_t *kind, uint16_t *len, unsigned int to_kind, const void *from,
		     size_t n)
{
	memcpy(to, from, n * to_kind);
	*kind = to_kind;
	*len = n;
}

static void fill(struct rec_code_object *rec, uint32_t code)
{
	memset(rec, 0, sizeof(*rec));
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = getpid();
	rec->walker = WALKER_PYTHON;
	rec->first_line = 10;
	rec->table_format = PYTHON_LINES_LOCATIONS;
	rec->table_size = sizeof(table);
	memcpy(rec->table, table, sizeof(table));
	set_text(rec->name, &rec->name_kind, &rec->name_len, 1, "C.method", 8);
	set_text(rec->file, &rec->file_kind, &rec->file_len, 1, "/a/b.py", 7);
}

/* Adds a record from memory that ends with it, for ASan. */
static int add(struct python_codes *codes, const struct rec_code_object *rec, size_t table_here)
{
	size_t size = FIXED + table_here;
	struct rec_code_object *exact = malloc(size);
	int rc = -ENOMEM;

	if (exact) {
		memcpy(exact, rec, size);
		rc = python_codes__add(codes, exact, size);
	}
	free(exact);
	return rc;
}

static void check_lines(struct python_codes *codes, uint32_t code, uint32_t first, uint32_t second,
			uint32_t third, const char *what)
{
	struct runtime_symbol symbol = { 0 };

	python_codes__symbolize(codes, FRAME_KEY(code, -2), &symbol);
	is_int(symbol.line, 10, "%s: not begun", what);
	python_codes__symbolize(codes, FRAME_KEY(code, 0), &symbol);
	is_int(symbol.line, first, "%s: first unit", what);
	python_codes__symbolize(codes, FRAME_KEY(code, 2), &symbol);
	is_int(symbol.line, second, "%s: second unit", what);
	python_codes__symbolize(codes, FRAME_KEY(code, 4), &symbol);
	is_int(symbol.line, third, "%s: third unit", what);
}

static void check_plain(struct python_codes *codes, struct rec_code_object *rec)
{
	struct runtime_symbol symbol;

	is_int(python_codes__symbolize(codes, FRAME_KEY(1, 0), &symbol), -ENOENT, "not announced");
	fill(rec, 1);
	is_int(add(codes, rec, sizeof(table)), 0, "announced");
	is_int(python_codes__symbolize(codes, FRAME_KEY(1, 0), &symbol), 0, "known");
	is_str(symbol.function, "C.method", "function");
	is_str(symbol.file, "/a/b.py", "file");
	check_lines(codes, 1, 10, 11, 0, "table in the record");
	is_int(add(codes, rec, sizeof(table)), -EBADMSG, "not twice");
	is_int(python_codes__symbolize(codes, FRAME_KEY(2, 0), &symbol), -ENOENT, "only that one");
}

static void check_text(struct python_codes *codes, struct rec_code_object *rec)
{
	static const uint16_t two[] = { 'a', 0x3b1, 0xd83d, 0xde00, 0xfffd, 0x20ac };
	static const uint32_t four[] = { 0x1f600, 0xdcff, 0, 0x110000, 0xffffffff };
	struct runtime_symbol symbol;

	fill(rec, 10);
	set_text(rec->name, &rec->name_kind, &rec->name_len, 2, two, ARRAY_SIZE(two));
	set_text(rec->file, &rec->file_kind, &rec->file_len, 1, "caf\xe9\x7f\x80", 6);
	is_int(add(codes, rec, sizeof(table)), 0, "UCS-2 and Latin-1");
	python_codes__symbolize(codes, FRAME_KEY(10, 0), &symbol);
	is_str(symbol.function, "aα���€", "surrogates are no characters");
	is_str(symbol.file, "café\x7f\xc2\x80", "Latin-1");

	fill(rec, 11);
	set_text(rec->name, &rec->name_kind, &rec->name_len, 4, four, ARRAY_SIZE(four));
	rec->file_kind = 0;
	is_int(add(codes, rec, sizeof(table)), 0, "UCS-4, no file");
	python_codes__symbolize(codes, FRAME_KEY(11, 0), &symbol);
	is_str(symbol.function, "😀����", "code points that do not exist");
	ok(!symbol.file, "file unknown");

	fill(rec, 12);
	rec->name_kind = 0;
	is_int(add(codes, rec, sizeof(table)), 0, "no name");
	python_codes__symbolize(codes, FRAME_KEY(12, 0), &symbol);
	is_str(symbol.function, "[unreadable name]", "name unknown");
}

static void check_cut(struct python_codes *codes, struct rec_code_object *rec)
{
	static const unsigned int kinds[] = { 1, 2, 4 };
	struct runtime_symbol symbol;
	uint32_t code = 20;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t n = CODE_OBJECT_TEXT_BYTES / kinds[i];

		for (size_t more = 0; more < 2; more++, code++) {
			fill(rec, code);
			memset(rec->name, 0, CODE_OBJECT_TEXT_BYTES);
			for (size_t c = 0; c < n; c++)
				rec->name[c * kinds[i]] = 'x';
			rec->name_kind = kinds[i];
			rec->name_len = n + more;
			add(codes, rec, sizeof(table));
			python_codes__symbolize(codes, FRAME_KEY(code, 0), &symbol);
			is_int(strspn(symbol.function, "x"), n, "kind %u: all that arrived",
			       kinds[i]);
			is_str(symbol.function + n, more ? "..." : "", "%zu more", more);
		}
	}
	fill(rec, code);
	memset(rec->name, 0xff, CODE_OBJECT_TEXT_BYTES);
	rec->name_kind = 2;
	rec->name_len = 0xffff;
	is_int(add(codes, rec, sizeof(table)), 0, "longest in UTF-8");
}

/* The rest of a long table is read from the process, here the test. */
static void check_table(struct python_codes *codes, struct rec_code_object *rec)
{
	size_t size = CODE_OBJECT_TABLE_BYTES + 1000;
	uint8_t *whole = calloc(1, size);

	if (!whole)
		return;
	memset(whole, 0x80 | 10 << 3, size); /* a unit each, 3 bytes or 1 */
	memcpy(whole, table, sizeof(table));
	fill(rec, 30);
	memcpy(rec->table, whole, CODE_OBJECT_TABLE_BYTES);
	rec->table_size = size;
	rec->table_address = (uintptr_t)whole;
	is_int(add(codes, rec, CODE_OBJECT_TABLE_BYTES), 0, "long table");
	check_lines(codes, 30, 10, 11, 0, "long table");
	check_lines(codes, 30, 10, 11, 0, "long table, again");
	fill(rec, 31);
	rec->table_address = (uintptr_t)whole;
	is_int(add(codes, rec, 0), 0, "table that the kernel could not read");
	check_lines(codes, 31, 10, 11, 0, "table from the process");
	fill(rec, 32);
	rec->table_address = 8;
	is_int(add(codes, rec, 0), 0, "table that cannot be had");
	check_lines(codes, 32, 10, 10, 10, "no table");
	fill(rec, 33);
	rec->table_size = UINT32_MAX;
	rec->table_address = (uintptr_t)whole;
	is_int(add(codes, rec, CODE_OBJECT_TABLE_BYTES), 0, "table that is too long");
	check_lines(codes, 33, 10, 10, 10, "no table");
	fill(rec, 34);
	rec->table_size = 0;
	is_int(add(codes, rec, 0), 0, "empty table");
	free(whole);
}

static void check_broken(struct python_codes *codes, struct rec_code_object *rec)
{
	struct runtime_symbol symbol;

	fill(rec, 40);
	is_int(python_codes__add(codes, rec, FIXED - 1), -EBADMSG, "too short");
	is_int(python_codes__add(codes, rec, 0), -EBADMSG, "empty");
	rec->table_format = PYTHON_LINES_LOCATIONS + 1;
	is_int(add(codes, rec, sizeof(table)), -EBADMSG, "impossible table");
	fill(rec, 40);
	is_int(python_codes__add(codes, rec, sizeof(*rec) + 1), -EBADMSG, "too long");
	rec->name_kind = 3;
	is_int(add(codes, rec, sizeof(table)), -EBADMSG, "impossible name");
	fill(rec, 40);
	rec->file_kind = CODE_OBJECT_TEXT_UTF8 + 1;
	is_int(add(codes, rec, sizeof(table)), -EBADMSG, "impossible file");
	fill(rec, 0);
	is_int(add(codes, rec, sizeof(table)), -EBADMSG, "number 0");
	is_int(python_codes__symbolize(codes, FRAME_KEY(40, 0), &symbol), -ENOENT, "none stored");
}

/* A name that a probe reports: UTF-8, no table, and the line in the frame's key. */
static void check_reported(struct python_codes *codes, struct rec_code_object *rec)
{
	static const char bad[] = "x\xc3\xa9\xff\xe2\x82y\xc0\xaf";
	struct runtime_symbol symbol = { 0 };

	fill(rec, 50);
	rec->table_format = PYTHON_LINES_LNOTAB;
	rec->table_size = 0;
	rec->name_kind = rec->file_kind = CODE_OBJECT_TEXT_UTF8;
	rec->name_len = sizeof(bad) - 1;
	memcpy(rec->name, bad, sizeof(bad));
	is_int(add(codes, rec, 0), 0, "told by a probe");
	python_codes__symbolize(codes, FRAME_KEY(50, 77), &symbol);
	is_str(symbol.function, "x\u00e9\ufffd\ufffdy\ufffd", "UTF-8, what is none replaced");
	is_int(symbol.line, 77, "the line that it told");
	python_codes__symbolize(codes, FRAME_KEY(50, 0), &symbol);
	is_int(symbol.line, 10, "none: the first line");
	fill(rec, 51);
	is_int(add(codes, rec, CODE_OBJECT_TABLE_BYTES), 0, "more bytes than the table has");
	check_lines(codes, 51, 10, 11, 0, "they do not count");
}

int main(void)
{
	struct python_codes *codes = python_codes__new();
	struct rec_code_object *rec = malloc(sizeof(*rec));

	if (codes && rec) {
		check_plain(codes, rec);
		check_text(codes, rec);
		check_cut(codes, rec);
		check_table(codes, rec);
		check_broken(codes, rec);
		check_reported(codes, rec);
	}
	free(rec);
	python_codes__free(codes);
	python_codes__free(NULL);
	return tap__done();
}
