// SPDX-License-Identifier: GPL-2.0-or-later
/* The ends of paths by which labels name files. Paths are sorted from their last byte on, so that
 * the longest end that a path shares with any other is shared with a neighbour. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

struct path {
	const char *text;
	size_t len;
	uint32_t id;
};

static size_t shared_end(const struct path *a, const struct path *b)
{
	size_t n = 0;

	while (n < a->len && n < b->len && a->text[a->len - 1 - n] == b->text[b->len - 1 - n])
		n++;
	return n;
}

static int compare_ends(const void *a, const void *b)
{
	const struct path *x = a, *y = b;
	size_t n = shared_end(x, y);

	if (n == x->len || n == y->len)
		return (x->len > y->len) - (x->len < y->len);
	return (unsigned char)x->text[x->len - 1 - n] - (unsigned char)y->text[y->len - 1 - n];
}

/* Writes each path of the profile once. Returns their number. */
static size_t collect(const struct profile *profile, struct path *paths, bool *seen)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->n_frames; i++) {
		uint32_t id = profile->frames[i].file;
		const char *text = strtab__get(profile->strings, id);

		if (seen[id] || !*text)
			continue;
		seen[id] = true;
		paths[n++] = (struct path) { text, strlen(text), id };
	}
	return n;
}

/* Returns where the shortest end of whole components begins that is longer than @shared bytes. */
static size_t start_of_end(const struct path *path, size_t shared)
{
	size_t at = path->len;

	while (at > 0) {
		at--;
		if (at && path->text[at - 1] == '/' && path->len - at > shared)
			return at;
	}
	return 0;
}

int profile__shorten_files(struct profile *profile)
{
	uint32_t n_strings = strtab__count(profile->strings);
	struct path *paths = calloc(profile->n_frames + 1, sizeof(*paths));
	bool *seen = calloc(n_strings + 1, sizeof(*seen));
	uint32_t *starts = calloc(n_strings + 1, sizeof(*starts));
	size_t n;

	if (!paths || !seen || !starts) {
		free(starts);
		starts = NULL;
		goto out;
	}
	n = collect(profile, paths, seen);
	qsort(paths, n, sizeof(*paths), compare_ends);
	for (size_t i = 0; i < n; i++) {
		size_t shared = i ? shared_end(&paths[i - 1], &paths[i]) : 0;

		if (i + 1 < n)
			shared = max_of(shared, shared_end(&paths[i + 1], &paths[i]));
		starts[paths[i].id] = start_of_end(&paths[i], shared);
	}
	free(profile->short_files);
	profile->short_files = starts;
	profile->n_short_files = n_strings;
out:
	free(paths);
	free(seen);
	return starts ? 0 : -ENOMEM;
}
