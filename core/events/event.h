/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENT_H
#define BRAID_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/events/values.h"
#include "core/kernel/chain.h"
#include "core/kernel/kernel_half.h"

/* An event that a session samples. A kind of event is one file here, and one line of the table in
 * events.c; docs/internals/adding-an-event.md describes how to write one. An event is a kind with
 * its argument, such as `tracepoint:sched:sched_switch`. The events of a session have numbers from
 * 1, which samples carry (rec_sample.event). */

#define EVENT_NAME_BYTES 512
#define EVENT_NOTE_BYTES 400

struct event_kind;

/* The specification of an event: a plain value. */
struct event_spec {
	const struct event_kind *kind;
	char name[EVENT_NAME_BYTES]; /* KIND or KIND:ARGUMENT; also the name in recordings */
	/* The kind's `parse` sets these: */
	uint64_t minimum; /* smallest value that is sampled, in the kind's unit */
	uint32_t types;	  /* bit n: triggers of chain type n; 0: the kind's type */
	bool filtered;	  /* has a filter of its arguments (core/events/filter.h) */
	bool interval;	  /* its value is the time since ... */
	bool begins;	  /* ... a tracepoint */
	bool functions;	  /* has triggers at functions of the kernel */
	bool call;	  /* one end of an interval from the entry of a function to its return */
	struct event_values values; /* set before `parse` */
};

/* Sets the rest of @spec from its name. Returns 0, or -EINVAL with a message. */
int event_spec__parse(struct event_spec *spec, struct err *err);

#define EVENT_LATENCY ":latency:" /* separates the two events of an interval */

/* Returns the text after "KIND:", or "". */
const char *event__argument(const struct event_spec *spec);

/* An event that is attached, or about to be. Its resources are file descriptors of this process, so
 * that the kernel releases them however the process ends. */
struct event {
	struct event_spec spec;
	uint32_t number;
	struct kernel_half *half;
	const struct bpf_program *program; /* takes the samples: the type's own trigger, or the
					    * first of the kind's programs */
	uint64_t period_ns;		   /* period of timed events */
	uint64_t period;		   /* period of rated events; 0: by their rate, ... */
	uint32_t frequency_hz;		   /* ... this one */
	bool attached;
	struct bpf_link **links; /* added by event__add_link(); owned */
	int *fds;		 /* descriptors of the links' perf events; -1: none */
	size_t n_links, cap_links;
	struct probe_set *probes; /* in programs and libraries; NULL: none */
	uint64_t joined_changes;  /* tracker__changes() at the last update of `probes`, ... */
	uint32_t joined_serial;	  /* ... and the last serial number of a process then */
	uint64_t late_ns;	  /* longest time that a new process ran without its probes */
	uint32_t n_late;	  /* number of such processes */
	char late[300];		  /* message about such processes; "": none */
	bool by_process;	  /* probes are only in processes that joined */
	uint64_t n_missed;	  /* processes that ended before they had probes */
	char late_note[EVENT_NOTE_BYTES]; /* result of events__late() */
	void *own;			  /* data of the kind */
	struct event_places places;	  /* those of a pattern */
	uint32_t n_forms;		  /* number of its lists of values in the kernel half */
	char caution[EVENT_NOTE_BYTES];	  /* warning for the user at the start; "": none */
	uint64_t n_left_out;		  /* functions for which alloc_codes had no room */
	char note[EVENT_NOTE_BYTES];	  /* losses, with the reason; "": none */
	double stopped;	   /* fraction of time in which the kernel stopped its clock */
	uint64_t ended_ns; /* time at which the limit ended the event; 0: not ended */
};

/* the session's data for the attachment of events */
struct tracker;
struct images;
struct event_place {
	struct tracker *tracker;	       /* the targets, with their mappings */
	const struct images *images;	       /* all code files so far */
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	bool waits;			       /* the session has an event of waiting */
	bool locks;			       /* the session has an event of waiting for locks */
	double max_overhead_percent;	       /* limit of the cost of samples; 0: none */
	bool launched;			       /* the target is a command that has just started */
	bool everywhere;		       /* targets are not individual processes (-a) */
	bool force;			       /* return addresses may be replaced (--force) */
};

struct event_kind {
	const char *name;
	/* Returns the @i-th alternative name, NULL after the last. is_name() accepts further names
	 * that are not fixed texts. Both may be NULL. `parse` may distinguish the names, or
	 * normalize spec->name. */
	const char *(*other_name)(size_t i);
	bool (*is_name)(const char *text, size_t len);
	const char *argument; /* for users: "SYS:NAME"; NULL: no argument */
	const char *unit;     /* unit of its values: "samples", "ns", "bytes" or "count" */
	const char *help;     /* one line */
	enum chain_type type; /* chain type of the BPF programs that its triggers run */
	/* Programs to use instead of the type's own trigger, which may be of several types; ended
	 * by an entry without a name. They find the event's number in cfg_numbers, under `slot`. */
	const struct chain_program *programs;
	/* Replacements on kernels without the tracepoint `newest`; NULL: none is required. */
	const struct chain_program *older_programs;
	const char *newest;
	enum event_slot slot;
	bool optional; /* the argument is optional */
	/* Values are lengths of intervals. Short ones are sampled within the budget
	 * (bpf/budget.bpf.h). */
	bool intervals;
	/* An occurrence is sampled when it begins, and its value follows (REC_VALUE). The totals of
	 * the event's rests are sums of rec_sample.object. */
	bool pending;
	const struct event_kind *contains; /* excludes that kind from the session; NULL: none */
	/* The event occurs by the clock, at session_opts.frequency_hz, and each sample has the
	 * value 1. With `intervals`, a tick has the value of the time between ticks. Other events
	 * are sampled at each period-th occurrence (-c), with the period as the value. */
	bool timed;
	/* -c is an amount of the event's unit per sample, instead of a number of occurrences. */
	bool by_value;
	/* Allocations are sampled, and count if they are not freed before the end. */
	bool outstanding;
	/* Samples describe changes since the start, or the state at the end, so a recording must
	 * cover the whole session. */
	bool whole;
	/* The kernel counts it, and samples by its rate (session_opts.frequency_hz), or by a period
	 * (-c). All samples are used, each with the number of occurrences that it stands for. */
	bool rated;
	/* The event is in files that targets mapped: it is attached when they are found. */
	bool mapped;

	/* Checks the argument (event__argument()), which is any text from the user. May change the
	 * event's name. Returns 0, or -EINVAL with a message about valid arguments. NULL: any text
	 * is valid. */
	int (*parse)(struct event_spec *spec, struct err *err);

	/* Completes spec->values. Returns 0, or a negative errno with a message. NULL: the event
	 * has no values. */
	int (*values)(struct event_spec *spec, struct err *err);

	/* Runs event->program at each occurrence from now on, in any process; the program selects
	 * targets. Attaches everything or nothing. Returns 0 or -EPERM, -ENOENT, ... with the
	 * remedy in @err. */
	int (*attach)(struct event *event, const struct event_place *place, struct err *err);

	/* Called in each round while attached: attaches the event in new processes. NULL:
	 * event->probes, if any, are attached there. */
	int (*join)(struct event *event, const struct event_place *place, struct err *err);

	/* Called once a second while attached: attaches the event in new files. NULL: nothing to
	 * do. */
	int (*follow)(struct event *event, const struct event_place *place, struct err *err);
	/* Attaches the start (@begins) or the end of another event's interval at @at, which is of
	 * this kind. NULL: intervals are unsupported. */
	int (*attach_at)(struct event *event, const struct event_spec *at, bool begins,
			 const struct event_place *place, struct err *err);

	/* Called in each round while attached: enforces event_place.max_overhead_percent. NULL:
	 * nothing to do. */
	int (*keep)(struct event *event, struct err *err);

	/* Frees `own`, after the links were destroyed. NULL: nothing to do. */
	void (*detach)(struct event *event);

	/* Divides the rate by @slowdown. Returns 0 or -errno. NULL: the rate is fixed. */
	int (*slow_down)(struct event *event, uint32_t slowdown);
};

/* Takes ownership of a link and of its perf event's descriptor (-1: none). Destroys the link on
 * failure. */
int event__add_link(struct event *event, struct bpf_link *link, int fd, struct err *err);

#define KPROBES_TYPE \
	"/sys/bus/event_source/devices/kprobe/type" /* exists if the kernel supports kprobes */

/* Creates event->probes, with the present targets. Idempotent. */
int event__open_probes(struct event *event, const struct event_place *place, struct err *err);

/* Updates event->probes: new targets join, ended ones leave. */
int event__join_probes(struct event *event, const struct event_place *place, struct err *err);

/* Sets event->late to the message about new processes that ran without probes. */
void event__put_late(struct event *event);

/* Attaches an event in @file, which belongs to @image. */
struct image;
struct elf_file;
typedef int (*event_file_fn)(struct event *event, const struct event_place *place,
			     const struct image *image, const struct elf_file *file,
			     struct err *err);

/* Calls @attach for each file after number *@seen, as images__each_new_file(). */
int event__attach_new_files(struct event *event, const struct event_place *place, uint64_t *seen,
			    event_file_fn attach, struct err *err);

struct process;

/* Returns true if a thread other than the first executed a program since the last update of the
 * probes. The kernel finds a process by its first thread. That thread ends then, and with it the
 * probes in the process. */
bool event__is_relieved(const struct event *event, const struct process *process);

/* Called once a second. Handles processes whose first thread ended: their probes no longer fire. */
int event__check_probes(struct event *event, const struct event_place *place, struct err *err);

/* Returns the cookie of a trigger of the event. */
static inline uint64_t event__cookie(const struct event *event, bool begins)
{
	return event->number | (begins ? COOKIE_BEGINS : 0);
}

/* Parses an argument [MIN]: the smallest interval of @what (such as "waiting"). The event's name is
 * then that of the kind. Returns 0, or -EINVAL with a message. */
int event__parse_minimum(struct event_spec *spec, const char *what, struct err *err);

/* Runs one of the kind's CHAIN_TRACEPOINT programs at a tracepoint of the kernel. @purpose is for
 * the message about a missing permission ("to see threads wait"). Returns 0 or -EPERM, -ENOENT, ...
 * with a message. */
int event__attach_raw(struct event *event, const char *program, const char *tracepoint,
		      const char *purpose, struct err *err);

/* Returns the kind's programs for this kernel; NULL: its type's own trigger. */
const struct chain_program *event_kind__programs(const struct event_kind *kind);

/* Returns a descriptor that enables the kernel's statistics of BPF programs. Returns -1 if they are
 * unavailable, and sets the event's note: the limit is not enforced, with the reason. */
int event__open_statistics(struct event *event);

/* Runs @program by the clock of each CPU, every event->period_ns. */
int event__attach_clock(struct event *event, const struct bpf_program *program, struct err *err);
int event__slow_clock(struct event *event, uint32_t slowdown); /* as event_kind.slow_down */
void event__detach_clock(struct event *event);		       /* as event_kind.detach */

/* Writes a list of values to the kernel half, and stores its part of the cookies of the triggers
 * that have these values. Equal lists share a place. Returns 0, or a negative errno with a message.
 */
int event__put_values(struct event *event, const struct value_list *list, uint64_t *ret_cookie,
		      struct err *err);

/* Likewise for the values of @at, if they are the same at all triggers. */
int event__put_spec_values(struct event *event, const struct event_spec *at, uint64_t *ret_cookie,
			   struct err *err);

/* All kinds. */
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
