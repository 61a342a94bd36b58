// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session/activity.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/syscalls.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "core/target/tracker.h"

#define CALLS_N	    1024 /* numbers of system calls */
#define THREADS_MAX 4096 /* that are looked at: a sentence needs no more */

double activity__cpu_s(const struct tracker *tracker)
{
	const struct process *process;
	double sum_s = 0;

	for (process = tracker__first(tracker); process; process = process->hh.next)
		sum_s += process->gone ? 0 : procfs__cpu_s(process->pid);
	return sum_s;
}

/* /proc/PID/task/TID/syscall: its number, "running", or -1 where a thread waits elsewhere. */
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

void activity__read(const struct tracker *tracker, double before_s, struct activity *ret)
{
	const struct process *process;
	unsigned counts[CALLS_N] = {};
	double cpu_s = before_s < 0 ? -1 : max_of(activity__cpu_s(tracker) - before_s, 0.0);

	*ret = (struct activity) { .cpu_s = cpu_s };
	for (process = tracker__first(tracker); process; process = process->hh.next) {
		if (process->gone || !procfs__thread_state(process->pid))
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
