// SPDX-License-Identifier: GPL-2.0-or-later
/* Process contexts are untrusted: decodes valid payloads, all their beginnings, and damaged ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/protobuf.h"
#include "core/target/process_context.h"
#include "tests/tap.h"

struct header {
	char signature[8];
	uint32_t version, size;
	uint64_t published_ns;
	const void *payload;
};

static void put_value(struct protobuf *pair, const char *text)
{
	struct protobuf value = {};

	protobuf__text(&value, 1, text, strlen(text));
	protobuf__submessage(pair, 2, &value);
	protobuf__done(&value);
}

static void put_pair(struct protobuf *to, int field, const char *key, const char *text)
{
	struct protobuf pair = {};

	protobuf__text(&pair, 1, key, strlen(key));
	put_value(&pair, text);
	protobuf__submessage(to, field, &pair);
	protobuf__done(&pair);
}

static void put_names(struct protobuf *to, size_t n)
{
	struct protobuf pair = {}, value = {}, array = {}, text = {};
	static const char key[] = "threadlocal.attribute_key_map";
	char name[32];

	for (size_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "key%zu", i);
		protobuf__text(&text, 1, name, strlen(name));
		protobuf__submessage(&array, 1, &text);
	}
	protobuf__text(&pair, 1, key, strlen(key));
	protobuf__submessage(&value, 5, &array);
	protobuf__submessage(&pair, 2, &value);
	protobuf__submessage(to, 2, &pair);
	protobuf__done(&text);
	protobuf__done(&array);
	protobuf__done(&value);
	protobuf__done(&pair);
}

static struct protobuf payload_of(size_t n_names)
{
	struct protobuf payload = {}, resource = {}, pair = {}, value = {};

	put_pair(&resource, 1, "service.name", "shop\n");
	protobuf__text(&pair, 1, "port", 4);
	protobuf__number(&value, 3, 8080);
	protobuf__submessage(&pair, 2, &value);
	protobuf__submessage(&resource, 1, &pair);
	protobuf__submessage(&payload, 1, &resource);
	put_pair(&payload, 2, "threadlocal.schema_version", "tlsdesc_v1_dev");
	put_names(&payload, n_names);
	protobuf__done(&value);
	protobuf__done(&pair);
	protobuf__done(&resource);
	return payload;
}

static struct process_context *decoded(const void *payload, size_t size)
{
	struct process_context *context = calloc(1, sizeof(*context));

	is_int(process_context__decode(context, payload, size), 0, "%zu bytes", size);
	return context;
}

static void test_valid(void)
{
	struct protobuf payload = payload_of(300);
	struct process_context *context = decoded(payload.data, payload.len);

	is_int(context->n_attributes, 2, "attributes");
	is_str(context->attributes[0].value, "shop?", "control characters are replaced");
	is_str(context->attributes[1].value, "8080", "a number");
	is_str(context->schema, "tlsdesc_v1_dev", "schema");
	is_int(context->n_keys, 256, "names beyond the limit are left out");
	is_str(process_context__key(context, 255), "key255", "the last name");
	ok(process_context__allows_records(context), "records may be read");
	process_context__free(context);
	protobuf__done(&payload);
	ok(!process_context__key(NULL, 0), "no context has no names");
}

/* Copies each input to memory of exactly its size, so that a read beyond it is found. */
static void test_damaged(void)
{
	struct protobuf payload = payload_of(3);
	size_t n = 0;

	for (size_t len = 0; len <= payload.len; len++)
		for (int byte = 0; byte < 256; byte += len ? 51 : 256) {
			struct process_context *copy = calloc(1, sizeof(*copy));
			uint8_t *bytes = malloc(len ? len : 1);

			memcpy(bytes, payload.data, len);
			if (byte)
				bytes[len - 1] = byte;
			n += process_context__decode(copy, bytes, len) != 0;
			process_context__free(copy);
			free(bytes);
		}
	is_int(n, 0, "no damage is an error");
	protobuf__done(&payload);
}

/* Reads from this process. */
static void test_reading(void)
{
	struct protobuf payload = payload_of(1), other = payload_of(2);
	struct header header = { "", 2, payload.len, 7, payload.data };
	struct process_context *context = NULL;
	uint64_t address = (uintptr_t)&header;

	memcpy(header.signature, "OTEL_CTX", 8);
	is_int(process_context__read(getpid(), address, &context), 0, "read");
	is_int(context->version, 1, "the first publication");
	header.payload = other.data;
	header.size = other.len;
	process_context__read(getpid(), address, &context);
	is_int(context->n_keys, 1, "an equal time: not read again");
	header.published_ns = 0;
	is_int(process_context__read(getpid(), address, &context), -EAGAIN, "being written");
	header.published_ns = 8;
	is_int(process_context__read(getpid(), address, &context), 0, "published again");
	is_int(context->n_keys, 2, "with more names");
	is_int(context->version, 2, "the second publication");
	header.published_ns = 9;
	header.size = UINT32_MAX;
	is_int(process_context__read(getpid(), address, &context), -ENOENT, "endless");
	header.size = other.len;
	header.payload = (void *)16;
	is_int(process_context__read(getpid(), address, &context), -EAGAIN, "not readable");
	header.version = 3;
	is_int(process_context__read(getpid(), address, &context), -ENOENT, "another version");
	is_int(process_context__read(getpid(), 16, &context), -ENOENT, "nothing there");
	is_int(context->n_keys, 2, "the last valid one remains");
	process_context__free(context);
	protobuf__done(&payload);
	protobuf__done(&other);
}

static void test_names(void)
{
	ok(process_context__is_at("/memfd:OTEL_CTX (deleted)"), "a memory file");
	ok(process_context__is_at("[anon_shmem:OTEL_CTX]"), "named shared memory");
	ok(process_context__is_at("[anon:OTEL_CTX]"), "named anonymous memory");
	ok(!process_context__is_at("/srv/memfd:OTEL_CTX"), "another file");
}

int main(void)
{
	test_valid();
	test_damaged();
	test_reading();
	test_names();
	return tap__done();
}
