// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe_walkers.h"

void probe_walkers__ask(void *ctx, const struct elf_file *file, struct probe_walker *ret)
{
	struct probe_walkers *walkers = ctx;
	struct runtime_image *image = NULL;

	for (int i = 0; walkers->runtimes[i]; i++) {
		const struct runtime *runtime = walkers->runtimes[i];

		if (!runtime->files || runtime->files->detect(file) <= 0 ||
		    runtime->files->prepare(file, &image, &walkers->verdict))
			continue;
		if (image)
			runtime->files->free(image);
		*ret = (struct probe_walker) {
			.runtime = runtime->name,
			.works = walkers->verdict.support != RUNTIME_REFUSED &&
				 !walkers->verdict.map_only,
			.map = walkers->verdict.map,
			.version = walkers->verdict.version,
			.reason = walkers->verdict.reason,
		};
		return;
	}
}
