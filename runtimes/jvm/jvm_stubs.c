// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_stubs.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_symbols.h"
#include "runtimes/jvm/jvm_blobs.h"

#define PREFIX	   "_ZN12StubRoutines" /* prefix of the mangled names of its static members */
#define NAME_BYTES 64
#define FIELDS_MAX 1024
#define RANGES_MAX 16 /* blobs with stubs in them; JDK 25 has 4 */

struct field {
	uint64_t variable; /* address */
	uint64_t start;	   /* start of the stub; 0: not generated yet */
	char name[NAME_BYTES];
};

struct jvm_stubs {
	struct field *fields; /* by variable */
	size_t n, cap;
	const struct field **by_start; /* fields with a start */
	size_t n_started;
	struct range {
		uint64_t start, end;
	} ranges[RANGES_MAX];
	size_t n_ranges;
};

/* --- fields of StubRoutines --- */

/* Adds a field. Its stub's name is derived from the field's: "_jint_fill" -> "jint_fill",
 * "_fence_entry" -> "fence". A field may also be a place in a stub: "_jint_fill_nopush",
 * "_call_stub_return_address" -> "call_stub". Returns 0 or -ENOMEM. */
static int add_field(struct jvm_stubs *stubs, uint64_t variable, const char *name, size_t length)
{
	static const char *const ENDINGS[] = { "_return_address", "_entry", "_nopush" };
	struct field *field;
	int rc;

	name += *name == '_';
	length -= name[-1] == '_';
	for (size_t i = 0; i < ARRAY_SIZE(ENDINGS); i++) {
		size_t ending = strlen(ENDINGS[i]);

		if (length > ending && memcmp(name + length - ending, ENDINGS[i], ending) == 0)
			length -= ending;
	}
	if (!length || length >= NAME_BYTES || stubs->n == FIELDS_MAX)
		return 0;
	rc = array__reserve(&stubs->fields, &stubs->cap, stubs->n + 1, sizeof(*stubs->fields));
	if (rc)
		return rc;
	field = &stubs->fields[stubs->n++];
	*field = (struct field) { .variable = variable };
	memcpy(field->name, name, length);
	return 0;
}

/* Returns the last part of a nested name, "12_fence_entryE" or "3x8612_f2i_fixupE". */
static const char *last_part(const char *mangled, size_t *ret_length)
{
	char *end;

	while (isdigit((unsigned char)*mangled)) {
		size_t length = strtoul(mangled, &end, 10);

		if (length > strlen(end))
			return NULL;
		if (end[length] == 'E' && !end[length + 1]) {
			*ret_length = length;
			return end;
		}
		mangled = end + length;
	}
	return NULL;
}

static int add_symbols(struct jvm_stubs *stubs, const struct elf_file *file, uint64_t bias)
{
	struct elf_symbols symbols;
	int rc = 0;

	if (!elf_symbols__open(file, ".symtab", &symbols))
		return 0;
	for (size_t i = 0; !rc && i < symbols.n; i++) {
		GElf_Sym symbol;
		const char *name = elf_symbols__get(&symbols, i, &symbol);
		size_t length;

		if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
		    symbol.st_size != sizeof(uint64_t) || strncmp(name, PREFIX, strlen(PREFIX)))
			continue;
		name = last_part(name + strlen(PREFIX), &length);
		if (name)
			rc = add_field(stubs, bias + symbol.st_value, name, length);
	}
	return rc;
}

static int add_table(struct jvm_stubs *stubs, const struct jvm_tables *tables)
{
	const struct jvm_field *fields;
	size_t n = jvm_tables__fields(tables, &fields);
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		if (fields[i].is_static && fields[i].name && fields[i].kind &&
		    strcmp(fields[i].type, "StubRoutines") == 0 &&
		    strcmp(fields[i].kind, "address") == 0)
			rc = add_field(stubs, fields[i].at, fields[i].name, strlen(fields[i].name));
	return rc;
}

static int by_variable(const void *a, const void *b)
{
	const struct field *x = a, *y = b;

	return x->variable < y->variable ? -1 : x->variable > y->variable;
}

int jvm_stubs__new(const struct elf_file *file, uint64_t bias, const struct jvm_tables *tables,
		   struct jvm_stubs **ret)
{
	struct jvm_stubs *stubs = calloc(1, sizeof(*stubs));
	int rc;

	if (!stubs)
		return -ENOMEM;
	rc = add_symbols(stubs, file, bias);
	if (!rc && !stubs->n)
		rc = add_table(stubs, tables);
	if (!rc && stubs->n) {
		qsort(stubs->fields, stubs->n, sizeof(*stubs->fields), by_variable);
		stubs->by_start = calloc(stubs->n, sizeof(*stubs->by_start));
		rc = stubs->by_start ? 0 : -ENOMEM;
	}
	if (rc)
		jvm_stubs__free(stubs);
	else
		*ret = stubs;
	return rc;
}

void jvm_stubs__free(struct jvm_stubs *stubs)
{
	if (!stubs)
		return;
	free(stubs->fields);
	free(stubs->by_start);
	free(stubs);
}

/* --- addresses of stubs --- */

/* Orders fields by the start of their stub. If a stub has several names, the shortest comes
 * last, which field_before() returns: "jint_arraycopy", not "arrayof_jint_arraycopy". */
static int by_start(const void *a, const void *b)
{
	const struct field *x = *(const struct field *const *)a;
	const struct field *y = *(const struct field *const *)b;
	size_t x_length = strlen(x->name), y_length = strlen(y->name);

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x_length != y_length)
		return x_length > y_length ? -1 : 1;
	return strcmp(y->name, x->name);
}

/* Reads the starts of all stubs. The cached value of an unreadable one does not change. */
static void read_starts(struct jvm_stubs *stubs, const struct jvm_vm *vm)
{
	uint64_t values[256];
	size_t n;

	for (size_t i = 0; i < stubs->n; i += n) {
		uint64_t first = stubs->fields[i].variable;

		/* The variables lie side by side, so that one read covers several. */
		for (n = 1; i + n < stubs->n; n++)
			if (stubs->fields[i + n].variable - first > sizeof(values) - 8)
				break;
		if (jvm_vm__read(vm, first, values, stubs->fields[i + n - 1].variable - first + 8))
			continue;
		for (size_t k = i; k < i + n; k++)
			memcpy(&stubs->fields[k].start,
			       (uint8_t *)values + (stubs->fields[k].variable - first), 8);
	}
	stubs->n_started = 0;
	for (size_t i = 0; i < stubs->n; i++)
		if (stubs->fields[i].start)
			stubs->by_start[stubs->n_started++] = &stubs->fields[i];
	qsort(stubs->by_start, stubs->n_started, sizeof(*stubs->by_start), by_start);
}

static const struct field *field_before(const struct jvm_stubs *stubs, uint64_t pc)
{
	size_t low = 0, high = stubs->n_started;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (stubs->by_start[middle]->start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? stubs->by_start[low - 1] : NULL;
}

/* Returns true if @start and @pc are in one blob: the stub before a pc in memory may be part of
 * another blob. */
static bool is_same_blob(struct jvm_stubs *stubs, const struct jvm_vm *vm, uint64_t start,
			 uint64_t pc)
{
	struct jvm_blob blob;

	for (size_t i = 0; i < stubs->n_ranges; i++)
		if (start >= stubs->ranges[i].start && start < stubs->ranges[i].end)
			return pc < stubs->ranges[i].end;
	if (jvm_blobs__find(vm, start, &blob))
		return false;
	if (stubs->n_ranges < RANGES_MAX)
		stubs->ranges[stubs->n_ranges++] = (struct range) { blob.address, blob.end };
	return start < blob.end && pc < blob.end;
}

const char *jvm_stubs__find(struct jvm_stubs *stubs, const struct jvm_vm *vm, uint64_t pc)
{
	const struct field *field;

	read_starts(stubs, vm);
	field = field_before(stubs, pc);
	return field && is_same_blob(stubs, vm, field->start, pc) ? field->name : NULL;
}
