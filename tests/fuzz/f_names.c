// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/elf/demangle.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/common/v8_label.h"
#include "runtimes/jvm/jvm_names.h"
#include "tests/fuzz/fuzz.h"

/* Checks that an escaped text has no characters that control a terminal. */
static void check_printable(char *text)
{
	size_t len = strlen(text);

	escape__printable(text);
	if (strlen(text) > len)
		abort();
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			abort();
	}
}

static bool escapes(const char *text)
{
	char *buf = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&buf, &size);
	bool escaped;

	if (!out)
		fuzz__die("out of memory");
	escape__markup(out, text);
	escape__json(out, text);
	fclose(out);
	if (strpbrk(buf, "<>"))
		abort();
	escaped = strstr(buf, "&lt;") && strstr(buf, "\\u003c");
	free(buf);
	return escaped;
}

static bool demangles(const char *text)
{
	char *name = demangle(text);
	bool changed;

	if (!name)
		return false;
	changed = strcmp(name, text) != 0;
	check_printable(name);
	free(name);
	return changed;
}

static bool labels(const char *text)
{
	struct runtime_label label = {};
	char buf[256];

	v8_label__make(text, buf, sizeof(buf), &label);
	if (!label.symbol.function)
		abort();
	return label.symbol.file && strlen(label.symbol.file) && label.symbol.line;
}

static bool reads_signature(const char *text)
{
	char *signature = jvm_name__signature(text);
	bool read;

	if (!signature)
		fuzz__die("out of memory");
	read = strcmp(signature, text) != 0;
	free(signature);
	return read;
}

/* Decodes texts of the target's memory, with one, two or four bytes per character. */
static bool decodes(const char *data, size_t size)
{
	static const unsigned int kinds[] = { 1, 2, 4, CODE_OBJECT_TEXT_UTF8 };
	bool decoded = false;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		size_t room = min_of(size, (size_t)CODE_OBJECT_TEXT_BYTES);
		size_t len = kinds[i] == CODE_OBJECT_TEXT_UTF8 ? size : size / kinds[i];
		char *text = code_object_text__dup(data, room, kinds[i], len);

		if (!text)
			fuzz__die("out of memory");
		decoded |= kinds[i] == 2 && !strcmp(text, "n\xc3\xa4me");
		check_printable(text);
		free(text);
	}
	return decoded;
}

/* Reads names as symbol tables, perf maps and interpreters have them. */
bool target__run(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	bool any;

	if (!text)
		return false;
	memcpy(text, data, size);
	text[size] = '\0';
	any = decodes((const char *)data, size);
	any |= labels(text);
	any |= demangles(text);
	any |= escapes(text);
	any |= reads_signature(text);
	free(text);
	return any;
}

void target__seeds(void)
{
	static const uint16_t wide[] = { 'n', 0xe4, 'm', 'e' };

	fuzz__seed(wide, 8);
	fuzz__seed_text("_ZN2ns1SIiE1fINS_1TEEEvRKT_.part.0");
	fuzz__seed_text("_ZZNSt6vectorIiSaIiEE9push_backEOiENKUlvE_clEv");
	fuzz__seed_text("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE");
	fuzz__seed_text("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate");
	fuzz__seed_text("JS:*leaf file:///srv/a%20b.js:1:14");
	fuzz__seed_text("LazyCompile:~get size /srv/m.mjs:7:3");
	fuzz__seed_text("(I[[Ljava/lang/String;J)V");
	fuzz__seed_text("<a href='x'>\x1b[31m&\xe2\x80\xae\xff</a>");
}
