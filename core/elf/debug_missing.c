// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/debug_missing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct debug_missing files[DEBUG_MISSING_FILES];
static size_t n_files;
static uint64_t n_more;

void debug_missing__add(const char *path, enum debug_missing_reason reason, const char *detail,
			uint64_t n)
{
	struct debug_missing new = { .reason = reason, .n = n };
	size_t i;

	snprintf(new.path, sizeof(new.path), "%s", path);
	snprintf(new.detail, sizeof(new.detail), "%s", detail ? detail : "");
	pthread_mutex_lock(&lock);
	for (i = 0; i < n_files; i++)
		if (files[i].reason == reason && !strcmp(files[i].path, new.path))
			break;
	if (i < n_files)
		files[i].n += n;
	else if (n_files < DEBUG_MISSING_FILES)
		files[n_files++] = new;
	else
		n_more++;
	pthread_mutex_unlock(&lock);
}

const struct debug_missing *debug_missing__get(size_t i)
{
	return i < n_files ? &files[i] : NULL;
}

uint64_t debug_missing__more(void)
{
	return n_more;
}

void debug_missing__text(const struct debug_missing *missing, char to[DEBUG_MISSING_BYTES])
{
	switch (missing->reason) {
	case DEBUG_MISSING_SPLIT:
		snprintf(to, DEBUG_MISSING_BYTES,
			 "%s: no inlined frames of %" PRIu64 " compilation unit%s: cannot find %s. "
			 "Put the .dwo files where they were built or beside the program, or make "
			 "a .dwp of them",
			 missing->path, missing->n, missing->n == 1 ? "" : "s", missing->detail);
		return;
	case DEBUG_MISSING_TOO_LARGE:
		snprintf(to, DEBUG_MISSING_BYTES,
			 "%s: no source lines and inlined frames: the debug information is too "
			 "large",
			 missing->path);
		return;
	case DEBUG_MISSING_UNREADABLE:
		snprintf(to, DEBUG_MISSING_BYTES,
			 "%s: no source lines and inlined frames: the debug information is "
			 "malformed, or compressed by an unknown method",
			 missing->path);
		return;
	}
	*to = '\0';
}
