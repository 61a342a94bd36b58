/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_OTLP_H
#define BRAID_OUT_OTLP_H

#include "core/base/protobuf.h"
#include "core/base/strtab.h"
#include "core/out/output.h"

/* The tables of a ProfilesDictionary: nothing is twice in any of them, and nothing that no sample
 * needs; entry 0 of each is empty. */

/* Entries by what they are of as a text; the number of a key is that of its entry. */
struct otlp_table {
	struct strtab *keys;
	struct protobuf entries; /* as fields of the dictionary */
};

struct otlp {
	const struct output_opts *opts;
	struct otlp_table mappings, locations, functions, strings, attributes, stacks;
	struct strtab *paths;  /* "PARENT LOCATION", of ids of paths: what stacks are told by */
	uint32_t *location_of; /* by frame of the profile at hand; 0: not yet */
	struct protobuf part, list, inner;
};

/* 0 or -ENOMEM; call otlp__done in any case. */
int otlp__init(struct otlp *otlp, const struct output_opts *opts);
void otlp__done(struct otlp *otlp);

/* Has to be called before a profile's first stack. 0 or -ENOMEM. */
int otlp__enter(struct otlp *otlp, const struct profile *profile);

/* The number of what is found or added. `text` is any bytes; strings of the format are UTF-8. 0 or
 * -ENOMEM. */
int otlp__string(struct otlp *otlp, const char *text, uint32_t *ret);

/* The same; a text, or if that is NULL a number. */
int otlp__attribute(struct otlp *otlp, const char *key, const char *text, uint64_t number,
		    uint32_t *ret);

/* The same of frames of `profile`, root first. `locations`: room for as many. */
int otlp__stack(struct otlp *otlp, const struct profile *profile, const uint32_t *frames, size_t n,
		uint32_t *locations, uint32_t *ret);

/* A text, or if that is NULL a number, as AnyValue. */
void otlp__value(struct protobuf *message, int field, const char *text, uint64_t number);

/* Appends the dictionary as a field of the message. */
void otlp__dictionary(struct otlp *otlp, int field, struct protobuf *message);

#endif
