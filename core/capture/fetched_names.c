// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/fetched_names.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

#define FRAMES_MAX (1U << 18) /* 6 MB */

struct group { /* the consecutive frames of one image */
	size_t first, n;
};

int fetched_names__add(struct fetched_names *names, uint32_t frame, struct image *image,
		       uint64_t address)
{
	if (!debuginfod__is_enabled() || names->n == FRAMES_MAX || image->file->fd < 0 ||
	    !image->file->build_id_len || !symbols__is_stripped(image->symbols))
		return 0;
	if (array__reserve(&names->frames, &names->cap, names->n + 1, sizeof(*names->frames)))
		return -ENOMEM;
	names->frames[names->n++] = (struct stripped_frame) { frame, address, image };
	return 0;
}

void fetched_names__done(struct fetched_names *names)
{
	free(names->frames);
	*names = (struct fetched_names) {};
}

static int by_image(const void *a, const void *b)
{
	const struct stripped_frame *x = a, *y = b;

	return x->image->number < y->image->number   ? -1
	       : x->image->number > y->image->number ? 1
						     : 0;
}

static int by_size(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->n > y->n ? -1 : x->n < y->n ? 1 : x->first < y->first ? -1 : 1;
}

static size_t group_frames(struct fetched_names *names, struct group *groups)
{
	size_t n = 0;

	qsort(names->frames, names->n, sizeof(*names->frames), by_image);
	for (size_t i = 0; i < names->n; i++) {
		if (!n || names->frames[i].image != names->frames[groups[n - 1].first].image)
			groups[n++] = (struct group) { .first = i };
		groups[n - 1].n++;
	}
	qsort(groups, n, sizeof(*groups), by_size);
	return n;
}

int symbol_frames__write(struct ids *ids, uint32_t frame, const struct symbol_frame *frames, int n,
			 struct err *err)
{
	struct sink_location locations[SYMBOL_INLINES_MAX];

	for (int i = 0; i < n; i++)
		locations[i] =
			(struct sink_location) { frames[i].inlined ? KIND_INLINED : KIND_NATIVE,
						 frames[i].function, frames[i].file,
						 frames[i].line };
	return ids__locations(ids, frame, locations, n, err);
}

static int name_again(const struct stripped_frame *stripped, struct ids *ids, struct err *err)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n = symbols__resolve(stripped->image->symbols, stripped->address, frames,
				 SYMBOL_INLINES_MAX);

	if (n == -ENOMEM)
		return err__set(err, n, "out of memory");
	return n > 0 ? symbol_frames__write(ids, stripped->frame, frames, n, err) : 0;
}

int fetched_names__run(struct fetched_names *names, struct ids *ids, struct debuginfod_wait *wait,
		       struct fetched_names_stats *ret, struct err *err)
{
	const struct debug_server server = { debuginfod__open, wait };
	struct group *groups = names->n ? calloc(names->n, sizeof(*groups)) : NULL;
	size_t n = groups ? group_frames(names, groups) : 0, i, k;
	int code = names->n && !groups ? err__set(err, -ENOMEM, "out of memory") : 0;

	for (i = 0; !code && i < n && !debuginfod__failure(); i++) {
		const struct stripped_frame *frames = &names->frames[groups[i].first];
		int fetched = symbols__fetch(frames->image->symbols, &server);

		ret->queried++;
		ret->found += !fetched;
		if (!fetched)
			frames->image->nameless = 0;
		if (fetched == -ENOMEM)
			code = err__set(err, -ENOMEM, "out of memory");
		for (k = 0; !code && !fetched && k < groups[i].n; k++)
			code = name_again(&frames[k], ids, err);
	}
	free(groups);
	fetched_names__done(names);
	return code;
}
