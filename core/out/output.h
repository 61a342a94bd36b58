/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_H
#define BRAID_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/profile/diff.h"
#include "core/profile/frames.h"
#include "core/profile/profile.h"

/* What rows of a table are of. */
enum output_group {
	OUTPUT_FUNCTIONS,
	OUTPUT_FILES,
	OUTPUT_LIBRARIES,
	OUTPUT_KINDS,
	OUTPUT_LABELS, /* what the profile's outermost frames are: processes, threads, ... */
	OUTPUT_GROUPS_N,
};

enum output_sort {
	OUTPUT_SORT_DEFAULT, /* script where there is such a column, else self */
	OUTPUT_SORT_SELF,
	OUTPUT_SORT_TOTAL,
	OUTPUT_SORT_SCRIPT,
	OUTPUT_SORT_NAME,
	OUTPUT_SORT_SAMPLES, /* which also has a column for them */
	OUTPUT_SORTS_N,
};

/* Some of the lines of a file, for the page. */
struct output_source {
	char *file;
	uint32_t first;	 /* line */
	char *text;	 /* in UTF-8, or not */
	bool is_younger; /* than a process that has run it, maybe as another text */
};

/* Where and when a part of a recording was made, for servers that collect many. */
struct output_origin {
	const char *service; /* of all processes; NULL: each by its name */
	const char *host;    /* "": not known */
	int64_t time_ns;     /* since 1970 */
	int64_t duration_ns;
	uint8_t id[16]; /* of the part */
};

struct output_instruction {
	uint64_t address; /* as in the file */
	char *text;
	char *place; /* "f.c:12": its line, if that is another than of the one before; NULL */
	bool cut;    /* some are left out before it */
};

/* The machine code of a native function, or why there is none. */
struct output_code {
	const char *name, *file;
	const char *why; /* NULL: there is */
	uint64_t start, end;
	struct output_instruction *rows;
	size_t n;
};

struct output_opts {
	bool lines;   /* table: rows of functions differ by line */
	bool hottest; /* table: names the line of a function that has most; the profile has lines */
	int annotate; /* append the kind's suffix to every name */
	size_t rows;  /* table, tree: at most so many rows; 0: all */
	/* formats with `events`: the same recording's other events, to be written beside the
	 * profile */
	struct profile *const *others;
	size_t n_others;
	enum output_group group;
	enum output_sort sort;
	enum profile_frames frames; /* the page: what it shows at first; all others show what the
				       profile has */
	bool joins_lines; /* the page: shows lines of a function as one, unless its user says
			     otherwise */
	const struct output_source *sources; /* the page: files of its frames */
	size_t n_sources;
	const struct output_code *codes; /* the page, code: of frames with addresses */
	size_t n_codes;
	bool colour;   /* table, tree: for a terminal that knows SGR sequences */
	bool inverted; /* tree: of callers; the profile is inverted already */
	bool headless; /* tree: without the lines above the columns' titles */
	/* table, tree, folded: two recordings instead of one, whose `both` is the profile; NULL:
	 * one */
	const struct diff *diff;
	const struct output_origin *origin; /* pprof, otlp; NULL: not told */
};

/* All writers write the whole profile to `out` and return 0, -ENOMEM, or the negative errno of a
 * failed write (the stream is flushed before they return). */

/* One row per function (name, file and kind; lines do not split a function): script, self and total
 * weight and percentages, with times also calls, kind. Script is the function's own time with the
 * native code that it calls (frames__script_owners); it is left out where it is the same as self
 * for all. Total counts a stack once however often the function recurs in it. Sorted as wanted,
 * then by self, total, calls, name. */
int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* The tree of calls, root first, siblings by weight: total, self, and with times calls, of each
 * path. What has less than 0.1 % of the whole is left out. */
int output__tree(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* opts->codes, each instruction with what of the weight was in it (self: where a thread was when
 * its sample was taken) and in what it called (total), and what part that is of the function's. */
int output__code(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Which of them a frame of that profile is in: its number + 1; 0: none. `ret_row`: which of its
 * instructions has the frame's address, which may lie within it; may be NULL. */
uint32_t output__find_code(const struct output_code *codes, size_t n, const struct profile *profile,
			   const struct profile_frame *frame, uint32_t *ret_row);

/* How the values of samples are spread: so many in each power of two, of all and of each group of
 * the profile, the greatest sum first, at most opts->rows of them. */
int output__histogram(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Potential deadlocks in a profile of the event lock-order by thread, at most opts->rows of them.
 */
int output__lock_order(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* `root;...;leaf WEIGHT`, one line per distinct stack, sorted; plain numbers in the event's
 * unit. `;` inside a
 * name becomes `:`, control characters become `?`. Of two recordings `... OLD NEW`, as
 * difffolded.pl of FlameGraph writes it, where OLD is scaled to be like NEW (diff__scale). */
int output__folded(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* One self-contained HTML page: interactive flame graph, no network. */
int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* One self-contained SVG with the same interactions. */
int output__flame_svg(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* For `pprof` (github.com/google/pprof, proto/profile.proto), gzip'd: binary. Of the CPU's time
 * each stack has two values, samples and nanoseconds (only the first where the frequency is not
 * known), of calls their number and nanoseconds, of other events one, named like the event. The
 * same profile gives the same bytes. What is divided among threads has their labels: pid, process,
 * tid, thread. */
int output__pprof(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* JSON for https://www.speedscope.app: a profile for each event and thread. */
int output__speedscope(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* JSON for https://profiler.firefox.com: a thread for each event and thread. */
int output__firefox(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* OpenTelemetry's profiles, as a request for a collector: binary. A profile for each process and
 * event. */
int output__otlp(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* JSON for Perfetto and chrome://tracing: a slice for each path of calls, of sums. */
int output__chrome(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Text as perf-script(1) writes it, for what reads that; the period of a sample is its value. */
int output__perf(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* JSON as docs/reference/report.schema.json describes it: rows and the whole tree, or the changes
 * of two recordings. */
int output__json(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Markdown: a table of rows, then the tree. */
int output__markdown(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* A graph of calls for Graphviz's dot: functions with at least 0.5 % of the whole, and calls. */
int output__dot(const struct profile *profile, const struct output_opts *opts, FILE *out);

struct output_format {
	const char *name;
	int (*write)(const struct profile *profile, const struct output_opts *opts, FILE *out);
	bool binary;   /* not for terminals */
	bool bare;     /* has no place for output__notes */
	bool threads;  /* wants to know what is of which thread */
	bool tasks;    /* ... and of which of its tasks */
	bool events;   /* has room for all events of a recording: opts->others */
	bool instants; /* wants to know when each sample was */
	bool diff;     /* can compare two: opts->diff */
};

/* The first bytes of pages, by which braid finds that it has written a file. */
#define OUTPUT_HTML_BEGIN                                                 \
	"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n" \
	"<meta name=\"generator\" content=\"braid\">\n"
#define OUTPUT_SVG_BEGIN "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- generator: braid -->\n"

/* NULL: no such format. */
const struct output_format *output__find_format(const char *name);
/* for people */
#define OUTPUT_FORMATS                                                                    \
	"table, tree, json, markdown, folded, pprof, speedscope, firefox, otlp, chrome, " \
	"perf or dot"

#endif
