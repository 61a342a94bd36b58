// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* libiberty.h, which demangle.h includes, declares basename and asprintf its own way unless told
 * that the system has them. */
#define HAVE_DECL_BASENAME  1
#define HAVE_DECL_ASPRINTF  1
#define HAVE_DECL_VASPRINTF 1
#include <libiberty/demangle.h>

/* A mangled name refers back to its own parts, so that 250 hostile characters can stand for
 * gigabytes. libiberty cannot be asked to stop, hence the jump out of its callback. */
#define DEMANGLED_BYTES_MAX 16384

struct text {
	jmp_buf too_long;
	size_t len;
	char buf[DEMANGLED_BYTES_MAX + 1];
};

static void append(const char *part, size_t len, void *arg)
{
	struct text *text = arg;

	if (len > DEMANGLED_BYTES_MAX - text->len)
		longjmp(text->too_long, 1);
	memcpy(text->buf + text->len, part, len);
	text->len += len;
}

/* Parts of a function that the compiler moved or cloned (f.cold, f.part.0) keep that suffix, as in
 * C; libiberty shows it only along with parameters. Those of ThinLTO (f.llvm.123) mean nothing. */
static void append_clone(const char *name, struct text *text)
{
	const char *suffix = strchr(name, '.');

	if (suffix && strncmp(suffix, ".llvm.", 6) != 0)
		append(suffix, strlen(suffix), text);
}

static bool print_demangled(const char *name, struct text *text)
{
	if (setjmp(text->too_long))
		return false;
	text->len = 0;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, append, text))
		return true;
	text->len = 0;
	if (name[1] != 'Z' || !cplus_demangle_v3_callback(name, DMGL_NO_OPTS, append, text))
		return false;
	append_clone(name, text);
	return true;
}

char *demangle(const char *name)
{
	struct text text;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || !print_demangled(name, &text))
		return strdup(name);
	return strndup(text.buf, text.len);
}
