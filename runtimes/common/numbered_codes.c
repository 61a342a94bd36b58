// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/numbered_codes.h"

#include <errno.h>
#include <stdlib.h>

#include "bpf/shared.h"
#include "core/base/util.h"

void *numbered_codes__find(const struct numbered_codes *codes, uint32_t number)
{
	uint32_t place = u64map__get(&codes->places, number);

	return place ? codes->list[place - 1] : NULL;
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
		free_code(codes->list[place - 1]);
		codes->list[place - 1] = code;
		return 0;
	}
	if (array__reserve(&codes->list, &codes->cap, codes->n + 1, sizeof(*codes->list)) ||
	    u64map__put(&codes->places, number, codes->n + 1)) {
		free_code(code);
		return -ENOMEM;
	}
	codes->list[codes->n++] = code;
	return 0;
}

void numbered_codes__done(struct numbered_codes *codes, void (*free_code)(void *code))
{
	for (size_t i = 0; i < codes->n; i++)
		free_code(codes->list[i]);
	free(codes->list);
	u64map__done(&codes->places);
	*codes = (struct numbered_codes) {};
}
