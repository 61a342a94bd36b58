// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/activity.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/base/syscalls.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "core/target/tracker.h"

#define CALLS_N	    1024 /* numbers of system calls */
#define THREADS_MAX 4096 /* maximum number of threads that are read; enough for the message */

void activity__begin(struct tracker *tracker)
{
	struct process *process;

	for (process = tracker__first(tracker); process; process = process->hh.next) {
		process->has_cpu_before = true;
		process->cpu_before_s =
			process__is_ended(process) ? 0 : procfs__cpu_s(process->pid);
	}
}

/* Time since the recording's end, as a part of its length, up to which CPU times are valid. CPU
 * time that processes use after the end is included. */
#define LATE_DIVISOR 20

/* Returns true if the process was forked at @than_ns (CLOCK_MONOTONIC) or later. A process's start
 * is in ticks of CLOCK_BOOTTIME. */
static bool is_younger(const struct process *process, uint64_t than_ns)
{
	struct timespec boot;
	double since_s = (now_ns() - than_ns) / 1e9;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	return process->info.start_ticks + 1.0 >=
	       (boot.tv_sec + boot.tv_nsec / 1e9 - since_s) * sysconf(_SC_CLK_TCK);
}

static double cpu_s(const struct tracker *tracker, uint64_t start_ns, uint64_t end_ns)
{
	const struct process *process;
	double sum_s = 0;

	for (process = tracker__first(tracker); process; process = process->hh.next) {
		if (!process->has_cpu_before && !is_younger(process, start_ns))
			return -1;
		if (!process__is_ended(process))
			sum_s += max_of(procfs__cpu_s(process->pid) - process->cpu_before_s, 0.0);
	}
	return now_ns() - end_ns > (end_ns - start_ns) / LATE_DIVISOR ? -1 : sum_s;
}

/* Reads /proc/PID/task/TID/syscall: the number of the system call, "running", or -1 if the thread
 * waits outside of system calls. */
static int call_of(uint32_t pid, uint32_t tid)
{
	char path[PROCFS_PATH_BYTES];
	int number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%u/task/%u/syscall", procfs__root(), pid, tid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%d", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

static void count_threads(uint32_t pid, struct activity *activity, unsigned *counts)
{
	char path[PROCFS_PATH_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%u/task", procfs__root(), pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		uint32_t tid = strtoul(entry->d_name, NULL, 10);
		int number = -1;

		if (!tid)
			continue;
		if (activity->threads++ < THREADS_MAX)
			number = call_of(pid, tid);
		if (number >= 0 && number < CALLS_N)
			counts[number]++;
	}
	if (dir)
		closedir(dir);
}

void activity__read(const struct tracker *tracker, uint64_t start_ns, uint64_t end_ns,
		    struct activity *ret)
{
	const struct process *process;
	unsigned counts[CALLS_N] = {};

	*ret = (struct activity) { .cpu_s = cpu_s(tracker, start_ns, end_ns) };
	for (process = tracker__first(tracker); process; process = process->hh.next) {
		if (process__is_ended(process) || !procfs__thread_state(process->pid))
			continue;
		ret->processes++;
		count_threads(process->pid, ret, counts);
	}
	while (ret->n_calls < ACTIVITY_CALLS_MAX) {
		int most = 0;

		for (int i = 1; i < CALLS_N; i++)
			if (counts[i] > counts[most])
				most = i;
		if (!counts[most])
			break;
		ret->calls[ret->n_calls].name = syscall__name(most);
		ret->calls[ret->n_calls].threads = counts[most];
		ret->n_calls += ret->calls[ret->n_calls].name != NULL;
		counts[most] = 0;
	}
}
