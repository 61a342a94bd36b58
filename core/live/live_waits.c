// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/live/live_waits.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"

#define WAITS_MAX (1U << 20)

static void list_done(struct live_waits_list *list)
{
	free(list->list);
	intern__done(&list->index);
	*list = (struct live_waits_list) {};
	intern__init(&list->index, WAITS_MAX);
}

void live_waits__init(struct live_waits *waits)
{
	*waits = (struct live_waits) {};
	live_waits__done(waits);
}

void live_waits__done(struct live_waits *waits)
{
	list_done(&waits->before);
	list_done(&waits->now);
}

void live_waits__advance(struct live_waits *waits)
{
	list_done(&waits->before);
	waits->before = waits->now;
	waits->now = (struct live_waits_list) {};
	list_done(&waits->now);
}

int live_waits__add(struct live_waits *waits, uint32_t tid, const struct sink_sample *sample)
{
	struct live_waits_list *now = &waits->now;
	uint32_t *place = intern__at(&now->index, tid, sample->time_ns - sample->value);

	if (!place || now->n == WAITS_MAX ||
	    array__reserve(&now->list, &now->cap, now->n + 1, sizeof(*now->list)))
		return -ENOMEM;
	now->list[now->n++] = *sample;
	*place = now->n;
	return 0;
}

const struct sink_sample *live_waits__find(const struct live_waits *waits, uint32_t tid,
					   uint64_t since_ns)
{
	uint32_t place = intern__get(&waits->before.index, tid, since_ns);

	return place ? &waits->before.list[place - 1] : NULL;
}
