// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that --source adds to a page, and the number of their lines. */
#include "core/cli/source_text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/tap.h"
#include "tests/unit/workdir.h"

static void add(struct profile *profile, const char *name, uint32_t line, uint64_t weight)
{
	char file[200];
	uint32_t frame;

	snprintf(file, sizeof(file), "%s%s%s", *name == '/' || !*name ? "" : workdir,
		 *name == '/' || !*name ? "" : "/", name);
	if (profile__frame(profile, KIND_NATIVE, "f", file, line, &frame) ||
	    profile__add(profile, &frame, 1, weight))
		printf("Bail out! out of memory\n");
}

/* Returns "NAME:FIRST:LINES" of each file. */
static const char *read_all(const struct profile *profile)
{
	static char text[1000];
	struct source_texts texts;
	size_t len = 0;

	text[0] = '\0';
	is_int(source_texts__read(&texts, profile, NULL, 0), 0, "read");
	for (size_t i = 0; i < texts.n; i++) {
		unsigned lines = 0;

		for (const char *at = texts.rows[i].text; *at; at++)
			lines += *at == '\n';
		len += snprintf(text + len, sizeof(text) - len, "%s%s:%u:%u", i ? " " : "",
				strrchr(texts.rows[i].file, '/') + 1, texts.rows[i].first, lines);
	}
	source_texts__done(&texts);
	return text;
}

/* Returns whether the text of @name is marked as younger than a process that began at @begun_s. */
static int is_younger(const char *name, double begun_s)
{
	struct profile *profile = profile__new();
	struct source_texts texts;
	int younger = -1;

	add(profile, name, 1, 10);
	profile->begun_s = begun_s;
	if (!source_texts__read(&texts, profile, NULL, 0) && texts.n == 1)
		younger = texts.rows[0].is_younger;
	source_texts__done(&texts);
	profile__free(profile);
	return younger;
}

static void test_younger(void)
{
	workdir__run("touch -d @1700000000 a.c");
	is_int(is_younger("a.c", 1700000100), 0, "a text that is older than the process");
	is_int(is_younger("a.c", 1699999900), 1, "a text that was changed since its beginning");
	is_int(is_younger("a.c", 0), 0, "a process of which it is not known when it began");
}

int main(void)
{
	static const char *const refused[] = { "none.c",  "no_suffix",	 ".ssh/key.txt",
					       "pipe.c",  "dir.c",	 "nul.c",
					       "empty.c", "/dev/zero.c", "/dev/zero",
					       "huge.c",  "../x.c",	 "" };
	struct profile *profile = profile__new();

	workdir__make();
	workdir__run("seq 1 100 > a.c; seq 1 1000 > b.py; touch no_suffix empty.c");
	workdir__run("mkdir .ssh dir.c; echo secret > .ssh/key.txt; mkfifo pipe.c");
	workdir__run("printf 'a\\0b' > nul.c; truncate -s 5M huge.c; ln -s b.py link.py");
	workdir__run("yes 0123456789 | head -n 100000 > long.c");
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		add(profile, refused[i], 1, 10);
	is_str(read_all(profile), "", "what is no source");
	add(profile, "a.c", 7, 1);
	add(profile, "a.c", 9, 1);
	add(profile, "b.py", 500, 2);
	add(profile, "b.py", 600, 2);
	add(profile, "link.py", 990, 1);
	is_str(read_all(profile), "b.py:460:181 a.c:1:49 link.py:950:51",
	       "lines and those around them, by weight");
	add(profile, "long.c", 50, 100);
	add(profile, "long.c", 90000, 100);
	is_str(read_all(profile), "long.c:10:11915 b.py:460:181 a.c:1:49 link.py:950:51",
	       "not more than a page has room for");
	workdir__run("chmod 600 b.py");
	is_str(read_all(profile),
	       geteuid() ? "long.c:10:11915 b.py:460:181 a.c:1:49 link.py:950:51"
			 : "long.c:10:11915 a.c:1:49",
	       "for root only what everybody may read");
	profile__free(profile);
	test_younger();
	return tap__done();
}
