/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCFS_H
#define BRAID_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/base/maps_line.h"
#include "core/files/target_file.h"

struct memory;

#define PROCFS_PATH_BYTES 256 /* of a path below procfs__root(), but for those of files */

/* A recorded process that stands in for the live system: files as in /proc, and memory. A core file
 * stands in by core/target/target_view.h. */
struct procfs_source {
	const char *root; /* laid out as /proc: PID/maps, PID/root, ...; at most 128 bytes */
	const struct memory *memory; /* NULL: that of the live process */
};

/* `source` is borrowed for as long as it stands in; NULL: the live system again. */
void procfs__use(const struct procfs_source *source);

bool procfs__is_recorded(void); /* something stands in for the live system */

/* "/proc", or what stands in for it. Every path of a target begins with it. */
const char *procfs__root(void);

/* The id under which the process can be read, which is another thread's if the first one has ended
 * (core/base/living_task.h). For whoever makes a path of it at once: that thread may end, too. */
uint32_t procfs__living(uint32_t pid);

/* Opens a file of the process's directory, whichever of its threads has ended. An fd or a negative
 * errno. */
int procfs__open(uint32_t pid, const char *name, int flags);

/* What /proc tells of a process. */
struct procfs_info {
	uint32_t pid; /* of the process, also when asked with the id of another of its threads */
	uint32_t parent_pid;
	uint32_t inner_pid;   /* in its own PID namespace */
	uint32_t uid;	      /* effective */
	uint64_t start_ticks; /* since boot; with the pid it names one incarnation */
	uint64_t cpu_ticks;   /* used by all its threads, in sysconf(_SC_CLK_TCK) */
	char state;	      /* 'R', 'S', 'Z', ...; another thread's if the first has ended */
	bool kernel_thread;
	char name[32];
	char command[512]; /* arguments joined by blanks, control characters as '?'; maybe cut */
};

/* Sets `ret->command`: `arguments` are as /proc/PID/cmdline has them, each with a NUL. If there are
 * none, it is the name. */
void procfs__join_arguments(const char *arguments, size_t len, struct procfs_info *ret);

/* A process chooses its own name and arguments: they must not steer a terminal. */
void procfs__make_printable(char *text, size_t len);

/* `id` may be any thread's id: what is told is its process's. -ESRCH: no such process; others as of
 * open and read. */
int procfs__info(uint32_t id, struct procfs_info *ret, struct err *err);

/* Only what /proc/PID/stat has: parent, start, CPU time, state, name. One file instead of three.
 * -ESRCH, or as of open and read. */
int procfs__usage(uint32_t pid, struct procfs_info *ret);

/* Of the thread alone, where procfs__info is about its process: the letter of proc(5), such as 'R'.
 * '\0': there is no such thread. */
char procfs__thread_state(uint32_t tid);

/* How long the thread has run, as the scheduler counts (se.sum_exec_runtime). 0: not known. */
uint64_t procfs__thread_exec_ns(uint32_t tid);

/* Returns the stack pointer of the program's first instruction; 0: unknown. */
uint64_t procfs__start_stack(uint32_t pid);

uint32_t procfs__parent(uint32_t pid); /* 0: none in this PID namespace, or no such process */

/* Do PIDs mean the same there and here? -EINVAL with the sentence: it is the /proc of another PID
 * namespace. */
int procfs__check_numbers(struct err *err);

/* Refuses what cannot be profiled: -ESRCH, a kernel thread or a zombie, all where /proc is that of
 * other PIDs than braid's (-EINVAL), and what is not for this user to see (-EPERM: privilege.h),
 * with the sentence. */
int procfs__target(uint32_t id, struct procfs_info *ret, struct err *err);

/* The path of its cgroup of version 2, below the root of braid's cgroup namespace. A negative
 * errno: it is gone, or there is no version 2. */
int procfs__cgroup(uint32_t pid, char *ret, size_t size);

/* CPU time in seconds that all threads of a process have used, also those that have ended. 0: there
 * is no such process. */
double procfs__cpu_s(uint32_t pid);

/* What stands for "/" in the paths of a process: an O_PATH descriptor, or a negative errno. */
int procfs__open_root(uint32_t pid);

/* Opens the list of mappings of a process, for the caller to close. -ESRCH: it has none any more.
 */
int procfs__open_maps(uint32_t pid, FILE **ret);

struct procfs_mapping { /* an executable one */
	uint64_t start, end;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool anonymous; /* nothing to open: JIT code, or "[vdso]" */
	bool vdso;
	char *path; /* as the target sees it, "(deleted)" taken off; "" for anonymous memory */
	/* The nearest mappings of files below and above, whatever their permissions: 1 + their
	 * index in procfs_mappings.files; 0: none. */
	uint32_t below, above;
	uint64_t adjoining; /* start of the mapping that ends where this one starts; 0: none */
};

struct procfs_mappings {
	struct procfs_mapping *list; /* sorted by start */
	size_t n, cap;
	struct procfs_mapping *files; /* neighbours of `list`, sorted by start */
	size_t n_files, cap_files;
	bool is_cut; /* there are more than are read */
};

/* Executable mappings of a process, and shared memory that may be so again in a moment; anonymous
 * ones with what is reserved behind them. -ESRCH when it is gone; -EFBIG or -EINTR as
 * quota__look(), which charges the time to the entered account. */
int procfs__mappings(uint32_t pid, struct procfs_mappings *ret);

/* The same from any text of that form; lines that make no sense are left out. */
int procfs__parse_mappings(FILE *maps, struct procfs_mappings *ret);
void procfs_mappings__done(struct procfs_mappings *mappings); /* idempotent */

/* The file behind a mapping: through map_files (right even if it was deleted or replaced), else
 * through the target's root directory, else (the target has just ended) by its path here, if that
 * is the very same file. 0, or a negative errno. */
int procfs__find_mapping(uint32_t pid, const struct procfs_mapping *mapping,
			 struct target_file *ret);

/* The same by map_files alone. */
int procfs__find_map_file(uint32_t pid, uint64_t start, uint64_t end, struct target_file *ret);

/* Finds and opens it at once: an fd, or a negative errno. */
int procfs__open_mapping(uint32_t pid, const struct procfs_mapping *mapping);

/* Returns the real time in seconds from which on a process that started at @start_ticks may have
 * written a file. A file with an older time is of a former process of the same PID. */
int64_t procfs__begin_s(uint64_t start_ticks);

/* Has the process written a perf map (/tmp/perf-PID.map, where it sees that)? */
bool procfs__has_perf_map(uint32_t pid);

/* Returns the last number of a line such as "NSpid:\t7\t1", which is the id in the innermost PID
 * namespace; 0: the line has none. */
uint32_t procfs__inner_id(const char *line);

/* The thread's number in its own PID namespace, which is what the process itself knows; `tid` where
 * that cannot be told. */
uint32_t procfs__namespace_tid(uint32_t pid, uint32_t tid);

/* Copies `size` bytes of a process's memory. False: not all of it can be read, or a stop is due
 * (core/base/stop.h), so that a walk along a list without an end ends. */
bool procfs__read_memory(uint32_t pid, uint64_t address, void *to, size_t size);

#endif
