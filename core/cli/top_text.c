// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/top.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/cli/columns.h"
#include "core/out/out_common.h"
#include "core/profile/function_rules.h"
#include "core/target/procfs.h"

#define WIDE 100 /* minimum columns for amounts beside percentages */

static const char *const help[] = {
	"braid top: what runs now, over the last seconds",
	"",
	"  Up Down PgUp PgDn Home End   move",
	"  Tab                          functions, threads",
	"  f                            frames: script, collapsed, all",
	"  s                            sort by the next column",
	"  1 2 3 4                      sort by script, self, total, name",
	"  /                            search names: a text or a regular expression",
	"  Esc                          end the search",
	"  p or space                   pause, continue",
	"  ? or h                       this help",
	"  q                            quit",
	"",
	"  Script   the function's own time, with the native code that it calls (Own, if all",
	"           functions are of a compiled language)",
	"  Self     its own time",
	"  Total    with all that it calls",
	"",
	"  Any key returns to the table.",
};

const char *top__help(size_t line)
{
	return line < ARRAY_SIZE(help) ? help[line] : NULL;
}

static const char *sort_name(const struct top *top)
{
	switch (top->sort) {
	case OUTPUT_SORT_SELF:
		return "self";
	case OUTPUT_SORT_TOTAL:
		return "total";
	case OUTPUT_SORT_NAME:
		return "name";
	case OUTPUT_SORT_SCRIPT:
		return "script";
	default:
		return top->rows.scripts ? "script" : "self";
	}
}

static void put_runtimes(const struct top *top, char *buf, size_t size)
{
	uint32_t n = strtab__count(top->runtimes) - 1;
	size_t len = 0;

	*buf = '\0';
	for (uint32_t i = 1; i <= n && i <= TOP_RUNTIMES_MAX; i++)
		len += snprintf(buf + len, size - len, "%s%s", i > 1 ? ", " : "; ",
				strtab__get(top->runtimes, i));
	if (n > TOP_RUNTIMES_MAX)
		snprintf(buf + len, size - len, " and %s%u more",
			 n >= TOP_RUNTIMES_COUNT_MAX ? "at least " : "", n - TOP_RUNTIMES_MAX);
}

static void put_rates(const struct top *top, char *buf, size_t size)
{
	const struct profile *profile = top->profile;
	struct live_profile_stats stats;
	double busy_s = 0;
	size_t len;

	live_profile__stats(top->live, &stats);
	if (profile && profile->unit == PROFILE_SAMPLES)
		busy_s = (double)profile->total / top->opts.frequency_hz;
	else if (profile)
		busy_s = profile->total / 1e9;
	len = snprintf(buf, size, "%s, %u Hz: %.0f samples/s, %" PRIu64 " lost, own CPU %.1f %%",
		       top->opts.events.list[0].name, top->opts.frequency_hz, top->samples_per_s,
		       top->lost + stats.evicted, top->own_cpu_percent);
	if (top->shown_s > 0)
		len += snprintf(buf + len, size - len, ", %.2f %s", busy_s / top->shown_s,
				profile && profile->unit == PROFILE_SAMPLES ? "CPUs" : "threads");
	put_runtimes(top, buf + len, size - len);
}

static void put_view(const struct top *top, char *buf, size_t size)
{
	size_t len;

	if (top->by == TOP_THREADS)
		len = snprintf(buf, size, "threads by %s",
			       top->sort == OUTPUT_SORT_NAME ? "name" : "share");
	else
		len = snprintf(buf, size, "functions by %s, frames: %s", sort_name(top),
			       frames__name(top->frames));
	if (*top->search)
		len += snprintf(buf + len, size - len, ", search: %s (%zu of %zu)", top->search,
				top->rows.n, top->n_all);
	if (top->ended)
		len += snprintf(buf + len, size - len, ", ENDED");
	else if (top->paused)
		len += snprintf(buf + len, size - len, ", PAUSED");
}

void top__header(const struct top *top, int line, char buf[TOP_TEXT_BYTES])
{
	if (line == 0)
		snprintf(buf, TOP_TEXT_BYTES, "last %.*f s of %s", top->shown_s < 9.95 ? 1 : 0,
			 top->shown_s, session__target(top->session));
	else if (line == 1)
		put_rates(top, buf, TOP_TEXT_BYTES);
	else
		put_view(top, buf, TOP_TEXT_BYTES);
	escape__printable(buf);
}

static int kind_width(const struct top *top)
{
	int width = 6;

	for (size_t i = 0; i < top->rows.n; i++)
		width = max_of(width,
			       (int)strlen(top->profile->kinds[top->rows.list[i].kind].name));
	return width;
}

/* Cuts a line for the terminal. A pipe is not cut, as its reader may support other characters. */
static void cut(const char *text, int columns, char buf[TOP_TEXT_BYTES])
{
	if (columns == INT_MAX)
		strcpy(buf, text);
	else
		columns__cut(text, columns, buf, TOP_TEXT_BYTES);
}

void top__titles(const struct top *top, int columns, char buf[TOP_TEXT_BYTES])
{
	bool amounts = columns >= WIDE;
	const char *own = code_rules__own_title(top->profile);
	char text[TOP_TEXT_BYTES];
	size_t len = 0;

	if (top->by == TOP_THREADS) {
		len = snprintf(text, sizeof(text),
			       "Share%%       Time  State        PID     TID  "
			       "Thread");
	} else {
		if (top->rows.scripts)
			len = amounts ? snprintf(text, sizeof(text), "%5s%%%*s ", own,
						 16 - (int)max_of(strlen(own), 5u), own)
				      : snprintf(text, sizeof(text), "%6s%% ", own);
		len += snprintf(text + len, sizeof(text) - len,
				amounts ? " Self%%       Self Total%%      Total  "
					: " Self%% Total%%  ");
		snprintf(text + len, sizeof(text) - len, "%-*s  Function", kind_width(top), "Kind");
	}
	cut(text, columns, buf);
}

static size_t put_share(const struct top *top, uint64_t weight, bool amounts, int width, char *buf,
			size_t size)
{
	size_t len = snprintf(buf, size, "%*.1f%% ", width,
			      top->profile->total ? weight * (100.0 / top->profile->total) : 0);
	char amount[32];

	if (!amounts)
		return len;
	output__amount(top->profile, weight, amount, sizeof(amount));
	return len + snprintf(buf + len, size - len, "%10s ", amount);
}

static const char *state_name(uint32_t tid)
{
	switch (procfs__thread_state(tid)) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "sleeping";
	case 'D':
		return "disk";
	case 'T':
	case 't':
		return "stopped";
	default:
		return "ended";
	}
}

void top__row(const struct top *top, const struct row *row, int columns, char buf[TOP_TEXT_BYTES])
{
	bool amounts = columns >= WIDE, threads = top->by == TOP_THREADS;
	char text[TOP_TEXT_BYTES], kind[sizeof(top->profile->kinds[0].name)];
	size_t len = 0;

	if (threads) {
		len = put_share(top, row->total, true, 5, text, sizeof(text));
		len += snprintf(text + len, sizeof(text) - len, " %-8s %7u %7u  ",
				state_name(row->tid), row->pid, row->tid);
	} else {
		if (top->rows.scripts)
			len = put_share(top, row->script, amounts, 6, text, sizeof(text));
		len += put_share(top, row->self, amounts, 5, text + len, sizeof(text) - len);
		len += put_share(top, row->total, amounts, 5, text + len, sizeof(text) - len);
		snprintf(kind, sizeof(kind), "%s", top->profile->kinds[row->kind].name);
		escape__printable(kind);
		len += snprintf(text + len, sizeof(text) - len, " %-*s  ", kind_width(top), kind);
	}
	snprintf(text + len, sizeof(text) - len, "%s", row->label);
	cut(text, columns, buf);
}

void top__empty(const struct top *top, char buf[TOP_TEXT_BYTES])
{
	if (!top->profile)
		snprintf(buf, TOP_TEXT_BYTES, "(the first samples come in a moment)");
	else if (*top->search && top->n_all)
		snprintf(buf, TOP_TEXT_BYTES, "(no name matches the search)");
	else if (top->opts.n_pids)
		snprintf(buf, TOP_TEXT_BYTES,
			 "(no samples: nothing ran; braid dump -p %u shows where threads wait)",
			 top->opts.pids[0]);
	else
		snprintf(buf, TOP_TEXT_BYTES, "(no samples: nothing ran)");
}

void top__message(const struct top *top, char buf[TOP_TEXT_BYTES])
{
	if (top->mode == TOP_SEARCH)
		snprintf(buf, TOP_TEXT_BYTES, "search: %s_", top->search);
	else if (top->ended)
		snprintf(buf, TOP_TEXT_BYTES,
			 "the target has ended; these are its last samples. q quits");
	else if (*top->note)
		snprintf(buf, TOP_TEXT_BYTES, "%s", top->note);
	else
		snprintf(buf, TOP_TEXT_BYTES,
			 "q quit  ? help  Tab threads  f frames  s sort  / search  p pause");
	escape__printable(buf);
}

void top__print(const struct top *top, int columns, FILE *out)
{
	size_t n = top->rows_max ? min_of(top->rows_max, top->rows.n) : top->rows.n;
	char text[TOP_TEXT_BYTES], line_text[TOP_TEXT_BYTES];

	for (int line = 0; line < TOP_HEADER_LINES; line++) {
		top__header(top, line, text);
		cut(text, columns, line_text);
		fprintf(out, "%s\n", line_text);
	}
	if (top->rows.n)
		top__titles(top, columns, text);
	else
		top__empty(top, text);
	fprintf(out, "\n%s\n", text);
	for (size_t i = 0; i < n; i++) {
		top__row(top, &top->rows.list[i], columns, text);
		fprintf(out, "%s\n", text);
	}
	if (n < top->rows.n)
		fprintf(out, "(%zu more)\n", top->rows.n - n);
}
