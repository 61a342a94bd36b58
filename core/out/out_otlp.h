/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_OTLP_H
#define BRAID_OUT_OTLP_H

#include "core/base/protobuf.h"
#include "core/base/strtab.h"
#include "core/out/output.h"

/* The tables of a ProfilesDictionary. They have no equal entries, and none that no sample needs.
 * Entry 0 of each is empty. */

/* Entries by a text that identifies them. The number of a key is that of its entry. */
struct otlp_table {
	struct strtab *keys;
	struct protobuf entries; /* as fields of the dictionary */
};

struct otlp {
	const struct output_opts *opts;
	struct otlp_table mappings, locations, functions, strings, attributes, stacks;
	struct strtab *paths;  /* "PARENT LOCATION", ids of paths, by which stacks are identified */
	uint32_t *location_of; /* by frame of the present profile; 0: not added yet */
	struct protobuf part, list, inner;
};

/* Returns 0 or -ENOMEM; the caller calls otlp__done() in any case. */
int otlp__init(struct otlp *otlp, const struct output_opts *opts);
void otlp__done(struct otlp *otlp);

/* Must be called before a profile's first stack. Returns 0 or -ENOMEM. */
int otlp__enter(struct otlp *otlp, const struct profile *profile);

/* Finds or adds a string, and returns its number in *@ret. @text is any bytes; strings of the
 * format are UTF-8. Returns 0 or -ENOMEM. */
int otlp__string(struct otlp *otlp, const char *text, uint32_t *ret);

/* As otlp__string(), for an attribute. Its value is @text, or @number if @text is NULL. */
int otlp__attribute(struct otlp *otlp, const char *key, const char *text, uint64_t number,
		    uint32_t *ret);

/* As otlp__string(), for the stack of @frames, root first. @locations has room for @n. */
int otlp__stack(struct otlp *otlp, const struct profile *profile, const uint32_t *frames, size_t n,
		uint32_t *locations, uint32_t *ret);

/* Appends @text, or @number if @text is NULL, as AnyValue. */
void otlp__value(struct protobuf *message, int field, const char *text, uint64_t number);

/* Appends the dictionary as a field of the message. */
void otlp__dictionary(struct otlp *otlp, int field, struct protobuf *message);

#endif
