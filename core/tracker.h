/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_H
#define BRAID_TRACKER_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "core/err.h"
#include "core/images.h"
#include "core/kernel_half.h"
#include "core/probe_hits.h"
#include "core/procfs.h"
#include "core/u64map.h"

/* The processes that are being profiled, with what is mapped where, kept in step with the kernel
 * half: executable mappings, unwind tables, runtimes' instances. */

struct space; /* core/spaces.h */

struct mapped {
	uint64_t start, end, offset;
	uint64_t bias;	     /* address - bias = link-time address */
	struct image *image; /* NULL: no file, or one that cannot be read */
	char *path;
};

struct process {
	UT_hash_handle hh;
	uint32_t pid;
	struct procfs_info info;
	bool is_info_derived; /* ... from its parent's, and from what it executed: UID and inner
			       * PID may be others */
	bool wanted;	      /* asked for by the user: the recording ends with the last of these */
	struct process *next_wanted;
	int pidfd;   /* of one that is wanted, once it is `ending`: readable when it is gone; -1:
		      * it is */
	bool ending; /* its last thread has begun to exit */
	bool gone;
	bool unread;	   /* counted by tracker__unread */
	uint64_t gone_ns;  /* since when */
	uint32_t program;  /* that the kernel half was executing when it told last */
	struct image *exe; /* that it executed; NULL: not known */
	bool starting;	   /* a child of ours that has not yet executed its command */
	struct space *space;
	struct mapped *mapped; /* executable mappings, sorted */
	size_t n_mapped;
	bool is_behind;		/* `space` lacks some of these */
	uint64_t refreshed_ns;	/* when the mappings were read last */
	uint64_t changed_ns;	/* and when that found a change */
	uint32_t probed;	/* bit n: probes of runtimes[n] are attached */
	uint32_t expected;	/* bit n: or may be, though what they tell is not yet wanted */
	uint32_t paused;	/* bit n: or will be: see tracker__pause_probes */
	uint32_t told_probed;	/* bit n: that there are probes was told */
	uint32_t told_paused;	/* bit n: ... and that they come and go */
	uint64_t probed_ticks;	/* info.cpu_ticks then */
	bool probes_judged;	/* whether they fire is known */
	struct probe_hits hits; /* of those that were taken away */
	uint32_t wasted;	/* reads in a row, for a pc outside all of them, that found none */
	/* the recorder's: */
	uint32_t recording_id;
	struct u64map frames; /* native ip -> frame id */
	struct jit_code *jit; /* core/jit_frames.c */
};

struct tracker;

/* How a runtime's frames of a process will be had; told once per process and runtime. */
typedef void (*tracker_source_fn)(void *ctx, struct process *process, const struct runtime *runtime,
				  const char *version, const char *source, const char *reason);

struct tracker_opts {
	struct kernel_half *half;
	struct images *images;
	const struct runtime *const *runtimes;	 /* all known, NULL-terminated */
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
	uint32_t enabled;
	enum runtime_source source;
	bool probes; /* the kernel half has what probes need */
	tracker_source_fn on_source;
	void *ctx;
};

int tracker__new(const struct tracker_opts *opts, struct tracker **ret);
void tracker__free(struct tracker *tracker); /* NULL is fine */

/* Begins to profile a process that the user asked for; its mappings are yet to be read by
 * tracker__refresh. `starting` as in struct process. A negative errno comes with the sentence in
 * `err`. */
int tracker__add(struct tracker *tracker, uint32_t pid, bool starting, struct process **ret,
		 struct err *err);

struct process *tracker__find(const struct tracker *tracker, uint32_t pid); /* or NULL */
struct process *tracker__first(const struct tracker *tracker);	      /* then process->hh.next */
struct process *tracker__first_wanted(const struct tracker *tracker); /* then ->next_wanted */

/* Events from the kernel half. Errors that concern one process only are not errors here: -ENOMEM,
 * or what bpf() returned. */
int tracker__on_fork(struct tracker *tracker, const struct rec_task *rec);
int tracker__on_exec(struct tracker *tracker, struct process *process, const struct rec_exec *rec);
int tracker__on_mapped(struct tracker *tracker, struct process *process,
		       const struct rec_mapped *rec);

/* Reads the mappings again and passes on what changed. -ENOMEM. */
int tracker__refresh(struct tracker *tracker, struct process *process);

/* Once a second: reads the mappings of all processes, for changes that went unnoticed. */
int tracker__tick(struct tracker *tracker);

/* Tries again where it was too early to decide on a runtime, not too often. 0 or -ENOMEM. */
int tracker__retry(struct tracker *tracker, uint64_t now_ns);

/* As refresh, but seldom for a process where it did not help lately. */
int tracker__on_unmapped(struct tracker *tracker, struct process *process, uint64_t now_ns);

/* After tracker__on_unmapped: what the kernel half does not know the file of, it may know now. */
void tracker__learn_file(struct tracker *tracker, const struct process *process,
			 const struct rec_unmapped *rec);

/* The last thread of the process has begun to exit. One that is wanted is to be watched until
 * process__has_ended, and then told to be gone. */
void tracker__on_exit(struct tracker *tracker, struct process *process);
bool process__has_ended(const struct process *process); /* of one that is `ending` */

/* Finds those that have ended unnoticed: before there were events, or while some were lost. */
void tracker__look_for_exits(struct tracker *tracker);

/* The process has ended: no more samples are wanted of its PID. What is known of it stays. */
void tracker__on_gone(struct tracker *tracker, struct process *process);

/* Forgets processes that ended some seconds ago, but for those that the user asked for; `before`
 * that, calls this. */
typedef void (*tracker_reap_fn)(void *ctx, struct process *process);
void tracker__reap(struct tracker *tracker, tracker_reap_fn before, void *ctx);

/* Bit n: hits of probes that were attached so far cost what enum trap_kind n does. */
uint32_t tracker__traps(const struct tracker *tracker);

/* Are probes attached anywhere, or will be again? */
bool tracker__has_probes(const struct tracker *tracker);

/* Detaches all probes, as they cost too much: `why`. Processes go on by walking, from now on,
 * unless calls are to be counted; where they cannot be walked, and if calls are counted, probes
 * come back with tracker__resume_probes. Until then nothing is attached, to new processes
 * either. */
void tracker__pause_probes(struct tracker *tracker, const char *why);

/* All shadow stacks are empty. -errno of what cannot be told to the kernel half. */
int tracker__resume_probes(struct tracker *tracker);

/* Detaches all probes. */
void tracker__stop_probes(struct tracker *tracker);

/* Processes of which not all could be read or passed on, for want of descriptors or memory. */
uint64_t tracker__unread(const struct tracker *tracker);

unsigned tracker__count_wanted(const struct tracker *tracker); /* that still live */

/* Makes sure of `info`, unless the process is gone. */
void process__read_info(struct process *process);

/* The mapping that holds `address`, or NULL. */
const struct mapped *process__find(const struct process *process, uint64_t address);

/* Where a function begins: of the mapped file whose path ends with `file` after a slash, or is
 * that. -ENOENT. */
int process__find_symbol(const struct process *process, const char *file, const char *symbol,
			 uint64_t *ret_address);

#endif
