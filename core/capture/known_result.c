// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/known_result.h"

#include <errno.h>

#include "core/target/compiled_code.h"
#include "core/target/mapping_times.h"
#include "core/target/place.h"

/* Computes the present basis. */
static int basis_of(const struct rec_sample *rec, const struct captured *captured, uint64_t n_codes,
		    bool moving, struct known_basis *ret)
{
	struct process *process = captured->process;

	*ret = (struct known_basis) { .serial = process->serial,
				      .process = captured->id,
				      .attached = process__attached(process),
				      .changed_ns = process->changed_ns,
				      .span_ns = mapping_times__span(process, rec->time_ns),
				      .n_codes = rec->n_sections ? n_codes : 0,
				      .state = rec->condition.state,
				      .of_nobody = !rec->tid };
	if (moving && compiled_code__version(process, rec->time_ns, &ret->version))
		return -ENOMEM;
	ret->epoch = places__epoch(process);
	ret->renamed = moving ? places__renamed(process) : 0;
	return 0;
}

static bool is_same(const struct known_basis *a, const struct known_basis *b)
{
	return a->serial == b->serial && a->process == b->process && a->attached == b->attached &&
	       a->epoch == b->epoch && a->renamed == b->renamed && a->version == b->version &&
	       a->changed_ns == b->changed_ns && a->span_ns == b->span_ns &&
	       a->n_codes == b->n_codes && a->state == b->state && a->of_nobody == b->of_nobody;
}

int known_result__holds(const struct known_result *known, const struct rec_sample *rec,
			const struct captured *captured, uint64_t n_codes)
{
	struct known_basis now;

	/* Compare the process first: another process's maps must not be read here. */
	if (!known->is_there || known->basis.serial != captured->serial)
		return 0;
	if (basis_of(rec, captured, n_codes, known->moving, &now))
		return -ENOMEM;
	return is_same(&known->basis, &now);
}

int known_result__keep(struct known_result *known, const struct rec_sample *rec,
		       const struct captured *captured, uint64_t n_codes, bool moving,
		       const struct known_result *result)
{
	*known = *result;
	known->is_there = false;
	/* A stack copy belongs to one sample only. */
	if (rec->flags & SAMPLE_HAS_STACK)
		return 0;
	if (basis_of(rec, captured, n_codes, moving, &known->basis))
		return -ENOMEM;
	known->moving = moving;
	known->is_there = true;
	return 0;
}

void known_result__count(const struct known_result *result, bool tick, struct capture_stats *stats)
{
	stats->complete += !!(result->flags & SAMPLE_COMPLETE);
	stats->kernel_frames += result->kernel_frames;
	stats->native_frames += result->native_frames;
	stats->inferred_frames += result->inferred_frames;
	stats->inferred_runtimes += result->inferred_runtimes;
	stats->stale += result->stale;
	stats->unplaced += result->unplaced;
	stats->early += result->missing;
	for (size_t i = 0; i < result->n_sections; i++) {
		stats->runtime_frames[result->sections[i].runtime] += result->sections[i].frames;
		stats->runtime_ticks[result->sections[i].runtime] += tick;
	}
}
