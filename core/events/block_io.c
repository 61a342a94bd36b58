// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/duration.h"

/* The time that block devices take, by the requesting stack (bpf/block_io.bpf.c). */

static const struct chain_program programs[] = { { CHAIN_TRACEPOINT, "block_io_queue" },
						 { CHAIN_TRACEPOINT, "block_io_split" },
						 { CHAIN_TRACEPOINT, "block_io_done" },
						 { CHAIN_TRACEPOINT, "block_io_bio_done" },
						 {} };

/* The tracepoints of the programs. The start of requests is attached last, so that each end of a
 * request is seen. */
static const struct {
	int program;
	const char *tracepoint;
} places[] = { { 1, "block_split" },
	       { 2, "block_rq_complete" },
	       { 3, "block_bio_complete" },
	       { 0, "block_bio_queue" } };

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);

	if (duration__parse(argument, &spec->minimum))
		return err__set(err, -EINVAL,
				"'%s' is not a minimum time of block I/O. Write block-io:100us or "
				"block-io:5ms, for example",
				argument);
	strcpy(spec->name, spec->kind->name);
	return 0;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = 0;

	(void)place;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(places); i++)
		ret = event__attach_raw(event, programs[places[i].program].name,
					places[i].tracepoint, "to see block I/O", err);
	return ret;
}

const struct event_kind event_block_io = {
	.name = "block-io",
	.argument = "[MIN]",
	.optional = true,
	.unit = "ns",
	.help = "Time that block I/O takes: block-io, or block-io:1ms to leave out shorter "
		"requests",
	.type = CHAIN_TRACEPOINT,
	.programs = programs,
	.slot = EVENT_BLOCK_IO,
	.pending = true,
	.parse = parse,
	.attach = attach,
};
