// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/living_task.h"
#include "core/base/util.h"
#include "core/cli/columns.h"
#include "core/cli/running.h"
#include "core/target/images.h"
#include "core/target/threads.h"

/* `braid ps`: the processes that braid can profile. CPU time is measured while the files of the
 * processes are read, and for INTERVAL_NS at least. */

#define INTERVAL_NS   (NSEC_PER_SEC / 2)
#define RUNTIME_BYTES 128
#define COMMAND_AT    53 /* column of the command */
#define COMMAND_MIN   20 /* minimum columns for the command */

struct row {
	struct procfs_info info;     /* at the end of the interval */
	uint64_t before_ticks;	     /* CPU time at the start of the interval */
	uint64_t before_ns, time_ns; /* CLOCK_MONOTONIC at the two readings */
	size_t n_threads;
	char runtime[RUNTIME_BYTES]; /* "NAME VERSION", "native"; "?" if unreadable */
	bool unread;		     /* some file of its code is unreadable */
};

struct table {
	struct row *rows;
	size_t n, cap;
	size_t unreadable; /* rows */
};

struct ps_opts {
	const char *pattern; /* NULL: all */
	bool native;	     /* include rows without a runtime */
};

static const struct argp_option options[] = {
	{ "all", 'a', NULL, 0, "Also list processes without a runtime: native programs", 0 }, {}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ps_opts *opts = state->input;

	switch (key) {
	case 'a':
		opts->native = true;
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			cli__misused(state, "takes one PATTERN, not also '%s'", arg);
		opts->pattern = cli__text(state, "PATTERN", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static int add_row(void *ctx, const struct procfs_info *info)
{
	struct table *table = ctx;

	if (array__reserve(&table->rows, &table->cap, table->n + 1, sizeof(*table->rows)))
		return -ENOMEM;
	table->rows[table->n++] = (struct row) { .info = *info,
						 .before_ticks = info->cpu_ticks,
						 .before_ns = now_ns() };
	return 0;
}

/* Returns true if the list, separated by ", ", contains @text. */
static bool has(const char *list, const char *text)
{
	size_t len = strlen(text);
	const char *end;

	for (; *list; list = *end ? end + 2 : end) {
		end = strstr(list, ", ") ?: list + strlen(list);
		if ((size_t)(end - list) == len && !memcmp(list, text, len))
			return true;
	}
	return false;
}

/* Appends "NAME VERSION", and a note if frames of that runtime are missing. Leaves out repetitions
 * by a runtime's second file. */
static void add_runtime(struct row *row, const char *name, const struct runtime_verdict *verdict)
{
	char text[RUNTIME_BYTES];
	size_t used = strlen(row->runtime);

	snprintf(text, sizeof(text), "%s%s%s%s", name, *verdict->version ? " " : "",
		 verdict->version,
		 verdict->support == RUNTIME_REFUSED ? " (native frames only)" : "");
	if (!has(row->runtime, text))
		snprintf(row->runtime + used, sizeof(row->runtime) - used, "%s%s", used ? ", " : "",
			 text);
}

static int look_at_image(struct row *row, struct images *images,
			 const struct runtime *const *runtimes,
			 const struct procfs_mapping *mapping)
{
	struct image *image;
	int ret = images__look(images, row->info.pid, mapping, &image);

	if (ret == -ENOMEM || ret == -EINTR)
		return ret;
	row->unread |= ret && ret != -ENOEXEC && ret != -ENOTSUP;
	if (ret || !image)
		return 0; /* no file, or not a program */
	ret = images__ask_runtimes(images, image);
	for (int i = 0; !ret && runtimes[i]; i++)
		if (image->runtimes[i].detected)
			add_runtime(row, runtimes[i]->name, &image->runtimes[i].verdict);
	return ret;
}

/* Finds the runtimes of a process. @row->runtime stays "" if the process has ended. */
static int look_at_process(struct table *table, struct row *row, struct images *images,
			   const struct runtime *const *runtimes)
{
	struct procfs_mappings mappings = {};
	int ret = procfs__mappings(row->info.pid, &mappings);

	if (ret == -EACCES || ret == -EPERM) {
		snprintf(row->runtime, sizeof(row->runtime), "?");
		table->unreadable++;
		return 0;
	}
	if (ret)
		return ret == -ENOMEM || ret == -EINTR ? ret : 0;
	for (size_t i = 0; !ret && i < mappings.n; i++)
		ret = look_at_image(row, images, runtimes, &mappings.list[i]);
	procfs_mappings__done(&mappings);
	if (!row->runtime[0])
		snprintf(row->runtime, sizeof(row->runtime), row->unread ? "?" : "native");
	table->unreadable += row->runtime[0] == '?';
	return ret;
}

static int look_at_all(struct table *table, const struct runtime *const *runtimes)
{
	struct images_opts opts = { .files_fd = -1, .runtimes = runtimes, .enabled = UINT32_MAX };
	struct images *images = NULL;
	int ret = images__new(&opts, &images);

	for (size_t i = 0; !ret && i < table->n; i++)
		ret = look_at_process(table, &table->rows[i], images, runtimes);
	images__free(images);
	return ret;
}

/* Reads the CPU time of all processes again, at least INTERVAL_NS after the first reading. */
static void measure(struct table *table)
{
	uint64_t spent_ns = table->n ? now_ns() - table->rows[0].before_ns : INTERVAL_NS;
	struct procfs_info now;
	uint32_t *tids;

	if (spent_ns < INTERVAL_NS)
		usleep((INTERVAL_NS - spent_ns) / 1000);
	for (size_t i = 0; i < table->n; i++) {
		struct row *row = &table->rows[i];

		row->time_ns = now_ns();
		now = (struct procfs_info) {};
		if (procfs__usage(row->info.pid, &now) ||
		    now.start_ticks != row->info.start_ticks || state__has_ended(now.state)) {
			row->runtime[0] = '\0';
			continue;
		}
		row->info.cpu_ticks = now.cpu_ticks;
		if (!threads__list(row->info.pid, &tids, &row->n_threads))
			free(tids);
	}
}

static double percent_of(const struct row *row)
{
	double seconds = (row->time_ns - row->before_ns) / 1e9;
	double ticks = row->info.cpu_ticks > row->before_ticks
			       ? row->info.cpu_ticks - row->before_ticks
			       : 0;

	return seconds > 0 ? 100 * ticks / sysconf(_SC_CLK_TCK) / seconds : 0;
}

static int by_cpu(const void *a, const void *b)
{
	double x = percent_of(a), y = percent_of(b);

	if (x != y)
		return x > y ? -1 : 1;
	return ((const struct row *)a)->info.pid < ((const struct row *)b)->info.pid ? -1 : 1;
}

static bool is_shown(const struct ps_opts *opts, const struct row *row)
{
	if (!row->runtime[0])
		return false;
	if (opts->pattern)
		return strstr(row->info.command, opts->pattern) ||
		       strstr(row->info.name, opts->pattern) || strstr(row->runtime, opts->pattern);
	return opts->native || strcmp(row->runtime, "native") != 0;
}

/* Returns the width of the last column: the rest of a terminal's line, or the whole command. */
static int command_columns(void)
{
	struct winsize size = {};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < COMMAND_AT + COMMAND_MIN)
		return sizeof(((struct row *)0)->info.command);
	return size.ws_col - COMMAND_AT;
}

static void print_row(const struct row *row)
{
	char command[sizeof(row->info.command)];

	columns__cut(row->info.command, command_columns(), command, sizeof(command));
	escape__line(stdout, "%8u  %6.1f  %7zu  %-24s  %s", row->info.pid, percent_of(row),
		     row->n_threads, row->runtime, command);
}

static int print_table(const struct ps_opts *opts, const struct table *table)
{
	size_t n = 0, native = 0;

	for (size_t i = 0; i < table->n; i++) {
		const struct row *row = &table->rows[i];

		if (is_shown(opts, row)) {
			if (!n++)
				printf("%8s  %6s  %7s  %-24s  %s\n", "PID", "CPU %", "threads",
				       "runtime", "command");
			print_row(row);
		} else if (!strcmp(row->runtime, "native")) {
			native++;
		}
	}
	if (!opts->pattern && native)
		fprintf(stderr, "%zu native programs are not listed. braid ps -a lists them\n",
			native);
	if (table->unreadable)
		fprintf(stderr,
			"Processes marked '?' (%zu) have mappings or files that are unreadable. "
			"Run as root, or with CAP_SYS_PTRACE\n",
			table->unreadable);
	if (n)
		return EXIT_OK;
	if (opts->pattern)
		return cli__fail("no process matches '%s'. Without a pattern braid ps lists all",
				 opts->pattern);
	return cli__fail("found no process with a runtime that braid supports. braid ps -a also "
			 "lists native programs");
}

int cmd_ps(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "[PATTERN]",
		.doc = "List running processes that braid can profile: PID, CPU use during half a "
		       "second, threads, runtime and version, command. With PATTERN, list the "
		       "processes whose command, name or runtime contains it, also native "
		       "programs.\v"
		       "Examples:\n"
		       "  sudo braid ps\n"
		       "  sudo braid ps gunicorn\n"
		       "  sudo braid ps -a",
	};
	struct ps_opts opts = {};
	struct table table = {};
	int ret;

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	ret = running__each(add_row, &table);
	if (!ret)
		ret = look_at_all(&table, runtimes);
	if (ret) {
		free(table.rows);
		return cli__fail("cannot list processes: %s", strerror(-ret));
	}
	measure(&table);
	qsort(table.rows, table.n, sizeof(*table.rows), by_cpu);
	ret = print_table(&opts, &table);
	free(table.rows);
	return ret;
}
