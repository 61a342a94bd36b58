// SPDX-License-Identifier: GPL-2.0-or-later
/* The common part of all fuzz targets. `f_NAME --seeds DIR` writes the target's seeds into DIR and
 * checks that its parser accepts each of them. A fuzzer that starts from a stale seed searches for
 * the magic numbers endlessly, and finds nothing. The rest is libFuzzer. */
#include "tests/fuzz/fuzz.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *seeds_dir;
static int n_seeds;

void fuzz__die(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "we");

	if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0)
		fuzz__die("cannot write %s", path);
}

uint8_t *fuzz__read(const char *path, size_t *ret_size)
{
	FILE *file = fopen(path, "re");
	uint8_t *data = NULL;
	long size = -1;

	if (file && fseek(file, 0, SEEK_END) == 0)
		size = ftell(file);
	if (size > 0)
		data = malloc(size);
	if (!data || fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, size, file) != (size_t)size)
		fuzz__die("cannot read %s", path);
	fclose(file);
	*ret_size = size;
	return data;
}

const char *fuzz__dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir ? dir : "/tmp";
}

const char *fuzz__file(const void *data, size_t size)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/input-%d", fuzz__dir(), getpid());
	if (data)
		write_file(path, data, size);
	else
		unlink(path);
	return path;
}

void fuzz__seed(const void *data, size_t size)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/seed-%d", seeds_dir, ++n_seeds);
	write_file(path, data, size);
	if (!target__run(data, size))
		fuzz__die("seed %d is not accepted (%s): it no longer fits its parser", n_seeds,
			  path);
}

void fuzz__seed_text(const char *text)
{
	fuzz__seed(text, strlen(text));
}

uint8_t *fuzz__compile(const char *flags, const char *source, size_t *ret_size)
{
	char command[PATH_MAX + 512], path[PATH_MAX];
	uint8_t *data;
	FILE *gcc;

	snprintf(path, sizeof(path), "%s/program-%d", fuzz__dir(), getpid());
	snprintf(command, sizeof(command),
		 "gcc -std=gnu11 -O2 -fno-stack-protector -nostdlib -static -Wl,-e,main "
		 "-Wl,-z,noseparate-code -x c %s - -o '%s'",
		 flags, path);
	gcc = popen(command, "we");
	if (!gcc || fputs(source, gcc) < 0 || pclose(gcc) != 0)
		fuzz__die("cannot compile a seed: %s", command);
	data = fuzz__read(path, ret_size);
	unlink(path);
	return data;
}

void fuzz__seed_elf(const char *flags, const char *source)
{
	size_t size;
	uint8_t *data = fuzz__compile(flags, source, &size);

	fuzz__seed(data, size);
	free(data);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	if (*argc != 3 || strcmp((*argv)[1], "--seeds") != 0)
		return 0;
	seeds_dir = (*argv)[2];
	target__seeds();
	if (!n_seeds)
		fuzz__die("the target has no seed");
	if (target__run((const uint8_t *)"", 0))
		fuzz__die("the target accepts nothing at all as if it were something");
	exit(0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	target__run(data, size);
	return 0;
}
