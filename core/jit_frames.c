// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/jit_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/profile.h"
#include "core/spaces.h"
#include "core/util.h"

#define ASK_LAST_MS 2000
#define UNKNOWN_MAX 65536 /* of a process; others keep the name that says where they are */

static int no_memory(struct err *err)
{
	return err__set(err, -ENOMEM, "out of memory");
}

int jit_frames__new(const struct jit_frames_opts *opts, struct jit_frames **ret)
{
	struct jit_frames *jit = calloc(1, sizeof(*jit));

	if (!jit)
		return -ENOMEM;
	jit->opts = *opts;
	jit->labels = (struct jit_labels) { opts->runtimes, opts->enabled };
	naming__use_maps(opts->naming, jit__name_image_code, jit);
	*ret = jit;
	return 0;
}

static void forget(struct jit_frames *jit, struct process *process)
{
	struct jit_code *code = process->jit;

	if (!code)
		return;
	if (code->maps)
		code_maps__count(code->maps, &jit->counts);
	code_maps__free(code->maps);
	u64map__done(&code->by_address);
	free(code->slots);
	free(code->unknown);
	free(code);
	process->jit = NULL;
}

void jit_frames__free(struct jit_frames *jit)
{
	struct process *process;

	if (!jit)
		return;
	for (process = tracker__first(jit->opts.tracker); process; process = process->hh.next)
		forget(jit, process);
	free(jit);
}

/* --- the maps --- */

/* For the first time. */
static int make_code(struct jit_frames *jit, struct process *process)
{
	struct jit_code *code = process->jit;

	if (code)
		return 0;
	code = process->jit = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	process__read_info(process);
	return jit_labels__wanted(&jit->labels, process)
		       ? code_maps__new(&process->info, &code->maps)
		       : 0;
}

static int look(struct process *process, enum code_look how, uint64_t now)
{
	struct code_maps *maps = process->jit->maps;
	size_t i;

	if (!maps)
		return 0;
	for (i = 0; how != CODE_LOOK_GROWTH && i < process->n_mapped; i++)
		if (!process->mapped[i].image)
			code_maps__offer(maps, process->mapped[i].path, process->mapped[i].start,
					 process->mapped[i].end);
	return code_maps__look(maps, how, now);
}

static void tell_refusal(struct jit_frames *jit, struct process *process)
{
	struct err err;
	int i;

	if (!process->jit->maps || !code_maps__refusal(process->jit->maps, &err))
		return;
	for (i = 0; jit->opts.runtimes[i]; i++)
		if (jit_labels__know(&jit->labels, process, i)) {
			jit__tell(jit, process, i, "none", err.text);
			return;
		}
}

int jit_frames__begin(struct jit_frames *jit, struct process *process, struct err *err)
{
	if (make_code(jit, process) || look(process, CODE_LOOK_ALL, now_ns()))
		return no_memory(err);
	tell_refusal(jit, process);
	return 0;
}

static bool has_own_code(const struct process *process)
{
	size_t i;

	for (i = 0; i < process->n_mapped; i++)
		if (!process->mapped[i].image)
			return true;
	return false;
}

/* Only the code that was there then has names that its parent gave. */
int jit_frames__forked(struct jit_frames *jit, struct process *parent, struct process *child,
		       uint64_t time_ns, struct err *err)
{
	if (child->jit || !has_own_code(parent))
		return 0;
	if (make_code(jit, parent))
		return no_memory(err);
	if (!parent->jit->maps)
		return 0;
	child->jit = calloc(1, sizeof(*child->jit));
	process__read_info(child);
	if (!child->jit ||
	    code_maps__fork(parent->jit->maps, &child->info, time_ns, &child->jit->maps))
		return no_memory(err);
	return 0;
}

/* --- frames --- */

/* Is it the code that the slot had before? A file that was written anew has lost the old name. */
static bool is_same(const struct code_maps *maps, const struct jit_slot *slot,
		    const struct code_place *place)
{
	const struct code_entry *a = &slot->place.entry, *b = &place->entry;
	struct code_symbol symbol;

	if (a->start != b->start || a->size != b->size)
		return false;
	if (slot->place.source == place->source && slot->place.edition == place->edition &&
	    a->text == b->text)
		return true;
	return !slot->name_hash || (code_maps__symbol(maps, place, slot->address, 0, &symbol) &&
				    jit__hash(symbol.name) == slot->name_hash);
}

/* Whether the address has other code now. What was not known may have become known, which is no
 * change; that a map does not tell of code any more proves nothing: it may be half written. */
static bool has_changed(struct code_maps *maps, struct jit_slot *slot, const struct code_place *now)
{
	if (!now->entry.text)
		return false;
	if (!slot->place.entry.text &&
	    !code_maps__find(maps, slot->address, slot->first_ns, &slot->place))
		return false;
	return !is_same(maps, slot, now);
}

static struct recording_frame frame_of(const struct jit_slot *slot, uint32_t process_id)
{
	return (struct recording_frame) { .kind = KIND_NATIVE,
					  .process = process_id,
					  .address = slot->address,
					  .loop = slot->loop,
					  .generation = slot->generation };
}

static int add_unknown(struct jit_code *code, const struct jit_slot *slot)
{
	if (code->n_unknown == UNKNOWN_MAX)
		return 0;
	if (array__reserve(&code->unknown, &code->cap_unknown, code->n_unknown + 1,
			   sizeof(*code->unknown)))
		return -ENOMEM;
	code->unknown[code->n_unknown++] = *slot;
	code->unknown_ever++;
	return 0;
}

/* A frame for the slot's place. */
static int new_frame(struct jit_frames *jit, struct process *process, uint32_t process_id,
		     const struct mapped *mapped, struct jit_slot *slot, struct err *err)
{
	const struct runtime *compiles = jit_labels__compiler(&jit->labels, process, mapped);
	bool walked = compiles && compiles->runs_own_code && compiles->walker >= 0 &&
		      process->space->walkers & 1U << compiles->walker;
	struct recording_frame frame;
	int rc;

	slot->loop = compiles && compiles->runs_own_code;
	frame = frame_of(slot, process_id);
	rc = recording__frame(jit->opts.recording, &frame, &slot->frame, NULL, err);
	if (rc)
		return rc;
	slot->counted = walked || jit_labels__is_made(mapped);
	jit->stats.places += slot->counted && !walked;
	if (slot->place.entry.text)
		rc = jit__name_slot(jit, process, slot, &frame, err);
	if (rc)
		return rc < 0 ? rc : 0;
	if (jit__name_by_place(jit, mapped, compiles, slot) ||
	    (process->jit->maps && add_unknown(process->jit, slot)))
		return no_memory(err);
	return 0;
}

static struct jit_slot *find_slot(struct jit_code *code, uint64_t address)
{
	uint32_t n = u64map__get(&code->by_address, address);

	if (n)
		return &code->slots[n - 1];
	if (array__reserve(&code->slots, &code->cap_slots, code->n_slots + 1,
			   sizeof(*code->slots)) ||
	    u64map__put(&code->by_address, address, code->n_slots + 1))
		return NULL;
	code->slots[code->n_slots] = (struct jit_slot) { .address = address };
	return &code->slots[code->n_slots++];
}

/* A runtime was attached after the first samples of its code. */
static int see_runtimes(struct jit_frames *jit, struct process *process, uint32_t process_id,
			struct err *err)
{
	struct jit_code *code = process->jit;
	int rc = 0;

	if (!process->space || code->attached == process->space->attached)
		return 0;
	code->attached = process->space->attached;
	for (size_t i = 0; !rc && i < code->n_slots; i++) {
		struct jit_slot *slot = &code->slots[i];
		struct recording_frame frame = frame_of(slot, process_id);
		const struct runtime *compiles = jit_labels__compiler(
			&jit->labels, process, process__find(process, slot->address));

		if (!slot->frame || slot->loop || !compiles || !compiles->runs_own_code)
			continue;
		slot->loop = true;
		rc = recording__frame_is_loop(jit->opts.recording, slot->frame, &frame, err);
	}
	return rc;
}

/* Reads what has been written until then, if that was not done yet. */
static int catch_up(struct process *process, uint64_t time_ns)
{
	struct code_maps *maps = process->jit->maps;
	uint64_t looked_ns = maps ? code_maps__looked_ns(maps) : UINT64_MAX;

	if (looked_ns >= time_ns)
		return 0;
	return look(process, looked_ns ? CODE_LOOK_GROWTH : CODE_LOOK_FILES, now_ns());
}

int jit_frames__version(struct process *process, uint64_t time_ns, uint32_t *ret_version,
			struct err *err)
{
	struct jit_code *code = process->jit;

	*ret_version = 0;
	if (!code || !code->maps)
		return 0;
	if (catch_up(process, time_ns))
		return no_memory(err);
	*ret_version = code_maps__version(code->maps);
	return 0;
}

int jit_frames__get(struct jit_frames *jit, struct process *process, uint32_t process_id,
		    const struct mapped *mapped, uint64_t address, uint64_t time_ns,
		    uint32_t *ret_id, struct err *err)
{
	struct code_place place = {};
	struct code_maps *maps;
	struct jit_slot *slot;
	int rc = 0;

	if (make_code(jit, process) || !(slot = find_slot(process->jit, address)))
		return no_memory(err);
	rc = see_runtimes(jit, process, process_id, err);
	if (rc)
		return rc;
	maps = process->jit->maps;
	if (catch_up(process, time_ns))
		return no_memory(err);
	if (maps && slot->version != code_maps__version(maps)) {
		code_maps__find(maps, address, time_ns, &place);
		slot->version = code_maps__version(maps);
	}
	if (!slot->frame || has_changed(maps, slot, &place)) {
		slot->generation += !!slot->frame;
		slot->place = place;
		slot->first_ns = time_ns;
		rc = new_frame(jit, process, process_id, mapped, slot, err);
	}
	*ret_id = slot->frame;
	return rc;
}

/* --- once a second, and at the end --- */

/* Names of unknown code that have come since; those that are still unknown stay. */
static int name_unknown(struct jit_frames *jit, struct process *process, struct err *err)
{
	struct jit_code *code = process->jit;
	size_t i, kept = 0;
	int rc = 0;

	if (!code->maps || code->resolved == code_maps__version(code->maps))
		return 0;
	code->resolved = code_maps__version(code->maps);
	for (i = 0; i < code->n_unknown; i++) {
		struct jit_slot frame = code->unknown[i], *slot = find_slot(code, frame.address);
		struct recording_frame row = frame_of(&frame, process->recording_id);
		int named = 0;

		if (slot && slot->generation == frame.generation)
			frame.loop = slot->loop;
		if (!rc && code_maps__find(code->maps, frame.address, frame.first_ns, &frame.place))
			named = jit__name_slot(jit, process, &frame, &row, err);
		rc = min_of(rc, named);
		if (named <= 0)
			code->unknown[kept++] = code->unknown[i];
		else if (slot && slot->generation == frame.generation)
			*slot = frame;
	}
	code->named_ever += code->n_unknown - kept;
	code->n_unknown = kept;
	return rc;
}

/* Where a runtime has come that wants maps, after the first frames. */
static int begin_late(struct jit_frames *jit, struct process *process)
{
	struct jit_code *code = process->jit;
	size_t i;

	if (code->maps || !jit_labels__wanted(&jit->labels, process))
		return 0;
	if (code_maps__new(&process->info, &code->maps))
		return -ENOMEM;
	for (i = 0; i < code->n_slots; i++)
		if (add_unknown(code, &code->slots[i]))
			return -ENOMEM;
	return 0;
}

static int read_and_name(struct jit_frames *jit, struct process *process, enum code_look how,
			 struct err *err)
{
	if (!process->jit->n_slots)
		return 0; /* it may never run code that it makes */
	if (begin_late(jit, process) || look(process, how, now_ns()))
		return no_memory(err);
	tell_refusal(jit, process);
	return name_unknown(jit, process, err);
}

/* The runtime that may be asked for a map: where its walker runs, that finds the names. -1: none */
static int asked_runtime(const struct jit_frames *jit, const struct process *process)
{
	for (int i = 0; jit->opts.runtimes[i]; i++) {
		const struct runtime *runtime = jit->opts.runtimes[i];

		if (runtime->ask_map && jit_labels__know(&jit->labels, process, i) &&
		    !(runtime->walker >= 0 && process->space->walkers & 1U << runtime->walker))
			return i;
	}
	return -1;
}

/* As jit_asking__step. */
static int ask(struct jit_frames *jit, struct process *process, bool last, unsigned wait_ms)
{
	struct jit_code *code = process->jit;
	int i = asked_runtime(jit, process), rc;
	struct jit_asked asked = { .pid = process->pid, .last = last, .wait_ms = wait_ms };
	struct err err = {};

	if (i < 0 || procfs__is_recorded()) /* who has its PID now is another one */
		return 0;
	asked.runtime = jit->opts.runtimes[i];
	asked.session = jit->opts.sessions[i];
	asked.unknown = code->n_unknown;
	asked.unknown_ever = code->unknown_ever;
	asked.named_ever = code->named_ever;
	asked.now_ns = now_ns();
	rc = jit_asking__step(&code->asking, &asked, &err);
	if (rc < 0 && err.text[0])
		jit__tell(jit, process, i, "none", err.text);
	return rc;
}

/* Asks all that can be asked, waits for their answers, together for ASK_LAST_MS at most. */
static int ask_last(struct jit_frames *jit, struct err *err)
{
	uint64_t end_ns = now_ns() + ASK_LAST_MS * (NSEC_PER_SEC / 1000), now;
	struct process *process;
	int rc = 0;

	for (process = tracker__first(jit->opts.tracker); process; process = process->hh.next)
		if (process->jit && !process->gone)
			ask(jit, process, true, 0);
	for (process = tracker__first(jit->opts.tracker); !rc && process;
	     process = process->hh.next) {
		now = now_ns();
		if (process->jit && !process->gone && process->jit->asking.under_way &&
		    ask(jit, process, true,
			now < end_ns ? (end_ns - now) / (NSEC_PER_SEC / 1000) : 0) > 0)
			rc = read_and_name(jit, process, CODE_LOOK_ALL, err);
	}
	return rc;
}

int jit_frames__run(struct jit_frames *jit, bool last, struct err *err)
{
	struct process *process;
	int rc = 0;

	for (process = tracker__first(jit->opts.tracker); !rc && process;
	     process = process->hh.next) {
		if (!process->jit || process->gone)
			continue;
		rc = read_and_name(jit, process, last ? CODE_LOOK_ALL : CODE_LOOK_FILES, err);
		if (!rc && !last && ask(jit, process, false, 0) > 0)
			rc = read_and_name(jit, process, CODE_LOOK_FILES, err);
	}
	return rc || !last ? rc : ask_last(jit, err);
}

int jit_frames__ended(struct jit_frames *jit, struct process *process, struct err *err)
{
	int rc = 0;

	if (process->jit)
		rc = read_and_name(jit, process, CODE_LOOK_ALL, err);
	forget(jit, process);
	return rc;
}

void jit_frames__stats(const struct jit_frames *jit, struct jit_frames_stats *ret)
{
	struct code_maps_counts counts = jit->counts;
	const struct process *process;

	for (process = tracker__first(jit->opts.tracker); process; process = process->hh.next)
		if (process->jit && process->jit->maps)
			code_maps__count(process->jit->maps, &counts);
	*ret = jit->stats;
	ret->symbols = counts.symbols;
	ret->skipped = counts.skipped;
}
