// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/cli/shown_file.h"

enum {
	AROUND = 40,		/* lines before the first and after the last that is named */
	FILE_BYTES = 4 << 20,	/* a longer one is no source that anybody reads */
	TEXT_BYTES = 128 << 10, /* of one file */
	TEXTS_BYTES = 1 << 20,	/* of all */
	SUFFIX_MAX = 8,
};

struct wanted {
	uint32_t file; /* of the profile's strings */
	uint32_t first, last;
	uint64_t weight;
};

static int by_weight(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return (a->file > b->file) - (a->file < b->file);
}

/* Is that the name of a text that is meant to be shown? */
static bool is_source(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;

	if (*path != '/' || strstr(path, "/."))
		return false;
	dot = strrchr(slash, '.');
	return dot && dot[1] && strlen(dot + 1) <= SUFFIX_MAX;
}

/* By file: its lines and own weight. 0 or -ENOMEM. */
static int find_wanted(const struct profile *profile, struct wanted **ret, size_t *ret_n)
{
	size_t n_strings = strtab__count(profile->strings), n = 0;
	struct wanted *wanted = calloc(n_strings + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	for (size_t i = 1; i < profile->n_nodes; i++) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[i].frame];
		struct wanted *file = &wanted[frame->file];

		if (!frame->line)
			continue;
		file->first = file->first ? min_of(file->first, frame->line) : frame->line;
		file->last = max_of(file->last, frame->line);
		file->weight += profile->nodes[i].self;
	}
	for (size_t i = 0; i < n_strings; i++) {
		if (!wanted[i].first || !is_source(strtab__get(profile->strings, i)))
			continue;
		wanted[n] = wanted[i];
		wanted[n++].file = i;
	}
	qsort(wanted, n, sizeof(*wanted), by_weight);
	*ret = wanted;
	*ret_n = n;
	return 0;
}

/* All of a file that may be shown; NULL: it may not, or cannot be read. */
static char *read_file(int root_fd, const char *path, size_t *ret_size, double *ret_changed_s)
{
	struct stat st = {};
	uint64_t size;
	int fd = shown_file__open(root_fd, path, FILE_BYTES, &size);
	char *text = fd >= 0 ? malloc(size) : NULL;
	size_t n = 0;
	ssize_t got;

	while (text && n < size) {
		got = read(fd, text + n, size - n);
		if (got <= 0)
			break;
		n += got;
	}
	if (fd >= 0 && !fstat(fd, &st))
		*ret_changed_s = st.st_mtim.tv_sec + st.st_mtim.tv_nsec / 1e9;
	close_fd(&fd);
	*ret_size = n;
	if (text && memchr(text, '\0', n)) {
		free(text);
		return NULL;
	}
	return text;
}

/* The wanted lines, owned by the caller; NULL: there are none, or no memory. */
static char *cut_lines(const char *text, size_t size, const struct wanted *wanted,
		       uint32_t *ret_first)
{
	uint32_t from = wanted->first > AROUND ? wanted->first - AROUND : 1, line = 1;
	const char *end = text + size, *start, *at;

	for (at = text; at < end && line < from; line += *at++ == '\n')
		;
	start = at;
	for (; at < end && line <= (uint64_t)wanted->last + AROUND && at - start < TEXT_BYTES;
	     line += *at++ == '\n')
		;
	*ret_first = from;
	return at == start ? NULL : strndup(start, at - start);
}

static int add(struct source_texts *texts, const char *file, char *text, uint32_t first,
	       bool is_younger)
{
	char *copy = strdup(file);

	if (!copy ||
	    array__reserve(&texts->rows, &texts->cap, texts->n + 1, sizeof(*texts->rows))) {
		free(copy);
		free(text);
		return -ENOMEM;
	}
	texts->rows[texts->n++] = (struct output_source) {
		.file = copy, .first = first, .text = text, .is_younger = is_younger
	};
	return 0;
}

int source_texts__read(struct source_texts *texts, const struct profile *profile)
{
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), ret;
	struct wanted *wanted = NULL;
	size_t n = 0, bytes = 0;

	*texts = (struct source_texts) {};
	ret = find_wanted(profile, &wanted, &n);
	for (size_t i = 0; !ret && i < n && bytes < TEXTS_BYTES; i++) {
		const char *path = strtab__get(profile->strings, wanted[i].file);
		size_t size;
		uint32_t first = 1;
		double changed_s = 0;
		char *text = read_file(root_fd, path, &size, &changed_s), *part;

		part = text ? cut_lines(text, size, &wanted[i], &first) : NULL;
		free(text);
		if (!part)
			continue;
		bytes += strlen(part);
		/* A process's time of start has hundredths of a second. */
		ret = add(texts, path, part, first,
			  profile->begun_s > 0 && changed_s > profile->begun_s + 0.02);
	}
	free(wanted);
	close_fd(&root_fd);
	return ret;
}

void source_texts__done(struct source_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++) {
		free(texts->rows[i].file);
		free(texts->rows[i].text);
	}
	free(texts->rows);
	*texts = (struct source_texts) {};
}
