// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/counted.h"

#include "core/util.h"

#define TICKS_LEAST 100 /* in user mode; with fewer its share is not known */

static const struct probe_work *work_of(const struct probe_image *image,
					const struct probe_row *row)
{
	static const struct probe_work unknown = {};
	const struct probe_catalogue *catalogue = probe_image__catalogue(image->file);

	if (!catalogue || !row->want)
		return &unknown;
	return row->want->provider ? &catalogue->site_work : &catalogue->function_work;
}

double counted__hit_ns(const struct probe_image *image, const struct probe_row *row,
		       const struct calibration *calibration)
{
	return calibration->trap[probe_point__trap(&row->point)].median +
	       prediction__work_ns(calibration, work_of(image, row), LISTENER_COUNT) / 2;
}

bool counted__sees_calls(const struct probe_image *image)
{
	if (image->ladder[RUNG_USDT].works || image->ladder[RUNG_UPROBE].works)
		return true;
	for (size_t i = 0; i < image->n_rows; i++)
		if (image->rows[i].wanted && image->rows[i].hits && image->rows[i].want &&
		    probe_image__is_live(image, image->rows[i].want))
			return true;
	return false;
}

/* Each end has its trap; the rest is told of whole calls, by their entries. */
static void add_call_cost(struct counted *counted, const struct probe_image *image,
			  const struct probe_row *row, const struct calibration *calibration)
{
	double trap_ns = calibration->trap[probe_point__trap(&row->point)].median;
	bool entry = row->want->role == PROBE_ENTRY;

	for (enum listener i = LISTENER_SHADOW; i <= LISTENER_CALLS; i++) {
		double ns = trap_ns;

		if (entry)
			ns += prediction__work_ns(calibration, work_of(image, row), i);
		counted->calls_cost_s[i] += row->hits * ns / NSEC_PER_SEC;
	}
	if (entry)
		counted->calls += row->hits;
}

static void add_hits(struct hits_seen *seen, const struct probe_image *image,
		     const struct probe_row *row, const struct calibration *calibration)
{
	enum trap_kind trap = probe_point__trap(&row->point);
	double all_ns = counted__hit_ns(image, row, calibration);
	double user_ns = calibration->trap_user[trap] * calibration->trap[trap].median +
			 work_of(image, row)->user * calibration->pair[CALIBRATION_USDT].median / 2;

	seen->hits_user_s += row->hits * user_ns / NSEC_PER_SEC;
	seen->hits_kernel_s += row->hits * (all_ns - user_ns) / NSEC_PER_SEC;
}

static double user_share(const struct mode_ticks *ticks)
{
	return ticks->user < TICKS_LEAST ? -1 : (double)ticks->user / (ticks->user + ticks->kernel);
}

void counted__of(const struct probe_process *process, const struct calibration *calibration,
		 const struct mode_ticks *plain, const struct mode_ticks *meanwhile,
		 struct counted *ret)
{
	struct hits_seen seen = { .cpu_s = process->cpu_s,
				  .user_share = user_share(meanwhile),
				  .plain_user_share = user_share(plain) };
	struct counted counted = {};

	for (size_t i = 0; i < process->n_images; i++) {
		const struct probe_image *image = process->images[i];

		for (size_t k = 0; k < image->n_rows; k++) {
			const struct probe_row *row = &image->rows[k];

			if (!row->wanted || !row->hits)
				continue;
			counted.hits += row->hits;
			add_hits(&seen, image, row, calibration);
			if (probe_image__is_live(image, row->want))
				add_call_cost(&counted, image, row, calibration);
		}
	}
	counted.own_cpu_s = prediction__own_cpu_s(&seen, &counted.unsure);
	counted.hits_cost_s = process->cpu_s - counted.own_cpu_s;
	counted.dearer = 1;
	if (counted.hits)
		counted.dearer = counted.hits_cost_s / (seen.hits_user_s + seen.hits_kernel_s);
	for (enum listener i = LISTENER_SHADOW; i <= LISTENER_CALLS; i++)
		counted.calls_cost_s[i] *= counted.dearer;
	*ret = counted;
}
