// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/view_texts.h"

#include <stdio.h>

#include "core/base/escape.h"
#include "core/cli/cli.h"

/* Prints the files whose text may differ from the program that ran. */
static void print_younger(const struct source_texts *sources)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sources->n; i++) {
		if (!sources->rows[i].is_younger)
			continue;
		first = first ?: sources->rows[i].file;
		n++;
	}
	if (n == 1)
		escape__line(
			stderr,
			"%s was changed after the process started: the code that ran may differ "
			"from this text",
			first);
	else if (n)
		escape__line(
			stderr,
			"%s and %zu more files were changed after the process started: the code "
			"that ran may differ from these texts",
			first, n - 1);
}

int view_texts__read(struct view_texts *texts, const struct profile *profile, const char *function,
		     bool code, struct output_opts *opts)
{
	int ret = function ? 0
			   : source_texts__read(&texts->sources, profile, opts->others,
						opts->n_others);

	if (!ret && code)
		ret = machine_code_texts__read(&texts->codes, profile, function);
	for (size_t i = 0; !ret && code && !function && i < opts->n_others; i++)
		ret = machine_code_texts__read(&texts->codes, opts->others[i], NULL);
	if (ret)
		return cli__fail("out of memory");
	if (function && !texts->codes.n)
		return cli__fail(
			"cannot show the code of %.200s: no sample is in a native function of this "
			"name in a file. braid report --sort total lists the functions",
			function);
	print_younger(&texts->sources);
	opts->sources = texts->sources.rows;
	opts->n_sources = texts->sources.n;
	opts->codes = texts->codes.rows;
	opts->n_codes = texts->codes.n;
	return EXIT_OK;
}

void view_texts__done(struct view_texts *texts)
{
	source_texts__done(&texts->sources);
	machine_code_texts__done(&texts->codes);
}
