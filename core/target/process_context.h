/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_CONTEXT_H
#define BRAID_PROCESS_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process context that a tracer publishes in its process for other processes (OpenTelemetry,
 * OTEP 4719, version 2): the attributes of the service, and the names of the attributes of request
 * contexts. All of it is untrusted. */

#define PROCESS_CONTEXT_KEYS_MAX       256 /* by the format */
#define PROCESS_CONTEXT_ATTRIBUTES_MAX 256
#define PROCESS_CONTEXT_TEXT_MAX       1024 /* bytes of a key or value; longer ones are cut */

struct process_attribute {
	char *key, *value;
};

struct process_context {
	uint64_t address;      /* address of the header */
	uint64_t published_ns; /* time of the publication that was read; 0: none */
	uint32_t version;      /* number of the publications that were read */
	char *schema;	       /* form of the request contexts; NULL: none is stated */
	char *keys[PROCESS_CONTEXT_KEYS_MAX]; /* names of the attributes of request contexts */
	size_t n_keys;
	struct process_attribute *attributes; /* attributes of the service */
	size_t n_attributes;
};

/* Returns true if a mapping of this name, as in /proc/PID/maps, contains a process context. */
bool process_context__is_at(const char *mapping_name);

/* Returns the address of the process context in the mappings of @pid; 0: there is none. */
uint64_t process_context__find(uint32_t pid);

/* Reads the context whose header is at @address, if it has changed since the last reading. @*at is
 * the last reading; NULL: none. Returns 0; -ENOENT: there is no valid one; -EAGAIN: it is being
 * written; or -ENOMEM. Leaves *@at unchanged on failure. */
int process_context__read(uint32_t pid, uint64_t address, struct process_context **at);
void process_context__free(struct process_context *context); /* NULL is fine */

/* Decodes a payload. Returns 0 or -ENOMEM. Ignores malformed parts. @context must be empty. */
int process_context__decode(struct process_context *context, const void *payload, size_t size);

/* Returns the name of attribute @key of request contexts, or NULL. */
const char *process_context__key(const struct process_context *context, uint8_t key);

/* Returns true unless the process states that its request contexts are not in the records of
 * bpf/context.h. NULL: it states nothing. */
bool process_context__allows_records(const struct process_context *context);

#endif
