/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_H
#define BRAID_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "core/target/code_maps.h"
#include "core/target/images.h"
#include "core/target/procfs.h"
#include "runtimes/runtime.h"

/* One process that is being profiled, and what is mapped where in it. It knows nothing of who
 * takes its samples: they keep what they need under its serial number. */

struct space;	      /* core/kernel/spaces.h */
struct places;	      /* core/target/place.h */
struct compiled_code; /* core/target/compiled_code.h */
struct cgroup;	      /* core/target/cgroups.h */
struct quota_account; /* core/base/quota.h */
struct mapping_times; /* core/target/mapping_times.h */

struct runtime_set {
	const struct runtime *const *list; /* all known, NULL-terminated */
	uint32_t enabled;		   /* bit n: list[n] is wanted */
	bool force;			   /* as in struct runtime_target */
};

/* The life of a process; the table of transitions is above process__enter(). */
enum process_state {
	PROCESS_NEW,	  /* executes a program whose mappings have not been published */
	PROCESS_STARTING, /* braid's own child, which has not executed its command */
	PROCESS_KNOWN,	  /* has a `space`: the kernel half has the mappings */
	PROCESS_HELD,	  /* traced by hold.h: runs its dynamic linker and no other code */
	PROCESS_ENDING,	  /* named by the user, and its last thread has begun to exit */
	PROCESS_GONE,	  /* has ended; samples of it may be in the ring */
	PROCESS_STATES
};

struct mapped {
	uint64_t start, end, offset;
	uint64_t bias;	     /* address - bias = link-time address */
	struct image *image; /* NULL: no file, or one that cannot be read */
	char *path;
	uint64_t whole_start, whole_end; /* the mapping that it is a part of */
	bool is_moved;			 /* memory that is not the image's file, but has its code */
	uint64_t inode;			 /* of the file that is mapped; 0: none, or unknown */
	uint64_t dev;			 /* and its device; 0: none, or unknown */
	uint64_t born_ns; /* when it took the place of another one; 0: no other is known */
};

struct process {
	UT_hash_handle hh;
	uint32_t pid;
	uint32_t serial; /* of this incarnation: a new one with each fork and each exec, from 1 */
	enum process_state state;	    /* changed by process__enter() only */
	const struct runtime_set *runtimes; /* borrowed */
	struct procfs_info info;
	bool is_info_derived; /* ... from its parent's, and from what it executed: UID and inner
			       * PID may be others */
	bool wanted;	      /* asked for by the user: the recording ends with the last of these */
	struct process *next_wanted;
	int pidfd;	/* of an ENDING process: readable when it is gone; -1: it is gone */
	bool hidden;	/* it is not for the user to see */
	bool unread;	/* counted by tracker__unread */
	bool forbidden; /* counted by tracker__forbidden */
	uint32_t relieved_serial; /* `serial` when another thread than the first last executed */
	uint64_t gone_ns;	  /* since when */
	struct process *next_gone, *prev_gone; /* in the order in which they ended */
	struct cgroup *cgroup; /* when it was met, or executed this; NULL: not known */
	uint64_t found_ns;     /* when it was met */
	uint32_t program;      /* that the kernel half was executing when it reported last */
	struct image *exe;     /* that it executed; NULL: not known */
	double cpu_before_s;   /* CPU time used when the recording began, of all threads */
	bool has_cpu_before;
	bool is_joined; /* events have put probes in it since it was forked */

	/* --- what is mapped: tracker_mappings.c --- */
	struct space *space;
	struct mapped *mapped; /* executable mappings, sorted */
	size_t n_mapped;
	struct mapping_times *times;   /* of those that have ended; NULL: none has */
	struct quota_account *account; /* that these are charged to; NULL: none yet */
	uint64_t charged;	       /* bytes */
	bool is_behind;		       /* `space` lacks some of these */
	uint64_t refreshed_ns;	       /* when the mappings were read last */
	uint64_t covered_ns;	       /* when a known mapping was covered last */
	uint64_t changed_ns;	       /* and when that found a change */
	uint32_t fruitless_reads;      /* in a row, for a pc outside of all mappings */
	uint64_t retry_ns; /* when files that did not answer are tried again; 0: never */
	uint32_t retries;  /* in a row */

	uint32_t attached; /* bit n: as of the space, of one that has lost it at its end */

	/* --- what code its addresses are; NULL: nobody has asked yet --- */
	struct code_ancestor ancestors[CODE_ANCESTORS_MAX]; /* since the last exec; nearest first */
	size_t n_ancestors;
	struct places *places;
	struct compiled_code *code;
	struct code_sources *code_sources; /* borrowed: of all processes */

	/* --- its runtimes' probes: tracker_runtimes.c --- */
	uint32_t probed;       /* bit n: probes of runtimes[n] are attached */
	uint32_t pre_attached; /* bit n: ... or some may be, before it is known how to go on */
	uint64_t probed_ticks; /* info.cpu_ticks then */
	bool probes_evaluated; /* whether they fire is known */
};

/* Changes the state of the process. Asserts that the table of transitions allows that. */
void process__enter(struct process *process, enum process_state state);

static inline bool process__is_gone(const struct process *process)
{
	return process->state == PROCESS_GONE;
}

/* Notes that the process runs nothing but its dynamic linker, and that it runs on. A process that
 * has begun to exit stays as it is. */
void process__hold(struct process *process);
void process__let_run(struct process *process);

/* Gives the process, which has no space, its @space: the caller's reference becomes its own. */
void process__take_space(struct process *process, struct space *space);

/* Makes sure of `info`, unless the process is gone. */
void process__read_info(struct process *process);

/* Bit n: runtimes[n] is attached, or was when the process ended. */
uint32_t process__attached(const struct process *process);

/* Returns the mapping that holds @address now, or NULL. mapping_times__find() returns the mapping
 * at another time. */
const struct mapped *process__find(const struct process *process, uint64_t address);

/* Is it the path of `file`: that itself, or with directories in front of it? */
bool path__ends_with(const char *path, const char *file);

/* Where a function begins in the mapped file whose path ends with `file` after a slash, or is that.
 * The mapping of it; NULL: there is none. */
const struct mapped *process__find_symbol(const struct process *process, const char *file,
					  const char *symbol, uint64_t *ret_vaddr);

/* Nothing is mapped any more. */
void process__clear_mapped(struct process *process);

/* The account of the process and its user. NULL without memory. */
struct quota_account *process__account(struct process *process);

/* Replaces what is mapped. @list is taken, also on failure, after which nothing is mapped: -EFBIG
 * if its memory is over the budget. */
int process__set_mapped(struct process *process, struct mapped *list, size_t n);

/* Forgets what code its addresses were: it has ended, or executes something else. */
void process__forget_code(struct process *process);

#endif
