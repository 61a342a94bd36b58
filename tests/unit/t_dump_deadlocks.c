// SPDX-License-Identifier: GPL-2.0-or-later
/* A dump names a deadlock only if all its waits exist at one instant. Programs stop at a fixed
 * place while some of their threads are read, then change the locks, and are read to the end. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

enum { FIRST, SECOND, THIRD, THREADS_MAX };

static struct shared { /* memory that the program and the test share */
	pthread_mutex_t one, two;
	volatile uint32_t tids[THREADS_MAX];
} * shared;

static int go[2];

static void wait_for_go(void)
{
	char byte;

	if (read(go[0], &byte, 1) != 1)
		_exit(1);
}

static void say_go(void)
{
	if (write(go[1], "g", 1) != 1)
		perror("write");
}

static bool waits_in(pid_t pid, int which, int call, const void *object)
{
	struct thread_now now;
	uint32_t tid = shared->tids[which];

	return tid && thread__read(pid, tid, &now) && now.off_cpu && now.call == call &&
	       (!object || now.args[0] == (uintptr_t)object);
}

static void until_waits(pid_t pid, int which, int call, const void *object)
{
	while (!waits_in(pid, which, call, object) && waitpid(pid, NULL, WNOHANG) != pid)
		usleep(1000);
}

static void begin(int which)
{
	shared->tids[which] = syscall(SYS_gettid);
}

static void start(void *(*function)(void *))
{
	pthread_t thread;

	pthread_create(&thread, NULL, function, NULL);
}

/* --- two threads, each waiting for the other's mutex --- */

static pthread_barrier_t barrier;

static void *has_two(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&shared->two);
	pthread_barrier_wait(&barrier);
	begin(SECOND);
	pthread_mutex_lock(&shared->one);
	return NULL;
}

static void deadlock(void)
{
	pthread_barrier_init(&barrier, NULL, 2);
	start(has_two);
	pthread_mutex_lock(&shared->one);
	pthread_barrier_wait(&barrier);
	begin(FIRST);
	pthread_mutex_lock(&shared->two);
}

/* --- the first waits and gets the mutex; then the second waits for it --- */

static void *gets_one(void *unused)
{
	(void)unused;
	begin(FIRST);
	pthread_mutex_lock(&shared->one);
	wait_for_go();
	return NULL;
}

static void hand_over(void)
{
	pthread_mutex_lock(&shared->one);
	start(gets_one);
	wait_for_go();
	pthread_mutex_unlock(&shared->one);
	while (shared->one.__data.__owner != (int)shared->tids[FIRST])
		usleep(100);
	begin(SECOND);
	pthread_mutex_lock(&shared->one);
}

/* --- the first sleeps all the time, while its mutex passes from the second to a third --- */

static void *gets_one_third(void *unused)
{
	(void)unused;
	begin(THIRD);
	pthread_mutex_lock(&shared->one);
	wait_for_go();
	return NULL;
}

static void *has_two_wants_one(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&shared->two);
	until_waits(getpid(), THIRD, SYS_futex, &shared->one);
	begin(FIRST);
	pthread_mutex_lock(&shared->one);
	return NULL;
}

static void pass_over(void)
{
	pthread_mutex_lock(&shared->one);
	start(gets_one_third);
	start(has_two_wants_one);
	wait_for_go();
	pthread_mutex_unlock(&shared->one);
	while (shared->one.__data.__owner != (int)shared->tids[THIRD])
		usleep(100);
	begin(SECOND);
	pthread_mutex_lock(&shared->two);
}

/* --- a Lock of Python --- */

static const char script[] = "import os, sys, threading\n"
			     "lock = threading.Lock()\n"
			     "def get():\n"
			     "    with lock:\n"
			     "        os.read(int(sys.argv[1]), 1)\n"
			     "with lock:\n"
			     "    thread = threading.Thread(target=get)\n"
			     "    thread.start()\n"
			     "    os.write(1, thread.native_id.to_bytes(4, 'little'))\n"
			     "    os.read(int(sys.argv[1]), 1)\n"
			     "thread.join()\n";

static int answer[2];

static void python(void)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", go[0]);
	dup2(answer[1], 1);
	execl("/usr/bin/python3", "python3", "-c", script, fd, NULL);
}

/* --- the test's side --- */

static pid_t begin_program(void (*program)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	if (pipe(go) || pipe(answer))
		return -1;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		program();
		_exit(1);
	}
	close(answer[1]);
	return pid;
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(go[0]);
	close(go[1]);
	close(answer[0]);
}

struct test {
	struct dump *dump;
	struct dump_process process;
	struct err err;
};

static void open_dump(struct test *test, pid_t pid)
{
	const struct dump_opts opts = { .runtimes = runtimes, .enabled = ~0U, .nonblocking = true };

	*test = (struct test) {};
	is_int(dump__new(&opts, &test->dump, &test->err), 0, "a dump begins (%s)", test->err.text);
	test->dump->result = &test->process;
	is_int(dump__open_process(test->dump, pid, NULL, &test->err), 0, "of the process (%s)",
	       test->err.text);
	test->process.threads = calloc(THREADS_MAX, sizeof(*test->process.threads));
	for (int i = 0; i < THREADS_MAX && shared->tids[i]; i++)
		test->process.threads[test->process.n_threads++].tid = shared->tids[i];
}

static struct dump_thread *take(struct test *test, int which)
{
	struct dump_thread *thread = &test->process.threads[which];

	thread->tid = shared->tids[which];
	is_int(dump__take_thread(test->dump, thread, &test->err), 0, "thread %d is read (%s)",
	       which, test->err.text);
	return thread;
}

static void finish(struct test *test)
{
	is_int(dump__finish_process(test->dump, &test->err), 0, "the rest is read (%s)",
	       test->err.text);
}

static void close_dump(struct test *test)
{
	dump__close_process(test->dump);
	dump_process__done(&test->process);
	dump__free(test->dump);
}

static void test_deadlock(void)
{
	pid_t pid = begin_program(deadlock);
	struct dump_thread *first, *second;
	struct test test;

	until_waits(pid, FIRST, SYS_futex, &shared->two);
	until_waits(pid, SECOND, SYS_futex, &shared->one);
	open_dump(&test, pid);
	first = take(&test, FIRST);
	second = take(&test, SECOND);
	finish(&test);
	ok(first->deadlocked && second->deadlocked, "a deadlock is named");
	is_int(first->holder, second->tid, "the first waits for the second");
	is_int(second->holder, first->tid, "and the second for the first");
	is_int(first->circle, min_of(first->tid, second->tid), "it has the lower number");
	close_dump(&test);
	end_program(pid);
}

/* Opens the dump and reads the thread FIRST, which waits for the program's first thread. Then lets
 * the program continue. */
static struct dump_thread *take_then_go(struct test *test, pid_t pid)
{
	struct dump_thread *first;

	until_waits(pid, FIRST, SYS_futex, &shared->one);
	shared->tids[SECOND] = pid;
	until_waits(pid, SECOND, SYS_read, NULL);
	open_dump(test, pid);
	first = take(test, FIRST);
	is_int(first->holder, pid, "the first waits for the second");
	say_go();
	return first;
}

static void test_hand_over(void)
{
	pid_t pid = begin_program(hand_over);
	struct dump_thread *first, *second;
	struct test test;

	first = take_then_go(&test, pid);
	until_waits(pid, SECOND, SYS_futex, &shared->one);
	second = take(&test, SECOND);
	is_int(second->holder, first->tid, "the second waits for the first, later");
	finish(&test);
	ok(!first->deadlocked && !second->deadlocked, "handed over: that is no deadlock");
	ok(!first->holder, "handed over: nothing stale is said of the first");
	is_int(second->holder, first->tid, "handed over: the second still waits for it");
	close_dump(&test);
	end_program(pid);
}

static void test_pass_over(void)
{
	pid_t pid = begin_program(pass_over);
	struct dump_thread *first, *second;
	struct test test;

	first = take_then_go(&test, pid);
	until_waits(pid, SECOND, SYS_futex, &shared->two);
	take(&test, THIRD);
	second = take(&test, SECOND);
	is_int(second->holder, first->tid, "the second waits for the first, later");
	finish(&test);
	ok(!first->deadlocked && !second->deadlocked,
	   "passed over: that is no deadlock, though the first has not run");
	ok(first->lock == LOCK_WAITED && first->holder == shared->tids[THIRD],
	   "passed over: the first waits for the third now");
	is_int(second->holder, first->tid, "passed over: the second still waits for the first");
	close_dump(&test);
	end_program(pid);
}

static void test_python(void)
{
	pid_t pid = begin_program(python);
	struct dump_thread *first;
	struct test test;
	uint32_t tid = 0;

	if (read(answer[0], &tid, sizeof(tid)) != sizeof(tid)) {
		tap__skip("there is no /usr/bin/python3", "a Lock of Python");
		end_program(pid);
		return;
	}
	shared->tids[FIRST] = tid;
	shared->tids[SECOND] = pid;
	until_waits(pid, FIRST, SYS_futex, NULL);
	until_waits(pid, SECOND, SYS_read, NULL);
	open_dump(&test, pid);
	first = take(&test, FIRST);
	take(&test, SECOND);
	say_go();
	until_waits(pid, FIRST, SYS_read, NULL);
	finish(&test);
	ok(!first->deadlocked, "python: a thread that has got its Lock does not wait for itself");
	ok(first->lock != LOCK_WAITED, "python: nothing stale is said of it");
	close_dump(&test);
	end_program(pid);
}

int main(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	test_deadlock();
	test_hand_over();
	test_pass_over();
	test_python();
	return tap__done();
}
