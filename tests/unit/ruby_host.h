/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_RUBY_HOST_H
#define BRAID_TESTS_UNIT_RUBY_HOST_H

/* The CRuby walker with its maps, and the names that it sends. Include this file last. */

#include "core/base/util.h"
#include "runtimes/ruby/ruby_codes.h"
#include "runtimes/ruby/ruby_versions.h"
#include "tests/tap.h"

#include "bpf/host/shim.h"

const volatile __u32 cfg_ring_wakeup_bytes = 1 << 20;
const volatile __u32 cfg_budget_permille = 0;
const volatile __u32 cfg_pidns_ino = 0;
const volatile __u32 cfg_locks = 0;
const volatile __u32 cfg_slots = 1, cfg_slot_first = 0, cfg_slot_end = 1;
const volatile __u32 cfg_numbers[EVENT_SLOTS_N];
__u32 last_code, rest_epoch;

#include "bpf/ruby.bpf.c"

static uint32_t space = 7; /* address space of the running thread */
static uint64_t futex;	   /* futex that the thread waits for; 0: the thread runs */
static struct ruby_codes *names;
static uint32_t n_codes;		/* number of REC_CODE_OBJECT records */
static struct rec_code_object last_rec; /* last REC_CODE_OBJECT record */
static struct ruby_code_table last_table;

static inline void walker__on_code(const struct rec_code_object *rec, size_t size)
{
	int rc = ruby_codes__add(names, rec, size);

	if (rc)
		tap__diag("code %u refused: %d", rec->code, rc);
	else
		n_codes++;
	memcpy(&last_rec, rec, min_of(size, sizeof(last_rec)));
	memcpy(&last_table, last_rec.table, sizeof(last_table));
}

static inline void walker__open(void)
{
	HOST_ARRAY(slot_owners, 1);
	HOST_ARRAY(scratches, 1);
	HOST_ARRAY(counters, COUNTERS_N);
	HOST_ARRAY(ruby_states, 1);
	HOST_HASH(ruby_procs, 8);
	HOST_HASH(ruby_codes, 65536);
	names = ruby_codes__new();
	host.on_code = walker__on_code;
}

static inline void walker__close(void)
{
	ruby_codes__free(names);
	host__done();
}

static inline void walker__attach(const struct ruby_proc_rec *rec)
{
	bpf_map_update_elem(&ruby_procs, &space, rec, 0);
}

/* Native frames of the next samples, innermost first. They are stored behind the words that the
 * walker writes. */
#define NATIVES_AT 4096
static __u64 native_ips[8], native_cfas[8];
static __u32 n_native_ips;
static __u64 native_rsp;   /* stack pointer of the thread */
static __u32 native_stop;  /* reason why the native frames end */
static __u32 native_flags; /* SAMPLE_COMPLETE: the outermost frame is included */

/* Takes a sample of a thread with @fsbase. Its Ruby frames are then in host.sample. */
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
	scratch->sample.n_kernel = NATIVES_AT;
	scratch->sample.n_native = n_native_ips;
	scratch->sample.stop = native_stop;
	scratch->interrupted[UNWIND_REG_RSP] = native_rsp;
	scratch->sample.flags = native_flags;
	for (__u32 i = 0; i < n_native_ips; i++) {
		scratch->words[NATIVES_AT + 2 * i] = native_ips[i];
		scratch->words[NATIVES_AT + 2 * i + 1] = native_cfas[i];
	}
	host.task.thread.fsbase = fsbase;
	walk_ruby(&ctx);
}

/* Returns the key of pair @n, counted from the innermost one. */
static inline uint64_t sample__key(size_t n)
{
	return n < host.sample.head.sections[0].n ? host.sample.words[2 * n] : 0;
}

static inline const char *key__name(uint64_t key)
{
	struct runtime_symbol symbol;

	return ruby_codes__symbolize(names, key, &symbol) == 0 ? symbol.function : "?";
}

/* Returns the walker's functions, outermost first, each followed by ';'. A '|' marks the start of a
 * loop; a '/' follows the frames that are apart. */
static inline const char *chain(void)
{
	static char text[1 << 16];
	size_t n = 0;

	*text = 0;
	for (int i = host.sample.head.sections[0].n; i-- > 0 && n < sizeof(text);) {
		uint64_t key = host.sample.words[2 * i];

		n += key == FRAME_LOOP_END ? snprintf(text + n, sizeof(text) - n, "|")
		     : key == FRAME_APART
			     ? snprintf(text + n, sizeof(text) - n, "/")
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
