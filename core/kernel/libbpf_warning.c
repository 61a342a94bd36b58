// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/libbpf_warning.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BEGIN "-- BEGIN PROG LOAD LOG --\n"
#define LOG_STATS "\nprocessed " /* the line after the verifier's reason */
#define LOG_END	  "\n-- END PROG LOAD LOG --"

static __thread char first[360]; /* fits into a struct err with the surrounding text */
static __thread size_t first_len;
static __thread bool has_reason;
static void (*shown_by)(const char *text);

/* Finds the reason in a log that begins at @log: the verifier's last line, without its newline.
 * Returns its length, and its start in *@ret; 0: there is none. */
static int find_reason(const char *log, const char **ret)
{
	const char *end = strstr(log, LOG_END), *stats = strstr(log, LOG_STATS), *start;

	if (stats && (!end || stats < end))
		end = stats;
	if (!end)
		return 0;
	for (start = end; start > log && start[-1] != '\n'; start--)
		;
	*ret = start;
	return (int)(end - start);
}

static void keep_text(const char *text)
{
	const char *log = strstr(text, LOG_BEGIN), *reason;
	size_t left = sizeof(first) - first_len;
	int len;

	if (!first_len) {
		snprintf(first, sizeof(first), "%s", text);
		first_len = strcspn(first, "\n");
		first[first_len] = '\0';
	} else if (log && !has_reason) {
		len = find_reason(log + strlen(LOG_BEGIN), &reason);
		has_reason = len > 0;
		if (has_reason)
			snprintf(first + first_len, left, "; the verifier: %.*s", len, reason);
	}
}

static int keep(enum libbpf_print_level level, const char *fmt, va_list args)
{
	void (*show)(const char *text) = __atomic_load_n(&shown_by, __ATOMIC_ACQUIRE);
	char *text;

	if (level != LIBBPF_WARN || vasprintf(&text, fmt, args) < 0)
		return 0;
	keep_text(text);
	if (show)
		show(text);
	free(text);
	return 0;
}

static void set(void)
{
	libbpf_set_print(keep);
}

void libbpf_warning__keep(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set);
}

void libbpf_warning__begin(void)
{
	first[0] = '\0';
	first_len = 0;
	has_reason = false;
}

const char *libbpf_warning__first(void)
{
	return first;
}

void libbpf_warning__show(void (*show)(const char *text))
{
	__atomic_store_n(&shown_by, show, __ATOMIC_RELEASE);
	libbpf_warning__keep();
}
