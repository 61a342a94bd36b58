// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include "bpf/shared.h"
#include "core/tracker_private.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define PID	  4711
#define CHANGE_NS 1000
#define KERNEL_IP 0xffffffff81000010

static const struct runtime *const none[] = { NULL };
static struct tracker tracker;
static struct process process = { .pid = PID, .info.pid = PID, .pidfd = -1 };
static char path[100];

/* A sample of one kernel frame. Returns whether it could be taken. */
static bool take(struct capture *capture, uint32_t tgid, uint64_t time_ns, size_t size)
{
	struct {
		struct rec_sample head;
		uint64_t words[1];
	} rec = { .head = { .type = REC_SAMPLE,
			    .flags = SAMPLE_COMPLETE,
			    .time_ns = time_ns,
			    .tgid = tgid,
			    .tid = tgid,
			    .n_kernel = 1 },
		  .words = { KERNEL_IP } };

	return !capture__record(capture, &rec, size ? size : sizeof(rec), NULL);
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

/* The rate changes while samples are under way: what was taken before it has the old weight. */
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

static void check_stats(struct capture *capture)
{
	const struct capture_stats *stats = capture__stats(capture);

	ok(take(capture, PID + 1, 1, 0), "a sample of nobody's is no error");
	ok(take(capture, PID, 1, sizeof(struct rec_sample)), "one without its frames, neither");
	is_int(stats->samples, 6, "samples: those that were recorded");
	is_int(stats->complete, 6, "all complete");
	is_int(stats->kernel_frames, 6, "a kernel frame each");
	is_int(stats->native_frames, 0, "no native ones");
}

int main(void)
{
	struct runtime_session *sessions[1] = { NULL };
	struct recording *recording;
	struct capture *capture;
	struct err err = {};

	workdir__make();
	snprintf(path, sizeof(path), "%s/capture.db", workdir);
	tracker.opts.runtimes = none;
	tracker.opts.sessions = sessions;
	HASH_ADD(hh, tracker.processes, pid, sizeof(process.pid), &process);
	if (!ok(!recording__create(path, false, &recording, &err) &&
			!capture__new(&(struct capture_opts) { .recording = recording,
							       .tracker = &tracker,
							       .runtimes = none,
							       .sessions = sessions,
							       .kallsyms_path = "/dev/null" },
				      &capture, &err),
		"begins"))
		return tap__done();
	check_weights(capture);
	check_stats(capture);
	ok(!capture__name_frames(capture, true, &err) && !recording__close(recording, &err),
	   "ends");
	is_str(recorded("SELECT weight FROM sample ORDER BY id"), "1 1 4 4 4 2 ",
	       "each sample weighs what it did when it was taken");
	is_str(recorded("SELECT pid FROM process"), "4711 ", "one process");
	capture__free(capture);
	HASH_DEL(tracker.processes, &process);
	u64map__done(&process.frames);
	return tap__done();
}
