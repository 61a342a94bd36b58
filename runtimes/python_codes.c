// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/util.h"
#include "runtimes/python_lines.h"

#define TABLE_BYTES_MAX (1024 * 1024)
#define UTF8_BYTES_MAX	4 /* per character */
#define REPLACEMENT	0xfffd
#define UNREADABLE	"[unreadable name]"

/* In text: "..." where the walker had to cut it. */
#define TEXT_BYTES (CODE_TEXT_BYTES * UTF8_BYTES_MAX + sizeof("..."))

struct code {
	uint32_t number;
	uint32_t first_line;
	char *function;
	char *file;	/* NULL: unknown */
	uint8_t *table; /* NULL: unknown */
	size_t table_size;
	UT_hash_handle hh;
};

struct python_codes {
	struct code *by_number;
};

static void code__free(struct code *code)
{
	if (!code)
		return;
	free(code->function);
	free(code->file);
	free(code->table);
	free(code);
}

struct python_codes *python_codes__new(void)
{
	return calloc(1, sizeof(struct python_codes));
}

void python_codes__free(struct python_codes *codes)
{
	struct code *code, *next;

	if (!codes)
		return;
	HASH_ITER (hh, codes->by_number, code, next) {
		HASH_DEL(codes->by_number, code);
		code__free(code);
	}
	free(codes);
}

/* Returns the number of bytes written, 1 to UTF8_BYTES_MAX. */
static size_t put_utf8(char *to, uint32_t c)
{
	/* A string in the target may hold any code point, also halves of surrogate pairs. */
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = REPLACEMENT;
	if (c < 0x80) {
		to[0] = c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = 0xc0 | c >> 6;
		to[1] = 0x80 | (c & 0x3f);
		return 2;
	}
	if (c < 0x10000) {
		to[0] = 0xe0 | c >> 12;
		to[1] = 0x80 | (c >> 6 & 0x3f);
		to[2] = 0x80 | (c & 0x3f);
		return 3;
	}
	to[0] = 0xf0 | c >> 18;
	to[1] = 0x80 | (c >> 12 & 0x3f);
	to[2] = 0x80 | (c >> 6 & 0x3f);
	to[3] = 0x80 | (c & 0x3f);
	return 4;
}

static uint32_t get_char(const char *from, size_t i, unsigned int kind)
{
	uint32_t c4;
	uint16_t c2;

	if (kind == 1)
		return (unsigned char)from[i];
	if (kind == 2) {
		memcpy(&c2, from + 2 * i, sizeof(c2));
		return c2;
	}
	memcpy(&c4, from + 4 * i, sizeof(c4));
	return c4;
}

/* One of a record's texts (CODE_TEXT_BYTES at `from`) as UTF-8, owned; NULL: out of memory. */
static char *text__dup(const char *from, unsigned int kind, size_t len)
{
	size_t n = min_of(len, CODE_TEXT_BYTES / kind), bytes = 0;
	char text[TEXT_BYTES];

	for (size_t i = 0; i < n; i++)
		bytes += put_utf8(text + bytes, get_char(from, i, kind));
	strcpy(text + bytes, n < len ? "..." : "");
	return strdup(text);
}

static bool kind__valid(unsigned int kind)
{
	return kind == 0 || kind == 1 || kind == 2 || kind == 4;
}

static bool rec__valid(const struct rec_code *rec, size_t size)
{
	size_t fixed = offsetof(struct rec_code, table), here = size - fixed;

	if (size < fixed || here > CODE_TABLE_BYTES)
		return false;
	return rec->code && kind__valid(rec->name_kind) && kind__valid(rec->file_kind) &&
	       here <= rec->table_size;
}

/* Sets no table where it cannot be had: the code has left memory, or the process is gone. */
static int code__set_table(struct code *code, const struct rec_code *rec, size_t here)
{
	struct iovec remote = { .iov_base = (void *)(uintptr_t)rec->table_address };
	struct iovec local;
	uint8_t *table;

	if (!rec->table_size || rec->table_size > TABLE_BYTES_MAX)
		return 0;
	table = malloc(rec->table_size);
	if (!table)
		return -ENOMEM;
	local = (struct iovec) { .iov_base = table, .iov_len = rec->table_size };
	remote.iov_len = rec->table_size;
	if (here == rec->table_size) {
		memcpy(table, rec->table, here);
	} else if (process_vm_readv(rec->tgid, &local, 1, &remote, 1, 0) !=
		   (ssize_t)rec->table_size) {
		free(table);
		return 0;
	}
	code->table = table;
	code->table_size = rec->table_size;
	return 0;
}

static int code__new(const struct rec_code *rec, size_t size, struct code **ret)
{
	struct code *code = calloc(1, sizeof(*code));
	int rc = -ENOMEM;

	if (!code)
		return -ENOMEM;
	code->number = rec->code;
	code->first_line = rec->first_line;
	code->function = rec->name_kind ? text__dup(rec->name, rec->name_kind, rec->name_len)
					: strdup(UNREADABLE);
	if (!code->function)
		goto out;
	if (rec->file_kind) {
		code->file = text__dup(rec->file, rec->file_kind, rec->file_len);
		if (!code->file)
			goto out;
	}
	rc = code__set_table(code, rec, size - offsetof(struct rec_code, table));
out:
	if (rc)
		code__free(code);
	else
		*ret = code;
	return rc;
}

int python_codes__add(struct python_codes *codes, const struct rec_code *rec, size_t size)
{
	struct code *code, *old;
	int rc;

	if (!rec__valid(rec, size))
		return -EBADMSG;
	HASH_FIND(hh, codes->by_number, &rec->code, sizeof(rec->code), old);
	if (old)
		return -EBADMSG; /* numbers are never used again */
	rc = code__new(rec, size, &code);
	if (rc)
		return rc;
	HASH_ADD(hh, codes->by_number, number, sizeof(code->number), code);
	if (!code->hh.tbl) {
		code__free(code);
		return -ENOMEM;
	}
	return 0;
}

int python_codes__symbolize(const struct python_codes *codes, uint64_t key,
			    struct runtime_symbol *ret)
{
	uint32_t number = FRAME_KEY_CODE(key);
	struct code *code;

	HASH_FIND(hh, codes->by_number, &number, sizeof(number), code);
	if (!code)
		return -ENOENT;
	ret->function = code->function;
	ret->file = code->file;
	ret->line = code->table ? python_lines__find(code->table, code->table_size,
						     code->first_line, FRAME_KEY_INDEX(key))
				: code->first_line;
	return 0;
}
