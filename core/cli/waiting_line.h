/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WAITING_LINE_H
#define BRAID_WAITING_LINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

/* A line on the terminal while something takes longer than a moment. It is removed afterwards. */

#define WAITING_LINE_MS 300

struct waiting_line {
	const char *text;
	bool started; /* the thread runs */
	bool shown;   /* the line is on the terminal; under `lock` */
	sem_t end;
	pthread_t thread;
	pthread_mutex_t lock;
};

/* Writes @text to standard error after WAITING_LINE_MS, unless waiting_line__end() comes first.
 * Does nothing if there is no room for a thread. */
void waiting_line__begin(struct waiting_line *line, const char *text);

/* Removes the line, also in the middle of the wait, so that another line can be printed. */
void waiting_line__clear(struct waiting_line *line);

/* Ends the wait and removes the line. Does nothing if no wait has begun. */
void waiting_line__end(struct waiting_line *line);

#endif
