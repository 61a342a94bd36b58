// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/select.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

/* Number of items that a message lists before "...". */
#define LISTED_MAX 8

#define LIST_BYTES 600
#define ITEM_BYTES 200 /* names of events have paths */
struct list {
	char text[LIST_BYTES];
	size_t n;
};

static void list_add(struct list *list, const char *name, uint32_t number)
{
	size_t len = strlen(list->text);
	const char *comma = list->n ? ", " : "";
	char item[ITEM_BYTES + 32];

	list->n++;
	if (list->n > LISTED_MAX + 1)
		return;
	if (list->n > LISTED_MAX)
		snprintf(item, sizeof(item), "...");
	else if (number)
		snprintf(item, sizeof(item), "%u (%.32s)", number, name);
	else
		snprintf(item, sizeof(item), "%.*s", ITEM_BYTES, name);
	escape__printable(item);
	snprintf(list->text + len, sizeof(list->text) - len, "%s%s", comma, item);
}

static bool thread_matches(const struct recorded *recorded, const struct recorded_thread *thread,
			   const char *chosen)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", thread->tid);
	return !strcmp(chosen, tid) || !strcmp(chosen, recorded__text(recorded, thread->name));
}

static bool process_matches(const struct recorded *recorded, uint32_t process, uint32_t pid)
{
	return !pid || (process != RECORDED_NONE && recorded->processes.rows[process].pid == pid);
}

/* Returns true if the process is in the container and cgroup that the filter selects. */
static bool place_matches(const struct recorded *recorded, uint32_t process,
			  const struct profile_filter *filter)
{
	const struct recorded_process *row = &recorded->processes.rows[process];
	const char *cgroup, *chosen = filter->cgroup;
	size_t len = chosen ? strlen(chosen) : 0;

	if (!filter->container && !chosen)
		return true;
	if (process == RECORDED_NONE)
		return false;
	if (filter->container && strncmp(recorded__text(recorded, row->container),
					 filter->container, strlen(filter->container)) != 0)
		return false;
	cgroup = recorded__text(recorded, row->cgroup);
	while (len && chosen[len - 1] == '/')
		len--;
	return !chosen ||
	       (*cgroup && !strncmp(cgroup, chosen, len) && (!cgroup[len] || cgroup[len] == '/'));
}

static int no_place(const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct err *err)
{
	struct list list = { 0 };

	for (size_t i = 0; i < recorded->processes.n; i++) {
		const struct recorded_process *row = &recorded->processes.rows[i];
		const char *name =
			recorded__text(recorded, filter->container ? row->container : row->cgroup);

		if (*name && !strstr(list.text, name))
			list_add(&list, name, 0);
	}
	return err__set(err, -ENOENT, "%s has no samples of %s %.64s. It has %s", what,
			filter->container ? "container" : "cgroup",
			filter->container ?: filter->cgroup, list.n ? list.text : "none");
}

static int no_process(const struct recorded *recorded, const char *what, uint32_t pid,
		      struct err *err)
{
	struct list list = { 0 };
	size_t i;

	for (i = 0; i < recorded->processes.n; i++) {
		const struct recorded_process *process = &recorded->processes.rows[i];

		list_add(&list, recorded__text(recorded, process->name), process->pid);
	}
	return err__set(err, -ENOENT, "%s has no process %u. It has %s", what, pid, list.text);
}

static int no_thread(const struct recorded *recorded, const char *what,
		     const struct profile_filter *filter, struct err *err)
{
	struct list list = { 0 };
	size_t i;

	for (i = 0; i < recorded->threads.n; i++) {
		const struct recorded_thread *thread = &recorded->threads.rows[i];

		if (process_matches(recorded, thread->process, filter->pid))
			list_add(&list, recorded__text(recorded, thread->name), thread->tid);
	}
	return err__set(err, -ENOENT, "%s has no thread %.32s. It has %s", what, filter->thread,
			list.text);
}

/* Compiles @pattern so that it must match a whole name. */
static int compile(const char *pattern, regex_t *ret, struct err *err)
{
	char *whole, why[100];
	int code;

	if (asprintf(&whole, "^(%s)$", pattern) < 0)
		return err__set(err, -ENOMEM, "out of memory");
	code = regcomp(ret, whole, REG_EXTENDED | REG_NOSUB);
	free(whole);
	if (!code)
		return 0;
	regerror(code, ret, why, sizeof(why));
	return err__set(err, -EINVAL, "--not-thread %.64s is not a regular expression: %s", pattern,
			why);
}

static int deselect_threads(struct selection *selection, const struct recorded *recorded,
			    const struct profile_filter *filter, struct err *err)
{
	regex_t regex;
	int ret = compile(filter->not_thread, &regex, err);

	if (ret)
		return ret;
	for (size_t i = 0; i < recorded->threads.n; i++) {
		const struct recorded_thread *thread = &recorded->threads.rows[i];

		if (thread_matches(recorded, thread, filter->not_thread) ||
		    !regexec(&regex, recorded__text(recorded, thread->name), 0, NULL, 0))
			selection->threads[i] = false;
	}
	regfree(&regex);
	return 0;
}

static int select_threads(struct selection *selection, const struct recorded *recorded,
			  const char *what, const struct profile_filter *filter, struct err *err)
{
	bool any_process = false, any_thread = false, any_place = false;
	size_t i;

	if (!filter->pid && !filter->thread && !filter->not_thread && !filter->container &&
	    !filter->cgroup)
		return 0;
	for (i = 0; i < recorded->processes.n; i++)
		any_process |= process_matches(recorded, i, filter->pid);
	if (filter->pid && !any_process)
		return no_process(recorded, what, filter->pid, err);
	selection->threads = calloc(recorded->threads.n + 1, sizeof(*selection->threads));
	if (!selection->threads)
		return err__set(err, -ENOMEM, "out of memory");
	for (i = 0; i < recorded->threads.n; i++) {
		const struct recorded_thread *thread = &recorded->threads.rows[i];
		bool placed = place_matches(recorded, thread->process, filter);
		bool chosen = process_matches(recorded, thread->process, filter->pid) && placed &&
			      (!filter->thread || thread_matches(recorded, thread, filter->thread));

		selection->threads[i] = chosen;
		any_thread |= chosen;
		any_place |= placed;
	}
	if (!any_place)
		return no_place(recorded, what, filter, err);
	if (filter->thread && !any_thread)
		return no_thread(recorded, what, filter, err);
	return filter->not_thread ? deselect_threads(selection, recorded, filter, err) : 0;
}

static uint32_t kind_bit(uint8_t kind)
{
	return kind < KINDS_MAX ? 1U << kind : 0;
}

/* Returns the kinds of all frames that a recorded frame is shown as. */
static uint32_t kinds_of(const struct recorded *recorded, uint32_t frame)
{
	const struct recorded_frame *row;
	uint32_t kinds;

	if (frame == RECORDED_NONE)
		return 0;
	row = &recorded->frames.rows[frame];
	kinds = kind_bit(row->kind);
	for (uint32_t i = 0; i < row->n_locations; i++)
		kinds |= kind_bit(recorded->locations.rows[row->location + i].kind);
	return kinds;
}

/* Marks the nodes with a frame of @kinds at or outwards of them. A node's parent always has a
 * smaller index. */
static int mark_nodes(struct selection *selection, const struct recorded *recorded, uint32_t kinds)
{
	selection->nodes = calloc(recorded->nodes.n + 1, sizeof(*selection->nodes));
	if (!selection->nodes)
		return -ENOMEM;
	for (size_t i = 0; i < recorded->nodes.n; i++) {
		const struct recorded_node *node = &recorded->nodes.rows[i];

		selection->nodes[i] =
			(node->parent != RECORDED_NONE && selection->nodes[node->parent]) ||
			kinds_of(recorded, node->frame) & kinds;
	}
	return 0;
}

static int select_kinds(struct selection *selection, const struct recorded *recorded,
			const char *what, const struct profile_filter *filter, struct err *err)
{
	struct list list = { 0 };
	uint32_t kinds = 0;

	if (!filter->runtime)
		return 0;
	for (int i = 0; i < KINDS_MAX; i++) {
		const char *name = recorded__text(recorded, recorded->kind_names[i]);

		if (!*name)
			continue;
		if (!strcmp(name, filter->runtime))
			kinds |= kind_bit(i);
		list_add(&list, name, 0);
	}
	if (!kinds)
		return err__set(err, -EINVAL, "%s has no runtime %.32s. It has %s", what,
				filter->runtime, list.text);
	return mark_nodes(selection, recorded, kinds) ? err__set(err, -ENOMEM, "out of memory") : 0;
}

static const char *event_name(const struct recorded *recorded, uint32_t event)
{
	return recorded__text(recorded, recorded->events.rows[event].name);
}

static uint32_t find_event(const struct recorded *recorded, const char *name, size_t len)
{
	for (size_t i = 0; i < recorded->events.n; i++) {
		const char *other = event_name(recorded, i);

		if (strlen(other) == len && !memcmp(other, name, len))
			return i;
	}
	return RECORDED_NONE;
}

static int no_event(const struct recorded *recorded, const char *what, const char *name, size_t len,
		    struct err *err)
{
	const struct selection none = { .events = NULL };
	char names[LIST_BYTES];

	selection__others(&none, recorded, names, sizeof(names));
	return err__set(err, -EINVAL, "%s has no event %.*s. It has %s", what,
			(int)min_of(len, (size_t)64), name, names);
}

/* Selects an event. All selected events must have one unit, as their values are added up. */
static int add_event(struct selection *selection, const struct recorded *recorded, uint32_t event,
		     struct err *err)
{
	const struct recorded_event *first, *row = &recorded->events.rows[event];

	if (selection->event == RECORDED_NONE)
		selection->event = event;
	first = &recorded->events.rows[selection->event];
	if (strcmp(recorded__text(recorded, first->unit), recorded__text(recorded, row->unit)) != 0)
		return err__set(err, -EINVAL,
				"cannot add %.64s (in %.20s) and %.64s (in %.20s): their units "
				"differ. Choose one with --event",
				event_name(recorded, selection->event),
				recorded__text(recorded, first->unit), event_name(recorded, event),
				recorded__text(recorded, row->unit));
	selection->events[event] = true;
	return 0;
}

/* Selects the events in a list. Names may contain commas, so that the longest matching name is
 * taken first. */
static int select_named(struct selection *selection, const struct recorded *recorded,
			const char *what, const char *names, struct err *err)
{
	int ret = 0;

	while (!ret && names) {
		size_t len = strlen(names), at = len;
		uint32_t event = find_event(recorded, names, len);

		while (event == RECORDED_NONE && at) {
			for (at--; at && names[at] != ',';)
				at--;
			if (at)
				event = find_event(recorded, names, at);
		}
		if (event == RECORDED_NONE)
			return no_event(recorded, what, names, strcspn(names, ","), err);
		ret = add_event(selection, recorded, event, err);
		names = at < len ? names + at + 1 : NULL;
	}
	return ret;
}

int selection__events(struct selection *selection, const struct recorded *recorded,
		      const char *what, const struct profile_filter *filter, struct err *err)
{
	uint32_t cpu = find_event(recorded, "cpu", strlen("cpu"));

	selection->events = calloc(recorded->events.n + 1, sizeof(*selection->events));
	if (!selection->events)
		return err__set(err, -ENOMEM, "out of memory");
	selection->event = RECORDED_NONE;
	if (filter->event)
		return select_named(selection, recorded, what, filter->event, err);
	if (!recorded->events.n)
		return 0;
	return add_event(selection, recorded, cpu == RECORDED_NONE ? 0 : cpu, err);
}

/* Fails if the filter requires ages and no selected event has them. */
static int check_ages(const struct selection *selection, const struct recorded *recorded,
		      const struct profile_filter *filter, struct err *err)
{
	if (!filter->min_age_ns && filter->by != PROFILE_BY_AGE)
		return 0;
	for (size_t i = 0; i < recorded->events.n; i++)
		if (selection->events[i] && recorded__is_outstanding(recorded, i))
			return 0;
	return err__set(err, -EINVAL,
			"%.64s has no ages: only outstanding allocations do (record -e alloc "
			"--outstanding). Leave out %s",
			selection->event == RECORDED_NONE ? "this recording"
							  : event_name(recorded, selection->event),
			filter->min_age_ns ? "--min-age" : "--by age");
}

int selection__init(struct selection *selection, const struct recorded *recorded, const char *what,
		    const struct profile_filter *filter, struct err *err)
{
	int ret;

	*selection = (struct selection) { .states = filter->states };
	ret = selection__events(selection, recorded, what, filter, err);
	if (!ret)
		ret = check_ages(selection, recorded, filter, err);
	if (!ret)
		ret = select_threads(selection, recorded, what, filter, err);
	return ret ? ret : select_kinds(selection, recorded, what, filter, err);
}

void selection__done(struct selection *selection)
{
	free(selection->events);
	free(selection->threads);
	free(selection->nodes);
}

bool selection__has(const struct selection *selection, const struct recorded_stack *stack)
{
	const bool *nodes = selection->nodes;

	if (stack->event == RECORDED_NONE ? selection->event != RECORDED_NONE
					  : !selection->events[stack->event])
		return false;
	if (selection->states && !(stack->condition.state < THREAD_STATES_N &&
				   selection->states & 1U << stack->condition.state))
		return false;
	if (selection->threads &&
	    (stack->thread == RECORDED_NONE || !selection->threads[stack->thread]))
		return false;
	return !nodes || (stack->native != RECORDED_NONE && nodes[stack->native]) ||
	       (stack->runtime != RECORDED_NONE && nodes[stack->runtime]);
}

void selection__others(const struct selection *selection, const struct recorded *recorded,
		       char *buf, size_t size)
{
	struct list list = { 0 };

	for (size_t i = 0; i < recorded->events.n; i++)
		if (!selection->events || !selection->events[i])
			list_add(&list, recorded__text(recorded, recorded->events.rows[i].name), 0);
	snprintf(buf, size, "%s", list.text);
}

int selection__measures(const struct selection *selection, const struct recorded *recorded,
			struct profile *profile)
{
	uint32_t first = selection->event;
	struct list list = { 0 };

	if (first == RECORDED_NONE)
		return 0;
	for (size_t i = 0; i < recorded->events.n; i++)
		if (selection->events[i])
			list_add(&list, event_name(recorded, i), 0);
	return profile__measures(profile, list.n > 1 ? list.text : event_name(recorded, first),
				 recorded__text(recorded, recorded->events.rows[first].unit));
}
