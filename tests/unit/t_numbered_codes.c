// SPDX-License-Identifier: GPL-2.0-or-later
/* Codes by their numbers: found while samples may refer to them, and no longer. */
#include "runtimes/common/numbered_codes.h"

#include "bpf/shared.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define CODES 3000

static int freed[CODES + 1], values[2 * CODES + 1];

static void free_value(void *code)
{
	freed[*(int *)code]++;
}

static int *value(int i, int number)
{
	values[i] = number;
	return &values[i];
}

static int count_freed(void)
{
	int n = 0;

	for (int i = 0; i <= CODES; i++)
		n += freed[i];
	return n;
}

/* First every third code is missing, then every even one except 6. */
static void test_forget(struct numbered_codes *codes)
{
	struct u64map listed = {};
	int wrong = 0;

	for (int i = 1; i <= CODES; i++)
		if (i % 3)
			u64map__put(&listed, i, 1);
	numbered_codes__forget(codes, &listed, free_value);
	is_int(count_freed(), 0, "what is missed once stays: a sample of it may be on its way");
	u64map__clear(&listed);
	for (int i = 1; i <= CODES; i++)
		if (i % 2 || i == 6)
			u64map__put(&listed, i, 1);
	numbered_codes__forget(codes, &listed, free_value);
	for (int i = 1; i <= CODES; i++) {
		const int *found = numbered_codes__find(codes, i);
		bool removed = i % 3 == 0 && i % 2 == 0 && i != 6;

		wrong += removed ? found || freed[i] != 1 : !found || *found != i || freed[i];
	}
	is_int(wrong, 0, "what is missed twice in a row is freed, everything else is there");
	is_int(codes->n, CODES - (CODES / 6 - 1), "... and no more");
	numbered_codes__forget(codes, &listed, free_value);
	ok(!numbered_codes__find(codes, 2) && numbered_codes__find(codes, 6) &&
		   numbered_codes__find(codes, 9),
	   "missed again, and known again");
	u64map__done(&listed);
}

int main(void)
{
	struct numbered_codes codes = {};
	int wrong = 0;

	for (int i = 1; i <= CODES; i++)
		wrong += numbered_codes__put(&codes, i, value(i, i), free_value) != 0;
	for (int i = 1; i <= CODES; i++) {
		const int *found = numbered_codes__of_key(&codes, FRAME_KEY(i, 77));

		wrong += !found || *found != i;
	}
	is_int(wrong, 0, "each is found by its number");
	ok(!numbered_codes__find(&codes, 0) && !numbered_codes__find(&codes, CODES + 1),
	   "no other");
	ok(!numbered_codes__put(&codes, 5, value(CODES + 5, 5), free_value) && freed[5] == 1 &&
		   numbered_codes__find(&codes, 5) == &values[CODES + 5],
	   "a second one takes the place of the first");
	freed[5] = 0;
	test_forget(&codes);
	numbered_codes__done(&codes, free_value);
	wrong = 0;
	for (int i = 1; i <= CODES; i++)
		wrong += freed[i] != 1;
	is_int(wrong, 0, "in the end each was freed once");
	numbered_codes__done(&codes, free_value);
	is_int(count_freed(), CODES, "... also if that is said twice");
	return tap__done();
}
