// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/util.h"

struct worker {
	int cpu;
	int socket;	/* braid's end */
	int own_socket; /* the worker's; -1 in braid */
};

struct workers {
	pid_t pid; /* of all: they are threads of one process; 0: none */
	struct worker *list;
	unsigned n;
	uint32_t asked; /* times each does it */
};

struct request {
	uint32_t task, n, depth;
};

struct reply {
	uint64_t cpu_ns, wall_ns;
};

/* What a probe of a runtime tells: two strings and a line (WORKER_PAIR). */
static const char file_name[] = "braid-bench.py", function_name[] = "bench";

/* A chain of calls with unwind tables and frame pointers, ended by additions:
 * bench_deep(depth, thousands). */
void bench_deep(uint64_t depth, uint64_t thousands);
asm(".pushsection .text\n.balign 16\n.globl bench_deep\n.type bench_deep,@function\n"
    "bench_deep:\n.cfi_startproc\n"
    "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp,-16\n"
    "mov %rsp,%rbp\n.cfi_def_cfa_register %rbp\n"
    "sub $16,%rsp\n"
    "sub $1,%rdi\njbe 1f\n"
    "call bench_deep\n"
    "jmp 2f\n"
    "1: imul $1000,%rsi,%rsi\n"
    "3: sub $1,%rsi\nja 3b\n"
    "2: leave\n.cfi_def_cfa %rsp,8\nret\n.cfi_endproc\n.size bench_deep,.-bench_deep\n"
    ".popsection");

trap_site_fn worker__site(enum worker_task task)
{
	static const trap_site_fn sites[WORKER_SITES_N] = {
		[WORKER_NOP] = trap_site_nop,
		[WORKER_NOP_COUNTED] = trap_site_nop_counted,
		[WORKER_NOP5] = trap_site_nop5,
		[WORKER_PUSH] = trap_site_push,
		[WORKER_PUSH_RETURN] = trap_site_push_return,
		[WORKER_PUSH_PAIR] = trap_site_push_pair,
		[WORKER_STEP] = trap_site_step,
		[WORKER_PAIR] = trap_site_pair,
		[WORKER_PAIR_SHADOW] = trap_site_pair_shadow,
		[WORKER_PAIR_CALLS] = trap_site_pair_calls,
	};

	return sites[task];
}

static void do_task(const struct request *request)
{
	trap_site_fn site;

	if (request->task == WORKER_SPIN || request->task == WORKER_DEEP) {
		bench_deep(request->task == WORKER_SPIN ? 1 : request->depth, request->n);
		return;
	}
	/* A fork leaves such pages to be mapped at their first use, and BPF programs map nothing.
	 */
	(void)*(const volatile char *)file_name;
	(void)*(const volatile char *)function_name;
	site = worker__site(request->task);
	for (uint32_t i = 0; i < request->n; i++)
		site((uintptr_t)file_name, (uintptr_t)function_name, 1);
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct request request;
	struct reply reply;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(worker->cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	while (read(worker->own_socket, &request, sizeof(request)) == sizeof(request)) {
		reply.wall_ns = now_ns();
		reply.cpu_ns = thread_cpu_ns();
		do_task(&request);
		reply.cpu_ns = thread_cpu_ns() - reply.cpu_ns;
		reply.wall_ns = now_ns() - reply.wall_ns;
		if (write(worker->own_socket, &reply, sizeof(reply)) != sizeof(reply))
			break;
	}
	_exit(0);
}

static void __attribute__((noreturn)) run_threads(struct workers *workers)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < workers->n; i++)
		close_fd(&workers->list[i].socket);
	for (unsigned i = 1; i < workers->n; i++)
		if (pthread_create(&thread, NULL, work, &workers->list[i]))
			_exit(1);
	work(&workers->list[0]);
	_exit(0);
}

static int open_sockets(struct worker *worker, int cpu, struct err *err)
{
	int sockets[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets))
		return err__set(err, -errno, "socketpair: %s", strerror(errno));
	*worker = (struct worker) { .cpu = cpu, .socket = sockets[0], .own_socket = sockets[1] };
	return 0;
}

static int start(struct workers *workers, unsigned n, struct err *err)
{
	cpu_set_t set;
	int code = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return err__set(err, -errno, "sched_getaffinity: %s", strerror(errno));
	for (int cpu = 0; !code && workers->n < n && cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		code = open_sockets(&workers->list[workers->n], cpu, err);
		workers->n += !code;
	}
	if (code)
		return code;
	if (workers->n < n)
		return err__set(err, -EINVAL, "this process may use %u CPUs, not %u", workers->n,
				n);
	workers->pid = fork();
	if (!workers->pid)
		run_threads(workers);
	for (unsigned i = 0; i < workers->n; i++)
		close_fd(&workers->list[i].own_socket);
	return workers->pid > 0 ? 0 : err__set(err, -errno, "fork: %s", strerror(errno));
}

int workers__start(unsigned n, struct workers **ret, struct err *err)
{
	struct workers *workers = calloc(1, sizeof(*workers));
	int code;

	if (workers)
		workers->list = calloc(n, sizeof(*workers->list));
	code = workers && workers->list ? start(workers, n, err)
					: err__set(err, -ENOMEM, "out of memory");
	if (code)
		workers__stop(workers);
	else
		*ret = workers;
	return code;
}

void workers__stop(struct workers *workers)
{
	if (!workers)
		return;
	if (workers->pid > 0) {
		kill(workers->pid, SIGKILL);
		waitpid(workers->pid, NULL, 0);
	}
	for (unsigned i = 0; i < workers->n; i++) {
		close_fd(&workers->list[i].socket);
		close_fd(&workers->list[i].own_socket);
	}
	free(workers->list);
	free(workers);
}

unsigned workers__n(const struct workers *workers)
{
	return workers->n;
}

pid_t workers__pid(const struct workers *workers)
{
	return workers->pid;
}

int workers__cpu(const struct workers *workers, unsigned i)
{
	return workers->list[i].cpu;
}

int workers__begin(struct workers *workers, enum worker_task task, uint32_t n, uint32_t depth,
		   struct err *err)
{
	struct request request = { .task = task, .n = n, .depth = depth };

	workers->asked = n;
	for (unsigned i = 0; i < workers->n; i++)
		if (write(workers->list[i].socket, &request, sizeof(request)) != sizeof(request))
			return err__set(err, -EPIPE, "a process that is measured has ended");
	return 0;
}

int workers__wait(struct workers *workers, struct worker_times *ret, struct err *err)
{
	double share = 1.0 / workers->n / max_of(workers->asked, 1U);
	struct reply reply;

	*ret = (struct worker_times) {};
	for (unsigned i = 0; i < workers->n; i++) {
		if (read(workers->list[i].socket, &reply, sizeof(reply)) != sizeof(reply))
			return err__set(err, -EPIPE, "a process that is measured has ended");
		ret->cpu_ns += reply.cpu_ns * share;
		ret->wall_ns += reply.wall_ns * share;
	}
	return 0;
}

int workers__run(struct workers *workers, enum worker_task task, uint32_t n, uint32_t depth,
		 struct worker_times *ret, struct err *err)
{
	int code = workers__begin(workers, task, n, depth, err);

	return code ? code : workers__wait(workers, ret, err);
}
