/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_COUNTERS_H
#define BRAID_COUNTERS_H

/* A part of bpf/shared.h. */

/* --- counters: one for each early return in the kernel half, and for losses in user space --- */
#define COUNTERS(X)                                                                            \
	X(NONE, "")                                                                            \
	X(SAMPLES, "samples taken")                                                            \
	X(NO_USER_REGS, "samples with kernel frames only: the task was in exec or exit")       \
	X(REPEATED, "samples with a cached stack")                                             \
	X(EVICTED, "stacks evicted from the cache, to be sent again")                          \
	X(CACHED_SAME, "stacks with cached frames that are equal without them")                \
	X(CONTEXT_NONE, "samples of threads without a request context")                        \
	X(CONTEXT_DETACHED, "samples with a request context that is detached or written")      \
	/* losses from here on */                                                              \
	X(RING_FULL, "samples lost: ring buffer full")                                         \
	X(SCRATCH, "samples lost: no scratch memory free on the CPU")                          \
	X(COMPAT, "samples in 32-bit code, native frames not unwound")                         \
	X(NO_MAPPINGS, "stacks cut: mappings of the process not read yet")                     \
	X(UNMAPPED_PC, "stacks cut: mapping of the code not read yet")                         \
	X(ENDED_MAPPING, "stacks cut: mapping ended, and the new one not read yet")            \
	X(MAPPINGS_FULL, "stacks cut: too many mappings of code")                              \
	/* return addresses outside of code: is_no_code() of bpf/unwind.bpf.h */               \
	X(ADDRESS_DATA, "stacks cut: return address in data")                                  \
	X(ADDRESS_NO_EXEC, "stacks cut: return address in memory that is not executable")      \
	X(ADDRESS_UNMAPPED, "stacks cut: return address where nothing is mapped")              \
	X(NO_CALL, "stacks cut: no call ends at the return address")                           \
	X(TORN_MAPPINGS, "stacks cut: mappings were being written")                            \
	X(NO_RULE, "stacks cut: no unwind rule and no usable frame pointer")                   \
	X(RULE_LATER, "stacks cut: unwind rules of assembly not ready yet")                    \
	X(UNPROVEN, "stacks cut: no unwind rule and no proof of a frame pointer")              \
	X(ZERO_POINTER, "stacks cut: frame pointer 0, but no proof of the stack's end")        \
	X(ZERO_RETURN, "stacks cut: return address 0, but no proof of the stack's end")        \
	X(FIBER_ALONE, "stacks cut: no other fiber is seen to wait for this one")              \
	X(CACHED_DIFFERS, "stacks with cached frames that differ without them")                \
	X(UNSUPPORTED, "stacks cut: unwind rule too complex for the table")                    \
	X(TABLE, "stacks cut: unwind table inconsistent")                                      \
	X(STACK_READ, "stacks cut: stack memory not readable")                                 \
	X(NOT_GROWING, "stacks cut: frame address not above the previous one")                 \
	X(STACKS, "stacks cut: too many changes to a lower stack")                             \
	X(LOST_REG, "stacks cut: a register that the rule needs was not saved")                \
	X(TRUNCATED, "stacks cut: more native frames than shown")                              \
	X(COPY_FAILED, "stack copies lost: ring buffer full")                                  \
	X(EVENT_LOST, "process events lost: ring buffer full")                                 \
	X(CONTEXT_READ, "request contexts missing: not readable")                              \
	X(CONTEXT_INVALID, "request contexts missing: record invalid")                         \
	X(CONTEXT_CUT, "request contexts cut: attributes of more bytes than are read")         \
	X(CONTEXT_LOST, "request contexts missing: ring buffer full")                          \
	X(VALUE_READ, "values of samples missing: memory not readable")                        \
	X(VALUES_LOST, "values of samples missing: ring buffer full")                          \
	X(TARGETS_FULL, "processes not seen: table full")                                      \
	X(WALK_NO_STATE, "runtime stacks missing: interpreter state not readable")             \
	X(WALK_FIBER, "runtime stacks missing: the thread was changing fibers")                \
	X(WALK_READ, "runtime stacks cut: frame not readable")                                 \
	X(WALK_CODE, "runtime frames unnamed: code object not readable")                       \
	X(WALK_TRUNCATED, "runtime stacks cut: more frames than shown")                        \
	X(CODE_LOST, "runtime frames unnamed: ring buffer or table full")                      \
	X(TASK_READ, "samples without the thread's task: not readable")                        \
	X(WALK_TAIL_CALL, "runtime stacks missing: walker not loaded")                         \
	X(PROBE_UNKNOWN, "calls unseen: probe without a record")                               \
	X(PROBE_READ, "calls unseen: arguments of the probe not readable")                     \
	X(SHADOW_NO_MEMORY, "calls unseen: no memory for the thread's shadow stack")           \
	X(SHADOW_UNMATCHED, "returns from calls that were not seen")                           \
	X(SHADOW_LOST_RETURN, "calls that ended without their return being seen")              \
	X(CALL_TREE_FULL, "calls counted without their callers: call tree full")               \
	X(CALL_LOST, "calls not counted: call tree full")                                      \
	X(LOCK_WAITERS, "waits for locks whose holder is not seen: too many threads wait")     \
	X(LOCKS_HELD, "mutexes without their order: the thread holds too many at once")        \
	X(ALLOC_THREAD, "threads whose allocations are not seen: no memory")                   \
	X(HEAP_VALUES, "allocations not seen: a probe with an impossible size or weight")      \
	X(LIVE_ALLOCS_FULL, "allocations not followed until they are freed: too many at once") \
	X(LIVE_ALLOC_REUSED, "frees that were not seen: the address was allocated again")      \
	X(WAITING_FULL, "threads whose waits are not seen: table full")                        \
	X(RETURN_UNSEEN, "waits without the kernel's frames: their end was not seen")          \
	X(HIDDEN_PC, "stacks cut: return address just replaced by a probe")                    \
	X(INTERVAL_UNMATCHED, "intervals not seen: an end without a beginning")                \
	X(INTERVAL_NO_MEMORY, "intervals not seen: no memory for the thread")                  \
	X(BLOCK_IOS_FULL, "block I/O lost: too many requests in flight")                       \
	/* counted by user space */                                                            \
	X(CONTEXT_GONE, "request contexts missing: not sent with their samples")               \
	X(CONTEXT_MALFORMED, "request contexts cut: incomplete attribute")                     \
	X(PARKED_MOVED, "waiting tasks left out: they ran while their stack was read")         \
	X(UNFINISHED, "samples left out: the end of their interval was not seen")              \
	X(UNTIMED, "occurrences left out: whether they reach the minimum is unknown")          \
	X(PROCESS_UNREAD, "processes not analyzed: no descriptor or memory left")              \
	X(WALK_EARLY, "runtime stacks missing: taken before the interpreter was known")        \
	X(PROCESS_FORBIDDEN, "processes without names of code: mappings are forbidden")        \
	X(NAME_STALE, "runtime frames unnamed: gone before their name was read")               \
	X(SECTION_UNPLACED, "runtime frames placed outside others: no address known")          \
	X(ALLOC_CODES, "too many allocating functions: calls between them count twice")        \
	X(IMAGE_UNREAD, "files of code not read: no descriptor left")                          \
	X(TABLE_UNPLACED, "files of code without unwind table: no space left for it")          \
	X(REPEAT_LOST, "samples lost: the stack that they refer to is missing")

enum counter {
#define X(id, text) COUNT_##id,
	COUNTERS(X)
#undef X
		COUNTERS_N,
	COUNT_FIRST_LOSS = COUNT_RING_FULL
};

#endif
