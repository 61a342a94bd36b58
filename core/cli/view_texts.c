// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_texts.h"

#include "core/cli/cli.h"

int view_texts__read(struct view_texts *texts, const struct profile *profile, const char *function,
		     struct output_opts *opts)
{
	int ret = function ? 0 : source_texts__read(&texts->sources, profile);

	if (!ret)
		ret = code_texts__read(&texts->codes, profile, function);
	for (size_t i = 0; !ret && !function && i < opts->n_others; i++)
		ret = code_texts__read(&texts->codes, opts->others[i], NULL);
	if (ret)
		return cli__fail("out of memory");
	if (function && !texts->codes.n)
		return cli__fail(
			"no sample is in a native function %.200s that is in a file: braid "
			"report --sort total shows the names that there are",
			function);
	opts->sources = texts->sources.rows;
	opts->n_sources = texts->sources.n;
	opts->codes = texts->codes.rows;
	opts->n_codes = texts->codes.n;
	return EXIT_OK;
}

void view_texts__done(struct view_texts *texts)
{
	source_texts__done(&texts->sources);
	code_texts__done(&texts->codes);
}
