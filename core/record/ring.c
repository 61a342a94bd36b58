// SPDX-License-Identifier: GPL-2.0-or-later
/* The order in which records of the kernel half are consumed. A sample belongs to the mappings of
 * its time. The end of a mapping is stored with its time (core/target/mapping_times.h), so events
 * of mappings are consumed before each sample that follows them. New mappings are read when
 * the ring is consumed up to the start of the call; a session that is behind reads none. Each call
 * is short: a target that samples faster than braid records must not delay the session's clock,
 * limits and signals. */
#include "core/record/parts.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define CONSUME_NS 100000000ULL

/* Time after the end of sampling for unwinding stack copies in the ring, which takes milliseconds
 * each. */
#define DRAIN_NS NSEC_PER_SEC

/* Returns the time of a sample, or 0 for another record. */
static uint64_t sample_time(const void *data, size_t size)
{
	const struct rec_sample *sample = data;
	const struct rec_repeat *repeat = data;

	if (size >= sizeof(*sample) && sample->type == REC_SAMPLE)
		return sample->time_ns;
	return size >= sizeof(*repeat) && repeat->type == REC_REPEAT ? repeat->time_ns : 0;
}

static void on_mmap(void *ctx, const struct mmap_event *event)
{
	struct session *session = ctx;
	uint32_t pid = event->pid;
	bool urgent;

	if (tracker__on_mmap(session->tracker, event, &urgent))
		tracker__on_lost(session->tracker);
	session->mappings.is_urgent |= urgent;
	if ((session->mappings.n && session->mappings.pids[session->mappings.n - 1] == pid) ||
	    !tracker__find(session->tracker, pid))
		return;
	if (array__reserve(&session->mappings.pids, &session->mappings.cap, session->mappings.n + 1,
			   sizeof(*session->mappings.pids)))
		return; /* it will be seen within the second */
	session->mappings.pids[session->mappings.n++] = pid;
}

/* Samples in the ring were taken earlier and belong to the old mappings. A process that was not
 * read yet is read at its first sample. */
static void refresh_remapped(struct session *session)
{
	struct process *process;
	size_t i;

	for (i = 0; i < session->mappings.n; i++) {
		process = tracker__find(session->tracker, session->mappings.pids[i]);
		if (process && !process__is_ended(process) && process->space)
			tracker__refresh(session->tracker, process);
	}
	session->mappings.n = 0;
}

void session__take_mmaps(void *ctx)
{
	const struct session *session = ctx;

	mmap_events__consume(session->mappings.events);
}

/* Consumes events of mappings. An event that covers existing mappings is applied before the samples
 * that were taken after it. */
static void consume_mmaps(struct session *session)
{
	session->mappings.is_urgent = false;
	session__take_mmaps(session);
	if (session->mappings.is_urgent)
		refresh_remapped(session);
}

static int on_ring_record(void *ctx, void *data, size_t size)
{
	struct session *session = ctx;
	struct hold *hold = NULL;
	bool late = sample_time(data, size) > session->ring.until_ns;
	int ret = 0;

	if (late) /* earlier mappings may have been reported since */
		consume_mmaps(session);

	if (size >= sizeof(struct rec_program) && *(const uint32_t *)data == REC_EXEC)
		hold = session__hold(session, data);
	if (!session->opts.filter || session->opts.filter(session->opts.ctx, data, size))
		ret = routing__record(&session->routing, data, size, &session->ring.err);
	if (hold)
		hold__go_on(hold);
	if (!ret && session__has_outstanding(session))
		ret = session__note_end(session, data, size);
	if (ret)
		return ret;
	session->ring.is_lagging = now_ns() >= session->ring.end_ns;
	if (session->ring.is_lagging || late)
		return -EAGAIN;
	return 0;
}

static int consume_ring(struct session *session)
{
	int n;

	session->ring.is_lagging = false;
	session->ring.end_ns = session->ring.until_ns + CONSUME_NS;
	n = ring_buffer__consume(session->ring.buffer);
	return n == -EAGAIN ? 0 : n;
}

static void on_lost(void *ctx)
{
	const struct session *session = ctx;

	tracker__on_lost(session->tracker);
}

void session__fail_consuming(struct session *session, int ret, const struct err *err)
{
	if (session->ring.ret < 0)
		return;
	session->ring.ret = ret;
	session->ring.err = *err;
}

int session__consume(struct session *session, struct err *err)
{
	int n;

	session->ring.until_ns = now_ns();
	consume_mmaps(session);
	n = session->ring.ret < 0 ? session->ring.ret : consume_ring(session);
	if (n >= 0 &&
	    !session->ring.is_lagging) /* otherwise samples would be resolved by later mappings */
		refresh_remapped(session);
	if (n >= 0)
		return session->ring.is_lagging
			       ? 0
			       : routing__consumed(&session->routing, session->ring.until_ns, err);
	*err = session->ring.err;
	return err->text[0] ? n : err__set(err, n, "ring buffer: %s", strerror(-n));
}

int session__drain(struct session *session, struct err *err)
{
	uint64_t end_ns = now_ns() + DRAIN_NS;
	int ret;

	do {
		if (now_ns() >= end_ns)
			capture__skip_copies(session->capture);
		ret = session__consume(session, err);
	} while (!ret && session->ring.is_lagging);
	return ret;
}

int session__open_ring(struct session *session, struct err *err)
{
	session->ring.buffer = ring_buffer__new(kernel_half__map_fd(session->half, "ring"),
						on_ring_record, session, NULL);
	if (!session->ring.buffer)
		return err__set(err, -errno, "cannot map the ring buffer: %s", strerror(errno));
	mmap_events__new(&(struct mmap_events_opts) { .on_mmap = on_mmap,
						      .on_lost = on_lost,
						      .ctx = session,
						      .patient = session->targets.scope },
			 &session->mappings.events);
	return 0;
}

void session__close_ring(struct session *session)
{
	ring_buffer__free(session->ring.buffer);
	mmap_events__free(session->mappings.events);
	free(session->mappings.pids);
}
