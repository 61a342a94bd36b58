/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TITLE_H
#define BRAID_TITLE_H

#define TITLE_BYTES 128

/* Returns the title that a process gave itself instead of its arguments ("postgres: walwriter",
 * "gunicorn: worker [app:app]"), copied to @buf, or else @name. @command is the process's command
 * line, or NULL. The command line is a title if its first word ends with a colon. It is also one
 * if it begins with @name, and @name has a blank. */
const char *title__of(const char *name, const char *command, char buf[TITLE_BYTES]);

/* As title__of(), for a thread called @name. Only the first thread may have the name of its
 * process, @process, or the beginning of the title. */
const char *title__of_thread(const char *name, const char *process, const char *command,
			     char buf[TITLE_BYTES]);

#endif
