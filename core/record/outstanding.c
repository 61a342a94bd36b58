// SPDX-License-Identifier: GPL-2.0-or-later
/* Allocations that are not freed when the recording ends. Their samples wait for the end
 * (core/capture/pending_values.h), and the kernel half has a map of live allocations. */
#include "core/record/parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/outstanding.h"
#include "core/base/util.h"

/* Stored ends of processes. If more processes end, their allocations get the age that they would
 * have by now. */
#define ENDS_MAX (1U << 20)

struct live_alloc {
	struct live_alloc_key key;
	struct live_alloc_rec rec;
};

bool session__has_outstanding(const struct session *session)
{
	uint32_t number = event_list__of_slot(&session->opts.events, EVENT_ALLOC);

	return number && session->opts.events.list[number - 1].kind->outstanding;
}

int session__note_end(struct session *session, const void *data, size_t size)
{
	const struct rec_task *task = data;
	const struct rec_program *exec = data;
	struct session_end_of end;

	if (size >= sizeof(*task) && task->type == REC_EXIT)
		end = (struct session_end_of) { task->tgid, task->time_ns };
	else if (size >= sizeof(*exec) && exec->type == REC_EXEC)
		end = (struct session_end_of) { exec->tgid, exec->time_ns };
	else
		return 0;
	if (session->outstanding.n == ENDS_MAX)
		return 0;
	if (array__reserve(&session->outstanding.ends, &session->outstanding.cap,
			   session->outstanding.n + 1, sizeof(*session->outstanding.ends)))
		return -ENOMEM;
	session->outstanding.ends[session->outstanding.n++] = end;
	return 0;
}

static int compare_ends(const void *a, const void *b)
{
	const struct session_end_of *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Returns the time when the process that made the allocation ended or executed another program;
 * else @end_ns. */
static uint64_t end_of(const struct session *session, const struct live_alloc *live_alloc,
		       uint64_t end_ns)
{
	size_t from = 0, to = session->outstanding.n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;
		const struct session_end_of sought = { live_alloc->key.tgid,
						       live_alloc->rec.time_ns };

		if (compare_ends(&session->outstanding.ends[middle], &sought) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (from < session->outstanding.n &&
	    session->outstanding.ends[from].pid == live_alloc->key.tgid)
		return min_of(session->outstanding.ends[from].time_ns, end_ns);
	return end_ns;
}

static int compare_live_allocs(const void *a, const void *b)
{
	const struct live_alloc *x = a, *y = b;

	return x->rec.link < y->rec.link ? -1 : x->rec.link > y->rec.link;
}

/* Reads the live allocations in the order in which they were made. */
static int read_live_allocs(const struct session *session, struct live_alloc **ret, size_t *ret_n)
{
	int fd = kernel_half__map_fd(session->half, "live_allocs");
	struct live_alloc one, *list = NULL;
	struct live_alloc_key *before = NULL;
	size_t n = 0, cap = 0;

	while (n < LIVE_ALLOCS_MAX && !bpf_map_get_next_key(fd, before, &one.key)) {
		if (array__reserve(&list, &cap, n + 1, sizeof(*list))) {
			free(list);
			return -ENOMEM;
		}
		list[n] = one;
		before = &list[n].key;
		if (!bpf_map_lookup_elem(fd, before, &list[n].rec))
			n++;
	}
	if (n)
		qsort(list, n, sizeof(*list), compare_live_allocs);
	*ret = list;
	*ret_n = n;
	return 0;
}

int session__record_outstanding(struct session *session, struct err *err)
{
	uint64_t end_ns = session->end_ns, ended_ns;
	struct live_alloc *list = NULL;
	size_t n = 0;
	int ret;

	if (!session__has_outstanding(session))
		return 0;
	ret = read_live_allocs(session, &list, &n);
	if (ret)
		return err__set(err, ret, "out of memory");
	ended_ns = events__ended_ns(session->events,
				    event_list__of_slot(&session->opts.events, EVENT_ALLOC));
	if (ended_ns)
		end_ns = min_of(end_ns, ended_ns);
	if (session->outstanding.n)
		qsort(session->outstanding.ends, session->outstanding.n,
		      sizeof(*session->outstanding.ends), compare_ends);
	for (size_t i = 0; !ret && i < n; i++) {
		uint64_t until_ns = end_of(session, &list[i], end_ns);
		struct rec_value rec = { .type = REC_VALUE, .link = list[i].rec.link, .value = 1 };

		/* 0 would mean that there is no age */
		rec.object = max_of(until_ns, list[i].rec.time_ns + 1) - list[i].rec.time_ns;
		ret = routing__record(&session->routing, &rec, sizeof(rec), err);
	}
	free(list);
	return ret;
}
