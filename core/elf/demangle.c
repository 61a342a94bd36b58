// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/demangle.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* libiberty.h, which demangle.h includes, declares its own basename and asprintf unless these
 * macros show that the system has them. */
#define HAVE_DECL_BASENAME  1
#define HAVE_DECL_ASPRINTF  1
#define HAVE_DECL_VASPRINTF 1
#include <libiberty/demangle.h>

/* Limit of a demangled name. A mangled name refers back to its own parts, so that 250 hostile
 * characters can stand for gigabytes. libiberty has no way to stop, hence the longjmp() out of its
 * callback. */
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

/* Suffixes of GCC (clone_function_name, lto/lto-partition.c) and LLVM (ThinLTO, unique linkage
 * names). */
static const struct {
	const char *word;
	bool numbered; /* a number always follows */
} suffixes[] = { { "cold", false },  { "part", true },	     { "constprop", true },
		 { "isra", true },   { "llvm", true },	     { "lto_priv", true },
		 { "__uniq", true }, { "localalias", false } };

/* Returns the length of one such suffix at the end of @len characters, or 0. */
static size_t suffix__length(const char *name, size_t len)
{
	size_t end = len, digits = 0, n;

	while (end > 0 && isdigit((unsigned char)name[end - 1]))
		end--;
	digits = len - end;
	if (digits && (!end || name[end - 1] != '.'))
		return 0;
	end -= digits > 0;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		n = strlen(suffixes[i].word);
		if ((digits || !suffixes[i].numbered) && end > n + 1 && name[end - n - 1] == '.' &&
		    !memcmp(name + end - n, suffixes[i].word, n))
			return len - (end - n - 1);
	}
	return 0;
}

size_t symbol_name__length(const char *name)
{
	size_t len = strlen(name), n;

	while ((n = suffix__length(name, len)))
		len -= n;
	return len;
}

/* Appends any other suffix of a mangled name, as in C. libiberty shows it only along with
 * parameters. */
static void append_rest(const char *name, struct text *text)
{
	const char *rest = strchr(name, '.');

	if (rest)
		append(rest, strlen(rest), text);
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
	append_rest(name, text);
	return true;
}

char *demangle(const char *name)
{
	char *bare = strndup(name, symbol_name__length(name));
	struct text text;

	if (!bare || bare[0] != '_' || (bare[1] != 'Z' && bare[1] != 'R') ||
	    !print_demangled(bare, &text))
		return bare;
	free(bare);
	return strndup(text.buf, text.len);
}
