// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/capture.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/store/recording.h"
#include "core/target/tracker_state.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define PID	  4711
#define CHANGE_NS 1000
#define KERNEL_IP 0xffffffff81000010

static const struct runtime *const none[] = { NULL };
static struct tracker tracker;
static struct process process = { .pid = PID, .info.pid = PID, .serial = 1, .pidfd = -1 };
static char path[100];

enum { TICK = 1, WAIT, IO, EVENTS }; /* event numbers of the session */

static const struct capture_event events[EVENTS - 1] = {
	[TICK - 1] = { { "cpu", SINK_UNIT_SAMPLES }, .timed = true },
	[WAIT - 1] = { { "wait", SINK_UNIT_NS }, .timed = false },
	[IO - 1] = { { "io", SINK_UNIT_NS }, .pending = true },
};

/* Passes a sample of one kernel frame to @capture. Returns whether the sample was accepted. */
static bool take_of(struct capture *capture, uint32_t event, uint64_t value, uint32_t tgid,
		    uint64_t time_ns, size_t size)
{
	struct {
		struct rec_sample head;
		uint64_t words[1];
	} rec = { .head = { .type = REC_SAMPLE,
			    .flags = SAMPLE_COMPLETE,
			    .time_ns = time_ns,
			    .event = event,
			    .value = value,
			    .weight = 1,
			    .total = value,
			    .tgid = tgid,
			    .tid = tgid,
			    .n_kernel = 1 },
		  .words = { KERNEL_IP } };

	return !capture__record(capture, &rec, size ? size : sizeof(rec), NULL);
}

static bool take(struct capture *capture, uint32_t tgid, uint64_t time_ns, size_t size)
{
	return take_of(capture, TICK, 1, tgid, time_ns, size);
}

/* Tests samples that claim sections that they do not contain or cannot have. */
static void check_sections(struct capture *capture)
{
	static struct {
		struct rec_sample head;
		uint64_t words[8];
	} rec;
	static const struct {
		const char *what;
		uint16_t n_sections;
		struct rec_section first;
		bool good;
	} cases[] = {
		{ "a section of a runtime that nobody knows", 1, { 4, 7, 0 }, true },
		{ "one with more pairs than the record has words", 1, { 5, 7, 0 }, false },
		{ "one with more pairs than there can be",
		  1,
		  { RUNTIME_PAIRS_MAX + 1, 7, 0 },
		  false },
		{ "sections without room", SECTIONS_MAX + 1, { 1, 7, 0 }, false },
	};
	uint64_t before;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rec.head = (struct rec_sample) { .type = REC_SAMPLE,
						 .time_ns = 2 * CHANGE_NS,
						 .event = TICK,
						 .value = 1,
						 .weight = 1,
						 .total = 1,
						 .tgid = PID,
						 .tid = PID,
						 .n_sections = cases[i].n_sections,
						 .sections = { cases[i].first } };
		before = capture__stats(capture)->samples;
		ok(!capture__record(capture, &rec, sizeof(rec), NULL) &&
			   capture__stats(capture)->samples - before == cases[i].good,
		   "%s", cases[i].what);
	}
}

/* The second sample refers to the stack of the first one, the third to a stack that was never sent.
 */
static void check_repeat(struct capture *capture)
{
	struct {
		struct rec_sample head;
		uint64_t words[1];
	} rec = { .head = { .type = REC_SAMPLE,
			    .slot = 3,
			    .generation = 2,
			    .time_ns = 3 * CHANGE_NS,
			    .event = TICK,
			    .value = 1,
			    .weight = 1,
			    .total = 1,
			    .tgid = PID,
			    .tid = PID,
			    .n_kernel = 1 },
		  .words = { KERNEL_IP } };
	struct rec_repeat repeat = { .type = REC_REPEAT,
				     .slot = 3,
				     .generation = 2,
				     .time_ns = 3 * CHANGE_NS + 1,
				     .event = WAIT,
				     .value = 99,
				     .weight = 5,
				     .total = 500,
				     .tid = PID + 1 };
	uint64_t before = capture__stats(capture)->samples;

	ok(!capture__record(capture, &rec, sizeof(rec), NULL) &&
		   !capture__record(capture, &repeat, sizeof(repeat), NULL) &&
		   capture__stats(capture)->samples == before + 2,
	   "a sample with a stack that came before");
	repeat.generation = 4;
	ok(!capture__record(capture, &repeat, sizeof(repeat), NULL) &&
		   capture__stats(capture)->samples == before + 2 &&
		   capture__stats(capture)->repeat_lost == 1,
	   "one whose stack is not there is counted as lost");
}

/* Passes a sample of four occurrences whose value never arrives. */
static bool take_pending(struct capture *capture)
{
	struct {
		struct rec_sample head;
		uint64_t words[1];
	} rec = { .head = { .type = REC_SAMPLE,
			    .flags = SAMPLE_COMPLETE | SAMPLE_PENDING,
			    .time_ns = 3 * CHANGE_NS,
			    .event = IO,
			    .value = 1,
			    .weight = 4,
			    .total = 4,
			    .link = 1,
			    .object = 512,
			    .tgid = PID,
			    .tid = PID,
			    .n_kernel = 1 },
		  .words = { KERNEL_IP } };

	return !capture__record(capture, &rec, sizeof(rec), NULL);
}

/* Tests the kernel half's rests plus the weight of each sample that was lost since. These are a
 * tick of 4, a wait of 5 whose stack is missing, and a pending sample. */
static void check_rests(struct capture *capture)
{
	struct capture_rest rest = { .time_ns = 3 * CHANGE_NS, .last = true };
	const struct capture_stats *stats = capture__stats(capture);

	ok(take_pending(capture), "a sample is pending");
	rest.kernel = (struct rest_rec) { 3, 3 };
	ok(!capture__rest(capture, TICK, &rest, NULL), "the rest of ticks");
	rest.kernel = (struct rest_rec) { 1, 100 };
	ok(!capture__rest(capture, WAIT, &rest, NULL), "the rest of waits");
	rest.kernel = (struct rest_rec) { 3, 1000 };
	ok(!capture__rest(capture, IO, &rest, NULL), "the rest of what has values later");
	ok(stats->rests[IO - 1].weight == 7 && stats->rests[IO - 1].total == 3048,
	   "with what is pending: 7 of 3048 bytes");
	rest.kernel = (struct rest_rec) {};
	rest.last = false;
	ok(!capture__rest(capture, WAIT, &rest, NULL), "none is given back twice");
	rest.minimum = 5;
	rest.kernel = (struct rest_rec) { 9, 9 };
	ok(!capture__rest(capture, IO, &rest, NULL) && stats->untimed == 9,
	   "without a time it is unknown whether they reach a minimum");
}

static int keep_row(void *ctx, int n, char **values, char **names)
{
	(void)n, (void)names;
	strncat(ctx, values[0], 200 - strlen(ctx) - 1);
	strncat(ctx, " ", 200 - strlen(ctx) - 1);
	return 0;
}

static const char *recorded(const char *query)
{
	static char text[200];
	sqlite3 *db;

	text[0] = '\0';
	if (sqlite3_open(path, &db) || sqlite3_exec(db, query, keep_row, text, NULL))
		snprintf(text, sizeof(text), "%s", sqlite3_errmsg(db));
	sqlite3_close(db);
	return text;
}

/* The rate changes while samples are in transit. A sample from before the change has the old
 * weight. */
static void check_weights(struct capture *capture)
{
	bool good = take(capture, PID, CHANGE_NS - 10, 0);

	capture__weigh(capture, CHANGE_NS, 4);
	good = good && take(capture, PID, CHANGE_NS - 1, 0) && take(capture, PID, CHANGE_NS, 0) &&
	       take(capture, PID, CHANGE_NS + 1, 0);
	capture__weigh(capture, 2 * CHANGE_NS, 2);
	good = good && take(capture, PID, 2 * CHANGE_NS - 1, 0) &&
	       take(capture, PID, 2 * CHANGE_NS, 0);
	ok(good, "samples are taken");
}

/* A sample that is not taken by the clock is not weighed. A sample without a valid event is
 * refused. */
static void check_events(struct capture *capture)
{
	ok(take_of(capture, WAIT, 12345, PID, CHANGE_NS, 0), "a sample of another event");
	ok(take_of(capture, 0, 1, PID, CHANGE_NS, 0), "one of none");
	ok(take_of(capture, EVENTS, 1, PID, CHANGE_NS, 0), "one of an event that nobody asked for");
}

static void check_stats(struct capture *capture)
{
	const struct capture_stats *stats = capture__stats(capture);

	ok(take(capture, PID + 1, 1, 0), "a sample of nobody's is no error");
	ok(take(capture, PID, 1, sizeof(struct rec_sample)), "one without its frames, neither");
	is_int(stats->samples, 7, "samples: those that were recorded");
	is_int(stats->unowned, 1, "that of nobody is counted");
	is_int(stats->malformed, 3, "those of no event and without frames, too");
	is_int(stats->event_samples[TICK - 1], 6, "of ticks");
	is_int(stats->event_samples[WAIT - 1], 1, "and of the other event");
	is_int(stats->complete, 7, "all complete");
	is_int(stats->kernel_frames, 7, "a kernel frame each");
	is_int(stats->native_frames, 0, "no native ones");
}

int main(void)
{
	struct runtime_session *sessions[1] = { NULL };
	struct recording *recording;
	struct capture *capture;
	struct err err = {};
	char kallsyms[100];

	workdir__make();
	workdir__write("kallsyms", "ffffffff81000000 t schedule.isra.0.cold\n"
				   "ffffffff81000100 T next\n");
	snprintf(kallsyms, sizeof(kallsyms), "%s/kallsyms", workdir);
	snprintf(path, sizeof(path), "%s/capture.db", workdir);
	tracker.opts.runtimes = none;
	tracker.opts.sessions = sessions;
	process.runtimes = &tracker.runtimes;
	tracker.runtimes.list = none;
	HASH_ADD(hh, tracker.processes, pid, sizeof(process.pid), &process);
	if (!ok(!recording__create(path, false, &recording, &err) &&
			!capture__new(&(struct capture_opts) { .sink = recording__sink(recording),
							       .events = events,
							       .n_events = EVENTS - 1,
							       .tracker = &tracker,
							       .runtimes = none,
							       .sessions = sessions,
							       .kallsyms_path = kallsyms },
				      &capture, &err),
		"begins"))
		return tap__done();
	check_weights(capture);
	check_events(capture);
	check_stats(capture);
	check_sections(capture);
	check_repeat(capture);
	check_rests(capture);
	ok(!capture__name_frames(capture, true, &err) && !recording__close(recording, &err),
	   "ends");
	is_str(recorded("SELECT value || ':' || weight || ':' || total FROM sample ORDER BY id"),
	       "1:1:1 1:1:1 1:4:4 1:4:4 1:4:4 1:2:2 12345:1:12345 1:2:2 1:2:2 99:5:500 "
	       "1:10:10 100:6:600 0:4:0 0:3:0 ",
	       "each sample weighs what it did when it was taken");
	is_str(recorded("SELECT sum(object * weight) || '/' || sum(weight) FROM sample WHERE event "
			"= 3"),
	       "3048/7 ", "rows of a rest have the exact sum of bytes");
	is_str(recorded("SELECT count(DISTINCT native) || '/' || count(DISTINCT thread) FROM "
			"sample WHERE time_ns >= 3000 AND thread IS NOT NULL"),
	       "1/2 ", "known: one stack, of two threads");
	is_str(recorded("SELECT name FROM function WHERE name LIKE '%schedule%'"), "schedule ",
	       "a kernel symbol's name is shown without what the compiler put behind it");
	is_str(recorded("SELECT event FROM sample ORDER BY id"), "1 1 1 1 1 1 2 1 1 2 1 2 3 3 ",
	       "each has its event");
	is_str(recorded("SELECT name || '/' || unit FROM event ORDER BY id"),
	       "cpu/samples wait/ns io/ns ", "and that its name and its unit");
	is_str(recorded("SELECT pid FROM process"), "4711 ", "one process");
	capture__free(capture);
	HASH_DEL(tracker.processes, &process);
	return tap__done();
}
