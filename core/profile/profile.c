// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/profile.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/sink.h"

/* Open addressing over the arrays of the profile. Slots contain the hash, so that growing needs no
 * keys and a miss rarely touches the array. Six million look-ups that end in 0.9 million nodes take
 * 0.13 s. A node costs 13 to 26 bytes of table instead of uthash's 56. */
struct slot {
	uint32_t hash;
	uint32_t place; /* index + 1; 0: free */
};

struct hash_index {
	struct slot *slots;
	size_t cap, used; /* `cap` is a power of two */
};

/* The finalizer of MurmurHash3 (public domain, Austin Appleby). */
static uint32_t hash_of(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdULL;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ULL;
	return key >> 32;
}

/* Returns the next slot with that hash, from @slot on, or the free slot for it. The loop ends, as
 * the table is never full. */
static struct slot *probe(const struct hash_index *index, struct slot *slot, uint32_t hash)
{
	const struct slot *end = index->slots + index->cap;

	while (slot->place && slot->hash != hash)
		if (++slot == end)
			slot = index->slots;
	return slot;
}

static struct slot *first_slot(const struct hash_index *index, uint32_t hash)
{
	return probe(index, &index->slots[hash & (index->cap - 1)], hash);
}

static struct slot *next_slot(const struct hash_index *index, struct slot *slot, uint32_t hash)
{
	size_t next = (slot - index->slots + 1) & (index->cap - 1);

	return probe(index, &index->slots[next], hash);
}

/* Makes room for one more entry, at a load of at most 5/8. Returns 0 or -ENOMEM. */
static int index_reserve(struct hash_index *index)
{
	struct hash_index grown = { .cap = index->cap ? index->cap * 2 : 256, .used = index->used };
	size_t i;

	if (index->used < index->cap / 8 * 5)
		return 0;
	grown.slots = calloc(grown.cap, sizeof(*grown.slots));
	if (!grown.slots)
		return -ENOMEM;
	for (i = 0; i < index->cap; i++) {
		struct slot *to, *from = &index->slots[i];

		if (!from->place)
			continue;
		to = &grown.slots[from->hash & (grown.cap - 1)];
		while (to->place)
			to = to + 1 == grown.slots + grown.cap ? grown.slots : to + 1;
		*to = *from;
	}
	free(index->slots);
	*index = grown;
	return 0;
}

/* The last stack of those with a certain frame near the root. The next stack of such a thread often
 * begins alike, so that most of its nodes need no look-up. */
struct profile_path {
	uint32_t *frames, *nodes; /* root first */
	size_t n, cap_frames, cap_nodes;
};

#define PATHS	   16
#define PATH_DEPTH 8 /* depth at which threads of different kinds differ */

static void paths_free(struct profile_path *paths)
{
	size_t i;

	for (i = 0; paths && i < PATHS; i++) {
		free(paths[i].frames);
		free(paths[i].nodes);
	}
	free(paths);
}

static void index_free(struct hash_index *index)
{
	if (index)
		free(index->slots);
	free(index);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

struct profile *profile__new(void)
{
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	profile->strings = strtab__new();
	profile->frame_index = calloc(1, sizeof(struct hash_index));
	profile->node_index = calloc(1, sizeof(struct hash_index));
	profile->paths = calloc(PATHS, sizeof(*profile->paths));
	if (!profile->strings || !profile->frame_index || !profile->node_index || !profile->paths ||
	    array__reserve(&profile->nodes, &profile->cap_nodes, 1, sizeof(*profile->nodes))) {
		profile__free(profile);
		return NULL;
	}
	memset(&profile->nodes[0], 0, sizeof(profile->nodes[0]));
	profile->n_nodes = 1;
	profile__kind(profile, "kernel", "_[k]");
	profile__kind(profile, "native", "_[n]");
	profile__kind(profile, "inlined", "_[i]");
	return profile;
}

void profile__free(struct profile *profile)
{
	size_t i;

	if (!profile)
		return;
	for (i = 0; i < profile->n_losses; i++)
		free(profile->losses[i].name);
	free(profile->losses);
	for (i = 0; i < profile->n_histograms; i++)
		free(profile->histograms[i].name);
	free(profile->histograms);
	for (i = 0; i < profile->n_threads; i++) {
		profile_thread__done(&profile->threads[i]);
	}
	free(profile->threads);
	free(profile->shares);
	free(profile->cells);
	free(profile->interpreters);
	free(profile->target);
	free(profile->started);
	free(profile->host);
	free(profile->task_name);
	free(profile->event);
	free(profile->occurrences_name);
	free(profile->unit_name);
	free(profile->other_events);
	free(profile->nameless);
	free(profile->nodes);
	free(profile->frames);
	free(profile->images);
	free(profile->short_files);
	paths_free(profile->paths);
	index_free(profile->node_index);
	index_free(profile->frame_index);
	strtab__free(profile->strings);
	free(profile);
}

int profile__measures(struct profile *profile, const char *event, const char *unit)
{
	static const struct {
		const char *name;
		enum profile_unit unit;
	} units[] = { { SINK_UNIT_SAMPLES, PROFILE_SAMPLES },
		      { SINK_UNIT_NS, PROFILE_NANOSECONDS },
		      { SINK_UNIT_BYTES, PROFILE_BYTES },
		      { SINK_UNIT_COUNT, PROFILE_COUNT } };

	free(profile->event);
	free(profile->unit_name);
	free(profile->occurrences_name);
	if (asprintf(&profile->occurrences_name, "%s occurrences", event) < 0)
		profile->occurrences_name = NULL;
	profile->event = strdup(event);
	profile->unit_name = strdup(unit);
	profile->unit = PROFILE_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name))
			profile->unit = units[i].unit;
	return profile->event && profile->unit_name && profile->occurrences_name ? 0 : -ENOMEM;
}

const char *profile__unit(const struct profile *profile)
{
	if (profile->counts_calls)
		return SINK_UNIT_NS;
	return profile->unit_name ? profile->unit_name : SINK_UNIT_SAMPLES;
}

int profile__kind(struct profile *profile, const char *name, const char *suffix)
{
	struct profile_kind kind = { 0 };
	size_t i;

	snprintf(kind.name, sizeof(kind.name), "%s", name);
	snprintf(kind.suffix, sizeof(kind.suffix), "%s", suffix);
	for (i = 0; i < profile->n_kinds; i++)
		if (!strcmp(profile->kinds[i].name, kind.name))
			return i;
	if (profile->n_kinds == KINDS_MAX)
		return -ENOSPC;
	profile->kinds[profile->n_kinds] = kind;
	return profile->n_kinds++;
}

int profile__label_kind(struct profile *profile, const char *name)
{
	int kind = profile__kind(profile, name, "");

	if (kind >= KIND_RUNTIME)
		profile->kinds[kind].label = true;
	return kind;
}

static int same_frame(const struct profile_frame *a, const struct profile_frame *b)
{
	return a->name == b->name && a->file == b->file && a->line == b->line &&
	       a->library == b->library && a->kind == b->kind && a->image == b->image &&
	       a->address == b->address && a->inferred == b->inferred;
}

int profile__frame(struct profile *profile, uint8_t kind, const char *name, const char *file,
		   uint32_t line, uint32_t *ret_frame)
{
	return profile__code(profile, kind, name, file, line, NULL, ret_frame);
}

int profile__code(struct profile *profile, uint8_t kind, const char *name, const char *file,
		  uint32_t line, const char *library, uint32_t *ret_frame)
{
	return profile__code_at(profile, &(struct profile_frame) { .line = line, .kind = kind },
				name, file, library, ret_frame);
}

int profile__code_at(struct profile *profile, const struct profile_frame *at, const char *name,
		     const char *file, const char *library, uint32_t *ret_frame)
{
	struct profile_frame frame = { .line = at->line,
				       .kind = at->kind,
				       .image = at->image,
				       .address = at->address,
				       .inferred = at->inferred };
	struct hash_index *index = profile->frame_index;
	struct slot *slot;
	uint32_t hash;

	if (frame.kind >= profile->n_kinds)
		return -EINVAL;
	if (strtab__intern(profile->strings, name, &frame.name) ||
	    strtab__intern(profile->strings, file ? file : "", &frame.file) ||
	    strtab__intern(profile->strings, library ? library : "", &frame.library) ||
	    index_reserve(index))
		return -ENOMEM;
	hash = hash_of((uint64_t)frame.name << 32 | frame.file);
	hash = hash_of((uint64_t)hash << 32 | frame.line) + frame.kind +
	       (frame.library << 6 | (uint32_t)frame.inferred << 5);
	if (frame.image)
		hash = hash_of(((uint64_t)hash << 32 | frame.image) ^ hash_of(frame.address));
	for (slot = first_slot(index, hash); slot->place; slot = next_slot(index, slot, hash))
		if (same_frame(&profile->frames[slot->place - 1], &frame))
			goto found;
	if (profile->n_frames >= UINT32_MAX - 1 ||
	    array__reserve(&profile->frames, &profile->cap_frames, profile->n_frames + 1,
			   sizeof(*profile->frames)))
		return -ENOMEM;
	frame.role = profile__role(profile, &frame);
	profile->frames[profile->n_frames++] = frame;
	*slot = (struct slot) { hash, profile->n_frames };
	index->used++;
found:
	*ret_frame = slot->place - 1;
	return 0;
}

int profile__child(struct profile *profile, uint32_t parent, uint32_t frame, uint32_t *ret_node)
{
	uint32_t hash = hash_of((uint64_t)parent << 32 | frame);
	struct hash_index *index = profile->node_index;
	struct slot *slot;

	if (index_reserve(index))
		return -ENOMEM;
	for (slot = first_slot(index, hash); slot->place; slot = next_slot(index, slot, hash)) {
		const struct profile_node *node = &profile->nodes[slot->place - 1];

		if (node->parent == parent && node->frame == frame)
			goto found;
	}
	if (profile->n_nodes >= UINT32_MAX - 1 ||
	    array__reserve(&profile->nodes, &profile->cap_nodes, profile->n_nodes + 1,
			   sizeof(*profile->nodes)))
		return -ENOMEM;
	profile->nodes[profile->n_nodes++] =
		(struct profile_node) { .parent = parent, .frame = frame };
	*slot = (struct slot) { hash, profile->n_nodes };
	index->used++;
found:
	*ret_node = slot->place - 1;
	return 0;
}

int profile__add(struct profile *profile, const uint32_t *frames, size_t n, uint64_t weight)
{
	return profile__add_calls(profile, frames, n, weight, 0);
}

/* Returns the node of the stack in *@ret_node; adds it if it is missing. */
static int stack_node(struct profile *profile, const uint32_t *frames, size_t n, uint32_t *ret_node)
{
	uint32_t near = n ? frames[min_of(n, (size_t)PATH_DEPTH) - 1] : 0, node = 0;
	struct profile_path *path = &profile->paths[near % PATHS];
	size_t i;

	for (i = 0; i < n && i < path->n && path->frames[i] == frames[i]; i++)
		node = path->nodes[i];
	if (array__reserve(&path->frames, &path->cap_frames, n, sizeof(*frames)) ||
	    array__reserve(&path->nodes, &path->cap_nodes, n, sizeof(node)))
		return -ENOMEM;
	for (path->n = i; i < n; path->n = ++i) {
		if (profile__child(profile, node, frames[i], &node))
			return -ENOMEM;
		path->frames[i] = frames[i];
		path->nodes[i] = node;
	}
	*ret_node = node;
	return 0;
}

int profile__add_calls(struct profile *profile, const uint32_t *frames, size_t n,
		       uint64_t weight_ns, uint64_t calls)
{
	return profile__add_value(profile, frames, n,
				  &(struct profile_value) { .weight = weight_ns, .calls = calls },
				  NULL);
}

void profile__add_at(struct profile *profile, uint32_t node, const struct profile_value *value)
{
	struct profile_node *end = &profile->nodes[node];

	assert(node < profile->n_nodes);
	end->self = add_saturated(end->self, value->weight);
	end->calls = add_saturated(end->calls, value->calls);
	end->waiting = add_saturated(end->waiting, value->waiting);
	end->preempted = add_saturated(end->preempted, value->preempted);
	end->samples = add_saturated(end->samples, value->samples);
	end->occurrences = add_saturated(end->occurrences, value->occurrences);
	end->waits = add_saturated(end->waits, value->waits);
	end->preemptions = add_saturated(end->preemptions, value->preemptions);
	profile->total = add_saturated(profile->total, value->weight);
	profile->waiting = add_saturated(profile->waiting, value->waiting);
	profile->preempted = add_saturated(profile->preempted, value->preempted);
}

int profile__add_value(struct profile *profile, const uint32_t *frames, size_t n,
		       const struct profile_value *value, uint32_t *ret_node)
{
	uint32_t node;

	if (stack_node(profile, frames, n, &node))
		return -ENOMEM;
	if (ret_node)
		*ret_node = node;
	profile__add_at(profile, node, value);
	return 0;
}

bool profile__mixes(const struct profile *profile)
{
	uint64_t off_cpu = add_saturated(profile->waiting, profile->preempted);

	return off_cpu && off_cpu < profile->total;
}

bool profile__has_occurrences(const struct profile *profile)
{
	return profile->occurrences && profile->occurrences_name && !profile__mixes(profile) &&
	       (profile->unit == PROFILE_NANOSECONDS || profile->unit == PROFILE_BYTES);
}

struct profile_histogram *profile__add_histogram(struct profile *profile, const char *name)
{
	char *copy = strdup(name);

	if (!copy || array__reserve(&profile->histograms, &profile->cap_histograms,
				    profile->n_histograms + 1, sizeof(*profile->histograms))) {
		free(copy);
		return NULL;
	}
	profile->histograms[profile->n_histograms] = (struct profile_histogram) { .name = copy };
	return &profile->histograms[profile->n_histograms++];
}

void profile__count(struct profile_histogram *histogram, unsigned bucket, uint64_t occurrences,
		    uint64_t value)
{
	assert(bucket <= PROFILE_BUCKETS);
	if (bucket == PROFILE_BUCKETS) {
		histogram->below = add_saturated(histogram->below, occurrences);
		return;
	}
	histogram->buckets[bucket] = add_saturated(histogram->buckets[bucket], occurrences);
	histogram->occurrences = add_saturated(histogram->occurrences, occurrences);
	histogram->value = add_saturated(histogram->value, value);
}

int profile__add_loss(struct profile *profile, const char *name, uint64_t count)
{
	char *copy;
	size_t i;

	if (!count)
		return 0;
	for (i = 0; i < profile->n_losses; i++) {
		struct profile_loss *loss = &profile->losses[i];

		if (!strcmp(loss->name, name)) {
			loss->count = add_saturated(loss->count, count);
			return 0;
		}
	}
	if (array__reserve(&profile->losses, &profile->cap_losses, profile->n_losses + 1,
			   sizeof(*profile->losses)))
		return -ENOMEM;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	profile->losses[profile->n_losses++] = (struct profile_loss) { copy, count };
	return 0;
}

void profile__mark(const struct profile *profile, const struct profile_frame *frame,
		   char mark[PROFILE_MARK_BYTES])
{
	const char *suffix = profile->kinds[frame->kind].suffix;
	size_t len = strlen(suffix);

	if (!frame->inferred)
		snprintf(mark, PROFILE_MARK_BYTES, "%s", suffix);
	else if (len && suffix[len - 1] == ']')
		snprintf(mark, PROFILE_MARK_BYTES, "%.*s?]", (int)len - 1, suffix);
	else
		snprintf(mark, PROFILE_MARK_BYTES, "%s_[?]", suffix);
}

void profile__label(const struct profile *profile, const struct profile_frame *frame, int annotate,
		    char *buf, size_t size)
{
	const char *name = strtab__get(profile->strings, frame->name);
	const char *file = strtab__get(profile->strings, frame->file);
	char suffix[PROFILE_MARK_BYTES] = "";
	/* A file that is not a path is shown whole: "(eval at /a/b.rb:1)", "<internal:kernel>". */
	const char *slash = strchr("(<", file[0]) ? NULL : strrchr(file, '/');
	const char *base = slash && slash[1] ? slash + 1 : file;
	int native = frame->kind == KIND_NATIVE || frame->kind == KIND_INLINED;

	if (slash && frame->file < profile->n_short_files)
		base = file + profile->short_files[frame->file];

	if (annotate)
		profile__mark(profile, frame, suffix);
	if (!*file || (native && !frame->line))
		snprintf(buf, size, "%s%s", name, suffix);
	else if (!frame->line)
		snprintf(buf, size, "%s (%s)%s", name, base, suffix);
	else
		snprintf(buf, size, "%s (%s:%u)%s", name, base, frame->line, suffix);
}
