// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames that are cached from an earlier sample. After any change of the stack, the registers, the
 * tables or the thread, the result equals that of a full unwind. */
#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#define ROUNDS 300000

static uint64_t seed = 1;

static uint32_t any_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static struct unwind_rule any_rule(void)
{
	struct unwind_rule rule = RSP(8 * (1 + (int)any_below(6)));

	switch (any_below(40)) {
	case 0:
		rule = (struct unwind_rule)RBP(16);
		break;
	case 1:
		rule = (struct unwind_rule)RBX(8 * (int)any_below(4));
		break;
	case 2:
		rule = (struct unwind_rule)RULE(PLT, UNWIND_REG_RSP, 8, .cfa_add = 11);
		break;
	case 3:
		rule = (struct unwind_rule)RULE(DEREF, UNWIND_REG_RBP, -8 * (int)any_below(4),
						.cfa_add = 8);
		break;
	case 4:
		if (!any_below(3))
			rule = (struct unwind_rule) { .kind = UNWIND_NONE };
		break;
	case 5:
		if (!any_below(3))
			rule = (struct unwind_rule)RULE(SIGNAL, UNWIND_REG_RSP, 0);
		break;
	default:
		break;
	}
	rule.fp_words = any_below(3) ? 0 : -2 - (int)any_below(3);
	rule.aux_words = any_below(3) ? 0 : -2 - (int)any_below(4);
	if (!any_below(12))
		rule.fp_words = UNWIND_WORDS_LOST;
	if (!any_below(12))
		rule.aux_words = UNWIND_WORDS_LOST;
	rule.flags = !any_below(40) ? UNWIND_FP_AT_FP : !any_below(40) ? UNWIND_AUX_AT_FP : 0;
	return rule;
}

static uint64_t any_word(void)
{
	switch (any_below(16)) {
	case 0:
		return PC(CODE_PAGES - 1);
	case 1:
		return AT(any_below(STACK_WORDS));
	case 2:
		return any_below(4) ? 7 * any_below(1000) : JIT + any_below(256);
	case 3:
		return AT(any_below(STACK_WORDS)) + any_below(8);
	default:
		return PC(any_below(CODE_PAGES - 1)) + any_below(4);
	}
}

static void change_rules(void)
{
	struct unwind_rule rules[CODE_PAGES];

	for (int i = 0; i < CODE_PAGES; i++)
		rules[i] = any_rule();
	rules[CODE_PAGES - 1] = (struct unwind_rule)END;
	if (!any_below(4))
		rules[CODE_PAGES - 1].reg = UNWIND_REG_RBP;
	set_rules(rules);
	publish();
}

static void change_all(void)
{
	for (int i = 0; i < STACK_WORDS; i++)
		stack[i] = any_word();
	for (int i = 0; i < UNWIND_REGS; i++)
		regs[i] = AT(any_below(STACK_WORDS));
}

/* Changes words below the top. The stack pointer is near the top, so that stacks are deep. */
static void change_some(void)
{
	uint32_t top = any_below(8);

	if (!any_below(4))
		regs[UNWIND_REG_RSP] = AT(top);
	regs[UNWIND_REG_PC] = PC(any_below(CODE_PAGES - 1)) + any_below(16);
	if (!any_below(4))
		regs[UNWIND_REG_RBP] = AT(any_below(64));
	if (!any_below(4))
		regs[UNWIND_REG_RBX] = AT(any_below(64));
	for (uint32_t n = any_below(6); n-- > 0;)
		stack[any_below(any_below(3) ? 40 : 600)] = any_word();
	host.task.pid = TGID + (any_below(10) ? 0 : any_below(2 * CACHED_WAYS));
}

extern const volatile __u32 cfg_sent_sets; /* bpf/emit.bpf.c */

/* Returns the hash that identifies a stack. It covers all frames of the sample, whether or not
 * cached frames were copied into it. */
static struct frames_hash hash_of(bool with_cached)
{
	static const uint32_t zero = 0;
	const struct scratch *scratch = bpf_map_lookup_elem(&scratches, &zero);

	host__set(&cfg_cached, with_cached);
	host__set(&cfg_sent_sets, 1);
	sampler__run(regs);
	host__set(&cfg_sent_sets, 0);
	return scratch->content.hash;
}

static const struct unwind_rule next_word = RSP(8), next_two = RSP(16), next_four = RSP(32);

static void set_rule_of_1(struct unwind_rule rule)
{
	const struct unwind_rule rules[CODE_PAGES] = { next_word, rule,	     next_two,	next_word,
						       next_word, next_word, next_word, END };

	set_rules(rules);
	publish();
}

/* Takes two samples at word @at, without and with the cache. Returns true if their stacks are
 * equal. */
static bool is_same(uint32_t at)
{
	static struct host_sample want;

	regs[UNWIND_REG_RSP] = AT(at);
	host__set(&cfg_cached, 0);
	sampler__run(regs);
	want = host.sample;
	host__set(&cfg_cached, 1);
	sampler__run(regs);
	return host.sample.head.n_native == want.head.n_native &&
	       !memcmp(host.sample.words + want.head.n_kernel, want.words + want.head.n_kernel,
		       16 * (size_t)want.head.n_native);
}

/* The entries of frames that a sample does not unwind still contain values of an earlier sample
 * with other tables. These values must not be cached. */
static void check_numbers(void)
{
	bool same = true;

	reset();
	regs[UNWIND_REG_PC] = PC(0);
	for (int i = 0; i < 20; i++)
		stack[i] = PC(0);
	set_rule_of_1(next_four);
	stack[9] = PC(1); /* frame 6, up to word 14 */
	stack[13] = PC(2);
	stack[15] = PC(7);
	same &= is_same(4);
	set_rule_of_1(next_two);
	same &= is_same(11); /* frames 1 to 4 come from the cache */
	stack[9] = PC(0);
	stack[15] = PC(0); /* caller of frame 7 */
	stack[16] = PC(7);
	same &= is_same(7);
	stack[9] = PC(1);
	same &= is_same(9);
	ok(same, "numbers of frames that were not unwound");
}

/* If the code of a frame without a table is replaced, the frame may change. The new frame is found
 * when the cache entry expires. */
static void check_tableless(void)
{
	static const unsigned char sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	bool same = true;

	reset();
	regs[UNWIND_REG_PC] = PC(0);
	regs[UNWIND_REG_RBP] = AT(10);
	set_rule_of_1(next_two);
	stack[4] = PC(3);
	stack[5] = JIT + 16; /* from word 6 up to its CFA, word 12 */
	stack[10] = AT(30);
	stack[11] = PC(3);
	stack[12] = PC(3);
	stack[13] = PC(7);
	same &= is_same(4);
	same &= is_same(4);
	memcpy(jit_code + 16, sigreturn, sizeof(sigreturn));
	stack[6 + 5 + 15] = AT(40);
	stack[6 + 5 + 16] = PC(3);
	stack[6 + 5 + 18] = 0x33; /* cs, which a signal frame of the kernel contains */
	stack[40] = PC(7);
	host.now_ns += CACHED_NS;
	same &= is_same(4);
	ok(same && host.sample.head.n_native == 5, "code without a table that was replaced");
	regs[UNWIND_REG_RBP] = 0;
}

int main(void)
{
	static struct host_sample want;
	static const uint32_t zero = 0;
	struct scratch *scratch;
	uint64_t n_used = 0, n_bad = 0, n_partly = 0, n_differ = 0, n_complete = 0;

	sampler__open();
	check_numbers();
	check_tableless();
	reset();
	scratch = bpf_map_lookup_elem(&scratches, &zero);
	for (int i = 0; i < ROUNDS; i++) {
		if (i % 300 == 0)
			change_all();
		if (i % 100 == 0)
			change_rules();
		change_some();
		host__set(&cfg_cached, 0);
		host.now_ns = i;
		sampler__run(regs);
		want = host.sample;
		memset(&host.sample, 0, sizeof(host.sample));
		host__set(&cfg_cached, 1);
		sampler__run(regs);
		n_bad += host.sample_bytes != sizeof(want.head) + 8 * (want.head.n_kernel +
								       2 * want.head.n_native) ||
			 memcmp(&host.sample, &want, host.sample_bytes) != 0;
		n_complete += want.head.flags & SAMPLE_COMPLETE;
		n_used += scratch->cached.n_cached > 0;
		n_partly += scratch->cached.n_cached > 0 && scratch->cached.end > 0;
		n_differ += scratch->cached.first > 0;
		if (scratch->cached.n_cached) {
			struct frames_hash hash = hash_of(true), expected = hash_of(false);

			n_bad += memcmp(&hash, &expected, sizeof(hash)) != 0;
		}
	}
	is_int(n_bad, 0, "%d samples: with kept frames each is the same", ROUNDS);
	ok(n_used > ROUNDS / 40 && n_partly > ROUNDS / 40 && n_differ > ROUNDS / 200,
	   "which ended in kept ones (%d), behind others (%d), or were found to differ (%d), of %d "
	   "complete ones",
	   (int)n_used, (int)n_partly, (int)n_differ, (int)n_complete);
	sampler__close();
	return tap__done();
}
