// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/nearest.h"
#include "core/target/tracker.h"
#include "probes/probe_set.h"

const struct event_kind *const event_kinds[] = { &event_cpu,
						 &event_wall,
						 &event_off_cpu,
						 &event_wakeup,
						 &event_lock,
						 &event_lock_holder,
						 &event_lock_order,
						 &event_alloc,
						 &event_outstanding,
						 &event_block_io,
						 &event_fault,
						 &event_software,
						 &event_pmu,
						 &event_syscall,
						 &event_tracepoint,
						 &event_uprobe,
						 &event_uretprobe,
						 &event_usdt,
						 &event_kprobe,
						 &event_kretprobe,
						 &event_fentry,
						 &event_latency,
						 NULL };

struct events {
	struct event list[EVENTS_MAX];
	uint32_t n;
	uint32_t n_unprobed;	 /* tracker__unprobed() at the last check */
	uint64_t joined_changes; /* tracker__changes() at the last tracker__join() */
};

/* --- parsing --- */

const char *event__argument(const struct event_spec *spec)
{
	const char *colon = strchr(spec->name, ':');

	return colon ? colon + 1 : "";
}

static bool is_text(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !memcmp(name, text, len);
}

static bool goes_by(const struct event_kind *kind, const char *text, size_t len)
{
	if (is_text(kind->name, text, len))
		return true;
	for (size_t i = 0; kind->other_name && kind->other_name(i); i++)
		if (is_text(kind->other_name(i), text, len))
			return true;
	return kind->is_name && kind->is_name(text, len);
}

static const struct event_kind *find_kind(const char *text, size_t len)
{
	for (int i = 0; event_kinds[i]; i++)
		if (goes_by(event_kinds[i], text, len))
			return event_kinds[i];
	return NULL;
}

void event_kind__usage(const struct event_kind *kind, char *ret, size_t size)
{
	const char *argument = kind->argument ? kind->argument : "";

	if (kind == &event_latency)
		snprintf(ret, size, "%s", argument);
	else
		snprintf(ret, size, "%s%s%s", kind->name,
			 !*argument	    ? ""
			 : *argument == '[' ? "[:"
					    : ":",
			 argument + (*argument == '[' ? 1 : 0));
}

/* common words for events */
static const struct {
	const char *word, *event;
} meanings[] = {
	{ "memory", "alloc" },
	{ "mem", "alloc" },
	{ "heap", "alloc" },
	{ "malloc", "alloc" },
	{ "allocation", "alloc" },
	{ "allocations", "alloc" },
	{ "leak", "outstanding" },
	{ "leaks", "outstanding" },
	{ "mutex", "lock" },
	{ "futex", "lock" },
	{ "locks", "lock" },
	{ "contention", "lock" },
	{ "gil", "lock" },
	{ "deadlock", "lock" },
	{ "offcpu", "off-cpu" },
	{ "wait", "off-cpu" },
	{ "waits", "off-cpu" },
	{ "sleep", "off-cpu" },
	{ "blocked", "off-cpu" },
	{ "time", "wall" },
	{ "wall-clock", "wall" },
	{ "wallclock", "wall" },
	{ "latency", "wall" },
	{ "io", "block-io" },
	{ "disk", "block-io" },
	{ "block", "block-io" },
	{ "bio", "block-io" },
	{ "fault", "page-fault" },
	{ "faults", "page-fault" },
	{ "cs", "context-switches" },
	{ "switches", "context-switches" },
};

static const char *meaning_of(const char *word, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
		if (is_text(meanings[i].word, word, len))
			return meanings[i].event;
	return NULL;
}

const char *event__meant(const char *word)
{
	return meaning_of(word, strlen(word));
}

static int unknown(const struct event_spec *spec, size_t len, struct err *err)
{
	struct nearest nearest = nearest__to(spec->name, len);
	const char *meant = meaning_of(spec->name, len);
	char available[400] = "";
	size_t used = 0;

	if (meant)
		return err__set(err, -EINVAL, "there is no event '%s': did you mean %s?",
				spec->name, meant);
	for (int i = 0; event_kinds[i]; i++) {
		const struct event_kind *kind = event_kinds[i];

		nearest__add(&nearest, kind->name);
		for (size_t k = 0; kind->other_name && kind->other_name(k); k++)
			nearest__add(&nearest, kind->other_name(k));
		if (used < sizeof(available))
			used += snprintf(available + used, sizeof(available) - used, "%s%s",
					 i ? ", " : "",
					 kind == &event_latency ? kind->argument : kind->name);
	}
	if (nearest.n)
		return err__set(err, -EINVAL, "there is no event '%s': did you mean %s?",
				spec->name, nearest__text(&nearest));
	return err__set(err, -EINVAL,
			"there is no event '%s'. Choose one of %s; braid events describes them",
			spec->name, available);
}

/* Returns true if the name ends with a filter, as that of a tracepoint may. The FILE of a probe has
 * slashes of its own. */
static bool has_filter(const char *name, const struct event_kind *kind)
{
	const char *argument = name + strcspn(name, "/:"), *symbol;
	size_t n;

	if (*argument == ':' && kind->argument && !strncmp(kind->argument, "FILE:", 5)) {
		symbol = strchr(argument + 1, ':');
		argument = symbol ? symbol : "";
	}
	n = strlen(argument);
	return n > 2 && argument[n - 1] == '/' && memchr(argument, '/', n - 2);
}

static int check_filter(const struct event_spec *spec, struct err *err)
{
	size_t len = strcspn(spec->name, "/:");
	const struct event_kind *kind = find_kind(spec->name, len);

	if (!kind || kind == &event_tracepoint || strstr(spec->name, EVENT_LATENCY) ||
	    !has_filter(spec->name, kind))
		return 0;
	return err__set(
		err, -EINVAL,
		"the event %s takes no filter (/.../): only tracepoint:SYS:NAME/FILTER/ does. "
		"Leave it out, and select samples of the recording with braid report's options",
		kind->name);
}

static int parse_kind(struct event_spec *spec, struct err *err)
{
	size_t len = strcspn(spec->name, ":");
	const struct event_kind *kind = find_kind(spec->name, len);

	if (check_filter(spec, err))
		return -EINVAL;
	if (strstr(spec->name, EVENT_LATENCY))
		kind = &event_latency; /* A:latency:B, for any A */
	if (!kind)
		return unknown(spec, len, err);
	spec->kind = kind;
	if (!kind->argument)
		return spec->name[len] ? err__set(err, -EINVAL, "the event %.*s takes no argument",
						  (int)len, spec->name)
		       : kind->parse   ? kind->parse(spec, err)
				       : 0;
	if (kind->optional && !spec->name[len])
		return 0;
	if (!spec->name[len] || !spec->name[len + 1])
		return err__set(err, -EINVAL, "the event %s requires an argument: %s:%s",
				kind->name, kind->name, kind->argument);
	return kind->parse ? kind->parse(spec, err) : 0;
}

int event_spec__parse(struct event_spec *spec, struct err *err)
{
	int code = event_values__parse(spec->name, &spec->values, err);

	if (!code)
		code = parse_kind(spec, err);
	if (code || !(spec->values.n || spec->values.is_all))
		return code;
	if (!spec->kind->values)
		return err__set(err, -EINVAL,
				"the event %s has no values to record. Leave out the list in "
				"parentheses",
				spec->kind->name);
	return spec->kind->values(spec, err);
}

/* Returns the length of the first event of a list. Commas in parentheses do not separate. */
static size_t event_length(const char *text)
{
	size_t len = strcspn(text, ",("), closing;

	while (text[len] == '(') {
		closing = strcspn(text + len, ")");
		len += closing;
		len += strcspn(text + len, ",(");
	}
	return len;
}

static int check_both(const struct event_spec *a, const struct event_spec *b, struct err *err)
{
	if (!strcmp(a->name, b->name))
		return err__set(err, -EINVAL, "the event %s is given twice", a->name);
	if (a->kind->by_value && a->kind->slot == b->kind->slot)
		return err__set(err, -EINVAL,
				"%s and %s cannot be recorded together: bytes that both see would "
				"count twice. Leave one out, or make two recordings at once",
				a->name, b->name);
	if (a->kind->contains == b->kind || b->kind->contains == a->kind)
		return err__set(err, -EINVAL,
				"%s and %s cannot be recorded together: one contains the other. "
				"Leave %s out; braid report --state waiting shows the waits alone",
				a->name, b->name, a->kind->contains ? b->name : a->name);
	return 0;
}

static int add(struct event_list *list, const char *text, size_t len, struct err *err)
{
	struct event_spec *spec = &list->list[list->n];
	int code;

	if (!len)
		return err__set(err, -EINVAL, "an event's name is missing");
	if (len >= EVENT_NAME_BYTES)
		return err__set(err, -EINVAL, "an event's name may have at most %d bytes",
				EVENT_NAME_BYTES - 1);
	if (list->n == EVENTS_MAX)
		return err__set(err, -EINVAL, "a recording may have at most %d events", EVENTS_MAX);
	*spec = (struct event_spec) {};
	memcpy(spec->name, text, len);
	code = event_spec__parse(spec, err);
	for (uint32_t i = 0; !code && i < list->n; i++)
		code = check_both(&list->list[i], spec, err);
	if (!code)
		list->n++;
	return code;
}

int event_list__parse(const char *text, struct event_list *list, struct err *err)
{
	size_t len;
	int code;

	do {
		len = event_length(text);
		code = add(list, text, len, err);
		text += len;
	} while (!code && *text++);
	return code;
}

bool event_list__has_timed(const struct event_list *list, bool timed)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->list[i].kind->timed == timed)
			return true;
	return false;
}

bool event_list__has_mapped(const struct event_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->list[i].kind->mapped && *event__argument(&list->list[i]) != '/')
			return true;
	return false;
}

bool event_list__has_counted(const struct event_list *list, bool by_value)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (!list->list[i].kind->timed && list->list[i].kind->by_value == by_value)
			return true;
	return false;
}

uint32_t event_list__of_slot(const struct event_list *list, enum event_slot slot)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->list[i].kind->slot == slot)
			return i + 1;
	return 0;
}

uint32_t event_list__waiting(const struct event_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->list[i].kind->slot == EVENT_OFF_CPU ||
		    list->list[i].kind->slot == EVENT_WALL)
			return i + 1;
	return 0;
}

bool event_list__has_rated(const struct event_list *list)
{
	for (uint32_t i = 0; i < list->n; i++)
		if (list->list[i].kind->rated)
			return true;
	return false;
}

/* Returns true for events that braid counts by occurrences, instead of a clock or a counter with
 * its own rate. */
static bool is_counted(const struct event_kind *kind)
{
	return !kind->timed && !kind->rated && !kind->by_value;
}

static void configure_triggers(const struct event_spec *spec, uint32_t number,
			       struct chain_events *events)
{
	const struct chain_program *program = event_kind__programs(spec->kind);
	uint32_t bit = 1U << number;

	events->programs[number] = program;
	events->begins |= spec->begins ? bit : 0;
	events->functions |= spec->functions ? bit : 0;
	for (int type = 0; type < CHAIN_TYPES_N; type++)
		if (spec->types & 1U << type)
			events->of_type[type] |= bit;
	if (!program && !spec->types)
		events->of_type[spec->kind->type] |= bit;
	for (; program && program->name; program++)
		events->of_type[program->type] |= bit;
}

void event_list__configure(const struct event_list *list, const struct event_rates *rates,
			   struct kernel_half_opts *opts)
{
	for (uint32_t i = 0; i < list->n; i++) {
		const struct event_spec *spec = &list->list[i];
		uint32_t number = i + 1;

		configure_triggers(spec, number, &opts->events);
		opts->periods[number] = is_counted(spec->kind) ? rates->period : 1;
		opts->filtered |= spec->filtered ? 1U << number : 0;
		opts->paired |= spec->interval ? 1U << number : 0;
		opts->valued |= event_values__are_recorded(&spec->values) << number;
		opts->values[number] = spec->kind->by_value ? rates->bytes : 1;
		if (spec->kind->timed && spec->kind->intervals)
			opts->values[number] = NSEC_PER_SEC / max_of(rates->frequency_hz, 1U);
		opts->minima[number] = spec->minimum;
		opts->limited |= (is_counted(spec->kind) || spec->kind->intervals ||
				  (spec->kind->by_value && !spec->kind->outstanding))
				 << number;
		opts->outstanding |= spec->kind->outstanding;
		/* With -c, intervals are not selected by their length. */
		opts->intervals |= (spec->kind->intervals && opts->periods[number] <= 1) << number;
		opts->measured |= (spec->kind->intervals || spec->kind->pending) << number;
		opts->numbers[spec->kind->slot] = number;
	}
}

/* --- attachment --- */

struct events *events__new(const struct event_list *list, struct kernel_half *half,
			   uint32_t frequency_hz, uint64_t period)
{
	struct events *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	events->n = list->n;
	for (uint32_t i = 0; i < list->n; i++) {
		struct event *event = &events->list[i];
		const struct chain_program *programs = event_kind__programs(list->list[i].kind);

		event->spec = list->list[i];
		event->number = i + 1;
		event->half = half;
		event->program = programs ? kernel_half__program(half, programs)
					  : kernel_half__trigger(half, event->spec.kind->type,
								 event->number);
		if (event->spec.kind->timed)
			event->period_ns = NSEC_PER_SEC / max_of(frequency_hz, 1U);
		event->period = period;
		event->frequency_hz = max_of(frequency_hz, 1U);
	}
	return events;
}

int event__add_link(struct event *event, struct bpf_link *link, int fd, struct err *err)
{
	size_t cap = event->cap_links;

	if (array__reserve(&event->links, &event->cap_links, event->n_links + 1,
			   sizeof(struct bpf_link *)) ||
	    array__reserve(&event->fds, &cap, event->n_links + 1, sizeof(*event->fds))) {
		bpf_link__destroy(link);
		return err__set(err, -ENOMEM, "out of memory");
	}
	event->links[event->n_links] = link;
	event->fds[event->n_links++] = fd;
	return 0;
}

static void detach(struct event *event)
{
	while (event->n_links)
		bpf_link__destroy(event->links[--event->n_links]);
	free(event->links);
	free(event->fds);
	event->links = NULL;
	event->fds = NULL;
	event->cap_links = 0;
	if (event->probes)
		probe_set__detach(event->probes);
	if (event->own && event->spec.kind->detach)
		event->spec.kind->detach(event);
	probe_set__free(event->probes);
	event->probes = NULL;
	event->own = NULL;
	event->attached = false;
}

static void mark_joined(struct events *events, struct tracker *tracker)
{
	uint64_t changes = tracker__changes(tracker);

	if (events->joined_changes == changes)
		return;
	tracker__join(tracker);
	events->joined_changes = changes;
}

int events__attach(struct events *events, bool mapped, const struct event_place *place,
		   struct err *err)
{
	int code = 0;

	for (uint32_t i = 0; !code && i < events->n; i++) {
		struct event *event = &events->list[i];

		if (event->attached || event->spec.kind->mapped != mapped)
			continue;
		code = event->spec.kind->attach(event, place, err);
		event->attached = !code;
		if (code)
			detach(event);
	}
	if (code)
		events__detach(events);
	else if (place)
		mark_joined(events, place->tracker);
	return code;
}

void events__count_missed(struct events *events, const struct tracker *tracker)
{
	uint32_t n = tracker__unprobed(tracker) - events->n_unprobed;

	events->n_unprobed += n;
	for (uint32_t i = 0; i < events->n; i++)
		if (events->list[i].by_process)
			events->list[i].n_missed += n;
}

int events__join(struct events *events, const struct event_place *place, struct err *err)
{
	int ret = 0;

	events__count_missed(events, place->tracker);

	for (uint32_t i = 0; !ret && i < events->n; i++) {
		struct event *event = &events->list[i];

		if (event->attached && event->spec.kind->join)
			ret = event->spec.kind->join(event, place, err);
		else if (event->attached)
			ret = event__join_probes(event, place, err);
	}
	if (!ret)
		mark_joined(events, place->tracker);
	return ret;
}

const char *events__caution(const struct events *events, size_t i)
{
	return i < events->n ? events->list[i].caution : NULL;
}

int events__follow(struct events *events, const struct event_place *place, struct err *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < events->n; i++) {
		struct event *event = &events->list[i];

		if (event->attached && event->spec.kind->follow)
			ret = event->spec.kind->follow(event, place, err);
		if (!ret && event->attached)
			ret = event__check_probes(event, place, err);
	}
	return ret;
}

int events__keep(struct events *events, struct err *err)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < events->n; i++)
		if (events->list[i].attached && events->list[i].spec.kind->keep)
			ret = events->list[i].spec.kind->keep(&events->list[i], err);
	return ret;
}

const char *events__note(const struct events *events, uint32_t number)
{
	return number && number <= events->n ? events->list[number - 1].note : "";
}

uint64_t events__left_out(const struct events *events)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < events->n; i++)
		sum += events->list[i].n_left_out;
	return sum;
}

const struct event_places *events__places(const struct events *events, uint32_t number)
{
	return &events->list[number - 1].places;
}

double events__stopped(const struct events *events)
{
	double most = 0;

	for (uint32_t i = 0; i < events->n; i++)
		most = max_of(most, events->list[i].stopped);
	return most;
}

const char *events__late(struct events *events, uint32_t number)
{
	struct event *event = number && number <= events->n ? &events->list[number - 1] : NULL;
	int n;

	if (!event)
		return "";
	memcpy(event->late_note, event->late, sizeof(event->late));
	n = strlen(event->late_note);
	if (event->n_missed)
		snprintf(event->late_note + n, sizeof(event->late_note) - n,
			 "%s%" PRIu64 " process%s ended without probes: calls there are not seen",
			 n ? "; " : "", event->n_missed, event->n_missed > 1 ? "es" : "");
	return event->late_note;
}

uint64_t events__ended_ns(const struct events *events, uint32_t number)
{
	return number && number <= events->n ? events->list[number - 1].ended_ns : 0;
}

int events__slow_down(struct events *events, uint32_t slowdown)
{
	int code = 0, rc;

	for (uint32_t i = 0; i < events->n; i++) {
		struct event *event = &events->list[i];

		if (!event->attached || !event->spec.kind->slow_down)
			continue;
		rc = event->spec.kind->slow_down(event, slowdown);
		code = rc ? rc : code;
	}
	return code;
}

void events__detach(struct events *events)
{
	for (uint32_t i = 0; events && i < events->n; i++)
		detach(&events->list[i]);
}

void events__free(struct events *events)
{
	events__detach(events);
	for (uint32_t i = 0; events && i < events->n; i++)
		event_places__done(&events->list[i].places);
	free(events);
}
