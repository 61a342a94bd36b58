// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/events/duration.h"

/* A:latency:B[:MIN], the time from A to the next B in the same thread, in ns, with the stack of B.
 * The time of A is stored per thread until B (bpf/interval.bpf.h). The last of several A before one
 * B counts, and a B without an A is counted separately. A function's entry and its own return
 * belong to the same call (bpf/frames.bpf.h), also in recursion and after exceptions. */

struct ends {
	struct event_spec list[2]; /* A and B */
	uint64_t minimum;	   /* ns */
};

/* Removes :MIN from the name of B. A last word that resembles a time is one only if an event is
 * left without it: uprobe:FILE:4711 has a wrong place, but no time. */
static int take_minimum(struct event_spec *second, uint64_t *ret_minimum, struct err *err)
{
	char *last = strrchr(second->name, ':');
	struct event_spec rest = {};
	struct err ignored = {};

	if (!last || !isdigit((unsigned char)last[1]) || strchr(last, '/') ||
	    !strncmp(last + 1, "0x", 2))
		return 0;
	snprintf(rest.name, sizeof(rest.name), "%.*s", (int)(last - second->name), second->name);
	if (event_spec__parse(&rest, &ignored))
		return 0;
	if (duration__parse(last + 1, ret_minimum))
		return err__set(err, -EINVAL,
				"'%s' is not a minimum time between two events. Write "
				"A:latency:B:10us or A:latency:B:1ms, for example",
				last + 1);
	*last = '\0';
	return 0;
}

static int take_apart(const char *name, struct ends *ret, struct err *err)
{
	const char *between = strstr(name, EVENT_LATENCY), *second;
	int code = 0;

	if (!between || between == name || !between[strlen(EVENT_LATENCY)])
		return err__set(
			err, -EINVAL,
			"an interval is A:latency:B[:MIN], such as uprobe:FILE:SYMBOL:latency:"
			"uretprobe:FILE:SYMBOL, not %s",
			name);
	second = between + strlen(EVENT_LATENCY);
	if (strstr(second, EVENT_LATENCY))
		return err__set(err, -EINVAL,
				"an interval has two ends, but this one has three: %s", name);
	*ret = (struct ends) {};
	snprintf(ret->list[0].name, sizeof(ret->list[0].name), "%.*s", (int)(between - name), name);
	snprintf(ret->list[1].name, sizeof(ret->list[1].name), "%s", second);
	code = take_minimum(&ret->list[0], &ret->minimum, err);
	if (!code && ret->minimum)
		code = err__set(
			err, -EINVAL,
			"the minimum time of an interval comes last: A:latency:B:MIN, not as in %s",
			name);
	if (!code)
		code = take_minimum(&ret->list[1], &ret->minimum, err);
	for (int i = 0; !code && i < 2; i++) {
		code = event_spec__parse(&ret->list[i], err);
		if (!code && ret->list[i].values.by_place)
			code = err__set(err, -EINVAL,
					"an interval cannot begin or end at a pattern: name one "
					"function instead of %s",
					ret->list[i].name);
		if (!code && !ret->list[i].kind->attach_at)
			code = err__set(err, -EINVAL,
					"an interval cannot begin or end at %s. Use a tracepoint, "
					"uprobe, uretprobe, usdt or kprobe",
					ret->list[i].name);
	}
	return code;
}

/* Marks an interval from the entry of a function to its return: the call's frame connects the
 * two. */
static void mark_call(struct ends *ends)
{
	struct event_spec *list = ends->list;

	list[0].call = list[1].call = list[0].kind == &event_uprobe &&
				      list[1].kind == &event_uretprobe &&
				      !strcmp(event__argument(&list[0]), event__argument(&list[1]));
}

static int parse(struct event_spec *spec, struct err *err)
{
	struct ends ends;
	int code = take_apart(spec->name, &ends, err);

	if (code)
		return code;
	for (int i = 0; i < 2; i++) {
		const struct event_spec *at = &ends.list[i];

		spec->types |= 1U << at->kind->type;
		spec->functions |= at->functions;
	}
	spec->begins = ends.list[0].kind->type == CHAIN_TRACEPOINT;
	spec->filtered = ends.list[1].filtered; /* the start has its own filter */
	spec->interval = true;
	spec->minimum = ends.minimum;
	return 0;
}

static int set_values(struct event_spec *spec, struct err *err)
{
	struct ends ends;
	int code = take_apart(spec->name, &ends, err);
	struct event_spec *end = &ends.list[1];

	if (code)
		return code;
	end->values = spec->values;
	code = end->kind->values(end, err);
	spec->values = end->values;
	return code;
}

/* Attaches the start first, so that no end lacks its start. */
static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct ends ends;
	int code = take_apart(event->spec.name, &ends, err);

	if (!code)
		mark_call(&ends);
	if (!code)
		ends.list[1].values = event->spec.values;
	for (int i = 0; !code && i < 2; i++)
		code = ends.list[i].kind->attach_at(event, &ends.list[i], i == 0, place, err);
	return code;
}

const struct event_kind event_latency = {
	.name = "latency",
	.argument = "A" EVENT_LATENCY "B[:MIN]",
	.unit = "ns",
	.help = "Time from A to B in a thread, if it is at least MIN: "
		"uprobe:libc.so.6:malloc:latency:uretprobe:libc.so.6:malloc",
	.type = CHAIN_TRACEPOINT,
	.mapped = true,
	.intervals = true,
	.parse = parse,
	.values = set_values,
	.attach = attach,
};
