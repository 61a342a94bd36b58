// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

static void check_kinds(void)
{
	struct profile *profile = profile__new();
	char name[16];
	int i;

	is_int(profile->n_kinds, KIND_RUNTIME, "a new profile has the kinds without a runtime");
	is_int(profile__kind(profile, "kernel", ""), KIND_KERNEL, "kernel is there");
	is_int(profile__kind(profile, "python", "_[py]"), KIND_RUNTIME, "a runtime is added");
	is_int(profile__kind(profile, "ruby", "_[rb]"), KIND_RUNTIME + 1, "and another");
	is_int(profile__kind(profile, "python", "_[py]"), KIND_RUNTIME, "known at second sight");
	for (i = profile->n_kinds; i < KINDS_MAX; i++) {
		snprintf(name, sizeof(name), "kind%d", i);
		profile__kind(profile, name, "");
	}
	is_int(profile__kind(profile, "one too many", ""), -ENOSPC, "kinds are bounded");
	is_int(profile__kind(profile, "ruby", ""), KIND_RUNTIME + 1, "full, but known");
	profile__free(profile);
	profile__free(NULL);
}

static void check_frames(void)
{
	struct profile *profile = profile__new();
	uint32_t first, again, other = 77;

	profile__frame(profile, KIND_NATIVE, "f", "a.c", 1, &first);
	profile__frame(profile, KIND_NATIVE, "f", "a.c", 1, &again);
	is_int(again, first, "the same frame twice has one id");
	profile__frame(profile, KIND_INLINED, "f", "a.c", 1, &other);
	ok(other != first, "another kind is another frame");
	profile__frame(profile, KIND_NATIVE, "g", "a.c", 1, &other);
	ok(other != first, "another name is another frame");
	profile__frame(profile, KIND_NATIVE, "f", NULL, 1, &other);
	ok(other != first, "another file is another frame");
	profile__frame(profile, KIND_NATIVE, "f", "a.c", 2, &other);
	ok(other != first, "another line is another frame");
	is_int(profile->n_frames, 5, "five frames in all");
	other = 77;
	is_int(profile__frame(profile, 200, "f", NULL, 0, &other), -EINVAL, "no such kind");
	is_int(other, 77, "a failure leaves the result alone");
	profile__free(profile);
}

static void check_losses(void)
{
	struct profile *profile = profile__new();

	profile__add_loss(profile, "ring buffer full", 0);
	is_int(profile->n_losses, 0, "nothing lost, nothing listed");
	profile__add_loss(profile, "ring buffer full", 2);
	profile__add_loss(profile, "stacks cut", 5);
	profile__add_loss(profile, "ring buffer full", 3);
	is_int(profile->n_losses, 2, "losses of one name are added up");
	is_int(profile->losses[0].count, 5, "their count");
	profile__free(profile);
}

static void check_weights(void)
{
	struct profile *profile = profile__new();
	uint32_t frame;

	profile__frame(profile, KIND_NATIVE, "f", NULL, 0, &frame);
	profile__add(profile, NULL, 0, 3);
	is_int(profile->nodes[0].self, 3, "a stack without frames counts for the root");
	profile__add(profile, &frame, 1, UINT64_MAX - 1);
	profile__add(profile, &frame, 1, 7);
	ok(profile->nodes[1].self == UINT64_MAX, "a weight does not overflow");
	ok(profile->total == UINT64_MAX, "nor their sum");
	profile__free(profile);
}

/* Parts of a profile: while the thread ran, and while it did not run. */
static void check_parts(void)
{
	struct profile *profile = profile__new();
	struct profile_value waits = { .weight = 4, .waiting = 4 };
	struct profile_value both = { .weight = 9, .waiting = 2, .preempted = 3 };
	uint32_t frame;

	profile__frame(profile, KIND_NATIVE, "f", NULL, 0, &frame);
	profile__add_value(profile, &frame, 1, &waits, NULL);
	ok(!profile__mixes(profile), "all is of waiting");
	profile__add_value(profile, &frame, 1, &both, NULL);
	ok(profile__mixes(profile), "some is not");
	is_int(profile->nodes[1].self, 13, "weight");
	is_int(profile->nodes[1].waiting, 6, "waiting");
	is_int(profile->nodes[1].preempted, 3, "preempted");
	is_int(profile->waiting, 6, "waiting in all");
	is_int(profile->preempted, 3, "preempted in all");
	profile__free(profile);
	profile = profile__new();
	profile__add(profile, &frame, 0, 7);
	ok(!profile__mixes(profile), "all is of running");
	profile__free(profile);
}

/* Every stack of up to DEPTH frames (three distinct ones) has its own number in base 4. Counting by
 * number is the oracle for the tree. */
enum { DEPTH = 6, NUMBERS = 4096 };

static void check_tree(void)
{
	struct profile *profile = profile__new();
	uint32_t frames[3], stack[DEPTH], *number, n, i, k, wrong = 0, seen = 0, distinct = 0;
	uint64_t *want = calloc(NUMBERS, sizeof(*want)), sum = 0;

	for (i = 0; i < 3; i++)
		profile__frame(profile, KIND_NATIVE, (const char *[]) { "a", "b", "c" }[i], NULL, 0,
			       &frames[i]);
	srand(1);
	for (k = 0; k < 5000; k++) {
		uint32_t id = 0, weight = 1 + rand() % 9;

		n = 1 + rand() % DEPTH;
		for (i = 0; i < n; i++) {
			uint32_t choice = rand() % 3;

			stack[i] = frames[choice];
			id = id * 4 + choice + 1;
		}
		want[id] += weight;
		sum += weight;
		profile__add(profile, stack, n, weight);
	}
	number = calloc(profile->n_nodes, sizeof(*number));
	for (i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];

		wrong += node->parent >= i;
		number[i] = number[node->parent] * 4 + node->frame + 1;
		wrong += node->self != want[number[i]];
		seen += node->self != 0;
	}
	for (i = 0; i < NUMBERS; i++)
		distinct += want[i] != 0;
	is_int(wrong, 0, "each node has a smaller parent and the weight of its stack");
	is_int(seen, distinct, "each distinct stack has one node");
	is_int(profile->total, sum, "samples are the sum of the weights");
	free(number);
	free(want);
	profile__free(profile);
}

static void check_labels(void)
{
	static const struct {
		uint8_t kind;
		const char *file;
		uint32_t line;
		int annotate;
		const char *want;
	} cases[] = {
		{ KIND_KERNEL, NULL, 0, 0, "f" },
		{ KIND_KERNEL, NULL, 0, 1, "f_[k]" },
		{ KIND_NATIVE, "/src/a.c", 0, 0, "f" },
		{ KIND_NATIVE, "/src/a.c", 7, 0, "f (a.c:7)" },
		{ KIND_NATIVE, NULL, 7, 0, "f" },
		{ KIND_INLINED, "/src/a.c", 0, 1, "f_[i]" },
		{ KIND_INLINED, "a.c", 7, 1, "f (a.c:7)_[i]" },
		{ KIND_RUNTIME, "/srv/x.py", 0, 0, "f (x.py)" },
		{ KIND_RUNTIME, "/srv/x.py", 4294967295, 1, "f (x.py:4294967295)_[py]" },
		{ KIND_RUNTIME, "/srv/dir/", 0, 0, "f (/srv/dir/)" },
	};
	struct profile *profile = profile__new();
	char buf[64];
	uint32_t id;
	size_t i;

	profile__kind(profile, "python", "_[py]");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		profile__frame(profile, cases[i].kind, "f", cases[i].file, cases[i].line, &id);
		profile__label(profile, &profile->frames[id], cases[i].annotate, buf, sizeof(buf));
		is_str(buf, cases[i].want, "label %s", cases[i].want);
	}
	profile__label(profile, &profile->frames[id], 0, buf, 4);
	is_str(buf, "f (", "a label is cut to the buffer");
	profile__free(profile);
}

int main(void)
{
	check_kinds();
	check_frames();
	check_losses();
	check_weights();
	check_parts();
	check_tree();
	check_labels();
	return tap__done();
}
