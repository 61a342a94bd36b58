// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/mmap_events.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"

#define BUFFER_PAGES  16	 /* pages per CPU */
#define PATIENT_BYTES (32 << 10) /* half of the buffer */

/* an event that waits for those of other CPUs */
struct waiting_event {
	struct mmap_event event;
	size_t path_at; /* offset in mmap_events.paths */
};

struct mmap_events {
	struct perf_buffer *buffer;
	struct waiting_event *waiting; /* owned */
	size_t n, cap;
	char *paths; /* owned; each path with its NUL */
	size_t n_paths, cap_paths;
	int map_fd; /* required by libbpf; no program writes to it */
	struct mmap_events_opts opts;
};

/* PERF_RECORD_MMAP2; PERF_RECORD_MMAP has the same start. The last word is the time. */
struct mmap_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start, bytes, offset;
	uint32_t dev_major, dev_minor;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[]; /* ends with a NUL */
};

static struct mmap_event event_of(const struct mmap_record *record)
{
	struct mmap_event event = { .pid = record->pid };

	if (record->header.type != PERF_RECORD_MMAP2 ||
	    record->header.size <= offsetof(struct mmap_record, path) + sizeof(event.time_ns))
		return event;
	memcpy(&event.time_ns, (const char *)record + record->header.size - sizeof(event.time_ns),
	       sizeof(event.time_ns));
	event.start = record->start;
	event.end = record->start + record->bytes;
	if (record->path[0] != '/')
		return event;
	event.offset = record->offset;
	event.inode = record->inode;
	event.dev_major = record->dev_major;
	event.dev_minor = record->dev_minor;
	event.path = record->path;
	return event;
}

/* Copies the event to the list. Returns 0 or -ENOMEM. */
static int put_off(struct mmap_events *events, const struct mmap_event *event)
{
	size_t bytes = event->path ? strlen(event->path) + 1 : 0;

	if (array__reserve(&events->waiting, &events->cap, events->n + 1,
			   sizeof(*events->waiting)) ||
	    array__reserve(&events->paths, &events->cap_paths, events->n_paths + bytes, 1))
		return -ENOMEM;
	events->waiting[events->n++] = (struct waiting_event) { *event, events->n_paths };
	if (bytes)
		memcpy(events->paths + events->n_paths, event->path, bytes);
	events->n_paths += bytes;
	return 0;
}

static enum bpf_perf_event_ret on_event(void *ctx, int cpu, struct perf_event_header *header)
{
	const struct mmap_record *record = (const void *)header;
	struct mmap_events *events = ctx;
	struct mmap_event event;

	(void)cpu;
	if ((header->type == PERF_RECORD_MMAP || header->type == PERF_RECORD_MMAP2) &&
	    header->size >= offsetof(struct mmap_record, start)) {
		event = event_of(record);
		if (put_off(events, &event))
			events->opts.on_lost(events->opts.ctx);
	} else if (header->type == PERF_RECORD_LOST)
		events->opts.on_lost(events->opts.ctx);
	return LIBBPF_PERF_EVENT_CONT;
}

int mmap_events__new(const struct mmap_events_opts *opts, struct mmap_events **ret)
{
	/* A dummy event takes no samples; executable mappings arrive as side-band records. */
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.size = sizeof(attr),
					.mmap = 1,
					.mmap2 = 1,
					.sample_id_all = 1,
					.sample_type = PERF_SAMPLE_TIME,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC,
					.watermark = 1,
					.wakeup_watermark = opts->patient ? PATIENT_BYTES : 1 };
	struct mmap_events *events = calloc(1, sizeof(*events));
	int err = 0;

	if (!events)
		return -ENOMEM;
	events->opts = *opts;
	events->map_fd = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "mmap_events", sizeof(int),
					sizeof(int), libbpf_num_possible_cpus(), NULL);
	if (events->map_fd < 0)
		err = -errno;
	else
		events->buffer = perf_buffer__new_raw(events->map_fd, BUFFER_PAGES, &attr, on_event,
						      events, NULL);
	if (!err && !events->buffer)
		err = -errno;
	if (err)
		mmap_events__free(events);
	else
		*ret = events;
	return err;
}

void mmap_events__free(struct mmap_events *events)
{
	if (!events)
		return;
	perf_buffer__free(events->buffer);
	if (events->map_fd >= 0)
		close(events->map_fd);
	free(events->waiting);
	free(events->paths);
	free(events);
}

int mmap_events__fd(const struct mmap_events *events)
{
	return events ? perf_buffer__epoll_fd(events->buffer) : -1;
}

static int compare_times(const void *a, const void *b)
{
	const struct waiting_event *first = a, *second = b;

	return (first->event.time_ns > second->event.time_ns) -
	       (first->event.time_ns < second->event.time_ns);
}

void mmap_events__consume(struct mmap_events *events)
{
	if (!events)
		return;
	perf_buffer__consume(events->buffer);
	if (events->n)
		qsort(events->waiting, events->n, sizeof(*events->waiting), compare_times);
	for (size_t i = 0; i < events->n; i++) {
		struct mmap_event *event = &events->waiting[i].event;

		if (event->path)
			event->path = events->paths + events->waiting[i].path_at;
		events->opts.on_mmap(events->opts.ctx, event);
	}
	events->n = events->n_paths = 0;
}
