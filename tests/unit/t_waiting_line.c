// SPDX-License-Identifier: GPL-2.0-or-later
/* The line on the terminal while something takes longer than a moment. */
#include "core/cli/waiting_line.h"

#include <stdio.h>
#include <unistd.h>

#include "tests/tap.h"

static FILE *file;

/* Returns all that was written to standard error since the last call. */
static const char *written(void)
{
	static char text[200];
	size_t n;

	fflush(stderr);
	rewind(file);
	n = fread(text, 1, sizeof(text) - 1, file);
	text[n] = '\0';
	if (ftruncate(STDERR_FILENO, 0) || lseek(STDERR_FILENO, 0, SEEK_SET))
		return "";
	return text;
}

int main(void)
{
	struct waiting_line line = {};

	file = tmpfile();
	if (!file || dup2(fileno(file), STDERR_FILENO) < 0)
		return 1;
	waiting_line__end(&line);
	is_str(written(), "", "nothing has begun");
	waiting_line__begin(&line, "reading");
	waiting_line__end(&line);
	is_str(written(), "", "a short wait has no line");
	waiting_line__begin(&line, "reading");
	usleep(3 * WAITING_LINE_MS * 1000);
	is_str(written(), "\r\033[Kreading", "a long one has");
	waiting_line__clear(&line);
	is_str(written(), "\r\033[K", "another line can come in between");
	waiting_line__end(&line);
	is_str(written(), "", "which removes the line once");
	waiting_line__begin(&line, "reading");
	usleep(3 * WAITING_LINE_MS * 1000);
	waiting_line__end(&line);
	is_str(written(), "\r\033[Kreading\r\033[K", "the end removes the line");
	return tap__done();
}
