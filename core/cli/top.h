/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TOP_H
#define BRAID_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/strtab.h"
#include "core/cli/cli.h"
#include "core/live/live_profile.h"
#include "core/out/rows.h"

/* The private interface of `braid top`:
 *
 *   cmd_top.c     options, and the loop
 *   top_data.c    the data: the profile of the window, and the rows that follow from it
 *   top_threads.c threads without samples
 *   top_text.c    the lines, for a terminal of any width and for pipes
 *   top_keys.c    the user's actions
 *   top_screen.c  the terminal, whose state is restored; the only file that uses curses */

#define TOP_TEXT_BYTES	       1024 /* bytes of a line */
#define TOP_SEARCH_BYTES       128
#define TOP_RUNTIMES_MAX       6    /* shown by name; further ones are counted */
#define TOP_RUNTIMES_COUNT_MAX 1000 /* limit of the count, as versions come from targets */
#define TOP_HEADER_LINES       3
#define TOP_TITLES_LINE	       TOP_HEADER_LINES
#define TOP_ROWS_FROM	       (TOP_TITLES_LINE + 1)
#define TOP_MESSAGE_LINES      1

enum top_by { TOP_FUNCTIONS, TOP_THREADS };
enum top_mode { TOP_TABLE, TOP_SEARCH, TOP_HELP }; /* meaning of keys */

struct top {
	/* --- user's settings --- */
	struct session_opts opts;
	uint32_t *pids;
	double interval_s, window_s;
	bool once;
	size_t rows_max; /* 0: as many as fit */
	enum profile_frames frames;
	enum output_sort sort;
	enum top_by by;
	char search[TOP_SEARCH_BYTES]; /* a part of names, or an extended regular expression */

	/* --- data --- */
	struct session *session;
	struct live_profile *live;
	struct profile *profile; /* profile of the window, with all frames; NULL: none yet */
	struct rows rows;	 /* rows that match the search, sorted */
	size_t n_all;		 /* rows with those that do not match */
	double shown_s;		 /* length of the window's data, s */
	double samples_per_s, own_cpu_percent;
	uint64_t lost;
	uint64_t samples;	 /* at the last progress */
	double elapsed_s;	 /* at the last progress */
	struct strtab *runtimes; /* found ones, with version and source, from number 1 */
	char note[200];		 /* latest notice for the user; "": none */
	uint64_t begun_ns;

	/* --- screen --- */
	enum top_mode mode;
	size_t first, cursor; /* rows */
	size_t n_visible;
	bool paused, ended, quits;
	bool changed; /* needs a redraw */
};

/* --- top_data.c --- */

/* Loads the window's present data. Returns 0, or a negative errno with a message. */
int top__take(struct top *top, struct err *err);

/* Recomputes the rows after a change of settings or data. Returns 0 or -ENOMEM. */
int top__arrange(struct top *top);
void top__done(struct top *top);

/* --- top_threads.c --- */

/* Adds rows for threads that have none yet. Returns 0 or -ENOMEM. */
int top__add_threads(struct top *top);

/* --- top_text.c --- */

/* Writes a line above the table; @line < TOP_HEADER_LINES. */
void top__header(const struct top *top, int line, char buf[TOP_TEXT_BYTES]);

/* Write a line of at most @columns columns; INT_MAX: no limit. */
void top__titles(const struct top *top, int columns, char buf[TOP_TEXT_BYTES]);
void top__row(const struct top *top, const struct row *row, int columns, char buf[TOP_TEXT_BYTES]);

/* Write the line below the table, and the text in place of an empty table. */
void top__message(const struct top *top, char buf[TOP_TEXT_BYTES]);
void top__empty(const struct top *top, char buf[TOP_TEXT_BYTES]);

/* Returns a line of the help; NULL: there are no more. */
const char *top__help(size_t line);

/* Prints everything, line by line. */
void top__print(const struct top *top, int columns, FILE *out);

/* --- top_keys.c --- */

/* Keys are characters, or these values. */
enum {
	TOP_KEY_UP = 0x100,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_BACKSPACE,
	TOP_KEY_ESCAPE,
	TOP_KEY_ENTER,
	TOP_KEY_RESIZE
};

/* Handles a key. Returns 0 or -ENOMEM. */
int top__key(struct top *top, int key);

/* Scrolls so that the cursor is visible. */
void top__scroll(struct top *top);

/* --- top_screen.c --- */

/* Checks that the terminal is suitable; otherwise sets the message. */
int screen__check(struct err *err);

/* Redirects standard streams on the terminal to /dev/null, so that only the screen writes there,
 * and no profiled command and no library does. */
int screen__open_streams(struct err *err);
int screen__open(struct err *err);
void screen__close(void); /* restores everything; idempotent */

void screen__draw(struct top *top);

/* Waits at most @timeout_ms for a key; -1: none. *@ret_hung_up is true if the terminal is gone. */
int screen__key(int timeout_ms, bool *ret_hung_up);

#endif
