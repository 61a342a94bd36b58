/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_PPROF_H
#define BRAID_OUT_PPROF_H

#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

#include "core/base/protobuf.h"
#include "core/base/strtab.h"
#include "core/base/u64map.h"
#include "core/out/out_common.h"
#include "core/out/output.h"
#include "core/out/pprof_values.h"

/* The state that out_pprof.c and out_pprof_stacks.c share. */

/* The messages of github.com/google/pprof, proto/profile.proto. They are written in the order of
 * their numbers and without fields that are 0, as protobuf's own encoder does. Ids are not 0. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,

	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,

	SAMPLE_LOCATION_ID = 1, /* packed, leaf first */
	SAMPLE_VALUE = 2,	/* packed */
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	MAPPING_ID = 1,
	MAPPING_HAS_FUNCTIONS = 7, /* followed by those for filenames and line numbers */
	MAPPING_HAS_INLINE_FRAMES = 10,

	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_LINE = 4, /* innermost inlined function first */

	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILENAME = 4,

	THE_MAPPING = 1,
};

/* A function has no system_name. If that equals the name, pprof treats the name as one of C++ and
 * drops text in angle brackets, such as all of "<module>". */
struct function {
	uint32_t name, file; /* strings */
};

/* A native frame and the functions that were inlined into it are one location, as they are one
 * place in the code. pprof's -noinlines and its "(inline)" marks require that. */
struct location {
	uint32_t outer; /* index + 1 of the location into which this one's frame is inlined, or 0 */
	uint32_t function;
	uint32_t line;
	uint32_t id; /* 0: used only as a part of other locations */
};

/* The profiles are written into one message, one after the other. */
struct pprof {
	const struct profile *profile;
	struct out_tree tree;
	struct strtab *strings; /* becomes the string table, which also begins with "" */
	struct function *functions;
	struct location *locations;
	size_t n_functions, cap_functions, n_locations, cap_locations, n_ids;
	struct u64map function_index, line_index, location_index;
	size_t n_lines;
	uint32_t *function_of;	      /* by frame: ids */
	uint32_t *location_of;	      /* by node: index + 1 */
	struct profile_share *shares; /* by node, then thread; NULL: not divided */
	size_t n_shares;
	uint64_t period_ns; /* 0: unknown */

	/* The values of all profiles. A sample has each of them; those of other profiles are 0. The
	 * present profile has n_own values from first_value on. */
	struct pprof_value *values;
	size_t n_values, cap_values, first_value;
	size_t n_own;

	const struct output_origin *origin;
	FILE *out;
	z_stream zip;
	struct protobuf message, part, list;
	struct protobuf tail; /* fields after the string table that need strings */
};

/* Finds or adds a string. @text is any bytes; strings of the format are UTF-8. Returns 0 or
 * -ENOMEM. */
int pprof__string(struct pprof *pprof, const char *text, const char *suffix, uint32_t *ret);

/* Makes the functions and locations of @profile, which becomes the present one. Returns 0 or
 * -ENOMEM; the caller calls pprof__leave() in any case. */
int pprof__enter(struct pprof *pprof, const struct profile *profile, int annotate);
void pprof__leave(struct pprof *pprof);

/* Returns the first share of a node, and their number in *@ret_n. */
const struct profile_share *pprof__shares(const struct pprof *pprof, uint32_t node, size_t *ret_n);

#endif
