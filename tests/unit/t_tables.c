// SPDX-License-Identifier: GPL-2.0-or-later
/* The small containers: u64map, strtab, array__reserve, err. */
#include <errno.h>
#include <string.h>

#include "core/base/err.h"
#include "core/base/strtab.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define KEYS 10000

static void test_u64map(void)
{
	struct u64map map = {};
	unsigned wrong = 0;
	uint64_t i;

	is_int(u64map__get(&map, 1), 0, "an empty map has nothing");
	for (i = 0; i < KEYS; i++) /* dense, spread, and the key 0 */
		wrong += u64map__put(&map, i << (i & 1 ? 40 : 0), i + 1) != 0;
	for (i = 0; i < KEYS; i++)
		wrong += u64map__get(&map, i << (i & 1 ? 40 : 0)) != i + 1;
	is_int(wrong, 0, "%d keys are found again", KEYS);
	is_int(u64map__get(&map, UINT64_MAX), 0, "another is not");
	u64map__put(&map, 0, 77);
	is_int(u64map__get(&map, 0), 77, "a value is replaced");
	is_int(map.n, KEYS, "and not counted twice");
	u64map__done(&map);
	is_int(u64map__get(&map, 0), 0, "done leaves an empty map");
	u64map__done(&map);
}

static void test_strtab(void)
{
	struct strtab *strtab = strtab__new();
	uint32_t empty = 9, one = 0, again = 0, other = 0;

	strtab__intern(strtab, "", &empty);
	strtab__intern(strtab, "one", &one);
	strtab__intern(strtab, "on", &other);
	strtab__intern(strtab, "one", &again);
	is_int(empty, 0, "the empty string is 0");
	is_int(again, one, "equal strings have one id");
	ok(other != one, "a prefix is another string");
	is_str(strtab__get(strtab, one), "one", "an id yields its text");
	is_str(strtab__get(strtab, 12345), "", "an unknown id yields nothing");
	is_int(strtab__count(strtab), 3, "three strings");
	strtab__free(strtab);
	strtab__free(NULL);
}

static void test_reserve(void)
{
	uint16_t *array = NULL;
	size_t cap = 0;

	is_int(array__reserve(&array, &cap, 100, sizeof(*array)), 0, "an array grows");
	ok(cap >= 100, "far enough");
	array[99] = 4;
	is_int(array__reserve(&array, &cap, 5000, sizeof(*array)), 0, "and again");
	is_int(array[99], 4, "keeping what it had");
	is_int(array__reserve(&array, &cap, SIZE_MAX / 2, sizeof(*array)), -ENOMEM, "not for ever");
	is_int(array[99], 4, "and stays as it was");
	free(array);
}

static void test_err(void)
{
	char much[2000];
	struct err err = {};

	is_int(err__set(&err, -EINVAL, "file %d", 3), -EINVAL, "the code is propagated");
	err__prefix(&err, -EINVAL, "reading %s", "it");
	is_str(err.text, "reading it: file 3", "a prefix goes in front");
	is_int(err__set(NULL, -EIO, "nobody listens"), -EIO, "no err is fine");
	memset(much, 'x', sizeof(much) - 1);
	much[sizeof(much) - 1] = '\0';
	err__set(&err, -EIO, "%s", much);
	err__prefix(&err, -EIO, "%s", "front");
	is_int(strlen(err.text), sizeof(err.text) - 1, "too long a text is cut");
	ok(!strncmp(err.text, "front: xxx", 10), "at its end");
}

int main(void)
{
	test_u64map();
	test_strtab();
	test_reserve();
	test_err();
	return tap__done();
}
