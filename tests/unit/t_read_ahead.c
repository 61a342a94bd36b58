// SPDX-License-Identifier: GPL-2.0-or-later
/* The order in which processes are read, in a made-up /proc. */
#include "core/target/read_ahead.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/target/procfs.h"
#include "tests/tap.h"

#define KERNEL_THREAD 0x00200000

static char root[] = "/tmp/braid-ahead-XXXXXX";
static uint32_t known, unwanted;

static bool is_read(void *ctx, uint32_t pid)
{
	(void)ctx;
	return pid == known;
}

static bool is_selected(void *ctx, uint32_t pid)
{
	(void)ctx;
	return pid != unwanted;
}

/* Writes the stat file of a process. @age: seconds since its start. */
static void write_stat(unsigned pid, char state, unsigned flags, unsigned ticks, unsigned age)
{
	struct timespec now;
	char path[128];
	FILE *file;

	clock_gettime(CLOCK_BOOTTIME, &now);
	snprintf(path, sizeof(path), "%s/%u", root, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
	file = fopen(path, "w");
	fprintf(file, "%u (a) b) %c 1 1 1 0 -1 %u 0 0 0 0 %u 0 0 0 20 0 1 0 %llu 0 0\n", pid, state,
		flags, ticks,
		(unsigned long long)(now.tv_sec - age) * (unsigned)sysconf(_SC_CLK_TCK));
	fclose(file);
}

static void write_all(void)
{
	write_stat(10, 'S', 0, 5000, 100); /* half a CPU over its lifetime */
	write_stat(11, 'R', 0, 1, 100);	   /* runs now */
	write_stat(12, 'S', 0, 0, 100);	   /* idles */
	write_stat(13, 'S', 0, 9000, 100); /* 0.9 CPUs */
	write_stat(14, 'R', 0, 2000, 100); /* runs now, with more CPU time */
	write_stat(15, 'Z', 0, 9999, 100); /* a zombie */
	write_stat(16, 'R', KERNEL_THREAD, 9999, 100);
	write_stat(17, 'S', 0, 9999, 100); /* tracked already */
	write_stat(18, 'R', 0, 9999, 100); /* excluded from the profile */
}

static const char *order(struct read_ahead *ahead)
{
	static char text[128];
	uint32_t pid;

	text[0] = '\0';
	while ((pid = read_ahead__next(ahead)))
		sprintf(text + strlen(text), "%s%u", *text ? " " : "", pid);
	return text;
}

static void test_order(void)
{
	struct read_ahead_opts opts = { .is_read = is_read, .is_selected = is_selected };
	struct read_ahead *ahead;

	known = 17;
	unwanted = 18;
	is_int(read_ahead__new(&opts, &ahead), 0, "made");
	is_int(read_ahead__look(ahead), 0, "the processes are listed");
	is_int(read_ahead__count(ahead), 4, "those that are worth reading");
	is_str(order(ahead), "14 11 13 10", "who runs, then by CPU time over the life");
	is_int(read_ahead__count(ahead), 0, "none is left");

	write_stat(12, 'S', 0, 7, 100);
	write_stat(10, 'S', 0, 5009, 100);
	write_stat(11, 'S', 0, 1, 100);
	write_stat(14, 'S', 0, 2001, 100);
	write_stat(19, 'S', 0, 3, 1);
	is_int(read_ahead__look(ahead), 0, "listed again");
	is_str(order(ahead), "10 12 19 14", "by CPU time since the last look");

	is_int(read_ahead__look(ahead), 0, "and again");
	is_str(order(ahead), "", "who has used none since is left");
	read_ahead__free(ahead);

	opts.all = true;
	write_all();
	is_int(read_ahead__new(&opts, &ahead), 0, "made for all");
	is_int(read_ahead__look(ahead), 0, "listed");
	known = 14;
	is_int(read_ahead__count(ahead), 5, "what has become known is not counted");
	is_str(order(ahead), "11 13 10 19 12", "who idles comes last");
	read_ahead__free(ahead);
}

static void remove_all(void)
{
	char path[128];

	for (unsigned pid = 10; pid < 20; pid++) {
		snprintf(path, sizeof(path), "%s/%u/stat", root, pid);
		unlink(path);
		snprintf(path, sizeof(path), "%s/%u", root, pid);
		rmdir(path);
	}
	rmdir(root);
}

static uint32_t only;

static bool is_only(void *ctx, uint32_t pid)
{
	(void)ctx;
	return pid == only;
}

static void *spin(void *unused)
{
	for (;;)
		getppid();
	return unused;
}

/* A process whose first thread has ended while another one runs. */
static void test_first_ended(void)
{
	struct read_ahead_opts opts = { .is_read = is_read, .is_selected = is_only };
	struct procfs_info info = {};
	struct read_ahead *ahead;
	pthread_t thread;
	uint32_t pid = fork();

	if (!pid) {
		pthread_create(&thread, NULL, spin, NULL);
		pthread_exit(NULL);
	}
	only = pid;
	do {
		info = (struct procfs_info) {};
		usleep(1000);
	} while (!procfs__usage(pid, &info) && info.state != 'Z');
	is_int(info.state, 'Z', "the first thread has ended");
	is_int(read_ahead__new(&opts, &ahead), 0, "made");
	is_int(read_ahead__look(ahead), 0, "the processes are listed");
	is_int(read_ahead__next(ahead), pid, "one whose other thread runs is read");
	read_ahead__free(ahead);
	kill(pid, SIGKILL);
	waitid(P_PID, pid, &(siginfo_t) {}, WEXITED | WNOWAIT);
	is_int(read_ahead__new(&opts, &ahead), 0, "made");
	is_int(read_ahead__look(ahead), 0, "listed again");
	is_int(read_ahead__next(ahead), 0, "one that has ended altogether is not");
	read_ahead__free(ahead);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct procfs_source source = { .root = root };

	if (!mkdtemp(root))
		return 1;
	procfs__use(&source);
	write_all();
	test_order();
	procfs__use(NULL);
	remove_all();
	test_first_ended();
	return tap__done();
}
