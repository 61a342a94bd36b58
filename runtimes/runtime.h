/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIME_H
#define BRAID_RUNTIME_H

/* The contract between the profiler and its runtimes. A runtime is one stem everywhere
 * (runtimes/NAME/, bpf/NAME.bpf.c, probes/NAME.c, fixtures/NAME/) and one `const struct runtime`
 * in runtimes/registry.c. Nothing else in the tree knows a language by name.
 *
 * Three lifetimes:
 *   image     one ELF file. detect and prepare look at the file only, so their result serves
 *             every process that maps it.
 *   instance  one process, or rather one address space: attach tells where this process has what
 *             prepare found, as a record for the walker.
 *   session   one run of braid: open to close; owns all names learnt.
 *
 * A runtime that is not enabled costs no time: its BPF programs are not loaded, none of its hooks
 * is called. Each of its maps has one element (kernel_part__shrink()). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/base/memory.h"
#include "core/base/u64map.h"
#include "core/elf/elf_file.h"
#include "core/elf/function_names.h"
#include "core/unwind/cfi.h"
#include "runtimes/code_rules.h"
#include "runtimes/idle.h"

#define RUNTIME_VERSION_BYTES 32
#define RUNTIME_REASON_BYTES  200
#define RUNTIME_SYMBOLS_MAX   64
#define RUNTIME_RECORD_MAX    1024

enum runtime_support {
	RUNTIME_SUPPORTED,
	RUNTIME_DEGRADED, /* usable; the reason says what is missing */
	RUNTIME_REFUSED,  /* not usable; the reason says why and what would help */
};

/* The finding of `prepare` about one image. A version without a row is never treated as the nearest
 * one unless its layout was checked (runtimes/common/untried.h). */
struct runtime_verdict {
	enum runtime_support support;
	char version[RUNTIME_VERSION_BYTES]; /* "3.11.2" */
	char reason[RUNTIME_REASON_BYTES];   /* one sentence; "" when supported */
	bool map_only;	 /* its walker does not know this version, but a map may name its code */
	const char *map; /* how to make the runtime write a map; NULL: no way is known */
	/* How the code that its compiler makes keeps frame pointers, as KEEPS_POINTERS
	 * and so on (bpf/unwind_rule.h); 0: unknown. That holds for anonymous memory of which the
	 * compiler has reserved @made_bytes at least, as nothing else in such a process does. */
	unsigned int made_keeps;
	uint64_t made_bytes;
};

/* Which frames a session wants, of the ladder in docs/architecture.md. */
enum runtime_source {
	RUNTIME_SOURCE_AUTO, /* the first that works */
	RUNTIME_SOURCE_WALK,
	RUNTIME_SOURCE_PROBES, /* the shadow stack, to be sampled */
	RUNTIME_SOURCE_CALLS,  /* the same, to count calls: worth more to the user, so may cost more
				*/
	RUNTIME_SOURCE_MAP,    /* none but native frames with names from perf maps and jitdumps */
};

/* What feeds the shadow stack of a process. */
struct runtime_probing {
	const char *source;		 /* "usdt", "uprobe" */
	char note[RUNTIME_REASON_BYTES]; /* what the user must know of it; "": nothing */
	uint32_t traps; /* bit n: a hit of some probe costs what enum trap_kind n does */
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
	uint64_t function; /* where its function starts; 0: unknown, or not asked for */
	bool loop;	   /* code of one of this runtime's `loops` */
	bool compiled;	   /* code that no file backs */
};

struct runtime_natives {
	const struct runtime_native *list;
	size_t n;
	/* Of the innermost file of this runtime that has a frame here; NULL: none has. */
	const struct runtime_image *image;
	uint64_t bias; /* of that file: address in the process = link-time address + bias */
};

struct runtime_sample {
	bool native_complete; /* the native frames reach the thread's outermost one */
	bool cut;	      /* the runtime's do not: truncated, or not readable further out */
	bool probed;	      /* probes have told of them, not the walker */
	/* Looks the native frames up; `functions`: with where their functions start, which costs
	 * more. Borrowed until the hook returns. */
	struct runtime_natives (*natives)(const struct runtime_sample *sample, bool functions);
};

/* One instance. */
struct runtime_target {
	uint32_t pid;			   /* as braid sees it; for process_vm_readv and /proc */
	uint32_t space;			   /* key of all kernel-half state of this address space */
	uint64_t bias;			   /* address in the process = link-time address + bias */
	const struct runtime_image *image; /* NULL where prepare refused; then only for `probe` */
	const struct elf_file *file;	   /* that it was detected in */
	bool map;   /* its frames are to come from a map: nobody will read what `attach` fills in */
	bool force; /* probes may replace return addresses, if there is no other way */
};

/* What a frame key stands for. Strings are borrowed until the session's next call. */
struct runtime_symbol {
	const char *function; /* never NULL */
	const char *file;     /* NULL: unknown */
	uint32_t line;	      /* 0: unknown */
};

/* What a perf map or a jitdump file calls a piece of code, in readable form. */
struct runtime_label {
	struct runtime_symbol symbol; /* strings are in the symbol or in the hook's `buf` */
	/* Such code only calls the interpreter loop, whose frames a walker finds: it is shown where
	 * no walker's frame is there to be shown. */
	bool loop;
};

/* A function that allocates. */
struct runtime_allocates {
	const char *name;
	uint8_t size, times; /* numbers of its arguments, from 0: so many bytes, so many times */
	bool nests;	     /* it may call another one of these to do its work */
	bool prefix;	     /* the symbol goes on with what a release's types are called */
	/* For what is outstanding: the number of the argument that it frees, + 1; 0: none. */
	uint8_t frees;
	bool writes; /* it leaves the address where its first argument points to, and returns 0 */
	/* It may end by jumping to a function of another library that returns its own first
	 * argument, as memset does: that is the address. */
	bool passes;
	bool wraps; /* all that it does is to call another one of these, also by such a jump */
	/* Its first argument is an alignment; it aligns to pages. glibc leaves alignments that
	 * malloc has to malloc, by a jump (_mid_memalign in malloc/malloc.c), no other ones. */
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
	const struct runtime_allocates *functions; /* the first must be there; ends with no name */
	/* All that free what these allocate, ends with no name; NULL: that is not for programs to
	 * do. */
	const struct runtime_frees *frees;
	bool exported; /* they are among the symbols that a library exports; else in .symtab */
	const char *why_not; /* there is no hook that tells bytes: the way out; else NULL */
};

/* Borrowed. */
struct runtime_task {
	const char *name;
	const char *waits_for; /* another task's name; NULL: none, or not known */
	const char *state; /* the runtime's word for what it does: "suspended"; NULL: it waits */
	uint32_t tid;	   /* of the thread that it belongs to, as the process sees it; 0: none */
	uint64_t fs_base;  /* of a thread that has run frames of the runtime */
	/* Where it goes on: UNWIND_REGS registers behind the call in which it has left the thread.
	 * NULL: only the runtime's frames can be found. */
	const uint64_t *regs;
	bool has_native_frames; /* ... and the native ones among them are its own */
	const struct memory_patch *patches;
	size_t n_patches;
};

typedef int (*runtime_task_fn)(void *ctx, const struct runtime_task *task);

/* A thread, by what is known of it; all 0: none. */
struct runtime_holder {
	uint64_t on_stack; /* an address that is on its stack */
	uint64_t fs_base;
	uint32_t tid; /* as the process sees it */
};

/* A thread that waits. */
struct runtime_waiter {
	uint64_t fs_base; /* 0: not known */
	uint64_t futex;	  /* the address that it waits for in the kernel; 0: that is no futex */
	uint64_t lock;	  /* that the walker has told (rec_sample.object); 0: none */
	/* What it waits for, for people, "a Lock"; NULL: not known. Then, as far as these are
	 * known, too: */
	const char *what;
	uint64_t address;
	struct runtime_holder holder;
};

struct runtime {
	/* --- identity --- */
	const char *name;	 /* as in -r and in recordings: "python" */
	const char *suffix;	 /* for --annotate: "_[py]" */
	const char *versions;	 /* for people: what is supported */
	const char *lock;	 /* the same: what its program tells of (enum lock_state): "the
				  * GIL"; NULL: nothing */
	int walker;		 /* slot in the kernel half (bpf/shared.h), -1: no walker */
	const char *program;	 /* name of the walker's BPF program; NULL: none. It also says how
				  * the thread stands to the interpreter's lock (bpf/lock.bpf.h) */
	const char *const *maps; /* its BPF maps, NULL-terminated; NULL: none */
	/* That one of these maps which tells the walker of each address space (its key), and the
	 * size of its values: what `attach` fills in. NULL: no walker. */
	const char *records;
	size_t record_bytes; /* at most RUNTIME_RECORD_MAX */
	/* Copies of it in one process that its walker can find, by keys WALKER_COPY_KEY: each is
	 * attached, with that key as the space. 0: one. */
	uint32_t copies;
	/* It stands for several runtimes, of which a process may have more than one: each that a
	 * file is of (verdict.version) is attached and reported. */
	bool many;
	/* That one of `maps`, a hash, in which the walker finds the numbers of the code objects
	 * that it has announced: the first 32 bits of each value. A code object that is not there
	 * will be announced again, by another number. NULL: it announces none. */
	const char *codes;
	/* The same for the shadow stack; not loaded where no probes are wanted. NULL: none. */
	const char *const *probe_programs, *const *probe_maps;
	/* Name of code that its compiler made, for where nothing better names it; NULL: none */
	const char *jit;
	/* How that code is named: its frames are frames of the runtime, which are shown instead.
	 * Else such code is a frame of its own beside them. */
	bool runs_own_code;
	/* Such code takes the interpreter loop's place in the loop's own native frame, so that it
	 * is one of its `loops`, too; it lies in mappings whose names begin so, "": in anonymous
	 * memory. NULL: not so, and it lies in anonymous memory. */
	const char *loop_memory;
	/* What a user of `braid calls` has to know of its counts; NULL: nothing */
	const char *calls_note;
	/* What its program tells the numbers of (rec_sample.task): "goroutine"; NULL: nothing. */
	const char *sampled_task;
	/* The map among `maps`, or NULL, that holds one entry per slot (bpf/slots.bpf.h). */
	const char *slot_map;
	/* How its own allocator is seen at work, for -e alloc:NAME; NULL: not at all. */
	const struct runtime_allocator *allocator;
	/* The unwinder has a hook for its code (bpf/tableless.bpf.h) that is too expensive to load
	 * where there is none: it comes with the walker. */
	bool tableless;
	/* Which waits of its programs are idle; ends with an empty one. NULL: none known. */
	const struct idle_rule *idle;
	/* By which readers choose and name its functions. NULL: none known. */
	const struct code_rules *code_rules;
	/* Functions of its own that do nothing but call a function in native code for a script, by
	 * fnmatch(3)'s patterns up to a NULL, so that readers can name what a script has called.
	 * NULL: none known. */
	const char *const *callers;

	/* --- image --- */

	/* Is this file (part of) such a runtime? Cheap: names first. 0 no, 1 yes, negative errno:
	 * it claims to be but is broken. NULL: never (the runtime has no images of its own). */
	int (*detect)(const struct elf_file *file);

	/* Called after detect said yes. Fills `ret_verdict` always; on RUNTIME_SUPPORTED and
	 * RUNTIME_DEGRADED also `ret_image`. 0 or -ENOMEM. */
	int (*prepare)(const struct elf_file *file, struct runtime_image **ret_image,
		       struct runtime_verdict *ret_verdict);
	void (*image_free)(struct runtime_image *image); /* NULL is fine */

	/* The ranges of the interpreter loop's code. Returns their number. NULL: it has none. */
	size_t (*loops)(const struct runtime_image *image, const struct runtime_range **ret);

	/* Has this build its compiler (`jit`)? NULL: each has, or it is not known. */
	bool (*compiles)(const struct runtime_image *image);

	/* How the functions of such a file are left, where its runtime has tables of that: rows in
	 * braid's own terms, for the file's unwind table, in which they count more than call frame
	 * information. As cfi__read, but -ENOENT where there are none. Called after `detect` said
	 * yes, also where the runtime is not enabled. NULL: it has none. */
	int (*unwind_rows)(const struct elf_file *file, cfi_row_fn row, void *ctx);

	/* Sets the range of code in such a file that has no call frame information, and makes a
	 * frame with a frame pointer before it calls anything. Leaves the range empty if there is
	 * none. A function of the file's content, called as `unwind_rows`. Returns 0 or a negative
	 * errno. NULL: none. */
	int (*pointer_code)(const struct elf_file *file, uint64_t *ret_start, uint64_t *ret_end);

	/* The functions at a link-time address, by the image's own tables: those inlined into
	 * others first, as for `symbolize`. They are frames of the runtime. Returns their number;
	 * 0: that is no code of the runtime; -ENOMEM. NULL: it has no such tables. */
	int (*resolve)(const struct runtime_image *image, uint64_t vaddr,
		       struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

	/* Names of functions that tables in a file tell, for code that has no symbol:
	 * docs/symbols.md. Any file in which such code was met is asked, and most have none: that
	 * must be cheap to see. Exactly the function that begins at an address, or none. 0 or
	 * -ENOMEM. NULL: there are no such tables. */
	int (*function_names)(const struct elf_file *file, struct function_names *names);

	/* Why a process with this command line has no frames of this runtime, though its user may
	 * expect them (the language runs on another runtime); NULL: nothing to say. */
	const char *(*elsewhere)(const char *command);

	/* Writes to @buf the frames that are shown of number @i, from 0, of the many that this
	 * runtime stands for. Returns the name of that one, or NULL behind the last. NULL: it
	 * stands for itself. */
	const char *(*recognizes)(size_t i, char *buf, size_t size);

	/* --- session --- */

	/* `probes` has the programs and maps of probes, loaded before `probe` or `expect`; NULL: no
	 * probes are wanted. Nothing else of BPF is the runtime's business. */
	int (*open)(struct bpf_object *probes, struct runtime_session **ret, struct err *err);
	void (*close)(struct runtime_session *session); /* idempotent on NULL */

	/* --- instance --- */

	/* All or nothing. Fills in `ret_record` (record_bytes, zeros at first), all that a walker
	 * has to know of the process: for the caller to give to the kernel half, or to a walker on
	 * the host. What naming its frames takes later stays in the session. What the user should
	 * know is in `err`, also on success. 1: attached, but there is nothing that its frames
	 * could come from. -EAGAIN: it is too early in the process's life, to be called again. */
	int (*attach)(struct runtime_session *session, const struct runtime_target *target,
		      void *ret_record, struct err *err);
	/* The address space is gone (exit, exec); the caller has taken the record back. Idempotent,
	 * cannot fail. NULL: the session keeps nothing of it. */
	void (*detach)(struct runtime_session *session, uint32_t space);

	/* Which of its locks these threads of a process wait for, and who holds them, as far as its
	 * walker has not told. Fills in `what` and what follows, all 0 before. NULL: never. */
	void (*lock_holders)(struct runtime_session *session, uint32_t pid,
			     struct runtime_waiter *waiters, size_t n);

	/* For who wants probes, when `attach` has said -EAGAIN: what probes can be attached
	 * already, so that they see all from the beginning. `probe` or `unprobe` follow. NULL:
	 * nothing. */
	void (*expect)(struct runtime_session *session, const struct runtime_target *target);

	/* Attaches the best pair of probes that is live, for shadow stacks in bpf/shadow.h; after
	 * `attach`, where the version has a walker. All or nothing: -ENOTSUP with the reason in
	 * `err`. NULL: the runtime has none. */
	int (*probe)(struct runtime_session *session, const struct runtime_target *target,
		     enum runtime_source source, struct runtime_probing *ret, struct err *err);
	/* The process is gone, or has executed something else. Idempotent, cannot fail. */
	void (*unprobe)(struct runtime_session *session, uint32_t pid);
	/* The same for all processes, which takes no longer than for one. */
	void (*unprobe_all)(struct runtime_session *session);

	/* Changes the environment of a command that is about to be started, with probes, so that
	 * those that fire under a condition only do. Must leave programs of other kinds alone.
	 * NULL: nothing to do. */
	void (*prepare_command)(char *const *command);

	/* --- records and names --- */

	/* A REC_CODE of this runtime's walker. `size` is what arrived: untrusted. 0, -EBADMSG or
	 * -ENOMEM. Must not block or print. */
	int (*on_code)(struct runtime_session *session, const struct rec_code *rec, size_t size);

	/* Samples that are still to be named refer to none of the codes whose numbers were not in
	 * `known` (the keys) this time and the time before: what is known of these can go, and of
	 * address spaces that were detached, once no code of theirs is left. */
	void (*forget_codes)(struct runtime_session *session, const struct u64map *known);

	/* Which native frame runs each of these frames (at most RUNTIME_PAIRS_MAX): gives them
	 * addresses in its span, as far as that can be told, and takes out the pairs that are none
	 * (marks, or what probes left over). Returns the number of frames. The rules are in
	 * runtimes/common/anchors.h; what is true of the runtime, and why, is for it to say. NULL:
	 * its walker tells all addresses, and sets no marks. */
	size_t (*anchors)(struct runtime_session *session, const struct runtime_sample *sample,
			  struct runtime_pair *pairs, size_t n);

	/* A frame key is met for the first time: the moment to read from the target what
	 * `symbolize` will need, as that comes up to a second later. NULL: nothing to read. */
	void (*seen)(struct runtime_session *session, uint64_t key);

	/* Names one frame key: the functions at that place, those inlined into others first.
	 * Returns their number, 1 to RUNTIME_SYMBOLS_MAX; -ENOENT for a code number that was never
	 * announced; -ENOMEM. */
	int (*symbolize)(struct runtime_session *session, uint64_t key,
			 struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX]);

	/* Does `symbolize` name functions as inlined at this place because they are at another
	 * place nearby? These are inferred, but for the last one, whose machine code it is. NULL:
	 * never. */
	bool (*infers_inlined)(struct runtime_session *session, uint64_t key);

	/* Returns how many of the symbols of `symbolize` have no name, as the function was replaced
	 * or freed before its name was read. NULL: names come with the samples. */
	uint32_t (*count_stale)(struct runtime_session *session, uint64_t key);

	/* The name that the program has given to a thread, in full, where the kernel's (`comm`) has
	 * but 15 bytes of it or another one. Asked at a thread's first sample, and again when the
	 * kernel's name, `kernel`, has changed. 0; -ENOENT: it has none; -EAGAIN: to be asked
	 * again, at its next sample, or with `kernel` NULL when there are no more; -ENOMEM. NULL:
	 * threads of the runtime have no names of their own. */
	int (*thread_name)(struct runtime_session *session, uint32_t pid, uint32_t tid,
			   const char *kernel, char *buf, size_t size);

	/* Work of the process that waits outside of any thread, such as tasks of an event loop: to
	 * be seen by the runtime's walker as the frames of a thread whose memory has these words
	 * instead of its own. A negative return of `on_task` ends it and is returned; -ENOMEM.
	 * NULL: there is no such thing. */
	int (*tasks)(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
		     void *ctx);
	/* What people call them: "fiber". NULL: "task". */
	const char *task;
	/* After that: which of them it could not tell, a sentence; NULL: none. Borrowed until the
	 * session's next call. The hook NULL: none ever. */
	const char *(*tasks_left_out)(struct runtime_session *session);

	/* What the function of native code that begins at this address of the process is to the
	 * runtime: the name of the method that it is, for code without a symbol. Exactly that
	 * function, or NULL. Borrowed until the session's next call. The hook NULL: not known. */
	const char *(*native_name)(struct runtime_session *session, uint32_t pid, uint64_t entry);

	/* --- names of compiled code: docs/jit-code.md ---
	 *
	 * The core reads perf maps and jitdump files, of each process that a runtime with `label`
	 * is attached to, or of all processes if there is one that has no `detect`. No session. */

	/* False: this is no code of this runtime, so that the next one is asked, the one without
	 * `detect` last. `symbol` is any text that a process likes. Adds the runtime's kind to the
	 * frame. NULL: none of its code is in such files. */
	bool (*label)(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

	/* What its jitdump files add to the addresses of source lines, in bytes. */
	uint32_t jitdump_skew;

	/* Asks the process for a perf map of what it has compiled until now. Called when the
	 * runtime is attached, every few seconds while there is code without a name, and at the
	 * end. Never waits. 0: it is being asked, and map_asked will tell; -ENOTSUP: it cannot be,
	 * now or later; other errors: not now. The sentence in `err` is told once. NULL: it writes
	 * one by itself, or none. */
	int (*ask_map)(struct runtime_session *session, uint32_t pid, struct err *err);

	/* What came of that, waiting for up to `timeout_ms`. 0: the map is written; -EAGAIN: it is
	 * not yet; or as for ask_map. */
	int (*map_asked)(struct runtime_session *session, uint32_t pid, unsigned timeout_ms,
			 struct err *err);
};

#endif
