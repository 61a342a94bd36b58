/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRACKER_H
#define BRAID_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/mmap_events.h"
#include "core/target/process.h"

/* The processes that are being profiled, with what is mapped where, kept in step with the kernel
 * half: executable mappings, unwind tables, runtimes' instances. */

struct tracker;

/* How a runtime's frames of a process are found; reported once per process and runtime. */
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
	bool alone;  /* children of processes are not followed */
	bool force;  /* as in struct runtime_target */
	bool urgent; /* a child is to be known at once: events have probes in each process */
	/* The kernel half finds processes by itself, and most of them are of no interest: each is
	 * looked at when a sample wants that. NULL: those that are added, and their children. */
	const struct scope *scope;
	tracker_source_fn on_source;
	/* Passes the events of mappings that have come by now to tracker__on_mmap. NULL: there are
	 * none. */
	void (*take_mmaps)(void *ctx);
	void *ctx;
};

int tracker__new(const struct tracker_opts *opts, struct tracker **ret);
void tracker__free(struct tracker *tracker); /* NULL is fine */

/* Begins to profile a process that the user asked for; its mappings are yet to be read by
 * tracker__refresh. `starting` as in struct process. A negative errno comes with the sentence in
 * `err`. */
int tracker__add(struct tracker *tracker, uint32_t pid, bool starting, struct process **ret,
		 struct err *err);

/* With a scope: has the kernel half refuse the processes above this one, until they execute
 * something else. 0 or a negative errno */
int tracker__refuse_ancestors(struct tracker *tracker);

/* With a scope: adds those that it takes of the processes that run, but not this one. Their
 * mappings are yet to be read. Errors as of the next. */
int tracker__add_scope(struct tracker *tracker);

/* The same of one process. */
int tracker__add_running(struct tracker *tracker, uint32_t pid);

/* Returns true if samples of the process need nothing that is yet to be read, or if it was tried.
 */
bool tracker__has_read(const struct tracker *tracker, uint32_t pid);

/* Returns the number of processes that the kernel half has found and whose records have not been
 * taken from the ring. Looks at all targets. */
size_t tracker__count_unmet(const struct tracker *tracker);

/* Adds all processes below those that are known, but not this process. The kernel half must follow
 * forks by now. `ret_n`: how many; their mappings are yet to be read. -ENOMEM, what bpf() returned,
 * or as of opendir. */
int tracker__add_descendants(struct tracker *tracker, unsigned *ret_n);

struct process *tracker__find(const struct tracker *tracker, uint32_t pid); /* or NULL */
struct process *tracker__first(const struct tracker *tracker);	      /* then process->hh.next */
struct process *tracker__first_wanted(const struct tracker *tracker); /* then ->next_wanted */

/* Events from the kernel half. Errors that concern one process only are not errors here: -ENOMEM,
 * or what bpf() returned. */
int tracker__on_fork(struct tracker *tracker, const struct rec_task *rec);
int tracker__on_exec(struct tracker *tracker, struct process *process,
		     const struct rec_program *rec);

/* A process that the kernel half has found, unless its name is not wanted: then nothing is known of
 * it, and no more samples are taken. */
int tracker__on_found(struct tracker *tracker, const struct rec_program *rec);

/* A process of which nothing is known has ended. */
void tracker__on_stranger_exit(struct tracker *tracker, uint32_t pid);

/* Some process has mapped code. What that covers ends at the time of the event, and the file is
 * noted in case the process ends before its mappings are read. @ret_urgent: the mappings of the
 * process are to be read before further samples are looked at. -ENOMEM. */
int tracker__on_mmap(struct tracker *tracker, const struct mmap_event *event, bool *ret_urgent);

int tracker__on_mapped(struct tracker *tracker, struct process *process,
		       const struct rec_mapped *rec);

/* A pc lies in no known mapping: reads them again, but seldom where that did not help lately. */
int tracker__on_unmapped(struct tracker *tracker, struct process *process,
			 const struct rec_unmapped *rec);

/* A pc has no rule yet: reads the machine code there, and publishes the image's new table for all
 * processes that map it. -ENOMEM. */
int tracker__on_later(struct tracker *tracker, struct process *process,
		      const struct rec_later *rec);

/* Reads the mappings again and passes on what changed. -ENOMEM. */
int tracker__refresh(struct tracker *tracker, struct process *process);

/* Once a second: reads the mappings of all processes, for changes that went unnoticed; with a scope
 * only of those that have been sampled for a second without being looked at. */
int tracker__tick(struct tracker *tracker);

/* Forgets what is known of files that no process maps any more. Only places of known processes may
 * refer to images, nothing else that was made of samples, and no event that is attached in them. */
void tracker__release_images(struct tracker *tracker);

/* Notices of mappings were lost: the next tick reads them all. */
void tracker__on_lost(struct tracker *tracker);

/* Tries again where it was too early to decide on a runtime, not too often. 0 or -ENOMEM. */
int tracker__retry(struct tracker *tracker, uint64_t now_ns);

/* The last thread of the process has begun to exit. One that is wanted is to be watched until
 * process__has_ended, and then reported by tracker__on_gone. */
void tracker__on_exit(struct tracker *tracker, struct process *process);
bool process__has_ended(const struct process *process); /* of an ENDING process */

/* Finds those that have ended unnoticed: before there were events, or while some were lost. */
void tracker__look_for_exits(struct tracker *tracker);

/* The process has ended: no more samples are taken of its PID. What is known of it stays, for those
 * that are under way. */
void tracker__on_gone(struct tracker *tracker, struct process *process);

/* The kernel half may be in the middle of a process's last sample when the process is gone: that is
 * in the ring so much later, if nothing stops the CPU that takes it. */
#define TRACKER_LAST_SAMPLE_NS 100000000ULL

/* A process of which all samples have been consumed, if all that was in the ring at `consumed_ns`
 * has been: to be forgotten. NULL: none now. */
struct process *tracker__first_spent(const struct tracker *tracker, uint64_t consumed_ns);

/* Frees the process. */
void tracker__forget(struct tracker *tracker, struct process *process);

/* Marks all processes as having probes of events by now. */
void tracker__join(struct tracker *tracker);

/* Returns how many processes have ended before tracker__join(), or unread. */
uint32_t tracker__unprobed(const struct tracker *tracker);

/* Returns the serial number that a process got last. */
uint32_t tracker__last_serial(const struct tracker *tracker);

/* Returns a number that grows when a process is added, executes a program, or ends. */
uint64_t tracker__changes(const struct tracker *tracker);

/* How many are known, with those that are gone but not forgotten. */
size_t tracker__count(const struct tracker *tracker);
size_t tracker__count_living(const struct tracker *tracker); /* without these */

/* Bit n: hits of probes that were attached so far cost what enum trap_kind n does. */
uint32_t tracker__traps(const struct tracker *tracker);

/* Are probes attached anywhere? */
bool tracker__has_probes(const struct tracker *tracker);

/* Of all probes that have been hit often enough to be sure: gives up those that are dead. */
void tracker__evaluate_hits(struct tracker *tracker);

/* Detaches all probes for good, as they cost too much: `why`. Processes, also new ones, go on by
 * walking where their runtimes can be walked, else without frames of these. */
void tracker__give_up_probes(struct tracker *tracker, const char *why);

/* Detaches all probes. */
void tracker__stop_probes(struct tracker *tracker);

/* Processes of which not all could be read or passed on, for want of descriptors or memory. */
uint64_t tracker__unread(const struct tracker *tracker);

/* Processes whose mappings may not be read. */
struct tracker_forbidden {
	uint64_t processes;
	uint32_t pid; /* of the first */
	char name[32];
	int code;
};

const struct tracker_forbidden *tracker__forbidden(const struct tracker *tracker);

unsigned tracker__count_wanted(const struct tracker *tracker); /* that still live */

#endif
