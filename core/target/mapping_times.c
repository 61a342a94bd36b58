// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/mapping_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fnv.h"
#include "core/base/quota.h"
#include "core/base/util.h"

struct ended {
	struct mapped mapped; /* owns its path */
	uint64_t ended_ns;
	uint64_t proven_ns; /* from this time on, another one may have been there */
};

struct unsure {
	uint64_t start, end;
	struct image *image; /* image whose table may have been used; NULL: none, or published */
	uint64_t bias;
	uint64_t from_ns, until_ns; /* UINT64_MAX: not over yet */
};

struct mapping_times {
	struct ended *ended; /* in the order in which their end was found */
	size_t n_ended, cap_ended;
	uint64_t charged;      /* bytes charged for these */
	uint64_t last_ns;      /* the latest end */
	uint64_t forgotten_ns; /* latest end among the evicted ones; 0: none was evicted */
	uint64_t replaced_ns;  /* time at which the list was last replaced; 0: never */
	struct unsure unsure[UNSURE_RANGES_MAX];
	size_t n_unsure;	     /* ever added; the oldest is evicted */
	uint64_t unsure_ns, sure_ns; /* bounds of all their times */
	struct mapping_event pending[PENDING_EVENTS_MAX];
	size_t n_pending;
	struct mapping_event *events; /* owned; sorted by time */
	size_t n_events, cap_events;
	uint64_t events_from_ns; /* earlier events are missing; 0: none are missing */
};

static struct mapping_times *times_of(struct process *process)
{
	if (!process->times)
		process->times = calloc(1, sizeof(*process->times));
	return process->times;
}

static uint64_t bytes_of(const struct mapped *mapped)
{
	return sizeof(struct ended) + strlen(mapped->path) + 1;
}

void mapping_times__free(struct mapping_times *times, struct quota_account *account)
{
	if (!times)
		return;
	for (size_t i = 0; i < times->n_ended; i++)
		free(times->ended[i].mapped.path);
	quota__give_back(account, times->charged);
	free(times->ended);
	free(times->events);
	free(times);
}

/* --- lookups --- */

static bool holds(const struct mapped *mapped, uint64_t address)
{
	return address >= mapped->start && address < mapped->end;
}

static bool overlaps(const struct mapped *mapped, uint64_t start, uint64_t end)
{
	return mapped->start < end && start < mapped->end;
}

uint64_t mapping_times__path_id(const char *path)
{
	return fnv__add(FNV_BEGIN, path, strlen(path)) | 1;
}

/* Linux 6.8 and later report another device and inode for files of overlayfs in the list of
 * mappings than in the events. Then the paths are compared. */
static bool is_same_file(const struct mapped *mapped, const struct mapping_event *event)
{
	if (mapped->dev == event->dev || !mapped->dev || !mapped->inode || !event->inode)
		return mapped->inode == event->inode;
	return mapping_times__path_id(mapped->path) == event->path;
}

/* Returns the number of events up to @time_ns. */
static size_t count_events(const struct mapping_times *times, uint64_t time_ns)
{
	size_t lo = 0, hi = times->n_events;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (times->events[mid].time_ns <= time_ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Returns the last of the first @n events at @address, or NULL. */
static const struct mapping_event *last_event(const struct mapping_times *times, size_t n,
					      uint64_t address)
{
	while (n-- > 0)
		if (address >= times->events[n].start && address < times->events[n].end)
			return &times->events[n];
	return NULL;
}

/* Returns true if the event is of the same file at the same addresses, or of memory without a file.
 */
static bool is_of(const struct mapped *mapped, const struct mapping_event *event)
{
	return is_same_file(mapped, event) &&
	       (!event->inode ||
		mapped->whole_start - mapped->offset == event->start - event->offset);
}

/* Finds the mapping of @event. Memory that mremap() moved there has no event, but a list that was
 * read later may have it. */
static const struct mapped *find_by_event(const struct process *process, uint64_t address,
					  uint64_t time_ns, const struct mapping_event *event)
{
	const struct mapping_times *times = process->times;
	const struct mapped *now = process__find(process, address);

	if (now &&
	    (is_of(now, event) || (now->born_ns > event->time_ns && now->born_ns <= time_ns)))
		return now;
	for (size_t i = times->n_ended; i-- > 0;) {
		const struct ended *ended = &times->ended[i];

		if (!holds(&ended->mapped, address) || !is_of(&ended->mapped, event))
			continue;
		if (ended->proven_ns < ended->ended_ns && event->time_ns < time_ns &&
		    event == last_event(times, times->n_events, address))
			return NULL;
		return &ended->mapped;
	}
	return NULL;
}

static const struct mapped *find_by_lists(const struct process *process, uint64_t address,
					  uint64_t time_ns)
{
	const struct mapping_times *times = process->times;
	const struct mapped *now = process__find(process, address);

	if (now && now->born_ns <= time_ns)
		return now;
	for (size_t i = times ? times->n_ended : 0; i-- > 0;) {
		const struct ended *ended = &times->ended[i];

		if (holds(&ended->mapped, address) && time_ns < ended->ended_ns &&
		    ended->mapped.born_ns <= time_ns)
			return time_ns < ended->proven_ns ? &ended->mapped : NULL;
	}
	return NULL;
}

const struct mapped *mapping_times__find(const struct process *process, uint64_t address,
					 uint64_t time_ns)
{
	const struct mapping_times *times = process->times;
	const struct mapping_event *event;

	if (!times || !times->n_events)
		return find_by_lists(process, address, time_ns);
	event = last_event(times, count_events(times, time_ns), address);
	if (event && event->inode)
		return find_by_event(process, address, time_ns, event);
	if (!event && time_ns < times->events_from_ns &&
	    last_event(times, times->n_events, address))
		return NULL;
	return find_by_lists(process, address, time_ns);
}

const struct mapped *mapping_times__find_ended(const struct process *process, uint64_t address)
{
	const struct mapping_times *times = process->times;

	for (size_t i = times ? times->n_ended : 0; i-- > 0;)
		if (holds(&times->ended[i].mapped, address))
			return &times->ended[i].mapped;
	return NULL;
}

uint64_t mapping_times__span(const struct process *process, uint64_t time_ns)
{
	const struct mapping_times *times = process->times;
	uint64_t last = 0;
	size_t n;

	if (!times)
		return 0;
	n = count_events(times, time_ns);
	last = n ? times->events[n - 1].time_ns : 0;
	if (time_ns < max_of(times->forgotten_ns, times->events_from_ns))
		return time_ns;
	if (time_ns >= times->last_ns)
		return max_of(last, times->last_ns);
	for (size_t i = 0; i < times->n_ended; i++) {
		if (times->ended[i].proven_ns <= time_ns)
			last = max_of(last, times->ended[i].proven_ns);
		if (times->ended[i].ended_ns <= time_ns)
			last = max_of(last, times->ended[i].ended_ns);
	}
	return last;
}

bool mapping_times__has_unsure(const struct process *process, uint64_t time_ns)
{
	const struct mapping_times *times = process->times;

	return times && times->n_unsure && time_ns >= times->unsure_ns && time_ns <= times->sure_ns;
}

bool mapping_times__is_unsure(const struct process *process, uint64_t address, uint64_t time_ns)
{
	const struct mapping_times *times = process->times;
	size_t n = times ? min_of(times->n_unsure, (size_t)UNSURE_RANGES_MAX) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct unsure *unsure = &times->unsure[i];

		if (address >= unsure->start && address < unsure->end &&
		    time_ns >= unsure->from_ns && time_ns <= unsure->until_ns)
			return true;
	}
	return false;
}

void mapping_times__use_images(const struct process *process, uint64_t now_ns)
{
	const struct mapping_times *times = process->times;

	for (size_t i = 0; times && i < times->n_ended; i++)
		if (times->ended[i].mapped.image)
			image__use(times->ended[i].mapped.image, now_ns);
	for (size_t i = 0; times && i < min_of(times->n_unsure, (size_t)UNSURE_RANGES_MAX); i++)
		if (times->unsure[i].image)
			image__use(times->unsure[i].image, now_ns);
}

/* --- events --- */

bool mapping_times__is_mapped(const struct process *process, uint64_t start, uint64_t end,
			      bool is_file)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (overlaps(&process->mapped[i], start, end) &&
		    (!is_file || process->mapped[i].inode))
			return true;
	return false;
}

/* Returns true if the event overlaps a stored event of a file or a recorded mapping of one. */
static bool meets_file(const struct process *process, const struct mapping_event *event)
{
	const struct mapping_times *times = process->times;

	if (mapping_times__is_mapped(process, event->start, event->end, true))
		return true;
	for (size_t i = 0; times && i < times->n_events; i++)
		if (times->events[i].start < event->end && event->start < times->events[i].end)
			return true;
	return false;
}

int mapping_times__remember(struct process *process, const struct mapping_event *event)
{
	struct mapping_times *times;
	size_t at;

	if (!event->inode && !meets_file(process, event))
		return 0;
	times = times_of(process);
	if (!times)
		return -ENOMEM;
	if (times->n_events == RETAINED_EVENTS_MAX) {
		times->n_events /= 2;
		memmove(times->events, times->events + times->n_events,
			times->n_events * sizeof(*times->events));
		times->events_from_ns = times->events[0].time_ns;
	}
	if (array__reserve(&times->events, &times->cap_events, times->n_events + 1,
			   sizeof(*times->events)))
		return -ENOMEM;
	at = count_events(times, event->time_ns);
	memmove(&times->events[at + 1], &times->events[at],
		(times->n_events - at) * sizeof(*times->events));
	times->events[at] = *event;
	times->n_events++;
	return 0;
}

void mapping_times__on_lost(struct process *process)
{
	struct mapping_times *times = process->times;

	if (!times)
		return;
	times->n_events = 0;
	times->events_from_ns = 0;
}

/* --- ends --- */

static void forget_at(struct process *process, struct mapping_times *times, size_t at)
{
	uint64_t bytes = bytes_of(&times->ended[at].mapped);

	times->charged -= bytes;
	quota__give_back(process->account, bytes);
	free(times->ended[at].mapped.path);
	times->n_ended--;
	memmove(&times->ended[at], &times->ended[at + 1],
		(times->n_ended - at) * sizeof(*times->ended));
}

/* Removes the earlier entry of the same mapping: events report each time at which a file was there,
 * so the last entry is enough. */
static void forget_same(struct process *process, struct mapping_times *times,
			const struct mapped *mapped)
{
	for (size_t i = 0; i < times->n_ended; i++) {
		const struct mapped *ended = &times->ended[i].mapped;

		if (!ended->inode || ended->inode != mapped->inode || ended->dev != mapped->dev ||
		    ended->start != mapped->start || ended->end != mapped->end ||
		    ended->offset != mapped->offset || ended->image != mapped->image)
			continue;
		forget_at(process, times, i);
		return;
	}
}

/* Adds @mapped, which was valid until @time_ns, to the ended mappings. @proven_ns is as in struct
 * ended. A mapping over the budget is dropped, and no sample is placed by it. Returns 0 or -ENOMEM.
 */
static int keep_ended(struct process *process, const struct mapped *mapped, uint64_t time_ns,
		      uint64_t proven_ns)
{
	struct mapping_times *times = times_of(process);
	struct ended *to;

	if (!times)
		return -ENOMEM;
	times->last_ns = max_of(times->last_ns, time_ns);
	if (times->n_events)
		forget_same(process, times, mapped);
	if (times->n_ended == ENDED_MAPPINGS_MAX) {
		times->forgotten_ns = max_of(times->forgotten_ns, times->ended[0].ended_ns);
		forget_at(process, times, 0);
	}
	if (quota__charge(process__account(process), QUOTA_RETAINED, bytes_of(mapped))) {
		times->forgotten_ns = max_of(times->forgotten_ns, time_ns);
		return 0;
	}
	if (array__reserve(&times->ended, &times->cap_ended, times->n_ended + 1,
			   sizeof(*times->ended)))
		return -ENOMEM;
	to = &times->ended[times->n_ended];
	*to = (struct ended) { *mapped, time_ns, proven_ns };
	to->mapped.path = strdup(mapped->path);
	if (!to->mapped.path)
		return -ENOMEM;
	times->n_ended++;
	times->charged += bytes_of(mapped);
	return 0;
}

/* Marks the range of the event as unsure: from its time on, the kernel half may use the table of
 * @mapped. */
static void be_unsure(struct process *process, const struct mapped *mapped,
		      const struct mapping_event *event)
{
	struct mapping_times *times = times_of(process);

	if (!times)
		return;
	times->unsure_ns =
		times->n_unsure ? min_of(times->unsure_ns, event->time_ns) : event->time_ns;
	times->unsure[times->n_unsure++ % UNSURE_RANGES_MAX] =
		(struct unsure) { .start = max_of(mapped->start, event->start),
				  .end = min_of(mapped->end, event->end),
				  .image = mapped->image,
				  .bias = mapped->bias,
				  .from_ns = event->time_ns,
				  .until_ns = UINT64_MAX };
	times->sure_ns = UINT64_MAX;
}

void mapping_times__on_published(struct process *process, uint64_t now_ns)
{
	struct mapping_times *times = process->times;

	for (size_t i = 0; times && i < min_of(times->n_unsure, (size_t)UNSURE_RANGES_MAX); i++) {
		times->unsure[i].until_ns = min_of(times->unsure[i].until_ns, now_ns);
		times->unsure[i].image = NULL;
	}
	if (times)
		times->sure_ns = min_of(times->sure_ns, now_ns);
}

/* --- by an event --- */

/* Returns true if the event maps something else. A file that is mapped again at the same place is
 * the same code. */
static bool is_another(const struct mapped *mapped, const struct mapping_event *event)
{
	if (mapped->image && !mapped->inode && !mapped->is_moved)
		return false; /* the file is unknown */
	return !is_of(mapped, event);
}

static bool covers(const struct mapped *mapped, const struct mapping_event *event)
{
	return overlaps(mapped, event->start, event->end) && event->time_ns > mapped->born_ns &&
	       is_another(mapped, event);
}

bool mapping_times__is_covered(const struct process *process, const struct mapping_event *event)
{
	for (size_t i = 0; i < process->n_mapped; i++)
		if (covers(&process->mapped[i], event))
			return true;
	return false;
}

static void remove_at(struct process *process, size_t i)
{
	free(process->mapped[i].path);
	process->n_mapped--;
	memmove(&process->mapped[i], &process->mapped[i + 1],
		(process->n_mapped - i) * sizeof(*process->mapped));
}

/* Splits mapping number @i: adds the part from @start on as the next one. Returns 0 or -ENOMEM. */
static int split_at(struct process *process, size_t i, uint64_t start)
{
	struct mapped *list = realloc(process->mapped, (process->n_mapped + 1) * sizeof(*list));
	char *path;

	if (!list)
		return -ENOMEM;
	process->mapped = list;
	path = strdup(list[i].path);
	if (!path)
		return -ENOMEM;
	memmove(&list[i + 1], &list[i], (process->n_mapped - i) * sizeof(*list));
	list[i + 1].path = path;
	list[i + 1].start = start;
	process->n_mapped++;
	return 0;
}

int mapping_times__cover(struct process *process, const struct mapping_event *event)
{
	size_t i = 0;
	int ret = 0;

	while (!ret && i < process->n_mapped) {
		struct mapped *mapped = &process->mapped[i];

		if (!covers(mapped, event)) {
			i++;
			continue;
		}
		be_unsure(process, mapped, event);
		ret = keep_ended(process, mapped, event->time_ns, event->time_ns);
		process->is_stale = true;
		process->changed_ns = now_ns();
		if (!ret && mapped->end > event->end && mapped->start < event->start)
			ret = split_at(process, i, event->end);
		mapped = &process->mapped[i];
		if (mapped->start < event->start) {
			mapped->end = event->start;
			i++;
		} else if (mapped->end > event->end) {
			mapped->start = event->end;
			i++;
		} else {
			remove_at(process, i);
		}
	}
	return ret;
}

void mapping_times__correct(struct process *process, const struct mapping_event *event)
{
	struct mapping_times *times = process->times;

	for (size_t i = 0; times && i < process->n_mapped; i++) {
		struct mapped *mapped = &process->mapped[i];
		uint64_t born_ns = mapped->born_ns;

		if (event->time_ns >= born_ns || !is_same_file(mapped, event) ||
		    !overlaps(mapped, event->start, event->end))
			continue;
		for (size_t k = 0; k < times->n_ended; k++) {
			struct ended *ended = &times->ended[k];

			if (ended->ended_ns != born_ns ||
			    !overlaps(&ended->mapped, event->start, event->end))
				continue;
			ended->ended_ns = ended->proven_ns = event->time_ns;
			be_unsure(process, &ended->mapped, event);
		}
		mapped->born_ns = event->time_ns;
		process->changed_ns = now_ns();
		mapping_times__on_published(process, process->changed_ns);
	}
}

void mapping_times__note(struct process *process, const struct mapping_event *event)
{
	struct mapping_times *times = times_of(process);

	if (times && times->n_pending < PENDING_EVENTS_MAX)
		times->pending[times->n_pending++] = *event;
}

bool mapping_times__has_notes(const struct process *process)
{
	return process->times && process->times->n_pending;
}

/* --- by the list that was read --- */

static bool is_same_code(const struct mapped *a, const struct mapped *b)
{
	if (a->image || b->image)
		return a->image == b->image && a->bias == b->bias;
	return a->inode == b->inode && !strcmp(a->path, b->path);
}

/* Returns a mapping of the list that holds a part of @mapped with the same code, or NULL. */
static const struct mapped *find_rest(const struct mapped *list, size_t n,
				      const struct mapped *mapped)
{
	for (size_t i = 0; i < n && list[i].start < mapped->end; i++)
		if (overlaps(&list[i], mapped->start, mapped->end) &&
		    is_same_code(&list[i], mapped))
			return &list[i];
	return NULL;
}

/* Returns the first event that covers @mapped, or NULL. */
static const struct mapping_event *find_event(const struct mapping_times *times,
					      const struct mapped *mapped)
{
	for (size_t i = 0; times && i < times->n_pending; i++)
		if (covers(mapped, &times->pending[i]))
			return &times->pending[i];
	return NULL;
}

/* Ends the unsure ranges of code that moved to other memory at the same addresses: its table is
 * unchanged. */
static void be_sure_of_moved(struct mapping_times *times, const struct mapped *list, size_t n)
{
	size_t n_unsure = min_of(times->n_unsure, (size_t)UNSURE_RANGES_MAX);

	for (size_t k = 0; k < n_unsure; k++) {
		struct unsure *unsure = &times->unsure[k];

		for (size_t i = 0; i < n && unsure->image && unsure->until_ns == UINT64_MAX; i++)
			if (list[i].image == unsure->image && list[i].bias == unsure->bias &&
			    list[i].start <= unsure->start && unsure->end <= list[i].end)
				unsure->end = unsure->start;
	}
}

uint64_t mapping_times__last_end(const struct process *process, uint64_t start, uint64_t end)
{
	const struct mapping_times *times = process->times;
	uint64_t last = 0;

	for (size_t i = 0; times && i < times->n_ended; i++)
		if (overlaps(&times->ended[i].mapped, start, end))
			last = max_of(last, times->ended[i].ended_ns);
	return last;
}

/* Handles a mapping without an event. Events can be lost, and mremap() has none. If another mapping
 * of the list took the place of @old, @old ended at some time since the previous list. Returns the
 * time of that list, or UINT64_MAX if nothing took its place. */
static uint64_t be_unsure_since_last(struct process *process, const struct mapped *list, size_t n,
				     const struct mapped *old)
{
	uint64_t since_ns = UINT64_MAX;
	struct mapping_event by = { .time_ns = process->times ? process->times->replaced_ns : 0 };

	for (size_t i = 0; i < n && list[i].start < old->end; i++) {
		by.start = list[i].start;
		by.end = list[i].end;
		if (!overlaps(old, by.start, by.end))
			continue;
		be_unsure(process, old, &by);
		since_ns = by.time_ns;
	}
	return since_ns;
}

int mapping_times__replace(struct process *process, struct mapped *list, size_t n, uint64_t now_ns)
{
	const struct mapping_event *event;
	uint64_t ended_ns, proven_ns;
	const struct mapped *old;
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < process->n_mapped; i++) {
		old = &process->mapped[i];
		if (find_rest(list, n, old))
			continue;
		event = find_event(process->times, old);
		ended_ns = event ? event->time_ns : now_ns;
		proven_ns = ended_ns;
		if (event)
			be_unsure(process, old, event);
		else
			proven_ns = be_unsure_since_last(process, list, n, old);
		ret = keep_ended(process, old, ended_ns, min_of(proven_ns, ended_ns));
	}
	for (i = 0; i < n; i++) {
		old = find_rest(process->mapped, process->n_mapped, &list[i]);
		list[i].born_ns =
			old ? old->born_ns
			    : max_of(list[i].born_ns,
				     mapping_times__last_end(process, list[i].start, list[i].end));
	}
	if (process->times) {
		be_sure_of_moved(process->times, list, n);
		process->times->replaced_ns = now_ns;
		process->times->n_pending = 0;
	}
	return ret;
}
