// SPDX-License-Identifier: GPL-2.0-or-later
/* load_each [PART]
 *
 * Loads the programs of each option of braid, and ends at once. Prints TAP with a check for each
 * session, or for those with PART in their name.
 *
 * A session is opened on a process that sleeps, so that its programs are loaded and attached and
 * its maps made. Then the walkers of its runtimes and the programs of probes are loaded, which
 * otherwise wait for the first process that needs them. No sample is needed.
 *
 * An alarm that is set when the program starts is set again for each check.
 *
 * A kernel refuses programs that it cannot verify. The check then prints the session's message. A
 * session that the machine does not support (no counters in a virtual machine) is skipped with its
 * message. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/kernel_half_state.h"
#include "core/record/parts.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

#define MODES_N 4

static const char *const unwinds[MODES_N] = { [UNWIND_MODE_AUTO] = "auto",
					      [UNWIND_MODE_FP] = "fp",
					      [UNWIND_MODE_COPY] = "copy",
					      [UNWIND_MODE_TWICE] = "twice" };

static const char *const sources[] = { [RUNTIME_SOURCE_AUTO] = "auto",
				       [RUNTIME_SOURCE_WALK] = "walk",
				       [RUNTIME_SOURCE_PROBES] = "probes",
				       [RUNTIME_SOURCE_CALLS] = "calls",
				       [RUNTIME_SOURCE_MAP] = "map" };

/* At least one for each kind of events, and for each set of programs of a kind. */
static const struct {
	const char *list;
	bool by_machine; /* depends on the machine */
} examples[] = {
	{ "cpu", false },
	{ "wall", false },
	{ "off-cpu", false },
	{ "off-cpu:1ms", false },
	{ "wakeup", false },
	{ "off-cpu,wakeup", false },
	{ "lock", false },
	{ "lock:pthread", false },
	{ "lock-holder", false },
	{ "lock-order", false },
	{ "alloc", false },
	{ "alloc:malloc", false },
	{ "alloc:mmap", false },
	{ "alloc:usdt", false },
	{ "outstanding:usdt", false },
	{ "outstanding", false },
	{ "block-io", false },
	{ "page-fault", false },
	{ "context-switches", false },
	{ "cycles", true },
	{ "syscall", false },
	{ "syscall:read:1ms", false },
	{ "tracepoint:sched:sched_switch", false },
	{ "tracepoint:sched:sched_switch/prev->prio < 100/", false },
	{ "uprobe:libc.so.6:malloc", false },
	{ "uprobe:libc.so.6:malloc(n:u64),tracepoint:sched:sched_switch(prev->pid)", false },
	{ "uretprobe:libc.so.6:malloc", false },
	{ "usdt:libstdc++.so.6:libstdcxx:throw", false },
	{ "kprobe:vfs_read", true },
	{ "kretprobe:vfs_read", true },
	{ "fentry:vfs_read", true },
	{ "uprobe:libc.so.6:malloc:latency:uretprobe:libc.so.6:malloc", false },
	{ "kprobe:vfs_read:latency:kretprobe:vfs_read", true },
	{ "tracepoint:sched:sched_wakeup:latency:tracepoint:sched:sched_switch", false },
	{ "cpu,off-cpu,page-fault,syscall,lock,lock-holder,block-io,uprobe:libc.so.6:malloc",
	  false },
};

struct target {
	uint32_t pid;
	char *recording;
};

static struct session_opts usual(const struct target *target)
{
	return (struct session_opts) { .runtimes = runtimes,
				       .enabled = UINT32_MAX,
				       .pids = &target->pid,
				       .n_pids = 1,
				       .frequency_hz = 99,
				       .source = RUNTIME_SOURCE_WALK,
				       .output = target->recording,
				       .force = true };
}

/* --- a session --- */

/* Programs that are loaded for the first process that needs them, as bits. */
enum { WALKERS = 1, PROBES = 2 };

static int load_later(struct session *session, unsigned later, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	int ret = 0;

	if (later & PROBES)
		ret = kernel_half__load_probes(session->half, err);
	for (int i = 0; !ret && later & WALKERS && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i)
			ret = kernel_half__load_runtime(session->half, i, err);
	return ret;
}

static unsigned limit_s;      /* seconds for a check; 0: no limit */
static const char *part = ""; /* text that the names of checks must contain */

static void check(const struct session_opts *opts, unsigned later, bool by_machine,
		  const char *name)
{
	struct session_summary summary;
	struct session *session;
	struct err err = {};
	int ret;

	if (!strstr(name, part))
		return;
	alarm(limit_s);
	ret = session__open(opts, &session, &err);
	if (ret && by_machine && (ret == -ENOENT || ret == -EOPNOTSUPP || ret == -ENODEV)) {
		tap__skip(err.text, "%s", name);
		return;
	}
	if (!ret) {
		ret = load_later(session, later, &err);
		session__finish(session, &summary, ret ? NULL : &err);
		session__free(session);
	}
	if (!ok(!ret, "%s", name))
		tap__diag("%s", err.text);
}

/* --- -r --- */

/* Writes the name of the set: "-r python,ruby", or "no runtime". */
static void name_set(uint32_t enabled, char *ret, size_t size)
{
	size_t used = snprintf(ret, size, "-r");

	for (int i = 0; runtimes[i]; i++)
		if (enabled & 1U << i && used < size)
			used += snprintf(ret + used, size - used, "%s%s", used > 2 ? "," : " ",
					 runtimes[i]->name);
	if (!enabled)
		snprintf(ret, size, "no runtime");
}

static void check_set(const struct target *target, uint32_t enabled, enum runtime_source source,
		      unsigned later)
{
	struct session_opts opts = usual(target);
	char set[200], name[300];

	opts.enabled = enabled;
	opts.source = source;
	name_set(enabled, set, sizeof(set));
	snprintf(name, sizeof(name), "%s --source %s%s%s", set, sources[source],
		 later & WALKERS ? ", walkers" : "", later & PROBES ? ", probes" : "");
	check(&opts, later, false, name);
}

/* Checks each runtime alone, and all others without it. Other sets add no other way of leaving out,
 * as a map belongs to one runtime. */
static void check_sets(const struct target *target)
{
	uint32_t all = 0;

	for (int i = 0; runtimes[i]; i++)
		all |= 1U << i;
	check_set(target, 0, RUNTIME_SOURCE_WALK, 0);
	check_set(target, 0, RUNTIME_SOURCE_AUTO, PROBES);
	for (int i = 0; runtimes[i]; i++) {
		check_set(target, 1U << i, RUNTIME_SOURCE_WALK, WALKERS);
		check_set(target, all & ~(1U << i), RUNTIME_SOURCE_WALK, 0);
		if (runtimes[i]->probes)
			check_set(target, 1U << i, RUNTIME_SOURCE_CALLS, PROBES);
	}
	check_set(target, all, RUNTIME_SOURCE_AUTO, WALKERS | PROBES);
	check_set(target, all, RUNTIME_SOURCE_PROBES, PROBES);
	check_set(target, all, RUNTIME_SOURCE_CALLS, PROBES);
	check_set(target, all, RUNTIME_SOURCE_MAP, 0);
}

/* --- --unwind, -e, targets --- */

static void check_unwinds(const struct target *target)
{
	for (int mode = 0; mode < MODES_N; mode++) {
		struct session_opts opts = usual(target);
		char name[100];

		opts.unwind = mode;
		snprintf(name, sizeof(name), "--unwind %s", unwinds[mode]);
		check(&opts, WALKERS, false, name);
		opts.enabled = 0;
		snprintf(name, sizeof(name), "--unwind %s, no runtime", unwinds[mode]);
		check(&opts, 0, false, name);
	}
}

static bool has_example(const struct event_kind *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct event_list list = {};

		if (event_list__parse(examples[i].list, &list, NULL))
			continue;
		for (uint32_t k = 0; k < list.n; k++)
			if (list.list[k].kind == kind)
				return true;
	}
	return false;
}

static void check_events(const struct target *target)
{
	for (int i = 0; !*part && event_kinds[i]; i++)
		ok(has_example(event_kinds[i]), "there is an example of -e %s",
		   event_kinds[i]->name);
	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		struct session_opts opts = usual(target);
		struct err err = {};
		char name[200];

		if (event_list__parse(examples[i].list, &opts.events, &err)) {
			ok(false, "-e %s: %s", examples[i].list, err.text);
			continue;
		}
		opts.enabled = 0;
		snprintf(name, sizeof(name), "-e %s, no runtime", examples[i].list);
		check(&opts, 0, examples[i].by_machine, name);
		if (opts.events.n <= 1)
			continue;
		opts.enabled = UINT32_MAX;
		snprintf(name, sizeof(name), "-e %s", examples[i].list);
		check(&opts, WALKERS, examples[i].by_machine, name);
	}
}

static void check_scopes(const struct target *target)
{
	static const struct {
		const char *name;
		struct scope_opts scope;
	} scopes[] = { { "-a", { .all = true } },
		       { "--name", { .name = "load_each" } },
		       { "--user", { .user = "0" } } };

	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		struct session_opts opts = usual(target);
		char name[100];

		opts.pids = NULL;
		opts.n_pids = 0;
		opts.scope = scopes[i].scope;
		check(&opts, 0, false, scopes[i].name);
		opts.enabled = 0;
		snprintf(name, sizeof(name), "%s, no runtime", scopes[i].name);
		check(&opts, 0, false, name);
	}
}

/* Maps a file with the probes that the events alloc:usdt and outstanding:usdt require. */
static void map_heap(void)
{
	const char *output = getenv("OUTPUT");
	char path[4096];

	snprintf(path, sizeof(path), "%s/lib/braid/libbraid-heap.so", output ? output : "build");
	ok(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL, "%s is mapped", path);
}

/* Starts a process that sleeps until its parent ends. */
static uint32_t start_sleeper(void)
{
	int pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	char directory[] = "/tmp/load_each.XXXXXX", recording[64];
	struct target target = { .recording = recording };

	part = argc > 1 ? argv[1] : "";
	limit_s = alarm(0); /* the remaining time is the limit of each check */
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!mkdtemp(directory))
		return 1;
	snprintf(recording, sizeof(recording), "%s/x.db", directory);
	setenv("XDG_CACHE_HOME", directory, 1);
	map_heap();
	target.pid = start_sleeper();
	check_sets(&target);
	check_unwinds(&target);
	check_events(&target);
	check_scopes(&target);
	kill(target.pid, SIGKILL);
	unlink(recording);
	rmdir(directory);
	return tap__done();
}
