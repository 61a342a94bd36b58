/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TAP_H
#define BRAID_TAP_H

#include <stdbool.h>
#include <stdint.h>

/* TAP for C tests: call the checks, end with `return tap__done();`. Each check is one test line. A
 * failed check prints its place and the actual value. */

#define ok(cond, ...) tap__ok((cond) ? true : false, __FILE__, __LINE__, __VA_ARGS__)
#define is_int(got, want, ...) \
	tap__is_int((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define is_str(got, want, ...) tap__is_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)

bool tap__ok(bool cond, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool tap__is_int(int64_t got, int64_t want, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
bool tap__is_str(const char *got, const char *want, const char *file, int line, const char *fmt,
		 ...) __attribute__((format(printf, 5, 6)));
void tap__skip(const char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tap__diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints the plan. Returns the exit status: 0 if every check passed. */
int tap__done(void);

#endif
