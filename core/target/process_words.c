// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/process_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/target_view.h"

#define WORDS_BYTES (256 * 1024)

/* Words, each terminated by NUL. */
struct words {
	char *text; /* owned; NULL: none */
	size_t n;
};

/* Reads the file @name: "cmdline" or "environ". */
static struct words read_words(uint32_t pid, const char *name)
{
	const struct target_view *view = target_view__current();
	struct words words = { malloc(WORDS_BYTES), 0 };
	ssize_t n = words.text ? view->words(view, pid, name, words.text, WORDS_BYTES - 1) : 0;

	words.n = max_of(n, 0);
	if (words.text)
		words.text[words.n] = '\0';
	return words;
}

/* Returns the next word that begins with @prefix, from *@at on, and moves *@at past the word. */
static const char *next_word(const struct words *words, size_t *at, const char *prefix)
{
	while (*at < words->n) {
		const char *word = words->text + *at;

		*at += strlen(word) + 1;
		if (!strncmp(word, prefix, strlen(prefix)))
			return word;
	}
	return NULL;
}

static char without_underscore(char c)
{
	return c == '_' ? '-' : c;
}

static bool has_text(const char *word, const char *text)
{
	size_t len = strlen(text), i;

	for (; *word; word++) {
		for (i = 0; i < len && without_underscore(word[i]) == without_underscore(text[i]);
		     i++)
			;
		if (i == len)
			return true;
	}
	return false;
}

static bool is_among(uint32_t pid, const char *name, const char *prefix, const char *text)
{
	struct words words = read_words(pid, name);
	const char *word;
	bool found = false;
	size_t at = 0;

	while (!found && (word = next_word(&words, &at, prefix)))
		found = has_text(word, text);
	free(words.text);
	return found;
}

bool process_words__have(uint32_t pid, const char *variable, const char *text)
{
	return is_among(pid, "cmdline", "", text) || is_among(pid, "environ", variable, text);
}

int process_words__variable(uint32_t pid, const char *variable, char *buf, size_t size)
{
	struct words words = read_words(pid, "environ");
	size_t at = 0;
	const char *word = next_word(&words, &at, variable);
	int ret = word ? 0 : -ENOENT;

	if (word && (size_t)snprintf(buf, size, "%s", word + strlen(variable)) >= size)
		ret = -ENAMETOOLONG;
	free(words.text);
	return ret;
}
