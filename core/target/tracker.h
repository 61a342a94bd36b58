/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_H
#define BRAID_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/mmap_events.h"
#include "core/target/process.h"

/* The profiled processes and their mappings, synchronized with the kernel half: executable
 * mappings, unwind tables, runtimes' instances. */

struct tracker;

/* Reports the source of a runtime's frames of a process, once per process and runtime. */
typedef void (*tracker_source_fn)(void *ctx, struct process *process, const struct runtime *runtime,
				  const char *version, const char *source, const char *reason);

struct tracker_opts {
	struct kernel_half *half;
	struct images *images;
	const struct runtime *const *runtimes;	 /* all runtimes, NULL-terminated */
	struct runtime_session *const *sessions; /* per runtime; NULL: not enabled */
	uint32_t enabled;
	enum runtime_source source;
	bool probes; /* the kernel half has the programs that probes need */
	bool alone;  /* children of processes are not followed */
	bool force;  /* as in struct runtime_target */
	bool urgent; /* children must be added at once: events have probes in each process */
	/* The kernel half finds processes by itself, and most of them are of no interest: each is
	 * read when a sample requests it. NULL: only added processes and their children. */
	const struct scope *scope;
	tracker_source_fn on_source;
	/* Passes pending events of mappings to tracker__on_mmap(). NULL: there are none. */
	void (*take_mmaps)(void *ctx);
	void *ctx;
};

int tracker__new(const struct tracker_opts *opts, struct tracker **ret);
void tracker__free(struct tracker *tracker); /* NULL is fine */

/* Starts to profile a process that the user named. Its mappings must then be read by
 * tracker__refresh(). @starting: the process enters PROCESS_STARTING. Returns 0, or a negative
 * errno with the message in @err. */
int tracker__add(struct tracker *tracker, uint32_t pid, bool starting, struct process **ret,
		 struct err *err);

/* With a scope: makes the kernel half refuse the processes above this one until they execute
 * another program. Returns 0 or a negative errno. */
int tracker__refuse_ancestors(struct tracker *tracker);

/* With a scope: adds the running processes that match it, except this one. Their mappings must then
 * be read. Returns errors as tracker__add_descendants(). */
int tracker__add_scope(struct tracker *tracker);

/* As tracker__add_scope(), for one process. */
int tracker__add_running(struct tracker *tracker, uint32_t pid);

/* Returns true if samples of the process need no further reading, or if a reading was tried. */
bool tracker__has_read(const struct tracker *tracker, uint32_t pid);

/* Returns the number of processes that the kernel half found and whose records are still in the
 * ring. Scans all targets. */
size_t tracker__count_unmet(const struct tracker *tracker);

/* Adds all processes below the tracked ones, except this process. The kernel half must already
 * follow forks. *@ret_n is their number; their mappings must then be read. Returns 0, -ENOMEM, or
 * errors of bpf() or opendir(). */
int tracker__add_descendants(struct tracker *tracker, unsigned *ret_n);

struct process *tracker__find(const struct tracker *tracker, uint32_t pid); /* or NULL */
struct process *tracker__first(const struct tracker *tracker); /* next: process->hh.next */
struct process *
tracker__first_requested(const struct tracker *tracker); /* next: ->next_requested */

/* Process events from the kernel half. Errors that concern one process only are not returned.
 * Return 0, -ENOMEM, or an error of bpf(). */
int tracker__on_fork(struct tracker *tracker, const struct rec_task *rec);
int tracker__on_exec(struct tracker *tracker, struct process *process,
		     const struct rec_program *rec);

/* Adds a process that the kernel half found. If its name does not match the scope, no more samples
 * are taken of it, and no data is stored. */
int tracker__on_found(struct tracker *tracker, const struct rec_program *rec);

/* Handles the end of a process that is not tracked. */
void tracker__on_stranger_exit(struct tracker *tracker, uint32_t pid);

/* Handles a new mapping of code in any process. Ends the mappings that it covers at the time of the
 * event. Stores the file in case the process ends before its mappings are read. *@ret_urgent: the
 * mappings of the process must be read before further samples are processed. Returns 0 or -ENOMEM.
 */
int tracker__on_mmap(struct tracker *tracker, const struct mmap_event *event, bool *ret_urgent);

int tracker__on_mapped(struct tracker *tracker, struct process *process,
		       const struct rec_mapped *rec);

/* Handles a pc outside of all mappings: reads them again, but less often if that did not help
 * recently. */
int tracker__on_unmapped(struct tracker *tracker, struct process *process,
			 const struct rec_unmapped *rec);

/* Handles a pc without a rule: reads the machine code there, and publishes the image's new table
 * for all processes that map it. Returns 0 or -ENOMEM. */
int tracker__on_later(struct tracker *tracker, struct process *process,
		      const struct rec_later *rec);

/* Reads the mappings again and publishes the changes. Returns 0 or -ENOMEM. */
int tracker__refresh(struct tracker *tracker, struct process *process);

/* Must be called once a second. Reads the mappings of all processes, for unnoticed changes. With a
 * scope, reads only processes that were sampled for a second without a reading. */
int tracker__tick(struct tracker *tracker);

/* Frees the data of files that no process maps. Only places of tracked processes may refer to
 * images: no other results of samples, and no attached event. */
void tracker__release_images(struct tracker *tracker);

/* Handles the loss of events of mappings: the next tick reads all mappings. */
void tracker__on_lost(struct tracker *tracker);

/* Tries again to attach runtimes that were not ready, at most once in 50 ms per process. Returns 0
 * or -ENOMEM. */
int tracker__retry(struct tracker *tracker, uint64_t now_ns);

/* Returns true if a process has begun to load a runtime less than a second ago. */
bool tracker__expects_runtime(const struct tracker *tracker, uint64_t now_ns);

/* Returns true if tracker__retry() has something to try again every few milliseconds. */
bool tracker__retries_soon(const struct tracker *tracker);

/* Handles the exit of the last thread of the process. If the user named the process, the caller
 * must watch it until process__has_ended(), and then call tracker__on_end(). */
void tracker__on_exit(struct tracker *tracker, struct process *process);
bool process__has_ended(const struct process *process); /* for an ENDING process */

/* Finds processes that ended unnoticed: before there were events, or while some were lost. */
void tracker__look_for_exits(struct tracker *tracker);

/* Handles the end of the process: no more samples are taken of its PID. Its data stays for pending
 * samples. */
void tracker__on_end(struct tracker *tracker, struct process *process);

/* ns after the end of a process until its last sample is in the ring, if nothing stops the CPU that
 * takes it. The kernel half may be in the middle of that sample at the end. */
#define TRACKER_LAST_SAMPLE_NS 100000000ULL

/* Returns a process whose samples have all been consumed, if all records up to @consumed_ns have
 * been. The caller should pass it to tracker__forget(). NULL: none now. */
struct process *tracker__first_spent(const struct tracker *tracker, uint64_t consumed_ns);

/* Frees the process. */
void tracker__forget(struct tracker *tracker, struct process *process);

/* Marks all processes as having probes of events. */
void tracker__join(struct tracker *tracker);

/* Returns the number of processes that ended before tracker__join(), or before their mappings were
 * read. */
uint32_t tracker__unprobed(const struct tracker *tracker);

/* Returns the serial number that was assigned last. */
uint32_t tracker__last_serial(const struct tracker *tracker);

/* Returns a number that grows when a process is added, executes a program, or ends. */
uint64_t tracker__changes(const struct tracker *tracker);

/* Returns the number of tracked processes, including those that are gone. */
size_t tracker__count(const struct tracker *tracker);
size_t tracker__count_living(const struct tracker *tracker); /* without those that are gone */

/* Returns the costs of hits of all probes that were attached so far: bit n for enum trap_kind n. */
uint32_t tracker__traps(const struct tracker *tracker);

/* Returns true if probes are attached in any process. */
bool tracker__has_probes(const struct tracker *tracker);

/* Evaluates all probes that were hit often enough for certainty, and detaches dead ones. */
void tracker__evaluate_hits(struct tracker *tracker);

/* Detaches all probes permanently, as they cost too much; @why is the reason. Processes, including
 * new ones, are walked if their runtimes can be walked. Otherwise they have no frames of these
 * runtimes. */
void tracker__give_up_probes(struct tracker *tracker, const char *why);

/* Detaches all probes. */
void tracker__stop_probes(struct tracker *tracker);

/* Returns the number of processes that were not completely read or published, for lack of
 * descriptors or memory. */
uint64_t tracker__unread(const struct tracker *tracker);

/* Processes whose mappings must not be read. */
struct tracker_forbidden {
	uint64_t processes;
	uint32_t pid; /* PID of the first */
	char name[32];
	int code;
};

const struct tracker_forbidden *tracker__forbidden(const struct tracker *tracker);

unsigned tracker__count_requested(const struct tracker *tracker); /* those that are still alive */

#endif
