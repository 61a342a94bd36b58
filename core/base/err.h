/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ERR_H
#define BRAID_ERR_H

/* The reason for a failure, in one sentence that names the thing and the remedy. Library code fills
 * it in; only the command-line layer prints it. */
struct err {
	char text[512];
};

/* Sets the text (printf style, no trailing newline) and returns @code, a negative errno, so that
 * callers can write `return err__set(err, -EINVAL, ...)`. @err may be NULL. A text that is too long
 * is cut. */
int err__set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Inserts `prefix: ` (printf style) before the existing text. Returns @code. */
int err__prefix(struct err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
