// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/waiting_line.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

static void *show_later(void *ctx)
{
	struct waiting_line *line = ctx;
	struct timespec until;
	int ret;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += WAITING_LINE_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	do {
		ret = sem_clockwait(&line->end, CLOCK_MONOTONIC, &until);
	} while (ret && errno == EINTR);
	if (!ret)
		return NULL;
	pthread_mutex_lock(&line->lock);
	fprintf(stderr, "\r\033[K%s", line->text);
	fflush(stderr);
	line->shown = true;
	pthread_mutex_unlock(&line->lock);
	return NULL;
}

void waiting_line__begin(struct waiting_line *line, const char *text)
{
	*line = (struct waiting_line) { .text = text };
	if (sem_init(&line->end, 0, 0))
		return;
	pthread_mutex_init(&line->lock, NULL);
	line->started = !pthread_create(&line->thread, NULL, show_later, line);
}

void waiting_line__clear(struct waiting_line *line)
{
	if (!line->started)
		return;
	pthread_mutex_lock(&line->lock);
	if (line->shown)
		fputs("\r\033[K", stderr);
	line->shown = false;
	pthread_mutex_unlock(&line->lock);
}

void waiting_line__end(struct waiting_line *line)
{
	if (!line->started)
		return;
	sem_post(&line->end);
	pthread_join(line->thread, NULL);
	waiting_line__clear(line);
	line->started = false;
	sem_destroy(&line->end);
	pthread_mutex_destroy(&line->lock);
}
