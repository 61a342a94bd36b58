/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FRAMES_BPF_H
#define BRAID_FRAMES_BPF_H

/* Open calls of a thread, each identified by its frame: the address of its return address, the
 * return address itself, and the event. A call that an exception, a longjmp or the end of the
 * thread has ended never returns. Its entry stays until a call begins at the same address, or until
 * the entry is the oldest of a full set. Entries need not be in the order of a stack, so that a
 * thread may have several stacks. */

#include "bpf/scratch.bpf.h"

#define FRAME_WAYS 4
#define FRAME_SETS 64

struct open_frame {
	__u64 sp;     /* address of the return address; 0: the slot is empty */
	__u64 caller; /* the return address */
	__u64 since_ns;
	__u32 event;
};

struct open_frames {
	struct open_frame list[FRAME_SETS * FRAME_WAYS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct open_frames);
} open_frames __weak SEC(".maps");

/* Returns the first index of a set. Stack pointers of calls are 16 bytes apart. */
static __always_inline __u32 frame__set(__u64 sp, __u32 event)
{
	__u64 hash = ((sp >> 4) + event) * 0x9e3779b97f4a7c15ULL;

	return (hash >> 58) * FRAME_WAYS;
}
_Static_assert(FRAME_SETS == 64, "the upper six bits of a hash");

static __always_inline struct open_frame *frame__at(struct open_frames *frames, __u32 at)
{
	return &frames->list[at & (FRAME_SETS * FRAME_WAYS - 1)];
}

/* Records the begin of a call of @event's function with its return address at @sp. */
static __noinline int frame__enter(__u64 sp, __u32 event)
{
	struct open_frames *frames = bpf_task_storage_get(&open_frames, bpf_get_current_task_btf(),
							  0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 set = frame__set(sp, event);
	struct open_frame *to, *frame;
	__u64 caller = 0;

	if (!frames) {
		count(COUNT_INTERVAL_NO_MEMORY);
		return 0;
	}
	bpf_probe_read_user(&caller, sizeof(caller), (void *)sp);
	to = frame__at(frames, set);
	for (int i = 0; i < FRAME_WAYS; i++) {
		frame = frame__at(frames, set + i);
		if (frame->sp == sp && frame->event == event) {
			to = frame;
			break;
		}
		if (to->sp && (!frame->sp || frame->since_ns < to->since_ns))
			to = frame;
	}
	to->sp = sp;
	to->caller = caller;
	to->event = event;
	to->since_ns = bpf_ktime_get_ns();
	return 0;
}

/* Removes the call with return address @caller at @sp. Returns the time of its begin, or 0 if it is
 * unknown. */
static __noinline __u64 frame__leave(__u64 sp, __u64 caller, __u32 event)
{
	struct open_frames *frames =
		bpf_task_storage_get(&open_frames, bpf_get_current_task_btf(), 0, 0);
	__u32 set = frame__set(sp, event);
	struct open_frame *frame;

	for (int i = 0; frames && i < FRAME_WAYS; i++) {
		frame = frame__at(frames, set + i);
		if (frame->sp != sp || frame->event != event || frame->caller != caller)
			continue;
		frame->sp = 0;
		return frame->since_ns;
	}
	return 0;
}

#endif
