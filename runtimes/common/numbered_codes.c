// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/numbered_codes.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/shared.h"
#include "core/base/util.h"

void *numbered_codes__find(const struct numbered_codes *codes, uint32_t number)
{
	uint32_t place = u64map__get(&codes->places, number);

	return place ? codes->list[place - 1].code : NULL;
}

void *numbered_codes__of_key(const struct numbered_codes *codes, uint64_t key)
{
	return numbered_codes__find(codes, FRAME_KEY_CODE(key));
}

int numbered_codes__put(struct numbered_codes *codes, uint32_t number, void *code,
			void (*free_code)(void *code))
{
	uint32_t place = u64map__get(&codes->places, number);

	if (place) {
		free_code(codes->list[place - 1].code);
		codes->list[place - 1].code = code;
		return 0;
	}
	if (array__reserve(&codes->list, &codes->cap, codes->n + 1, sizeof(*codes->list)) ||
	    u64map__put(&codes->places, number, codes->n + 1)) {
		free_code(code);
		return -ENOMEM;
	}
	codes->list[codes->n++] = (struct numbered_code_object) { .code = code, .number = number };
	return 0;
}

void numbered_codes__forget(struct numbered_codes *codes, const struct u64map *listed,
			    void (*free_code)(void *code))
{
	size_t n = 0;

	for (size_t i = 0; i < codes->n; i++) {
		struct numbered_code_object one = codes->list[i];
		bool missing = !u64map__get(listed, one.number);

		if (missing && one.missed) {
			free_code(one.code);
			continue;
		}
		one.missed = missing;
		codes->list[n++] = one;
	}
	if (n == codes->n)
		return;
	codes->n = n;
	u64map__clear(&codes->places);
	for (size_t i = 0; i < n; i++) /* there is room, as there were more */
		u64map__put(&codes->places, codes->list[i].number, i + 1);
}

void numbered_codes__done(struct numbered_codes *codes, void (*free_code)(void *code))
{
	for (size_t i = 0; i < codes->n; i++)
		free_code(codes->list[i].code);
	free(codes->list);
	u64map__done(&codes->places);
	*codes = (struct numbered_codes) {};
}
