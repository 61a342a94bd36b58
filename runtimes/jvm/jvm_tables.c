// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/strtab.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

#define ENTRIES_MAX  8192 /* limit for one table; JDK 21 has 1000 */
#define ENTRY_BYTES  64	  /* at most; 48 in JDK 11 to 25 */
#define MEMBERS_MAX  6
#define TEXT_BYTES   256 /* limit for a name; longer ones are truncated */
#define PAGE_BYTES   4096
#define CACHED_PAGES 64 /* a power of two; the names are spread all over .rodata */

struct number {
	const char *name;
	int64_t value;
};

struct numbers {
	struct number *list;
	size_t n, cap;
};

struct jvm_tables {
	struct strtab *texts;
	struct jvm_field *fields;
	size_t n_fields, fields_cap;
	struct numbers sizes, constants;
};

/* --- memory of the process --- */

struct reader {
	uint32_t pid;
	uint64_t bias;
	const struct elf_file *file;
	struct strtab *texts;
	struct err *err;
	struct page {
		uint64_t address; /* 0: empty */
		uint8_t bytes[PAGE_BYTES];
	} pages[CACHED_PAGES];
};

static int reader__page(struct reader *reader, uint64_t address, const uint8_t **ret)
{
	uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1);
	struct page *page = &reader->pages[address / PAGE_BYTES % CACHED_PAGES];

	if (!start)
		return -EFAULT;
	if (page->address != start) {
		page->address = 0;
		errno = EFAULT;
		if (!procfs__read_memory(reader->pid, start, page->bytes, PAGE_BYTES))
			return errno == ESRCH || errno == EPERM ? -errno : -EFAULT;
		page->address = start;
	}
	*ret = page->bytes;
	return 0;
}

static int reader__copy(struct reader *reader, uint64_t address, void *to, size_t size)
{
	const uint8_t *page;

	for (size_t done = 0, part; done < size; done += part) {
		size_t at = (address + done) % PAGE_BYTES;
		int rc = reader__page(reader, address + done, &page);

		if (rc)
			return rc;
		part = min_of(size - done, PAGE_BYTES - at);
		memcpy((uint8_t *)to + done, page + at, part);
	}
	return 0;
}

/* Reads a text; NULL if the table has none (the type string of some fields). */
static int reader__text(struct reader *reader, uint64_t address, const char **ret)
{
	char text[TEXT_BYTES] = "";
	uint32_t id;
	int rc = 0;

	*ret = NULL;
	if (!address)
		return 0;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		rc = reader__copy(reader, address + i, text + i, 1);
		if (rc || !text[i])
			break;
	}
	if (!rc)
		rc = strtab__intern(reader->texts, text, &id);
	if (!rc)
		*ret = strtab__get(reader->texts, id);
	return rc;
}

/* Reads the 8 bytes of one of libjvm.so's exported variables. */
static int reader__symbol(struct reader *reader, const char *table, const char *suffix,
			  uint64_t *ret)
{
	uint64_t vaddr;
	char name[64];

	snprintf(name, sizeof(name), "gHotSpotVM%s%s", table, suffix);
	if (elf_file__find_symbol(reader->file, name, &vaddr, NULL))
		return err__set(reader->err, -ENOTSUP,
				"%s does not export %s, the description of its own structures",
				reader->file->path, name);
	return reader__copy(reader, reader->bias + vaddr, ret, sizeof(*ret));
}

/* --- tables --- */

struct table {
	uint64_t address, stride;
	uint64_t offsets[MEMBERS_MAX]; /* offsets of the members in an entry */
};

/* Reads the address and layout of a table. `members` ends with NULL; the first member is a name,
 * NULL in the entry that ends the table. */
static int table__open(struct reader *reader, const char *array, const char *entry,
		       const char *const *members, struct table *ret)
{
	char suffix[64];
	int rc = reader__symbol(reader, array, "", &ret->address);

	if (!rc)
		rc = reader__symbol(reader, entry, "EntryArrayStride", &ret->stride);
	for (size_t i = 0; !rc && members[i]; i++) {
		snprintf(suffix, sizeof(suffix), "Entry%sOffset", members[i]);
		rc = reader__symbol(reader, entry, suffix, &ret->offsets[i]);
		if (!rc && ret->stride && ret->offsets[i] > ret->stride - 4)
			rc = -EBADMSG;
	}
	if (rc)
		return rc;
	/* Constructors set these variables, and may not have run yet. */
	if (!ret->address || !ret->stride)
		return -EAGAIN;
	for (size_t i = 1; members[i]; i++)
		for (size_t k = 0; k < i; k++)
			if (ret->offsets[i] == ret->offsets[k])
				return -EAGAIN;
	return ret->stride < 16 || ret->stride > ENTRY_BYTES ? -EBADMSG : 0;
}

static uint64_t entry__u64(const struct table *table, const uint8_t *entry, size_t member)
{
	uint64_t value;

	memcpy(&value, entry + table->offsets[member], sizeof(value));
	return value;
}

static uint32_t entry__u32(const struct table *table, const uint8_t *entry, size_t member)
{
	uint32_t value;

	memcpy(&value, entry + table->offsets[member], sizeof(value));
	return value;
}

/* Reads the `i`th entry into `entry`, which has room for 8 bytes more. Returns 1, 0 at the end,
 * or an error. */
static int table__entry(struct reader *reader, const struct table *table, size_t i, uint8_t *entry)
{
	int rc = i < ENTRIES_MAX ? reader__copy(reader, table->address + i * table->stride, entry,
						table->stride)
				 : -EBADMSG;

	if (rc)
		return rc;
	return entry__u64(table, entry, 0) ? 1 : 0;
}

static int read_fields(struct reader *reader, struct jvm_tables *tables)
{
	static const char *const MEMBERS[MEMBERS_MAX + 1] = { "TypeName", "FieldName", "TypeString",
							      "IsStatic", "Offset",    "Address" };
	uint8_t entry[ENTRY_BYTES + 8] = {};
	struct jvm_field *field;
	struct table table;
	int rc = table__open(reader, "Structs", "Struct", MEMBERS, &table);

	for (size_t i = 0; !rc; i++) {
		rc = table__entry(reader, &table, i, entry);
		if (rc <= 0)
			break;
		rc = array__reserve(&tables->fields, &tables->fields_cap, i + 1,
				    sizeof(*tables->fields));
		if (rc)
			break;
		field = &tables->fields[i];
		field->is_static = entry__u32(&table, entry, 3);
		field->at = entry__u64(&table, entry, field->is_static ? 5 : 4);
		rc = reader__text(reader, entry__u64(&table, entry, 0), &field->type);
		if (!rc)
			rc = reader__text(reader, entry__u64(&table, entry, 1), &field->name);
		if (!rc)
			rc = reader__text(reader, entry__u64(&table, entry, 2), &field->kind);
		if (!rc)
			tables->n_fields = i + 1;
	}
	return rc;
}

static int read_numbers(struct reader *reader, const char *array, const char *entry_name,
			const char *name_member, const char *value_member, size_t value_bytes,
			struct numbers *ret)
{
	const char *const members[] = { name_member, value_member, NULL };
	uint8_t entry[ENTRY_BYTES + 8] = {};
	struct number *number;
	struct table table;
	int rc = table__open(reader, array, entry_name, members, &table);

	for (size_t i = 0; !rc; i++) {
		rc = table__entry(reader, &table, i, entry);
		if (rc <= 0)
			break;
		rc = array__reserve(&ret->list, &ret->cap, ret->n + 1, sizeof(*ret->list));
		if (rc)
			break;
		number = &ret->list[ret->n];
		if (value_bytes == 4)
			number->value = (int32_t)entry__u32(&table, entry, 1);
		else
			number->value = (int64_t)entry__u64(&table, entry, 1);
		rc = reader__text(reader, entry__u64(&table, entry, 0), &number->name);
		if (!rc)
			ret->n++;
	}
	return rc;
}

static int read_all(struct reader *reader, struct jvm_tables *tables)
{
	int rc = read_fields(reader, tables);

	if (!rc)
		rc = read_numbers(reader, "Types", "Type", "TypeName", "Size", 8, &tables->sizes);
	if (!rc)
		rc = read_numbers(reader, "IntConstants", "IntConstant", "Name", "Value", 4,
				  &tables->constants);
	if (!rc)
		rc = read_numbers(reader, "LongConstants", "LongConstant", "Name", "Value", 8,
				  &tables->constants);
	if (!rc && (!tables->n_fields || !tables->sizes.n))
		rc = -EAGAIN;
	return rc;
}

int jvm_tables__read(uint32_t pid, uint64_t bias, const struct elf_file *file,
		     struct jvm_tables **ret, struct err *err)
{
	struct jvm_tables *tables = calloc(1, sizeof(*tables));
	struct reader *reader = calloc(1, sizeof(*reader));
	int rc = -ENOMEM;

	if (tables)
		tables->texts = strtab__new();
	if (!reader || !tables || !tables->texts)
		goto out;
	reader->pid = pid;
	reader->bias = bias;
	reader->file = file;
	reader->texts = tables->texts;
	reader->err = err;
	rc = read_all(reader, tables);
	if (rc == -EFAULT || rc == -EBADMSG)
		err__set(err, rc, "the tables of %s in process %u are malformed", file->path, pid);
out:
	free(reader);
	if (rc)
		jvm_tables__free(tables);
	else
		*ret = tables;
	return rc;
}

void jvm_tables__free(struct jvm_tables *tables)
{
	if (!tables)
		return;
	free(tables->fields);
	free(tables->sizes.list);
	free(tables->constants.list);
	strtab__free(tables->texts);
	free(tables);
}

/* --- look-ups --- */

const struct jvm_field *jvm_tables__field(const struct jvm_tables *tables, const char *type,
					  const char *name)
{
	for (size_t i = 0; i < tables->n_fields; i++) {
		const struct jvm_field *field = &tables->fields[i];

		if (field->name && strcmp(field->name, name) == 0 && strcmp(field->type, type) == 0)
			return field;
	}
	return NULL;
}

size_t jvm_tables__fields(const struct jvm_tables *tables, const struct jvm_field **ret)
{
	*ret = tables->fields;
	return tables->n_fields;
}

static int numbers__find(const struct numbers *numbers, const char *name, int64_t *ret)
{
	for (size_t i = 0; i < numbers->n; i++)
		if (strcmp(numbers->list[i].name, name) == 0) {
			*ret = numbers->list[i].value;
			return 0;
		}
	return -ENOENT;
}

int jvm_tables__size(const struct jvm_tables *tables, const char *type, uint64_t *ret)
{
	int64_t size;
	int rc = numbers__find(&tables->sizes, type, &size);

	if (!rc)
		*ret = (uint64_t)size;
	return rc;
}

int jvm_tables__constant(const struct jvm_tables *tables, const char *name, int64_t *ret)
{
	return numbers__find(&tables->constants, name, ret);
}
