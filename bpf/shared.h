/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SHARED_H
#define BRAID_SHARED_H

/* The interface between the kernel half and the user half: records, map values, limits and
 * counters. It has fixed-width kernel types only, and the size of every record is asserted. */

#include <linux/types.h>

#include "bpf/context.h"
#include "bpf/counters.h"
#include "bpf/unwind_rule.h"

#define KERNEL_FRAMES_MAX  127 /* the default of the sysctl kernel.perf_event_max_stack */
#define NATIVE_FRAMES_MAX  1024
#define RUNTIME_FRAMES_MAX 1024
#define THREAD_NAME_BYTES  16 /* TASK_COMM_LEN */

/* --- the arena of unwind tables: chunks that are created on demand --- */
#define CHUNK_WORDS_BITS 17
#define CHUNK_WORDS	 (1 << CHUNK_WORDS_BITS) /* 512 KiB */
#define CHUNKS_MAX	 1024			 /* 512 MiB of tables */

struct chunk {
	__u32 words[CHUNK_WORDS];
};

/* --- the executable mappings of one process, sorted by start --- */
#define MAPPINGS_MAX	  1024
#define MAPPINGS_MAX_LOG2 10

/* The value of n_pages for a mapping whose image has a table that found no room. */
#define PAGES_UNPLACED 0xffffffffU

/* The callers of code that a compiler generated at run time without frame pointers. */
struct code_callers {
	__u64 start; /* 0: unknown */
	__u32 bytes;
	__u32 walkers; /* bit n: the runtime with walker slot n; see CALLERS_KEEPS */
};

/* The upper bits of `walkers` (KEEPS_POINTERS) say how the code itself treats frame pointers. */
#define CALLERS_KEEPS_SHIFT    24
#define CALLERS_KEEPS(callers) ((callers)->walkers >> CALLERS_KEEPS_SHIFT)

struct mapping_rec {
	__u64 start, end;
	__u64 bias;    /* pc - bias = link-time address */
	__u32 n_pages; /* 0: no table (JIT code, or an image without a table); PAGES_UNPLACED */
	union {
		__u32 base; /* start of the table in the arena; a multiple of UNWIND_RULE_WORDS */
		__u32 is_image; /* if there is no table: the code belongs to an image */
	};
	union {
		struct {
			__u64 vaddr_start;	 /* address of the table's page 0 */
			__u32 rules_at, rows_at; /* from base */
		};
		struct code_callers callers; /* without a table */
	};
};
_Static_assert(sizeof(struct mapping_rec) == 48, "mapping_rec");

struct mapping_list {
	__u32 n;
	__u32 n_left_out; /* further mappings of the process that did not fit */
	__u32 pad;
	__u32 changes; /* odd while the list is being written. A reader discards the words that it
			* read from the list if this value changed meanwhile. */
	struct code_callers
		generated_callers; /* callers of code in anonymous memory that is not listed yet */
	struct mapping_rec mappings[MAPPINGS_MAX];
};

/* User space writes the inactive list, then activates it.
 *
 * The kernel half counts in `ended` how often addresses of an entry were given to another mapping
 * (bpf/mapping_ends.bpf.c). User space reads that count before it reads the mappings of the
 * process. It stores the count in `ended_read` when it publishes the list. While the two differ, no
 * entry of the list is used, and the kernel's own list of mappings gives the file at an address. */
struct mappings_rec {
	__u32 active; /* 0 or 1 */
	__u32 ended;
	__u32 ended_read;
	__u32 pad;
	struct mapping_list lists[2];
};

/* --- files whose images and tables are registered, independent of the process that maps them
 * --- */
#define IMAGE_FILES_MAX 16384

struct image_key { /* one version of one file, from its inode or stat(2). The vDSO: only its size */
	__u64 ino, size, ctime_ns;
	__u32 dev; /* major << 20 | minor, as in the kernel */
	__u32 pad;
};
_Static_assert(sizeof(struct image_key) == 32, "image_key");

struct image_rec {
	__u64 vaddr_less_offset; /* link-time address minus offset in the file, for all its code */
	__u64 vaddr_start;	 /* this and the next four fields as in mapping_rec */
	__u32 n_pages, base, rules_at, rows_at;
	__u32 number; /* assigned by user space */
	__u32 pad;
};
_Static_assert(sizeof(struct image_rec) == 40, "image_rec");

/* --- a process that is being profiled; key: tgid --- */
#define TARGETS_MAX 32768

/* proc_rec.flags */
enum {
	PROC_FOLLOW = 1,     /* children become targets, too */
	PROC_STARTING = 2,   /* about to execute the command: its user code is still braid's own */
	PROC_URGENT = 4,     /* a fork wakes user space, which has probes to attach */
	PROC_REQUESTED = 8,  /* wakes user space at the end of the process, not of its children */
	PROC_UNDECIDED = 16, /* user space decides whether the name of the process matches */
	PROC_REFUSED = 32,   /* the name does not match */
};

struct proc_rec {
	__u32 flags;
	__u32 space;   /* address space: key of its mappings and of the walkers' state; 0: unknown.
			* A forked child runs in a copy of its parent's space and starts with its
			* number. */
	__u32 walkers; /* bit n: run the walker of slot n at each sample; WALKERS_CONTEXT */
	__u32 program; /* the number of the program it executes since its last fork or exec; 0: the
			* program at the time it was added */
	__u64 mm;      /* the kernel's address of its memory, once it was sampled or has executed a
			* program; 0: unknown */
};
_Static_assert(sizeof(struct proc_rec) == 24, "proc_rec");

/* --- processes that become targets without being named: cfg_scope; all conditions that are set
 * must hold --- */
enum {
	SCOPE_WIDE = 1,	  /* any process that runs; 0: no process */
	SCOPE_USER = 2,	  /* its effective user ID is cfg_scope_uid */
	SCOPE_CGROUP = 4, /* its thread is in the cgroup scope_cgroup, or below */
	SCOPE_NAME = 8,	  /* user space decides by the name of the process */
};

/* Walker slots, in the order in which they run. A slot without a loaded program costs nothing. */
#define WALKERS_MAX 16
enum {
	WALKER_PYTHON,
	WALKER_RUBY,
	WALKER_JVM,
	WALKER_PHP,
	WALKERS_PROBED, /* the slots before this one have probes, too: shadow stacks */
	WALKER_NODE = WALKERS_PROBED,
	WALKER_PERL,
	WALKER_GO,
	WALKER_SHADOW, /* the last one */
};
_Static_assert(WALKER_SHADOW < WALKERS_MAX, "the unwinder's stage follows the last walker's");
_Static_assert(WALKERS_MAX <= 31, "sets of walkers are 32-bit masks, with WALKERS_CONTEXT");

/* Key of a walker's record for copy @n of the runtime in an address space: a process may have
 * loaded two libraries of one runtime. The first copy has the number 0, so that its key is the
 * space. */
#define WALKER_COPY_KEY(space, n) ((space) | (__u32)(n) << 24)
#define WALKER_COPIES_MAX	  4

/* The slot of the unwinder follows those of the walkers. */
enum { STAGE_UNWIND = WALKERS_MAX, STAGES_N };

/* The number of successive tail calls that the kernel allows: MAX_TAIL_CALL_CNT of
 * include/linux/bpf.h (32 in Linux 5.15, 33 since 5.16). */
#define TAIL_CALLS_MAX 32
_Static_assert(STAGES_N <= TAIL_CALLS_MAX, "a sample may need every stage");

/* --- events --- */
#define EVENTS_MAX 16 /* in one session; numbered from 1 */

/* Events of which a session has at most one. Their programs find its number under these slots. */
enum event_slot {
	EVENT_SLOT_NONE,
	EVENT_OFF_CPU,
	EVENT_WALL,
	EVENT_WAKEUP,
	EVENT_BLOCK_IO,
	EVENT_SYSCALL,
	EVENT_ALLOC,
	EVENT_LOCK,
	EVENT_LOCK_HOLDER,
	EVENT_LOCK_CALL,
	EVENT_LOCK_ORDER,
	EVENT_SLOTS_N = 16
};

/* Attach cookies of triggers, for types that have cookies: the number of the event, and details of
 * this trigger for the program. */
#define COOKIE_EVENT   0xffU
#define COOKIE_ADDRESS 0x100U  /* the perf event has the address of its object */
#define COOKIE_PERIOD  0x200U  /* ... and the number of occurrences that it stands for */
#define COOKIE_BEGINS  0x400U  /* an interval begins here: there is a sample at its end */
#define COOKIE_AT_RET  0x800U  /* at a `ret`: the return address is still on the stack */
#define COOKIE_FRAME   0x1000U /* entry and return of one call are matched by its frame */
#define COOKIE_ENTERS  0x2000U /* ... and this is an entry, which has no sample */
#define COOKIE_SHARED  0x4000U /* ... and this also ends calls of other functions */
#define COOKIE_TIMED   0x8000U /* ... and the interval that ends here is the time of the call */
/* The upper bits: bpf/values.h. */

/* System call numbers below this are supported. x86-64 has about 470. A number above is an error,
 * or belongs to x32. */
#define SYSCALLS_MAX 1024

/* Slots of scratch memory on one CPU (bpf/slots.bpf.h), a power of two, and the number of slots for
 * each program type that a session uses. Ticks do not interrupt each other. A program at a
 * tracepoint does not interrupt itself. Only softirqs and interrupts run programs at other
 * tracepoints meanwhile. As many uprobe programs can wait on a CPU as there are tasks: the ones
 * beyond the limit are counted losses. */
#define SLOTS_MAX	 8
#define SLOTS_TICK	 1
#define SLOTS_TRACEPOINT 3
#define SLOTS_UPROBE	 4

/* --- records --- */
enum rec_type {
	REC_SAMPLE = 1,
	REC_STACK,	 /* registers and stack for the next sample on the same CPU */
	REC_CODE_OBJECT, /* a code object seen for the first time */
	REC_FORK,	 /* a new process, not a new thread */
	REC_EXEC,	 /* a target executes a program */
	REC_FOUND,	 /* a new process is sampled: it is a target from now on */
	REC_EXIT,	 /* a process's last thread ends; samples of its end may still follow */
	REC_UNMAPPED,	 /* a pc is outside all listed mappings: user space reads them again */
	REC_MAPPED,	 /* a mapping of a registered file that user space had not published */
	REC_VALUE,	 /* the value of a sample that was sent before */
	REC_LATER,	 /* a pc has no rule before its machine code is read (UNWIND_LATER) */
	REC_REPEAT,	 /* a sample with a stack that an earlier REC_SAMPLE had */
	REC_CONTEXT,	 /* the request context of a sample that follows */
	REC_VALUES,	 /* the values of a sample that follows */
};

struct rec_task { /* REC_FORK, REC_EXIT */
	__u32 type;
	__u32 tgid, tid;
	__u32 parent_tgid; /* REC_FORK */
	__u64 time_ns;
	__u64 start_ns; /* REC_FORK: start time of the child, CLOCK_BOOTTIME */
	__u32 program;	/* REC_FORK: as in proc_rec */
	__u32 pad;
};
_Static_assert(sizeof(struct rec_task) == 40, "rec_task");

struct rec_unmapped {
	__u32 type;
	__u32 tgid;
	__u64 time_ns;
	__u64 start;	      /* start of the mapping, if it maps a file; else 0 */
	struct image_key key; /* key of the mapped file */
	__u32 program;
	__u32 pad;
};
_Static_assert(sizeof(struct rec_unmapped) == 64, "rec_unmapped");

struct rec_later {
	__u32 type;
	__u32 tgid;
	__u64 time_ns;
	__u64 pc;
	__u32 program;
	__u32 pad;
};
_Static_assert(sizeof(struct rec_later) == 32, "rec_later");

#define COMMAND_BYTES 512
struct rec_program { /* REC_EXEC, REC_FOUND */
	__u32 type;
	__u32 tgid;
	__u64 time_ns;
	__u64 start_ns; /* start time of the process, CLOCK_BOOTTIME */
	__u64 cgroup;	/* id; 0: unknown */
	__u32 parent_tgid;
	__u32 uid; /* effective */
	__u32 program;
	__u32 image;	   /* number of the program's image; 0: unknown */
	__u32 command_len; /* bytes of its arguments, each with a NUL; at most COMMAND_BYTES */
	__u32 is_kernel;   /* a kernel thread */
	__u32 is_relieved; /* REC_EXEC: not the first thread has executed the program, and it has
			      the first thread's id now */
	__u32 pad;
	char comm[THREAD_NAME_BYTES];
	char command[COMMAND_BYTES];
};
_Static_assert(sizeof(struct rec_program) == 592, "rec_program");

struct rec_mapped {
	__u32 type;
	__u32 tgid;
	__u64 start, end, offset;
	__u64 inode; /* 0: the vDSO */
	__u32 program, image;
};
_Static_assert(sizeof(struct rec_mapped) == 48, "rec_mapped");

struct rec_value {
	__u32 type;
	__u32 pad;
	__u64 link;   /* link of the sample */
	__u64 value;  /* factor for the values of the sample; 0: the sample is dropped */
	__u64 object; /* object of the sample, if that was unknown, too; else 0 */
};
_Static_assert(sizeof(struct rec_value) == 32, "rec_value");

/* A thread's request to a block device: the first word of such a sample's kernel frames, which is
 * not an address. */
enum block_kind {
	BLOCK_READ = 1,
	BLOCK_WRITE,	  /* a thread waits for it: O_DIRECT, O_SYNC, fsync */
	BLOCK_WRITE_BACK, /* data that was written to the page cache before */
	BLOCK_FLUSH,	  /* flush of the device's own cache */
	BLOCK_DISCARD,
	BLOCK_OTHER,
	BLOCK_KINDS_N
};

/* rec_sample.flags */
enum {
	SAMPLE_COMPLETE = 1,	/* native frames reach the thread's outermost frame */
	SAMPLE_KERNEL_MODE = 2, /* interrupted in the kernel */
	SAMPLE_HAS_STACK = 4,	/* a REC_STACK precedes it */
	SAMPLE_NATIVE_TRUNCATED = 8,
	SAMPLE_RUNTIME_TRUNCATED = 16, /* any section is truncated */
	SAMPLE_RUNTIME_BROKEN = 32,    /* any section is broken, or missing */
	SAMPLE_PENDING = 64,	/* its value is unknown yet: a REC_VALUE with its link follows */
	SAMPLE_UNDER_WAY = 128, /* a wait until now; the complete wait is sampled at its end */
	SAMPLE_UNDECIDED = 256, /* its process may turn out not to match: PROC_UNDECIDED */
	SAMPLE_REMAPPED = 512,	/* the published mappings were outdated, and not used */
	SAMPLE_REST = 1024,	/* rest after the event's last sample; made by user space */
};

/* State of a thread when it is sampled; if the value of the sample is a time, the state during that
 * time. */
enum thread_state {
	STATE_UNKNOWN,
	STATE_RUNS,
	STATE_PREEMPTED, /* could run, but another task has the CPU */
	STATE_BLOCKED,	 /* waits in the kernel for an event */
	STATE_STOPPED,	 /* by a signal or a tracer */
	STATE_PARKED,	 /* no thread: a runtime's task that waits outside of any thread */
	THREAD_STATES_N
};

/* State of a thread regarding the lock of its interpreter (CPython's GIL, CRuby's GVL). For
 * HotSpot's monitors only LOCK_WAITED is reported, with the monitor in rec_sample.object. */
enum lock_state {
	LOCK_UNKNOWN, /* there is no lock, or its state is unknown */
	LOCK_HELD,
	LOCK_FREE, /* runs, or waits for another event, without the lock */
	LOCK_WAITED,
	LOCK_STATES_N
};

/* The thread of samples with STATE_PARKED, an id that no thread has (PID_MAX_LIMIT,
 * include/linux/threads.h). */
#define PARKED_TID (1U << 30)

#define NO_SYSCALL    (-1)
#define SYSCALL_FUTEX 202 /* arch/x86/entry/syscalls/syscall_64.tbl */

struct rec_condition {
	__u8 state;    /* enum thread_state */
	__u8 lock;     /* enum lock_state */
	__s16 syscall; /* number of the current system call; NO_SYSCALL */
};
_Static_assert(sizeof(struct rec_condition) == 4, "rec_condition");

/* rec_section.flags */
enum {
	SECTION_TRUNCATED = 1, /* outer frames did not fit */
	SECTION_BROKEN = 2,    /* outer frames could not be read */
	SECTION_PROBED = 4,    /* from a shadow stack */
	SECTION_INFERRED = 8,  /* some of its frames are inferred: the stack is not complete */
	SECTION_WHOLE = 16,    /* the native frames reach the end of the stack that runs them */
};

/* The frames of one runtime in one sample. */
struct rec_section {
	__u16 n;     /* pairs */
	__u8 walker; /* slot of the runtime's walker, also if the frames are from probes */
	__u8 flags;
};

/* A thread with frames of more runtimes loses the rest, which is counted. */
#define SECTIONS_MAX 4

/* The number of announced code objects that each runtime's map holds. Each takes about 100 to 140
 * bytes, used or not. The least recently used one is evicted, and is announced again at its next
 * use. */
#define CODE_OBJECTS_CACHED 32768

/* --- stored stacks (bpf/emit.bpf.c): they cross the ring once --- */
#define SENT_WAYS	4    /* entries of a set: the places for a stack with that hash */
#define SENT_SETS	1024 /* a power of two */
#define SENT_STACKS_MAX (SENT_SETS * SENT_WAYS)

/* Larger stacks use only the first entry of their set. This limits the memory for them in user
 * space to 80 MiB, if all are that deep; about 6 MiB are usual. */
#define SENT_WORDS_SMALL 512

/* The words that follow: n_kernel addresses, n_native pairs (ip, cfa), then the pairs of each
 * section (FRAME_KEY(code, index), stack address). Each group has its innermost frame first. Only
 * the stack addresses show which runtime called which. */
struct rec_sample {
	__u32 type;
	__u32 slot;    /* number of the place of the stack in user space, below SENT_STACKS_MAX */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 value;   /* value of this occurrence, in the unit of the event */
	__u64 weight;  /* number of occurrences that it stands for, including itself */
	__u64 total;   /* sum of the values of these occurrences */
	__u64 object;  /* the address of a futex or a lock, ...; 0: none */
	__u64 link;    /* samples with one link belong together (waker and woken thread); 0: none */
	__u32 peer;    /* id of the other thread of the event; 0: none */
	struct rec_condition condition;
	__u32 tid;
	__u16 event; /* number of the event in the session, from 1 */
	__u16 cpu;
	__u32 context;	  /* rec_context.number and rec_values.number; 0: none */
	__u32 generation; /* generation of the stack in `slot`; 0: the stack is not stored */
	__u64 task; /* number of the runtime's task (a coroutine) that the thread runs; 0: none */
	/* The content, from here to the last word: it is the same in all samples with this
	 * stack. */
	__u32 tgid;
	__u32 flags;
	__u16 n_kernel, n_native;
	__u16 n_sections;
	__u16 stop; /* enum counter: reason why native unwinding stopped; 0: at the end */
	struct rec_section sections[SECTIONS_MAX];
	char comm[THREAD_NAME_BYTES];
};
_Static_assert(sizeof(struct rec_sample) == 136, "rec_sample");

struct rec_repeat { /* fields as in rec_sample */
	__u32 type;
	__u32 slot;
	__u64 time_ns;
	__u64 value;
	__u64 weight;
	__u64 total;
	__u32 generation;
	__u32 tid;
	__u16 event;
	__u16 cpu;
	struct rec_condition condition;
};
_Static_assert(sizeof(struct rec_repeat) == 56, "rec_repeat");

struct rec_repeat_about { /* a REC_REPEAT with these further fields, of which one is not 0 */
	struct rec_repeat repeat;
	__u64 object;
	__u64 link;
	__u64 task;
	__u32 peer;
	__u32 context;
};
_Static_assert(sizeof(struct rec_repeat_about) == 88, "rec_repeat_about");

/* A power of two above 127 + 2*1024 + 2*RUNTIME_PAIRS_MAX: the longest stack with one runtime in
 * it. If there are several runtimes, their frames share the room. */
#define SAMPLE_WORDS_MAX 8192

/* A bit in the ip of a native frame that is not a return address. Such an ip is that of the
 * innermost frame, of a signal trampoline, or of the frame that the signal interrupted. */
#define NATIVE_EXACT (1ULL << 63)

/* The evidence for a native frame, in the two bits below NATIVE_EXACT of its ip. It is the evidence
 * of the step from the frame's callee to the frame. */
enum native_evidence {
	EVIDENCE_RULE,		/* call frame information, proven machine code, a runtime's rule;
				 * or the frame is the innermost one */
	EVIDENCE_FRAME_POINTER, /* a frame pointer that was verified */
	EVIDENCE_COPY,		/* call frame information, read by libunwind from a stack copy */
	EVIDENCE_INFERRED,	/* not proven: the stack is not complete */
	EVIDENCES_N
};
#define NATIVE_EVIDENCE_SHIFT 61
#define NATIVE_EVIDENCE(ip)   ((__u32)((ip) >> NATIVE_EVIDENCE_SHIFT) & 3)
#define NATIVE_ADDRESS(ip)    ((ip) & ((1ULL << NATIVE_EVIDENCE_SHIFT) - 1))

#define STACK_COPY_BYTES (64 * 1024)
struct rec_stack {
	__u32 type;
	__u32 tgid, tid;
	__u32 size; /* bytes used of data */
	__u64 time_ns;
	__u64 start; /* address of data[0], a little below the stack pointer */
	__u64 regs[UNWIND_REGS];
	__u8 data[STACK_COPY_BYTES];
};
#define REC_STACK_HEADER (32 + 8 * UNWIND_REGS)
_Static_assert(sizeof(struct rec_stack) == REC_STACK_HEADER + STACK_COPY_BYTES, "rec_stack");

/* --- code objects: the names of interpreted functions, sent once per content --- */
#define CODE_OBJECT_TEXT_BYTES	512
#define CODE_OBJECT_TABLE_BYTES 4096

/* A kind of text besides 1, 2 and 4 bytes per character: UTF-8, with its length in bytes. */
#define CODE_OBJECT_TEXT_UTF8 8

#define FRAME_KEY(code, index) ((__u64)(code) << 32 | (__u32)(index))
#define FRAME_KEY_CODE(key)    ((__u32)((key) >> 32))
#define FRAME_KEY_INDEX(key)   ((__u32)(key))

/* Key of a pair that is not a frame. Its address applies to the frames before it (inside it) that
 * have no address. Its number is never announced. */
#define FRAME_ANCHOR (~0ULL)

/* Further keys of pairs that are not frames. The frames before this mark, back to the previous such
 * mark, ran in one native frame. The frames after the mark ran in other native frames: */
#define FRAME_LOOP_END	   (~0ULL - 1)
/* The frames after this mark wait on another stack than the sampled one: */
#define FRAME_APART	   (~0ULL - 2)
#define FRAME_IS_MARK(key) ((key) >= FRAME_APART)

/* Each frame with a mark, the frame that stands for a garbage collector, and FRAME_APART */
#define RUNTIME_PAIRS_MAX (2 * RUNTIME_FRAMES_MAX + 2)

struct rec_code_object {
	__u32 type;
	__u32 code; /* dense from 1, never reused */
	__u32 tgid;
	__u32 walker;
	__u64 address;	     /* address of the code object */
	__u64 table_address; /* address of the line table's bytes */
	__u32 first_line;
	__u32 table_size; /* bytes in the target; `table` has at most CODE_OBJECT_TABLE_BYTES */
	__u16 name_len, file_len;  /* in characters, in the target */
	__u8 name_kind, file_kind; /* bytes per character: 1, 2, 4; 0: unreadable */
	__u8 table_format;	   /* the runtime's */
	__u8 pad;
	char name[CODE_OBJECT_TEXT_BYTES];
	char file[CODE_OBJECT_TEXT_BYTES];
	__u8 table[CODE_OBJECT_TABLE_BYTES];
};
#define REC_CODE_OBJECT_HEADER 48
_Static_assert(sizeof(struct rec_code_object) == REC_CODE_OBJECT_HEADER +
							 2 * CODE_OBJECT_TEXT_BYTES +
							 CODE_OBJECT_TABLE_BYTES,
	       "rec_code_object");

/* --- unwind modes: cfg_unwind --- */
enum unwind_mode {
	UNWIND_MODE_AUTO,  /* tables, frame pointers without one, a stack copy if both fail */
	UNWIND_MODE_FP,	   /* frame pointers only */
	UNWIND_MODE_COPY,  /* tables, and a stack copy with every sample */
	UNWIND_MODE_TWICE, /* as auto, and compared with the result without stored frames */
	UNWIND_MODES_N
};

/* UNWIND_MODE_AUTO sends at most AUTO_COPIES_MAX stack copies per CPU and COPIES_WINDOW_NS. While
 * the mappings of a new program are being read, the limit is START_COPIES_MAX. Copies come in
 * bursts: a library that was just loaded has no tables yet. */
#define COPIES_WINDOW_NS 5000000000ULL
#define AUTO_COPIES_MAX	 1000
#define START_COPIES_MAX 5000

#endif
