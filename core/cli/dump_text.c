// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/dump_print.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/syscalls.h"
#include "core/base/util.h"
#include "core/profile/profile.h"

#define LINE_BYTES 1024

/* a line that grows up to its size; the rest is left out */
struct line {
	char text[LINE_BYTES];
	size_t n;
};

static void __attribute__((format(printf, 2, 3))) add(struct line *line, const char *fmt, ...)
{
	size_t room = sizeof(line->text) - line->n;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line->text + line->n, room, fmt, args);
	va_end(args);
	if (n > 0)
		line->n += min_of((size_t)n, room - 1);
}

const struct dump_thread *dump__find(const struct dump_process *process, uint32_t tid)
{
	for (size_t i = 0; tid && i < process->n_threads; i++)
		if (process->threads[i].tid == tid)
			return &process->threads[i];
	return NULL;
}

const char *dump__kind(const struct dump_frame *frame, const struct runtime *const *runtimes)
{
	if (frame->kind >= KIND_RUNTIME)
		return runtimes[frame->kind - KIND_RUNTIME]->name;
	return frame->kind == KIND_KERNEL    ? "kernel"
	       : frame->kind == KIND_INLINED ? "inlined"
					     : "native";
}

/* Adds "12 ms", "2.3 s" or "3 h 25 min". */
static void add_time(struct line *line, uint64_t ns)
{
	double s = ns / 1e9;

	if (s < 0.001)
		add(line, "%.0f us", s * 1e6);
	else if (s < 1)
		add(line, "%.0f ms", s * 1e3);
	else if (s < 100)
		add(line, "%.1f s", s);
	else if (s < 3600)
		add(line, "%d min %d s", (int)s / 60, (int)s % 60);
	else
		add(line, "%.0f h %d min", s / 3600 - 0.5, (int)(s / 60) % 60);
}

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
		return "stopped by a signal";
	case 't':
		return "stopped by a debugger";
	default:
		return "sleeping";
	}
}

/* Adds "a mutex at 0x55d0e0 (held by 12 "two")". */
static void add_lock(struct line *line, const struct dump_process *process,
		     const struct dump_thread *thread)
{
	const struct dump_thread *holder = dump__find(process, thread->holder);

	add(line, "%s", thread->lock_name);
	if (thread->lock_address)
		add(line, " at 0x%llx", (unsigned long long)thread->lock_address);
	if (holder)
		add(line, " (held by %u \"%s\")", holder->tid, holder->name);
	else if (thread->holder)
		add(line, " (held by %u)", thread->holder);
}

static const char *signal_name(int number)
{
	static char text[32];
	const char *name = sigabbrev_np(number);

	if (name)
		snprintf(text, sizeof(text), "SIG%s", name);
	else
		snprintf(text, sizeof(text), "signal %d", number);
	return text;
}

/* Adds "sleeping in futex", the part of a head that threads with equal stacks share. */
static void add_state(struct line *line, const struct dump_thread *thread)
{
	const char *call = thread->call >= 0 ? syscall__name(thread->call) : NULL;
	bool waits = !thread->state || !strchr("RTt", thread->state);

	if (thread->state)
		add(line, " %s", state_text(thread->state));
	if (thread->signal)
		add(line, " got %s", signal_name(thread->signal));
	if (waits && thread->call >= 0)
		call ? add(line, " in %s", call) : add(line, " in system call %d", thread->call);
}

static void add_relation(struct line *line, const struct dump_process *process,
			 const struct dump_thread *thread, const char *waits)
{
	if (thread->lock == LOCK_HELD && thread->lock_name)
		add(line, ", holds %s", thread->lock_name);
	if (thread->lock == LOCK_WAITED && thread->lock_name) {
		add(line, ", %s ", waits);
		add_lock(line, process, thread);
	}
}

static void add_waited(struct line *line, uint64_t least_ns, uint64_t most_ns)
{
	struct line least = {}, most = {};

	if (!most_ns)
		return;
	add_time(&least, least_ns);
	add_time(&most, most_ns);
	if (least_ns && strcmp(least.text, most.text) != 0)
		add(line, " (%s to %s)", least.text, most.text);
	else
		add(line, " (%s)", most.text);
}

static void print_head(FILE *out, const struct dump_process *process,
		       const struct dump_thread *thread)
{
	struct line line = {};

	add(&line, "Thread %u \"%s\"", thread->tid, thread->name);
	add_state(&line, thread);
	if (thread->state != 'R')
		add_waited(&line, thread->waited_ns, thread->waited_ns);
	add_relation(&line, process, thread, "waits for");
	escape__line(out, "%s", line.text);
}

/* Prints a frame. Script frames, which users have written, are marked. */
static void print_frame(FILE *out, const struct dump_frame *frame,
			const struct runtime *const *runtimes)
{
	bool script = frame->kind >= KIND_RUNTIME;
	struct line line = {};

	add(&line, "  %s %-8s%s", script ? ">" : " ", dump__kind(frame, runtimes), frame->function);
	if (frame->file[0] && frame->line)
		add(&line, " (%s:%u)", frame->file, frame->line);
	else if (frame->file[0] && script)
		add(&line, " (%s)", frame->file);
	escape__line(out, "%s", line.text);
}

#define RUN_MIN 3 /* minimum number of frames that one line replaces */

/* Returns the number of consecutive frames from @first on that are all kernel frames, or all native
 * frames (functions inlined into native functions included). */
static size_t run_length(const struct dump_thread *thread, size_t first)
{
	bool kernel = thread->frames[first].kind == KIND_KERNEL;
	size_t n = 0;

	while (first + n < thread->n_frames && thread->frames[first + n].kind < KIND_RUNTIME &&
	       (thread->frames[first + n].kind == KIND_KERNEL) == kernel)
		n++;
	return n;
}

static bool is_caller(const struct dump_frame *frame, const struct runtime *runtime)
{
	for (size_t i = 0; runtime->callers && runtime->callers[i]; i++)
		if (!fnmatch(runtime->callers[i], frame->function, FNM_EXTMATCH))
			return true;
	return false;
}

/* Returns the function that the script called, in a run inside a frame of the runtime. Returns the
 * outermost function if that one is not found, or for another run. */
static const struct dump_frame *called(const struct dump_frame *inner, size_t n,
				       const struct runtime *runtime)
{
	for (size_t i = n; runtime && i > 1; i--)
		if (is_caller(&inner[i - 1], runtime) && !is_caller(&inner[i - 2], runtime))
			return &inner[i - 2];
	return &inner[n - 1];
}

/* Prints the innermost function of a run, and the one that was called: the names between are rarely
 * relevant. */
static void print_run(FILE *out, const struct dump_frame *inner, size_t n,
		      const struct runtime *runtime)
{
	const struct dump_frame *outer = called(inner, n, runtime);
	const char *kind = inner->kind == KIND_KERNEL ? "kernel" : "native";

	if (outer == inner)
		escape__line(out, "    %-8s%s (%zu frames)", kind, inner->function, n);
	else
		escape__line(out, "    %-8s%s ... %s (%zu frames)", kind, inner->function,
			     outer->function, n);
}

static void print_stack(FILE *out, const struct dump_thread *thread,
			const struct runtime *const *runtimes, enum profile_frames frames)
{
	bool scripts = false;
	size_t i, n;

	for (i = 0; i < thread->n_frames; i++)
		scripts |= thread->frames[i].kind >= KIND_RUNTIME;
	for (i = 0; i < thread->n_frames; i += n) {
		n = scripts && frames != FRAMES_ALL ? run_length(thread, i) : 0;
		if (n && frames == FRAMES_SCRIPT)
			continue;
		if (n >= RUN_MIN) {
			print_run(out, &thread->frames[i], n,
				  i + n < thread->n_frames &&
						  thread->frames[i + n].kind >= KIND_RUNTIME
					  ? runtimes[thread->frames[i + n].kind - KIND_RUNTIME]
					  : NULL);
		} else {
			n = 1;
			print_frame(out, &thread->frames[i], runtimes);
		}
	}
}

/* Prints the frames, and notes that limit their reliability. */
static void print_body(FILE *out, const struct dump_thread *thread,
		       const struct runtime *const *runtimes, enum profile_frames frames)
{
	print_stack(out, thread, runtimes, frames);
	if (thread->way >= DUMP_TWICE)
		escape__line(out, "    [the thread ran while it was read%s%s%s]",
			     thread->why_cut ? ", as " : "", thread->why_cut ? thread->why_cut : "",
			     thread->way == DUMP_RUNNING
				     ? ": these frames may be from several moments"
				     : "");
	else if (!thread->complete)
		escape__line(out, "    [the callers of this frame are unknown]");
}

/* --- threads with equal stacks --- */

#define NAMES_SHOWN 8 /* names of a group's threads */

/* the text of a thread, which determines its group */
struct shown_thread {
	char *key;  /* state, lock and stack, as shown; NULL: the thread is shown alone */
	char *body; /* the part of @key with the stack */
	bool done;  /* printed with another thread */
};

/* Returns 0 or -ENOMEM. */
static int make_key(struct shown_thread *ret, const struct dump_process *process,
		    const struct dump_thread *thread, const struct runtime *const *runtimes,
		    enum profile_frames frames)
{
	struct line line = {};
	size_t size;
	FILE *text = open_memstream(&ret->key, &size);
	long start;

	if (!text)
		return -ENOMEM;
	add_state(&line, thread);
	add_relation(&line, process, thread, "each waits for");
	fprintf(text, "%s%c", line.text, '\n');
	start = ftell(text);
	print_body(text, thread, runtimes, frames);
	if (fclose(text) || start < 0)
		return -ENOMEM;
	ret->body = ret->key + start;
	return 0;
}

static void add_names(struct line *line, const struct dump_process *process, const size_t *members,
		      size_t n)
{
	for (size_t i = 0; i < n && i < NAMES_SHOWN; i++)
		add(line, "%s%u \"%s\"", i ? ", " : "", process->threads[members[i]].tid,
		    process->threads[members[i]].name);
	if (n > NAMES_SHOWN)
		add(line, " and %zu more", n - NAMES_SHOWN);
}

static void print_group(FILE *out, const struct dump_process *process, const size_t *members,
			size_t n, const struct shown_thread *shown)
{
	const struct dump_thread *first = &process->threads[members[0]];
	uint64_t least = UINT64_MAX, most = 0;
	struct line line = {};

	for (size_t i = 0; i < n; i++) {
		least = min_of(least, process->threads[members[i]].waited_ns);
		most = max_of(most, process->threads[members[i]].waited_ns);
	}
	add(&line, "%zu threads", n);
	add_state(&line, first);
	if (first->state != 'R')
		add_waited(&line, least, most);
	add_relation(&line, process, first, "each waits for");
	add(&line, ": ");
	add_names(&line, process, members, n);
	escape__line(out, "%s", line.text);
	fputs(shown[members[0]].body, out);
}

/* Prints the thread, or the group that it is the first of. */
static void print_thread(FILE *out, const struct dump_process *process, size_t index,
			 struct shown_thread *shown, size_t *members)
{
	size_t n = 0;

	for (size_t i = index; i < process->n_threads; i++)
		if (i == index || (shown[i].key && !shown[i].done && shown[index].key &&
				   !strcmp(shown[i].key, shown[index].key))) {
			shown[i].done = true;
			members[n++] = i;
		}
	fputc('\n', out);
	if (n > 1) {
		print_group(out, process, members, n, shown);
	} else {
		print_head(out, process, &process->threads[index]);
		fputs(shown[index].body, out);
	}
}

/* Prints "4 idle threads (--all shows them): ...". */
static void print_idle(FILE *out, const struct dump_process *process, size_t *members)
{
	struct line line = {};
	size_t n = 0;

	for (size_t i = 0; i < process->n_threads; i++)
		if (process->threads[i].idle)
			members[n++] = i;
	if (!n)
		return;
	add(&line, "%zu idle thread%s (--all shows %s): ", n, n == 1 ? "" : "s",
	    n == 1 ? "it" : "them");
	add_names(&line, process, members, n);
	fputc('\n', out);
	escape__line(out, "%s", line.text);
}

/* Adds "18, 19, 20 and 5 more". */
static void add_ids(struct line *line, const struct dump_thread *task)
{
	for (size_t i = 0; i < task->n_alike && i < NAMES_SHOWN; i++)
		add(line, "%s%" PRIu64, i ? ", " : "", task->alike[i].id);
	if (task->n_alike > NAMES_SHOWN)
		add(line, " and %zu more", task->n_alike - NAMES_SHOWN);
}

/* Adds " (up to 2 min 5 s)", for the task that may have waited longest. */
static void add_age(struct line *line, const struct dump_thread *task)
{
	uint64_t most = 0;

	for (size_t i = 0; i < task->n_alike; i++)
		most = max_of(most, task->alike[i].waited_ns);
	if (!most)
		return;
	add(line, " (up to ");
	add_time(line, most);
	add(line, ")");
}

/* Adds "Goroutine 18 waits: chan receive" or "3 goroutines wait: chan receive". */
static void add_task(struct line *line, const struct dump_thread *task)
{
	bool many = task->n_alike > 1;

	if (many)
		add(line, "%zu %ss", task->n_alike, task->sort);
	else
		add(line, "%c%s", toupper((unsigned char)task->sort[0]), task->sort + 1);
	if (task->name[0])
		add(line, " \"%s\"", task->name);
	else if (task->n_alike == 1)
		add(line, " %" PRIu64, task->alike[0].id);
	if (task->of_thread)
		add(line, " of thread %u", task->of_thread);
	add(line, " %s", task->doing[0] ? task->doing : many ? "wait" : "waits");
	if (task->waits_for[0])
		add(line, " for %s \"%s\"", task->sort, task->waits_for);
	if (task->reason[0])
		add(line, ": %s", task->reason);
	add_age(line, task);
}

static void print_task(FILE *out, const struct dump_thread *task,
		       const struct runtime *const *runtimes, const struct dump_view *view)
{
	struct line line = {};

	if (task->idle && !view->all)
		return;
	add_task(&line, task);
	if (task->n_alike > 1)
		add(&line, ": ");
	fputc('\n', out);
	if (task->n_alike > 1)
		add_ids(&line, task);
	escape__line(out, "%s", line.text);
	print_stack(out, task, runtimes, view->frames);
	if (task->n_alike && !task->complete)
		escape__line(out, "    [the callers of this frame are unknown]");
}

/* Prints "5 idle goroutines (--all shows them)". */
static void print_idle_tasks(FILE *out, const struct dump_process *process)
{
	const char *sort = NULL;
	size_t n = 0;

	for (size_t i = 0; i < process->n_tasks; i++)
		if (process->tasks[i].idle) {
			n += max_of(process->tasks[i].n_alike, (size_t)1);
			sort = process->tasks[i].sort;
		}
	if (n)
		fprintf(out, "\n%zu idle %s%s (--all shows %s)\n", n, sort, n == 1 ? "" : "s",
			n == 1 ? "it" : "them");
}

/* Prints the tasks of the thread, which are adjacent; 0: tasks without a thread. */
static void print_tasks(FILE *out, const struct dump_process *process, uint32_t thread,
			const struct runtime *const *runtimes, const struct dump_view *view)
{
	size_t low = 0, high = process->n_tasks;

	while (low < high) { /* `thread` - 1: that is their order */
		size_t middle = low + (high - low) / 2;

		if (process->tasks[middle].of_thread - 1 < thread - 1)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < process->n_tasks && process->tasks[low].of_thread == thread; low++)
		print_task(out, &process->tasks[low], runtimes, view);
}

/* Prints each circle once, from its first thread. */
static void print_deadlocks(FILE *out, const struct dump_process *process)
{
	for (size_t i = 0; i < process->n_threads; i++) {
		const struct dump_thread *first = &process->threads[i], *at = first;
		struct line line = {};

		if (!first->deadlocked || first->circle != first->tid)
			continue;
		add(&line, "Deadlock: %u \"%s\" waits for ", at->tid, at->name);
		for (;;) {
			add_lock(&line, process, at);
			at = dump__find(process, at->holder);
			if (!at || at == first)
				break;
			add(&line, ", which waits for ");
		}
		fputc('\n', out);
		escape__line(out, "%s", line.text);
	}
}

static void print_cost(FILE *out, const struct dump_process *process)
{
	uint64_t longest = 0;
	struct line line = {};
	size_t stopped = 0;

	for (size_t i = 0; i < process->n_threads; i++) {
		stopped += process->threads[i].way == DUMP_STOPPED;
		longest = max_of(longest, process->threads[i].stopped_ns);
	}
	add(&line, "%zu thread%s", process->n_threads, process->n_threads == 1 ? "" : "s");
	if (stopped) {
		add(&line, ", %zu stopped for at most ", stopped);
		add_time(&line, longest);
	} else {
		add(&line, ", none stopped");
	}
	fputc('\n', out);
	escape__line(out, "%s", line.text);
}

/* Returns 0 or -ENOMEM. */
static int print_threads(FILE *out, const struct dump_process *process,
			 const struct runtime *const *runtimes, const struct dump_view *view)
{
	struct shown_thread *shown = calloc(process->n_threads + 1, sizeof(*shown));
	size_t *members = calloc(process->n_threads + 1, sizeof(*members));
	int ret = shown && members ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; !ret && i < process->n_threads; i++)
		ret = make_key(&shown[i], process, &process->threads[i], runtimes, view->frames);
	for (i = 0; !ret && i < process->n_threads; i++) {
		const struct dump_thread *thread = &process->threads[i];

		if (view->all) {
			fputc('\n', out);
			print_head(out, process, thread);
			fputs(shown[i].body, out);
		} else if (!shown[i].done && !thread->idle) {
			print_thread(out, process, i, shown, members);
		}
		print_tasks(out, process, thread->tid, runtimes, view);
	}
	if (!ret && !view->all)
		print_idle(out, process, members);
	for (i = 0; shown && i < process->n_threads; i++)
		free(shown[i].key);
	free(shown);
	free(members);
	return ret;
}

int dump__print(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes, const struct dump_view *view)
{
	int ret;

	escape__line(out, "%s %u: %s", process->is_core ? "Core file of process" : "Process",
		     process->info.pid, process->info.command);
	if (process->note[0])
		escape__line(out, "  note: %s", process->note);
	for (size_t i = 0; i < process->n_sources; i++) {
		const struct dump_source *source = &process->sources[i];

		escape__line(out, "  %s%s%s%s%s", source->runtime->name,
			     source->version[0] ? " " : "", source->version,
			     source->reason[0] ? ": " : "", source->reason);
	}
	ret = print_threads(out, process, runtimes, view);
	if (ret)
		return ret;
	print_tasks(out, process, 0, runtimes, view);
	if (!view->all)
		print_idle_tasks(out, process);
	print_deadlocks(out, process);
	if (!process->is_core)
		print_cost(out, process);
	return 0;
}
