// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_threads.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/cpu_clock.h"
#include "core/kernel/kernel_subset.h"

#define TICK_NS	 100000 /* one or two ticks in each window */
#define CPUS_MAX 8	/* the cost on these holds for all CPUs; switching ticks on takes time */

struct alloc_threads {
	struct bpf_object *object;
	const struct bpf_program *program;
	struct bpf_link *visits; /* an iterator over all threads ... */
	struct bpf_link *of_process;
	pid_t pid; /* ... one over the threads of this process; 0: none yet */
	struct bpf_link *links[CPUS_MAX];
	int fds[CPUS_MAX];
	int n;
	uint64_t tick_ns;
};

static int attach(struct alloc_threads *threads, struct err *err)
{
	const struct bpf_program *program =
		bpf_object__find_program_by_name(threads->object, "alloc_on_tick");
	int n_cpus = libbpf_num_possible_cpus(), ret = 0;

	for (int cpu = 0; !ret && cpu < n_cpus && threads->n < CPUS_MAX; cpu++) {
		struct bpf_link *link = NULL;

		ret = cpu_clock__attach(program, cpu, TICK_NS, &link, &threads->fds[threads->n],
					err);
		if (link)
			threads->links[threads->n++] = link;
	}
	alloc_threads__tick(threads, false);
	if (ret)
		return ret;
	program = bpf_object__find_program_by_name(threads->object, "alloc_on_thread");
	threads->program = program;
	threads->visits = bpf_program__attach_iter(program, NULL);
	return threads->visits ? 0
			       : err__set(err, -errno, "cannot iterate over the threads: %s",
					  strerror(errno));
}

/* Returns the iterator over the threads of the process, or over all threads if there is none. */
static const struct bpf_link *visits_of(struct alloc_threads *threads, pid_t pid)
{
	union bpf_iter_link_info info = { .task.pid = pid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts, .link_info = &info, .link_info_len = sizeof(info));

	if (pid < 0)
		return threads->visits;
	if (pid != threads->pid) {
		bpf_link__destroy(threads->of_process);
		threads->of_process = bpf_program__attach_iter(threads->program, &opts);
		threads->pid = pid;
	}
	return threads->of_process ? threads->of_process : threads->visits;
}

void alloc_threads__visit(struct alloc_threads *threads, pid_t pid)
{
	int fd = bpf_iter_create(bpf_link__fd(visits_of(threads, pid)));
	char nothing[64];

	/* The program writes nothing. */
	while (fd >= 0 && read(fd, nothing, sizeof(nothing)) < 0 &&
	       (errno == EAGAIN || errno == EINTR))
		;
	close_fd(&fd);
}

#define ROUNDS 5
#define STEPS  1000000 /* 1 or 2 ms */

static double time_steps(void)
{
	volatile uint64_t x = 1;
	double began_ns = thread_cpu_ns();

	for (int i = 0; i < STEPS; i++)
		x = x * 6364136223846793005 + 1;
	return thread_cpu_ns() - began_ns;
}

/* Takes the minimum of several rounds, as other activity takes time, too. */
static void measure_tick(struct alloc_threads *threads)
{
	double without = time_steps(), with = 0, ns;

	for (int i = 0; i < ROUNDS; i++) {
		ns = time_steps();
		without = min_of(without, ns);
		alloc_threads__tick(threads, true);
		ns = time_steps();
		alloc_threads__tick(threads, false);
		with = i ? min_of(with, ns) : ns;
	}
	threads->tick_ns = max_of((with - without) / (with / TICK_NS), 0.0);
}

uint64_t alloc_threads__tick_ns(const struct alloc_threads *threads)
{
	return threads->tick_ns;
}

int alloc_threads__new(const struct kernel_half *half, struct alloc_threads **ret, struct err *err)
{
	static const char *const programs[] = { "alloc_on_tick", "alloc_on_thread", NULL };
	struct alloc_threads *threads = calloc(1, sizeof(*threads));
	int rc;

	if (!threads)
		return err__set(err, -ENOMEM, "out of memory");
	rc = kernel_half__beside(half, programs, &threads->object);
	rc = rc ? err__set(err, rc, "cannot open the BPF programs: %s", strerror(-rc))
		: kernel_subset__load_object(threads->object, err);
	if (rc)
		err__prefix(err, rc,
			    "cannot load the BPF program that times the windows of --max-overhead");
	else
		rc = attach(threads, err);
	if (!rc)
		measure_tick(threads);
	if (rc)
		alloc_threads__free(threads);
	else
		*ret = threads;
	return rc;
}

void alloc_threads__tick(const struct alloc_threads *threads, bool run)
{
	for (int i = 0; i < threads->n; i++)
		ioctl(threads->fds[i], run ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void alloc_threads__free(struct alloc_threads *threads)
{
	if (!threads)
		return;
	while (threads->n)
		bpf_link__destroy(threads->links[--threads->n]);
	bpf_link__destroy(threads->of_process);
	bpf_link__destroy(threads->visits);
	bpf_object__close(threads->object);
	free(threads);
}
