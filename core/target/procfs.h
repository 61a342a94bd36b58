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

#define PROCFS_PATH_BYTES 256 /* bytes of a path below procfs__root(), except paths of files */

/* A recorded process that replaces the live system: files as in /proc, and memory. A core file is
 * attached by core/target/target_view.h. */
struct procfs_source {
	const char *root; /* laid out as /proc: PID/maps, PID/root, ...; at most 128 bytes */
	const struct memory *memory; /* NULL: memory of the live process */
};

/* Makes @source replace the live system; NULL: the live system again. @source is borrowed
 * meanwhile. */
void procfs__use(const struct procfs_source *source);

bool procfs__is_recorded(void); /* true if something replaces the live system */

/* Returns "/proc", or its replacement. Every path of a target begins with it. */
const char *procfs__root(void);

/* Returns the id under which the process is readable. If the first thread has ended, it is another
 * thread's (core/base/living_task.h). The caller must use the id at once, as that thread may end,
 * too. */
uint32_t procfs__living(uint32_t pid);

/* Opens a file of the process's directory, even if some of its threads have ended. Returns a
 * descriptor or a negative errno. */
int procfs__open(uint32_t pid, const char *name, int flags);

/* Facts about a process in /proc. */
struct procfs_info {
	uint32_t pid; /* PID of the process, even for the id of another of its threads */
	uint32_t parent_pid;
	uint32_t inner_pid;   /* PID in its own PID namespace */
	uint32_t uid;	      /* effective UID */
	uint64_t start_ticks; /* since boot; with the PID it identifies one incarnation */
	uint64_t cpu_ticks;   /* CPU time of all its threads, in sysconf(_SC_CLK_TCK) */
	char state;	      /* 'R', 'S', 'Z', ...; another thread's if the first has ended */
	bool kernel_thread;
	char name[32];
	char command[512]; /* arguments joined by blanks, control characters as '?'; may be cut */
};

/* Sets @ret->command to the arguments, which are terminated by NUL as in /proc/PID/cmdline, or to
 * the name if there are none. */
void procfs__join_arguments(const char *arguments, size_t len, struct procfs_info *ret);

/* Replaces control characters: a process chooses its own name and arguments, which must not steer a
 * terminal. */
void procfs__make_printable(char *text, size_t len);

/* Reads the facts about the process of thread @id. Returns 0; -ESRCH: no such process; errors of
 * open() and read(). Errors set the message in @err. */
int procfs__info(uint32_t id, struct procfs_info *ret, struct err *err);

/* Reads only the facts of /proc/PID/stat: parent, start, CPU time, state, name. One file instead of
 * three. Returns 0, -ESRCH, or errors of open() and read(). */
int procfs__usage(uint32_t pid, struct procfs_info *ret);

/* Returns the state of this thread alone, as a letter of proc(5) such as 'R'; '\0': no such thread.
 */
char procfs__thread_state(uint32_t tid);

/* Returns the run time of the thread, as the scheduler counts it (se.sum_exec_runtime); 0: unknown.
 */
uint64_t procfs__thread_exec_ns(uint32_t tid);

/* Returns the stack pointer of the program's first instruction; 0: unknown. */
uint64_t procfs__start_stack(uint32_t pid);

uint32_t procfs__parent(uint32_t pid); /* 0: none in this PID namespace, or no such process */

/* Checks that PIDs in /proc are those of braid's PID namespace. Returns 0, or -EINVAL with the
 * message in @err. */
int procfs__check_numbers(struct err *err);

/* Reads the facts about a process, and refuses processes that cannot be profiled. Returns 0 or,
 * with the message in @err: -ESRCH; -EINVAL: a kernel thread or a zombie, or a /proc of another PID
 * namespace; -EPERM: not visible to this user (privilege.h). */
int procfs__target(uint32_t id, struct procfs_info *ret, struct err *err);

/* Copies the path of the process's cgroup of version 2, below the root of braid's cgroup namespace.
 * Returns 0, or a negative errno if the process is gone or there is no version 2. */
int procfs__cgroup(uint32_t pid, char *ret, size_t size);

/* Returns the CPU time in seconds of all threads of a process, including ended ones; 0: no such
 * process. */
double procfs__cpu_s(uint32_t pid);

/* Opens the directory that stands for "/" in the paths of a process. Returns an O_PATH descriptor
 * or a negative errno. */
int procfs__open_root(uint32_t pid);

/* Opens the list of mappings of a process. The caller must close it. Returns 0; -ESRCH: the process
 * has none any longer; or another negative errno. */
int procfs__open_maps(uint32_t pid, FILE **ret);

struct procfs_mapping { /* an executable mapping */
	uint64_t start, end;
	uint64_t offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool anonymous; /* no file to open: JIT code, or "[vdso]" */
	bool vdso;
	bool is_program; /* no mapping, but the file that the process executes; has no addresses */
	char *path;	 /* as the target sees it, without "(deleted)"; "" for anonymous memory */
	/* The nearest mappings of files below and above, with any permissions: 1 + their index in
	 * procfs_mappings.files; 0: none. */
	uint32_t below, above;
	uint64_t adjoining; /* start of the mapping that ends where this one starts; 0: none */
};

struct procfs_mappings {
	struct procfs_mapping *list; /* sorted by start */
	size_t n, cap;
	struct procfs_mapping *files; /* neighbours of `list`, sorted by start */
	size_t n_files, cap_files;
	uint64_t context; /* start of the mapping with a process context
			   * (core/target/process_context.h); 0: none */
	bool is_cut;	  /* truncated: there are more mappings than the limit */
};

/* Returns the length of the kernel's name of a file, without the " (deleted)" of a deleted one. */
size_t procfs__path_bytes(const char *path);

/* Reads the executable mappings of a process, and shared memory that may become executable again.
 * Anonymous ones include the reserved memory behind them. Returns 0; -ESRCH: the process is gone;
 * -EFBIG or -EINTR as quota__look(), which charges the time to the entered account. */
int procfs__mappings(uint32_t pid, struct procfs_mappings *ret);

/* As procfs__mappings(), from any text in that format. Skips malformed lines. */
int procfs__parse_mappings(FILE *maps, struct procfs_mappings *ret);
void procfs_mappings__done(struct procfs_mappings *mappings); /* idempotent */

/* Finds the file of a mapping through map_files, which is right even if the file was deleted or
 * replaced. Otherwise uses the target's root directory. If the target has just ended, uses the path
 * in braid's root if it is the same file. Returns 0 or a negative errno. */
int procfs__find_mapping(uint32_t pid, const struct procfs_mapping *mapping,
			 struct target_file *ret);

/* As procfs__find_mapping(), through map_files only. */
int procfs__find_map_file(uint32_t pid, uint64_t start, uint64_t end, struct target_file *ret);

/* Finds and opens the file. Returns a descriptor or a negative errno. */
int procfs__open_mapping(uint32_t pid, const struct procfs_mapping *mapping);

/* Returns the real time in seconds from which on a process that started at @start_ticks may have
 * written a file. A file with an older time belongs to a former process of the same PID. */
int64_t procfs__begin_s(uint64_t start_ticks);

/* Returns true if the process has written a perf map (/tmp/perf-PID.map in its root). */
bool procfs__has_perf_map(uint32_t pid);

/* Returns the last number of a line such as "NSpid:\t7\t1", which is the id in the innermost PID
 * namespace; 0: the line has none. */
uint32_t procfs__inner_id(const char *line);

/* Returns the id of the thread in its own PID namespace, which is the id that the process itself
 * uses. Returns @tid if unavailable. */
uint32_t procfs__namespace_tid(uint32_t pid, uint32_t tid);

/* Copies @size bytes of a process's memory. Returns false if a part is unreadable, or if a stop is
 * due (core/base/stop.h), so that a walk along an endless list ends. */
bool procfs__read_memory(uint32_t pid, uint64_t address, void *to, size_t size);

#endif
