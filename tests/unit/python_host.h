/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_PYTHON_HOST_H
#define BRAID_TESTS_UNIT_PYTHON_HOST_H

/* The CPython walker with its maps, and the names that it sends. Include this file last. */

#include "core/base/util.h"
#include "runtimes/common/anchors.h"
#include "runtimes/python/python_codes.h"
#include "runtimes/python/python_versions.h"
#include "tests/tap.h"

#include "bpf/host/shim.h"

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_budget_permille = 0;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_locks = 0;
const volatile __u32 cfg_slots = 1, cfg_slot_first = 0, cfg_slot_end = 1;
const volatile __u32 cfg_numbers[EVENT_SLOTS_N];
__u32 last_code = 0, rest_epoch = 0;

#include "bpf/python.bpf.c"

static uint32_t space = 7; /* address space of the running thread */
static uint64_t futex;	   /* futex that the thread waits for; 0: the thread runs */

/* Native frames of the thread (pc, CFA), innermost first. The first frame uses NATIVE_BYTES of the
 * stack. */
#define NATIVE_BYTES 64
static uint64_t native[8][2];
static size_t n_native;
static bool native_cut; /* true: the outermost frames are missing */

static struct python_codes *names;
static uint32_t n_codes;		/* number of REC_CODE_OBJECT records */
static struct rec_code_object last_rec; /* last REC_CODE_OBJECT record */
static size_t last_rec_bytes;

/* Frames of the last sample with the addresses that user space computes, innermost first. */
static struct runtime_pair frames[RUNTIME_PAIRS_MAX];
static size_t n_frames;

static inline void walker__on_code(const struct rec_code_object *rec, size_t size)
{
	int rc = python_codes__add(names, rec, size);

	if (rc)
		tap__diag("code %u refused: %d", rec->code, rc);
	else
		n_codes++;
	memcpy(&last_rec, rec, size);
	last_rec_bytes = size;
}

static inline void walker__open(void)
{
	HOST_ARRAY(slot_owners, 1);
	HOST_ARRAY(scratches, 1);
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_ARRAY(python_states, 1);
	HOST_HASH(python_procs, 8);
	HOST_HASH(python_codes, 65536);
	names = python_codes__new();
	host.on_code = walker__on_code;
}

static inline void walker__close(void)
{
	python_codes__free(names);
	host__done();
}

static inline void walker__attach(const struct python_proc_rec *rec)
{
	bpf_map_update_elem(&python_procs, &space, rec, 0);
}

/* Returns the words of the last sample's frames. */
static inline const uint64_t *walker__words(void)
{
	return host.sample.words + 2 * host.sample.head.n_native;
}

static inline void push_native(uint64_t pc, uint64_t cfa)
{
	native[n_native][0] = pc;
	native[n_native++][1] = cfa;
}

/* Takes a sample of a thread with @fsbase. Its Python frames are then in host.sample and in
 * `frames`. */
static inline void walker__run(uint32_t tgid, uint64_t fsbase)
{
	struct bpf_perf_event_data ctx = { 0 };
	struct scratch *scratch = scratch__get();

	if (!scratch)
		return;
	memset(&scratch->sample, 0, sizeof(scratch->sample));
	scratch->sample.type = REC_SAMPLE;
	scratch->sample.tgid = tgid;
	scratch->sample.time_ns = host.now_ns;
	scratch->sample.condition.syscall = futex ? SYSCALL_FUTEX : NO_SYSCALL;
	scratch->sample.object = futex;
	scratch->proc.space = space;
	scratch->n_words = 0;
	scratch->sample.n_native = n_native;
	for (size_t i = 0; i < n_native; i++)
		scratch__push(scratch, native[i][0], native[i][1]);
	if (n_native && !native_cut)
		scratch->sample.flags |= SAMPLE_COMPLETE;
	scratch->interrupted[UNWIND_REG_PC] = native[0][0] & ~NATIVE_EXACT;
	scratch->interrupted[UNWIND_REG_RSP] = native[0][1] - NATIVE_BYTES;
	host.task.thread.fsbase = fsbase;
	walk_python(&ctx);
	n_frames = host.sample.head.sections[0].n;
	memcpy(frames, walker__words(), n_frames * sizeof(*frames));
	n_frames = anchors__settle(frames, n_frames);
}

static inline const char *key__name(uint64_t key)
{
	struct runtime_symbol symbol;

	return python_codes__symbolize(names, key, &symbol) == 0 ? symbol.function : "?";
}

static inline const char *key__file(uint64_t key)
{
	struct runtime_symbol symbol;

	return python_codes__symbolize(names, key, &symbol) == 0 ? symbol.file : NULL;
}

/* Returns the walker's frames, outermost first: each function is followed by ';', each shim is a
 * '|'. */
static inline const char *chain(void)
{
	static char text[1 << 16];
	size_t n = 0;

	*text = 0;
	for (int i = host.sample.head.sections[0].n; i-- > 0 && n < sizeof(text);) {
		uint64_t key = walker__words()[2 * i];

		n += key == FRAME_ANCHOR
			     ? snprintf(text + n, sizeof(text) - n, "|")
			     : snprintf(text + n, sizeof(text) - n, ";%s", key__name(key));
	}
	return text;
}

static inline uint64_t counted(enum counter counter)
{
	uint32_t key = counter;

	return *(uint64_t *)bpf_map_lookup_elem(&counters, &key);
}

#endif
