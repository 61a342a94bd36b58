// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HotSpot appends an address to the names of hidden classes ("+0x0000000800c03000"), and until JDK
 * 14 to those of anonymous ones ("/0x...", "/1234"). */
static void cut_address(char *name)
{
	char *at = strrchr(name, '+');
	const char *digits;
	bool is_hex;

	if (!at)
		at = strrchr(name, '/');
	if (!at)
		return;
	is_hex = strncmp(at + 1, "0x", 2) == 0;
	digits = at + (is_hex ? 3 : 1);
	if (*digits && !digits[strspn(digits, is_hex ? "0123456789abcdef" : "0123456789")])
		*at = 0;
}

char *jvm_name__method(char *class_name, const char *method_name)
{
	char *name;

	cut_address(class_name);
	for (char *at = class_name; *at; at++)
		if (*at == '/')
			*at = '.';
	return asprintf(&name, "%s.%s", class_name, method_name) < 0 ? NULL : name;
}

/* --- signatures: "The Java Virtual Machine Specification", 4.3 --- */

#define DIMENSIONS_MAX 255

static const char *primitive(char letter)
{
	static const char letters[] = "BCDFIJSZV";
	static const char *const names[] = { "byte", "char",  "double",	 "float", "int",
					     "long", "short", "boolean", "void" };
	const char *found = letter ? strchr(letters, letter) : NULL;

	return found ? names[found - letters] : NULL;
}

/* Writes the type that begins at @at. Returns the place after it; NULL: no type. */
static const char *write_type(FILE *out, const char *at)
{
	size_t dimensions = strspn(at, "["), len;

	at += dimensions;
	if (dimensions > DIMENSIONS_MAX)
		return NULL;
	if (*at == 'L') {
		len = strcspn(++at, ";(");
		if (!len || at[len] != ';')
			return NULL;
		for (; *at != ';'; at++)
			fputc(*at == '/' ? '.' : *at, out);
	} else if (primitive(*at)) {
		fputs(primitive(*at), out);
	} else {
		return NULL;
	}
	while (dimensions--)
		fputs("[]", out);
	return at + 1;
}

static bool write_signature(FILE *out, const char *at)
{
	bool first = true;

	if (*at++ != '(')
		return false;
	fputc('(', out);
	for (; at && *at && *at != ')'; first = false) {
		fputs(first ? "" : ", ", out);
		at = write_type(out, at);
	}
	if (!at || *at++ != ')')
		return false;
	fputs("): ", out);
	at = write_type(out, at);
	return at && !*at;
}

char *jvm_name__signature(const char *descriptor)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool whole;

	if (!out)
		return NULL;
	whole = write_signature(out, descriptor);
	if (fclose(out) || !whole) {
		free(text);
		text = strdup(descriptor);
	}
	return text;
}
