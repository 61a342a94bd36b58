/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIME_H
#define BRAID_RUNTIME_H

/* The contract between the profiler and its runtimes. A runtime is one stem everywhere
 * (runtimes/NAME/, bpf/NAME.bpf.c, probes/NAME.c, fixtures/NAME/) and one `const struct runtime`
 * in runtimes/registry.c. No other part of the tree names a language.
 *
 * Each kind of work is a capability, a struct of its own that the runtime points to:
 *   files    its ELF files: recognizes them, and reads tables in them
 *   walker   reads its frames from a process, in the kernel half
 *   names    names these frames
 *   jit      names and places code that it compiles
 *   probes   feed shadow stacks
 *   inspect  locks and tasks of a stopped process, for `braid dump`
 *   parked   samples of tasks that are on no thread, for -e wall
 *   allocator  its functions that allocate and free, for -e alloc:NAME
 * A runtime without a kind of work has NULL there. tests/unit/t_registry.c checks which members a
 * capability must have, and which capabilities need each other.
 *
 * Three lifetimes:
 *   image     one ELF file. `files` reads only the file, so its result serves every process
 *             that maps it.
 *   instance  one address space, usually one process: `attach` adds the addresses of this process
 *             to the findings of `prepare`, and makes a record for the walker of both.
 *   session   one run of braid, from `open` to `close`; owns all names.
 *
 * A runtime that is not enabled costs no time: its BPF programs are not loaded, and none of its
 * hooks is called, except `unwind_rows` and `pointer_code` with `detect`. Each of its maps has one
 * element (kernel_subset__shrink()). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/u64map.h"
#include "core/elf/cfi.h"
#include "core/elf/elf_file.h"
#include "core/elf/function_names.h"
#include "runtimes/function_rules.h"
#include "runtimes/idle.h"

#define RUNTIME_VERSION_BYTES 32
#define RUNTIME_REASON_BYTES  200
#define RUNTIME_SYMBOLS_MAX   64
#define RUNTIME_RECORD_MAX    1024

enum runtime_support {
	RUNTIME_SUPPORTED,
	RUNTIME_DEGRADED, /* usable; the reason names the missing part */
	RUNTIME_REFUSED,  /* unusable; the reason includes a remedy */
};

/* The finding of `prepare` about one image. A version without a row is never treated as the nearest
 * one unless its layout was checked (runtimes/common/untried.h). */
struct runtime_verdict {
	enum runtime_support support;
	char version[RUNTIME_VERSION_BYTES]; /* "3.11.2" */
	char reason[RUNTIME_REASON_BYTES];   /* one sentence; "" when supported */
	bool map_only;	 /* the walker does not support this version, but a map may name its code */
	const char *map; /* option that makes the runtime write a map; NULL: none */
	/* Use of frame pointers in machine code from its compiler: KEEPS_POINTERS and others of
	 * bpf/unwind_rule.h; 0: unknown. This holds for anonymous memory of which the compiler has
	 * reserved at least @generated_bytes, as nothing else in such a process does. */
	unsigned int generated_keeps;
	uint64_t generated_bytes;
};

/* The source of frames that a session requests (docs/internals/architecture.md). */
enum runtime_source {
	RUNTIME_SOURCE_AUTO, /* the first that works */
	RUNTIME_SOURCE_WALK,
	RUNTIME_SOURCE_PROBES, /* the shadow stack, to be sampled */
	RUNTIME_SOURCE_CALLS,  /* the shadow stack, to count calls, which may cost more */
	RUNTIME_SOURCE_MAP,    /* native frames with names from perf maps and jitdumps */
};

/* The probes that feed the shadow stack of a process. */
struct runtime_probing {
	const char *source;		 /* "usdt", "uprobe" */
	char note[RUNTIME_REASON_BYTES]; /* one sentence for the user; "": none */
	uint32_t traps; /* bit n: a hit of some probe costs as much as enum trap_kind n */
};

struct runtime_image;	/* a runtime's own knowledge of one ELF file */
struct runtime_session; /* a runtime's own state of one run */

/* Link-time addresses. */
struct runtime_range {
	uint64_t start, end;
};

/* --- one sample, as the hook `anchors` sees it; all stacks innermost first --- */

struct runtime_pair { /* a runtime frame, or a mark, as in bpf/shared.h */
	uint64_t key;
	uint64_t address; /* on the stack; 0: unknown */
};

/* Address of a frame that waits on another stack than the sampled one. */
#define RUNTIME_APART (UINT64_MAX - 1)

struct runtime_native {	   /* a native frame */
	uint64_t cfa;	   /* 0: unknown */
	uint64_t function; /* start of its function; 0: unknown, or not requested */
	bool loop;	   /* code of one of this runtime's `loops` */
	bool compiled;	   /* code that no file backs */
};

struct runtime_natives {
	const struct runtime_native *list;
	size_t n;
	/* The innermost file of this runtime that has a frame in the stack; NULL: no file of the
	 * runtime has a frame. */
	const struct runtime_image *image;
	uint64_t bias; /* that file's: address in the process = link-time address + bias */
};

struct runtime_sample {
	/* The native frames reach the thread's outermost one, or the outermost one of the runtime's
	 * own stack that runs the section's frames (SECTION_WHOLE). */
	bool native_complete;
	bool cut;    /* the runtime's frames are truncated, or unreadable further out */
	bool probed; /* the frames come from probes, not from the walker */
	/* Returns the native frames; `functions`: with the starts of their functions, which
	 * costs more. The result is borrowed until the hook returns. */
	struct runtime_natives (*natives)(const struct runtime_sample *sample, bool functions);
};

/* One instance. */
struct runtime_target {
	uint32_t pid;			   /* as braid sees it; for process_vm_readv and /proc */
	uint32_t space;			   /* key of all kernel-half state of this address space */
	uint64_t bias;			   /* address in the process = link-time address + bias */
	const struct runtime_image *image; /* NULL if `prepare` refused; then only for `probe` */
	const struct elf_file *file;	   /* the file in which the runtime was detected */
	bool map;   /* frames are to come from a map: nothing reads the record of `attach` */
	bool force; /* probes may replace return addresses if there is no other way */
};

/* The meaning of a frame key. Strings are borrowed until the session's next call. */
struct runtime_symbol {
	const char *function; /* never NULL */
	const char *file;     /* NULL: unknown */
	uint32_t line;	      /* 0: unknown */
};

/* The name of a piece of code in a perf map or a jitdump file, in readable form. */
struct runtime_label {
	struct runtime_symbol symbol; /* strings are in the symbol or in the hook's `buf` */
	/* The code only calls the interpreter loop, whose frames a walker finds. It is shown only
	 * where the walker has no frame. */
	bool loop;
};

/* A function that allocates. */
struct runtime_allocates {
	const char *name;
	uint8_t size, times; /* numbers of the arguments, from 0, whose product is the bytes */
	bool nests;	     /* it may call another function of the table to do its work */
	bool prefix;	     /* the symbol continues with names of types that differ by release */
	uint8_t frees; /* for --outstanding: number of the argument that it frees, + 1; 0: none */
	bool writes;   /* it stores the address where its first argument points to, and returns 0 */
	/* It may end by a jump to a function of another library that returns its own first
	 * argument, as memset does. That argument is the address. */
	bool passes;
	bool wraps; /* it only calls another function of the table, also by such a jump */
	/* Its first argument is an alignment; it aligns to pages. glibc forwards alignments that
	 * malloc guarantees to malloc by a jump (_mid_memalign in malloc/malloc.c), and no others.
	 */
	bool aligns, pages;
};
#define RUNTIME_ONCE 7 /* as `times`: there is no such argument */

/* A function that frees, by the number of the argument that is the address. */
struct runtime_frees {
	const char *name;
	uint8_t address;
	bool prefix; /* as above */
};

struct runtime_allocator {
	const struct runtime_allocates *functions; /* the first must exist; ends with no name */
	/* All functions that free these allocations; ends with no name. NULL: programs do not
	 * free. */
	const struct runtime_frees *frees;
	bool exported;	     /* the functions are in .dynsym; else in .symtab */
	const char *why_not; /* remedy if no hook reports the bytes; NULL: a hook does */
};

/* Borrowed. */
struct runtime_task {
	const char *name;
	const char *waits_for; /* another task's name; NULL: none, or unknown */
	const char *state;     /* in the runtime's words, "suspended"; NULL: it waits */
	const char *reason;    /* reason of the wait, in the runtime's words, "chan receive"; NULL:
				  unknown */
	uint64_t id;	       /* its number, as rec_sample.task; 0: none */
	uint64_t waited_ns;    /* upper limit of the time since its wait began; 0: unknown */
	double stands_for;     /* number of tasks, with itself; 0: not from `parked` */
	uint32_t tid;	       /* its thread, as the process sees it; 0: none */
	uint64_t fs_base;      /* fs base of a thread that has run frames of the runtime */
	/* The registers with which it continues: UNWIND_REGS of them, behind the call by which it
	 * left the thread. NULL: only the runtime's frames can be found. */
	const uint64_t *regs;
	bool has_native_frames; /* ... and the native frames among them are its own */
	const struct memory_patch *patches;
	size_t n_patches;
};

typedef int (*runtime_task_fn)(void *ctx, const struct runtime_task *task);

/* A thread, by any of its properties; all 0: none. */
struct runtime_holder {
	uint64_t on_stack; /* an address that is on its stack */
	uint64_t fs_base;
	uint32_t tid; /* as the process sees it */
};

/* A thread that waits. */
struct runtime_waiter {
	uint64_t fs_base; /* 0: unknown */
	uint64_t futex;	  /* address of the futex that it waits for; 0: it waits for none */
	uint64_t lock;	  /* the lock that the walker reported (rec_sample.object); 0: none */
	/* The lock in words, "a Lock"; NULL: unknown. Then the rest is 0; else unknown members are
	 * 0. */
	const char *what;
	uint64_t address;
	struct runtime_holder holder;
};

/* --- capabilities: a runtime points to each one that it has --- */

/* Its ELF files. Required: detect, prepare, free. */
struct runtime_files {
	/* Returns 1 if this file is (part of) such a runtime, or 0 if not. A broken file of the
	 * runtime gives a negative errno. Cheap: names are compared first. */
	int (*detect)(const struct elf_file *file);

	/* Called after `detect` returned 1. Fills `ret_verdict` always, and `ret_image` on
	 * RUNTIME_SUPPORTED and RUNTIME_DEGRADED. Returns 0 or -ENOMEM. */
	int (*prepare)(const struct elf_file *file, struct runtime_image **ret_image,
		       struct runtime_verdict *ret_verdict);
	void (*free)(struct runtime_image *image); /* NULL is fine */

	/* Writes to `buf` the path of the runtime's file that a program which maps this file loads
	 * later, so that the runtime is prepared before. Returns 1, or 0 if there is none. Cheap,
	 * as `detect`. NULL: there is no such file. */
	int (*loads)(const struct elf_file *file, char *buf, size_t size);

	/* Finds the ranges of the interpreter loop's code and returns their number. NULL: the
	 * runtime has no loop. */
	size_t (*loops)(const struct runtime_image *image, const struct runtime_range **ret);

	/* Reads unwind rows from tables of the runtime's own, for the file's unwind table, where
	 * they take precedence over call frame information. Returns as cfi__read, but -ENOENT if
	 * the file has no such tables. Called after `detect` returned 1, even if the runtime is not
	 * enabled. NULL: the runtime has no tables. */
	int (*unwind_rows)(const struct elf_file *file, cfi_row_fn row, void *ctx);

	/* Finds the range of code in such a file that has no call frame information, but frame
	 * pointers at each call. Leaves the range empty if there is
	 * none. A function of the file's content, called as `unwind_rows`. Returns 0 or a negative
	 * errno. NULL: none. */
	int (*pointer_code)(const struct elf_file *file, uint64_t *ret_start, uint64_t *ret_end);

	/* Returns the range of the file's code that the runtime may copy to the start of anonymous
	 * memory, as link-time addresses; empty: none. NULL: the runtime copies no code. */
	struct runtime_range (*copied_code)(const struct runtime_image *image);

	/* Names the functions at a link-time address from the image's own tables, inlined ones
	 * first, as `symbolize`. They are frames of the runtime. Returns their number; 0: the
	 * address is no code of the runtime; -ENOMEM. NULL: the runtime has no such tables. */
	int (*resolve)(const struct runtime_image *image, uint64_t vaddr,
		       struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

	/* Adds the names that tables in a file give to functions without a symbol
	 * (docs/reference/symbols.md). Called for each file in which such code was sampled. Most
	 * files have no such tables, so that must be cheap to see. A name is valid only for the
	 * function that begins at its address. Returns 0 or -ENOMEM. NULL: there are no such
	 * tables. */
	int (*function_names)(const struct elf_file *file, struct function_names *names);
};

/* Its walker in the kernel half, which reads the runtime's frames from a process. Required: slot,
 * program, maps, records, record_bytes. */
struct runtime_walker {
	int slot;		 /* WALKER_NAME of bpf/shared.h */
	const char *program;	 /* its BPF program, which also sets the thread's relation to the
				  * interpreter's lock (bpf/lock.bpf.h) */
	const char *const *maps; /* its BPF maps, NULL-terminated */
	/* The map among `maps` that holds the record of each address space (its key), and the size
	 * of a record, at most RUNTIME_RECORD_MAX. `attach` fills the record in. */
	const char *records;
	size_t record_bytes;
	/* Number of copies of the runtime in one process that the walker supports, by keys
	 * WALKER_COPY_KEY: each is attached with that key as the space. 0: one. */
	uint32_t copies;
	/* The hash among `maps` that holds the number of each code object which the walker has
	 * announced: the first 32 bits of each value. A code object that is not in the hash is
	 * announced again under another number. NULL: the walker announces none. */
	const char *codes;
	/* The map among `maps` that has one entry per slot (bpf/slots.bpf.h); NULL: none. */
	const char *slot_map;
	/* The unwinder has a hook for the runtime's code (bpf/tableless.bpf.h). It is loaded with
	 * the walker, since it costs too much where there is no such code. */
	bool tableless;
	const char *
		lock; /* the lock that `program` reports (enum lock_state): "the GIL"; NULL: none */
	const char *task; /* the meaning of rec_sample.task: "goroutine"; NULL: it is not set */
};

/* Names of its frames. Required: symbolize. */
struct runtime_names {
	/* Stores the names of a REC_CODE_OBJECT record from this runtime's walker. `size` is the
	 * number of bytes that arrived: untrusted. Returns 0, -EBADMSG or -ENOMEM. Must not block
	 * or print.
	 */
	int (*on_code)(struct runtime_session *session, const struct rec_code_object *rec,
		       size_t size);

	/* Drops the names of codes whose numbers are not among the keys of the map, in this call
	 * and the one before: no sample refers to them. Also drops detached address spaces once
	 * they have no code left. */
	void (*forget_codes)(struct runtime_session *session, const struct u64map *listed);

	/* Gives each of these frames (at most RUNTIME_PAIRS_MAX) an address in its native frame, if
	 * that frame is proven. Removes the pairs that are no frames
	 * (marks, or leftovers of probes). Returns the number of frames. The rules are in
	 * runtimes/common/anchors.h; each runtime chooses those that hold for it. NULL: its walker
	 * sets all addresses and no marks. */
	size_t (*anchors)(struct runtime_session *session, const struct runtime_sample *sample,
			  struct runtime_pair *pairs, size_t n);

	/* Reads the target's memory that `symbolize` needs for a new frame key, since `symbolize`
	 * is called up to a second later. NULL: nothing to read. */
	void (*seen)(struct runtime_session *session, uint64_t key);

	/* Names one frame key: the functions at that place, inlined ones first. Returns their
	 * number, 1 to RUNTIME_SYMBOLS_MAX; -ENOENT for a code number that was never announced;
	 * -ENOMEM. */
	int (*symbolize)(struct runtime_session *session, uint64_t key,
			 struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

	/* Returns true if `symbolize` names functions as inlined at this place because they are
	 * inlined at another place nearby. Such functions are inferred, except the last one, to
	 * which the machine code belongs. NULL: never. */
	bool (*infers_inlined)(struct runtime_session *session, uint64_t key);

	/* Returns how many of the symbols of `symbolize` have no name, as the function was replaced
	 * or freed before its name was read. NULL: names come with the samples. */
	uint32_t (*count_stale)(struct runtime_session *session, uint64_t key);

	/* Copies the full name that the program gave to a thread to `buf`; the kernel's name,
	 * `kernel`, has at most 15 bytes or differs. Called at a thread's first sample, and again
	 * when the kernel's name has changed. Returns 0; -ENOENT: the thread has no such name;
	 * -EAGAIN: call again at its next sample, or with `kernel` NULL when there are no more;
	 * -ENOMEM. NULL: threads of the runtime have no names of their own. */
	int (*thread_name)(struct runtime_session *session, uint32_t pid, uint32_t tid,
			   const char *kernel, char *buf, size_t size);

	/* Returns the name of the method whose native function begins at exactly this address of
	 * the process, for code without a symbol, or NULL. Borrowed until the session's next call.
	 * The hook NULL: unknown. */
	const char *(*native_name)(struct runtime_session *session, uint32_t pid, uint64_t entry);
};

/* Relation of frames of compiled code to the runtime's own frames. */
enum jit_frames {
	JIT_FRAMES_BESIDE, /* machine code is a frame of its own beside them */
	JIT_FRAMES_RUN,	   /* each is a frame of the runtime, which is shown instead */
	/* Machine code takes the interpreter loop's place in the loop's own native frame: it is one
	 * of the runtime's `loops`, too. */
	JIT_FRAMES_LOOP,
};

/* Code that it compiles (docs/runtimes/jit-code.md). The core reads the perf maps and jitdump files
 * of each process to which a runtime with `label` is attached. It reads those of all processes if a
 * runtime with `label` has no files. Required: code or label. */
struct runtime_jit {
	const char *code; /* name of code that nothing names better; NULL: it is not recognized */
	enum jit_frames frames;
	/* Start of the path of the mappings that hold the code; NULL: anonymous memory. */
	const char *memory;

	/* Returns true if this build includes its compiler. NULL: all builds include a compiler, or
	 * this is unknown. */
	bool (*compiles)(const struct runtime_image *image);

	/* Parses the name that a perf map or a jitdump file gives to a piece of code, and adds the
	 * runtime's kind to the frame. `symbol` is untrusted. Returns false if it is no code of
	 * this runtime; then the next runtime is tried, the one without files last. NULL: such
	 * files name none of its code. */
	bool (*label)(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

	/* Bytes that its jitdump files add to the addresses of source lines. */
	uint32_t jitdump_skew;

	/* Requests a perf map of all code compiled so far from the process. Called when the runtime
	 * is attached, every few seconds while there is code without a name, and at the end. Never
	 * waits. Returns 0: requested, and map_result will return the result; -ENOTSUP: the process
	 * cannot write one, now or later; other errors: not now. The sentence in `err` is printed
	 * once. NULL: it writes one by itself, or none. */
	int (*ask_map)(struct runtime_session *session, uint32_t pid, struct err *err);

	/* Waits for the result of ask_map, `timeout_ms` at most. Returns 0: the map is written;
	 * -EAGAIN: not yet; or an error as ask_map. */
	int (*map_result)(struct runtime_session *session, uint32_t pid, unsigned timeout_ms,
			  struct err *err);
};

/* Its probes, which feed shadow stacks. Required: programs, probe, unprobe, unprobe_all. */
struct runtime_probes {
	/* BPF programs and maps of the probes, NULL-terminated; loaded only if probes are
	 * requested. `maps` NULL: none. */
	const char *const *programs, *const *maps;
	const char *calls_note; /* remark on the counts of `braid calls`; NULL: none */

	/* Attaches the probes that can be attached already when `attach` returned -EAGAIN, so that
	 * they see everything from the beginning. `probe` or `unprobe` follow. NULL: nothing. */
	void (*expect)(struct runtime_session *session, const struct runtime_target *target);

	/* Attaches the best pair of probes that is live, for shadow stacks in bpf/shadow.h. Called
	 * after `attach` if the version has a walker. All or nothing: -ENOTSUP with the reason in
	 * `err`. */
	int (*probe)(struct runtime_session *session, const struct runtime_target *target,
		     enum runtime_source source, struct runtime_probing *ret, struct err *err);
	/* Detaches the probes of a process that has ended or called execve. Idempotent, cannot
	 * fail. */
	void (*unprobe)(struct runtime_session *session, uint32_t pid);
	/* Detaches the probes of all processes, in the time that one process takes. */
	void (*unprobe_all)(struct runtime_session *session);

	/* Changes the environment of a command that is about to be started, so that its conditional
	 * probes fire. Must not affect other programs. NULL: nothing to change. */
	void (*prepare_command)(char *const *command);
};

/* Facts about a stopped process, for `braid dump`. At least one hook. */
struct runtime_inspect {
	/* Finds the locks for which these threads wait, and their holders, where the walker has not
	 * reported them. Fills in each waiter's description and holder, which are 0 when the hook
	 * is called. NULL: never. */
	void (*lock_holders)(struct runtime_session *session, uint32_t pid,
			     struct runtime_waiter *waiters, size_t n);

	/* Calls `on_task` for work of the process that waits outside of any thread, such as tasks
	 * of an event loop. The walker reads a task's frames as those of a thread whose memory has
	 * the task's patches. A negative return of `on_task` ends the search and is returned;
	 * -ENOMEM. NULL: the runtime has no tasks. */
	int (*tasks)(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
		     void *ctx);
	const char *task; /* word for a task: "fiber"; NULL: "task" */
	/* Returns a sentence about the tasks that `tasks` could not find, or NULL. Borrowed until
	 * the session's next call. The hook NULL: it finds all. */
	const char *(*tasks_left_out)(struct runtime_session *session);
};

/* Samples of tasks that wait outside of any thread, for -e wall (core/record/parked.c). Required:
 * all.
 *
 * The recorder calls `sample` about ten times a second for each attached process. It records each
 * task that it receives as one sample of the event:
 *   value    time since the previous call of `sample`; the total is that time × stands_for
 *   state    STATE_PARKED, which is the mark of such samples in recordings and reports
 *   thread   PARKED_TID of the process, named `many`: the time is no thread's
 *   task     the task's id
 *   context  the labels PARKED_REASON and PARKED_NAME, unless they are unknown (bpf/context.h)
 *   frames   as in a dump: programs run over the task's patches and registers.
 * The sum of a task's samples is then the time for which it was parked, within the error of
 * sampling. A task that runs on a thread, or is ready to run, is not offered: its time is the
 * thread's, or is no wait. */
struct runtime_parked {
	const char *many; /* word for the tasks: "goroutines" */

	/* Calls `on_task` for at most `most` tasks of the process. Each parked task must have the
	 * same chance to be among them, and `stands_for` is the reciprocal of that chance. The cost
	 * is limited by `most`, whatever the number of tasks. The process is never stopped or
	 * written to, so all data may be inconsistent. The hook drops a task whose state has
	 * changed while it was read. `on_task` reads the stack, and calls `is_parked` afterwards.
	 * Returns 0, also if there are none; -ENOMEM; or a negative return of `on_task`. -ENOTSUP:
	 * the tasks of this process are unreadable, and `err` has the reason. Each further
	 * call then returns the same, at little cost. */
	int (*sample)(struct runtime_session *session, uint32_t pid, uint32_t most,
		      runtime_task_fn on_task, void *ctx, struct err *err);

	/* Returns true if the task that `on_task` has is still parked as it was. Called within
	 * `on_task`. */
	bool (*is_parked)(struct runtime_session *session, uint32_t pid,
			  const struct runtime_task *task);
};

struct runtime {
	const char *name;     /* as in -r and in recordings: "python" */
	const char *suffix;   /* for --annotate: "_[py]" */
	const char *versions; /* supported versions, in words */
	/* The runtime stands for several runtimes, of which a process may have more than one: each
	 * that a file belongs to (verdict.version) is attached and reported. */
	bool many;

	/* Capabilities; NULL: the runtime has none of the kind. */
	const struct runtime_files *files;
	const struct runtime_walker *walker;
	const struct runtime_names *names;
	const struct runtime_jit *jit;
	const struct runtime_probes *probes;
	const struct runtime_inspect *inspect;
	const struct runtime_parked *parked;
	const struct runtime_allocator *allocator; /* for -e alloc:NAME */

	/* Rules for readers; NULL: none. */
	const struct idle_rule
		*idle; /* waits of its programs that are idle; ends with an empty one */
	const struct function_rules *function_rules; /* rules to select and name its functions */
	/* Functions of its own that only call a native function for a script, so that readers can
	 * name the script's callee: patterns of fnmatch(3), NULL-terminated. */
	const char *const *callers;

	/* Returns a sentence if the language runs on another runtime in a process with this command
	 * line, since its user may miss the frames. Returns NULL otherwise. */
	const char *(*elsewhere)(const char *command);

	/* Writes to `buf` the kind of frames that number `i`, from 0, of the many runtimes has.
	 * Returns the name of that runtime, or NULL behind the last. NULL: it stands for itself. */
	const char *(*recognizes)(size_t i, char *buf, size_t size);

	/* --- session; both NULL: the runtime has no state --- */

	/* `probes` has the programs and maps of probes, loaded before `probe` or `expect`; NULL: no
	 * probes. No other part of BPF is the runtime's business. */
	int (*open)(struct bpf_object *probes, struct runtime_session **ret, struct err *err);
	void (*close)(struct runtime_session *session); /* NULL is fine */

	/* --- instance --- */

	/* Attaches to one process, all or nothing. Fills in `ret_record` (record_bytes, zeros at
	 * first) with all facts about the process that a walker needs. The caller passes the record
	 * to the kernel half, or to a walker on the host. State for naming frames stays in the
	 * session. `err` has a sentence for the user, also on success. Returns 0; 1: attached,
	 * but nothing provides its frames; -EAGAIN: it is too early in the process's life, call
	 * again. NULL: the runtime has no instances. */
	int (*attach)(struct runtime_session *session, const struct runtime_target *target,
		      void *ret_record, struct err *err);
	/* Called when the address space has ended (exit, exec); the caller has removed the record.
	 * Idempotent, cannot fail. NULL: the session has no state of it. */
	void (*detach)(struct runtime_session *session, uint32_t space);
};

/* Is true if @runtime (evaluated twice) has this capability, and this member of the capability. */
#define runtime__has(runtime, capability, member) \
	((runtime)->capability && (runtime)->capability->member)

static inline enum jit_frames runtime__jit_frames(const struct runtime *runtime)
{
	return runtime->jit ? runtime->jit->frames : JIT_FRAMES_BESIDE;
}

/* Returns the walker's slot, or -1 if the runtime has no walker. */
static inline int runtime__slot(const struct runtime *runtime)
{
	return runtime->walker ? runtime->walker->slot : -1;
}

#endif
