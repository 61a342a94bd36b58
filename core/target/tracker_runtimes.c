// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_runtimes.h"
#include "core/target/tracker_state.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/kernel/walker_records.h"
#include "core/target/compiled_code.h"

void tracker__report_source(struct tracker *tracker, struct process *process, int i,
			    const char *version, const char *source, const char *reason)
{
	if (tracker->opts.on_source)
		tracker->opts.on_source(tracker->opts.ctx, process, tracker->opts.runtimes[i],
					version, source, reason);
}

/* Returns true if shadow stacks are the requested source, or the next one to try. */
static bool wants_probes(const struct tracker *tracker, bool walks)
{
	if (!tracker->opts.probes || tracker->given_up)
		return false;
	return tracker->opts.source != RUNTIME_SOURCE_AUTO || !walks;
}

const struct mapped *tracker__find_runtime(const struct process *process, int i)
{
	const struct image *image;
	size_t m;

	for (m = 0; m < process->n_mapped; m++) {
		image = process->mapped[m].image;
		if (image && image->runtimes[i].detected)
			return &process->mapped[m];
	}
	return NULL;
}

struct runtime_target process__runtime_target(const struct process *process, int i,
					      const struct mapped *mapped)
{
	return (struct runtime_target) { .pid = process->pid,
					 .space = process->space->id,
					 .bias = mapped->bias,
					 .image = mapped->image->runtimes[i].image,
					 .file = mapped->image->file,
					 .force = process->runtimes->force };
}

#define PENDING_REPORT_NS (2 * NSEC_PER_SEC)

/* Marks the runtime as pending, to be tried again. Reports a long delay once, as the runtime may
 * never become ready. */
static void keep_pending(struct tracker *tracker, struct process *process, int i,
			 const struct runtime_verdict *verdict, const char *reason)
{
	struct space *space = process->space;

	if (!(space->pending & 1U << i)) {
		space->pending_ns = now_ns();
		tracker->any_soon = true;
	}
	space->pending |= 1U << i;
	tracker->any_pending = true;
	if (space->reported_pending & 1U << i || now_ns() < space->pending_ns + PENDING_REPORT_NS)
		return;
	space->reported_pending |= 1U << i;
	tracker__report_source(tracker, process, i, verdict->version, "none",
			       reason[0] ? reason : "its state is not initialized yet");
}

static void detach(struct tracker *tracker, int i, uint32_t key);

/* Attaches the runtime by its hook, and passes the resulting record to the walker. */
static int attach(struct tracker *tracker, int i, const struct runtime_target *target,
		  struct err *err)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	uint64_t record[RUNTIME_RECORD_MAX / sizeof(uint64_t)] = {};
	int ret = runtime->attach(tracker->opts.sessions[i], target, record, err);

	assert(!runtime->walker || runtime->walker->record_bytes <= sizeof(record));
	if (ret || target->map || !runtime->walker)
		return ret;
	ret = walker_record__write(tracker->opts.half, runtime, target->space, record, err);
	if (ret)
		detach(tracker, i, target->space);
	return ret;
}

/* Detaches the runtime at @key: a space, or a copy in a space. */
static void detach(struct tracker *tracker, int i, uint32_t key)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];

	walker_record__delete(tracker->opts.half, runtime, key);
	if (runtime->detach)
		runtime->detach(tracker->opts.sessions[i], key);
}

void tracker__detach_space(struct tracker *tracker, int i, const struct space *space)
{
	for (uint32_t c = 0; c < space->n_copies; c++)
		if (space->copies[c].runtime == i && space->copies[c].number > 0)
			detach(tracker, i, WALKER_COPY_KEY(space->id, space->copies[c].number));
	detach(tracker, i, space->id);
}

static void space__add_copy(struct space *space, int i, uint64_t bias, int32_t number)
{
	if (space->n_copies < RUNTIME_COPIES_MAX)
		space->copies[space->n_copies++] = (struct runtime_copy) { bias, i, number };
}

static void attach_runtime(struct tracker *tracker, struct process *process, int i,
			   const struct mapped *mapped)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const struct image_runtime *found = &mapped->image->runtimes[i];
	struct runtime_target target = process__runtime_target(process, i, mapped);
	enum runtime_source requested = tracker->opts.source;
	bool map =
		requested == RUNTIME_SOURCE_MAP || ((!runtime->walker || found->verdict.map_only) &&
						    requested != RUNTIME_SOURCE_CALLS);
	const char *reason = found->verdict.reason;
	struct err err = {};
	int ret = -ENOTSUP;

	target.map = map;
	if (map && !runtime__has(runtime, jit, label) && !runtime__has(runtime, files, resolve)) {
		reason = "braid supports no map of its code";
	} else if (found->image && !map && kernel_half__load_runtime(tracker->opts.half, i, &err)) {
		reason = err.text;
	} else if (found->image) {
		ret = attach(tracker, i, &target, &err);
		reason = err.text[0] ? err.text : reason;
	}
	if (ret != -EAGAIN)
		process->space->pending &= ~(1U << i);
	if (ret == -EAGAIN) {
		keep_pending(tracker, process, i, &found->verdict, reason);
		if (runtime__has(runtime, probes, expect) && wants_probes(tracker, true)) {
			process->pre_attached |= 1U << i;
			runtime->probes->expect(tracker->opts.sessions[i], &target);
		}
		return;
	}
	process->space->decided |= 1U << i;
	space__add_copy(process->space, i, mapped->bias, ret >= 0 ? 0 : -1);
	if (ret >= 0)
		process->space->attached |= 1U << i;
	if (found->verdict.map_only)
		process->space->unwalked |= 1U << i;
	if (!map && wants_probes(tracker, process->space->attached & 1U << i)) {
		tracker__probe(tracker, process, i, mapped, ret ? reason : "");
		return;
	}
	if (!ret && !map && tracker->given_up && requested == RUNTIME_SOURCE_PROBES)
		reason = tracker->why;
	if (process->space->attached & 1U << i && !map) {
		process->space->walkers |= 1U << runtime->walker->slot;
		tracker__publish(tracker, process); /* so that the report is true */
	}
	tracker__report_source(tracker, process, i, found->verdict.version,
			       ret				       ? "none"
			       : runtime__has(runtime, files, resolve) ? "tables"
			       : map				       ? "map"
								       : "walk",
			       reason);
}

struct code_callers tracker__jit_callers(const struct tracker *tracker,
					 const struct process *process,
					 const struct mapped *generated)
{
	struct runtime_range callers = {};
	const struct runtime_range *ranges;
	uint32_t walkers = 0;
	size_t m, n, i;
	int r;

	for (m = 0; m < process->n_mapped; m++)
		for (r = 0; process->mapped[m].image && tracker->opts.runtimes[r]; r++) {
			const struct runtime *runtime = tracker->opts.runtimes[r];
			const struct mapped *mapped = &process->mapped[m];

			/* If code runs its runtime's frames (JIT_FRAMES_RUN), it is unwound by the
			 * runtime's rules. */
			if (!runtime__has(runtime, jit, code) ||
			    !runtime__has(runtime, files, loops) ||
			    runtime->jit->frames == JIT_FRAMES_RUN ||
			    (generated && !compiled_code__may_be_of(runtime, generated)) ||
			    !mapped->image->runtimes[r].image ||
			    (runtime->jit->compiles &&
			     !runtime->jit->compiles(mapped->image->runtimes[r].image)))
				continue;
			n = runtime->files->loops(mapped->image->runtimes[r].image, &ranges);
			if (n && runtime->walker)
				walkers |= 1U << runtime->walker->slot;
			for (i = 0; i < n; i++) {
				uint64_t start = ranges[i].start + mapped->bias;
				uint64_t end = ranges[i].end + mapped->bias;

				if (!callers.start || start < callers.start)
					callers.start = start;
				if (end > callers.end)
					callers.end = end;
			}
		}
	if (callers.end - callers.start > UINT32_MAX)
		return (struct code_callers) {}; /* ranges of several images */
	return (struct code_callers) { callers.start, callers.end - callers.start, walkers };
}

#define RESERVED_PIECES_MAX 1024 /* mappings in each direction */

/* Returns true if mapping @m is a part of gapless anonymous memory of at least @bytes. */
static bool is_reserved(const struct process *process, size_t m, uint64_t bytes)
{
	const struct mapped *list = process->mapped;
	size_t first = m, last = m;

	while (first && m - first < RESERVED_PIECES_MAX &&
	       list[first - 1].end == list[first].start &&
	       compiled_code__is_generated(&list[first - 1]))
		first--;
	while (last + 1 < process->n_mapped && last - m < RESERVED_PIECES_MAX &&
	       list[last].end == list[last + 1].start &&
	       compiled_code__is_generated(&list[last + 1]))
		last++;
	return list[last].end - list[first].start >= bytes;
}

struct generated_code tracker__generated_code(const struct tracker *tracker,
					      const struct process *process)
{
	struct generated_code generated = {};

	for (size_t m = 0; m < process->n_mapped; m++)
		for (int r = 0; process->mapped[m].image && tracker->opts.runtimes[r]; r++) {
			const struct image_runtime *found = &process->mapped[m].image->runtimes[r];
			const struct runtime *runtime = tracker->opts.runtimes[r];

			if (!found->detected ||
			    !(runtime__has(runtime, jit, code) || runtime->many) ||
			    (runtime__has(runtime, jit, compiles) && found->image &&
			     !runtime->jit->compiles(found->image)))
				continue;
			if (!found->verdict.generated_keeps ||
			    (generated.keeps && generated.keeps != found->verdict.generated_keeps))
				return (struct generated_code) {}; /* ambiguous: several compilers
								    */
			generated.keeps = found->verdict.generated_keeps;
			generated.bytes = max_of(generated.bytes, found->verdict.generated_bytes);
		}
	return generated;
}

unsigned int process__generated_keeps(const struct process *process, size_t m,
				      struct generated_code generated)
{
	return generated.keeps && compiled_code__is_generated(&process->mapped[m]) &&
			       is_reserved(process, m, generated.bytes)
		       ? generated.keeps
		       : 0;
}

/* Reports why a runtime without an image in the process has no frames. */
static void report_elsewhere(struct tracker *tracker, struct process *process, int i)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const char *why = NULL;

	if (runtime->elsewhere && tracker->opts.sessions[i] && !(process->space->decided & 1U << i))
		why = runtime->elsewhere(process->info.command);
	if (!why)
		return;
	process->space->decided |= 1U << i;
	tracker__report_source(tracker, process, i, "", "none", why);
}

/* Returns true if the file was already attached or refused, or if no more copies fit. */
static bool copy__is_known(const struct space *space, int i, uint64_t bias)
{
	for (uint32_t c = 0; c < space->n_copies; c++)
		if (space->copies[c].runtime == i && space->copies[c].bias == bias)
			return true;
	return space->n_copies >= RUNTIME_COPIES_MAX;
}

/* Returns true if the mapping has the first code of its file. A runtime may map a piece twice. */
static bool has_first_code(const struct mapped *mapped)
{
	const struct elf_file *file = mapped->image->file;

	for (size_t i = 0; i < file->n_segments; i++) {
		uint64_t at = file->segments[i].vaddr + mapped->bias;

		if (file->segments[i].exec)
			return at >= mapped->start && at < mapped->end;
	}
	return false;
}

/* Attaches another file of a runtime that is walked in this process. If the walker supports only
 * one, reports that the other is not walked. */
static void attach_copy(struct tracker *tracker, struct process *process, int i,
			const struct mapped *mapped)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	const struct image_runtime *found = &mapped->image->runtimes[i];
	struct runtime_target target = process__runtime_target(process, i, mapped);
	struct space *space = process->space;
	char reason[RUNTIME_REASON_BYTES];
	struct err err = {};
	uint32_t n = 0;
	int ret = -ENOTSUP;

	for (uint32_t c = 0; c < space->n_copies; c++)
		n += space->copies[c].runtime == i && space->copies[c].number >= 0;
	target.space = WALKER_COPY_KEY(space->id, n);
	if (found->image && runtime->walker && n < runtime->walker->copies)
		ret = attach(tracker, i, &target, &err);
	if (ret == -EAGAIN) {
		space->pending |= 1U << i;
		tracker->any_pending = true;
		return;
	}
	space__add_copy(space, i, mapped->bias, ret ? -1 : (int32_t)n);
	if (!ret)
		snprintf(reason, sizeof(reason), "a further copy in this process, in %s",
			 mapped->path);
	else
		snprintf(reason, sizeof(reason),
			 "a further copy in this process, in %s, is not walked; its frames and its "
			 "lock are unknown%s%s",
			 mapped->path, found->image ? "" : ": ",
			 found->image ? "" : found->verdict.reason);
	tracker__report_source(tracker, process, i, found->verdict.version, ret ? "none" : "walk",
			       reason);
}

/* Attaches the copies of runtime @i after its source is decided. Only walked runtimes have copies:
 * probes and maps are found by file. */
static void attach_copies(struct tracker *tracker, struct process *process, int i)
{
	const struct runtime *runtime = tracker->opts.runtimes[i];
	struct space *space = process->space;

	if (!runtime->walker || !(space->attached & 1U << i) ||
	    !(space->walkers & 1U << runtime->walker->slot))
		return;
	space->pending &= ~(1U << i);
	for (size_t m = 0; m < process->n_mapped; m++) {
		const struct mapped *mapped = &process->mapped[m];

		if (mapped->image && mapped->image->runtimes[i].detected && mapped->path &&
		    has_first_code(mapped) && !copy__is_known(space, i, mapped->bias))
			attach_copy(tracker, process, i, mapped);
	}
}

/* Returns true if an earlier mapping has the same version text. Runtime @i represents many
 * runtimes, and the version names the one that was found. */
static bool is_named(const struct process *process, int i, const struct mapped *mapped)
{
	const char *version = mapped->image->runtimes[i].verdict.version;

	for (size_t m = 0; m < process->n_mapped && &process->mapped[m] != mapped; m++) {
		const struct image *image = process->mapped[m].image;

		if (image && image->runtimes[i].detected &&
		    !strcmp(image->runtimes[i].verdict.version, version))
			return true;
	}
	return copy__is_known(process->space, i, mapped->bias);
}

/* Attaches the other files of runtime @i, which represents many, after its first file. */
static void attach_others(struct tracker *tracker, struct process *process, int i)
{
	for (size_t m = 0; m < process->n_mapped; m++) {
		const struct mapped *mapped = &process->mapped[m];

		if (mapped->image && mapped->image->runtimes[i].detected &&
		    !is_named(process, i, mapped))
			attach_runtime(tracker, process, i, mapped);
	}
}

void tracker__attach_runtimes(struct tracker *tracker, struct process *process)
{
	size_t m;
	int i;

	for (i = 0; tracker->opts.runtimes[i]; i++) {
		bool is_mapped = false;

		report_elsewhere(tracker, process, i);
		for (m = 0; m < process->n_mapped; m++) {
			const struct image *image = process->mapped[m].image;

			if (process->space->decided & 1U << i)
				break;
			if (image && image->runtimes[i].detected)
				attach_runtime(tracker, process, i, &process->mapped[m]);
			is_mapped |= image && image->runtimes[i].detected;
		}
		if (!is_mapped) /* it was unmapped before it was ready */
			process->space->pending &= ~(1U << i);
		if (tracker->opts.runtimes[i]->many)
			attach_others(tracker, process, i);
		attach_copies(tracker, process, i);
	}
}

#define EXPECTED_FOR_NS NSEC_PER_SEC /* from a runtime's file to its readiness */

void tracker__await_runtimes(struct tracker *tracker, struct process *process,
			     const struct image *image)
{
	struct space *space = process->space;

	for (int i = 0; space && image->queried && tracker->opts.runtimes[i]; i++) {
		if (!image->runtimes[i].detected || (space->decided | space->pending) & 1U << i)
			continue;
		space->pending |= 1U << i;
		space->pending_ns = now_ns();
		tracker->any_pending = true;
		tracker->any_soon = true;
		tracker->expects_until_ns = space->pending_ns + EXPECTED_FOR_NS;
	}
}

/* Returns true if the process maps a file of a program that loads the runtime. Writes the path of
 * that runtime's file to @buf. */
static bool loads_later(const struct process *process, const struct runtime *runtime, char *buf,
			size_t size)
{
	for (size_t m = 0; m < process->n_mapped; m++)
		if (process->mapped[m].image &&
		    runtime->files->loads(process->mapped[m].image->file, buf, size))
			return true;
	return false;
}

void tracker__expect_runtimes(struct tracker *tracker, struct process *process)
{
	struct space *space = process->space;
	char path[PATH_MAX];
	struct err ignored = {};

	for (int i = 0; tracker->opts.runtimes[i]; i++) {
		const struct runtime *runtime = tracker->opts.runtimes[i];
		struct image *image = NULL;

		if (!runtime__has(runtime, files, loads) ||
		    (space->decided | space->pending | space->expected) & 1U << i ||
		    !loads_later(process, runtime, path, sizeof(path)))
			continue;
		space->expected |= 1U << i;
		tracker->expects_until_ns = now_ns() + EXPECTED_FOR_NS;
		if (images__read_ahead(tracker->opts.images, process->pid, path, &image) ||
		    images__ask_runtimes(tracker->opts.images, image))
			continue;
		if (image->runtimes[i].image && runtime->walker &&
		    tracker->opts.source != RUNTIME_SOURCE_MAP)
			kernel_half__load_runtime(tracker->opts.half, i, &ignored);
	}
}
