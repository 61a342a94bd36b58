// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/code_index.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/code_sort.h"

/* A run is sorted by start, and at the same time a search tree: the node of [lo, hi) is the entry
 * in the middle, and `ends` has the greatest end of all entries in [lo, hi) for it. So all entries
 * around an address are found without looking at more than a few others, however much they
 * overlap. New entries become a run of their own; runs of similar length are merged. */

/* Of one run and search. Honest files have a few entries around an address. */
#define VISITS_MAX 4096

struct search {
	const struct code_index *index;
	uint64_t address, time_ns;
	const struct code_entry *best;
	unsigned visits;
};

static bool is_before(const struct code_entry *a, const struct code_entry *b)
{
	return a->start != b->start ? a->start < b->start : a->order < b->order;
}

/* Adding to a file's tail mostly goes upwards. */
static bool is_sorted(const struct code_entry *entries, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!is_before(&entries[i - 1], &entries[i]))
			return false;
	return true;
}

static uint64_t build_ends(struct code_index *index, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	uint64_t end, other;

	if (lo == hi)
		return 0;
	end = index->entries[mid].start + index->entries[mid].size;
	other = build_ends(index, lo, mid);
	end = max_of(end, other);
	other = build_ends(index, mid + 1, hi);
	end = max_of(end, other);
	index->ends[mid] = end;
	return end;
}

/* Merges the last run into the one before it. */
static int merge_last(struct code_index *index)
{
	struct code_run *to = &index->runs[index->n_runs - 2], *from = to + 1;
	struct code_entry *entries = index->entries + to->first, *copy;
	size_t a = to->n, b = from->n, at = a + b;

	copy = malloc(b * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, index->entries + from->first, b * sizeof(*copy));
	while (b) {
		if (a && is_before(&copy[b - 1], &entries[a - 1])) {
			at--, a--;
			entries[at] = entries[a];
		} else {
			at--, b--;
			entries[at] = copy[b];
		}
	}
	free(copy);
	to->n += from->n;
	index->n_runs--;
	return 0;
}

/* Makes a run of what was added. */
static int seal(struct code_index *index)
{
	struct code_run *last = index->n_runs ? &index->runs[index->n_runs - 1] : NULL;
	size_t first = last ? last->first + last->n : 0, n = index->n - first;

	if (!n)
		return 0;
	if (array__reserve(&index->ends, &index->cap_ends, index->cap, sizeof(*index->ends)))
		return -ENOMEM;
	if (!is_sorted(index->entries + first, n) && code_sort(index->entries + first, n))
		return -ENOMEM;
	index->runs[index->n_runs++] = (struct code_run) { first, n };
	while (index->n_runs > 1) {
		last = &index->runs[index->n_runs - 1];
		if (last[-1].n > 2 * last->n)
			break;
		if (merge_last(index)) { /* try again at the next call */
			index->n_runs--;
			return -ENOMEM;
		}
	}
	last = &index->runs[index->n_runs - 1];
	build_ends(index, last->first, last->first + last->n);
	return 0;
}

int code_index__add(struct code_index *index, const struct code_entry *entry)
{
	if (index->n >= CODE_ENTRIES_MAX)
		return -ENOSPC;
	if (array__reserve(&index->entries, &index->cap, index->n + 1, sizeof(*index->entries)))
		return -ENOMEM;
	index->entries[index->n] = *entry;
	index->entries[index->n].order = index->n;
	index->n++;
	return 0;
}

static bool is_better(const struct search *search, const struct code_entry *entry)
{
	const struct code_entry *best = search->best;
	bool known, best_known, later;

	if (!best)
		return true;
	known = entry->since_ns <= search->time_ns;
	best_known = best->since_ns <= search->time_ns;
	if (known != best_known)
		return known;
	later = entry->since_ns != best->since_ns ? entry->since_ns > best->since_ns
						  : entry->order > best->order;
	return known ? later : !later;
}

/* As deep as the logarithm of the run's length. */
static void visit(struct search *search, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	const struct code_entry *entry = &search->index->entries[mid];

	if (lo == hi || search->index->ends[mid] <= search->address || search->visits >= VISITS_MAX)
		return;
	search->visits++;
	if (entry->start <= search->address) {
		if (search->address - entry->start < entry->size && is_better(search, entry))
			search->best = entry;
		visit(search, mid + 1, hi);
	}
	visit(search, lo, mid);
}

bool code_index__find(struct code_index *index, uint64_t address, uint64_t time_ns,
		      struct code_entry *ret)
{
	struct search search = { .index = index, .address = address, .time_ns = time_ns };
	size_t i;

	if (seal(index))
		return false;
	for (i = 0; i < index->n_runs; i++) {
		search.visits = 0;
		visit(&search, index->runs[i].first, index->runs[i].first + index->runs[i].n);
	}
	if (!search.best || !search.best->text)
		return false;
	*ret = *search.best;
	return true;
}

void code_index__done(struct code_index *index)
{
	free(index->entries);
	free(index->ends);
	*index = (struct code_index) {};
}
