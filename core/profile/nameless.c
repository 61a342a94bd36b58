// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/nameless.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

#define WORTH_A_NOTE 0.05

/* Returns true for a name of the form "[FILE+0xOFFSET]". No symbol begins with a bracket. */
static bool is_nameless(const struct profile *profile, const struct profile_frame *frame)
{
	return *strtab__get(profile->strings, frame->name) == '[' &&
	       *strtab__get(profile->strings, frame->library);
}

/* Returns the weight of each node, with all nodes below it; NULL: out of memory. */
static double *weigh(const struct profile *profile)
{
	double *weights = calloc(profile->n_nodes, sizeof(*weights));

	for (size_t i = profile->n_nodes; weights && i-- > 0;) {
		weights[i] += profile->nodes[i].self;
		if (i)
			weights[profile->nodes[i].parent] += weights[i];
	}
	return weights;
}

const char *nameless__advice(bool queried, bool has_build_id)
{
	if (!has_build_id)
		return "the file has no build ID, so debug servers and -dbgsym packages cannot be "
		       "found. Only a build with symbols has names";
	return queried ? "debug servers have no symbols of it. Install debug files below "
			 "/usr/lib/debug, such as those of a -dbgsym package"
		       : "install the -dbgsym or -dbg package, or set DEBUGINFOD_URLS, before "
			 "recording";
}

/* Returns false if no image of that library has a build ID. */
static bool has_build_id(const struct recorded *recorded, const char *library)
{
	char name[PROFILE_LIBRARY_BYTES];
	bool known = false;

	for (size_t i = 0; recorded && i < recorded->images.n; i++) {
		const struct recorded_image *image = &recorded->images.rows[i];

		profile__library(recorded__text(recorded, image->name), name, sizeof(name));
		if (strcmp(name, library) != 0)
			continue;
		known = true;
		if (*recorded__text(recorded, image->build_id))
			return true;
	}
	return !known;
}

static int write_note(struct profile *profile, const struct recorded *recorded, double share,
		      uint32_t library)
{
	char shown[PROFILE_LIBRARY_BYTES];

	snprintf(shown, sizeof(shown), "%.60s", strtab__get(profile->strings, library));
	escape__printable(shown);
	free(profile->nameless);
	if (asprintf(&profile->nameless,
		     "%.0f %% of native frames have no symbol, most of them in %s: %s", 100 * share,
		     shown,
		     nameless__advice(recorded && recorded->symbols_queried,
				      has_build_id(recorded,
						   strtab__get(profile->strings, library)))) < 0) {
		profile->nameless = NULL;
		return -ENOMEM;
	}
	return 0;
}

int nameless__find(struct profile *profile, const struct recorded *recorded)
{
	double *weights = weigh(profile), all = 0, nameless = 0;
	double *by_frame = calloc(profile->n_frames + 1, sizeof(*by_frame));
	double *by_library = calloc(strtab__count(profile->strings) + 1, sizeof(*by_library));
	uint32_t most = 0;
	int code = weights && by_frame && by_library ? 0 : -ENOMEM;

	for (size_t i = 1; !code && i < profile->n_nodes; i++)
		by_frame[profile->nodes[i].frame] += weights[i];
	for (size_t i = 0; !code && i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->kind != KIND_NATIVE)
			continue;
		all += by_frame[i];
		if (!is_nameless(profile, frame))
			continue;
		nameless += by_frame[i];
		by_library[frame->library] += by_frame[i];
		if (by_library[frame->library] > by_library[most])
			most = frame->library;
	}
	if (!code && nameless > 0 && nameless >= WORTH_A_NOTE * all)
		code = write_note(profile, recorded, nameless / all, most);
	free(by_library);
	free(by_frame);
	free(weights);
	return code;
}
