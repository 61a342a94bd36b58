// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/cached_result.h"

#include <errno.h>

#include "core/target/compiled_code.h"
#include "core/target/mapping_times.h"
#include "core/target/place.h"

/* Computes the basis that a result of the stack has now (struct result_basis). */
static int basis_of(const struct rec_sample *rec, const struct captured *captured, uint64_t n_codes,
		    bool moving, struct result_basis *ret)
{
	struct process *process = captured->process;

	*ret = (struct result_basis) { .serial = process->serial,
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

static bool is_same(const struct result_basis *a, const struct result_basis *b)
{
	return a->serial == b->serial && a->process == b->process && a->attached == b->attached &&
	       a->epoch == b->epoch && a->renamed == b->renamed && a->version == b->version &&
	       a->changed_ns == b->changed_ns && a->span_ns == b->span_ns &&
	       a->n_codes == b->n_codes && a->state == b->state && a->of_nobody == b->of_nobody;
}

int cached_result__holds(const struct cached_result *cached, const struct rec_sample *rec,
			 const struct captured *captured, uint64_t n_codes)
{
	struct result_basis now;

	/* Compare the process first: another process's maps must not be read here. */
	if (!cached->is_there || cached->basis.serial != captured->serial)
		return 0;
	if (basis_of(rec, captured, n_codes, cached->moving, &now))
		return -ENOMEM;
	return is_same(&cached->basis, &now);
}

int cached_result__store(struct cached_result *cached, const struct rec_sample *rec,
			 const struct captured *captured, uint64_t n_codes, bool moving,
			 const struct cached_result *result)
{
	*cached = *result;
	cached->is_there = false;
	/* A stack copy belongs to one sample only. */
	if (rec->flags & SAMPLE_HAS_STACK)
		return 0;
	if (basis_of(rec, captured, n_codes, moving, &cached->basis))
		return -ENOMEM;
	cached->moving = moving;
	cached->is_there = true;
	return 0;
}

void cached_result__count(const struct cached_result *result, bool tick,
			  struct capture_stats *stats)
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
