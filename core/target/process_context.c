// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/process_context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/maps_line.h"
#include "core/base/protobuf_reader.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

struct header {
	char signature[8];
	uint32_t version;
	uint32_t size;	       /* bytes of the payload */
	uint64_t published_ns; /* 0: being written */
	uint64_t payload;      /* address */
};

#define SIGNATURE     "OTEL_CTX"
#define VERSION	      2
#define PAYLOAD_MAX   (1 << 18)
#define READ_ATTEMPTS 3

bool process_context__is_at(const char *name)
{
	static const char *const names[] = { "[anon_shmem:" SIGNATURE "]", "[anon:" SIGNATURE "]",
					     "/memfd:" SIGNATURE };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

#define LINES_MAX 65536 /* number of searched mappings; as vm.max_map_count */

uint64_t process_context__find(uint32_t pid)
{
	uint64_t found = 0;
	struct maps_line line;
	char *text = NULL;
	size_t size = 0;
	FILE *maps;

	if (procfs__open_maps(pid, &maps))
		return 0;
	for (size_t i = 0; !found && i < LINES_MAX && getline(&text, &size, maps) > 0; i++)
		if (maps_line__parse(text, &line) && process_context__is_at(line.path))
			found = line.start;
	free(text);
	fclose(maps);
	return found;
}

/* --- decoding --- */

static char *text_of(const struct protobuf_field *field)
{
	size_t len = min_of(field->len, (size_t)PROCESS_CONTEXT_TEXT_MAX);
	char *text = malloc(len + 1);

	if (!text)
		return NULL;
	memcpy(text, field->bytes, len);
	text[len] = '\0';
	procfs__make_printable(text, len);
	return text;
}

/* Fields of AnyValue. */
enum { VALUE_STRING = 1, VALUE_BOOL, VALUE_INT, VALUE_DOUBLE, VALUE_ARRAY };

/* Writes a simple value as text. *@ret is NULL for one that is not simple. Returns 0 or -ENOMEM. */
static int value_text(const struct protobuf_field *value, char **ret)
{
	struct protobuf_reader reader = protobuf_field__open(value);
	struct protobuf_field field;
	double number;
	int code = 0;

	*ret = NULL;
	if (!protobuf_reader__next(&reader, &field))
		return 0;
	if (field.number == VALUE_STRING && field.has_bytes) {
		*ret = text_of(&field);
		code = *ret ? 0 : -1;
	} else if (field.number == VALUE_BOOL) {
		code = asprintf(ret, "%s", field.value ? "true" : "false");
	} else if (field.number == VALUE_INT) {
		code = asprintf(ret, "%" PRId64, (int64_t)field.value);
	} else if (field.number == VALUE_DOUBLE) {
		memcpy(&number, &field.value, sizeof(number));
		code = asprintf(ret, "%g", number);
	}
	return code < 0 ? -ENOMEM : 0;
}

struct pair {
	struct protobuf_field key, value;
};

/* Reads a KeyValue. Returns false if a part of it is missing. */
static bool read_pair(const struct protobuf_field *from, struct pair *ret)
{
	struct protobuf_reader reader = protobuf_field__open(from);
	struct protobuf_field field;

	*ret = (struct pair) {};
	while (protobuf_reader__next(&reader, &field)) {
		if (field.number == 1 && field.has_bytes)
			ret->key = field;
		else if (field.number == 2 && field.has_bytes)
			ret->value = field;
	}
	return ret->key.len && ret->value.bytes;
}

static bool is_called(const struct pair *pair, const char *name)
{
	return pair->key.len == strlen(name) && !memcmp(pair->key.bytes, name, pair->key.len);
}

static int add_attribute(struct process_context *context, const struct pair *pair)
{
	struct process_attribute *attribute = &context->attributes[context->n_attributes];
	int code = value_text(&pair->value, &attribute->value);

	if (code || !attribute->value)
		return code;
	attribute->key = text_of(&pair->key);
	if (!attribute->key) {
		free(attribute->value);
		return -ENOMEM;
	}
	context->n_attributes++;
	return 0;
}

static int decode_resource(struct process_context *context, const struct protobuf_field *resource)
{
	struct protobuf_reader reader = protobuf_field__open(resource);
	struct protobuf_field field;
	struct pair pair;
	int code = 0;

	while (!code && context->n_attributes < PROCESS_CONTEXT_ATTRIBUTES_MAX &&
	       protobuf_reader__next(&reader, &field))
		if (field.number == 1 && field.has_bytes && read_pair(&field, &pair))
			code = add_attribute(context, &pair);
	return code;
}

/* Reads an array of texts. Indexes count, so that a value that is no text has the name "". */
static int decode_keys(struct process_context *context, const struct protobuf_field *value)
{
	struct protobuf_reader reader = protobuf_field__open(value), array = {};
	struct protobuf_field field;
	int code = 0;

	if (context->n_keys || !protobuf_reader__next(&reader, &field) ||
	    field.number != VALUE_ARRAY || !field.has_bytes)
		return 0;
	array = protobuf_field__open(&field);
	while (!code && context->n_keys < PROCESS_CONTEXT_KEYS_MAX &&
	       protobuf_reader__next(&array, &field)) {
		char **key = &context->keys[context->n_keys];

		if (field.number != 1 || !field.has_bytes)
			continue;
		code = value_text(&field, key);
		if (!code && !*key)
			*key = calloc(1, 1);
		if (!code)
			code = *key ? 0 : -ENOMEM;
		context->n_keys += !code;
	}
	return code;
}

int process_context__decode(struct process_context *context, const void *payload, size_t size)
{
	struct protobuf_reader reader = { payload, (const uint8_t *)payload + size };
	struct protobuf_field field;
	struct pair pair;
	int code = 0;

	context->attributes = calloc(PROCESS_CONTEXT_ATTRIBUTES_MAX, sizeof(*context->attributes));
	if (!context->attributes)
		return -ENOMEM;
	while (!code && protobuf_reader__next(&reader, &field)) {
		if (field.number == 1 && field.has_bytes)
			code = decode_resource(context, &field);
		if (field.number != 2 || !field.has_bytes || !read_pair(&field, &pair))
			continue;
		if (is_called(&pair, "threadlocal.attribute_key_map"))
			code = decode_keys(context, &pair.value);
		else if (is_called(&pair, "threadlocal.schema_version") && !context->schema)
			code = value_text(&pair.value, &context->schema);
	}
	return code;
}

/* --- reading --- */

static bool read_header(uint32_t pid, uint64_t address, struct header *ret)
{
	return procfs__read_memory(pid, address, ret, sizeof(*ret)) &&
	       !memcmp(ret->signature, SIGNATURE, sizeof(ret->signature)) &&
	       ret->version == VERSION;
}

static int read_payload(uint32_t pid, const struct header *header, struct process_context *context)
{
	void *payload = malloc(header->size + 1);
	int code = payload ? 0 : -ENOMEM;

	if (!code && !procfs__read_memory(pid, header->payload, payload, header->size))
		code = -EAGAIN; /* it may have been replaced */
	if (!code)
		code = process_context__decode(context, payload, header->size);
	free(payload);
	return code;
}

static int read_once(uint32_t pid, uint64_t address, struct process_context **at)
{
	struct process_context *context;
	struct header header, again;
	int code;

	if (!read_header(pid, address, &header) || header.size > PAYLOAD_MAX)
		return -ENOENT;
	if (!header.published_ns)
		return -EAGAIN;
	if (*at && (*at)->address == address && (*at)->published_ns == header.published_ns)
		return 0;
	context = calloc(1, sizeof(*context));
	if (!context)
		return -ENOMEM;
	context->address = address;
	context->published_ns = header.published_ns;
	context->version = *at ? (*at)->version + 1 : 1;
	code = read_payload(pid, &header, context);
	if (!code &&
	    (!read_header(pid, address, &again) || again.published_ns != header.published_ns))
		code = -EAGAIN;
	if (code) {
		process_context__free(context);
		return code;
	}
	process_context__free(*at);
	*at = context;
	return 0;
}

int process_context__read(uint32_t pid, uint64_t address, struct process_context **at)
{
	int code = -EAGAIN;

	for (int i = 0; i < READ_ATTEMPTS && code == -EAGAIN; i++)
		code = read_once(pid, address, at);
	return code;
}

void process_context__free(struct process_context *context)
{
	if (!context)
		return;
	for (size_t i = 0; i < context->n_keys; i++)
		free(context->keys[i]);
	for (size_t i = 0; i < context->n_attributes; i++) {
		free(context->attributes[i].key);
		free(context->attributes[i].value);
	}
	free(context->attributes);
	free(context->schema);
	free(context);
}

const char *process_context__key(const struct process_context *context, uint8_t key)
{
	return context && key < context->n_keys && *context->keys[key] ? context->keys[key] : NULL;
}

bool process_context__allows_records(const struct process_context *context)
{
	return !context || !context->schema || !strncmp(context->schema, "tlsdesc_v1", 10) ||
	       !strncmp(context->schema, "tls_v1", 6);
}
