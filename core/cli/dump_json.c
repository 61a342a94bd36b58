// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/dump_print.h"

#include <inttypes.h>

#include "core/base/escape.h"
#include "core/base/syscalls.h"

static void text(FILE *out, const char *name, const char *value)
{
	fprintf(out, "\"%s\":", name);
	escape__json(out, value);
}

static const char *state_name(char state)
{
	switch (state) {
	case 0:
		return "core";
	case 'R':
		return "running";
	case 'D':
		return "uninterruptible";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	default:
		return "sleeping";
	}
}

static void write_lock(FILE *out, const struct dump_thread *thread)
{
	static const char *const relations[] = {
		[LOCK_HELD] = "holds", [LOCK_FREE] = "free", [LOCK_WAITED] = "waits"
	};

	if (!thread->lock_name || !thread->lock || thread->lock >= LOCK_STATES_N)
		return;
	fprintf(out, ",\"lock\":{\"relation\":\"%s\",", relations[thread->lock]);
	text(out, "what", thread->lock_name);
	if (thread->lock_address)
		fprintf(out, ",\"address\":\"0x%" PRIx64 "\"", thread->lock_address);
	if (thread->holder)
		fprintf(out, ",\"holder\":%u", thread->holder);
	fputc('}', out);
}

static void write_frames(FILE *out, const struct dump_thread *thread,
			 const struct runtime *const *runtimes)
{
	fputs(",\"frames\":[", out);
	for (size_t i = 0; i < thread->n_frames; i++) {
		const struct dump_frame *frame = &thread->frames[i];

		fputs(i ? ",\n{" : "\n{", out);
		text(out, "kind", dump__kind(frame, runtimes));
		fputc(',', out);
		text(out, "function", frame->function);
		if (frame->file[0]) {
			fputc(',', out);
			text(out, "file", frame->file);
		}
		if (frame->line)
			fprintf(out, ",\"line\":%u", frame->line);
		fputc('}', out);
	}
	fputs("]", out);
}

static void write_thread(FILE *out, const struct dump_thread *thread,
			 const struct runtime *const *runtimes)
{
	static const char *const ways[] = { [DUMP_UNMOVED] = "still",
					    [DUMP_STOPPED] = "stopped",
					    [DUMP_SAMPLED] = "sampled",
					    [DUMP_TWICE] = "twice",
					    [DUMP_RUNNING] = "torn" };
	const char *call = thread->call >= 0 ? syscall__name(thread->call) : NULL;

	fprintf(out, "{\"tid\":%u,", thread->tid);
	text(out, "name", thread->name);
	fprintf(out, ",\"state\":\"%s\"", state_name(thread->state));
	if (thread->signal)
		fprintf(out, ",\"signal\":%d", thread->signal);
	if (thread->call >= 0) {
		fputs(",\"syscall\":{", out);
		if (call) {
			text(out, "name", call);
			fputc(',', out);
		}
		fprintf(out, "\"number\":%d}", thread->call);
	}
	if (thread->waited_ns)
		fprintf(out, ",\"waited_ns\":%" PRIu64, thread->waited_ns);
	write_lock(out, thread);
	if (thread->idle)
		fputs(",\"idle\":true", out);
	if (thread->deadlocked)
		fprintf(out, ",\"deadlock\":%u", thread->circle);
	fprintf(out, ",\"read\":\"%s\"", ways[thread->way]);
	if (thread->way == DUMP_STOPPED)
		fprintf(out, ",\"stopped_ns\":%" PRIu64, thread->stopped_ns);
	fprintf(out, ",\"complete\":%s", thread->complete ? "true" : "false");
	write_frames(out, thread, runtimes);
	fputc('}', out);
}

static void write_alike(FILE *out, const struct dump_thread *task)
{
	fprintf(out, ",\"count\":%zu,\"ids\":[", task->n_alike);
	for (size_t i = 0; i < task->n_alike; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", task->alike[i].id);
	fputs("],\"waited_ns\":[", out);
	for (size_t i = 0; i < task->n_alike; i++)
		fprintf(out, "%s%" PRIu64, i ? "," : "", task->alike[i].waited_ns);
	fprintf(out, "],\"complete\":%s", task->complete ? "true" : "false");
}

static void write_task(FILE *out, const struct dump_thread *task,
		       const struct runtime *const *runtimes)
{
	fputc('{', out);
	text(out, "kind", task->sort);
	fputc(',', out);
	text(out, "name", task->name);
	if (task->doing[0]) {
		fputc(',', out);
		text(out, "state", task->doing);
	}
	if (task->of_thread)
		fprintf(out, ",\"thread\":%u", task->of_thread);
	if (task->waits_for[0]) {
		fputc(',', out);
		text(out, "waits_for", task->waits_for);
	}
	if (task->reason[0]) {
		fputc(',', out);
		text(out, "reason", task->reason);
	}
	if (task->idle)
		fputs(",\"idle\":true", out);
	if (task->n_alike)
		write_alike(out, task);
	write_frames(out, task, runtimes);
	fputc('}', out);
}

void dump__json(FILE *out, const struct dump_process *process,
		const struct runtime *const *runtimes)
{
	fprintf(out, "{\"pid\":%u,", process->info.pid);
	text(out, "command", process->info.command);
	if (process->note[0]) {
		fputc(',', out);
		text(out, "note", process->note);
	}
	fputs(",\"runtimes\":[", out);
	for (size_t i = 0; i < process->n_sources; i++) {
		const struct dump_source *source = &process->sources[i];

		fputs(i ? ",\n{" : "\n{", out);
		text(out, "name", source->runtime->name);
		fputc(',', out);
		text(out, "version", source->version);
		fputc(',', out);
		text(out, "source", source->source);
		if (source->reason[0]) {
			fputc(',', out);
			text(out, "reason", source->reason);
		}
		fputc('}', out);
	}
	fputs("],\n\"threads\":[", out);
	for (size_t i = 0; i < process->n_threads; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_thread(out, &process->threads[i], runtimes);
	}
	fputc(']', out);
	if (process->n_tasks)
		fputs(",\n\"tasks\":[", out);
	for (size_t i = 0; i < process->n_tasks; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_task(out, &process->tasks[i], runtimes);
	}
	fputs(process->n_tasks ? "]}" : "}", out);
}
