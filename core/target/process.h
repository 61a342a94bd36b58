/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_H
#define BRAID_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "core/target/images.h"
#include "core/target/jit_maps.h"
#include "core/target/procfs.h"
#include "runtimes/runtime.h"

/* One profiled process and its mappings. It is independent of the users of its samples: they store
 * their data under its serial number. */

struct space;		/* core/kernel/spaces.h */
struct places;		/* core/target/place.h */
struct compiled_code;	/* core/target/compiled_code.h */
struct cgroup;		/* core/target/cgroups.h */
struct quota_account;	/* core/base/quota.h */
struct process_context; /* core/target/process_context.h */
struct mapping_times;	/* core/target/mapping_times.h */

struct runtime_set {
	const struct runtime *const *list; /* all runtimes, NULL-terminated */
	uint32_t enabled;		   /* bit n: list[n] is enabled */
	bool force;			   /* as in struct runtime_target */
};

/* The life of a process; the table of transitions is above process__enter(). */
enum process_state {
	PROCESS_NEW,	   /* executes a program whose mappings have not been published */
	PROCESS_STARTING,  /* braid's own child, which has not executed its command */
	PROCESS_PUBLISHED, /* has a `space`: the kernel half has the mappings */
	PROCESS_HELD,	   /* traced by hold.h: runs only its dynamic linker */
	PROCESS_ENDING,	   /* named by the user, and its last thread has begun to exit */
	PROCESS_ENDED,	   /* has ended; samples of it may be in the ring */
	PROCESS_STATES
};

struct mapped {
	uint64_t start, end, offset;
	uint64_t bias;	     /* address - bias = link-time address */
	struct image *image; /* NULL: no file, or an unreadable one */
	char *path;
	uint64_t whole_start, whole_end; /* the whole mapping, of which this may be a part */
	bool is_moved;	  /* memory that is not mapped from the image's file, but has its code */
	uint64_t inode;	  /* inode of the mapped file; 0: none, or unknown */
	uint64_t dev;	  /* its device; 0: none, or unknown */
	uint64_t born_ns; /* time at which it replaced another one; 0: none is recorded */
};

struct process {
	UT_hash_handle hh;
	uint32_t pid;
	uint32_t serial; /* number of this incarnation, from 1; new at each fork and exec */
	enum process_state state;	    /* changed only by process__enter() */
	const struct runtime_set *runtimes; /* borrowed */
	struct procfs_info info;
	bool is_info_derived; /* derived: UID and inner PID may differ */
	bool requested;	      /* named by the user; the recording ends with the last of these */
	struct process *next_requested;
	int pidfd;		  /* readable when an ENDING process is gone; -1: it is gone */
	bool hidden;		  /* hidden from the user */
	bool unread;		  /* counted by tracker__unread */
	bool forbidden;		  /* counted by tracker__forbidden */
	uint32_t relieved_serial; /* `serial` at the last exec by a thread other than the first */
	uint64_t ended_ns;	  /* time of its end */
	struct process *next_ended, *prev_ended; /* in the order of their ends */
	struct cgroup *cgroup; /* cgroup at its discovery or its last exec; NULL: unknown */
	uint64_t found_ns;     /* time of its discovery or its last exec */
	uint32_t program;      /* number of the executed program in the kernel half's last record */
	struct image *exe;     /* executed image; NULL: unknown */
	double cpu_before_s;   /* CPU time of all threads when the recording began */
	bool has_cpu_before;
	bool is_joined; /* probes of events were attached to it since its fork */

	struct process_context *context; /* as it was last published; NULL: none was read */
	uint64_t context_read_ns;	 /* time of the last process__renew_context() */

	/* --- mappings: tracker_mappings.c --- */
	struct space *space;
	struct mapped *mapped; /* executable mappings, sorted */
	size_t n_mapped;
	struct mapping_times *times;   /* ended mappings; NULL: none */
	struct quota_account *account; /* account charged for these; NULL: none yet */
	uint64_t charged;	       /* bytes */
	bool is_stale;		       /* `space` lacks some of the mappings */
	uint64_t refreshed_ns;	       /* time of the last reading of the mappings */
	uint64_t covered_ns;	       /* time at which a recorded mapping was last covered */
	uint64_t changed_ns;	       /* time of the last change of the mappings */
	uint32_t fruitless_reads; /* readings in a row without change, for a pc in no mapping */
	uint64_t retry_ns;	  /* time to retry files that did not answer; 0: never */
	uint32_t retries;	  /* consecutive retries */

	uint32_t attached; /* bit n: as in its former space, for a process that has ended */

	/* --- code of its addresses; NULL: not requested yet --- */
	struct jit_ancestor ancestors[JIT_ANCESTORS_MAX]; /* since the last exec; nearest first */
	size_t n_ancestors;
	struct places *places;
	struct compiled_code *code;
	struct jit_sources *jit_sources; /* shared by all processes; borrowed */

	/* --- its runtimes' probes: tracker_runtimes.c --- */
	uint32_t probed;       /* bit n: probes of runtimes[n] are attached */
	uint32_t pre_attached; /* bit n: ... or may be, before the source is decided */
	uint64_t probed_ticks; /* info.cpu_ticks at that time */
	bool probes_evaluated; /* it is decided whether they fire */
};

/* Changes the state of the process. Asserts that the table of transitions allows that. */
void process__enter(struct process *process, enum process_state state);

static inline bool process__is_ended(const struct process *process)
{
	return process->state == PROCESS_ENDED;
}

/* Enter and leave PROCESS_HELD: the process runs only its dynamic linker, or runs on. No effect on
 * a process that has begun to exit. */
void process__hold(struct process *process);
void process__let_run(struct process *process);

/* Assigns @space to the process, which has none. Takes over the caller's reference. */
void process__take_space(struct process *process, struct space *space);

/* Completes `info` by a read if it is derived, unless the process is gone. */
void process__read_info(struct process *process);

/* Returns bit n for each runtime n that is attached, or was when the process ended. */
uint32_t process__attached(const struct process *process);

/* Returns true if runtime @i of the process was not ready to be attached. Its code may run already.
 */
bool process__is_pending(const struct process *process, int i);

/* Returns the mapping that holds @address now, or NULL. mapping_times__find() returns the mapping
 * at another time. */
const struct mapped *process__find(const struct process *process, uint64_t address);

/* Returns true if @path is @file, or @file with directories in front of it. */
bool path__ends_with(const char *path, const char *file);

/* Finds the symbol in the mapped file whose path is @file or ends with @file after a slash. Sets
 * *@ret_vaddr. Returns the mapping of the file, or NULL. */
const struct mapped *process__find_symbol(const struct process *process, const char *file,
					  const char *symbol, uint64_t *ret_vaddr);

/* Reads the process context again if it has changed, at most once in 10 ms. Returns 0 or -ENOMEM.
 */
int process__renew_context(struct process *process, uint64_t now_ns);

/* Removes all mappings, and the process context. */
void process__clear_mapped(struct process *process);

/* Returns the account of the process and its user; NULL: out of memory. */
struct quota_account *process__account(struct process *process);

/* Replaces the mappings. Takes ownership of @list, also on failure, which leaves no mappings:
 * -EFBIG if the memory is over the budget. */
int process__set_mapped(struct process *process, struct mapped *list, size_t n);

/* Drops the code of its addresses: it has ended, or executes another program. */
void process__forget_code(struct process *process);

#endif
