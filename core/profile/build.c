// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/build.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/frame_names.h"
#include "core/profile/idle.h"
#include "core/profile/nameless.h"
#include "core/profile/sums.h"

/* A file can combine the same long stacks in more ways than fit in memory. */
#define PROFILE_NODES_MAX (1u << 26)

/* the counter that is not a loss */
#define COUNTER_TAKEN "samples taken"

/* The frames from a node outwards. They end at the end of the array, so that frames shared with the
 * next chain are already in place. */
struct chain {
	struct merge_frame frames[RECORDED_DEPTH_MAX];
	uint32_t nodes[RECORDED_DEPTH_MAX];
	size_t n;
};

struct build {
	const struct recorded *recorded;
	const struct profile_filter *filter;
	struct profile *profile;
	struct merge_report report;
	struct frame_names names;
	struct chain native, runtime;
	struct merge_placed placed[2 * RECORDED_DEPTH_MAX];
	uint32_t *stack; /* profile frames, root first */
	size_t cap_stack;
	size_t n_own; /* number of the stack's own frames, without those of its waker */
	int waker_kind, state_kind;
	bool *idle_threads;	    /* by thread: true if a part of its time was left out */
	uint32_t *n_stacks;	    /* by thread: number of selected stacks */
	uint32_t *threads;	    /* by thread: number in the profile + 1 */
	struct intern task_threads; /* by task and thread: number in the profile + 1 */
};

/* Chooses the kinds of labels. If the profile has no room for another kind, labels have the kind of
 * native frames. */
static void map_group(struct build *build)
{
	int kind;

	kind = build->filter->wakers ? profile__label_kind(build->profile, "waker") : 0;
	build->waker_kind = kind > 0 ? kind : KIND_NATIVE;
	kind = build->filter->split_states ? profile__label_kind(build->profile, "state") : 0;
	build->state_kind = kind > 0 ? kind : KIND_NATIVE;
	if (!build->filter->by)
		return;
	kind = profile__label_kind(build->profile, group__name(build->filter->by));
	build->profile->group_kind = kind > 0 ? kind : KIND_NATIVE;
}

static struct merge_frame merge_frame(const struct recorded *recorded,
				      const struct recorded_node *node)
{
	static const struct recorded_frame none = { .kind = KINDS_MAX };
	const struct recorded_frame *frame =
		node->frame == RECORDED_NONE ? &none : &recorded->frames.rows[node->frame];
	bool kernel = frame->kind == KIND_KERNEL;

	return (struct merge_frame) { .frame = node->frame,
				      .kind = frame->kind,
				      .kernel = kernel,
				      .loop = frame->loop,
				      .jit = frame->kind == KIND_NATIVE && frame->anonymous &&
					     !frame->loop,
				      .inferred = node->evidence == EVIDENCE_INFERRED,
				      .address = kernel ? MERGE_NO_ADDRESS : node->address };
}

/* Sets @chain to the frames from @node outwards, and returns the first one. The depth of a node was
 * checked to be at most RECORDED_DEPTH_MAX. */
static const struct merge_frame *chain__set(struct chain *chain, const struct recorded *recorded,
					    uint32_t node)
{
	size_t n = node == RECORDED_NONE ? 0 : recorded->nodes.rows[node].depth;
	size_t i, known = RECORDED_DEPTH_MAX - min_of(chain->n, n);

	assert(n <= RECORDED_DEPTH_MAX);
	for (i = RECORDED_DEPTH_MAX - n; node != RECORDED_NONE; i++) {
		if (i >= known && chain->nodes[i] == node)
			break; /* all frames further out are in place, too */
		chain->frames[i] = merge_frame(recorded, &recorded->nodes.rows[node]);
		chain->nodes[i] = node;
		node = recorded->nodes.rows[node].parent;
	}
	chain->n = n;
	return &chain->frames[RECORDED_DEPTH_MAX - n];
}

static int add_label(struct build *build, const struct recorded_stack *stack, enum profile_by by,
		     int kind, size_t *n)
{
	char label[GROUP_LABEL_BYTES];

	group__label(build->recorded, by, stack, label, sizeof(label));
	if (array__reserve(&build->stack, &build->cap_stack, *n + 1, sizeof(*build->stack)))
		return -ENOMEM;
	return profile__frame(build->profile, kind, label, NULL, 0, &build->stack[(*n)++]);
}

/* Adds the frame of the group that the stack belongs to, and that of its state, if the filter has
 * these levels. */
static int add_labels(struct build *build, const struct recorded_stack *stack, size_t *n)
{
	const struct profile_filter *filter = build->filter;

	if (filter->by && add_label(build, stack, filter->by, build->profile->group_kind, n))
		return -ENOMEM;
	return filter->split_states
		       ? add_label(build, stack, PROFILE_BY_STATE, build->state_kind, n)
		       : 0;
}

/* Counts the frames of `samples` equal stacks: native ones as they were recorded, the runtimes' as
 * they were placed. */
static void count_evidence(struct build *build, const struct merge_frame *natives,
			   const struct merge_placed *placed, size_t n_placed, uint64_t samples)
{
	struct profile_evidence *evidence = &build->profile->evidence;
	uint64_t inferred_natives = 0, runtimes = 0, inferred_runtimes = 0, n = 0;

	for (size_t i = 0; i < build->native.n; i++) {
		n += !natives[i].kernel;
		inferred_natives += natives[i].inferred;
	}
	for (size_t i = 0; i < n_placed; i++) {
		if (placed[i].placement == MERGE_PLACED_NATIVE)
			continue;
		runtimes++;
		inferred_runtimes += placed[i].inferred;
	}
	evidence->natives += n * samples;
	evidence->inferred_natives += inferred_natives * samples;
	evidence->runtimes += runtimes * samples;
	evidence->inferred_runtimes += inferred_runtimes * samples;
}

/* Appends the merged stack, root first, after the first @n frames of build->stack. */
static int append_stack(struct build *build, const struct recorded_stack *stack, uint64_t samples,
			size_t n, size_t *ret_n)
{
	const struct merge_frame *native =
		chain__set(&build->native, build->recorded, stack->native);
	const struct merge_frame *runtime =
		chain__set(&build->runtime, build->recorded, stack->runtime);
	struct merge_report report = { 0 };
	size_t n_placed, i;

	n_placed = merge__run(&(struct merge_stacks) { .native = native,
						       .runtime = runtime,
						       .n_native = build->native.n,
						       .n_runtime = build->runtime.n,
						       .complete = stack->complete },
			      build->filter->keep_vm, build->placed, &report);
	assert(n_placed <= build->native.n + build->runtime.n);
	count_evidence(build, native, build->placed, n_placed, samples);
	build->report.by_address += report.by_address * samples;
	build->report.by_order += report.by_order * samples;
	build->report.appended += report.appended * samples;
	build->report.apart += report.apart * samples;
	build->report.unproven += report.unproven * samples;
	build->report.loops += report.loops * samples;
	for (i = n_placed; i-- > 0;) {
		const struct merge_placed *placed = &build->placed[i];
		const uint32_t *shown;
		uint32_t level;

		if (frame_names__get(&build->names, placed->frame, placed->inferred, &shown,
				     &level) ||
		    array__reserve(&build->stack, &build->cap_stack, n + level,
				   sizeof(*build->stack)))
			return -ENOMEM;
		while (level-- > 0)
			build->stack[n++] = shown[level];
	}
	*ret_n = n;
	return 0;
}

/* Appends the stack that ended the wait: a label, then its frames, innermost first, as the wakeup
 * touches the wait. */
static int append_waker(struct build *build, const struct recorded_stack *stack, size_t *n)
{
	const struct recorded_stack *waker = &build->recorded->stacks.rows[stack->waker];
	size_t first = *n + 1, last;
	char name[GROUP_LABEL_BYTES], label[GROUP_LABEL_BYTES + 16];

	group__label(build->recorded, PROFILE_BY_THREAD, waker, name, sizeof(name));
	snprintf(label, sizeof(label), "woken by %s", name);
	if (array__reserve(&build->stack, &build->cap_stack, first, sizeof(*build->stack)) ||
	    profile__frame(build->profile, build->waker_kind, label, NULL, 0, &build->stack[*n]) ||
	    append_stack(build, waker, 0, first, n))
		return -ENOMEM;
	for (last = *n; last > first + 1;) {
		uint32_t frame = build->stack[--last];

		build->stack[last] = build->stack[first];
		build->stack[first++] = frame;
	}
	return 0;
}

/* Appends the frame of an event's occurrences without a sample. Such occurrences have no stack. */
static int append_rest(struct build *build, size_t n)
{
	int kind = profile__label_kind(build->profile, "rest");

	if (array__reserve(&build->stack, &build->cap_stack, n + 1, sizeof(*build->stack)))
		return -ENOMEM;
	build->n_own = n + 1;
	return profile__frame(build->profile, kind > 0 ? kind : KIND_NATIVE, "[without a sample]",
			      NULL, 0, &build->stack[n]);
}

/* Writes all frames that are shown of the stack to build->stack, root first. */
static int add_frames(struct build *build, const struct recorded_stack *stack, uint64_t samples,
		      size_t *ret_n)
{
	size_t n = 0;

	if (add_labels(build, stack, &n) ||
	    (stack->rest ? append_rest(build, n)
			 : append_stack(build, stack, samples, n, &build->n_own)))
		return -ENOMEM;
	n = build->n_own;
	if ((stack->waker != RECORDED_NONE && append_waker(build, stack, &n)) ||
	    build->profile->n_nodes + n > PROFILE_NODES_MAX)
		return -ENOMEM;
	*ret_n = n;
	return 0;
}

/* Returns true for an idle wait, which is left out. Counts its time and its thread. */
static bool is_idle(struct build *build, struct sum *sum)
{
	struct profile *profile = build->profile;
	uint32_t thread = sum->stack->thread;

	if (!build->filter->idle || profile->unit != PROFILE_NANOSECONDS)
		return false;
	sum->hidden = idle__matches(build->filter->idle, build->recorded, sum->stack, profile,
				    build->stack, build->n_own);
	if (!sum->hidden)
		return false;
	if (__builtin_add_overflow(profile->idle.weight, sum->value, &profile->idle.weight))
		profile->idle.weight = UINT64_MAX;
	if (thread != RECORDED_NONE && !build->idle_threads[thread]) {
		build->idle_threads[thread] = true;
		profile->idle.threads++;
	}
	return true;
}

/* Share of the recording's time; the last sample of a wait comes just before the end. */
#define UNBROKEN_SHARE 0.95

/* Counts a wait that was all that its thread did during the recording. Returns true if such waits
 * are left out. */
static bool is_unbroken(struct build *build, struct sum *sum)
{
	const struct recorded_stack *stack = sum->stack;
	struct profile *profile = build->profile;
	double least_ns = UNBROKEN_SHARE * NSEC_PER_SEC * build->recorded->duration_s;

	if (!build->filter->idle || profile->unit != PROFILE_NANOSECONDS ||
	    stack->thread == RECORDED_NONE || build->n_stacks[stack->thread] != 1 ||
	    stack->condition.state != STATE_BLOCKED || sum->occurrences != 1 || least_ns <= 0 ||
	    sum->value < least_ns)
		return false;
	if (__builtin_add_overflow(profile->unbroken.weight, sum->value, &profile->unbroken.weight))
		profile->unbroken.weight = UINT64_MAX;
	profile->unbroken.threads++;
	sum->hidden = build->filter->hide_unbroken;
	return sum->hidden;
}

/* Returns the number in the profile of a stack's thread, in *@ret. All stacks without a thread
 * share one number. */
static int number_thread(struct build *build, const struct recorded_stack *stack, uint32_t *ret)
{
	const struct recorded *recorded = build->recorded;
	uint32_t thread = stack->thread;
	uint32_t row = thread == RECORDED_NONE ? recorded->threads.n : thread;
	uint64_t task = build->filter->tasks ? stack->task : 0;
	uint32_t *place = task ? intern__at(&build->task_threads, task, row) : &build->threads[row];

	if (!place)
		return -ENOMEM;
	if (!*place) {
		struct profile_thread_of of = group__thread(recorded, thread);

		of.task = task;
		if (profile__add_thread(build->profile, &of, place))
			return -ENOMEM;
		++*place;
	}
	*ret = *place - 1;
	return 0;
}

static int add_share(struct build *build, const struct sum *sum, const struct profile_value *value)
{
	struct profile_share share = { .node = sum->node, .value = *value };

	if (number_thread(build, sum->stack, &share.thread))
		return -ENOMEM;
	return profile__add_share(build->profile, &share);
}

static enum profile_state state_of(const struct rec_condition *condition)
{
	if (condition->state == STATE_PREEMPTED)
		return PROFILE_PREEMPTED;
	if (condition->state != STATE_BLOCKED && condition->state != STATE_STOPPED &&
	    condition->state != STATE_PARKED)
		return PROFILE_RUNNING;
	return condition->lock == LOCK_WAITED ? PROFILE_LOCKED : PROFILE_WAITING;
}

static int add_cells(struct build *build, const struct sums *sums)
{
	const struct recorded *recorded = build->recorded;
	struct profile *profile = build->profile;

	profile->column_ns = recorded->columns.width_ns;
	profile->n_columns = recorded->columns.n;
	profile->instants = build->filter->instants;
	for (size_t i = 0; i < recorded->moments.n; i++) {
		const struct recorded_moment *moment = &recorded->moments.rows[i];
		const struct recorded_stack *stack = &recorded->stacks.rows[moment->stack];
		struct profile_cell cell = { .column = moment->column,
					     .state = state_of(&stack->condition),
					     .weight = moment->value };
		uint32_t sum = sums->of[moment->stack];

		if (!sum || sums->rows[sum - 1].hidden || !moment->value)
			continue;
		cell.node = sums->rows[sum - 1].node;
		if (number_thread(build, stack, &cell.thread) || profile__add_cell(profile, &cell))
			return -ENOMEM;
	}
	if (!profile->instants)
		profile__finish_cells(profile, PROFILE_CELLS_MAX);
	return 0;
}

static int add_sum(struct build *build, struct sum *sum)
{
	const struct profile_value value = { .weight = sum->value,
					     .waiting = sum->waiting,
					     .preempted = sum->preempted,
					     .samples = sum->samples,
					     .occurrences = sum->occurrences,
					     .waits = sum->waits,
					     .preemptions = sum->preemptions };
	const struct recorded_stack *stack = sum->stack;
	size_t n;

	if (add_frames(build, stack, sum->samples, &n))
		return -ENOMEM;
	build->profile->has_parked |= sum->parked > 0;
	if (is_idle(build, sum) || is_unbroken(build, sum))
		return 0;
	build->profile->parked += sum->parked;
	build->profile->parked_samples += sum->parked ? sum->samples : 0;
	build->profile->samples += sum->samples;
	if (__builtin_add_overflow(build->profile->occurrences, sum->occurrences,
				   &build->profile->occurrences))
		build->profile->occurrences = UINT64_MAX;
	if (profile__add_value(build->profile, build->stack, n, &value, &sum->node))
		return -ENOMEM;
	return build->filter->threads ? add_share(build, sum, &value) : 0;
}

static int add_histogram(struct build *build, const struct recorded_bucket *bucket,
			 const struct sum *sum, struct intern *groups)
{
	enum profile_by by = build->filter->by;
	bool stacks = build->filter->histogram_stacks;
	uint32_t *place =
		intern__at(groups, stacks ? sum->node : group__key(by, sum->stack), stacks);
	char label[GROUP_LABEL_BYTES] = "";

	if (!place)
		return -ENOMEM;
	profile__count(&build->profile->histograms[0], bucket->bits, bucket->occurrences,
		       bucket->value);
	if (by == PROFILE_BY_STACK && !stacks)
		return 0;
	if (!*place) {
		if (!stacks)
			group__label(build->recorded, by, sum->stack, label, sizeof(label));
		else if (!sum->node)
			strcpy(label, "[no stack]");
		if (!profile__add_histogram(build->profile, label))
			return -ENOMEM;
		*place = build->profile->n_histograms;
		build->profile->histograms[*place - 1].node = stacks ? sum->node : 0;
	}
	profile__count(&build->profile->histograms[*place - 1], bucket->bits, bucket->occurrences,
		       bucket->value);
	return 0;
}

/* Adds the histogram of all shown samples, then one of each group or stack. */
static int add_histograms(struct build *build, const struct sums *sums)
{
	const struct recorded *recorded = build->recorded;
	struct intern groups;
	int ret = 0;

	if (!build->filter->histogram)
		return 0;
	build->profile->histogram_of = build->filter->histogram_of;
	if (!profile__add_histogram(build->profile, ""))
		return -ENOMEM;
	intern__init(&groups, RECORDED_NONE);
	for (size_t i = 0; !ret && i < recorded->buckets.n; i++) {
		const struct recorded_bucket *bucket = &recorded->buckets.rows[i];
		uint32_t sum = sums->of[bucket->stack];

		if (sum && !sums->rows[sum - 1].hidden)
			ret = add_histogram(build, bucket, &sums->rows[sum - 1], &groups);
	}
	intern__done(&groups);
	return ret;
}

static int add_stacks(struct build *build, const struct selection *selection)
{
	struct profile *profile = build->profile;
	struct sums sums;
	int ret = sums__init(&sums, build->recorded, build->filter, selection);

	for (size_t i = 0; !ret && i < build->recorded->stacks.n; i++)
		if (sums.of[i] && build->recorded->stacks.rows[i].thread != RECORDED_NONE)
			build->n_stacks[build->recorded->stacks.rows[i].thread]++;
	profile->unbroken.hidden = build->filter->hide_unbroken;
	for (size_t i = 0; !ret && i < sums.n; i++)
		ret = add_sum(build, &sums.rows[i]);
	if (!ret)
		ret = add_histograms(build, &sums);
	if (!ret)
		ret = add_cells(build, &sums);
	if (__builtin_add_overflow(profile->total, profile->idle.weight, &profile->idle.whole) ||
	    (profile->unbroken.hidden &&
	     __builtin_add_overflow(profile->idle.whole, profile->unbroken.weight,
				    &profile->idle.whole)))
		profile->idle.whole = UINT64_MAX;
	sums__done(&sums);
	return ret;
}

/* Returns the start time of the oldest process with frames of a runtime; 0: unknown. The process
 * executes its program after that time. */
static double begun_s(const struct recorded *recorded)
{
	uint64_t ticks = UINT64_MAX;

	for (size_t i = 0; recorded->boot_s > 0 && i < recorded->stacks.n; i++) {
		const struct recorded_stack *stack = &recorded->stacks.rows[i];
		uint32_t process = stack->runtime == RECORDED_NONE || stack->thread == RECORDED_NONE
					   ? RECORDED_NONE
					   : recorded->threads.rows[stack->thread].process;

		if (process != RECORDED_NONE && recorded->processes.rows[process].start_ticks)
			ticks = min_of(ticks, recorded->processes.rows[process].start_ticks);
	}
	return ticks == UINT64_MAX ? 0 : recorded->boot_s + ticks / 100.0;
}

static int add_titles(struct build *build, const struct selection *selection)
{
	const struct recorded *recorded = build->recorded;
	struct profile *profile = build->profile;
	char others[600];
	size_t i;
	int ret = 0;

	if (selection__measures(selection, recorded, profile))
		return -ENOMEM;
	profile->duration_s = recorded->duration_s;
	profile->begun_s = begun_s(recorded);
	if (profile->unit == PROFILE_SAMPLES) /* a rate applies to ticks only */
		profile->frequency_hz = recorded->frequency_hz;
	profile->target = strdup(recorded__text(recorded, recorded->target));
	profile->started = strdup(recorded__text(recorded, recorded->started));
	profile->host = strdup(recorded__text(recorded, recorded->host));
	profile->task_name = strdup(recorded__text(recorded, recorded->task_name));
	selection__others(selection, recorded, others, sizeof(others));
	profile->other_events = strdup(others);
	if (!profile->target || !profile->started || !profile->host || !profile->task_name ||
	    !profile->other_events)
		return -ENOMEM;
	for (i = 0; !ret && i < recorded->counters.n; i++) {
		const struct recorded_counter *counter = &recorded->counters.rows[i];
		const char *name = recorded__text(recorded, counter->name);

		if (strcmp(name, COUNTER_TAKEN))
			ret = profile__add_loss(profile, name, counter->value);
	}
	return ret;
}

static void build_free(struct build *build)
{
	if (!build)
		return;
	profile__free(build->profile);
	frame_names__done(&build->names);
	free(build->stack);
	free(build->idle_threads);
	free(build->n_stacks);
	free(build->threads);
	intern__done(&build->task_threads);
	free(build);
}

static int build_selected(const struct recorded *recorded, const struct profile_filter *filter,
			  const struct selection *selection, struct profile **ret,
			  struct merge_report *report)
{
	struct build *build = calloc(1, sizeof(*build));
	int code = -ENOMEM;

	if (!build)
		return code;
	build->recorded = recorded;
	build->filter = filter;
	build->profile = profile__new();
	intern__init(&build->task_threads, RECORDED_NONE);
	build->idle_threads = calloc(recorded->threads.n + 1, sizeof(*build->idle_threads));
	build->n_stacks = calloc(recorded->threads.n + 1, sizeof(*build->n_stacks));
	build->threads = calloc(recorded->threads.n + 1, sizeof(*build->threads));
	if (!build->profile || !build->idle_threads || !build->n_stacks || !build->threads ||
	    frame_names__init(&build->names, recorded, filter, build->profile))
		goto out;
	map_group(build);
	code = add_titles(build, selection);
	if (!code)
		code = add_stacks(build, selection);
	if (!code)
		code = nameless__find(build->profile, recorded);
	if (code)
		goto out;
	*ret = build->profile;
	build->profile = NULL;
	if (report)
		*report = build->report;
out:
	build_free(build);
	return code;
}

int build__profile(const struct recorded *recorded, const char *what,
		   const struct profile_filter *filter, struct profile **ret,
		   struct merge_report *report, struct err *err)
{
	const char *name = recorded__text(recorded, recorded->task_name);
	struct selection selection;
	int code = selection__init(&selection, recorded, what, filter, err);

	if (!code && filter->wakers && !recorded->has_links)
		code = err__set(err, -EINVAL,
				"%s does not contain the wakers. Record with -e off-cpu --waker",
				what);
	if (!code && filter->by == PROFILE_BY_TASK && !recorded->has_tasks)
		code = err__set(err, -EINVAL,
				"%s does not contain the tasks of its threads. Leave out --by %s",
				what, *name ? name : "task");
	if (!code && group__needs_contexts(filter->by) && !recorded->has_contexts &&
	    filter->label && !strncmp(filter->label, VALUE_LABEL, strlen(VALUE_LABEL)))
		code = err__set(err, -EINVAL,
				"%s has no values of probes. Record them with -e "
				"'uprobe:FILE:SYMBOL(%s:u64)'",
				what, filter->label + strlen(VALUE_LABEL));
	if (!code && group__needs_contexts(filter->by) && !recorded->has_contexts)
		code = err__set(err, -EINVAL,
				"%s has no request contexts: none of its programs published them "
				"(docs/guides/which-request.md)",
				what);
	if (!code && build_selected(recorded, filter, &selection, ret, report))
		code = err__set(err, -ENOMEM, "out of memory for the stacks in %s", what);
	selection__done(&selection);
	return code;
}
