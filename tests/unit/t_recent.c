// SPDX-License-Identifier: GPL-2.0-or-later
/* Facts about code that UNWIND_MODE_FP cached (bpf/recent.bpf.h). With them each stack, and the
 * evidence of each of its frames, equals the result without them. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define ROUNDS	  4000
#define UNIT_NS	  (1ULL << RECENT_NS_LOG2)
#define NO_CALL	  0x90
#define RETURN(k) (CODE + 16 * (k)) /* return addresses */
#define RETURNS	  (CODE_PAGES * UNWIND_PAGE_BYTES / 16)

static struct host_sample want;
static uint64_t want_proven[PROVEN_MAX];
static bool has_cached; /* true: the last stack has cached facts */

static uint64_t seed = 1;

static uint32_t any_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

/* Publishes two mappings without tables. The first one is an image. */
static void begin(void)
{
	struct mapping_rec *image;

	reset();
	image = &sampler__mappings()->lists[0].mappings[0];
	image->n_pages = 0;
	image->is_image = 1;
	host_map__reset(&proven);
	host_map__reset(&recent);
	host__set(&cfg_unwind, UNWIND_MODE_FP);
}

static uint64_t *word_of(const void *map, uint32_t key)
{
	return bpf_map_lookup_elem(map, &key);
}

static void save(const void *map, uint64_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		words[i] = *word_of(map, i);
}

static void restore(const void *map, const uint64_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		*word_of(map, i) = words[i];
}

static struct scratch *scratch_of(void)
{
	static const uint32_t zero = 0;

	return bpf_map_lookup_elem(&scratches, &zero);
}

/* Returns true if another fact evicted a permanently proven one. The evicted fact may still be
 * cached, and then a frame has better evidence than without the cache. */
static bool has_evicted(void)
{
	struct unwind_state *u = &scratch_of()->unwind;
	uint64_t fact, found;

	for (int i = 0; i < PROVEN_MAX; i++)
		if (want_proven[i] && *word_of(&proven, i) != want_proven[i])
			return true;
	for (int i = 0; i < host.sample.head.n_native; i++) {
		u->pc = NATIVE_ADDRESS(sample__ip(i));
		u->code_at = 0;
		insn__read(u);
		fact = pointer__fact(u, SPACE);
		found = *word_of(&proven, fact >> 40 & (PROVEN_MAX - 1));
		if (found && found != fact)
			return true;
	}
	return false;
}

/* Takes the sample without cached facts, then with those of all earlier samples. Permanently proven
 * facts are the same for both. */
static bool is_same(void)
{
	static uint64_t cached[1 << RECENT_MAX_LOG2];
	bool same;

	save(&recent, cached, ARRAY_SIZE(cached));
	save(&proven, want_proven, PROVEN_MAX);
	host_map__reset(&recent);
	sampler__run(regs);
	want = host.sample;
	restore(&recent, cached, ARRAY_SIZE(cached));
	restore(&proven, want_proven, PROVEN_MAX);
	sampler__run(regs);
	same = !memcmp(&host.sample, &want, sizeof(want.head) + 16 * (size_t)want.head.n_native);
	has_cached = scratch_of()->unwind.checked_ns < host.now_ns;
	if (has_evicted())
		host_map__reset(&recent);
	return same;
}

/* --- random stacks --- */

static uint64_t any_word(void)
{
	switch (any_below(8)) {
	case 0:
		return AT(any_below(64));
	case 1:
		return JIT + 16 * any_below(sizeof(jit_code) / 16);
	case 2:
		return any_below(1000);
	default:
		return RETURN(any_below(RETURNS));
	}
}

static void change_code(char *code, size_t size)
{
	for (size_t i = 0; i < size / 16; i++)
		memset(code + 16 * i, any_below(4) ? CALL_CODE : NO_CALL, 16);
}

/* Makes a stack of frames of up to six words. Some save no pointer, and some contain leftover
 * words. */
static void any_stack(void)
{
	uint32_t at = 0, next;

	regs[UNWIND_REG_RSP] = AT(any_below(2));
	regs[UNWIND_REG_RBP] = AT(any_below(6));
	regs[UNWIND_REG_PC] = any_below(4) ? RETURN(any_below(RETURNS)) : JIT + any_below(200);
	for (int i = 0; i < 80; i++)
		stack[i] = any_below(3) ? any_below(1000) : any_word();
	for (at = (regs[UNWIND_REG_RBP] - STACK) / 8; at < 70; at = next) {
		next = at + 2 + any_below(6);
		stack[at] = AT(next);
		stack[at + 1] = any_word();
	}
}

static void test_any_stacks(void)
{
	uint64_t n_frames = 0, n_inferred = 0, n_cached = 0, n_bad = 0;

	begin();
	for (int i = 0; i < ROUNDS; i++) {
		host.now_ns += any_below(20) ? 1000 : UNIT_NS;
		if (!any_below(50)) {
			change_code(code_bytes, sizeof(code_bytes));
			publish();
			host_map__reset(&proven);
		}
		if (!any_below(5))
			change_code(jit_code, sizeof(jit_code));
		any_stack();
		n_bad += !is_same();
		n_frames += want.head.n_native;
		n_cached += has_cached;
		for (int k = 0; k < want.head.n_native; k++)
			n_inferred += NATIVE_EVIDENCE(sample__ip(k)) == EVIDENCE_INFERRED;
	}
	is_int(n_bad, 0, "%d stacks: with cached facts each is the same", ROUNDS);
	ok(n_frames > 2 * ROUNDS && n_inferred > ROUNDS / 20 && n_cached > ROUNDS / 2,
	   "of %d frames %d are inferred; %d stacks had cached facts", (int)n_frames,
	   (int)n_inferred, (int)n_cached);
}

/* --- code that changes --- */

/* Makes a stack of a leaf and two callers. */
static void set_stack(uint64_t first, uint64_t second)
{
	memset(stack, 0, sizeof(stack));
	regs[UNWIND_REG_RSP] = AT(0);
	regs[UNWIND_REG_RBP] = AT(2);
	regs[UNWIND_REG_PC] = RETURN(0);
	stack[2] = AT(6);
	stack[3] = first;
	stack[6] = AT(9);
	stack[7] = second;
}

static int frames(void)
{
	sampler__run(regs);
	return host.sample.head.n_native;
}

static void test_changed_code(void)
{
	begin();
	host.now_ns = UNIT_NS;
	set_stack(RETURN(8), RETURN(9));
	is_int(frames(), 3, "two callers in the code of an image");
	memset(code_bytes, NO_CALL, sizeof(code_bytes));
	is_int(frames(), 3, "they are cached");
	publish();
	is_int(frames(), 1, "until the mappings change");
	memset(code_bytes, CALL_CODE, sizeof(code_bytes));
	is_int(frames(), 3, "what has failed is not cached");
	memset(code_bytes, NO_CALL, sizeof(code_bytes));
	sampler__mappings()->ended++;
	is_int(frames(), 1, "until one of the mappings ends");
	sampler__mappings()->ended_read++;
	host.now_ns += UNIT_NS;
	is_int(frames(), 1, "until the time is over");
	memset(code_bytes, CALL_CODE, sizeof(code_bytes));
	memset(jit_code, CALL_CODE, sizeof(jit_code));
	set_stack(JIT + 32, JIT + 48);
	is_int(frames(), 3, "two callers in code that the process has made");
	memset(jit_code, NO_CALL, sizeof(jit_code));
	is_int(frames(), 1, "which is not cached");
}

/* --- a proof that fails first, and succeeds later --- */

static int evidence(void)
{
	sampler__run(regs);
	return NATIVE_EVIDENCE(sample__ip(2));
}

static void test_proof(void)
{
	begin();
	host.now_ns = UNIT_NS;
	set_stack(RETURN(8), RETURN(9));
	stack[5] = RETURN(20);
	is_int(evidence(), EVIDENCE_INFERRED, "a word is in the way of the proof");
	is_int(evidence(), EVIDENCE_INFERRED, "as it was");
	stack[5] = RETURN(21);
	is_int(evidence(), EVIDENCE_INFERRED, "another word at the same place");
	stack[5] = 0;
	stack[4] = RETURN(21);
	is_int(evidence(), EVIDENCE_INFERRED, "a word at another place");
	stack[4] = 0;
	is_int(evidence(), EVIDENCE_FRAME_POINTER, "no word");
	stack[5] = RETURN(20);
	is_int(evidence(), EVIDENCE_FRAME_POINTER, "proven for good");
}

int main(void)
{
	sampler__open();
	HOST_ARRAY(proven, PROVEN_MAX);
	HOST_ARRAY(recent, 1 << RECENT_MAX_LOG2);
	test_any_stacks();
	test_changed_code();
	test_proof();
	sampler__close();
	return tap__done();
}
