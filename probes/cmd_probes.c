// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/cli/cli.h"
#include "core/target/procfs.h"
#include "probes/probe_process.h"
#include "probes/probe_walkers.h"

#define MEASURE_S  1.0
#define CELL_BYTES 512

/* The sources of `braid record --source` besides none: rungs of the ladder that `auto` uses. */
#define RECORD_RUNGS (1U << RUNG_WALK | 1U << RUNG_USDT | 1U << RUNG_UPROBE)

struct probes_opts {
	uint32_t pid; /* 0: use the file */
	const char *file;
	bool no_attach;
};

enum { OPT_NO_ATTACH = 0x100 };

static const struct argp_option options[] = {
	{ "pid", 'p', "PID", 0, "Show the probe sites of all files whose code this process runs",
	  0 },
	{ "no-attach", OPT_NO_ATTACH, NULL, 0,
	  "Do not check whether the probes fire; requires no root for your own processes", 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct probes_opts *opts = state->input;
	uint32_t *pids = NULL;
	size_t n = 0;

	switch (key) {
	case 'p':
		cli__pids(state, arg, &pids, &n);
		opts->pid = pids[0];
		free(pids);
		if (n > 1)
			cli__misused(state, "-p takes one process here, not '%s'", arg);
		break;
	case OPT_NO_ATTACH:
		opts->no_attach = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			cli__misused(state, "only one file at a time: remove '%s'", arg);
		opts->file = cli__text(state, "FILE", arg);
		break;
	case ARGP_KEY_END:
		if (!opts->pid == !opts->file)
			cli__misused(state, "give either -p PID or a FILE");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* --- output, in the style of `braid doctor` --- */

static void print_remedy(FILE *out, const char *remedy)
{
	if (remedy)
		escape__line(out, "%25s -> %s", "", remedy);
}

static void print_ladder(FILE *out, const struct probe_image *image)
{
	static const char *const names[PROBE_RUNGS_N] = { [RUNG_WALK] = "walk",
							  [RUNG_USDT] = "probe sites",
							  [RUNG_UPROBE] = "function probes",
							  [RUNG_MAP] = "perf map",
							  [RUNG_NATIVE] = "native only" };
	enum probe_rung chosen = probe_image__choose(image, RECORD_RUNGS);

	for (enum probe_rung rung = 0; rung < PROBE_RUNGS_N; rung++) {
		const struct probe_source *source = &image->ladder[rung];

		escape__line(out, "%-8s %-16s %s%s",
			     rung == chosen  ? "chosen"
			     : source->works ? "works"
					     : "no",
			     names[rung], source->reason,
			     source->works && rung < chosen
				     ? ", but `braid record` does not use it yet"
				     : "");
		print_remedy(out, source->remedy);
	}
}

/* Returns the measured state, or else that of the tables. */
static const char *life(const struct probe_image *image, const struct probe_row *row)
{
	if (!row->want)
		return "";
	if (probe_image__is_dead(image, row->want))
		return "no";
	return row->want->life == PROBE_LIVES ||
			       probe_image__liveness(image, row->want) != LIVENESS_UNKNOWN
		       ? "yes"
		       : "only when";
}

static void print_row(FILE *out, const struct probe_image *image, const struct probe_row *row)
{
	char name[CELL_BYTES], semaphore[32] = "-", hits[32] = "";

	snprintf(name, sizeof(name), "%s:%s", row->provider, row->name);
	if (image->measured_s && row->selected)
		snprintf(hits, sizeof(hits), "%.0f", row->hits / image->measured_s);
	if (row->point.semaphore_vaddr)
		snprintf(semaphore, sizeof(semaphore), "0x%" PRIx64, row->point.semaphore_vaddr);
	escape__line(out, "%-6s  %-9s  %-40s  0x%-10" PRIx64 "  %-12s  %8s%s%s",
		     row->selected ? "yes" : "no", life(image, row), name, row->point.pc_vaddr,
		     semaphore, hits, row->arguments[0] ? "  " : "", row->arguments);
}

/* Prints the purpose of a probe below its last row. */
static void print_why(FILE *out, const struct probe_image *image, size_t i)
{
	const struct probe_row *row = &image->rows[i];
	const struct probe_want *want = row->want;

	if (!want || (i + 1 < image->n_rows && image->rows[i + 1].want == want))
		return;
	if (row->selected)
		fprintf(out, "%19s%s%s%s\n", "", want->why, want->only ? ", only " : "",
			want->only ? want->only : "");
	else
		fprintf(out, "%19snot wanted: %s%s\n", "",
			want->frames ? "its sites are better" : "sees only ",
			want->frames ? "" : want->only);
}

/* Prints the probes that exist but rarely or never fire. */
static void print_silent(FILE *out, const struct probe_image *image)
{
	for (size_t i = 0; image->edition && i < image->edition->n_wants; i++) {
		const struct probe_want *want = &image->edition->wants[i];
		const struct probe_want *partner = probe_image__partner(image, want);
		uint64_t hits = probe_image__hits(image, want);
		char fired[64];

		if (!probe_image__is_dead(image, want))
			continue;
		if (hits)
			snprintf(fired, sizeof(fired), "fired %" PRIu64 " times only", hits);
		escape__line(out, "%-8s %s:%s is there but %s, while %s did %" PRIu64 " times",
			     "SILENT", want->provider ? want->provider : "function", want->name,
			     hits ? fired : "did not fire", partner->name,
			     probe_image__hits(image, partner));
		print_remedy(out, want->remedy ? want->remedy : partner->remedy);
	}
}

static void print_image(FILE *out, const struct probe_image *image)
{
	if (image->runtime)
		escape__line(out, "%s: %s%s%s", image->file->path, image->runtime,
			     image->version[0] ? " " : "", image->version);
	else
		escape__line(out, "%s: %sno supported runtime", image->file->path,
			     image->n_rows ? "" : "no probe sites, and ");
	if (image->runtime)
		print_ladder(out, image);
	print_silent(out, image);
	if (!image->n_rows)
		return;
	fprintf(out, "%-6s  %-9s  %-40s  %-12s  %-12s  %8s  %s\n", "wanted", "live", "probe",
		"address", "semaphore", image->measured_s ? "hits/s" : "", "arguments");
	for (size_t i = 0; i < image->n_rows; i++) {
		print_row(out, image, &image->rows[i]);
		print_why(out, image, i);
	}
}

/* --- the command --- */

static int show_file(const struct probes_opts *opts, struct probe_walkers *walkers)
{
	struct probe_image *image;
	struct err err = {};

	if (probe_process__open_file(opts->file, probe_walkers__ask, walkers, false, &image, &err))
		return cli__fail("%s", err.text);
	print_image(stdout, image);
	probe_image__free(image);
	return EXIT_OK;
}

static int show_process(const struct probes_opts *opts, struct probe_walkers *walkers)
{
	struct probe_process process;
	struct procfs_info info;
	struct err err = {};
	int ret;

	if (procfs__target(opts->pid, &info, &err) ||
	    probe_process__open(info.pid, probe_walkers__ask, walkers, &process, &err))
		return cli__fail("%s", err.text);
	ret = opts->no_attach ? 0 : probe_process__measure(&process, MEASURE_S, &err);
	if (ret) {
		probe_process__done(&process);
		return cli__fail("%s. Use --no-attach to read the files only", err.text);
	}
	for (size_t i = 0; i < process.n_images; i++) {
		fputs(i ? "\n" : "", stdout);
		print_image(stdout, process.images[i]);
	}
	if (!process.n_images)
		fprintf(stdout, "PID %u: no probe sites, and no supported runtime\n", info.pid);
	for (size_t i = 0; i < process.n_unread; i++)
		cli__fail("%s", process.unread[i].text);
	ret = process.n_unread ? EXIT_FAILED : EXIT_OK;
	probe_process__done(&process);
	return ret;
}

int cmd_probes(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-p PID\nFILE",
		.doc = "Show the probe sites of a program or library, which of them braid wants, "
		       "whether they fire, and which source of frames follows for its runtime, "
		       "with "
		       "the reason for each better one that is not chosen. With -p, the wanted "
		       "sites "
		       "are counted for a second; each hit costs the process about a microsecond. "
		       "Counting needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN.\v"
		       "Examples:\n"
		       "  braid probes /usr/bin/python3\n"
		       "  sudo braid probes -p 4711\n"
		       "  braid probes --no-attach -p 4711",
	};
	struct probe_walkers walkers = { .runtimes = runtimes };
	struct probes_opts opts = {};

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (opts.file)
		privilege__drop_lent();
	return opts.pid ? show_process(&opts, &walkers) : show_file(&opts, &walkers);
}
