// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_codes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/common/numbered_codes.h"
#include "runtimes/python/python_lines.h"
#include "runtimes/python/python_qualname.h"

#define TABLE_BYTES_MAX (1024 * 1024)
#define UNREADABLE	"[unreadable name]"

struct code {
	uint32_t first_line;
	enum python_line_format line_format;
	bool is_probed; /* by a probe: frame keys have a line instead of an instruction */
	char *function;
	char *file;	/* NULL: unknown */
	uint8_t *table; /* NULL: unknown */
	size_t table_size;
};

struct python_codes {
	struct numbered_codes by_number;
	struct python_sources *sources;
};

static void code__free(void *of)
{
	struct code *code = of;

	if (!code)
		return;
	free(code->function);
	free(code->file);
	free(code->table);
	free(code);
}

struct python_codes *python_codes__new(void)
{
	struct python_codes *codes = calloc(1, sizeof(*codes));

	if (codes)
		codes->sources = python_sources__new();
	if (codes && !codes->sources) {
		free(codes);
		codes = NULL;
	}
	return codes;
}

void python_codes__free(struct python_codes *codes)
{
	if (!codes)
		return;
	numbered_codes__done(&codes->by_number, code__free);
	python_sources__free(codes->sources);
	free(codes);
}

static bool rec__valid(const struct rec_code_object *rec, size_t size)
{
	size_t fixed = offsetof(struct rec_code_object, table), here = size - fixed;

	if (size < fixed || here > CODE_OBJECT_TABLE_BYTES)
		return false;
	return rec->code && code_object_text__valid(rec->name_kind) &&
	       code_object_text__valid(rec->file_kind) &&
	       rec->table_format <= PYTHON_LINES_LOCATIONS;
}

/* Sets the table of lines, or none if it is unreadable: the code has left memory, or the process
 * has ended. Returns 0 or -ENOMEM. */
static int code__set_table(struct code *code, const struct rec_code_object *rec, size_t here)
{
	uint8_t *table;

	if (!rec->table_size || rec->table_size > TABLE_BYTES_MAX)
		return 0;
	table = malloc(rec->table_size);
	if (!table)
		return -ENOMEM;
	if (here == rec->table_size) {
		memcpy(table, rec->table, here);
	} else if (!procfs__read_memory(rec->tgid, rec->table_address, table, rec->table_size)) {
		free(table);
		return 0;
	}
	code->table = table;
	code->table_size = rec->table_size;
	return 0;
}

/* Code objects before 3.11, and probes, have no qualified names: these come from the source. */
static int code__qualify(struct code *code, const struct rec_code_object *rec,
			 struct python_sources *sources)
{
	const char *qualified;
	char *function;

	if (rec->table_format == PYTHON_LINES_LOCATIONS || !rec->name_kind || !code->file)
		return 0;
	qualified = python_sources__qualname(sources, rec->tgid, code->file, code->function,
					     rec->first_line);
	if (!qualified)
		return 0;
	function = strdup(qualified);
	if (!function)
		return -ENOMEM;
	free(code->function);
	code->function = function;
	return 0;
}

static int code__new(const struct rec_code_object *rec, size_t size, struct python_sources *sources,
		     struct code **ret)
{
	struct code *code = calloc(1, sizeof(*code));
	int rc = -ENOMEM;

	if (!code)
		return -ENOMEM;
	code->first_line = rec->first_line;
	code->line_format = rec->table_format;
	code->is_probed = rec->name_kind == CODE_OBJECT_TEXT_UTF8;
	code->function = rec->name_kind ? code_object_text__dup(rec->name, CODE_OBJECT_TEXT_BYTES,
								rec->name_kind, rec->name_len)
					: strdup(UNREADABLE);
	if (!code->function)
		goto out;
	if (rec->file_kind) {
		code->file = code_object_text__dup(rec->file, CODE_OBJECT_TEXT_BYTES,
						   rec->file_kind, rec->file_len);
		if (!code->file)
			goto out;
	}
	rc = code__qualify(code, rec, sources);
	if (!rc)
		rc = code__set_table(code, rec,
				     min_of(size - offsetof(struct rec_code_object, table),
					    (size_t)rec->table_size));
out:
	if (rc)
		code__free(code);
	else
		*ret = code;
	return rc;
}

int python_codes__add(struct python_codes *codes, const struct rec_code_object *rec, size_t size)
{
	struct code *code;
	int rc;

	if (!rec__valid(rec, size))
		return -EBADMSG;
	if (numbered_codes__find(&codes->by_number, rec->code))
		return -EBADMSG; /* numbers are never used again */
	rc = code__new(rec, size, codes->sources, &code);
	if (rc)
		return rc;
	return numbered_codes__put(&codes->by_number, rec->code, code, code__free);
}

void python_codes__forget(struct python_codes *codes, const struct u64map *listed)
{
	numbered_codes__forget(&codes->by_number, listed, code__free);
}

int python_codes__symbolize(const struct python_codes *codes, uint64_t key,
			    struct runtime_symbol *ret)
{
	const struct code *code = numbered_codes__of_key(&codes->by_number, key);

	if (!code)
		return -ENOENT;
	ret->function = code->function;
	ret->file = code->file;
	if (code->table)
		ret->line = python_lines__find(code->line_format, code->table, code->table_size,
					       code->first_line, FRAME_KEY_INDEX(key));
	else /* a probe reports the line itself */
		ret->line = code->is_probed && FRAME_KEY_INDEX(key) ? FRAME_KEY_INDEX(key)
								    : code->first_line;
	return 0;
}

/* -X perf writes "py::QUALNAME:FILE" (Python/perf_trampoline.c at 3.12). */
bool python_codes__label(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	static const char prefix[] = "py::";
	char *colon;

	if (strncmp(symbol, prefix, strlen(prefix)) != 0)
		return false;
	snprintf(buf, size, "%s", symbol + strlen(prefix));
	colon = strchr(buf, ':');
	if (colon)
		*colon = '\0';
	ret->symbol.function = buf;
	ret->symbol.file = colon ? colon + 1 : NULL;
	ret->loop = true;
	return true;
}
