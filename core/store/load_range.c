// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads a range of time from one file, or from the files of a directory. */
#include "core/store/load_range.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "core/base/util.h"
#include "core/profile/recorded_merge.h"
#include "core/store/load_columns.h"
#include "core/store/load_extent.h"
#include "core/store/recording_name.h"

/* maximum delay of a sample: a late one may be in the next file */
#define LATE_NS ((int64_t)NSEC_PER_SEC)

struct part {
	char *path;
	struct recording_name name;
	struct load_extent extent;
};

struct range {
	const struct profile_filter *filter;
	struct part *parts;
	size_t n, cap;
	int64_t begin_ns, end_ns;	 /* extent of all parts */
	int64_t from_ns, to_ns;		 /* requested range */
	struct recorded_columns columns; /* columns of time */
};

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool load_range__is_set(const char *path, const struct profile_filter *filter)
{
	return filter->from.kind || filter->to.kind || is_directory(path);
}

static void skip(const struct range *range, const char *why)
{
	if (range->filter->on_skipped)
		range->filter->on_skipped(range->filter->ctx, why);
}

/* Takes ownership of @path. */
static int add_part(struct range *range, char *path, const struct recording_name *name)
{
	if (!path ||
	    array__reserve(&range->parts, &range->cap, range->n + 1, sizeof(*range->parts))) {
		free(path);
		return -ENOMEM;
	}
	range->parts[range->n++] = (struct part) { .path = path, .name = *name };
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return recording_name__compare(&x->name, &y->name);
}

/* Lists the finished recordings, sorted by name. */
static int list_dir(struct range *range, const char *path, struct err *err)
{
	DIR *stream = opendir(path);
	struct recording_name name;
	enum recording_state state;
	struct dirent *entry;
	char *file;
	int code = 0;

	if (!stream)
		return err__set(err, -errno, "cannot read %s: %s", path, strerror(errno));
	while (!code && (entry = readdir(stream))) {
		if (!recording_name__parse(entry->d_name, &name, &state) || state != RECORDING_DONE)
			continue;
		if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
			file = NULL;
		code = add_part(range, file, &name);
	}
	closedir(stream);
	if (code)
		return err__set(err, code, "out of memory");
	if (!range->n)
		return err__set(err, -EBADMSG,
				"the directory %s contains no finished recordings of braid", path);
	qsort(range->parts, range->n, sizeof(*range->parts), by_name);
	return 0;
}

/* Reads the extent of each part. Leaves out damaged parts, unless the part is the only file. */
static int find_extents(struct range *range, bool alone, struct err *err)
{
	size_t n = 0, i;
	int code = 0;

	for (i = 0; i < range->n; i++) {
		struct part *part = &range->parts[i];
		struct err why = {};
		int failed = code ? code : load_extent__of(part->path, &part->extent, &why);

		if (!failed && n) {
			range->begin_ns = min_of(range->begin_ns, part->extent.begin_ns);
			range->end_ns = max_of(range->end_ns, part->extent.end_ns);
		} else if (!failed) {
			range->begin_ns = part->extent.begin_ns;
			range->end_ns = part->extent.end_ns;
		}
		if (!failed) {
			range->parts[n++] = *part;
			continue;
		}
		free(part->path);
		if (alone || failed == -ENOMEM)
			code = code ? code : err__set(err, failed, "%s", why.text);
		else if (failed != -ENOENT) /* ENOENT: the file may have been removed meanwhile */
			skip(range, why.text);
	}
	range->n = n;
	return code;
}

static int64_t resolve(const struct range *range, const struct profile_time *time,
		       int64_t otherwise)
{
	switch (time->kind) {
	case TIME_ABSOLUTE:
		return time->ns;
	case TIME_AFTER_BEGIN:
		return range->begin_ns + time->ns;
	case TIME_BEFORE_END:
		return range->end_ns - time->ns;
	default:
		return otherwise;
	}
}

static void local_time(int64_t ns, char *buf, size_t size)
{
	time_t seconds = ns / (int64_t)NSEC_PER_SEC;
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(buf, size, "%Y-%m-%d %H:%M:%S", &tm);
}

static int has_nothing(const struct range *range, const char *path, struct err *err)
{
	char begin[32], end[32];

	if (!range->n)
		return err__set(err, -ENOENT, "no recording in %s is readable", path);
	local_time(range->begin_ns, begin, sizeof(begin));
	local_time(range->end_ns, end, sizeof(end));
	return err__set(err, -ENOENT, "%s has no samples from that time: it covers %s to %s", path,
			begin, end);
}

static int choose(struct range *range, const char *path, struct err *err)
{
	int64_t first, last;
	size_t n = 0, i;

	range->from_ns = resolve(range, &range->filter->from, INT64_MIN / 4);
	range->to_ns = resolve(range, &range->filter->to, INT64_MAX / 4);
	if (range->to_ns <= range->from_ns)
		return err__set(err, -EINVAL, "--to is not after --from");
	for (i = 0; i < range->n; i++) {
		const struct load_extent *extent = &range->parts[i].extent;

		if (extent->begin_ns - LATE_NS < range->to_ns &&
		    extent->end_ns + LATE_NS >= range->from_ns)
			range->parts[n++] = range->parts[i];
		else
			free(range->parts[i].path);
	}
	if (!n)
		has_nothing(range, path, err);
	range->n = n;
	first = max_of(range->begin_ns, range->from_ns);
	last = max_of(min_of(range->end_ns, range->to_ns), first);
	load_columns__divide(max_of(first, 0), max_of(last, 0), range->filter->instants,
			     &range->columns);
	return n ? 0 : -ENOENT;
}

/* Returns the length of the requested range within the recording. */
static double overlap_s(const struct range *range, const struct load_extent *extent)
{
	int64_t from = max_of(range->from_ns, extent->begin_ns);
	int64_t to = min_of(range->to_ns, extent->end_ns);

	return to > from ? (to - from) / 1e9 : 0;
}

/* Reads one file and adds its samples. If @timed, converts ticks to times. */
static int add_file(struct range *range, const struct part *part, bool timed,
		    struct recorded_merge *merge, struct err *err)
{
	const struct recorded_times times = { .shift_ns = part->extent.offset_ns,
					      .from_ns = max_of(range->from_ns, 0),
					      .to_ns = range->to_ns };
	struct recorded recorded;
	int code = load__file(part->path, range->filter, &times, &range->columns, &recorded, err);

	recorded.duration_s = overlap_s(range, &part->extent);
	if (!code && timed)
		code = recorded__time_ticks(&recorded);
	if (code == -ENODATA)
		err__set(err, code,
			 "cannot add %s: it has no sampling rate, and those of the others differ",
			 part->path);
	else if (!err->text[0] && (code || recorded_merge__add(merge, &recorded)))
		code = err__set(err, -ENOMEM, "out of memory");
	recorded__done(&recorded);
	return code;
}

/* Returns true if the parts have several sampling rates: their ticks are not comparable, but the
 * times that they represent are. */
static bool has_several_rates(const struct range *range)
{
	double first_hz = 0;

	for (size_t i = 0; i < range->n; i++) {
		double hz = range->parts[i].extent.frequency_hz;

		if (!(hz > 0))
			continue;
		if (first_hz > 0 && hz != first_hz)
			return true;
		first_hz = hz;
	}
	return false;
}

static int add_files(struct range *range, bool alone, struct recorded *to, struct err *err)
{
	bool timed = has_several_rates(range);
	struct recorded_merge *merge = NULL;
	size_t added = 0, i;
	int code = recorded_merge__new(to, &merge) ? err__set(err, -ENOMEM, "out of memory") : 0;

	for (i = 0; !code && i < range->n; i++) {
		const struct part *part = &range->parts[i];
		struct err why = {};
		int failed = add_file(range, part, timed, merge, &why);

		added += !failed;
		if (failed && (alone || failed == -ENOMEM))
			code = err__set(err, failed, "%s", why.text);
		else if (failed && failed != -ENOENT)
			skip(range, why.text);
	}
	recorded_merge__free(merge);
	return code || added ? code : err__set(err, -ENOENT, "none of the recordings is readable");
}

int load_range__of(const char *path, const struct profile_filter *filter, struct recorded *ret,
		   struct err *err)
{
	struct range range = { .filter = filter };
	bool alone = !is_directory(path);
	int code = alone ? add_part(&range, strdup(path), &(struct recording_name) {})
			 : list_dir(&range, path, err);

	if (recorded__init(ret))
		code = err__set(err, -ENOMEM, "out of memory");
	if (!code)
		code = find_extents(&range, alone, err);
	if (!code)
		code = choose(&range, path, err);
	if (!code)
		code = add_files(&range, alone, ret, err);
	if (!code && (filter->times || filter->instants))
		ret->columns = range.columns;
	for (size_t i = 0; i < range.n; i++)
		free(range.parts[i].path);
	free(range.parts);
	return code;
}
