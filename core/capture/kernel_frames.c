// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/kernel_frames.h"

#include <string.h>

#include "core/base/util.h"

struct kernel_texts kernel_texts__of(const struct kallsyms *kallsyms)
{
	struct kernel_texts texts = {};

	if (!kallsyms)
		return texts;
	texts.sched_start = kallsyms__address(kallsyms, "__sched_text_start");
	texts.sched_end = kallsyms__address(kallsyms, "__sched_text_end");
	texts.entry_start = kallsyms__address(kallsyms, "__irqentry_text_start");
	texts.entry_end = kallsyms__address(kallsyms, "__irqentry_text_end");
	return texts;
}

static bool is_sched(const struct kernel_texts *texts, uint64_t address)
{
	return address >= texts->sched_start && address < texts->sched_end;
}

static bool is_entry(const struct kernel_texts *texts, uint64_t address)
{
	return address >= texts->entry_start && address < texts->entry_end;
}

static bool is_waiting(const struct rec_sample *rec)
{
	return rec->condition.state == STATE_PREEMPTED || rec->condition.state == STATE_BLOCKED ||
	       rec->condition.state == STATE_STOPPED;
}

static bool is_interrupt(const struct rec_sample *rec)
{
	return !rec->tid && !strcmp(rec->comm, INTERRUPT_NAME);
}

bool kernel_frames__are_cut(const struct rec_sample *rec)
{
	return is_waiting(rec) || is_interrupt(rec);
}

uint16_t kernel_frames__of(const struct kernel_texts *texts, const struct rec_sample *rec,
			   const uint64_t *words, uint64_t *ret)
{
	bool waits = is_waiting(rec), interrupts = is_interrupt(rec);
	uint16_t n = min_of(rec->n_kernel, (uint16_t)(KERNEL_FRAMES_MAX + 1)), i = 0, n_ret = 0;

	if (waits && n > 1 && is_sched(texts, words[1]))
		i = !is_sched(texts, words[0]); /* the tracepoint's own frame */
	for (; i < n; i++) {
		if (waits && is_sched(texts, words[i]))
			continue;
		ret[n_ret++] = words[i];
		if (interrupts && is_entry(texts, words[i]))
			break;
	}
	return n_ret;
}
