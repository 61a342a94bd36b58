/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TOP_H
#define BRAID_TOP_H

#include <stdbool.h>
#include <stdio.h>

#include "core/base/strtab.h"
#include "core/cli/cli.h"
#include "core/profile/live_profile.h"
#include "core/profile/rows.h"

/* `braid top` from inside:
 *
 *   cmd_top.c     options, and the loop
 *   top_data.c    what is shown: the profile of the window, and the rows that follow from it
 *   top_threads.c threads without samples
 *   top_text.c    its lines, for a terminal of any width and for pipes
 *   top_keys.c    what the user does with it
 *   top_screen.c  the terminal, which is left as it was found: the only one that knows curses */

#define TOP_TEXT_BYTES	  1024 /* of a line */
#define TOP_SEARCH_BYTES  128
#define TOP_RUNTIMES_MAX  6    /* shown by name; further ones are counted */
#define TOP_RUNTIMES_KEPT 1000 /* counted: versions come from targets */
#define TOP_HEADER_LINES  3
#define TOP_TITLES_LINE	  TOP_HEADER_LINES
#define TOP_ROWS_FROM	  (TOP_TITLES_LINE + 1)
#define TOP_MESSAGE_LINES 1

enum top_by { TOP_FUNCTIONS, TOP_THREADS };
enum top_mode { TOP_TABLE, TOP_SEARCH, TOP_HELP }; /* what keys mean */

struct top {
	/* --- what the user has asked for --- */
	struct session_opts opts;
	uint32_t *pids;
	double interval_s, window_s;
	bool once;
	size_t rows_max; /* 0: as many as there is room for */
	enum profile_frames frames;
	enum output_sort sort;
	enum top_by by;
	char search[TOP_SEARCH_BYTES]; /* a part of names, or an extended regular expression */

	/* --- what there is --- */
	struct session *session;
	struct live_profile *live;
	struct profile *profile; /* of the window, with all frames; NULL: none yet */
	struct rows rows;	 /* that fit the search, sorted */
	size_t n_all;		 /* and with those that do not */
	double shown_s;		 /* so many seconds are in it */
	double samples_per_s, own_cpu_percent;
	uint64_t lost;
	uint64_t samples;	 /* at the last progress */
	double elapsed_s;	 /* the same */
	struct strtab *runtimes; /* found ones, with version and source, from number 1 */
	char note[200];		 /* the last thing that the user should know; "": none */
	uint64_t begun_ns;

	/* --- on the screen --- */
	enum top_mode mode;
	size_t first, cursor; /* rows */
	size_t n_visible;
	bool paused, ended, quits;
	bool changed; /* it has to be drawn */
};

/* --- top_data.c --- */

/* Takes what is in the window now. 0, or a negative errno with the sentence. */
int top__take(struct top *top, struct err *err);

/* The rows again, after what decides about them has changed. 0 or -ENOMEM. */
int top__arrange(struct top *top);
void top__done(struct top *top);

/* --- top_threads.c --- */

/* Rows of threads that have none yet. 0 or -ENOMEM. */
int top__add_threads(struct top *top);

/* --- top_text.c --- */

/* Above the table. `line` < TOP_HEADER_LINES. */
void top__header(const struct top *top, int line, char buf[TOP_TEXT_BYTES]);

/* In so many columns; INT_MAX: however long it gets. */
void top__titles(const struct top *top, int columns, char buf[TOP_TEXT_BYTES]);
void top__row(const struct top *top, const struct row *row, int columns, char buf[TOP_TEXT_BYTES]);

/* Below it; in place of the table if there is no row. */
void top__message(const struct top *top, char buf[TOP_TEXT_BYTES]);
void top__empty(const struct top *top, char buf[TOP_TEXT_BYTES]);

/* NULL: the help has no such line. */
const char *top__help(size_t line);

/* Everything, a line each. */
void top__print(const struct top *top, int columns, FILE *out);

/* --- top_keys.c --- */

/* Keys are characters, or these. */
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

/* 0 or -ENOMEM. */
int top__key(struct top *top, int key);

/* Has the first row on the screen follow the cursor. */
void top__scroll(struct top *top);

/* --- top_screen.c --- */

/* Can the terminal do it? Else the sentence. */
int screen__check(struct err *err);

/* Standard streams that are the terminal lead nowhere from now on, so that nothing but the screen
 * writes there: not a command that is profiled, not a library. */
int screen__open_streams(struct err *err);
int screen__open(struct err *err);
void screen__close(void); /* all as it was before; idempotent */

void screen__draw(struct top *top);

/* Waits at most so long for a key; -1: none. `ret_gone`: there is no terminal any more. */
int screen__key(int timeout_ms, bool *ret_gone);

#endif
