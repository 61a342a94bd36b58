// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A:latency:B, the time from A to the next B in the same thread, in ns, with the stack of B. What
 * has begun is kept with the thread (bpf/interval.bpf.h): of several A before one B the last
 * counts, and a B without an A is counted as such. */

struct ends {
	struct event_spec list[2]; /* A and B */
};

static int take_apart(const char *name, struct ends *ret, struct err *err)
{
	const char *between = strstr(name, EVENT_LATENCY), *second;
	int code = 0;

	if (!between || between == name || !between[strlen(EVENT_LATENCY)])
		return err__set(err, -EINVAL,
				"an interval is A:latency:B, such as uprobe:FILE:SYMBOL:latency:"
				"uretprobe:FILE:SYMBOL, not %s",
				name);
	second = between + strlen(EVENT_LATENCY);
	if (strstr(second, EVENT_LATENCY))
		return err__set(err, -EINVAL, "an interval has two ends, not three: %s", name);
	*ret = (struct ends) {};
	snprintf(ret->list[0].name, sizeof(ret->list[0].name), "%.*s", (int)(between - name), name);
	snprintf(ret->list[1].name, sizeof(ret->list[1].name), "%s", second);
	for (int i = 0; !code && i < 2; i++) {
		code = event_spec__parse(&ret->list[i], err);
		if (!code && !ret->list[i].kind->attach_at)
			code = err__set(err, -EINVAL,
					"an interval cannot begin or end at %s: at a tracepoint, "
					"uprobe, uretprobe, usdt or kprobe it can",
					ret->list[i].name);
	}
	return code;
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
	spec->filtered = ends.list[1].filtered; /* the beginning asks by itself */
	spec->interval = true;
	return 0;
}

/* The beginning first: no end is without it for want of that. */
static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct ends ends;
	int code = take_apart(event->spec.name, &ends, err);

	for (int i = 0; !code && i < 2; i++)
		code = ends.list[i].kind->attach_at(event, &ends.list[i], i == 0, place, err);
	return code;
}

const struct event_kind event_latency = {
	.name = "latency",
	.argument = "A" EVENT_LATENCY "B",
	.unit = "ns",
	.help = "From A to B in a thread: "
		"uprobe:libc.so.6:malloc:latency:uretprobe:libc.so.6:malloc",
	.type = CHAIN_TRACEPOINT,
	.mapped = true,
	.intervals = true,
	.parse = parse,
	.attach = attach,
	.detach = uprobe__detach,
};
