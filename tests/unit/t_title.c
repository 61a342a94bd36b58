// SPDX-License-Identifier: GPL-2.0-or-later
/* Titles of processes, as real programs set them. */
#include "core/base/title.h"

#include <stddef.h>

#include "core/base/util.h"
#include "tests/tap.h"

static void test_processes(void)
{
	static const struct {
		const char *name, *command, *want;
	} cases[] = {
		{ "postgres", "postgres: 15/main: walwriter ", "postgres: 15/main: walwriter" },
		{ "gunicorn: worke", "gunicorn: worker [app:app]", "gunicorn: worker [app:app]" },
		{ "nginx", "nginx: worker process", "nginx: worker process" },
		{ "php-fpm8.2", "php-fpm: pool www     ", "php-fpm: pool www" },
		{ "job 17 of daily", "job 17 of daily import", "job 17 of daily import" },
		{ "redis-server", "/usr/bin/redis-server 127.0.0.1:6379", "redis-server" },
		{ "python3", "python3 app.py --bind a: b", "python3" },
		{ "c", "/c: b", "c" },
		{ "x", ": b", "x" },
		{ "app", "app:", "app" },
		{ "app", "", "app" },
		{ "app", NULL, "app" },
	};
	char buf[TITLE_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(title__of(cases[i].name, cases[i].command, buf), cases[i].want, "%s",
		       cases[i].want);
}

static void test_threads(void)
{
	const char *title = "gunicorn: worker [app:app]";
	char buf[TITLE_BYTES];

	is_str(title__of_thread("gunicorn: worke", "gunicorn: worke", title, buf), title,
	       "the first thread has the title of its process");
	is_str(title__of_thread("main loop", "gunicorn: worke", title, buf), "main loop",
	       "unless it has a name of its own");
	is_str(title__of_thread("", "gunicorn: worke", title, buf), "", "or its name is unknown");
}

int main(void)
{
	test_processes();
	test_threads();
	return tap__done();
}
