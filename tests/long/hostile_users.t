#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Twenty users of one machine do their worst for a minute, beside one honest Python program, while root records all of it
(record -a). The recording ends on Ctrl-C, memory stays below the bound that the service unit sets, and the stacks of the
honest program are complete. BRAID_HOSTILE_S: another time than a minute."""

import atexit
import glob
import os
import re
import signal
import subprocess
import time

import lib
import forged_elf as forged
from forged_elf import Section, Segment

SECONDS = float(os.environ.get("BRAID_HOSTILE_S", "60"))
FIRST_UID = 60100
GB, MB = 1 << 30, 1 << 20
DOCUMENTED = 2 * GB  # docs/reference/continuous.md: resident memory of "record -a", whatever is on the machine
END_S = 10  # at Ctrl-C, on a busy machine; a recorder that is deaf never ends

HONEST = """if True:
    import time
    def inner(n):
        return sum(x * x for x in range(n))
    def outer():
        while True:
            inner(20000)
            time.sleep(0.002)
    outer()
"""
MAPPER = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>
static void (*code)(long);
static void spin(void) { code(2000000); usleep(20000); }
/* maps SIZE: a perf map of SIZE bytes; rewrites SIZE: again and again; shares N SIZE: of N processes, one file.
 * files PATH...: maps each executable. many N: mappings. forks: children. names: threads' names. */
static void generated(void)
{
	static const unsigned char bytes[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
	unsigned char *at = mmap(0, 1 << 16, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(at, bytes, sizeof(bytes));
	code = (void (*)(long))at;
}
static void write_map(const char *path, size_t size)
{
	FILE *file = fopen(path, "w");
	for (size_t n = 0, k = 0; file && n < size; k++)
		n += fprintf(file, "%lx 1 a%zu\n", (unsigned long)code + k % 65000, k);
	if (file)
		fclose(file);
}
static void maps(size_t size, int again)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	do {
		write_map(path, size);
		for (int i = 0; i < (again ? 5 : 1000000); i++)
			spin();
	} while (again);
}
static void shares(int n, size_t size)
{
	char path[64], link_path[64];
	snprintf(path, sizeof(path), "/tmp/braid-hostile-%d", getpid());
	write_map(path, size);
	while (n--)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			snprintf(link_path, sizeof(link_path), "/tmp/perf-%d.map", getpid());
			link(path, link_path);
			for (;;)
				spin();
		}
	pause();
}
static void many(int n)
{
	for (int i = 0; i < n; i++)
		mmap(0, 4096, i & 1 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (;;)
		spin();
}
static void forks(void)
{
	for (;;) {
		if (!fork()) {
			code(200000);
			_exit(0);
		}
		wait(NULL);
	}
}
static void names(void)
{
	for (unsigned n = 0;; n++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u\x1b[2J;", n);
		prctl(PR_SET_NAME, name);
		spin();
	}
}
static void files(char **paths)
{
	for (; *paths; paths++) {
		int fd = open(*paths, O_RDONLY);
		mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		close(fd);
	}
	for (;;)
		spin();
}
int main(int argc, char **argv)
{
	generated();
	if (!strcmp(argv[1], "maps"))
		maps(atol(argv[2]), 0);
	if (!strcmp(argv[1], "rewrites"))
		maps(atol(argv[2]), 1);
	if (!strcmp(argv[1], "shares"))
		shares(atoi(argv[2]), atol(argv[3]));
	if (!strcmp(argv[1], "many"))
		many(atoi(argv[2]));
	if (!strcmp(argv[1], "forks"))
		forks();
	if (!strcmp(argv[1], "files"))
		files(argv + 2);
	if (!strcmp(argv[1], "args"))
		for (;;)
			spin();
	names();
	(void)argc;
	return 0;
}
"""


def link(name, crc=0):
    return Section(".gnu_debuglink", data=name.encode() + bytes(4 - len(name) % 4) + crc.to_bytes(4, "little"))


def holes(name, kind, size, **more):
    return lambda path: forged.write(path, [Section(name, kind, size=size, **more)])


def many_segments(path):
    forged.write(path, segments=[Segment(forged.PT_LOAD, 0x20000, (1 << 40) + i * 512 * MB, 512 * MB) for i in range(40)],
                 file_size=513 * MB)


def debug_hole(path):
    forged.write(path, [link("debug.hole")])
    forged.write(os.path.join(os.path.dirname(path), "debug.hole"), file_size=8 * GB)


def debug_real(path):
    """Its checksum is of bytes that are really there."""
    forged.write(path, [link("debug.real")])
    forged.write(os.path.join(os.path.dirname(path), "debug.real"))
    with open(os.path.join(os.path.dirname(path), "debug.real"), "ab") as file:
        for _ in range(300):
            file.write(os.urandom(MB))


def inflates(path):
    bomb = forged.compressed(bytes(256 * MB), GB)
    forged.write(path, [Section(name, data=bomb, flags=forged.SHF_COMPRESSED)
                        for name in (".debug_info", ".debug_line", ".debug_abbrev", ".debug_str", ".eh_frame")])


def same_symbols(path):
    """Tables of symbols that all have the same strings, over one another."""
    strings = b"\0" + b"a" * (8 * MB) + b"\0"
    symbol = (1).to_bytes(4, "little") + b"\x12\0\1\0" + (forged.BASE + forged.TEXT).to_bytes(8, "little") + bytes(8)
    forged.write(path, [Section(".strtab", "strtab", strings),
                        *(Section(name, kind, symbol * 200000, link=3, entry=24)
                          for name, kind in ((".symtab", "symtab"), (".dynsym", "dynsym")))])


PROGRAMS = [many_segments,
            lambda path: forged.write(path, names_size=4 * GB),
            lambda path: forged.write(path, segments=[Segment(forged.PT_NOTE, 0x2000, forged.BASE, 3 * GB)], file_size=4 * GB),
            holes(".symtab", "symtab", 3 * GB, entry=24, link=2), holes(".eh_frame", "progbits", 3 * GB),
            holes(".gopclntab", "progbits", 3 * GB), holes(".gnu_debugdata", "progbits", 3 * GB),
            holes(".note.stapsdt", "note", 3 * GB), holes(".debug_info", "progbits", 3 * GB),
            debug_hole, debug_real, inflates, same_symbols]
TRICKS = [["maps", 60 * MB], ["rewrites", 8 * MB], ["shares", 10, 30 * MB], ["many", 4000], ["forks"], ["args", *["x" * 100000] * 15]]


def build(source):
    program = lib.path("hostile")
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=source.encode(), check=True)
    os.chmod(program, 0o755)
    return program


def as_user(number, *command):
    uid = FIRST_UID + number
    return lib.start(*command, user=uid, group=uid, extra_groups=[], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                     start_new_session=True, cwd="/")


def forge(number, make):
    directory = lib.path(f"user-{number}")
    os.mkdir(directory)
    file = os.path.join(directory, "program")
    make(file)
    for name in os.listdir(directory):
        os.chmod(os.path.join(directory, name), 0o755)
        os.chown(os.path.join(directory, name), FIRST_UID + number, FIRST_UID + number)
    os.chown(directory, FIRST_UID + number, FIRST_UID + number)
    return file


def users(hostile):
    """All of them, each at its own trick."""
    running = [as_user(number, forge(number, make)) for number, make in enumerate(PROGRAMS)]
    running += [as_user(len(PROGRAMS) + number, hostile, *(str(word) for word in trick)) for number, trick in enumerate(TRICKS)]
    last = len(running)  # many files, no two of which are the same
    paths = [forge(1000 * last + number, lambda path, number=number: forged.write(path, names_size=512 * MB, seed=number))
             for number in range(100)]
    return running + [as_user(last, hostile, "files", *paths)]


def status_of(pid, name):
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def service_bound():
    """MemoryMax of the service unit, in bytes."""
    with open("scripts/braid.service", encoding="utf-8") as unit:
        found = re.search(r"^MemoryMax=(\d+)([MG])$", unit.read(), re.M)
    return int(found.group(1)) * {"M": MB, "G": GB}[found.group(2)] if found else 0


@atexit.register
def remove_maps():
    for file in glob.glob("/tmp/perf-*.map") + glob.glob("/tmp/braid-hostile-*"):
        if FIRST_UID <= os.lstat(file).st_uid < FIRST_UID + 100:
            os.unlink(file)


lib.need_bpf()
os.chmod(lib.tmp, 0o755)
attackers = users(build(MAPPER))
honest = lib.start("/usr/bin/python3", "-c", HONEST)
file = lib.path("all.db")
recorder = lib.start(lib.BRAID, "record", "-a", "-o", file, stderr=subprocess.PIPE)
time.sleep(SECONDS)
peak, cpu = status_of(recorder.pid, "VmHWM") << 10, cpu_s(recorder.pid)
ended_ns = time.monotonic_ns()
recorder.send_signal(signal.SIGINT)
try:
    said = recorder.communicate(timeout=SECONDS + END_S)[1].decode(errors="replace")
except subprocess.TimeoutExpired:
    recorder.kill()
    said = "deaf to Ctrl-C"
took_s = (time.monotonic_ns() - ended_ns) / 1e9
for line in said.splitlines():
    print("#", re.sub(r"[^ -~]", "?", line)[:300])
print(f"# {len(attackers)} hostile users, {SECONDS:.0f} s: {peak / MB:.0f} MB, {100 * cpu / SECONDS / os.cpu_count():.2f} % of the machine's CPUs, "
      f"ends {took_s:.2f} s after Ctrl-C")
lib.equal(recorder.returncode, 0, "status")
lib.ok(took_s < END_S, f"Ctrl-C is heeded: {took_s:.2f} s")
lib.ok(peak < DOCUMENTED, f"memory: {peak / MB:.0f} MB, below the bound of docs/reference/continuous.md")
lib.ok(DOCUMENTED < service_bound(), "which lies below the service's MemoryMax")
lib.ok(all(one.poll() is None for one in attackers), "no target is harmed", *(one.args for one in attackers if one.poll() is not None))
summary = lib.running.Recording(file)
flags = [flag & 1 for flag, in summary.sql("SELECT flags FROM sample JOIN thread ON thread.id = thread "
                                           "JOIN process ON process.id = process WHERE pid = ?", honest.pid)]
print(f"# {len(flags)} samples of the honest program, {sum(flags)} of them complete")
lib.ok(flags and sum(flags) >= 0.97 * len(flags), "stacks of the honest program are complete")
lib.done()
