// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/naming_compiled.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"
#include "core/capture/jit_label.h"
#include "core/kernel/spaces.h"
#include "core/profile/profile.h"
#include "core/target/compiled_code.h"

#define ASK_LAST_MS 2000
#define UNKNOWN_MAX 65536 /* places of one process; further ones are named by address only */

struct naming_compiled {
	struct naming_compiled_opts opts;
	struct compiled_stats stats;
	struct jit_maps_counts counts; /* counts of dropped processes */
	struct jit_maps_counts before; /* all counts at the last reset */
};

static int no_memory(struct err *err)
{
	return err__set(err, -ENOMEM, "out of memory");
}

int naming_compiled__new(const struct naming_compiled_opts *opts, struct naming_compiled **ret)
{
	struct naming_compiled *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return -ENOMEM;
	naming->opts = *opts;
	*ret = naming;
	return 0;
}

void naming_compiled__free(struct naming_compiled *naming)
{
	free(naming);
}

static void report(const struct naming_compiled *naming, struct process *process, int i,
		   const char *source, const char *reason)
{
	if (naming->opts.on_source)
		naming->opts.on_source(naming->opts.ctx, process, naming->opts.runtimes[i], "",
				       source, reason);
}

/* --- one place --- */

/* Names a place by the process's map. Returns 1, 0 if the map has no name for it, or a negative
 * errno. */
static int name_by_map(struct naming_compiled *naming, struct captured *captured, uint32_t number,
		       struct place_frame *frame, struct err *err)
{
	struct process *process = captured->process;
	struct sink_location location;
	struct runtime_label label;
	struct jit_symbol symbol;
	char buf[JIT_NAME_BYTES + JIT_PATH_BYTES];
	int i, rc;

	if (!place__symbol(process, number, &symbol))
		return 0;
	i = jit_label__of(process, &symbol, buf, sizeof(buf), &label);
	if (i < 0)
		return 0;
	location = (struct sink_location) { KIND_RUNTIME + i, label.symbol.function,
					    label.symbol.file, label.symbol.line };
	rc = ids__locations(naming->opts.ids, frame->id, &location, 1, err);
	if (!rc && label.loop && !frame->loop) {
		frame->loop = true;
		rc = ids__frame_is_loop(naming->opts.ids, frame->id, err);
	}
	if (!rc && !captured->reported && !naming->opts.runtimes[i]->files) {
		report(naming, process, i, "map", "");
		captured->reported = true;
	}
	naming->stats.places += !frame->counted; /* a map shows that it is compiled code */
	frame->counted = true;
	naming->stats.named += !rc;
	return rc ? rc : 1;
}

/* Returns the address's offset in the file, or in memory without a file. A file that is mapped in
 * parts has other code at the same offset of each part. */
static uint64_t offset_of(const struct mapped *mapped, uint64_t address)
{
	return mapped ? address - mapped->whole_start + mapped->offset : address;
}

/* Queues a name by address, unless the runtime that generated the code has one name for all its
 * code. */
static int name_by_place(struct naming_compiled *naming, const struct process *process,
			 const struct place *place, uint32_t frame)
{
	const struct mapped *mapped = process__find(process, place->address);

	if (place->compiler >= 0)
		return naming__add_jit(naming->opts.naming, frame,
				       naming->opts.runtimes[place->compiler]->jit->code);
	return naming__add_anonymous(naming->opts.naming, frame, mapped ? mapped->path : "",
				     offset_of(mapped, place->address));
}

static bool is_fileless(const struct place *place)
{
	return place->kind == PLACE_ANONYMOUS && place->compiler < 0;
}

static void count_fileless(struct naming_compiled *naming, const struct process *process,
			   const struct place *place, struct place_frame *frame)
{
	const struct mapped *mapped = process__find(process, place->address);
	struct compiled_stats *stats = &naming->stats;

	frame->fileless = mapped != NULL;
	if (!mapped || stats->fileless++)
		return;
	stats->fileless_pid = process->pid;
	stats->fileless_bytes = mapped->end - mapped->start;
	snprintf(stats->fileless_name, sizeof(stats->fileless_name), "%s", process->info.name);
}

static int add_unknown(struct captured *captured, uint32_t number)
{
	if (captured->n_unknown == UNKNOWN_MAX)
		return 0;
	if (array__reserve(&captured->unknown, &captured->cap_unknown, captured->n_unknown + 1,
			   sizeof(*captured->unknown)))
		return -ENOMEM;
	captured->unknown[captured->n_unknown++] = number;
	captured->unknown_ever++;
	return 0;
}

/* Returns true if a walker finds the runtime's frames in the process. */
static bool walks(const struct naming_compiled *naming, const struct process *process, int i)
{
	int walker = runtime__slot(naming->opts.runtimes[i]);

	return walker >= 0 && process->space && process->space->walkers & 1U << walker;
}

/* Returns true if a walker finds the frames of the code at the place. */
static bool is_walked(const struct naming_compiled *naming, const struct process *process,
		      const struct place *place)
{
	const struct runtime *runtime =
		place->compiler >= 0 ? naming->opts.runtimes[place->compiler] : NULL;

	return runtime && runtime__jit_frames(runtime) != JIT_FRAMES_BESIDE &&
	       walks(naming, process, place->compiler);
}

int naming_compiled__add(struct naming_compiled *naming, struct captured *captured,
			 const struct place *place, struct place_frame *frame, struct err *err)
{
	bool walked = is_walked(naming, captured->process, place);
	int named;

	frame->counted = walked || place->kind != PLACE_UNKNOWN;
	naming->stats.places += frame->counted && !walked;
	named = name_by_map(naming, captured, place->number, frame, err);
	if (named)
		return min_of(named, 0);
	if (is_fileless(place))
		count_fileless(naming, captured->process, place, frame);
	if (name_by_place(naming, captured->process, place, frame->id) ||
	    add_unknown(captured, place->number))
		return no_memory(err);
	return 0;
}

/* --- each second, and at the end --- */

/* Names unknown code from new entries of the maps. Places without an entry stay unknown. */
static int name_unknown(struct naming_compiled *naming, struct captured *captured, struct err *err)
{
	uint32_t version;
	size_t i, retained = 0;
	int rc = 0;

	if (captured->epoch != places__epoch(captured->process) ||
	    compiled_code__version(captured->process, 0, &version) || captured->resolved == version)
		return 0;
	captured->resolved = version;
	for (i = 0; i < captured->n_unknown; i++) {
		uint32_t number = captured->unknown[i];
		struct place_frame *frame = &captured->places[number - 1];
		int named = rc ? 0 : name_by_map(naming, captured, number, frame, err);

		rc = min_of(rc, named);
		if (named <= 0)
			captured->unknown[retained++] = number;
		else
			naming->stats.fileless -= frame->fileless && naming->stats.fileless;
		if (named > 0)
			frame->fileless = false;
	}
	captured->named_ever += captured->n_unknown - retained;
	captured->n_unknown = retained;
	return rc;
}

/* Reports why a file with names is not read, once, for the first runtime that has no other names.
 * Called only where the file would give a name: PIDs are reused, and an earlier process's file is
 * irrelevant to a process that generates no code. */
static void report_refusal(struct naming_compiled *naming, struct process *process)
{
	struct err err;
	int i;

	if (!compiled_code__refusal(process, &err))
		return;
	for (i = 0; naming->opts.runtimes[i]; i++)
		if (compiled_code__has_names_of(process, i) && !walks(naming, process, i)) {
			report(naming, process, i, "none", err.text);
			return;
		}
}

static int read_and_name(struct naming_compiled *naming, struct captured *captured,
			 enum jit_look how, struct err *err)
{
	if (!captured->has_own_code)
		return 0; /* the process may never run generated code */
	if (compiled_code__read(captured->process, how))
		return no_memory(err);
	report_refusal(naming, captured->process);
	return name_unknown(naming, captured, err);
}

/* Returns the runtime whose process may receive a request for a map, or -1. A walker, if there is
 * one, finds the names itself. */
static int map_runtime(const struct naming_compiled *naming, const struct process *process)
{
	for (int i = 0; naming->opts.runtimes[i]; i++) {
		const struct runtime *runtime = naming->opts.runtimes[i];

		if (runtime__has(runtime, jit, ask_map) &&
		    compiled_code__has_names_of(process, i) && !walks(naming, process, i))
			return i;
	}
	return -1;
}

/* Returns as map_asking__step(). */
static int ask(struct naming_compiled *naming, struct captured *captured, bool last,
	       unsigned wait_ms)
{
	struct process *process = captured->process;
	struct map_request request = { .pid = process->pid, .last = last, .wait_ms = wait_ms };
	int i = map_runtime(naming, process), rc;
	struct err err = {};

	if (i < 0 || procfs__is_recorded()) /* another process may have its PID now */
		return 0;
	request.runtime = naming->opts.runtimes[i];
	request.session = naming->opts.sessions[i];
	request.unknown = captured->n_unknown;
	request.unknown_ever = captured->unknown_ever;
	request.named_ever = captured->named_ever;
	request.now_ns = now_ns();
	rc = map_asking__step(&captured->asking, &request, &err);
	if (rc < 0 && err.text[0])
		report(naming, process, i, "none", err.text);
	return rc;
}

/* Returns true for a live process with code to be named. */
static bool is_concerned(const struct captured *captured)
{
	return captured->has_own_code && !process__is_ended(captured->process);
}

/* Sends the last requests to all processes, and waits for their answers for at most ASK_LAST_MS in
 * total. */
static int ask_last(struct naming_compiled *naming, struct err *err)
{
	uint64_t end_ns = now_ns() + ASK_LAST_MS * (NSEC_PER_SEC / 1000), now;
	struct captured *captured;
	int rc = 0;

	for (captured = naming->opts.set->first; captured; captured = captured->hh.next)
		if (is_concerned(captured))
			ask(naming, captured, true, 0);
	for (captured = naming->opts.set->first; !rc && captured; captured = captured->hh.next) {
		now = now_ns();
		if (is_concerned(captured) && captured->asking.under_way &&
		    ask(naming, captured, true,
			now < end_ns ? (end_ns - now) / (NSEC_PER_SEC / 1000) : 0) > 0)
			rc = read_and_name(naming, captured, JIT_LOOK_ALL, err);
	}
	return rc;
}

int naming_compiled__run(struct naming_compiled *naming, bool last, struct err *err)
{
	struct captured *captured;
	int rc = 0;

	for (captured = naming->opts.set->first; !rc && captured; captured = captured->hh.next) {
		if (!is_concerned(captured))
			continue;
		rc = read_and_name(naming, captured, last ? JIT_LOOK_ALL : JIT_LOOK_FILES, err);
		if (!rc && !last && ask(naming, captured, false, 0) > 0)
			rc = read_and_name(naming, captured, JIT_LOOK_FILES, err);
	}
	return rc || !last ? rc : ask_last(naming, err);
}

int naming_compiled__ended(struct naming_compiled *naming, struct captured *captured,
			   struct err *err)
{
	return read_and_name(naming, captured, JIT_LOOK_ALL, err);
}

void naming_compiled__count(struct naming_compiled *naming, const struct captured *captured)
{
	compiled_code__count(captured->process, &naming->counts);
}

static struct jit_maps_counts count_all(const struct naming_compiled *naming)
{
	struct jit_maps_counts counts = naming->counts;
	const struct captured *captured;

	for (captured = naming->opts.set->first; captured; captured = captured->hh.next)
		compiled_code__count(captured->process, &counts);
	return counts;
}

void naming_compiled__renew(struct naming_compiled *naming)
{
	naming->stats = (struct compiled_stats) {};
	naming->before = count_all(naming);
}

void naming_compiled__stats(const struct naming_compiled *naming, struct compiled_stats *ret)
{
	struct jit_maps_counts counts = count_all(naming);

	*ret = naming->stats;
	ret->symbols = counts.symbols - min_of(naming->before.symbols, counts.symbols);
	ret->skipped = counts.skipped - min_of(naming->before.skipped, counts.skipped);
}
