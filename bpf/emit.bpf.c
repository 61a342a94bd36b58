// SPDX-License-Identifier: GPL-2.0
#include "bpf/cached_words.bpf.h"
#include "bpf/context.bpf.h"

/* Sends a finished sample. The ring receives a whole sample once. Later samples with the same
 * content, which differ only in time, thread and value, are sent as a REC_REPEAT. It refers to the
 * stored stack by a slot and the generation of the slot's content.
 *
 * A REC_REPEAT never precedes its stack in the ring, and never follows the next stack in the same
 * slot. The ring is one queue in the order of the reservations, and two rules hold:
 *   - An entry becomes valid after ring space for the whole sample is reserved, so its users
 *     reserve later.
 *   - A writer of an entry makes its version odd before it reserves. A user of the entry reads the
 *     version again after its reservation. If the version is unchanged, the user has reserved
 *     first. Otherwise the user discards its space, and sends the whole sample.
 * A reservation takes a lock, which orders these accesses. If the ring is full, the entry remains
 * unchanged, and the stack is sent with its next sample.
 *
 * Two writers of one entry exclude each other: the second one sends its sample without storing it.
 * So does a tick that interrupts a program which is about to write. */

const volatile __u32 cfg_sent_sets = 0; /* a power of two, at most SENT_SETS; 0: disabled */
const volatile __u32 cfg_cached_ways = CACHED_WAYS;

__u32 last_context = 0;

struct sent_stack {
	__u32 version; /* odd: it is being written; else the generation of its content */
	__u32 tgid;    /* compared, too: another process's stack never matches */
	__u32 words;   /* number of words in the sample */
	__u32 used;    /* time of the last use, by sent__now; 0: the entry is empty */
	__u64 hash, check;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SENT_STACKS_MAX);
	__type(key, __u32);
	__type(value, struct sent_stack);
} sent_stacks __weak SEC(".maps");

/* Returns a coarse time, in units of about 1 ms, for the search of the least recently used
 * entry. */
static __always_inline __u32 sent__now(const struct rec_sample *sample)
{
	return (__u32)(sample->time_ns >> 20) | 1;
}

/* --- two independent hashes of a sample's content --- */

#define PAIRS_PER_STEP 4

/* Hashes the words of the sample between content.begin and content.end, in pairs from the last one
 * on. */
static long content__add_pairs(__u32 index, void *ctx)
{
	struct scratch *scratch = *(struct scratch **)ctx;
	struct frames_hash hash = scratch->content.hash;
	__u32 begin = scratch->content.begin, end = scratch->content.end, i;

	(void)index;
	for (i = 0; i < PAIRS_PER_STEP; i++) {
		if (end < begin + 2)
			break;
		end -= 2;
		frames_hash__add(&hash, scratch->words[end & (SAMPLE_WORDS_MAX - 1)],
				 scratch->words[(end + 1) & (SAMPLE_WORDS_MAX - 1)]);
	}
	if (i < PAIRS_PER_STEP && end > begin) {
		end--;
		frames_hash__add(&hash, scratch->words[end & (SAMPLE_WORDS_MAX - 1)], 0);
	}
	scratch->content.hash = hash;
	scratch->content.end = end;
	return end <= begin;
}

__noinline int content__add(struct scratch *scratch, __u32 begin, __u32 end)
{
	if (!scratch || begin >= end)
		return 0;
	scratch->content.begin = begin;
	scratch->content.end = end;
	bpf_loop((end - begin) / 2 / PAIRS_PER_STEP + 1, content__add_pairs, &scratch, 0);
	return 0;
}

/* The words of a sample's head that belong to its content. */
#define CONTENT_AT    __builtin_offsetof(struct rec_sample, tgid)
#define CONTENT_WORDS 6
_Static_assert(CONTENT_AT + 8 * CONTENT_WORDS == sizeof(struct rec_sample), "a sample's head");

static __always_inline __u32 min_u32(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

/* Hashes the content of the sample. Native frames come first, because the hash of the absent cached
 * frames is available. */
static __always_inline void content__hash(struct scratch *scratch, __u32 n_words)
{
	const __u64 *head = (const __u64 *)((const char *)&scratch->sample + CONTENT_AT);
	const struct cached_unwind_state *cached = &scratch->cached;
	__u32 native = min_u32(scratch->sample.n_kernel, n_words);
	__u32 walked = min_u32(native + 2 * scratch->sample.n_native, n_words), i;
	struct frames_hash *hash = &scratch->content.hash;

	*hash = FRAMES_HASH_BEGIN;
	if (cached->absent)
		*hash = cached->absent_hash;
	content__add(scratch, native, cached->absent ? cached->absent_at : walked);
	content__add(scratch, 0, native);
	content__add(scratch, walked, n_words);
	frames_hash__add(hash, scratch->proc.program, n_words);
	for (i = 0; i < CONTENT_WORDS; i += 2)
		frames_hash__add(hash, head[i], head[i + 1]);
}

/* --- the table --- */

struct sent_search {
	__u32 first;   /* slot of the set's first entry */
	__u32 found;   /* SENT_STACKS_MAX: none */
	__u32 version; /* version of the entry found */
	__u32 victim;  /* the entry to replace, if none was found */
	__u32 age;     /* age of the victim */
};

static __always_inline struct sent_stack *sent__at(__u32 slot)
{
	return bpf_map_lookup_elem(&sent_stacks, &slot);
}

static __always_inline void sent__find(struct sent_search *search, const struct frames_hash *hash,
				       __u32 tgid, __u32 words, __u32 now)
{
	__u32 ways = words > SENT_WORDS_SMALL ? 1 : SENT_WAYS, way;

	search->first = ((__u32)(hash->hash >> 32) & (cfg_sent_sets - 1)) * SENT_WAYS;
	search->found = SENT_STACKS_MAX;
	search->victim = search->first;
	search->age = 0;
	for (way = 0; way < SENT_WAYS; way++) {
		const struct sent_stack *entry = sent__at(search->first + way);
		__u32 version, age;

		if (!entry || way >= ways)
			return;
		version = *(volatile __u32 *)&entry->version;
		barrier();
		age = entry->used ? now - entry->used : ~0U;
		if (!(version & 1) && entry->used && entry->hash == hash->hash &&
		    entry->check == hash->check && entry->tgid == tgid && entry->words == words) {
			search->found = search->first + way;
			search->version = version;
			return;
		}
		if (age > search->age) {
			search->age = age;
			search->victim = search->first + way;
		}
	}
}

/* --- into the ring --- */

enum sent { SENT, NOT_SENT, NOT_VALID };

static __always_inline void sent__fill(struct rec_repeat *rec, const struct rec_sample *sample,
				       const struct sent_search *search)
{
	rec->type = REC_REPEAT;
	rec->slot = search->found;
	rec->time_ns = sample->time_ns;
	rec->value = sample->value;
	rec->weight = sample->weight;
	rec->total = sample->total;
	rec->generation = search->version;
	rec->tid = sample->tid;
	rec->event = sample->event;
	rec->cpu = sample->cpu;
	rec->condition = sample->condition;
}

static __always_inline int sent__is_current(const struct sent_search *search)
{
	const struct sent_stack *entry = sent__at(search->found);

	barrier(); /* after the reservation */
	return entry && *(volatile __u32 *)&entry->version == search->version;
}

static __always_inline enum sent sent__repeat(const struct rec_sample *sample,
					      const struct sent_search *search)
{
	struct rec_repeat *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec)
		return NOT_SENT;
	if (!sent__is_current(search)) {
		bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);
		return NOT_VALID;
	}
	sent__fill(rec, sample, search);
	bpf_ringbuf_submit(rec, ring__flags());
	return SENT;
}

static __always_inline enum sent sent__repeat_about(const struct rec_sample *sample,
						    const struct sent_search *search)
{
	struct rec_repeat_about *rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);

	if (!rec)
		return NOT_SENT;
	if (!sent__is_current(search)) {
		bpf_ringbuf_discard(rec, BPF_RB_NO_WAKEUP);
		return NOT_VALID;
	}
	sent__fill(&rec->repeat, sample, search);
	rec->object = sample->object;
	rec->link = sample->link;
	rec->task = sample->task;
	rec->peer = sample->peer;
	rec->context = sample->context;
	bpf_ringbuf_submit(rec, ring__flags());
	return SENT;
}

/* Sends the whole sample, which includes its slot and generation. */
static __always_inline enum sent sample__send(struct scratch *scratch, __u32 n_words)
{
	cached__complete(scratch);
	/* Without this the compiler removes the mask that Linux 6.1's verifier requires. */
	barrier_var(n_words);
	n_words &= SAMPLE_WORDS_MAX - 1;
	return bpf_ringbuf_output(&ring, &scratch->sample, sizeof(scratch->sample) + n_words * 8,
				  ring__flags())
		       ? NOT_SENT
		       : SENT;
}

/* Sends the whole sample, and stores it in the place of the least recently used one. */
static __always_inline enum sent sample__keep(struct scratch *scratch, __u32 n_words,
					      const struct sent_search *search, __u32 now)
{
	struct sent_stack *entry = sent__at(search->victim);
	const struct frames_hash *hash = &scratch->content.hash;
	__u32 version = entry ? *(volatile __u32 *)&entry->version : 1;
	enum sent sent;

	if (version & 1 || !__sync_bool_compare_and_swap(&entry->version, version, version + 1))
		return sample__send(scratch, n_words); /* another program writes there */
	scratch->sample.slot = search->victim;
	scratch->sample.generation = version + 2;
	sent = sample__send(scratch, n_words);
	if (sent == SENT) {
		if (entry->used)
			count(COUNT_EVICTED);
		entry->tgid = scratch->sample.tgid;
		entry->words = n_words;
		entry->hash = hash->hash;
		entry->check = hash->check;
		entry->used = now;
		version += 2;
	} /* else the entry remains unchanged */
	barrier();
	*(volatile __u32 *)&entry->version = version;
	return sent;
}

static __always_inline enum sent sample__send_once(struct scratch *scratch, __u32 n_words)
{
	const struct rec_sample *sample = &scratch->sample;
	__u32 now = sent__now(sample);
	struct sent_search search;
	struct sent_stack *entry;
	enum sent sent;

	content__hash(scratch, n_words);
	sent__find(&search, &scratch->content.hash, sample->tgid, n_words, now);
	if (search.found == SENT_STACKS_MAX)
		return sample__keep(scratch, n_words, &search, now);
	sent = sample->object || sample->link || sample->task || sample->peer || sample->context
		       ? sent__repeat_about(sample, &search)
		       : sent__repeat(sample, &search);
	if (sent == NOT_VALID)
		return sample__send(scratch, n_words);
	entry = sent__at(search.found);
	if (entry && sent == SENT)
		entry->used = now;
	if (sent == SENT)
		count(COUNT_REPEATED);
	return sent;
}

/* Adds the weight of a sample that could not be sent to the rest of its event. If the value of
 * block I/O is pending, the total is in bytes, and comes from the sample's object. Other pending
 * samples are allocations. They are not added, because it is unknown whether they remain
 * outstanding. */
static __always_inline void sample__lose(const struct rec_sample *sample)
{
	__u64 total = sample->total;

	count(COUNT_RING_FULL);
	if (sample->flags & SAMPLE_PENDING) {
		if (sample->event != cfg_numbers[EVENT_BLOCK_IO])
			return;
		total = sample->object * sample->weight;
	}
	rest__return(sample->event, sample->weight, total);
}

/* Sends the values of the sample, under the number of its context if it has one. */
static __noinline int values__send(struct scratch *scratch)
{
	struct rec_values *to;
	__u32 number, size;

	if (!scratch)
		return 0;
	to = &scratch->values;
	number = scratch->sample.context ?: __sync_fetch_and_add(&last_context, 1) + 1;
	to->type = REC_VALUES;
	to->tgid = scratch->sample.tgid;
	to->number = number;
	size = to->n_texts;
	barrier_var(size);
	if (size > VALUES_MAX)
		size = VALUES_MAX;
	size = REC_VALUES_HEADER + size * VALUE_TEXT_BYTES;
	if (bpf_ringbuf_output(&ring, to, size, BPF_RB_NO_WAKEUP))
		count(COUNT_VALUES_LOST);
	else
		scratch->sample.context = number;
	return 0;
}

__noinline int scratch__emit(struct scratch *scratch)
{
	enum sent sent;
	__u32 n_words;

	if (!scratch)
		return 0;
	if (scratch->limited)
		budget__spend(scratch->sample.event, scratch->sample.time_ns);
	if (scratch->proc.walkers & WALKERS_CONTEXT && scratch->has_regs)
		context__send(scratch);
	if (scratch->has_values)
		values__send(scratch);
	n_words = scratch->n_words;
	if (n_words >= SAMPLE_WORDS_MAX)
		n_words = SAMPLE_WORDS_MAX - 1;
	/* A sample with a stack copy differs from all others. */
	if (!cfg_sent_sets || scratch->sample.flags & SAMPLE_HAS_STACK ||
	    n_words == SAMPLE_WORDS_MAX - 1)
		sent = sample__send(scratch, n_words);
	else
		sent = sample__send_once(scratch, n_words);
	if (sent != SENT)
		sample__lose(&scratch->sample);
	slot__release();
	return 0;
}
