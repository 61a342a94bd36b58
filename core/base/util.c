// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define PID_NS_INIT_INO 0xEFFFFFFCU /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

int array__reserve(void *array, size_t *cap, size_t need, size_t size)
{
	size_t grown = *cap ? *cap : 16;
	void *old, *bigger;

	if (need <= *cap)
		return 0;
	if (need > SIZE_MAX / 2 / size)
		return -ENOMEM;
	while (grown < need)
		grown *= 2;
	memcpy(&old, array, sizeof(old));
	bigger = reallocarray(old, grown, size);
	if (!bigger)
		return -ENOMEM;
	memcpy(array, &bigger, sizeof(bigger));
	*cap = grown;
	return 0;
}

uint32_t own_pidns(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino != PID_NS_INIT_INO ? st.st_ino : 0;
}

bool own_clocks_are_shifted(void)
{
	FILE *file = fopen("/proc/self/timens_offsets", "re"); /* time_namespaces(7) */
	long long seconds, ns;
	bool shifted = false;

	while (file && !shifted && fscanf(file, "%*s %lld %lld", &seconds, &ns) == 2)
		shifted = seconds || ns;
	if (file)
		fclose(file);
	return shifted;
}
