/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUTPUT_H
#define BRAID_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "core/profile/diff.h"
#include "core/profile/frames.h"
#include "core/profile/profile.h"

/* the subject of a table's rows */
enum output_group {
	OUTPUT_FUNCTIONS,
	OUTPUT_FILES,
	OUTPUT_LIBRARIES,
	OUTPUT_KINDS,
	OUTPUT_LABELS, /* labels of the profile's outermost frames: processes, threads, ... */
	OUTPUT_GROUPS_N,
};

enum output_sort {
	OUTPUT_SORT_DEFAULT, /* by script if there is such a column, otherwise by self */
	OUTPUT_SORT_SELF,
	OUTPUT_SORT_TOTAL,
	OUTPUT_SORT_SCRIPT,
	OUTPUT_SORT_NAME,
	OUTPUT_SORT_SAMPLES, /* by samples, with a column for them */
	OUTPUT_SORTS_N,
};

/* some of the lines of a file, for the page */
struct output_source {
	char *file;
	uint32_t first;	 /* number of the first line */
	char *text;	 /* not necessarily UTF-8 */
	bool is_younger; /* newer than a process that ran it, perhaps with another text */
};

/* The origin of a part of a recording, for servers that collect many. */
struct output_origin {
	const char *service; /* service of all processes; NULL: each by its own name */
	const char *host;    /* "": unknown */
	int64_t time_ns;     /* since 1970 */
	int64_t duration_ns;
	uint8_t id[16]; /* id of the part */
};

struct output_instruction {
	uint64_t address; /* as in the file */
	char *text;
	char *place; /* "f.c:12": source line if it differs from the previous row's; or NULL */
	bool cut;    /* rows before it are left out */
};

/* The machine code of a native function, or the reason why it is missing. */
struct output_code {
	const char *name, *file;
	const char *why; /* reason; NULL: the code is there */
	uint64_t start, end;
	struct output_instruction *rows;
	size_t n;
};

struct output_opts {
	bool lines;   /* table: rows of functions differ by line */
	bool hottest; /* table: name the line of a function with most weight; requires a profile
			 with lines */
	int annotate; /* append the kind's suffix to every name */
	size_t rows;  /* table, tree: largest number of rows; 0: all */
	/* formats with `events`: other events of the same recording, to be written beside the
	 * profile */
	struct profile *const *others;
	size_t n_others;
	enum output_group group;
	enum output_sort sort;
	enum profile_frames frames; /* the page: view that is shown at first; other formats show the
				       profile unchanged */
	bool joins_lines; /* the page: show the lines of a function as one, until its user changes
			     that */
	const struct output_source *sources; /* the page: files of its frames */
	size_t n_sources;
	const struct output_code *codes; /* the page, code: machine code of frames with addresses */
	size_t n_codes;
	bool colour;   /* table, tree: write SGR sequences for a terminal */
	bool inverted; /* tree: show callers; the profile is inverted already */
	bool headless; /* tree: omit the lines above the columns' titles */
	/* table, tree, folded: comparison of two recordings, whose `both` is the profile; NULL: one
	 * recording */
	const struct diff *diff;
	const struct output_origin *origin; /* pprof, otlp; NULL: unknown */
};

/* All writers write the whole profile to @out and flush it. They return 0, -ENOMEM, or the negative
 * errno of a failed write. */

/* Writes one row per function (name, file and kind; lines do not split a function). The columns are
 * script, self and total weight with percentages, calls if these were counted, and kind. Script is
 * the function's own time with the native code that it calls (frames__script_owners()). It is
 * omitted if it equals self for all functions. Total counts a stack once however often the function
 * recurs in it. Sorted by opts->sort, then by self, total, calls, name. */
int output__table(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes the tree of calls, root first, siblings by weight. The columns are total and self weight
 * of each path, and calls if these were counted. Nodes with less than 0.1 % of the whole are left
 * out. */
int output__tree(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes opts->codes. Each instruction has the weight of samples taken at it (self), the weight
 * with its callees (total), and both as shares of the function's weight. */
int output__code(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Returns the number + 1 of the code that contains a frame of @profile; 0: none. *@ret_row is the
 * instruction that contains the frame's address; may be NULL. */
uint32_t output__find_code(const struct output_code *codes, size_t n, const struct profile *profile,
			   const struct profile_frame *frame, uint32_t *ret_row);

/* Writes the distribution of samples' values: the count for each power of two. The first is that of
 * all samples. Then follow those of groups, the greatest sum first, at most opts->rows of them. */
int output__histogram(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes the requests with most time, and the causes of their time. @profile is grouped by
 * PROFILE_BY_REQUEST, another part of contexts, or the service, and inside by state. */
int output__spans(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes potential deadlocks in a profile of the event lock-order by thread, at most opts->rows. */
int output__lock_order(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes `root;...;leaf WEIGHT`, one line per distinct stack, sorted, with plain numbers in the
 * event's unit. `;` inside a name becomes `:`, control characters become `?`. For two recordings
 * the line ends with `OLD NEW`, as difffolded.pl of FlameGraph writes it. OLD is then scaled to be
 * comparable with NEW (diff__scale()). */
int output__folded(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes one self-contained HTML page: interactive flame graph, no network. */
int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes one self-contained SVG with the same interactions. */
int output__flame_svg(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes gzip'd binary data for `pprof` (github.com/google/pprof, proto/profile.proto). For the
 * CPU's time each stack has two values, samples and nanoseconds. If the frequency is unknown, it
 * has only the first. For calls it has their number and nanoseconds, for other events one value,
 * named like the event. The same profile gives the same bytes. Values divided among threads have
 * the labels pid, process, tid and thread. */
int output__pprof(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes JSON for https://www.speedscope.app: a profile for each event and thread. */
int output__speedscope(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes JSON for https://profiler.firefox.com: a thread for each event and thread. */
int output__firefox(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes OpenTelemetry's profiles as a binary request for a collector: a profile for each process
 * and event. */
int output__otlp(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes JSON for Perfetto and chrome://tracing: a slice for each path of calls, as sums. */
int output__chrome(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes text in the format of perf-script(1). The period of a sample is its value. */
int output__perf(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes JSON as docs/reference/report.schema.json describes it: rows and the whole tree, or the
 * changes of two recordings. */
int output__json(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes Markdown: a table of rows, then the tree. */
int output__markdown(const struct profile *profile, const struct output_opts *opts, FILE *out);

/* Writes a graph of calls for Graphviz's dot: functions with at least 0.5 % of the whole, and
 * calls. */
int output__dot(const struct profile *profile, const struct output_opts *opts, FILE *out);

struct output_format {
	const char *name;
	int (*write)(const struct profile *profile, const struct output_opts *opts, FILE *out);
	bool binary;   /* not for terminals */
	bool bare;     /* has no place for output__notes() */
	bool threads;  /* requires values divided by thread */
	bool tasks;    /* requires values divided by task */
	bool events;   /* can contain all events of a recording: opts->others */
	bool instants; /* requires the time of each sample */
	bool diff;     /* can compare two recordings: opts->diff */
};

/* The first bytes of pages, by which braid recognizes a file that it wrote. */
#define OUTPUT_HTML_BEGIN                                                 \
	"<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n" \
	"<meta name=\"generator\" content=\"braid\">\n"
#define OUTPUT_SVG_BEGIN "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- generator: braid -->\n"

/* Returns the format, or NULL if there is none of that name. */
const struct output_format *output__find_format(const char *name);
/* for people */
#define OUTPUT_FORMATS                                                                    \
	"table, tree, json, markdown, folded, pprof, speedscope, firefox, otlp, chrome, " \
	"perf or dot"

#endif
