// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/capture_state.h"

#include <assert.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/target/mapping_times.h"

static bool hurries(const struct capture *capture)
{
	return capture->opts.hurries && capture->opts.hurries(capture->opts.ctx);
}

void capture__skip_copies(struct capture *capture)
{
	capture->skips_copies = true;
}

int capture__begin_events(struct capture *capture, struct err *err)
{
	uint32_t i, id;
	int ret = 0;

	assert(capture->opts.n_events <= EVENTS_MAX);
	for (i = 0; !ret && i < capture->opts.n_events; i++) {
		ret = ids__event(capture->ids, &capture->opts.events[i].event, &id, err);
		assert(ret || id == i + 1);
	}
	return ret;
}

int capture__new(const struct capture_opts *opts, struct capture **ret, struct err *err)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int rc = -ENOMEM;

	if (!capture)
		return err__set(err, -ENOMEM, "out of memory");
	capture->opts = *opts;
	tick_weight__change(&capture->weight, 0, 1);
	capture->stacks = stack_copies__new(libbpf_num_possible_cpus());
	capture->sent = sent_stacks__new();
	capture->pairing = pairing__new();
	capture->sections = sections__new();
	capture->pending = pending_values__new(&capture->ids, &capture->stats);
	if (capture->stacks && capture->sent && capture->pairing && capture->sections &&
	    capture->pending)
		rc = ids__new(opts->sink, &capture->ids, err);
	if (!rc)
		rc = capture__begin_events(capture, err);
	if (!rc)
		rc = naming__new(&(struct naming_opts) { .ids = capture->ids,
							 .set = &capture->processes,
							 .runtimes = opts->runtimes,
							 .sessions = opts->sessions,
							 .kallsyms_path = opts->kallsyms_path,
							 .hurries = opts->hurries,
							 .on_fetch = opts->on_fetch,
							 .ctx = opts->ctx },
				 &capture->naming, err);
	if (!rc)
		rc = naming_compiled__new(
			&(struct naming_compiled_opts) { .ids = capture->ids,
							 .naming = capture->naming,
							 .set = &capture->processes,
							 .runtimes = opts->runtimes,
							 .sessions = opts->sessions,
							 .on_source = opts->on_source,
							 .ctx = opts->ctx },
			&capture->compiled);
	if (!rc)
		rc = place_frames__new(&(struct place_frames_opts) { capture->ids, capture->naming,
								     capture->compiled,
								     opts->runtimes },
				       &capture->place_frames);
	if (!rc)
		rc = stack_nodes__new(&(struct stack_nodes_opts) { capture->ids, capture->naming,
								   capture->place_frames,
								   opts->runtimes, opts->sessions },
				      &capture->nodes);
	if (!rc)
		rc = copied_frames__new(&capture->copier);
	if (rc)
		capture__free(capture);
	else
		*ret = capture;
	return rc;
}

void capture__free(struct capture *capture)
{
	if (!capture)
		return;
	naming_compiled__free(capture->compiled);
	place_frames__free(capture->place_frames);
	naming__free(capture->naming);
	copied_frames__free(capture->copier);
	pairing__free(capture->pairing);
	pending_values__free(capture->pending);
	contexts__done(&capture->contexts);
	sections__free(capture->sections);
	stack_nodes__free(capture->nodes);
	stack_copies__free(capture->stacks);
	sent_stacks__free(capture->sent);
	captured_set__done(&capture->processes);
	pending_records__free(capture->carried);
	ids__free(capture->ids);
	free(capture);
}

void capture__weigh(struct capture *capture, uint64_t since_ns, uint32_t value)
{
	tick_weight__change(&capture->weight, since_ns, value);
}

/* Returns true for a sample that was taken by the clock. A timed event may also have samples that
 * are taken while the thread does not run. */
static bool is_tick(const struct capture *capture, const struct rec_sample *rec)
{
	return capture->opts.events[rec->event - 1].timed && rec->condition.state <= STATE_RUNS;
}

const struct capture_stats *capture__stats(const struct capture *capture)
{
	return &capture->stats;
}

int capture__name_frames(struct capture *capture, bool last, struct err *err)
{
	int ret = naming__run(capture->naming, last, err);

	if (!ret)
		ret = process_names__run(&capture->processes, capture->ids, last, err);
	if (!ret)
		ret = capture__offer_attributes(capture, err);
	capture->stats.unfinished = last ? pending_values__unfinished(capture->pending) : 0;
	capture->stats.kernel_unnamed = naming__kernel_unnamed(capture->naming);
	if (!ret && last && !hurries(capture))
		ret = stack_nodes__name_threads(capture->nodes, &capture->processes, err);
	return ret || hurries(capture) ? ret : naming_compiled__run(capture->compiled, last, err);
}

int capture__fetch_names(struct capture *capture, struct err *err)
{
	return naming__fetch(capture->naming, &capture->stats.fetched, err);
}

static int no_memory(struct err *err)
{
	return err__set(err, -ENOMEM, "out of memory");
}

static int runtime_of_walker(const struct capture *capture, uint32_t walker)
{
	int i;

	for (i = 0; capture->opts.runtimes[i]; i++)
		if (runtime__slot(capture->opts.runtimes[i]) == (int)walker &&
		    capture->opts.sessions[i])
			return i;
	return -1;
}

static uint64_t stack_base(const struct capture *capture)
{
	for (size_t i = capture->n_frames; i-- > 0;)
		if (capture->frames[i].cfa)
			return capture->frames[i].cfa;
	return 0;
}

/* Pairs one section's frames in place. *@ret has no frames if the runtime is not recorded. */
static void pair_section(struct capture *capture, const struct stack_owner *owner,
			 const struct rec_section *rec, bool native_complete,
			 struct runtime_pair *pairs, struct section *ret)
{
	int runtime = runtime_of_walker(capture, rec->walker);

	*ret = (struct section) { .pairs = pairs,
				  .runtime = runtime,
				  .evidence = rec->flags & SECTION_INFERRED ? EVIDENCE_INFERRED
									    : EVIDENCE_RULE };
	if (runtime < 0)
		return;
	ret->n = pairing__run(capture->pairing,
			      &(struct pairing_sample) { .process = owner->captured->process,
							 .time_ns = owner->time_ns,
							 .runtime = capture->opts.runtimes[runtime],
							 .session = capture->opts.sessions[runtime],
							 .index = runtime,
							 .natives = capture->frames,
							 .n_natives = capture->n_frames,
							 .native_complete = native_complete,
							 .flags = rec->flags },
			      pairs, rec->n);
}

/* Marks the frames whose inlined functions are inferred. The evidence of the stack itself does not
 * change. */
static void mark_inlined(const struct capture *capture, struct runtime_stack *stack,
			 struct cached_result *result)
{
	for (size_t i = 0; i < stack->n; i++) {
		int of = stack->runtimes[i];
		const struct runtime *runtime = capture->opts.runtimes[of];

		if (stack->evidence[i] == EVIDENCE_INFERRED ||
		    !runtime__has(runtime, names, infers_inlined) ||
		    !runtime->names->infers_inlined(capture->opts.sessions[of],
						    stack->pairs[i].key))
			continue;
		stack->evidence[i] = EVIDENCE_INFERRED;
		result->inferred_runtimes++;
	}
}

/* Returns how many functions of the stack lost their names. */
static uint32_t count_stale(const struct capture *capture, const struct runtime_stack *stack)
{
	uint32_t n = 0;

	for (size_t i = 0; i < stack->n; i++) {
		int of = stack->runtimes[i];
		const struct runtime *runtime = capture->opts.runtimes[of];

		if (runtime__has(runtime, names, count_stale))
			n += runtime->names->count_stale(capture->opts.sessions[of],
							 stack->pairs[i].key);
	}
	return n;
}

/* Builds the nodes of all runtimes' frames. @words contains the pairs of all sections. */
static int runtime_nodes(struct capture *capture, const struct stack_owner *owner,
			 const struct rec_sample *rec, const void *words, bool native_complete,
			 struct cached_result *result, struct err *err)
{
	struct section sections[SECTIONS_MAX];
	size_t n = 0, used = 0, i;

	for (i = 0; i < rec->n_sections; i++) {
		const struct rec_section *section = &rec->sections[i];
		struct runtime_pair *pairs = capture->pairs + used;

		memcpy(pairs, (const struct runtime_pair *)words + used,
		       section->n * sizeof(*pairs));
		used += section->n;
		pair_section(capture, owner, section, native_complete, pairs, &sections[n]);
		if (!sections[n].n)
			continue;
		result->sections[n].runtime = sections[n].runtime;
		result->sections[n].frames = sections[n].n;
		if (sections[n].evidence == EVIDENCE_INFERRED) {
			result->inferred_runtimes += sections[n].n;
			result->flags &= ~SAMPLE_COMPLETE;
		}
		n++;
	}
	result->n_sections = n;
	if (!n)
		return 0;
	result->unplaced = sections__merge(
		capture->sections, sections, n,
		&(struct section_natives) { capture->frames, capture->n_frames, native_complete },
		&capture->runtime_stack);
	mark_inlined(capture, &capture->runtime_stack, result);
	result->stale = count_stale(capture, &capture->runtime_stack);
	return stack_nodes__runtime(capture->nodes, owner, &capture->runtime_stack,
				    &result->runtime, err);
}

/* Unwinds the stack copy of a sample. Uses the result if it is complete, or has more frames than
 * the tables gave. */
static void unwind_stack_copy(struct capture *capture, struct process *process,
			      const struct rec_stack *stack, uint16_t stop, uint32_t *flags)
{
	static struct native_frame frames[NATIVE_FRAMES_MAX];
	bool complete;
	size_t n = copied_frames__of(capture->copier, process, stack, frames, &complete);

	if (!n || (!complete && (*flags & SAMPLE_COMPLETE || n <= capture->n_frames)))
		return;
	capture->stats.copies_used += !(*flags & SAMPLE_COMPLETE);
	capture->stats.recovered[stop < COUNTERS_N ? stop : 0] += complete;
	memcpy(capture->frames, frames, n * sizeof(frames[0]));
	capture->n_frames = n;
	*flags = (*flags & ~SAMPLE_COMPLETE) | (complete ? SAMPLE_COMPLETE : 0);
}

/* Returns true if the stack may have frames, between those of the tables, that only a walker
 * finds. */
static bool ran_own_code(const struct capture *capture, const struct rec_sample *rec)
{
	for (int i = 0; i < rec->n_sections; i++) {
		int runtime = runtime_of_walker(capture, rec->sections[i].walker);

		if (runtime >= 0 &&
		    runtime__jit_frames(capture->opts.runtimes[runtime]) == JIT_FRAMES_RUN)
			return true;
	}
	return false;
}

/* Returns how many of the native frames are inferred. */
static uint32_t count_inferred(const struct capture *capture)
{
	uint32_t n = 0;

	for (size_t i = 0; i < capture->n_frames; i++)
		n += NATIVE_EVIDENCE(capture->frames[i].ip) == EVIDENCE_INFERRED;
	return n;
}

/* Cuts the stack at a frame that the kernel half may have unwound by the table of a mapping that
 * had ended. If the event of the new mapping was lost, the frame has no name either. */
static void cut_at_unsure(struct capture *capture, const struct process *process,
			  const struct rec_sample *rec, uint32_t *flags)
{
	if (rec->flags & SAMPLE_REMAPPED || !mapping_times__has_unsure(process, rec->time_ns))
		return;
	for (size_t i = 0; i < capture->n_frames; i++) {
		uint64_t address = native_frame__address(&capture->frames[i]);

		if (!mapping_times__is_unsure(process, address, rec->time_ns) ||
		    (i + 1 == capture->n_frames &&
		     mapping_times__find(process, address, rec->time_ns)))
			continue;
		capture->n_frames = i + 1;
		*flags &= ~SAMPLE_COMPLETE;
		capture->stats.unsure++;
		capture->stats.recovered[rec->stop < COUNTERS_N ? rec->stop : 0]++;
	}
}

/* Returns the runtimes, bit n for runtime n, that may have frames in the process: those that are
 * attached and walked, or not decided yet. */
static uint32_t expected_runtimes(const struct process *process)
{
	const struct space *space = process->space;
	uint32_t refused = space ? space->decided & ~(space->attached & ~space->unwalked) : 0;

	return process->runtimes ? process->runtimes->enabled & ~refused : 0;
}

/* Marks a stack that runs through the interpreter loop of a runtime but has no frames of that
 * runtime. Such a sample precedes the runtime's detection or the load of its walker, or its frames
 * were lost. Returns 0 or -ENOMEM. */
static int miss_runtimes(struct capture *capture, const struct stack_owner *owner,
			 struct cached_result *result)
{
	struct process *process = owner->captured->process;
	uint32_t expected = expected_runtimes(process);
	const struct place *place;

	for (size_t i = 0; i < result->n_sections; i++)
		expected &= ~(1U << result->sections[i].runtime);
	for (size_t i = 0; expected && i < capture->n_frames; i++) {
		if (place__at(process, native_frame__address(&capture->frames[i]), owner->time_ns,
			      &place))
			return -ENOMEM;
		if (place->loops & expected) {
			result->missing = true;
			result->flags &= ~SAMPLE_COMPLETE;
			result->flags |= SAMPLE_RUNTIME_BROKEN;
			return 0;
		}
	}
	return 0;
}

/* Builds the result of a sample's stack: all data that the sample's row needs from it. */
static int make_result(struct capture *capture, const struct rec_sample *rec,
		       struct stack_owner *owner, struct cached_result *ret_result, struct err *err)
{
	struct process *process = owner->captured->process;
	const uint64_t *words = (const uint64_t *)(rec + 1), *native = words + rec->n_kernel;
	uint64_t kernel[KERNEL_FRAMES_MAX + 1];
	struct stack_natives natives = { .kernel = kernel, .frames = capture->frames };
	const struct rec_stack *stack = NULL;
	int ret;

	*ret_result = (struct cached_result) { .flags = rec->flags };
	if (rec->flags & SAMPLE_HAS_STACK)
		stack = stack_copies__take(capture->stacks, rec);
	capture->n_frames = rec->n_native;
	memcpy(capture->frames, native, rec->n_native * sizeof(*capture->frames));
	cut_at_unsure(capture, process, rec, &ret_result->flags);
	if (stack && !ran_own_code(capture, rec) && !capture->skips_copies && !hurries(capture))
		unwind_stack_copy(capture, process, stack, rec->stop, &ret_result->flags);
	ret_result->inferred_frames = count_inferred(capture);
	if (ret_result->inferred_frames)
		ret_result->flags &= ~SAMPLE_COMPLETE;
	owner->base = stack_base(capture);
	natives.n = capture->n_frames;
	ret = naming__kernel_frames(capture->naming, rec, words, kernel, &natives.n_kernel);
	if (!ret)
		ret = stack_nodes__native(capture->nodes, owner, &natives, &ret_result->native,
					  err);
	if (!ret)
		ret = runtime_nodes(capture, owner, rec, native + 2 * rec->n_native,
				    ret_result->flags & SAMPLE_COMPLETE, ret_result, err);
	if (!ret)
		ret = miss_runtimes(capture, owner, ret_result);
	ret_result->kernel_frames = natives.n_kernel;
	ret_result->native_frames = capture->n_frames;
	return ret;
}

/* Returns the result of a sample's stack. @cached is the cached result of the same stack, and
 * receives the new one; NULL: no cache. */
static int result_of(struct capture *capture, const struct rec_sample *rec,
		     struct stack_owner *owner, struct cached_result *cached,
		     struct cached_result *ret_result, struct err *err)
{
	int ret;

	if (mapping_times__has_unsure(owner->captured->process, rec->time_ns))
		cached = NULL;
	ret = cached ? cached_result__holds(cached, rec, owner->captured, capture->n_codes) : 0;
	if (ret > 0) {
		*ret_result = *cached;
		return place_frames__see_runtimes(capture->place_frames, owner->captured, err);
	}
	if (!ret)
		ret = make_result(capture, rec, owner, ret_result, err);
	if (!ret && cached)
		ret = cached_result__store(cached, rec, owner->captured, capture->n_codes,
					   stack_nodes__is_moving(capture->nodes, owner),
					   ret_result);
	return ret;
}

void capture__lose_record(struct capture *capture, const struct rec_sample *rec)
{
	capture->stats.unowned++;
	capture__lose(capture, &(struct lost_sample) { .event = rec->event,
						       .state = rec->condition.state,
						       .time_ns = rec->time_ns,
						       .weight = rec->weight,
						       .total = rec->total,
						       .object = rec->object });
}

/* Returns the id of the sample's request context. */
static int context_of(struct capture *capture, const struct rec_sample *rec,
		      struct process *process, uint32_t *ret_id, struct err *err)
{
	struct context context;
	const struct event_values *values = capture->opts.events[rec->event - 1].values;
	int ret = contexts__find(&capture->contexts, rec->context, process, values, &context);

	if (ret == -ENOENT)
		capture->stats.contexts_lost++;
	if (ret)
		return ret == -ENOENT ? 0 : err__set(err, ret, "out of memory");
	capture->stats.contexts_malformed += context.is_malformed;
	return ids__context(capture->ids, &context.sink, ret_id, err);
}

int capture__sample(struct capture *capture, const struct rec_sample *rec, size_t size,
		    struct cached_result *cached, struct err *err)
{
	struct process *process = tracker__find(capture->opts.tracker, rec->tgid);
	struct sink_sample row = {
		.time_ns = rec->time_ns,
		.cpu = rec->cpu,
		.event = rec->event,
		.condition = rec->condition,
		.peer = rec->peer,
		.object = rec->object,
		.link = rec->link,
		.task = rec->task,
	};
	struct stack_owner owner = { .tid = rec->tid, .name = rec->comm, .time_ns = rec->time_ns };
	struct cached_result result = {};
	int ret;

	/* The sample's process does not match the scope, so a cut stack is no loss either. */
	if (!process && rec->flags & SAMPLE_UNDECIDED) {
		capture->stats.recovered[rec->stop < COUNTERS_N ? rec->stop : 0]++;
		return 0;
	}
	if (!process) {
		capture__lose_record(capture, rec);
		return 0;
	}
	if (process->hidden) {
		capture->stats.unowned++;
		return 0;
	}
	capture__forget_ended(capture);
	if (!sample_record__is_sane(rec, size, capture->opts.n_events)) {
		capture->stats.malformed++;
		return 0;
	}
	row.value = rec->value;
	row.weight = rec->weight;
	row.total = rec->total;
	if (is_tick(capture, rec)) {
		row.weight *= tick_weight__at(&capture->weight, rec->time_ns);
		row.total *= tick_weight__at(&capture->weight, rec->time_ns);
	}
	ret = capture__captured_of(capture, process, &owner.captured, err);
	if (!ret)
		ret = stack_nodes__thread(capture->nodes, &owner, &row.thread, err);
	if (!ret && rec->context)
		ret = context_of(capture, rec, process, &row.context, err);
	if (!ret)
		ret = result_of(capture, rec, &owner, cached, &result, err);
	row.native = result.native;
	row.runtime = result.runtime;
	row.flags = result.flags & ~SAMPLE_UNDECIDED;
	if (ret || rec->flags & SAMPLE_UNDER_WAY)
		return ret ? ret : ids__sample(capture->ids, &row, err);
	if (!ret)
		ret = pending_values__sample(capture->pending, &row,
					     &(struct pending_origin) { process->serial, rec, size,
									capture->opts.renews },
					     err);
	capture->stats.samples++;
	capture->stats.event_samples[rec->event - 1]++;
	capture->stats.ticks += is_tick(capture, rec);
	capture->stats.early +=
		rec->stop == COUNT_NO_MAPPINGS && process__attached(process) && !result.missing;
	cached_result__count(&result, is_tick(capture, rec), &capture->stats);
	/* The stack of a task without native frames ends where the task began. */
	if (rec->condition.state == STATE_PARKED && !rec->n_native)
		capture->stats.complete +=
			!(result.flags &
			  (SAMPLE_COMPLETE | SAMPLE_RUNTIME_TRUNCATED | SAMPLE_RUNTIME_BROKEN));
	return ret;
}

static int on_code(struct capture *capture, const struct rec_code_object *rec, size_t size)
{
	int runtime = size >= REC_CODE_OBJECT_HEADER ? runtime_of_walker(capture, rec->walker) : -1;
	int ret = runtime < 0 ? 0
			      : capture->opts.runtimes[runtime]->names->on_code(
					capture->opts.sessions[runtime], rec, size);

	capture->n_codes++;
	return ret == -ENOMEM ? ret : 0;
}

static void lose_repeat(struct capture *capture, const struct rec_repeat *repeat, size_t size)
{
	const struct rec_repeat_about *about = (const struct rec_repeat_about *)repeat;

	capture->stats.repeat_lost++;
	capture__lose(capture, &(struct lost_sample) {
				       .event = repeat->event,
				       .state = repeat->condition.state,
				       .time_ns = repeat->time_ns,
				       .weight = repeat->weight,
				       .total = repeat->total,
				       .object = size >= sizeof(*about) ? about->object : 0 });
}

static int on_repeat(struct capture *capture, const void *data, size_t size, struct err *err)
{
	struct cached_result *result;
	const struct rec_sample *rec = sent_stacks__find(capture->sent, data, size, &size, &result);

	if (!rec)
		lose_repeat(capture, data, size);
	return rec ? capture__sample(capture, rec, size, result, err) : 0;
}

int capture__record(struct capture *capture, const void *data, size_t size, struct err *err)
{
	const uint32_t *type = data;
	int ret = 0;

	if (size >= sizeof(struct rec_sample) && *type == REC_SAMPLE)
		ret = sent_stacks__store(capture->sent, data, size)
			      ?: capture__sample(capture, data, size, NULL, err);
	else if (size >= sizeof(struct rec_repeat) && *type == REC_REPEAT)
		ret = on_repeat(capture, data, size, err);
	else if (size >= sizeof(struct rec_value) && *type == REC_VALUE)
		ret = pending_values__value(capture->pending, data, err);
	else if (size >= REC_STACK_HEADER && *type == REC_STACK)
		stack_copies__keep(capture->stacks, data, size);
	else if (size >= REC_CONTEXT_HEADER && *type == REC_CONTEXT)
		ret = contexts__keep(&capture->contexts, data, size);
	else if (size >= REC_VALUES_HEADER && *type == REC_VALUES)
		ret = contexts__keep_values(&capture->contexts, data, size);
	else if (size >= sizeof(*type) && *type == REC_CODE_OBJECT)
		ret = on_code(capture, data, size);
	return ret == -ENOMEM ? no_memory(err) : ret;
}
