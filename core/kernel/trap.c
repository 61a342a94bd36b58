// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/trap.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"
#include "core/kernel/trap_sites.h"

#define HITS   1000
#define ROUNDS 7

const char *trap__text(enum trap_kind kind)
{
	static const char *const texts[TRAPS_N] = {
		[TRAP_NOP] = "one-byte nop (a USDT site)",
		[TRAP_NOP5] = "five-byte nop",
		[TRAP_PUSH] = "push, emulated",
		[TRAP_STEP] = "other instruction, single-stepped",
		[TRAP_RETURN] = "function's return, over its entry",
	};

	return kind < TRAPS_N ? texts[kind] : "";
}

/* Classifies the instructions that arch/x86/kernel/uprobes.c does not single-step: the one-byte
 * nop, push of a register, near calls and jumps. Depending on the version it also skips nops of
 * several bytes, at about the cost of a five-byte nop. */
enum trap_kind trap__kind(const uint8_t *code, size_t size, bool retprobe)
{
	size_t at = 0;

	if (retprobe)
		return TRAP_RETURN;
	if (size >= 1 && code[0] == 0x90)
		return TRAP_NOP;
	if (size >= 3 && code[0] == 0x0f && code[1] == 0x1f && (code[2] & 0x38) == 0)
		return TRAP_NOP5;
	if (size >= 2 && code[0] == 0x41)
		at = 1; /* REX.B: r8 to r15 */
	if (size > at && code[at] >= 0x50 && code[at] <= 0x57)
		return TRAP_PUSH;
	if (size >= 1 && (code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb))
		return TRAP_PUSH;
	return TRAP_STEP;
}

static double median(double *values, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j && values[j] < values[j - 1]; j--) {
			double swap = values[j];

			values[j] = values[j - 1];
			values[j - 1] = swap;
		}
	return values[n / 2];
}

static double ns_per_hit(trap_site_fn site)
{
	double ns[ROUNDS], start;

	site(0, 0, 0); /* the page fault, and the kernel's setup at the first hit */
	for (int round = 0; round < ROUNDS; round++) {
		start = thread_cpu_ns();
		for (int i = 0; i < HITS; i++)
			site(0, 0, 0);
		ns[round] = (thread_cpu_ns() - start) / HITS;
	}
	return median(ns, ROUNDS);
}

static int measure_site(const struct bpf_program *program, trap_site_fn site, bool retprobe,
			double *ret_ns, struct err *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = retprobe);
	double without = ns_per_hit(site);
	uint64_t vaddr, offset;
	struct bpf_link *link;

	if (trap_site__find((const void *)site, &vaddr, &offset))
		return err__set(err, -ENOENT, "cannot find braid's own file");
	link = bpf_program__attach_uprobe_opts(program, getpid(), "/proc/self/exe", offset, &opts);
	if (!link && (errno == EPERM || errno == EACCES))
		return privilege__explain(1U << PRIVILEGE_PROBES, "to attach probes", err);
	if (!link)
		return err__set(err, -errno, "cannot attach a probe to braid itself: %s",
				strerror(errno));
	*ret_ns = max_of(ns_per_hit(site) - without, 0);
	bpf_link__destroy(link);
	return 0;
}

static int measure_all(const struct bpf_program *program, uint32_t selected,
		       struct trap_costs *ret_costs, struct err *err)
{
	static const trap_site_fn sites[TRAPS_N] = { [TRAP_NOP] = trap_site_nop,
						     [TRAP_NOP5] = trap_site_nop5,
						     [TRAP_PUSH] = trap_site_push,
						     [TRAP_STEP] = trap_site_step,
						     [TRAP_RETURN] = trap_site_push };
	double entry = 0;
	int ret = 0;

	for (int kind = 0; !ret && kind < TRAPS_N; kind++)
		if (selected & 1U << kind)
			ret = measure_site(program, sites[kind], kind == TRAP_RETURN,
					   &ret_costs->ns[kind], err);
	if (ret || !(selected & 1U << TRAP_RETURN))
		return ret;
	if (selected & 1U << TRAP_PUSH)
		entry = ret_costs->ns[TRAP_PUSH];
	else
		ret = measure_site(program, trap_site_push, false, &entry, err);
	/* The kernel runs no program at the entry, but the entry still traps. */
	ret_costs->ns[TRAP_RETURN] = max_of(ret_costs->ns[TRAP_RETURN] - entry, 0);
	return ret;
}

int trap__measure(uint32_t selected, struct trap_costs *ret_costs, struct err *err)
{
	static const char *const programs[] = { "nothing", NULL }, *const maps[] = { NULL };
	struct braid_bpf *skel = NULL;
	int ret = kernel_subset__open(programs, maps, &skel, err);

	assert(selected < 1U << TRAPS_N);
	memset(ret_costs, 0, sizeof(*ret_costs));
	if (!ret)
		ret = kernel_subset__load(skel, err);
	if (!ret)
		ret = measure_all(skel->progs.nothing, selected, ret_costs, err);
	braid_bpf__destroy(skel);
	return ret;
}
