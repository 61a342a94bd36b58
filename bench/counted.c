// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/counted.h"

#include "core/util.h"

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

/* Do this probe and the one at the call's other end both fire, as far as is known? */
static bool is_paired(const struct probe_image *image, const struct probe_want *want)
{
	const struct probe_want *partner = want ? probe_image__partner(image, want) : NULL;

	return partner && !probe_image__silent(image, want) && !probe_image__silent(image, partner);
}

bool counted__sees_calls(const struct probe_image *image)
{
	if (image->ladder[RUNG_USDT].works || image->ladder[RUNG_UPROBE].works)
		return true;
	for (size_t i = 0; i < image->n_rows; i++)
		if (image->rows[i].wanted && image->rows[i].hits &&
		    is_paired(image, image->rows[i].want))
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

void counted__of(const struct probe_process *process, const struct calibration *calibration,
		 struct counted *ret)
{
	struct counted counted = {};

	for (size_t i = 0; i < process->n_images; i++) {
		const struct probe_image *image = process->images[i];

		for (size_t k = 0; k < image->n_rows; k++) {
			const struct probe_row *row = &image->rows[k];

			if (!row->wanted || !row->hits)
				continue;
			counted.hits += row->hits;
			counted.hits_cost_s +=
				row->hits * counted__hit_ns(image, row, calibration) / NSEC_PER_SEC;
			if (is_paired(image, row->want))
				add_call_cost(&counted, image, row, calibration);
		}
	}
	counted.own_cpu_s =
		prediction__own_cpu_s(process->cpu_s, counted.hits_cost_s, &counted.unsure);
	*ret = counted;
}
