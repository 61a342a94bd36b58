// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/strtab.h"
#include "core/base/util.h"
#include "core/cli/shown_file.h"

enum {
	AROUND = 40,		/* lines before the first and after the last one with samples */
	FILE_BYTES = 4 << 20,	/* longer files are not readable sources */
	TEXT_BYTES = 128 << 10, /* text of one file */
	TEXTS_BYTES = 1 << 20,	/* texts of all files */
	SUFFIX_MAX = 8,
};

struct requested {
	uint32_t file; /* number in the paths */
	uint32_t first, last;
	double weight; /* own weight, as a fraction of the event's total */
};

/* the files of all profiles */
struct files {
	struct strtab *paths;
	struct requested *rows; /* indexed by path */
	size_t cap;
};

static int by_weight(const void *left, const void *right)
{
	const struct requested *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return (a->file > b->file) - (a->file < b->file);
}

/* Returns true if the name is that of a source text. */
static bool is_source(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot;

	if (*path != '/' || strstr(path, "/."))
		return false;
	dot = strrchr(slash, '.');
	return dot && dot[1] && strlen(dot + 1) <= SUFFIX_MAX;
}

/* Sets *@ret_row to the row of the profile's string @file, or to NULL if it is not a source. @ids
 * has the path's number + 1 for each string that was found before. Returns 0 or -ENOMEM. */
static int find_row(struct files *files, const struct profile *profile, uint32_t *ids,
		    uint32_t file, struct requested **ret_row)
{
	const char *path = strtab__get(profile->strings, file);
	uint32_t id;

	*ret_row = NULL;
	if (!ids[file]) {
		size_t cap = files->cap;

		if (!is_source(path))
			return 0;
		if (strtab__intern(files->paths, path, &id) ||
		    array__reserve(&files->rows, &files->cap, id + 1, sizeof(*files->rows)))
			return -ENOMEM;
		memset(files->rows + cap, 0, (files->cap - cap) * sizeof(*files->rows));
		ids[file] = id + 1;
	}
	*ret_row = &files->rows[ids[file] - 1];
	return 0;
}

/* Adds to @files, for each source file of the profile, the range of lines with samples and the self
 * weight. Returns 0 or -ENOMEM. */
static int add_requested(struct files *files, const struct profile *profile)
{
	uint32_t *ids = calloc(strtab__count(profile->strings) + 1, sizeof(*ids));
	int ret = ids ? 0 : -ENOMEM;

	for (size_t i = 1; !ret && i < profile->n_nodes; i++) {
		const struct profile_frame *frame = &profile->frames[profile->nodes[i].frame];
		struct requested *file;

		if (!frame->line)
			continue;
		ret = find_row(files, profile, ids, frame->file, &file);
		if (ret || !file)
			continue;
		file->first = file->first ? min_of(file->first, frame->line) : frame->line;
		file->last = max_of(file->last, frame->line);
		if (profile->total)
			file->weight += (double)profile->nodes[i].self / profile->total;
	}
	free(ids);
	return ret;
}

/* Sorts the files that have lines by weight. Returns their number. */
static size_t sort_requested(struct files *files)
{
	size_t n = 0;

	for (size_t i = 0; files->rows && i < strtab__count(files->paths); i++) {
		if (!files->rows[i].first)
			continue;
		files->rows[n] = files->rows[i];
		files->rows[n++].file = i;
	}
	if (n)
		qsort(files->rows, n, sizeof(*files->rows), by_weight);
	return n;
}

/* Returns the whole file; NULL: the file is unreadable or must not be shown. */
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

/* Returns the selected lines, owned by the caller; NULL: there are none, or out of memory. */
static char *cut_lines(const char *text, size_t size, const struct requested *requested,
		       uint32_t *ret_first)
{
	uint32_t from = requested->first > AROUND ? requested->first - AROUND : 1, line = 1;
	const char *end = text + size, *start, *at;

	for (at = text; at < end && line < from; line += *at++ == '\n')
		;
	start = at;
	for (; at < end && line <= (uint64_t)requested->last + AROUND && at - start < TEXT_BYTES;
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

/* Reads the files' lines. @begun_s: start of the oldest process. Returns 0 or -ENOMEM. */
static int read_requested(struct source_texts *texts, const struct files *files, size_t n,
			  double begun_s)
{
	int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), ret = 0;
	size_t bytes = 0;

	for (size_t i = 0; !ret && i < n && bytes < TEXTS_BYTES; i++) {
		const char *path = strtab__get(files->paths, files->rows[i].file);
		size_t size;
		uint32_t first = 1;
		double changed_s = 0;
		char *text = read_file(root_fd, path, &size, &changed_s), *part;

		part = text ? cut_lines(text, size, &files->rows[i], &first) : NULL;
		free(text);
		if (!part)
			continue;
		bytes += strlen(part);
		/* A process's start time has a resolution of 0.01 s. */
		ret = add(texts, path, part, first, begun_s > 0 && changed_s > begun_s + 0.02);
	}
	close_fd(&root_fd);
	return ret;
}

int source_texts__read(struct source_texts *texts, const struct profile *profile,
		       struct profile *const *others, size_t n_others)
{
	struct files files = { .paths = strtab__new() };
	int ret = files.paths ? add_requested(&files, profile) : -ENOMEM;

	*texts = (struct source_texts) {};
	for (size_t i = 0; !ret && i < n_others; i++)
		ret = add_requested(&files, others[i]);
	if (!ret)
		ret = read_requested(texts, &files, sort_requested(&files), profile->begun_s);
	free(files.rows);
	strtab__free(files.paths);
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
