// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of functions and of threads, with exact sums. */
#include "core/out/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

static uint32_t code(struct profile *profile, uint8_t kind, const char *name, const char *library)
{
	uint32_t frame = 0;

	profile__code(profile, kind, name, kind == KIND_RUNTIME ? "/x/a.py" : NULL, 0, library,
		      &frame);
	return frame;
}

/* Returns "label script/self/total" of each row. */
static const char *text_of(const struct rows *rows)
{
	static char text[1000];
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < rows->n; i++)
		len += snprintf(text + len, sizeof(text) - len,
				"%s%s %" PRIu64 "/%" PRIu64 "/%" PRIu64, i ? ", " : "",
				rows->list[i].label, rows->list[i].script, rows->list[i].self,
				rows->list[i].total);
	return text;
}

static void check(struct rows *rows, enum output_sort sort, const char *want, const char *name)
{
	rows__sort(rows, sort);
	is_str(text_of(rows), want, "%s", name);
}

static void test_functions(void)
{
	struct profile *profile = profile__new();
	uint32_t outer, f, native, other;
	struct rows rows;

	profile__kind(profile, "made", "_[m]");
	outer = code(profile, KIND_NATIVE, "main", "app");
	f = code(profile, KIND_RUNTIME, "f\033", NULL);
	native = code(profile, KIND_NATIVE, "sort", "libx");
	other = code(profile, KIND_NATIVE, "sort", "liby");
	profile__add(profile, (uint32_t[]) { outer, f, f, native }, 4, 5);
	profile__add(profile, (uint32_t[]) { outer, f, other }, 3, 2);
	profile__add(profile, (uint32_t[]) { outer, f }, 2, 1);
	profile__add(profile, (uint32_t[]) { outer, native }, 2, 4);
	profile__add(profile, NULL, 0, 3);
	if (!ok(!rows__functions(profile, &rows), "rows"))
		return;
	ok(rows.scripts, "script and self differ");
	check(&rows, OUTPUT_SORT_DEFAULT,
	      "f? (a.py) 8/1/8, sort 4/11/11, [no stack] 3/3/3, main 0/0/12", "by script");
	check(&rows, OUTPUT_SORT_SELF,
	      "sort 4/11/11, [no stack] 3/3/3, f? (a.py) 8/1/8, main 0/0/12", "by self");
	check(&rows, OUTPUT_SORT_TOTAL,
	      "main 0/0/12, sort 4/11/11, f? (a.py) 8/1/8, [no stack] 3/3/3", "by total");
	check(&rows, OUTPUT_SORT_NAME,
	      "[no stack] 3/3/3, f? (a.py) 8/1/8, main 0/0/12, sort 4/11/11", "by name");
	rows__done(&rows);
	rows__done(&rows);
	profile__free(profile);
}

static void add_share(struct profile *profile, uint32_t thread, uint64_t weight)
{
	const struct profile_share share = { .thread = thread, .value = { .weight = weight } };

	profile__add_share(profile, &share);
}

static void test_threads(void)
{
	struct profile *profile = profile__new();
	uint32_t threads[4];
	struct rows rows;

	profile__add_thread(profile,
			    &(struct profile_thread_of) {
				    .pid = 10, .tid = 10, .process = "app", .name = "app" },
			    &threads[0]);
	profile__add_thread(profile,
			    &(struct profile_thread_of) {
				    .pid = 10, .tid = 11, .process = "app", .name = "before" },
			    &threads[1]);
	profile__add_thread(profile,
			    &(struct profile_thread_of) {
				    .pid = 10, .tid = 11, .process = "app", .name = "after\n" },
			    &threads[2]);
	profile__add_thread(
		profile,
		&(struct profile_thread_of) { .pid = 12, .tid = 12, .process = "tool", .name = "" },
		&threads[3]);
	add_share(profile, threads[1], 2);
	add_share(profile, threads[3], 4);
	add_share(profile, threads[2], 3);
	if (!ok(!rows__threads(profile, &rows), "rows"))
		return;
	check(&rows, OUTPUT_SORT_DEFAULT, "after? (app) 5/5/5, ? (tool) 4/4/4",
	      "one that was renamed is one; one without samples is none");
	is_int(rows.list[0].tid, 11, "its tid");
	is_int(rows.list[1].pid, 12, "the pid");
	rows__done(&rows);
	profile__free(profile);
}

int main(void)
{
	test_functions();
	test_threads();
	return tap__done();
}
