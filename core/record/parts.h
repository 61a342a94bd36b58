/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORD_PARTS_H
#define BRAID_RECORD_PARTS_H

/* A session is made of parts. Each part is a struct below, owned by one file: only that file
 * changes its members, others may read them. A part has functions for the four phases of a
 * session. session.c and loop.c have these functions in tables, in the order in which they run:
 *
 *   open    session.c  parts[]        once; on failure every part is closed, the last one first
 *   round   loop.c     on_round[]     at least every 100 ms: feeds are emptied, then followed up
 *   tick    loop.c     on_tick[]      once a second: names, counters, commit, rotation, limits
 *   finish  session.c  session__finish()   sampling stops, the rest is recorded, the file closed
 *
 *   file           part                task
 *   session.c      code                opens, finishes, closes
 *   loop.c         loop                polls; rounds and ticks; decides when it is over
 *   targets.c      targets             which processes are recorded
 *   command.c      command             starts a command, follows it through each exec
 *   ring.c         ring, mappings      the feeds: records of the kernel half, events of mappings
 *   output.c       output              the sink: a recording, a directory of these, a live profile
 *   counters.c     publishing          figures about the recording: written to it, and published
 *   limit.c        limit               --max-overhead
 *   ahead.c        ahead               processes of a scope, read before a sample finds them
 *   parked.c       parked              tasks that are on no thread
 *   waiting.c      waiting             threads that wait at the beginning and at the end
 *   under_way.c    -                   threads in a system call or a lock's wait at the end
 *   outstanding.c  outstanding         allocations that are not freed at the end */

#include <poll.h>
#include <signal.h>

#include "core/kernel/mmap_events.h"
#include "core/kernel/table_arena.h"
#include "core/kernel/waiting.h"
#include "core/record/calls.h"
#include "core/record/governor.h"
#include "core/record/routing.h"
#include "core/record/session.h"
#include "core/record/stopper.h"
#include "core/service/metrics.h"
#include "core/service/recording_dir.h"
#include "core/store/recording.h"
#include "core/target/child.h"
#include "core/target/read_ahead.h"

#define TARGET_BYTES 400

/* Programs held at a time while their dynamic linkers work. Further programs run without waiting
 * for their tables. */
#define SESSION_HOLDS_MAX 8

/* A record to be routed after everything that is in the ring. */
struct pending_record {
	struct pending_record *next;
	size_t size;
	uint64_t data[]; /* aligned as in the ring */
};

/* Appends a copy of a record to a list. @ctx: address of the list's end, which the call advances.
 * Returns 0 or -ENOMEM. */
int waiting_sample__append(void *ctx, const void *data, size_t size);

uint32_t pending_record__type(const struct pending_record *pending); /* REC_* */

/* The end of a process, or of the program that it executed. */
struct session_end_of {
	uint32_t pid;
	uint64_t time_ns;
};

struct session_code {
	struct images *images;
	struct table_arena *arena;
	char *cache_dir;
};

struct session_targets {
	struct scope *scope;	 /* NULL: processes are named, or started */
	struct trigger *trigger; /* NULL: none */
	char text[TARGET_BYTES]; /* for people */
	unsigned n_children;	 /* running processes below the targets of -p, at the start */
};

struct session_command {
	struct child child;
	int status; /* as from wait, once the command has ended */
	struct hold
		holds[SESSION_HOLDS_MAX]; /* programs that the command and its children execute */
	uint64_t follow_until_ns;	  /* launchers stay traced until then */
	unsigned n_forks;		  /* forks of traced launchers */
	struct rlimit users_files;	  /* limit of open files, which the command gets back */
};

struct session_output {
	struct recording *recording; /* the directory's, if there is one; NULL: a live profile */
	struct recording_dir *dir;   /* NULL: one file */
	struct capture_event sampled[EVENTS_MAX]; /* names and units of the events */
	bool fetches;				  /* names from debug servers */
	struct capture_stats in_file;		  /* sums of the recording up to its last commit */
	uint64_t start_ns;	 /* start of the current recording; CLOCK_MONOTONIC */
	int64_t clock_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC, at start_ns */
};

struct session_publishing {
	struct metrics *metrics; /* NULL: none */
	/* Cumulative counters when the current recording began, and when they were last written. */
	uint64_t before[COUNTERS_N], written[COUNTERS_N];
	/* Number of files that could not be opened in finished recordings, and in this one. */
	unsigned unread, unread_written;
	struct capture_stats finished; /* sums over recordings that are finished */
	uint64_t finished_counters[COUNTERS_N];
	uint64_t losses[COUNTERS_N]; /* as last published */
};

struct session_ring {
	struct ring_buffer *buffer;
	struct err err;
	int ret;	   /* negative: error of a callback while the ring was consumed */
	uint64_t until_ns; /* records of later samples stay in the ring */
	uint64_t end_ns;   /* consuming pauses then, for the loop's other work */
	bool is_lagging;   /* it paused before all was consumed */
};

struct session_mappings {
	struct mmap_events *events; /* NULL: unavailable */
	uint32_t *pids;		    /* processes that have mapped code; owned */
	size_t n, cap;
	bool is_urgent; /* mappings are read again before the next sample is routed */
};

struct session_outstanding {
	struct session_end_of *ends; /* in the order of the ring; owned */
	size_t n, cap;
};

struct session_waiting {
	struct waiting_lister *lister;	/* NULL: not needed yet */
	struct pending_record *samples; /* samples of threads that wait at the end; owned */
};

struct session_parked {
	uint64_t last_ns, next_ns; /* time of the last round of samples, and of the next one */
	uint64_t n_moved;	   /* tasks that ran while they were read */
};

struct session_loop {
	enum session_end end;
	uint64_t now_ns;    /* when the round or tick began */
	uint64_t tick_ns;   /* the last tick */
	double cpu_s;	    /* own_cpu_s() at cpu_ns */
	uint64_t cpu_ns;    /* the last report of progress */
	uint64_t last_file; /* number of the last file that events have seen */
	uint64_t woken_ns;  /* when poll last returned an event; 0: it returned none */
	struct pollfd
		*polled; /* POLLED_FIRST others, then processes that are about to end; owned */
	size_t n_polled, cap_polled;
	int n_loaded;	      /* walkers loaded before a process needed them */
	uint64_t lost_events; /* count of lost events at the last search for exits, + 1 */
};

struct session_ahead {
	struct read_ahead *reader; /* NULL: processes are named */
	struct session_lag lag;
	uint32_t unread;  /* processes, at the last tick */
	bool is_reported; /* on_note was called with the lag */
};

struct session_limited {
	struct governor *governor; /* NULL: no limit for probes */
	uint64_t exceeded_ns;	   /* when probes were detached; 0: they were not */
	char why[RUNTIME_REASON_BYTES];
	struct pace pace;
	double cpu_s; /* own_cpu_s() at the last tick; 0: before the first one */
};

struct session {
	struct session_opts opts;
	uint64_t start_ns, end_ns; /* start and end of sampling; CLOCK_MONOTONIC */
	struct stopper *stopper;
	struct kernel_half *half;
	struct events *events;
	struct runtime_session *runtime_sessions[RUNTIMES_MAX];
	struct tracker *tracker;
	struct capture *capture;
	struct routing routing;
	struct session_code code;
	struct session_targets targets;
	struct session_command command;
	struct session_ring ring;
	struct session_mappings mappings;
	struct session_output output;
	struct session_publishing publishing;
	struct session_limited limit;
	struct session_ahead ahead;
	struct session_waiting waiting;
	struct session_parked parked;
	struct session_outstanding outstanding;
	struct session_loop loop;
};

double own_cpu_s(void); /* user and system time of this process */

/* Returns true if events have probes in each process, which children must get at once. */
bool session__is_urgent(const struct session *session);

/* Returns the facts about the session that events use. */
struct event_place session__place(const struct session *session);

/* Returns the current time, or the end of sampling if it is over. */
uint64_t session__now_ns(const struct session *session);

/* Records everything that is in the ring at the time of the call, and nothing newer: if samples
 * arrive faster than stack copies are unwound, the ring is never empty. Stops early if that takes
 * long. Then ring.is_lagging is set, and the loop checks the clock first. */
int session__consume(struct session *session, struct err *err);

/* After the end of sampling: records everything in the ring. Stack copies are unwound for at most
 * DRAIN_NS. */
int session__drain(struct session *session, struct err *err);

/* Lets the next session__consume() fail with @ret and the message in @err. For callbacks. */
void session__fail_consuming(struct session *session, int ret, const struct err *err);

/* Maps the ring, and subscribes to events of mappings. */
int session__open_ring(struct session *session, struct err *err);
void session__close_ring(struct session *session);

/* Starts the clocks of ticks and of progress. */
int session__begin_loop(struct session *session, struct err *err);

/* Adds the processes that the user named, or forks the one that will execute the command. */
int session__add_targets(struct session *session, struct err *err);

/* Checks once a second whether the user's scope still exists. */
void session__look_at_scope(struct session *session);

/* Reads the mappings of running targets, and finds their runtimes. */
int session__refresh_targets(struct session *session, struct err *err);

/* Returns true if nothing is left to be read ahead. */
bool session__has_read_ahead(const struct session *session);

/* With a scope: lists the processes that use CPU time, and reads as many as the time before the
 * first sample allows. */
int session__begin_ahead(struct session *session, struct err *err);

/* In each round: reads more of these processes for a moment. */
int session__read_ahead(struct session *session, struct err *err);

/* Once a second: lists processes anew while the recording is young, and records whether braid lacks
 * CPU time to read them. @elapsed_ns: since the last tick. */
int session__watch_ahead(struct session *session, uint64_t now, uint64_t elapsed_ns,
			 struct err *err);

/* Writes to the recording that braid lacked CPU time, if it did. */
int session__write_lag(struct session *session, struct err *err);

/* Finds the process of a thread that user space samples, with its mappings. `*ret` is NULL if the
 * process is not recorded. Returns 0 or -ENOMEM. */
int session__find_process(struct session *session, uint32_t pid, struct process **ret);

/* Executes the command, and lets it run when its libraries are read. Its time counts from the exec.
 */
int session__start_command(struct session *session, struct err *err);

/* Holds a process that has executed a program while the record is routed, if it belongs to a
 * command and its file is new. Returns the hold, for hold__go_on, or NULL if the process runs on.
 */
struct hold *session__hold(struct session *session, const struct rec_program *rec);

/* Follows held programs in each round, and lets them run when their libraries are read. */
int session__follow_holds(struct session *session, struct err *err);

/* Returns true if a program is held while its libraries are mapped. */
bool session__is_linking(const struct session *session);

/* Collects the status of the command if @pid is its number and it has ended. */
void session__reap_command(struct session *session, uint32_t pid);

/* Lets all held programs run. */
void session__release_holds(struct session *session);

/* Attaches probes that depend on the targets' mappings, which are read by now. */
int session__attach_in_targets(struct session *session, struct err *err);

/* Reads the events of mappings that have come, of any process. @ctx: the session. */
void session__take_mmaps(void *ctx);

/* Starts the time of the recording. */
int session__begin(struct session *session, struct err *err);

/* Attaches probes that depend on mappings, starts sampling, makes the first commit, and lets the
 * command run. The commit moves the recording to its path; it is the last step that can fail. */
int session__start_targets(struct session *session, struct err *err);

/* Creates the recording, unless the session has a live profile, and then capture. */
int session__open_output(struct session *session, struct err *err);

/* A tracker_source_fn; `ctx` is the session. */
void session__on_source(void *ctx, struct process *process, const struct runtime *runtime,
			const char *version, const char *source, const char *reason);

/* Returns the current recording's counters: sums over all CPUs, less the stacks that were cut in
 * the kernel half but completed from a stack copy. */
void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N]);

/* Ends the recording's figures with the counters that were last written, and adds them to the sums
 * of finished recordings. The next recording counts from these counters on. */
void session__end_file(struct session *session);

/* Writes the kinds of frames, and the facts that exist at a recording's start. */
int session__write_head(struct session *session, struct err *err);

/* Creates the recording, in the directory if there is one. */
int session__create_recording(struct session *session, struct err *err);

/* Ends the recording. Idempotent. */
int session__close_recording(struct session *session, struct err *err);
void session__discard_recording(struct session *session);

/* Starts the time of the current recording. */
void session__begin_file(struct session *session, uint64_t now);

/* At a tick: begins the next recording if it is time. */
int session__rotate(struct session *session, uint64_t now, struct err *err);

/* Publishes braid's current state and cost, if metrics are requested. */
int session__publish(struct session *session, struct err *err);

/* Adds the sums over all finished recordings. */
void session__add_finished(const struct session *session, struct capture_stats *stats,
			   uint64_t counters[COUNTERS_N]);

/* Lets events follow changes of the targets. */
int session__follow(struct session *session, struct err *err);

/* Samples tasks that are on no thread, if the time has come. @last: at the end of the recording. */
int session__sample_parked(struct session *session, bool last, struct err *err);

/* No valid address: a rule that needs the register ends the task's stack. */
#define UNKNOWN_TASK_REG 0xdead000000000000ULL

/* Attaches the programs that events of waiting need for the targets' threads, before sampling
 * starts. */
int session__prepare_waiting(struct session *session, struct err *err);

/* At start_ns: enters the threads that wait into the kernel half's map, if an event is about
 * waiting. */
int session__note_waiting(struct session *session, struct err *err);

/* Returns STATE_STOPPED for a thread that a signal or a tracer has stopped, else STATE_BLOCKED. */
uint32_t session__waiting_state(uint32_t tid);

/* After end_ns, while the kernel half reports threads that wake up: sample the threads that are in
 * a system call or wait for a lock, and the threads that still wait. */
int session__sample_under_way(struct session *session, struct err *err);
int session__sample_waiting(struct session *session, struct err *err);

/* After all records in the ring: records the samples of these threads. Without @err only frees
 * them. Idempotent. */
int session__record_waiting(struct session *session, struct err *err);

/* Returns true if the session records outstanding allocations. */
bool session__has_outstanding(const struct session *session);

/* Stores the end of a process from a record in the ring. Returns 0 or -ENOMEM. */
int session__note_end(struct session *session, const void *data, size_t size);

/* Sets the values of the samples of live allocations, after all records in the ring. */
int session__record_outstanding(struct session *session, struct err *err);

/* Returns the limit for samples of events that can be frequent, in percent of each CPU; 0: none. */
double session__events_percent(const struct session *session);

/* Prepares the enforcement of --max-overhead, if set, after the kernel half is loaded. */
int session__begin_limit(struct session *session, bool probes, struct err *err);

/* Detaches probes that cost too much; called in each round. */
int session__keep_limit(struct session *session, struct err *err);

/* Once a second, @elapsed_ns after the last call: reduces the sampling rate if samples cost too
 * much. */
void session__keep_pace(struct session *session, uint64_t elapsed_ns);

void session__limit(const struct session *session, struct session_limit *ret);
int session__write_limit(struct session *session, struct err *err);
void session__end_limit(struct session *session); /* idempotent */

/* Names all frames without a name, then requests better names from the user's debug servers. */
int session__name_last(struct session *session, struct err *err);

/* Writes the number of files that were requested from debug servers, if any. */
int session__write_queried(struct session *session, struct err *err);

/* Counts the native code that no symbol names. */
void session__find_nameless(const struct session *session, struct session_nameless *ret);

/* Commits the recording. */
int session__commit(struct session *session, struct err *err);

/* Writes counters and figures as they are now. */
int session__write_counters(struct session *session, struct err *err);

/* Records the occurrences of each event until @now that no sample represents. @last: no values of
 * pending samples will come. */
int session__record_rests(struct session *session, uint64_t now, bool last, struct err *err);

#endif
