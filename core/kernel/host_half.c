// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel half on the host: takes samples of threads that no BPF program interrupts.
 *
 * Problem. Some stacks are needed without an event in the kernel: all threads for `braid dump`, and
 * the threads that already wait when a recording begins or still wait when it ends. A second walker
 * and unwinder in user space would differ from the first in a thousand details. So the BPF programs
 * themselves are compiled as ordinary C (bpf/host/). They run in this process on the memory of a
 * stopped or waiting thread. Its registers come from ptrace or from the kernel's records.
 *
 * State. The programs need the same maps as in the kernel:
 *   - records of processes and runtimes are read from the kernel's maps on demand (fetch);
 *   - unwind tables and mappings are already memory of this process, and are shared (share);
 *   - numbers of code objects come from a range of CODES that is reserved in the kernel half, so
 *     that both halves never give one number to two objects; unused numbers are returned.
 * Scratch memory is cleared before each sample: programs recognize a sample by its time, and all
 * samples of one dump have the same time.
 *
 * A record that the programs emit is completed here with facts of the caller: value, event, state
 * of the wait, lock owner. It is then passed to the caller's function. From there on it is an
 * ordinary record, routed after the records of the ring.
 *
 * Limits. The host's state is global (bpf/host/host.h), so one host_half exists at a time, in one
 * thread. A thread without user memory or registers gets its kernel frames only. */
#include "core/kernel/host_half.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "core/base/memory.h"
#include "core/base/util.h"

/* maximum number of new code objects: functions of waiting threads that no sample had before */
#define CODES 65536

struct host_half {
	const struct kernel_half *half;
	const struct table_arena *arena;
	uint32_t n_chunks;   /* chunks in the host's map */
	uint32_t first_code; /* the first of the numbers that are reserved for code objects */
	uint32_t last_space;

	/* The sample that is being taken: */
	const struct waiting_thread *thread;
	const struct waiting_sample *sample;
	int (*record)(void *ctx, const void *data, size_t size);
	void *ctx;
	int ret;
};

static const struct kernel_half *fetched; /* the host has one owner at a time */

/* Reads a value from the kernel half's map of the same name. */
static bool fetch(const struct host_map *map, const void *key, void *ret_value)
{
	int fd = kernel_half__map_fd(fetched, map->name);

	return fd >= 0 && !bpf_map_lookup_elem(fd, key, ret_value);
}

int host_half__new(const struct kernel_half *half, const struct table_arena *arena,
		   struct host_half **ret)
{
	struct host_half *host_half = calloc(1, sizeof(*host_half));

	if (!host_half)
		return -ENOMEM;
	host_half->half = fetched = half;
	host_half->arena = arena;
	host_programs__open();
	host_half->first_code = kernel_half__take_codes(half, CODES);
	host_programs__number_codes_from(host_half->first_code);
	host_programs__look_at_locks();
	host.fetch = fetch;
	*ret = host_half;
	return 0;
}

void host_half__free(struct host_half *host_half)
{
	if (!host_half)
		return;
	host.fetch = NULL;
	host__done();
	kernel_half__return_codes(host_half->half, host_half->first_code, CODES,
				  host_programs__codes() - host_half->first_code);
	free(host_half);
}

void host_half__share_codes(const struct host_half *host_half)
{
	static const char suffix[] = "_codes";

	for (size_t i = 0; i < host.n_maps; i++) {
		const struct host_map *map = &host.maps[i];
		size_t len = strlen(map->name), n = strlen(suffix);
		int fd = kernel_half__map_fd(host_half->half, map->name);

		if (fd < 0 || map->is_array || len < n || strcmp(map->name + len - n, suffix) != 0)
			continue;
		for (uint32_t at = 0; at < map->n; at++)
			if (map->entries[at].is_changed)
				bpf_map_update_elem(fd, map->entries[at].key,
						    map->entries[at].value, BPF_ANY);
	}
}

/* Reduces the sample to the walkers' sections. Returns its new size. */
static size_t drop_native(struct rec_sample *rec, size_t size)
{
	uint64_t *words = (uint64_t *)(rec + 1) + rec->n_kernel;
	size_t native = 2 * (size_t)rec->n_native;

	memmove(words, words + native, size - sizeof(*rec) - 8 * (rec->n_kernel + native));
	rec->n_native = 0;
	rec->flags &= ~(SAMPLE_COMPLETE | SAMPLE_HAS_STACK);
	return size - 8 * native;
}

static void complete_task(const struct waiting_task *task, struct rec_sample *rec, size_t *size)
{
	rec->tid = PARKED_TID;
	rec->task = task->id;
	rec->context = task->context;
	rec->weight = max_of(lround(task->stands_for), 1L);
	rec->total = llround((double)rec->value * task->stands_for);
	rec->peer = 0;
	rec->object = 0;
	rec->condition = (struct rec_condition) { .state = STATE_PARKED, .syscall = NO_SYSCALL };
	if (!task->has_native_frames)
		*size = drop_native(rec, *size);
}

/* Completes a sample with the caller's data; the programs' data about the thread stay. */
static int complete(struct host_half *host_half, const struct rec_sample *from, size_t size)
{
	const struct waiting_sample *sample = host_half->sample;
	struct rec_sample *rec = malloc(size);
	int ret;

	if (!rec)
		return -ENOMEM;
	memcpy(rec, from, size);
	rec->value = rec->total = sample->value;
	rec->weight = 1;
	rec->event = sample->event;
	rec->link = sample->link;
	rec->flags |= sample->flags;
	rec->condition.state = sample->condition.state;
	if (sample->peer)
		rec->peer = sample->peer;
	if (sample->object)
		rec->object = sample->object;
	if (sample->task)
		complete_task(sample->task, rec, &size);
	ret = host_half->record(host_half->ctx, rec, size);
	free(rec);
	return ret;
}

static void on_record(void *ctx, const void *data, size_t size)
{
	struct host_half *host_half = ctx;
	const uint32_t *type = data;
	bool is_sample = *type == REC_SAMPLE && size >= sizeof(struct rec_sample);

	if (!host_half->ret)
		host_half->ret = is_sample ? complete(host_half, data, size)
					   : host_half->record(host_half->ctx, data, size);
}

/* Copies the maps of maps, which are memory of this process. */
static void share(struct host_half *host_half, const struct space *space)
{
	const struct host_map *chunks = host_map__named("chunks");
	const struct host_map *mappings = host_map__named("mappings");
	const struct chunk *chunk;

	while ((chunk = table_arena__chunk(host_half->arena, host_half->n_chunks))) {
		host_map__update(chunks->map, &host_half->n_chunks, chunk);
		host_half->n_chunks++;
	}
	if (host_half->last_space != space->id) {
		host_map__clear(mappings->map);
		host_map__update(mappings->map, &space->id, space->shared);
	}
	host_half->last_space = space->id;
}

/* Copies the target's record. Its address space has another address in the kernel. */
static int share_target(const struct waiting_thread *thread)
{
	const struct host_map *targets = host_map__named("targets");
	struct proc_rec proc;

	if (!fetch(targets, &thread->tgid, &proc))
		return -ESRCH;
	proc.mm = 0;
	host_map__clear(targets->map);
	return host_map__update(targets->map, &thread->tgid, &proc);
}

/* Clears the programs' data about the previous sample. Programs recognize a sample by its time, and
 * all these samples have the same time. */
static void forget_sample_before(void)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (host.maps[i].is_array && host.maps[i].value_size)
			host_map__reset(host.maps[i].map);
}

/* Takes a sample of a thread without readable memory. */
static int sample_kernel(struct host_half *host_half)
{
	const struct waiting_thread *thread = host_half->thread;
	const struct waiting_sample *sample = host_half->sample;
	struct {
		struct rec_sample head;
		uint64_t words[KERNEL_FRAMES_MAX];
	} rec = { .head = { .type = REC_SAMPLE,
			    .time_ns = sample->time_ns,
			    .tgid = thread->tgid,
			    .tid = thread->tid,
			    .flags = SAMPLE_COMPLETE | SAMPLE_KERNEL_MODE,
			    .n_kernel = thread->n_kernel,
			    .object = sample->object,
			    .condition = sample->condition } };

	memcpy(rec.head.comm, thread->comm, sizeof(rec.head.comm));
	memcpy(rec.words, thread->kernel, 8 * thread->n_kernel);
	return complete(host_half, &rec.head, sizeof(rec.head) + 8 * thread->n_kernel);
}

/* Sets the data by which the programs see a task instead of a thread. *@memory becomes the memory
 * in which the task is walked; the caller frees *@ret_inner. */
static int begin_task(const struct waiting_task *task, struct host_thread *at,
		      struct memory **memory, struct memory **ret_inner)
{
	struct memory *patched = NULL;

	at->kernel = NULL;
	at->suspended = task->has_regs;
	if (memory__patched(*memory, &patched))
		return -ENOMEM;
	*ret_inner = *memory;
	*memory = patched;
	return memory__patch(patched, task->patches, task->n_patches);
}

int host_half__sample(struct host_half *host_half, const struct space *space,
		      const struct waiting_thread *thread, const struct waiting_sample *sample,
		      int (*record)(void *ctx, const void *data, size_t size), void *ctx)
{
	struct host_thread at = { .tgid = thread->tgid,
				  .tid = thread->tid,
				  .fs_base = thread->fs_base,
				  .start_stack = thread->start_stack,
				  .name = thread->comm,
				  .kernel = (const uint64_t *)thread->kernel,
				  .n_kernel = thread->n_kernel,
				  .syscall = thread->syscall,
				  .trampoline = thread->trampoline,
				  .returns = (const uint64_t(*)[2])thread->returns,
				  .n_returns = thread->n_returns };
	struct memory *memory = NULL, *inner = NULL;

	host_half->thread = thread;
	host_half->sample = sample;
	host_half->record = record;
	host_half->ctx = ctx;
	host_half->ret = 0;
	if (!space || !thread->cs || share_target(thread))
		return sample_kernel(host_half);
	if (memory__of_process(thread->tgid, &memory))
		return -ENOMEM;
	if (sample->task && begin_task(sample->task, &at, &memory, &inner)) {
		host_half->ret = -ENOMEM;
		goto out;
	}
	if (!sample->task)
		forget_sample_before();
	share(host_half, space);
	memcpy(at.regs, thread->regs, sizeof(at.regs));
	host.memory = memory;
	host.on_record = on_record;
	host.record_ctx = host_half;
	host_programs__sample(&at, sample->time_ns);
	host.on_record = NULL;
	host.memory = NULL;
out:
	memory__free(memory);
	memory__free(inner);
	return host_half->ret;
}
