#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of a user that is not trusted, whose perf maps are made to cost: one of 30 MB that ten
processes share, others of their own, 4 GiB of nothing, one that is written anew all the time, one
that grows all the time, a pipe. braid's memory is bounded, it ends when it is told to, and another
user's process beside them has its names."""

import os
import re
import signal
import subprocess
import time

import gate
import waiting

NOBODY = 65534
MAP_BYTES = 30_000_000
MEMORY_MIB = 450  # 96 MiB for the index of a file, 256 MiB for those of a user, and what braid takes itself
END_S = 30  # a bound for what hangs; a second is usual
SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* mov $SYS_getppid, %eax; syscall; ret */
static const unsigned char code[] = { 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3 };
static unsigned char *made;

static void fill(const char *path, size_t bytes, const char *flags)
{
	FILE *out = fopen(path, flags);

	for (size_t n = 0, i = 0; out && n < bytes; i++)
		n += fprintf(out, "%lx 8 filler\n", (unsigned long)made + 4096 + i % 1000000 * 8);
	if (out)
		fprintf(out, "%lx 8 named_code\n", (unsigned long)made);
	if (out)
		fclose(out);
}

static void make(const char *kind, const char *shared, const char *path)
{
	unlink(path); /* of an earlier life of the PID */
	if (!strcmp(kind, "shared"))
		link(shared, path);
	else if (!strcmp(kind, "pipe"))
		mkfifo(path, 0600);
	else
		fill(path, strcmp(kind, "small") ? MAP_BYTES : 0, "w");
	if (!strcmp(kind, "huge"))
		truncate(path, 4L << 30);
}

/* Calls the code once for each byte, and answers with one. */
static void child(const char *kind, const char *path, int go, int done)
{
	int appended = 0;
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	fcntl(go, F_SETFL, strcmp(kind, "rewritten") && strcmp(kind, "growing") ? 0 : O_NONBLOCK);
	for (;;) {
		ssize_t n = read(go, &byte, 1);

		if (!n)
			break;
		if (n == 1) {
			((void (*)(void))made)();
			write(done, &byte, 1);
		} else if (!strcmp(kind, "rewritten")) {
			fill(path, MAP_BYTES, "w");
		} else if (appended++ < 300) {
			fill(path, 1000000, "a");
		} else {
			usleep(1000);
		}
	}
	unlink(path);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = atoi(argv[2]), done[2], go[64][2];
	char shared[64], path[64], line[16], byte;

	if (argc > 3 && (setresgid(atoi(argv[3]), atoi(argv[3]), atoi(argv[3])) ||
			 setresuid(atoi(argv[3]), atoi(argv[3]), atoi(argv[3]))))
		return 1;
	made = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(made, code, sizeof(code));
	snprintf(shared, sizeof(shared), "/tmp/braid-test-map-%d", getpid());
	if (!strcmp(argv[1], "shared"))
		fill(shared, MAP_BYTES, "w");
	if (pipe(done))
		return 1;
	for (int i = 0; i < n; i++) {
		pid_t pid;

		if (pipe(go[i]))
			return 1;
		pid = fork();
		if (!pid) {
			for (int k = 0; k <= i; k++)
				close(go[k][1]);
			snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
			make(argv[1], shared, path);
			write(done[1], "", 1);
			child(argv[1], path, go[i][0], done[1]);
		}
		read(done[0], &byte, 1);
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < n; i++)
			write(go[i][1], "", 1);
		for (int i = 0; i < n; i++)
			read(done[0], &byte, 1);
		puts("done");
		fflush(stdout);
	}
	for (int i = 0; i < n; i++)
		close(go[i][1]);
	while (wait(NULL) > 0)
		;
	unlink(shared);
	return 0;
}
"""
KINDS = (("shared", 10), ("own", 8), ("huge", 2), ("rewritten", 1), ("growing", 1), ("pipe", 1))


def build():
    program = gate.path("maps")
    subprocess.run(["gcc", "-O1", "-w", f"-DMAP_BYTES={MAP_BYTES}", "-include", "signal.h", "-x", "c", "-", "-o",
                    program], input=SOURCE.encode(), check=True)
    return program


def children_of(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def memory_mib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1]) // 1024


def record(targets, name):
    """(Stacks of each process, MiB of braid at most, seconds that its end took, what it said)"""
    file = gate.path(name + ".db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-r", "jit", "--max-overhead", "none", "-o", file,
                       "-p", ",".join(str(target.pid) for target in targets), stderr=subprocess.PIPE)
    gate.wait_until(lambda: braid.poll() is not None or
                    (os.path.exists(file) and waiting.is_in_loop(braid.pid)), "the loop")
    for target in targets:
        gate.ask(target, "go")
    used, begin = memory_mib(braid.pid), time.monotonic()
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    seconds = time.monotonic() - begin
    recording = gate.Recording(file)
    pids = [pid for pid, in recording.sql("SELECT DISTINCT process.pid FROM sample JOIN thread ON "
                                          "thread.id = sample.thread JOIN process ON process.id = thread.process")]
    return {pid: recording.merged("--pid", str(pid)) for pid in pids}, used, seconds, said


def check(program, kind, n):
    good = gate.start(program, "small", "1")
    bad = gate.start(program, kind, str(n), str(NOBODY))
    gate.wait_line(good, "ready")
    gate.wait_line(bad, "ready")
    stacks, used, seconds, said = record([bad, good], kind)
    named = [pid for pid in stacks if "named_code" in str(stacks[pid])]
    gate.equal(len(stacks), n + 1, f"{kind}: a sample of each", said)
    gate.ok(children_of(good)[0] in named, f"{kind}: the good one has its name", str(stacks), said)
    if kind == "shared":
        gate.equal(sorted(named), sorted(stacks), f"{kind}: and so have all that share a map", said)
    gate.ok(used <= MEMORY_MIB, f"{kind}: {used} MiB of memory")
    gate.ok(seconds <= END_S, f"{kind}: ended after {seconds:.1f} s", said)
    if kind == "huge":
        gate.matches("too large to read in full: .*/tmp/perf-", said, f"{kind}: is told by name")
    for target in good, bad:
        target.stdin.close()
        target.wait()


gate.need_root()
gate.need_program("/usr/bin/gcc")
for kind_of, count in KINDS:
    check(build(), kind_of, count)
gate.done()
