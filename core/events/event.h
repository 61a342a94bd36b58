/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENT_H
#define BRAID_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_half.h"

/* What a session samples. A kind of event is one file here, and one line of the table in events.c;
 * docs/internals/adding-an-event.md says how to write one. An event is a kind with its argument,
 * such as `tracepoint:sched:sched_switch`; the events of a session have numbers from 1, which
 * samples carry (rec_sample.event). */

#define EVENT_NAME_BYTES 512
#define EVENT_NOTE_BYTES 400

struct event_kind;

/* An event that was asked for: a plain value. */
struct event_spec {
	const struct event_kind *kind;
	char name[EVENT_NAME_BYTES]; /* KIND or KIND:ARGUMENT: its name in recordings, too */
	/* The kind's `parse` sets these: */
	uint64_t minimum; /* in the unit: what is less is not sampled */
	uint32_t types;	  /* bit n: triggers of chain type n; 0: those of the kind's */
	bool filtered;	  /* it has a filter of its arguments (core/events/filter.h) */
	bool interval;	  /* its value is the time since ... */
	bool begins;	  /* ... a tracepoint */
	bool functions;	  /* it has triggers at functions of the kernel */
	bool call;	  /* one end of an interval from the entry of a function to its return */
};

/* Of spec->name, the rest. -EINVAL and a sentence. */
int event_spec__parse(struct event_spec *spec, struct err *err);

#define EVENT_LATENCY ":latency:" /* between the two events of an interval */

/* What is behind "KIND:"; "" where there is none. */
const char *event__argument(const struct event_spec *spec);

/* An event that is attached, or about to be. All that it has is file descriptors of this process:
 * however this ends, the kernel takes them back. */
struct event {
	struct event_spec spec;
	uint32_t number;
	struct kernel_half *half;
	const struct bpf_program *program; /* takes the samples: the type's own trigger, or the
					    * first of the kind's programs */
	uint64_t period_ns;		   /* of timed events */
	uint64_t period;		   /* of rated ones; 0: by their rate, ... */
	uint32_t frequency_hz;		   /* ... which is this */
	bool attached;
	struct bpf_link **links; /* made with event__add_link; owned */
	int *fds;		 /* of the perf events that these own; -1: none */
	size_t n_links, cap_links;
	struct probe_set *probes;    /* in programs and libraries; NULL: none */
	uint64_t joined_changes;     /* tracker__changes() when `probes` was brought up to date, */
	uint32_t joined_serial;	     /* and the last serial number of a process then */
	uint64_t late_ns;	     /* the longest that a new process ran without its probes */
	uint32_t n_late;	     /* such processes */
	char late[300];		     /* the sentence about these; "": there were none */
	bool by_process;	     /* probes are in processes that have joined, in no others */
	uint64_t n_missed;	     /* processes that ended before they had probes */
	char told[EVENT_NOTE_BYTES]; /* events__late() */
	void *own;		     /* the kind's */
	char caution[EVENT_NOTE_BYTES]; /* what the user should know from the start; "": nothing */
	uint64_t n_left_out;		/* functions that alloc_codes had no room for */
	char note[EVENT_NOTE_BYTES];	/* what it could not sample, and why; "": nothing */
	double stopped;			/* part of the time in which the kernel stopped its clock */
	uint64_t ended_ns;		/* it was given up at that time; 0: it was not */
};

/* What an event may ask when it is attached. */
struct tracker;
struct images;
struct event_place {
	struct tracker *tracker;	       /* the targets, whose mappings are known */
	const struct images *images;	       /* all files of code that were met so far */
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	bool waits;			       /* waiting is an event of the session */
	bool locks;			       /* waiting for locks is */
	double max_overhead_percent;	       /* that samples may cost; 0: no limit */
	bool launched;			       /* the target is a command, which has just begun */
	bool everywhere;		       /* targets are no certain processes (-a) */
	bool force;			       /* return addresses may be replaced (--force) */
};

struct event_kind {
	const char *name;
	/* The i-th other one that it goes by, NULL after the last, and further ones that are no
	 * fixed texts; both may be NULL. `parse` may tell them apart, or put the one name into
	 * spec->name. */
	const char *(*other_name)(size_t i);
	bool (*is_name)(const char *text, size_t len);
	const char *argument; /* for people: "SYS:NAME"; NULL: it takes none */
	const char *unit;     /* of its values: "samples", "ns", "bytes" or "count" */
	const char *help;     /* one line */
	enum chain_type type; /* of the BPF programs that such triggers run */
	/* Those, if the type's own trigger will not do, which may be of several types; ended by one
	 * without a name. They find the event's number in cfg_numbers, under `slot`. */
	const struct chain_program *programs;
	/* Instead of those on kernels without the tracepoint `newest`; NULL: it needs none. */
	const struct chain_program *older_programs;
	const char *newest;
	enum event_slot slot;
	bool optional; /* it can be without its argument */
	/* Values are lengths of intervals: of those that are short, what the budget allows
	 * (bpf/budget.bpf.h). */
	bool intervals;
	/* An occurrence is sampled when it begins, and its value follows (REC_VALUE). The totals of
	 * the event's rests are sums of rec_sample.object instead. */
	bool pending;
	const struct event_kind *contains; /* not beside that one in a session; NULL: none */
	/* It comes by the clock, at session_opts.frequency_hz, and each sample's value is 1.
	 * Else it occurs when it occurs: every period-th is sampled (-c), with that value. If it
	 * `intervals`, too, the ticks are worth the time between them. */
	bool timed;
	/* -c is an amount of its unit, which is sampled by it, not a number of occurrences. */
	bool by_value;
	/* What is allocated is sampled, and counts if it is not freed until the end. */
	bool outstanding;
	/* Samples are of what was not there before, or at the end: a recording makes sense from the
	 * session's beginning to its end only. */
	bool whole;
	/* It is counted by the kernel, by its rate (session_opts.frequency_hz) unless there is a
	 * period (-c): whatever samples come are wanted, each with how many it stands for. */
	bool rated;
	/* It is in files that targets have mapped: attached when that is known. */
	bool mapped;

	/* Is the spec's argument (event__argument) one of the kind? The text is any user's. May
	 * change the name to what the event is to be called. -EINVAL with a sentence that tells
	 * what is. NULL: any text will do. */
	int (*parse)(struct event_spec *spec, struct err *err);

	/* Runs event->program at each occurrence from now on, in whatever process: the program
	 * knows the targets. All or nothing. -EPERM, -ENOENT, ... with the way out in `err`. */
	int (*attach)(struct event *event, const struct event_place *place, struct err *err);

	/* In each round while it is attached: in processes that are new. NULL: event->probes are,
	 * if there are any. */
	int (*join)(struct event *event, const struct event_place *place, struct err *err);

	/* Once a second while it is attached: in files that were met since, too. NULL: there is
	 * nothing to do. */
	int (*follow)(struct event *event, const struct event_place *place, struct err *err);
	/* The same for another's event: an interval that begins (`begins`), or else ends, at what
	 * `at`, of this kind, says. NULL: intervals cannot. */
	int (*attach_at)(struct event *event, const struct event_spec *at, bool begins,
			 const struct event_place *place, struct err *err);

	/* In each round while it is attached: keeps to event_place.max_overhead_percent. NULL:
	 * there is nothing to do. */
	int (*keep)(struct event *event, struct err *err);

	/* Gives `own` back, after the links are gone. NULL: there is nothing. */
	void (*detach)(struct event *event);

	/* Comes at the n-th part of the rate from now on. -errno. NULL: its rate is its own. */
	int (*slow_down)(struct event *event, uint32_t slowdown);
};

/* Takes a link over, with the perf event that it owns (-1: none). On failure it is destroyed. */
int event__add_link(struct event *event, struct bpf_link *link, int fd, struct err *err);

#define KPROBES_TYPE \
	"/sys/bus/event_source/devices/kprobe/type" /* is there if the kernel has any */

/* Makes event->probes, with the targets that there are. Idempotent. */
int event__open_probes(struct event *event, const struct event_place *place, struct err *err);

/* Brings event->probes up to date with the targets: new ones join, ended ones leave. */
int event__join_probes(struct event *event, const struct event_place *place, struct err *err);

/* Attaches an event in @file, of @image. */
struct image;
struct elf_file;
typedef int (*event_file_fn)(struct event *event, const struct event_place *place,
			     const struct image *image, const struct elf_file *file,
			     struct err *err);

/* Calls @attach for each file that was met after the file number *@seen, as
 * images__each_new_file(). */
int event__attach_new_files(struct event *event, const struct event_place *place, uint64_t *seen,
			    event_file_fn attach, struct err *err);

struct process;

/* Has another thread of the process than the first executed a program since the probes were brought
 * up to date? The kernel finds a process by its first thread. That one ends then, and probes in the
 * process with it. */
bool event__is_relieved(const struct event *event, const struct process *process);

/* Once a second: probes of a process whose first thread has ended do not fire any more. */
int event__check_probes(struct event *event, const struct event_place *place, struct err *err);

/* What a trigger of the event has for a cookie. */
static inline uint64_t event__cookie(const struct event *event, bool begins)
{
	return event->number | (begins ? COOKIE_BEGINS : 0);
}

/* An argument [MIN]: the smallest interval of `what` ("waiting"), after which the name is the
 * kind's alone. -EINVAL with the sentence. */
int event__parse_minimum(struct event_spec *spec, const char *what, struct err *err);

/* Runs one of the kind's CHAIN_TRACEPOINT programs at a tracepoint of the kernel's. `purpose`: what
 * for, if it is not permitted ("to see threads wait"). -EPERM, -ENOENT, ... with the sentence. */
int event__attach_raw(struct event *event, const char *program, const char *tracepoint,
		      const char *purpose, struct err *err);

/* Those that it runs on this kernel; NULL: its type's own trigger. */
const struct chain_program *event_kind__programs(const struct event_kind *kind);

/* The kernel's, of what BPF programs cost: a descriptor that switches them on. -1: there are none,
 * and the event's note says that no limit is kept, and why. */
int event__open_statistics(struct event *event);

/* Runs `program` by the clock of each CPU, every event->period_ns. */
int event__attach_clock(struct event *event, const struct bpf_program *program, struct err *err);
int event__slow_clock(struct event *event, uint32_t slowdown); /* as event_kind.slow_down */
void event__detach_clock(struct event *event);		       /* as event_kind.detach */

/* The kinds that there are. */
extern const struct event_kind event_cpu;
extern const struct event_kind event_off_cpu;
extern const struct event_kind event_wall;
extern const struct event_kind event_block_io;
extern const struct event_kind event_wakeup;
extern const struct event_kind event_fault;
extern const struct event_kind event_software;
extern const struct event_kind event_pmu;
extern const struct event_kind event_syscall;
extern const struct event_kind event_tracepoint;
extern const struct event_kind event_uprobe;
extern const struct event_kind event_alloc;
extern const struct event_kind event_outstanding;
extern const struct event_kind event_lock;
extern const struct event_kind event_lock_holder;
extern const struct event_kind event_lock_order;
extern const struct event_kind event_uretprobe;
extern const struct event_kind event_usdt;
extern const struct event_kind event_kprobe;
extern const struct event_kind event_kretprobe;
extern const struct event_kind event_fentry;
extern const struct event_kind event_latency;

#endif
