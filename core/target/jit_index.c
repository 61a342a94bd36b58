// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/jit_index.h"

#include <errno.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/target/jit_sort.h"

/* A run is sorted by start, and at the same time a search tree. The node of [lo, hi) is the entry
 * in the middle, and `ends` has the greatest end of all entries in [lo, hi) for it. A search
 * therefore visits few entries that do not contain the address, even if ranges overlap. New entries
 * become a run of their own. Runs of similar length are merged. */

/* Entries that one search visits. Honest files have a few around an address. */
#define VISITS_MAX 4096

/* Entries that are sorted at a time. Sorting needs 64 bytes for each. */
#define UNSORTED_MAX (1 << 16)

#define CAPACITY_MIN   64
#define BYTES_OF_ENTRY (sizeof(struct jit_entry) + sizeof(uint64_t))

struct search {
	const struct jit_index *index;
	uint64_t address, time_ns;
	const struct jit_entry *best;
	unsigned visits;
};

static bool is_before(const struct jit_entry *a, const struct jit_entry *b)
{
	return a->start != b->start ? a->start < b->start : a->order < b->order;
}

/* Returns true if the entries need no sort. Entries at a file's tail usually have ascending
 * addresses. */
static bool is_sorted(const struct jit_entry *entries, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!is_before(&entries[i - 1], &entries[i]))
			return false;
	return true;
}

static uint64_t build_ends(struct jit_index *index, size_t lo, size_t hi)
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

/* Merges the last run into the previous one. */
static int merge_last(struct jit_index *index)
{
	struct jit_run *to = &index->runs[index->n_runs - 2], *from = to + 1;
	struct jit_entry *entries = index->entries + to->first, *copy;
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

static size_t count_sorted(const struct jit_index *index)
{
	const struct jit_run *last = index->n_runs ? &index->runs[index->n_runs - 1] : NULL;

	return last ? last->first + last->n : 0;
}

/* Turns the entries that are in no run into a run. */
static int seal(struct jit_index *index)
{
	size_t first = count_sorted(index), n = index->n - first;
	struct jit_run *last;

	if (!n)
		return 0;
	if (!is_sorted(index->entries + first, n) && jit_sort(index->entries + first, n))
		return -ENOMEM;
	index->runs[index->n_runs++] = (struct jit_run) { first, n };
	while (index->n_runs > 1) {
		last = &index->runs[index->n_runs - 1];
		if (last[-1].n > 2 * last->n)
			break;
		if (merge_last(index)) { /* tried again at the next call */
			index->n_runs--;
			return -ENOMEM;
		}
	}
	last = &index->runs[index->n_runs - 1];
	build_ends(index, last->first, last->first + last->n);
	return 0;
}

static void give_back(struct jit_index *index, size_t n)
{
	quota__give_back_of(index->account, QUOTA_INDEXED, n * BYTES_OF_ENTRY);
	quota__give_back(index->account, n * BYTES_OF_ENTRY);
}

/* Charges memory for @n entries to both budgets, or to neither. */
static int charge(struct jit_index *index, size_t n)
{
	int ret = quota__charge(index->account, QUOTA_INDEXED, n * BYTES_OF_ENTRY);

	if (ret)
		return ret;
	ret = quota__charge(index->account, QUOTA_RETAINED, n * BYTES_OF_ENTRY);
	if (ret)
		quota__give_back_of(index->account, QUOTA_INDEXED, n * BYTES_OF_ENTRY);
	return ret;
}

/* Grows the arrays by a quarter only, as unused memory is charged, too. */
static int grow(struct jit_index *index)
{
	size_t more = max_of(index->cap / 4, (size_t)CAPACITY_MIN);
	struct jit_entry *entries;
	uint64_t *ends;
	int ret;

	more = min_of(more, JIT_ENTRIES_MAX - index->cap);
	if (!more)
		return -ENOSPC;
	ret = charge(index, more);
	if (ret)
		return ret;
	entries = reallocarray(index->entries, index->cap + more, sizeof(*entries));
	if (entries)
		index->entries = entries;
	ends = reallocarray(index->ends, index->cap + more, sizeof(*ends));
	if (ends)
		index->ends = ends;
	if (!entries || !ends) {
		give_back(index, more);
		return -ENOMEM;
	}
	index->cap += more;
	return 0;
}

int jit_index__add(struct jit_index *index, const struct jit_entry *entry)
{
	int ret = index->n == index->cap ? grow(index) : 0;

	if (ret)
		return ret;
	index->entries[index->n] = *entry;
	index->entries[index->n].order = index->n;
	index->n++;
	return index->n - count_sorted(index) >= UNSORTED_MAX ? seal(index) : 0;
}

static bool is_better(const struct search *search, const struct jit_entry *entry)
{
	const struct jit_entry *best = search->best;
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

/* Visits the nodes of [@lo, @hi). The depth is the logarithm of the run's length. */
static void visit(struct search *search, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	const struct jit_entry *entry = &search->index->entries[mid];

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

bool jit_index__find(struct jit_index *index, uint64_t address, uint64_t time_ns,
		     struct jit_entry *ret)
{
	struct search search = { .index = index, .address = address, .time_ns = time_ns };

	if (seal(index))
		return false;
	/* Starts with the last run, whose entries are the newest, in case VISITS_MAX ends the
	 * search. */
	for (size_t i = index->n_runs; i-- > 0;)
		visit(&search, index->runs[i].first, index->runs[i].first + index->runs[i].n);
	index->visits += search.visits;
	if (!search.best || !search.best->text)
		return false;
	*ret = *search.best;
	return true;
}

void jit_index__done(struct jit_index *index)
{
	give_back(index, index->cap);
	free(index->entries);
	free(index->ends);
	*index = (struct jit_index) { .account = index->account };
}
