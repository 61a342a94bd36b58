/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_SHARED_H
#define BRAID_SHARED_H

/* Everything that crosses between the kernel half and the user half: records, map values, limits
 * and counters. Fixed-width kernel types only; every size is asserted. */

#include <linux/types.h>

#include "bpf/counters.h"
#include "bpf/unwind_rule.h"

#define KERNEL_FRAMES_MAX  127 /* sysctl kernel.perf_event_max_stack's default */
#define NATIVE_FRAMES_MAX  1024
#define RUNTIME_FRAMES_MAX 1024
#define THREAD_NAME_BYTES  16 /* TASK_COMM_LEN */

/* --- the table arena of unwind tables: chunks that are created as they are needed --- */
#define CHUNK_WORDS_BITS 17
#define CHUNK_WORDS	 (1 << CHUNK_WORDS_BITS) /* 512 KiB */
#define CHUNKS_MAX	 1024			 /* 512 MiB of tables */

struct chunk {
	__u32 words[CHUNK_WORDS];
};

/* --- the executable mappings of one process, sorted by start --- */
#define MAPPINGS_MAX	  1024
#define MAPPINGS_MAX_LOG2 10

/* A mapping's n_pages: its image has a table, for which there was no room. */
#define PAGES_UNPLACED 0xffffffffU

/* Of code that a compiler made at run time without frame pointers: the code that calls it. */
struct code_callers {
	__u64 start; /* 0: unknown */
	__u32 bytes;
	__u32 walkers; /* bit n: of the runtime with walker slot n; see CALLERS_KEEPS */
};

/* The upper bits of `walkers`: how the code itself keeps frame pointers (KEEPS_POINTERS). */
#define CALLERS_KEEPS_SHIFT    24
#define CALLERS_KEEPS(callers) ((callers)->walkers >> CALLERS_KEEPS_SHIFT)

struct mapping_rec {
	__u64 start, end;
	__u64 bias;    /* pc - bias = link-time address */
	__u32 n_pages; /* 0: no table (JIT code, or an image without any); PAGES_UNPLACED */
	union {
		__u32 base; /* of the table in the table arena; a multiple of UNWIND_RULE_WORDS */
		__u32 is_image; /* without a table: the code is an image's */
	};
	union {
		struct {
			__u64 vaddr_start;	 /* of the table's page 0 */
			__u32 rules_at, rows_at; /* from base */
		};
		struct code_callers callers; /* without a table */
	};
};
_Static_assert(sizeof(struct mapping_rec) == 48, "mapping_rec");

struct mapping_list {
	__u32 n;
	__u32 n_left_out; /* further mappings of the process, which found no room */
	__u32 pad;
	__u32 changes; /* odd while the list is being written. A reader discards all that it has
			* read of the list if this value has changed meanwhile. */
	struct code_callers made; /* of code in anonymous memory that is not in the list yet */
	struct mapping_rec mappings[MAPPINGS_MAX];
};

/* User space writes the list that is not active, then makes it the active one.
 *
 * The kernel half counts in `ended` how often addresses of an entry were given to another mapping
 * (bpf/mapping_ends.bpf.c). User space reads that count before it reads the process's mappings, and
 * stores it in `ended_read` when the list is published. As long as the two differ, no entry of the
 * list is used: the kernel's own list of mappings says which file holds an address. */
struct mappings_rec {
	__u32 active; /* 0 or 1 */
	__u32 ended;
	__u32 ended_read;
	__u32 pad;
	struct mapping_list lists[2];
};

/* --- files whose images and tables are known, whatever process maps them --- */
#define IMAGE_FILES_MAX 16384

struct image_key { /* one version of one file, as inodes and stat(2) tell. The vDSO: only its size
		    */
	__u64 ino, size, ctime_ns;
	__u32 dev; /* major << 20 | minor, as the kernel has it */
	__u32 pad;
};
_Static_assert(sizeof(struct image_key) == 32, "image_key");

struct image_rec {
	__u64 vaddr_less_offset; /* link-time address less offset in the file, of all its code */
	__u64 vaddr_start;	 /* the rest as in mapping_rec */
	__u32 n_pages, base, rules_at, rows_at;
	__u32 number; /* user space's */
	__u32 pad;
};
_Static_assert(sizeof(struct image_rec) == 40, "image_rec");

/* --- a process that is being profiled; key: tgid --- */
#define TARGETS_MAX 32768

/* proc_rec.flags */
enum {
	PROC_FOLLOW = 1,   /* children become targets, too */
	PROC_STARTING = 2, /* about to execute the command: its user code is braid's own still */
	PROC_URGENT = 4,   /* user space has work to do at a fork: wake it */
	PROC_WANTED = 8,   /* ... and at the end of this one, but not of its children */
	PROC_ASKED = 16,   /* user space is asked whether its name is one that is wanted */
	PROC_REFUSED = 32, /* it is not */
};

struct proc_rec {
	__u32 flags;
	__u32 space;   /* address space: key of its mappings and of walkers' state; 0: unknown.
			* A forked child runs in a copy of its parent's and starts with its number. */
	__u32 walkers; /* bit n: run the walker of slot n at each sample */
	__u32 program; /* a number for what it has executed since its last fork or exec; 0: what it
			* executed when it was added */
	__u64 mm;      /* the kernel's address of its memory, once it was sampled or has executed
			* something; 0: not known */
};
_Static_assert(sizeof(struct proc_rec) == 24, "proc_rec");

/* --- which processes become targets without being named: cfg_scope; all that is set must hold ---
 */
enum {
	SCOPE_WIDE = 1,	  /* any that runs; 0: none does */
	SCOPE_USER = 2,	  /* its effective user ID is cfg_scope_uid */
	SCOPE_CGROUP = 4, /* its thread is in the cgroup scope_cgroup, or below */
	SCOPE_NAME = 8,	  /* user space decides by what it is called */
};

/* Walker slots, in the order in which they run. A slot without a loaded program costs nothing. */
#define WALKERS_MAX 16
enum {
	WALKER_PYTHON,
	WALKER_RUBY,
	WALKER_JVM,
	WALKER_PHP,
	WALKERS_PROBED, /* those until here have probes, too: shadow stacks */
	WALKER_NODE = WALKERS_PROBED,
	WALKER_PERL,
	WALKER_GO,
	WALKER_SHADOW, /* the last one */
};
_Static_assert(WALKER_SHADOW < WALKERS_MAX, "the unwinder's stage follows the last walker's");
_Static_assert(WALKERS_MAX <= 32, "sets of walkers are 32-bit masks");

/* Key of a walker's record for the runtime's copy @n in an address space: a process may have loaded
 * two libraries of one runtime. The first copy has the number 0, so that its key is the space. */
#define WALKER_COPY_KEY(space, n) ((space) | (__u32)(n) << 24)
#define WALKER_COPIES_MAX	  4

/* The unwinder's, behind the walkers'. */
enum { STAGE_UNWIND = WALKERS_MAX, STAGES_N };

/* Tail calls that the kernel allows in a row: MAX_TAIL_CALL_CNT of include/linux/bpf.h (32 in Linux
 * 5.15, 33 since 5.16). */
#define TAIL_CALLS_MAX 32
_Static_assert(STAGES_N <= TAIL_CALLS_MAX, "a sample may need every stage");

/* --- events --- */
#define EVENTS_MAX 16 /* in one session; numbered from 1 */

/* Events of which a session has one at most: their programs find its number under these. */
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

/* Attach cookies of triggers, where their type has any: the event's number, and what the program is
 * to know of this very trigger. */
#define COOKIE_EVENT   0xffU
#define COOKIE_ADDRESS 0x100U  /* the perf event has the address that it is about */
#define COOKIE_PERIOD  0x200U  /* ... and how many occurrences this one stands for */
#define COOKIE_BEGINS  0x400U  /* an interval begins here: there is a sample at its end */
#define COOKIE_AT_RET  0x800U  /* at a `ret`: the return address is still on the stack */
#define COOKIE_FRAME   0x1000U /* entry and return of one call find each other by its frame */
#define COOKIE_ENTERS  0x2000U /* ... and this is an entry of which there is no sample */
#define COOKIE_SHARED  0x4000U /* ... and this a return of other functions' calls, too */
#define COOKIE_TIMED   0x8000U /* ... and the interval that ends here is the time of the call */

/* System calls are known by number to below this; of x86-64 there are some 470, and what is above
 * is an error or x32's. */
#define SYSCALLS_MAX 1024

/* Slots of scratch memory on one CPU (bpf/slots.bpf.h), a power of two; and how many of them each
 * program type gets that a session uses. Ticks do not interrupt each other. A tracepoint's program
 * does not interrupt itself, and those of others do so from softirqs and interrupts only. Of uprobe
 * programs as many can wait on a CPU as there are tasks: more than so many are counted losses. */
#define SLOTS_MAX	 8
#define SLOTS_TICK	 1
#define SLOTS_TRACEPOINT 3
#define SLOTS_UPROBE	 4

/* --- records --- */
enum rec_type {
	REC_SAMPLE = 1,
	REC_STACK,    /* registers and stack for the sample that follows on the same CPU */
	REC_CODE,     /* a code object seen for the first time */
	REC_FORK,     /* of a process, not of a thread */
	REC_EXEC,     /* a target executes a program */
	REC_FOUND,    /* a process that is not known yet is sampled: it is a target from now on */
	REC_EXIT,     /* of a process's last thread; samples of its end may still follow */
	REC_UNMAPPED, /* a pc lies in no known mapping: read the mappings again */
	REC_MAPPED,   /* a mapping of a known file, which user space had not published */
	REC_VALUE,    /* what a sample that was sent before is worth */
	REC_LATER,    /* a pc has no rule, as its machine code is not read yet (UNWIND_LATER) */
	REC_KNOWN,    /* a sample with a stack that a REC_SAMPLE has brought before */
};

struct rec_task { /* REC_FORK, REC_EXIT */
	__u32 type;
	__u32 tgid, tid;
	__u32 parent_tgid; /* REC_FORK */
	__u64 time_ns;
	__u64 start_ns; /* REC_FORK: of the child, CLOCK_BOOTTIME */
	__u32 program;	/* REC_FORK, as in proc_rec */
	__u32 pad;
};
_Static_assert(sizeof(struct rec_task) == 40, "rec_task");

struct rec_unmapped {
	__u32 type;
	__u32 tgid;
	__u64 time_ns;
	__u64 start;	      /* of the mapping, if it is of a file; else 0 */
	struct image_key key; /* of that */
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
	__u64 start_ns; /* of the process, CLOCK_BOOTTIME */
	__u64 cgroup;	/* id; 0: not known */
	__u32 parent_tgid;
	__u32 uid; /* effective */
	__u32 program;
	__u32 image;	   /* of the program; 0: not known */
	__u32 command_len; /* its arguments, each with a NUL; at most COMMAND_BYTES of them */
	__u32 is_kernel;   /* a thread of the kernel's */
	__u32 is_relieved; /* REC_EXEC: by another thread than the first, whose number it has now */
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
	__u64 link;   /* the sample's */
	__u64 value;  /* by which the sample's are multiplied; 0: the sample is not wanted */
	__u64 object; /* what it is about, if that was not known either; 0: it was */
};
_Static_assert(sizeof(struct rec_value) == 32, "rec_value");

/* What a thread wants of a block device: the first word of such a sample's kernel frames, which is
 * no address. */
enum block_kind {
	BLOCK_READ = 1,
	BLOCK_WRITE,	  /* somebody waits for it: O_DIRECT, O_SYNC, fsync */
	BLOCK_WRITE_BACK, /* of what was written to the page cache before */
	BLOCK_FLUSH,	  /* of the device's own cache */
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
	SAMPLE_RUNTIME_TRUNCATED = 16, /* of any section */
	SAMPLE_RUNTIME_BROKEN = 32,    /* the same, or a runtime's frames are missing at all */
	SAMPLE_PENDING = 64,	/* its value is not known yet: a REC_VALUE with its link follows */
	SAMPLE_UNDER_WAY = 128, /* of a wait up to now, which is sampled in full when it ends */
	SAMPLE_ASKED = 256,	/* of a process that may turn out not to be wanted: PROC_ASKED */
	SAMPLE_REMAPPED = 512,	/* the published mappings were known to be over: none was used */
	SAMPLE_REST = 1024,	/* what follows the event's last sample; made by user space */
};

/* What a thread does when it is sampled; where the sample's value is a time, during that. */
enum thread_state {
	STATE_UNKNOWN,
	STATE_RUNS,
	STATE_PREEMPTED, /* could run, but another task has the CPU */
	STATE_BLOCKED,	 /* waits in the kernel for something to happen */
	STATE_STOPPED,	 /* by a signal or a tracer */
	THREAD_STATES_N
};

/* How it stands to the lock of its interpreter (CPython's GIL, CRuby's GVL). Of HotSpot's monitors
 * only LOCK_WAITED is told, with the monitor in rec_sample.object. */
enum lock_state {
	LOCK_UNKNOWN, /* there is none, or nothing is known of it */
	LOCK_HELD,
	LOCK_FREE, /* runs, or waits for something else, without it */
	LOCK_WAITED,
	LOCK_STATES_N
};

#define NO_SYSCALL    (-1)
#define CS_COMPAT     0x23 /* __USER32_CS: another numbering */
#define SYSCALL_FUTEX 202  /* arch/x86/entry/syscalls/syscall_64.tbl */

struct rec_condition {
	__u8 state;    /* enum thread_state */
	__u8 lock;     /* enum lock_state */
	__s16 syscall; /* the system call that it is in; NO_SYSCALL */
};
_Static_assert(sizeof(struct rec_condition) == 4, "rec_condition");

/* rec_section.flags */
enum {
	SECTION_TRUNCATED = 1, /* frames at the outer end found no room */
	SECTION_BROKEN = 2,    /* those at the outer end could not be read */
	SECTION_PROBED = 4,    /* of a shadow stack */
	SECTION_INFERRED = 8,  /* some of its frames are inferred: the stack is not complete */
};

/* The frames of one runtime in one sample. */
struct rec_section {
	__u16 n;     /* pairs */
	__u8 walker; /* slot of the runtime's walker, if probes told of the frames, too */
	__u8 flags;
};

/* A thread in more runtimes at once than that loses the rest, which is counted. */
#define SECTIONS_MAX 4

/* Of each runtime: so much code that was announced is remembered, some 100 to 140 bytes each
 * whether it is used or not. What was not met for longest gives way, and is announced again. */
#define CODES_KEPT 32768

/* --- stacks that are known (bpf/emit.bpf.c): they cross the ring once --- */
#define KNOWN_WAYS 4	/* entries of a set: where a stack of that hash may be */
#define KNOWN_SETS 1024 /* a power of two */
#define KNOWN_MAX  (KNOWN_SETS * KNOWN_WAYS)

/* Stacks of more words have but the first entry of their set, so that the memory which keeps them
 * in user space is bounded: by 80 MiB, where all are that deep; some 6 MiB are usual. */
#define KNOWN_WORDS_SMALL 512

/* The words that follow: n_kernel addresses, n_native pairs (ip, cfa), then of each section its
 * pairs (FRAME_KEY(code, index), stack address), each innermost first. Which runtime called which
 * only the stack addresses tell. */
struct rec_sample {
	__u32 type;
	__u32 slot;    /* KNOWN_MAX of them: where it is kept ... */
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 value;   /* its own, in the event's unit */
	__u64 weight;  /* occurrences that it stands for, with itself */
	__u64 total;   /* the sum of their values */
	__u64 object;  /* what it is about: the address of a futex or a lock, ...; 0: nothing */
	__u64 link;    /* samples with the same one belong together (who wakes, who is woken); 0 */
	__u32 peer;    /* the other thread that it is about; 0: none */
	struct rec_condition condition;
	__u32 tid;
	__u32 event; /* the session's number of it, from 1 */
	__u32 cpu;
	__u32 generation; /* ... as which of those that were kept there; 0: it is not kept */
	__u64 task; /* number of the runtime's task that the thread is at (a coroutine); 0: none */
	/* From here on, with the words: what is the same in other samples with this stack. */
	__u32 tgid;
	__u32 flags;
	__u16 n_kernel, n_native;
	__u16 n_sections;
	__u16 stop; /* enum counter: why native unwinding stopped, 0: at the end */
	struct rec_section sections[SECTIONS_MAX];
	char comm[THREAD_NAME_BYTES];
};
_Static_assert(sizeof(struct rec_sample) == 136, "rec_sample");

struct rec_known { /* fields as in rec_sample */
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
_Static_assert(sizeof(struct rec_known) == 56, "rec_known");

struct rec_known_about { /* the same, if it is about something: not all of these are 0 */
	struct rec_known known;
	__u64 object;
	__u64 link;
	__u64 task;
	__u32 peer;
	__u32 pad;
};
_Static_assert(sizeof(struct rec_known_about) == 88, "rec_known_about");

/* A power of two above 127 + 2*1024 + 2*RUNTIME_PAIRS_MAX: the longest stack with one runtime in
 * it. With several their frames share the room. */
#define SAMPLE_WORDS_MAX 8192

/* Set in a native frame's ip that is no return address: the innermost frame's, a signal
 * trampoline's, and that of the frame which the signal interrupted. */
#define NATIVE_EXACT (1ULL << 63)

/* How a native frame was found, in the two bits below NATIVE_EXACT of its ip: the evidence of the
 * step that led to the frame from the frame that it called. */
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

/* --- code objects: what an interpreted function is called, sent once per content --- */
#define CODE_TEXT_BYTES	 512
#define CODE_TABLE_BYTES 4096

/* A kind of text besides 1, 2 and 4 bytes per character: UTF-8, its length in bytes. */
#define CODE_TEXT_UTF8 8

#define FRAME_KEY(code, index) ((__u64)(code) << 32 | (__u32)(index))
#define FRAME_KEY_CODE(key)    ((__u32)((key) >> 32))
#define FRAME_KEY_INDEX(key)   ((__u32)(key))

/* Key of a pair that is no frame: it gives its address to the frames before it (inside it) that
 * have none. Its number is never announced. */
#define FRAME_ANCHOR (~0ULL)

/* Further keys of pairs that are no frames. The frames before it, up to the last such mark, ran in
 * one native frame, and those after it in others: */
#define FRAME_LOOP_END	   (~0ULL - 1)
/* The frames after it wait on another stack than the one that was sampled: */
#define FRAME_APART	   (~0ULL - 2)
#define FRAME_IS_MARK(key) ((key) >= FRAME_APART)

/* Each frame with a mark, the one that stands for a garbage collector, and FRAME_APART */
#define RUNTIME_PAIRS_MAX (2 * RUNTIME_FRAMES_MAX + 2)

struct rec_code {
	__u32 type;
	__u32 code; /* dense from 1, never reused */
	__u32 tgid;
	__u32 walker;
	__u64 address;	     /* of the code object */
	__u64 table_address; /* of the line table's bytes */
	__u32 first_line;
	__u32 table_size;	   /* as in the target; here are at most CODE_TABLE_BYTES */
	__u16 name_len, file_len;  /* in characters, as in the target */
	__u8 name_kind, file_kind; /* bytes per character: 1, 2, 4; 0: unreadable */
	__u8 table_format;	   /* the runtime's */
	__u8 pad;
	char name[CODE_TEXT_BYTES];
	char file[CODE_TEXT_BYTES];
	__u8 table[CODE_TABLE_BYTES];
};
#define REC_CODE_HEADER 48
_Static_assert(sizeof(struct rec_code) == REC_CODE_HEADER + 2 * CODE_TEXT_BYTES + CODE_TABLE_BYTES,
	       "rec_code");

/* --- how to unwind: cfg_unwind --- */
enum unwind_mode {
	UNWIND_MODE_AUTO,  /* tables, frame pointers without one, a stack copy where both fail */
	UNWIND_MODE_FP,	   /* frame pointers only */
	UNWIND_MODE_COPY,  /* tables, and a stack copy with every sample */
	UNWIND_MODE_TWICE, /* as auto, and compared with what is found without kept frames */
	UNWIND_MODES_N
};

/* UNWIND_MODE_AUTO sends at most so many stack copies per CPU and COPIES_WINDOW_NS; more while a
 * new program's mappings are being read, which passes. They come in bursts: a library that was just
 * loaded has no tables yet. */
#define COPIES_WINDOW_NS 5000000000ULL
#define AUTO_COPIES_MAX	 1000
#define START_COPIES_MAX 5000

#endif
