// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/trigger.h"

#include <errno.h>
#include <stdlib.h>

#include "core/kernel/breakpoint.h"
#include "probes/attach.h"

#define FILES_MAX 8 /* files of the same name that contain the function */

struct trigger {
	struct breakpoints breakpoints;
	struct probe_links *links;
	const struct elf_file *probed[FILES_MAX]; /* a uprobe is of the file, not of a process */
	size_t n_probed;
};

/* BRAID_TEST_UPROBES lets tests run as on a machine where breakpoints do not fire. */
enum chain_type trigger__type(void)
{
	return !getenv("BRAID_TEST_UPROBES") && breakpoints__fire() ? CHAIN_TICK : CHAIN_UPROBE;
}

static int probe(struct trigger *trigger, const struct bpf_program *program,
		 const struct elf_file *file, uint64_t vaddr, struct err *err)
{
	struct probe_point point = { .file = file, .pc_vaddr = vaddr, .cookie = 1 };

	for (size_t i = 0; i < trigger->n_probed; i++)
		if (trigger->probed[i] == file)
			return 0;
	if (trigger->n_probed == FILES_MAX)
		return err__set(err, -E2BIG,
				"cannot probe the function: more than %d files have it", FILES_MAX);
	trigger->probed[trigger->n_probed++] = file;
	return probe_links__attach(trigger->links, program, -1, &point, 1, err);
}

int trigger__attach(const struct trigger_place *place, const struct kernel_half *half,
		    const struct tracker *tracker, struct trigger **ret, struct err *err)
{
	const struct bpf_program *ticks = kernel_half__trigger(half, CHAIN_TICK, 1);
	struct trigger *trigger = calloc(1, sizeof(*trigger));
	const struct mapped *mapped;
	struct process *process;
	uint64_t vaddr;
	int code = 0;

	if (trigger)
		trigger->links = probe_links__new();
	if (!trigger || !trigger->links)
		code = err__set(err, -ENOMEM, "out of memory");
	for (process = tracker__first(tracker); !code && process; process = process->hh.next) {
		mapped = process__find_symbol(process, place->file, place->symbol, &vaddr);
		if (!mapped)
			code = err__set(err, -ENOENT, "PID %u has no function %s in a file %s",
					process->pid, place->symbol, place->file);
		else if (ticks)
			code = breakpoints__attach(&trigger->breakpoints, ticks, process->pid,
						   vaddr + mapped->bias, err);
		else
			code = probe(trigger, kernel_half__trigger(half, CHAIN_UPROBE, 1),
				     mapped->image->file, vaddr, err);
	}
	if (code) {
		trigger__free(trigger);
		trigger = NULL;
	}
	*ret = trigger;
	return code;
}

void trigger__free(struct trigger *trigger)
{
	if (!trigger)
		return;
	breakpoints__detach(&trigger->breakpoints);
	probe_links__free(trigger->links);
	free(trigger);
}
