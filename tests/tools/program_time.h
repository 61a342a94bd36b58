/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_TOOLS_PROGRAM_TIME_H
#define BRAID_TESTS_TOOLS_PROGRAM_TIME_H

/* What a run of each loaded BPF program takes by the kernel's statistics (kernel.bpf_stats_enabled,
 * here from program_times__open on): the best of many short spans, which is free of most of what
 * else goes on. The statistics' own cost is in it, so that only differences to an empty program
 * mean something. */

#include <stdint.h>
#include <stdio.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define PROGRAM_TIMES_MAX 16
#define PROGRAM_RUNS_MIN  100 /* of a span that is looked at */

static struct program_time {
	const char *name;
	int fd;
	uint64_t time_ns, runs; /* when the span began */
	double best_ns;		/* 0: no span yet */
} program_times[PROGRAM_TIMES_MAX];

static size_t program_times_n;

static inline void program_times__open(const struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_enable_stats(BPF_STATS_RUN_TIME); /* until the tool ends */
	bpf_object__for_each_program (program, object)
		if (bpf_program__autoload(program) && program_times_n < PROGRAM_TIMES_MAX)
			program_times[program_times_n++] = (struct program_time) {
				.name = bpf_program__name(program),
				.fd = bpf_program__fd(program),
			};
}

/* Ends a span, and begins the next one. */
static inline void program_times__look(void)
{
	for (size_t i = 0; i < program_times_n; i++) {
		struct program_time *time = &program_times[i];
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);
		double ns;

		if (bpf_obj_get_info_by_fd(time->fd, &info, &size))
			continue;
		if (info.run_cnt >= time->runs + PROGRAM_RUNS_MIN) {
			ns = (double)(info.run_time_ns - time->time_ns) /
			     (info.run_cnt - time->runs);
			if (!time->best_ns || ns < time->best_ns)
				time->best_ns = ns;
		}
		time->time_ns = info.run_time_ns;
		time->runs = info.run_cnt;
	}
}

static inline void program_times__print(void)
{
	for (size_t i = 0; i < program_times_n; i++)
		if (program_times[i].best_ns)
			printf("%s: %.1f ns\n", program_times[i].name, program_times[i].best_ns);
}

#endif
