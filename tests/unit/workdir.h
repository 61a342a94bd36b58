/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_WORKDIR_H
#define BRAID_TESTS_WORKDIR_H

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A temporary directory in which a test runs compilers and binutils. Its functions end the test if
 * they fail, which prove reports. */

static char workdir[64];

static inline void workdir__remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", workdir);
	if (system(command) != 0)
		fprintf(stderr, "%s: not removed\n", workdir);
}

static inline void workdir__make(void)
{
	strcpy(workdir, "/tmp/braid-test-XXXXXX");
	if (!mkdtemp(workdir)) {
		perror("mkdtemp");
		exit(1);
	}
	atexit(workdir__remove);
}

static inline void workdir__write(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	file = fopen(path, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0) {
		perror(path);
		exit(1);
	}
}

/* Returns the output of a shell command that runs in the directory. */
__attribute__((format(printf, 1, 2))) static inline FILE *workdir__pipe(const char *fmt, ...)
{
	char command[4096];
	FILE *pipe;
	va_list args;
	int n = snprintf(command, sizeof(command), "cd '%s' && ", workdir);

	va_start(args, fmt);
	vsnprintf(command + n, sizeof(command) - n, fmt, args);
	va_end(args);
	pipe = popen(command, "r");
	if (!pipe) {
		perror("popen");
		exit(1);
	}
	return pipe;
}

#define workdir__try(...) (pclose(workdir__pipe(__VA_ARGS__)) == 0)

#define workdir__run(...)                                         \
	do {                                                      \
		if (!workdir__try(__VA_ARGS__)) {                 \
			printf("Bail out! failed: " __VA_ARGS__); \
			exit(1);                                  \
		}                                                 \
	} while (0)

/* Returns the contents of @name, owned by the caller. */
static inline unsigned char *workdir__read(const char *name, size_t *ret_len)
{
	char path[256];
	unsigned char *data;
	long len;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	file = fopen(path, "r");
	if (!file || fseek(file, 0, SEEK_END) != 0 || (len = ftell(file)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(file);
	data = malloc(len + 1);
	if (!data || fread(data, 1, len, file) != (size_t)len)
		exit(1);
	fclose(file);
	*ret_len = len;
	return data;
}

static inline int workdir__open(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Returns the number of files, including hidden ones. */
static inline int workdir__count(void)
{
	DIR *dir = opendir(workdir);
	int n = 0;

	while (dir && readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

#endif
