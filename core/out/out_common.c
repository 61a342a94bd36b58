// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_common.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/function_rules.h"
#include "core/profile/sink.h"

static int compare_frames(const void *a, const void *b, void *arg)
{
	const struct profile *profile = arg;
	const struct profile_frame *x = &profile->frames[*(const uint32_t *)a];
	const struct profile_frame *y = &profile->frames[*(const uint32_t *)b];
	int diff = 0;

	if (x->name != y->name)
		diff = strcmp(strtab__get(profile->strings, x->name),
			      strtab__get(profile->strings, y->name));
	else if (x->file != y->file)
		diff = strcmp(strtab__get(profile->strings, x->file),
			      strtab__get(profile->strings, y->file));
	else if (x->line != y->line)
		diff = x->line < y->line ? -1 : 1;
	else if (x->kind != y->kind)
		diff = x->kind - y->kind;
	else if (x->library != y->library)
		diff = strcmp(strtab__get(profile->strings, x->library),
			      strtab__get(profile->strings, y->library));
	else if (x->image != y->image)
		diff = x->image < y->image ? -1 : 1;
	else
		diff = (x->address > y->address) - (x->address < y->address);
	return diff;
}

/* Returns the number of frames before each frame in the order of names. */
static int rank_frames(const struct profile *profile, uint32_t **ret_ranks)
{
	size_t i, n = profile->n_frames;
	uint32_t *sorted = malloc((n + 1) * sizeof(*sorted));
	uint32_t *ranks = malloc((n + 1) * sizeof(*ranks));
	int err = -ENOMEM;

	if (!sorted || !ranks)
		goto out;
	for (i = 0; i < n; i++)
		sorted[i] = i;
	qsort_r(sorted, n, sizeof(*sorted), compare_frames, (void *)profile);
	for (i = 0; i < n; i++)
		ranks[sorted[i]] = i;
	*ret_ranks = ranks;
	ranks = NULL;
	err = 0;
out:
	free(ranks);
	free(sorted);
	return err;
}

/* Scratch of one ordering: first child and next sibling of each node; 0: none, as node 0, the root,
 * is never a child or sibling. */
struct links {
	uint32_t *ranks;
	uint32_t *by_rank; /* nodes but the root, sorted by their frames' ranks */
	uint32_t *counts;
	uint32_t *child, *sibling;
	bool *shown; /* the node or a descendant has weight, calls or occurrences */
};

static void links_done(struct links *links)
{
	free(links->ranks);
	free(links->by_rank);
	free(links->counts);
	free(links->child);
	free(links->sibling);
	free(links->shown);
}

/* Sorts all nodes by a counting sort, then puts each in front of its siblings, from the last name
 * to the first. The time is linear for any distribution of children. */
static int links_init(struct links *links, const struct profile *profile)
{
	size_t i, n = profile->n_nodes;
	bool counted = profile__has_occurrences(profile);

	links->by_rank = malloc(n * sizeof(*links->by_rank));
	links->counts = calloc(profile->n_frames + 1, sizeof(*links->counts));
	links->child = calloc(n, sizeof(*links->child));
	links->sibling = calloc(n, sizeof(*links->sibling));
	links->shown = calloc(n, sizeof(*links->shown));
	if (!links->by_rank || !links->counts || !links->child || !links->sibling ||
	    !links->shown || rank_frames(profile, &links->ranks))
		return -ENOMEM;
	for (i = n - 1; i > 0; i--) {
		const struct profile_node *node = &profile->nodes[i];

		links->shown[i] |= node->self || node->calls || (counted && node->occurrences);
		links->shown[node->parent] |= links->shown[i];
	}
	for (i = 1; i < n; i++)
		links->counts[links->ranks[profile->nodes[i].frame] + 1]++;
	for (i = 1; i <= profile->n_frames; i++)
		links->counts[i] += links->counts[i - 1];
	for (i = 1; i < n; i++)
		links->by_rank[links->counts[links->ranks[profile->nodes[i].frame]]++] = i;
	for (i = n - 1; i > 0; i--) {
		uint32_t node = links->by_rank[i - 1];
		uint32_t *first = &links->child[profile->nodes[node].parent];

		if (!links->shown[node])
			continue;
		links->sibling[node] = *first;
		*first = node;
	}
	return 0;
}

static void walk(struct out_tree *tree, const struct profile *profile, const struct links *links)
{
	uint32_t node = 0, depth = 0;

	for (;;) {
		tree->order[tree->n_order++] = node;
		tree->depth[node] = depth;
		tree->depth_max = max_of(tree->depth_max, depth);
		if (links->child[node]) {
			node = links->child[node];
			depth++;
			continue;
		}
		for (; node && !links->sibling[node]; depth--)
			node = profile->nodes[node].parent;
		if (!node)
			return;
		node = links->sibling[node];
	}
}

/* Adds the values of each node to those of its ancestors. @totals has the nodes' own values at
 * first. */
static void sum_up(const struct profile *profile, uint64_t *totals)
{
	for (size_t i = profile->n_nodes - 1; i > 0; i--) {
		uint64_t *total = &totals[profile->nodes[i].parent];

		if (__builtin_add_overflow(*total, totals[i], total))
			*total = UINT64_MAX;
	}
}

static int add_parts(struct out_tree *tree, const struct profile *profile)
{
	size_t n = profile->n_nodes;

	tree->waiting = malloc(n * sizeof(*tree->waiting));
	tree->preempted = malloc(n * sizeof(*tree->preempted));
	if (!tree->waiting || !tree->preempted)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		tree->waiting[i] = profile->nodes[i].waiting;
		tree->preempted[i] = profile->nodes[i].preempted;
	}
	sum_up(profile, tree->waiting);
	sum_up(profile, tree->preempted);
	return 0;
}

int out_tree__init(struct out_tree *ret_tree, const struct profile *profile)
{
	struct out_tree tree = { 0 };
	struct links links = { 0 };
	size_t i, n = profile->n_nodes;
	int err = -ENOMEM;

	tree.order = malloc(n * sizeof(*tree.order));
	tree.depth = calloc(n, sizeof(*tree.depth));
	tree.total = malloc(n * sizeof(*tree.total));
	if (!tree.order || !tree.depth || !tree.total)
		goto out;
	for (i = 0; i < n; i++)
		tree.total[i] = profile->nodes[i].self;
	sum_up(profile, tree.total);
	if (profile__mixes(profile) && add_parts(&tree, profile))
		goto out;
	err = links_init(&links, profile);
	if (err)
		goto out;
	walk(&tree, profile, &links);
	assert(tree.n_order <= n);
	tree.ranks = links.ranks;
	links.ranks = NULL;
	*ret_tree = tree;
	memset(&tree, 0, sizeof(tree));
out:
	links_done(&links);
	out_tree__done(&tree);
	return err;
}

void out_tree__done(struct out_tree *tree)
{
	free(tree->order);
	free(tree->depth);
	free(tree->total);
	free(tree->waiting);
	free(tree->preempted);
	free(tree->ranks);
}

char *output__label(const struct profile *profile, const struct profile_frame *frame, int annotate)
{
	size_t size = strlen(strtab__get(profile->strings, frame->name)) +
		      strlen(strtab__get(profile->strings, frame->file)) + PROFILE_MARK_BYTES +
		      sizeof(" (:4294967295)");
	char *label = malloc(size);

	if (label)
		profile__label(profile, frame, annotate, label, size);
	return label;
}

char *output__node_label(const struct profile *profile, uint32_t node, int annotate)
{
	const struct profile_node *at = &profile->nodes[node];
	const struct profile_frame *frame = &profile->frames[at->frame];
	const char *library = strtab__get(profile->strings, frame->library);
	char *label = output__label(profile, frame, annotate), *whole = NULL;
	bool named = frame->role != ROLE_BLOCK && *library;

	if (label && at->run > 1) {
		if (asprintf(&whole, named ? "%s [%s ×%u]" : "%s%.0s ×%u", label, library,
			     at->run) < 0)
			whole = NULL;
		free(label);
		label = whole;
	}
	if (label)
		escape__printable(label);
	return label;
}

bool output__names_event(const struct profile *profile)
{
	return profile->event && strcmp(profile->event, "cpu") != 0;
}

/* Writes a weight in the fitting unit. Each unit is @step times the previous one, and the first is
 * @step times the smallest. */
static void put_scaled(uint64_t weight, double step, const char *const *units, size_t n, char *buf,
		       size_t size)
{
	double scaled = weight / step;
	size_t unit = 0;

	/* At these limits rounding would add a digit. */
	for (; scaled >= step - 0.5 && unit + 1 < n; unit++)
		scaled /= step;
	snprintf(buf, size, "%.*f %s",
		 scaled < 9.995	  ? 2
		 : scaled < 99.95 ? 1
				  : 0,
		 scaled, units[unit]);
}

void output__weight(const struct profile *profile, uint64_t weight, char *buf, size_t size)
{
	static const char *const times[] = { "us", "ms", "s" };
	static const char *const sizes[] = { "KiB", "MiB", "GiB", "TiB" };

	if (profile->unit == PROFILE_NANOSECONDS && weight >= 1000)
		put_scaled(weight, 1000, times, ARRAY_SIZE(times), buf, size);
	else if (profile->unit == PROFILE_BYTES && weight >= 1024)
		put_scaled(weight, 1024, sizes, ARRAY_SIZE(sizes), buf, size);
	else
		snprintf(buf, size, "%" PRIu64 "%s", weight,
			 profile->unit == PROFILE_NANOSECONDS ? " ns"
			 : profile->unit == PROFILE_BYTES     ? " B"
							      : "");
}

void output__amount(const struct profile *profile, uint64_t weight, char *buf, size_t size)
{
	struct profile as = { .unit = PROFILE_NANOSECONDS };
	bool clock = profile->unit == PROFILE_SAMPLES && !profile->counts_calls;
	double ns = clock && profile->frequency_hz > 0 ? weight * (1e9 / profile->frequency_hz) : 0;

	if (ns >= 1 && ns < 1e19)
		output__weight(&as, ns + 0.5, buf, size);
	else
		output__weight(profile, weight, buf, size);
}

const char *output__colour(const struct profile *profile, uint8_t kind)
{
	static const char *const runtimes[] = { "\033[36m", "\033[32m", "\033[35m" };

	if (profile->kinds[kind].label)
		return "\033[1m";
	if (kind == KIND_KERNEL)
		return "\033[31m";
	if (kind < KIND_RUNTIME)
		return "\033[33m";
	return runtimes[(kind - KIND_RUNTIME) % ARRAY_SIZE(runtimes)];
}

static void summarize_calls(const struct profile *profile, char *buf, size_t size)
{
	char weight[32], duration[64] = "";
	uint64_t calls = 0;
	size_t i;

	for (i = 0; i < profile->n_nodes; i++)
		if (__builtin_add_overflow(calls, profile->nodes[i].calls, &calls))
			calls = UINT64_MAX;
	output__weight(profile, profile->total, weight, sizeof(weight));
	if (profile->duration_s > 0)
		snprintf(duration, sizeof(duration), ", recorded for %.1f s", profile->duration_s);
	snprintf(buf, size, "%s in %" PRIu64 " calls%s", weight, calls, duration);
}

/* Writes the sum of an event. Adds the name of a unit for which output__weight() has no sign. */
static void summarize_event(const struct profile *profile, char *buf, size_t size)
{
	bool other = profile->unit == PROFILE_OTHER;
	char weight[32];

	output__weight(profile, profile->total, weight, sizeof(weight));
	snprintf(buf, size, "%s%s%.20s in %" PRIu64 " samples", weight, other ? " " : "",
		 other ? profile->unit_name : "", profile->samples);
}

void output__summary(const struct profile *profile, char *buf, size_t size)
{
	char what[96], event[64] = "", duration[64] = "", frequency[64] = "";

	if (profile->counts_calls) {
		summarize_calls(profile, buf, size);
		return;
	}
	if (output__names_event(profile)) {
		size_t len = strlen(profile->event);

		snprintf(event, sizeof(event), "event %s%.50s: ", len > 50 ? "..." : "",
			 profile->event + (len > 50 ? len - 47 : 0));
	}
	if (profile->unit == PROFILE_SAMPLES)
		snprintf(what, sizeof(what), "%" PRIu64 " samples", profile->total);
	else
		summarize_event(profile, what, sizeof(what));
	if (profile->duration_s > 0)
		snprintf(duration, sizeof(duration), ", %.1f s", profile->duration_s);
	if (profile->frequency_hz > 0)
		snprintf(frequency, sizeof(frequency), ", %.6g Hz", profile->frequency_hz);
	snprintf(buf, size, "%s%s%s%s", event, what, duration, frequency);
	escape__printable(buf);
}

static uint64_t on_cpu(uint64_t total, uint64_t waiting, uint64_t preempted)
{
	uint64_t rest = total - min_of(waiting, total);

	return rest - min_of(preempted, rest);
}

/* Writes a note on waits of tasks that are on no thread. Returns false if there is none. */
static bool note_parked(const struct profile *profile, char *note)
{
	const char *tasks = function_rules__tasks(profile);
	char text[32];

	output__weight(profile, profile->parked, text, sizeof(text));
	if (profile->parked)
		snprintf(note, OUTPUT_NOTE_BYTES,
			 "parked: %s of the waiting is of tasks on no thread, from %" PRIu64
			 " samples",
			 text, profile->parked_samples);
	else if (tasks && profile->waiting && !profile->has_parked)
		snprintf(note, OUTPUT_NOTE_BYTES,
			 "waits of %s on no thread are not included (-e wall has them, as parked)",
			 tasks);
	else
		return false;
	return true;
}

size_t output__notes(const struct profile *profile, char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES])
{
	char text[3][32], inferred[PROFILE_INFERRED_BYTES];
	size_t n = 0;

	if (profile__mixes(profile)) {
		output__weight(profile,
			       on_cpu(profile->total, profile->waiting, profile->preempted),
			       text[0], sizeof(text[0]));
		output__weight(profile, profile->waiting, text[1], sizeof(text[1]));
		output__weight(profile, profile->preempted, text[2], sizeof(text[2]));
		snprintf(notes[n++], OUTPUT_NOTE_BYTES, "on CPU %s, waiting %s, preempted %s",
			 text[0], text[1], text[2]);
	}
	profile__inferred(&profile->evidence, inferred);
	if (*inferred)
		snprintf(notes[n++], OUTPUT_NOTE_BYTES, "%s: --annotate marks them", inferred);
	if (profile->nameless)
		snprintf(notes[n++], OUTPUT_NOTE_BYTES, "%s", profile->nameless);
	if (profile->idle.weight) {
		output__weight(profile, profile->idle.weight, text[0], sizeof(text[0]));
		output__weight(profile, profile->idle.whole, text[1], sizeof(text[1]));
		snprintf(notes[n++], OUTPUT_NOTE_BYTES,
			 "hidden as idle: %s of %s in %u thread%s (--idle show)", text[0], text[1],
			 profile->idle.threads, profile->idle.threads == 1 ? "" : "s");
	}
	if (profile->unbroken.threads) {
		output__weight(profile, profile->unbroken.weight, text[0], sizeof(text[0]));
		snprintf(notes[n++], OUTPUT_NOTE_BYTES,
			 "%swaited all the time: %u thread%s, %s (--idle %s)",
			 profile->unbroken.hidden ? "hidden, " : "", profile->unbroken.threads,
			 profile->unbroken.threads == 1 ? "" : "s", text[0],
			 profile->unbroken.hidden ? "show" : "auto hides them");
	}
	n += note_parked(profile, notes[n]);
	return n;
}

void output__states(const struct profile *profile, uint64_t total, uint64_t waiting,
		    uint64_t preempted, char *buf, size_t size)
{
	char text[3][32];

	*buf = '\0';
	if (!profile__mixes(profile))
		return;
	output__weight(profile, on_cpu(total, waiting, preempted), text[0], sizeof(text[0]));
	output__weight(profile, waiting, text[1], sizeof(text[1]));
	output__weight(profile, preempted, text[2], sizeof(text[2]));
	snprintf(buf, size, " %10s %10s %10s", text[0], text[1], text[2]);
}

void output__heading(const struct profile *profile, FILE *out)
{
	char summary[OUTPUT_SUMMARY_BYTES], notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t i, n_notes = output__notes(profile, notes);

	output__summary(profile, summary, sizeof(summary));
	if (profile->target && *profile->target)
		escape__line(out, "%s", profile->target);
	fprintf(out, "%s\n", summary);
	for (i = 0; i < n_notes; i++)
		fprintf(out, "%s\n", notes[i]);
	for (i = 0; i < profile->n_losses; i++)
		escape__line(out, "lost: %s: %" PRIu64, profile->losses[i].name,
			     profile->losses[i].count);
}

void output__number(FILE *out, uint64_t number)
{
	char digits[20];
	size_t i = sizeof(digits);

	do {
		digits[--i] = '0' + number % 10;
		number /= 10;
	} while (number);
	fwrite_unlocked(digits + i, 1, sizeof(digits) - i, out);
}

int output__finish(FILE *out)
{
	if (fflush(out))
		return -errno;
	return ferror(out) ? -EIO : 0;
}
