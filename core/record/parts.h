/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SESSION_STATE_H
#define BRAID_SESSION_STATE_H

/* A session from inside: its state, and what its files do for each other.
 *
 *   session.c            the order of opening and of ending
 *   session_targets.c    which processes
 *   session_command.c    how a command is started, and followed through each exec
 *   session_ring.c       what the kernel half sends
 *   session_run.c        the loop: waits, ticks, ends
 *   session_recording.c  the sink, counters and figures
 *   session_rotation.c   one recording after the other
 *   session_limit.c      --max-overhead
 *   session_ahead.c      processes of a scope, read before a sample finds them
 *   session_waiting.c    threads that wait at the beginning and at the end
 *   session_outstanding.c  what is not freed at the end */

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

/* Programs whose dynamic linkers are at work at a time; of further ones none waits for tables. */
#define SESSION_HOLDS_MAX 8

/* What is recorded after all that is in the ring. */
struct kept_record {
	struct kept_record *next;
	size_t size;
	uint64_t data[]; /* aligned as in the ring */
};

/* Puts a record at the end of a list; `ctx`: where that is, which moves on. -ENOMEM. */
int still__keep(void *ctx, const void *data, size_t size);

uint32_t kept_record__type(const struct kept_record *kept); /* REC_* */

/* A process has ended, or what it executed has. */
struct session_end_of {
	uint32_t pid;
	uint64_t time_ns;
};

/* Takes the events of mappings that have come, of any process. @ctx: the session. */
void session__take_mmaps(void *ctx);

struct session {
	struct session_opts opts;
	uint64_t start_ns, end_ns;
	enum session_end end;
	struct stopper *stopper;
	struct rlimit users_files; /* the limit of open files, which a command gets back */

	/* --- what looks at targets --- */
	struct kernel_half *half;
	struct events *events;
	struct trigger *trigger; /* NULL: none */
	struct table_arena *table_arena;
	struct images *images;
	struct runtime_session *runtime_sessions[RUNTIMES_MAX];
	struct tracker *tracker;
	char *cache_dir;

	/* --- targets --- */
	struct scope *scope; /* NULL: processes are named, or started */
	struct child child;
	struct hold holds[SESSION_HOLDS_MAX]; /* of what the command and its children execute */
	uint64_t follow_until_ns;	      /* programs that may execute others stay traced */
	unsigned n_followed_forks;	      /* forks of these */
	int command_status;
	char target[TARGET_BYTES]; /* for people */
	unsigned n_children;	   /* running processes below the targets of -p, at the start */

	/* --- the sink --- */
	struct recording *recording; /* the directory's, if there is one; NULL: a live profile */
	struct recording_dir *dir;
	struct metrics *metrics; /* NULL: nobody wants any */
	struct {
		uint64_t start_ns;	 /* CLOCK_MONOTONIC */
		int64_t clock_offset_ns; /* CLOCK_REALTIME less that, then */
		/* What cumulative figures were at its beginning, and when they were last written.
		 */
		uint64_t before[COUNTERS_N], written[COUNTERS_N];
		unsigned unread, unread_written; /* the latter of this recording alone */
	} part;					 /* the recording that is being written */
	/* Of recordings that are finished. */
	struct capture_stats finished;
	uint64_t finished_counters[COUNTERS_N];
	uint64_t published[COUNTERS_N]; /* losses, as metrics had them last */
	struct capture *capture;
	struct routing routing;
	struct capture_event sampled[EVENTS_MAX]; /* what events are called */
	bool fetches;				  /* names from debug servers */
	struct capture_stats in_file; /* what is in the recording: all up to its last commit */

	/* --- what the kernel half sends --- */
	struct ring_buffer *ring;
	struct mmap_events *mmap_events; /* NULL: unavailable */
	uint32_t *remapped;		 /* PIDs of processes that have mapped code */
	size_t n_remapped, cap_remapped;
	bool remapped_urgent; /* some of these before further samples are looked at */
	struct err ring_err;
	int ring_ret; /* negative: what consuming the ring returned within a callback */
	uint64_t consume_until_ns;
	uint64_t consume_end_ns; /* when it has to look at other things again */
	bool behind;		 /* it did so before all was consumed */

	/* In the order of the ring, if anything is outstanding. */
	struct session_end_of *ends;
	size_t n_ends, cap_ends;

	struct waiting_lister *lister; /* of looks at who waits; NULL: there was none */
	struct kept_record *still;     /* samples of threads that wait at the end; owned */

	/* --- the loop --- */
	uint64_t last_tick_ns;
	double last_cpu_s; /* own_cpu_s() at last_cpu_ns */
	uint64_t last_cpu_ns;
	uint64_t followed_file; /* number of the last file that events have looked at */
	uint64_t woken_ns;	/* when poll last reported an event; 0: it reported none */
	struct pollfd *polled;	/* POLLED_FIRST others, then processes that are about to end */
	size_t n_polled, cap_polled;
	struct read_ahead *ahead; /* NULL: processes are named */
	struct session_lag lag;
	uint32_t unread;      /* processes, at the last tick */
	bool lag_noted;	      /* session_opts.on_note has it */
	int loaded_ahead;     /* walkers of so many runtimes, as they may be needed */
	uint64_t lost_events; /* one more than there were when exits were last looked for */

	/* --- --max-overhead --- */
	double events_percent;	   /* of events that can be frequent; 0: no limit */
	struct governor *governor; /* NULL: no limit */
	uint64_t exceeded_ns;	   /* when probes were given up; 0: they were not */
	char exceeded_why[RUNTIME_REASON_BYTES];
	struct pace pace;
	double paced_cpu_s; /* 0: the first second, when files are read, is not over */
};

double own_cpu_s(void); /* user and system time of this process */

/* Do events have probes in each process, which children are to get at once? */
bool session__is_urgent(const struct session *session);

/* What events may ask. */
struct event_place session__place(const struct session *session);

/* The time, or that of the sampling's end. */
uint64_t session__now_ns(const struct session *session);

/* Records what the kernel half has sent so far, and no more: where samples come faster than they
 * can be unwound from stack copies, the ring would never be empty. Not all of it if that takes
 * long: then the session is `behind`, and should look at the clock first. */
int session__consume(struct session *session, struct err *err);

/* Sampling is over: all that is in the ring, with stack copies as far as they take no second. */
int session__drain(struct session *session, struct err *err);

/* Maps the ring, and asks for events of mappings. */
int session__open_ring(struct session *session, struct err *err);

/* Adds the processes that the user asked for, or forks the one that will execute the command. */
int session__add_targets(struct session *session, struct err *err);

/* Once a second: whether what the user means by a scope is still there. */
void session__look_at_scope(struct session *session);

/* Reads what running targets have mapped, and finds their runtimes. */
int session__refresh_targets(struct session *session, struct err *err);

/* Returns true if nothing is left to be read ahead. */
bool session__has_read_ahead(const struct session *session);

/* With a scope: lists the processes that use CPU, and reads as many as the time before the first
 * sample allows. */
int session__begin_ahead(struct session *session, struct err *err);

/* In each round: reads further ones for a moment. */
int session__read_ahead(struct session *session, struct err *err);

/* Once a second: lists processes anew while the recording is young, and notes whether braid lacks
 * CPU to read them. @elapsed_ns: since the last tick. */
int session__watch_ahead(struct session *session, uint64_t now, uint64_t elapsed_ns,
			 struct err *err);

/* Writes it to the recording, if braid has lacked CPU. */
int session__write_lag(struct session *session, struct err *err);

/* Of a thread that is to be sampled from here: its process, with what it has mapped. NULL: none of
 * those that are recorded. -ENOMEM. */
int session__known(struct session *session, uint32_t pid, struct process **ret);

/* Executes the command, and lets it run when its libraries are known. Its time counts from the
 * exec. */
int session__start_command(struct session *session, struct err *err);

/* A process has executed a program: holds it while the record is routed, if it belongs to a command
 * and its file was not met before. NULL: it runs on; else for hold__go_on. */
struct hold *session__hold(struct session *session, const struct rec_program *rec);

/* In each round: follows what is held, and lets it run when its libraries are known. */
int session__follow_holds(struct session *session, struct err *err);

/* Returns true if a program is held while its libraries are mapped. */
bool session__is_linking(const struct session *session);

/* Whatever is held runs on. */
void session__release_holds(struct session *session);

/* Attaches what depends on what targets have mapped, which is known by now. */
int session__attach_in_targets(struct session *session, struct err *err);

/* From now on the time counts. */
int session__begin(struct session *session, struct err *err);

/* Attaches what depends on mappings, begins, makes the first commit (by which the recording takes
 * its place: the last thing that can fail), and lets the command run. */
int session__start_targets(struct session *session, struct err *err);

/* Creates the recording, and capture before it. */
int session__open_recording(struct session *session, struct err *err);

/* A tracker_source_fn; `ctx` is the session. */
void session__on_source(void *ctx, struct process *process, const struct runtime *runtime,
			const char *version, const char *source, const char *reason);

/* Of the recording that is being written: sums over all CPUs, less what was cut in the kernel half
 * but completed from a stack copy. */
void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N]);

/* What was last written are the counters of the recording that ends. */
void session__end_part(struct session *session, uint64_t ret_counters[COUNTERS_N]);

/* Kinds of frames and what is known at a recording's beginning. */
int session__write_head(struct session *session, struct err *err);

/* Makes the recording, in the directory if there is one. */
int session__create_recording(struct session *session, struct err *err);

/* Ends it. Idempotent. */
int session__close_recording(struct session *session, struct err *err);
void session__discard_recording(struct session *session);

/* From here on the recording's time counts. */
void session__begin_part(struct session *session, uint64_t now);

/* At a tick: goes on with the next recording if it is time. */
int session__rotate(struct session *session, uint64_t now, struct err *err);

/* If anybody wants it: what braid does and costs, now. */
int session__publish(struct session *session, struct err *err);

/* Of all recordings: adds those that are finished. */
void session__add_finished(const struct session *session, struct capture_stats *stats,
			   uint64_t counters[COUNTERS_N]);

/* Has events look at what is new among the targets. */
int session__follow(struct session *session, struct err *err);

/* Before anything is sampled: attaches what the targets' threads need where waiting is an event. */
int session__prepare_waiting(struct session *session, struct err *err);

/* At start_ns: notes which threads wait, if that is an event. */
int session__note_waiting(struct session *session, struct err *err);

/* Returns STATE_STOPPED for a thread that a signal or a tracer has stopped, else STATE_BLOCKED. */
uint32_t session__waiting_state(uint32_t tid);

/* After end_ns, while the kernel half sees who wakes up: takes samples of those that still do, and
 * of those that are in a system call or wait for a lock. */
int session__sample_under_way(struct session *session, struct err *err);
int session__sample_waiting(struct session *session, struct err *err);

/* After all that is in the ring: records these; without `err` it only frees them. Idempotent. */
int session__record_waiting(struct session *session, struct err *err);

/* Is what is allocated of interest if it is not freed? */
bool session__has_outstanding(const struct session *session);

/* Of what is in the ring: notes when processes end. -ENOMEM. */
int session__note_end(struct session *session, const void *data, size_t size);

/* After all that is in the ring: the samples of what has not been freed get their values. */
int session__record_outstanding(struct session *session, struct err *err);

/* After the kernel half is loaded: gets ready to keep --max-overhead, if there is one. */
int session__begin_limit(struct session *session, bool probes, struct err *err);

/* In each round: gives up probes that cost too much. */
int session__keep_limit(struct session *session, struct err *err);

/* Once a second, `elapsed_ns` after the last time: samples less often if that costs too much. */
void session__keep_pace(struct session *session, uint64_t elapsed_ns);

void session__limit(const struct session *session, struct session_limit *ret);
int session__write_limit(struct session *session, struct err *err);
void session__end_limit(struct session *session); /* idempotent */

/* Names all that has no name yet, then asks the user's debug servers for better ones. */
int session__name_last(struct session *session, struct err *err);

/* Writes how many files debug servers were asked for, if any. */
int session__write_asked(struct session *session, struct err *err);

/* Counts the native code that no symbol names. */
void session__find_nameless(const struct session *session, struct session_nameless *ret);

/* Commits the recording. */
int session__commit(struct session *session, struct err *err);

/* Writes counters and figures as they are now. */
int session__write_counters(struct session *session, struct err *err);

/* Records the occurrences of each event until @now that no sample stands for. @last: no values of
 * pending samples will come. */
int session__record_rests(struct session *session, uint64_t now, bool last, struct err *err);

#endif
