// SPDX-License-Identifier: GPL-2.0-or-later
/* The user's own code, functions without a name, lines of rows, and the parts of paths that
 * distinguish files. Tested on profiles made here, with the rules of all runtimes. */
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/out/out_groups.h"
#include "core/out/out_rows.h"
#include "core/profile/frames.h"
#include "core/profile/function_rules.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

static const struct function_rules *rules[64];

static struct profile *new_profile(void)
{
	struct profile *profile = profile__new();
	size_t n = 0;

	for (size_t i = 0; runtimes[i]; i++)
		if (runtimes[i]->function_rules)
			rules[n++] = runtimes[i]->function_rules;
	profile->rules = rules;
	return profile;
}

static uint32_t frame(struct profile *profile, const char *kind, const char *name, const char *file,
		      uint32_t line)
{
	int number = kind ? profile__kind(profile, kind, "_[x]") : KIND_NATIVE;
	uint32_t ret;

	if (number < 0 || profile__frame(profile, number, name, file, line, &ret))
		exit(1);
	return ret;
}

static void check_rules(void)
{
	struct profile *profile = new_profile();
	static const struct {
		const char *kind, *name, *file;
		bool own;
	} cases[] = {
		{ "python", "order", "/srv/app/views.py", true },
		{ "python", "run", "/usr/lib/python3.11/threading.py", false },
		{ "python", "route", "/srv/venv/lib/python3.12/site-packages/flask/app.py", false },
		{ "python", "import_", "<frozen importlib._bootstrap>", false },
		{ "ruby", "Cart#add", "/srv/shop/cart.rb", true },
		{ "ruby", "Puma::Server#run",
		  "/var/lib/gems/3.1.0/gems/puma-5.6/lib/puma/server.rb", false },
		{ "ruby", "Array#each", "", false },
		{ "jvm", "shop.Cart.add", "Cart.java", true },
		{ "jvm", "java.util.HashMap.put", "HashMap.java", false },
		{ "node", "(anonymous)", "/srv/web/server.js", true },
		{ "node", "handle", "/srv/web/node_modules/express/lib/router/index.js", false },
		{ "node", "onread", "node:internal/stream_base_commons", false },
		{ "php", "Cart->add", "/srv/www/src/Cart.php", true },
		{ "php", "Kernel->handle", "/srv/www/vendor/symfony/Kernel.php", false },
		{ "php", "array_map", "", false },
		{ "perl", "Shop::add", "/srv/shop/Shop.pm", true },
		{ "perl", "JSON::PP::encode", "/usr/share/perl/5.36/JSON/PP.pm", false },
		{ "go", "main.handle", "/home/me/shop/main.go", true },
		{ "go", "net/http.(*conn).serve", "/usr/lib/go/src/net/http/server.go", false },
		{ "go", "runtime.mallocgc", "runtime/malloc.go", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t number = frame(profile, cases[i].kind, cases[i].name, cases[i].file, 1);

		ok(function_rules__is_own(profile, &profile->frames[number]) == cases[i].own,
		   "%s: %s of %s is %s", cases[i].kind, cases[i].name, cases[i].file,
		   cases[i].own ? "own code" : "of a library");
	}
	profile__free(profile);
}

static const struct out_row *find(const struct out_list *list, const char *label)
{
	for (size_t i = 0; i < list->n; i++) {
		char *text = out_row__label(&list->of, &list->rows[i], false);
		bool same = text && !strcmp(text, label);

		free(text);
		if (same)
			return &list->rows[i];
	}
	return NULL;
}

static void check_lines(void)
{
	struct profile *profile = new_profile();
	uint32_t hot = frame(profile, "node", "items", "/srv/a/app.js", 27);
	uint32_t cold = frame(profile, "node", "items", "/srv/a/app.js", 30);
	uint32_t one = frame(profile, "node", "(anonymous)", "/srv/b/app.js", 8);
	uint32_t two = frame(profile, "node", "(anonymous)", "/srv/b/app.js", 12);
	const struct output_opts opts = { .hottest = true }, by_line = { .lines = true };
	struct out_list list;

	ok(!profile__add(profile, (uint32_t[]) { one, hot }, 2, 87) &&
		   !profile__add(profile, (uint32_t[]) { two, cold }, 2, 13) &&
		   !profile__add(profile, &two, 1, 5) && !profile__shorten_files(profile),
	   "a profile");
	ok(!out_list__init(&list, profile, &opts), "its rows");
	ok(list.n == 3, "a row of the named function, two of the nameless ones: %zu", list.n);
	ok(find(&list, "items (a/app.js:27, 87 %)") != NULL, "the hottest line and its share");
	ok(find(&list, "(anonymous) (b/app.js:8)") && find(&list, "(anonymous) (b/app.js:12)"),
	   "nameless functions have their lines");
	out_list__done(&list);
	ok(!out_list__init(&list, profile, &by_line), "rows by line");
	ok(list.n == 4 && find(&list, "items (a/app.js:30)"), "--lines: lines are rows: %zu",
	   list.n);
	out_list__done(&list);
	profile__free(profile);
}

/* The functions of a group show the same ends of paths as those of the whole profile. */
static void check_group(void)
{
	struct profile *profile = new_profile();
	const struct output_opts opts = { .lines = true };
	struct out_group group = {};
	struct out_list list = {};
	int kind = profile__label_kind(profile, "process");
	uint32_t process, one = frame(profile, "node", "items", "/srv/a/app.js", 27);
	uint32_t other = frame(profile, "node", "items", "/srv/b/app.js", 8);

	ok(!profile__frame(profile, kind, "worker", NULL, 0, &process) &&
		   !profile__add(profile, (uint32_t[]) { process, one }, 2, 7) &&
		   !profile__add(profile, (uint32_t[]) { process, other }, 2, 3) &&
		   !profile__shorten_files(profile),
	   "a profile by process");
	profile->group_kind = kind;
	ok(!out_list__init(&list, profile, &opts) && out_groups__count(&list) == 1 &&
		   !out_group__init(&group, &list, &list.rows[0], &opts, 0),
	   "its group");
	ok(group.list.n == 2 && find(&group.list, "items (a/app.js:27)"),
	   "two files of the same name");
	out_group__done(&group);
	out_list__done(&list);
	profile__free(profile);
}

/* A recording lists the kinds of all runtimes, also of those without frames. */
static void check_tasks(void)
{
	struct profile *profile = new_profile();

	profile__kind(profile, "go", "_[g]");
	frame(profile, "python", "serve", "/srv/app.py", 1);
	ok(!function_rules__tasks(profile), "a profile without a frame of Go has no goroutines");
	frame(profile, "go", "main.main", "/srv/main.go", 1);
	is_str(function_rules__tasks(profile) ?: "", "goroutines", "one with such a frame may");
	profile__free(profile);
}

/* Returns the child of @parent for the function @name; 0: no such child. */
static uint32_t node_of(const struct profile *profile, uint32_t parent, const char *name)
{
	for (uint32_t i = 1; i < profile->n_nodes; i++)
		if (profile->nodes[i].parent == parent &&
		    !strcmp(strtab__get(profile->strings,
					profile->frames[profile->nodes[i].frame].name),
			    name))
			return i;
	return 0;
}

static uint64_t weight_at(const struct profile *profile, uint32_t parent, const char *name)
{
	uint32_t node = node_of(profile, parent, name);

	return node ? profile->nodes[node].self : 0;
}

static void check_app(void)
{
	struct profile *profile = new_profile(), *app = NULL;
	uint32_t serve =
		frame(profile, "python", "serve", "/usr/lib/python3/dist-packages/g.py", 1);
	uint32_t order = frame(profile, "python", "order", "/srv/app.py", 2);
	uint32_t copy = frame(profile, NULL, "strlen", NULL, 0);
	uint32_t dumps =
		frame(profile, "python", "dumps", "/usr/lib/python3.11/json/__init__.py", 3);

	ok(!profile__add(profile, (uint32_t[]) { serve, order, dumps }, 3, 10) &&
		   !profile__add(profile, (uint32_t[]) { serve, dumps }, 2, 4) &&
		   !profile__add(profile, &copy, 1, 3) && !frames__view(profile, FRAMES_APP, &app),
	   "a view of own code");
	if (!app)
		return;
	ok(app->total == 17, "it loses no weight");
	ok(weight_at(app, 0, "order") == 10,
	   "own code is alone in its stack, with the weight of what it calls");
	ok(weight_at(app, 0, "[without own code]") == 4, "a stack without own code is one frame");
	ok(weight_at(app, 0, "strlen") == 3, "a stack without a runtime keeps its frames");
	profile__free(app);
	profile__free(profile);
}

static void check_no_app(void)
{
	struct profile *profile = new_profile(), *app = NULL;
	uint32_t serve =
		frame(profile, "python", "serve", "/usr/lib/python3/dist-packages/g.py", 1);
	uint32_t dumps =
		frame(profile, "python", "dumps", "/usr/lib/python3.11/json/__init__.py", 3);

	ok(!profile__add(profile, (uint32_t[]) { serve, dumps }, 2, 4) &&
		   !frames__view(profile, FRAMES_APP, &app),
	   "a view of own code, where no function is own code");
	if (!app)
		return;
	ok(weight_at(app, node_of(app, 0, "serve"), "dumps") == 4, "it shows all functions");
	profile__free(app);
	profile__free(profile);
}

int main(void)
{
	check_rules();
	check_lines();
	check_group();
	check_tasks();
	check_app();
	check_no_app();
	return tap__done();
}
