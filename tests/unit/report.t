#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid report` of made-up recordings whose samples say what their threads did: states, groups,
idle waits, units, histograms."""

import os
import pty
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
FILE = os.path.join(WORK.name, "made.db")


def made(*samples):
    """Each is the fields of tests/tools/mksamples, with blanks between; names have none."""
    if os.path.exists(FILE):
        os.unlink(FILE)
    lines = "".join(sample.replace(" ", "\t").replace("~", " ") + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", FILE], input=lines, text=True, check=True)


def braid(*words):
    result = subprocess.run([OUTPUT + "/braid", *words], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def report(*words):
    return braid("report", *words, FILE)


def folded(*words):
    status, out, err = report("--format", "folded", *words)
    return (err if status else out).splitlines()


def below(text, heading):
    """The lines of a table or tree, without heading."""
    return text[text.index(heading):].splitlines()[1:]


WALL = (
    "wall ns 1000000 running held - 42:app 42:app n:main;python:f@/x/app.py;n:strcmp",
    "wall ns 2000000 running free - 42:app 43:w n:main;python:f@/x/app.py;n:deflate",
    "wall ns 3000000 waiting waited futex 42:app 43:w n:main;python:f@/x/app.py;n:take_gil",
    "wall ns 4000000 waiting free read 42:app 43:w n:main;python:f@/x/app.py;n:read;k:vfs_read",
    "wall ns 5000000 waiting held fsync 42:app 43:w n:main;python:f@/x/app.py;n:fsync",
    "wall ns 6000000 preempted held - 42:app 42:app n:main;python:f@/x/app.py;n:strcmp",
    "wall ns 7000000 stopped - - 50:tool 50:tool n:main",
    "wall ns 8000000 waiting - nanosleep 50:tool 50:tool n:main;n:sleep",
    "wall ns 9000000 running - - 50:tool 50:tool n:main",
    "wall ns 500 - - - 50:tool 50:tool n:main",
    "wall ns 20 preempted free - 50:tool 50:tool n:main",
)


def check_states():
    made(*WALL)
    tap.equal(folded("--by", "state"), [
        "preempted with the lock;main;f (app.py);strcmp 6000000",
        "preempted;main 20",
        "running with the lock;main;f (app.py);strcmp 1000000",
        "running without the lock;main;f (app.py);deflate 2000000",
        "running;main 9000000",
        "state not known;main 500",
        "stopped;main 7000000",
        "waiting elsewhere;main;f (app.py);read;vfs_read 4000000",
        "waiting for the lock;main;f (app.py);take_gil 3000000",
        "waiting with the lock;main;f (app.py);fsync 5000000",
        "waiting;main;sleep 8000000"], "--by state: folded")
    status, out, err = report()
    tap.equal((status, err), (0, ""), "a table", out)
    tap.equal(out.splitlines()[:3], [
        "made up", "event wall: 45.0 ms in 11 samples",
        "on CPU 12.0 ms, waiting 27.0 ms, preempted 6.00 ms"], "its heading")
    tap.equal(below(out, "Script%")[:3], [
        " 46.7%    21.0 ms   0.0%       0 ns  46.7%    21.0 ms    3.00 ms    12.0 ms    6.00 ms"
        "  python   f (app.py)",
        " 35.6%    16.0 ms  35.6%    16.0 ms  53.3%    24.0 ms    9.00 ms    15.0 ms      20 ns"
        "  native   main",
        " 17.8%    8.00 ms  17.8%    8.00 ms  17.8%    8.00 ms       0 ns    8.00 ms       0 ns"
        "  native   sleep"],
        "on CPU, waiting and preempted in columns", out)
    out = report("--frames", "all", "--sort", "self")[1]
    tap.equal([line[18:] for line in below(out, "Script%")[:3]], [
        " 35.6%    16.0 ms 100.0%    45.0 ms    12.0 ms    27.0 ms    6.00 ms  native   main",
        " 17.8%    8.00 ms  17.8%    8.00 ms       0 ns    8.00 ms       0 ns  native   sleep",
        " 15.6%    7.00 ms  15.6%    7.00 ms    1.00 ms       0 ns    6.00 ms  native   strcmp"],
        "with all frames, by self", out)
    out = report("--by", "state", "--rows", "3")[1]
    groups = [line for line in out.splitlines() if "  state  " in line]
    tap.ok(groups and all(line.startswith(" " * 36) for line in groups),
           "a group has no columns of zeros", out)
    tap.equal([line.split("  ")[-1] for line in below(out, "Script%")],
              ["running", " main", "waiting", " sleep", " main", "stopped", " main", "(8 more groups)",
               "at most 3 functions of each group; --rows all shows all",
               "Script: a function's own weight, with the native code that it calls"],
              "below each group its functions", out)
    rows = [line for line in out.splitlines() if line.endswith("    sleep")]
    tap.equal([row[36:85] for row in rows],
              [" 17.8%    8.00 ms       0 ns    8.00 ms       0 ns"[:49]], "with their states", out)
    out = report("--format", "tree", "--by", "process", "--frames", "all",
                 "--rows", "7")[1]
    tap.equal(below(out, " Total%")[:3], [
        " 53.3%    24.0 ms    9.00 ms    15.0 ms      20 ns       0 ns  tool (50)",
        " 53.3%    24.0 ms    9.00 ms    15.0 ms      20 ns    16.0 ms    main",
        " 17.8%    8.00 ms       0 ns    8.00 ms       0 ns    8.00 ms      sleep"],
        "a tree by process", out)
    tap.equal(sorted({line.split(";")[0] for line in folded("--by", "thread")}),
              ["app (42)", "tool (50)", "w (43)"], "--by thread")
    tap.equal(sorted({line.split(";")[0] for line in folded("--by", "syscall")}),
              ["fsync", "futex", "nanosleep", "no system call", "read"], "--by syscall")


def check_tasks():
    """A thread's samples by the task that it was at, numbers beyond 32 bits, too."""
    first, second = 7, 7 + (1 << 32)
    made(f"cpu samples 1 running - - 42:app 42:app n:main;n:f 0 {first}",
         f"cpu samples 2 running - - 42:app 42:app n:main;n:f 0 {second}",
         f"cpu samples 4 running - - 42:app 43:w n:main;n:f 0 {first}",
         "cpu samples 8 running - - 42:app 43:w n:main;n:f",
         "wall ns 16 running - - 42:app 43:w n:main;n:f 0 9")
    want = [f"goroutine {first};main;f 5", f"goroutine {second};main;f 2", "no goroutine;main;f 8"]
    tap.equal(sorted(folded("--by", "goroutine")), sorted(want), "--by what the runtime calls it")
    tap.equal(sorted(folded("--by", "task")), sorted(want), "--by task")
    tap.equal(folded(), ["main;f 15"], "else they are the same")
    tap.equal(folded("--by", "thread"), ["app (42);main;f 3", "w (43);main;f 12"], "--by thread")
    out = report("--by", "goroutine", "--event", "wall", "--histogram")[1]
    tap.ok("goroutine 9" in out, "a histogram's groups", out)
    app, w = (f" {{pid=42}} {{process=app}} {{tid={tid}}} {{thread={name}}}" for tid, name in ((42, "app"), (43, "w")))
    tap.equal(sorted(line for line in pprof("--event", "cpu") if line.startswith("stack")), [
        f"stack 1 main;f{app} {{goroutine={first}}}", f"stack 2 main;f{app} {{goroutine={second}}}",
        f"stack 4 main;f{w} {{goroutine={first}}}", f"stack 8 main;f{w}"], "pprof: labels")
    made("cpu samples 1 running - - 42:app 42:app n:main")
    status, out, err = report("--by", "goroutine")
    tap.equal((status, out), (1, ""), "where there are none: status")
    tap.matches("does not contain the tasks of its threads. Leave out --by goroutine", err, "says why")


def check_filters():
    made(*WALL)
    total = {words: sum(int(line.split()[-1]) for line in folded(*words)) for words in (
        ("--state", "running"), ("--state", "waiting"), ("--state", "preempted,stopped"),
        ("--not-thread", "w"), ("--not-thread", "[aw].*"), ("--not-thread", "50"),
        ("--not-thread", "a"), ("--thread", "w", "--not-thread", "4."))}
    tap.equal(list(total.values()), [12000000, 20000000, 13000020, 31000520, 24000520, 21000000,
                                     45000520, 14000000], "filters", total)
    out = report("--state", "waiting")[1]
    tap.ok("On CPU" not in out, "no columns where all is waiting", out)
    for words, status, says in (
            (["--state", "asleep"], 2, "--state takes running, .*, not 'asleep'"),
            (["--state", "running,"], 2, "--state takes"),
            (["--by", "colour"], 2, "--by takes state, syscall, process, thread, task, service, trace, span, request, label:KEY, value:NAME, container, cgroup or age, not 'colour'"),
            (["--idle", "maybe"], 2, "--idle takes hide, auto or show, not 'maybe'"),
            (["--histogram=tea"], 2, "--histogram takes stacks or nothing, not 'tea'"),
            (["--histogram", "--format", "tree"], 2, "--histogram has its own format"),
            (["--not-thread", "a("], 1, r"--not-thread a\( is not a regular expression: ")):
        got, out, err = report(*words)
        tap.equal((got, out), (status, ""), f"{words}: status")
        tap.matches(says, err, f"{words}: says why")


def check_units():
    made(*WALL, "cpu samples 1 running - - 42:app 42:app n:main",
         "off-cpu ns 100 waiting - - 42:app 42:app n:main",
         "alloc bytes 2048 running - - 42:app 42:app n:main;n:malloc",
         "tracepoint:a:b/x==1,y/ ns 7 running - - 42:app 42:app n:main")
    tap.equal(folded("--event", "off-cpu,wall", "--pid", "50"),
              ["main 16000520", "main;sleep 8000000"], "several events of one unit")
    tap.equal(folded("--event", "off-cpu,tracepoint:a:b/x==1,y/")[0], "main 107",
              "one that has a comma in its name")
    tap.ok("\nevent wall, off-cpu: 45.0 ms" in report("--event", "off-cpu,wall")[1], "their names")
    tap.ok("\nevent alloc: 2.00 KiB in 1 samples" in report("--event", "alloc")[1], "bytes")
    for events, says in (
            ("cpu,wall", r"cannot add cpu \(in samples\) and wall \(in ns\): .*--event"),
            ("wall,alloc", r"cannot add wall \(in ns\) and alloc \(in bytes\)"),
            ("wall,race", "no event race. It has "), ("wall,", "no event [.] It has")):
        status, out, err = report("--event", events)
        tap.equal((status, out), (1, ""), f"{events}: status")
        tap.matches(says, err, f"{events}: says why")


def check_histogram():
    made("off-cpu ns 0 waiting - read 42:app 42:app n:main",
         *["off-cpu ns 1500 waiting - read 42:app 42:app n:main"] * 3,
         *["off-cpu ns 6000 waiting - poll 42:app 43:w n:main;n:poll"] * 2,
         "off-cpu ns 9223372036854775807 stopped - - 42:app 43:w n:main",
         "fault count 1 running - - 42:app 42:app n:main",
         *["alloc bytes 4096 running - - 42:app 42:app n:main"] * 2)
    out = report("--event", "off-cpu", "--histogram", "--state", "waiting")[1]
    tap.equal(out.splitlines()[3:], [
        "mean 2.75 us, p50 < 2.05 us, p90 < 8.19 us, p99 < 8.19 us",
        "      0 ns ..       1 ns          1  |" + "#############".ljust(40) + "|",
        *[f"{f'{1 << n} ns':>10} .. {f'{2 << n} ns' if n < 9 else '1.02 us':>10}          0  |"
          + " " * 40 + "|" for n in range(10)],
        "   1.02 us ..    2.05 us          3  |" + "#" * 40 + "|",
        "   2.05 us ..    4.10 us          0  |" + " " * 40 + "|",
        "   4.10 us ..    8.19 us          2  |" + "#" * 27 + " " * 13 + "|"], "a histogram", out)
    out = report("--event", "off-cpu", "--histogram", "--by", "syscall", "--rows", "2")[1]
    tap.equal([line for line in out.splitlines() if ": " in line][1:],
              ["no system call: 9223372037 s in 1 occurrences", "poll: 12.0 us in 2 occurrences"],
              "by group, the greatest first", out)
    tap.ok(out.endswith("\n\n(1 more)\n"), "and no more of them", out)
    out = report("--event", "off-cpu", "--histogram=stacks", "--state", "waiting")[1]
    tap.equal([out.splitlines()[at] for at in (3, 19, 20, 21, -4, -3, -2, -1)], [
        "mean 2.75 us, p50 < 2.05 us, p90 < 8.19 us, p99 < 8.19 us",
        "main;poll", "this stack: 12.0 us in 2 occurrences",
        "mean 6.00 us, p50 < 8.19 us, p90 < 8.19 us, p99 < 8.19 us",
        *[f"{f'{128 << n} ns':>10} .. {f'{256 << n} ns' if n < 2 else '1.02 us':>10}          0  |"
          + " " * 40 + "|" for n in range(3)],
        "   1.02 us ..    2.05 us          3  |" + "#" * 40 + "|"], "by stack", out)
    out = report("--event", "off-cpu", "--histogram=stacks", "--rows", "1")[1]
    tap.ok("this stack: 9223372037 s in 5 occurrences" in out and out.endswith("\n(1 more)\n"),
           "some of the stacks", out)
    out = report("--event", "alloc", "--histogram")[1]
    tap.ok("mean 4.00 KiB, p50 < 8.00 KiB" in out and "4.00 KiB ..   8.00 KiB          2" in out,
           "of sizes", out)
    status, out, err = report("--event", "fault", "--histogram")
    tap.equal((status, out), (1, ""), "counts have no histogram")
    tap.matches("histogram of fault: its occurrences have no time.*Other events in the recording: off-cpu, alloc", err, "which it says")


EXECUTOR = "n:main;python:_bootstrap@/lib/threading.py;python:_worker@/lib/concurrent/futures/thread.py"
LIBC = "n:pthread_cond_wait@/lib/libc.so.6;n:@/lib/libc.so.6;k:futex_wait"
PARKS = ("n:start@/lib/libjvm.so;jvm:java.util.concurrent.ThreadPoolExecutor.runWorker@;"
         "jvm:java.util.concurrent.ThreadPoolExecutor.getTask@;"
         "jvm:java.util.concurrent.LinkedBlockingQueue.take@;jvm:jdk.internal.misc.Unsafe.park@;"
         "n:Unsafe_Park@/lib/libjvm.so;") + LIBC

# What is hidden: lock, system call, thread, frames.
GO_WORKER = "n:main;go:runtime.mcall@;go:runtime.park_m@;go:runtime.schedule@"
GO_SLEEPS = "go:runtime.notesleep@;go:runtime.futexsleep@;go:runtime.futex@;k:futex_wait"
GO_STOPS = f"go:runtime.stopm@;go:runtime.mPark@;{GO_SLEEPS}"
FPM = "n:_start@/usr/sbin/php-fpm8.2;n:__libc_start_main@/lib/libc.so.6;n:@/lib/libc.so.6;n:@/usr/sbin/php-fpm8.2"
POSTGRES = "n:main;n:PostmasterMain;n:[postgres+0x3ee3c0]@/bin/postgres"
IDLE = {
    "an executor's worker": f"- futex w {EXECUTOR};{LIBC}",
    "asyncio":
        "free epoll_wait app n:main;python:BaseEventLoop._run_once@/lib/asyncio/base_events.py;"
        "python:EpollSelector.select@/lib/selectors.py;n:epoll_wait;k:ep_poll",
    "socketserver":
        "- poll app n:main;python:BaseServer.serve_forever@/lib/socketserver.py;"
        "python:_PollLikeSelector.select@/lib/selectors.py;n:poll",
    "multiprocessing's worker":
        "- read w n:main;python:worker@/lib/multiprocessing/pool.py;"
        "python:SimpleQueue.get@/lib/multiprocessing/queues.py;"
        "python:_ConnectionBase.recv_bytes@/lib/multiprocessing/connection.py;"
        "python:Connection._recv@/lib/multiprocessing/connection.py;n:read",
    "gunicorn's gthread worker":
        "- epoll_wait app n:main;python:ThreadWorker.run@/a/gunicorn/workers/gthread.py;"
        "python:EpollSelector.select@/lib/selectors.py;n:epoll_wait",
    "a feeder of a queue":
        "- futex w n:main;python:Queue._feed@/lib/multiprocessing/queues.py;"
        "python:Condition.wait@/lib/threading.py;n:x",
    "gunicorn's worker": "- select app n:main;python:SyncWorker.wait@/a/gunicorn/workers/sync.py;n:x",
    "puma's worker":
        "- futex puma~srv~tp~1 n:start;ruby:block~(3~levels)~in~Puma::ThreadPool#spawn_thread@/a.rb;"
        "ruby:Thread::ConditionVariable#wait@;ruby:Thread::Mutex#sleep@;" + LIBC,
    "puma's first thread": "- ppoll puma n:main;ruby:Puma::Single#run@/a.rb;ruby:Thread#join@;n:ppoll",
    "puma's reaper":
        "- futex puma~srv~threadp n:start;ruby:block~in~Puma::ThreadPool::Automaton#start!@/a.rb;"
        "ruby:Kernel#sleep@;" + LIBC,
    "puma's reactor":
        "- epoll_wait puma n:start;ruby:Puma::Reactor#select_loop@/a.rb;ruby:NIO::Selector#select@;n:x",
    "a Java executor's worker": f"- futex pool-1-thread-1 {PARKS}",
    "a Java selector":
        "- epoll_wait nio n:x;jvm:sun.nio.ch.SelectorImpl.lockAndDoSelect@;"
        "jvm:sun.nio.ch.EPollSelectorImpl.doSelect@;jvm:sun.nio.ch.EPoll.wait@;n:epoll_wait",
    "accept": "- poll t n:x;jvm:java.net.ServerSocket.accept@;jvm:sun.nio.ch.Net.accept@;n:x",
    "the JIT compiler": f"- futex C2~CompilerThre n:start@/jdk/lib/server/libjvm.so;{LIBC}",
    "the same by its whole name": f"- futex C2~CompilerThread0 n:start@/jdk/lib/server/libjvm.so;{LIBC}",
    "the collector": f"- futex G1~Conc#0 n:start@/jdk/lib/server/libjvm.so;{LIBC}",
    "libuv's loop": "- epoll_pwait node n:main;n:uv_run;n:uv__io_poll;n:epoll_pwait;k:ep_poll",
    "libuv's worker": f"- futex node n:start_thread;n:worker@/usr/bin/node;n:uv_cond_wait;{LIBC}",
    "a worker of Node's platform":
        f"- futex node n:node::(anonymous~namespace)::PlatformWorkerThread;n:uv_cond_wait;{LIBC}",
    "a Java timer":
        f"- futex Timer-0 n:x;jvm:java.util.TimerThread.mainLoop@;jvm:java.lang.Object.wait@;{LIBC}",
    "a Java cleaner":
        "- futex Cleaner-0 n:x;jvm:jdk.internal.ref.CleanerImpl.run@;"
        f"jvm:java.lang.ref.ReferenceQueue.remove@;jvm:java.lang.Object.wait@;{LIBC}",
    "Java's launcher": "- futex java n:main;n:CallJavaMainInNewThread;n:__pthread_clockjoin_ex;n:futex",
    "netty":
        "- epoll_wait netty n:x;jvm:io.netty.channel.epoll.EpollEventLoop.epollWait@;"
        "jvm:io.netty.channel.epoll.Native.epollWait0@;n:epoll_wait",
    "a pool's thread for results":
        "- read w n:x;python:Pool._handle_results@/a/multiprocessing/pool.py;"
        "python:_ConnectionBase.recv@/a/multiprocessing/connection.py;n:read",
    "libevent": "- epoll_wait app n:main;n:event_base_loop;n:epoll_dispatch;n:epoll_wait",
    "nginx without symbols":
        "- epoll_wait nginx n:main;n:ngx_spawn_process;n:@/usr/sbin/nginx;"
        "n:ngx_process_events_and_timers;n:[nginx+0x54130]@/usr/sbin/nginx;n:epoll_wait",
    "uvloop":
        "- epoll_wait python3 python:Runner.run@/r.py;n:uvloop.loop.Loop.run_forever@/loop.so;n:uv_run;"
        "n:[libuv.so.1.0.0+0x22a60]@/lib/libuv.so.1.0.0;n:epoll_wait",
    "libuv's worker without symbols":
        f"- futex python3 n:clone3;n:start_thread;n:[libuv.so.1.0.0+0xad10]@/lib/libuv.so.1.0.0;"
        f"n:uv_cond_wait;{LIBC}",
    "redis without symbols":
        "- epoll_wait redis-server n:main;n:aeMain;n:[redis-check-rdb+0x64da0]@/usr/bin/redis-check-rdb;"
        "n:epoll_wait",
    "redis's worker": f"- futex bio_aof n:start_thread;n:bioProcessBackgroundJobs;{LIBC}",
    "jemalloc's thread":
        f"- futex jemalloc_bg_thd n:start_thread;n:[libjemalloc.so.2+0x39c30]@/lib/libjemalloc.so.2;{LIBC}",
    "postgres's writer":
        f"- epoll_wait postgres {POSTGRES};n:AuxiliaryProcessMain;n:WalWriterMain;n:WaitLatch;"
        "n:WaitEventSetWait;n:epoll_wait",
    "postgres's launcher":
        f"- epoll_wait postgres {POSTGRES};n:__select;n:__restore_rt;n:StartAutoVacLauncher;"
        "n:[postgres+0x3e54a0]@/bin/postgres;n:WaitLatch;n:WaitEventSetWait;n:epoll_wait",
    "the postmaster": f"- pselect6 postgres {POSTGRES};n:__select",
    "a connection of postgres without a command":
        f"- epoll_wait postgres {POSTGRES};n:PostgresMain;n:pq_getbyte;n:[postgres+0x34b370]@/bin/postgres;"
        "n:secure_read;n:WaitEventSetWait;n:epoll_wait",
    "uwsgi": "- epoll_wait uwsgi n:uwsgi_run@/bin/uwsgi;n:wsgi_req_accept@/bin/uwsgi;"
             "n:event_queue_wait@/bin/uwsgi;n:epoll_wait",
    "a thread of uwsgi":
        "- futex uwsgi n:simple_loop_run@/bin/uwsgi;n:wsgi_req_accept@/bin/uwsgi;n:pthread_mutex_lock;"
        "n:lll_mutex_lock_optimized;n:__lll_lock_wait;n:futex_wait",
    "uwsgi's master": "- epoll_wait uwsgi n:master_loop@/bin/uwsgi;n:event_queue_wait@/bin/uwsgi;n:epoll_wait",
    "the first thread of a script that joins others":
        "- ppoll ruby ruby:<main>@/x.rb;ruby:Array#each@;ruby:block~in~<main>@/x.rb;ruby:Thread#join@;n:ppoll",
    "redis": "- epoll_wait app n:main;n:aeMain;n:aeProcessEvents;n:aeApiPoll;n:epoll_wait",
    "a thread of Go without work": f"- futex app {GO_WORKER};go:runtime.findRunnable@;{GO_STOPS}",
    "the same up to Go 1.18": f"- futex app {GO_WORKER};go:runtime.findrunnable@;{GO_STOPS}",
    "one that has handed its work on": f"- futex app {GO_WORKER};go:runtime.startlockedm@;{GO_STOPS}",
    "one that has left its goroutine to others":
        f"- futex app n:main;go:runtime.mcall@;go:runtime.exitsyscall0@;{GO_STOPS}",
    "Go's poller":
        f"- epoll_pwait app {GO_WORKER};go:runtime.findRunnable@;go:runtime.netpoll@;go:runtime.epollwait@;k:ep_poll",
    "the same since Go 1.21":
        f"- epoll_pwait app {GO_WORKER};go:runtime.findRunnable@;go:runtime.netpoll@;"
        "go:internal/runtime/syscall.EpollWait@;go:internal/runtime/syscall.Syscall6@;k:ep_poll",
    "Go's monitor": "- nanosleep app n:main;go:runtime.mstart1@;go:runtime.sysmon@;go:runtime.usleep@;k:do_nanosleep",
    "Go's thread for threads":
        f"- futex app n:main;go:runtime.mstart1@;go:runtime.templateThread@;{GO_SLEEPS}",
    "Go's thread for signals":
        "- futex app n:main;go:os/signal.loop@;go:os/signal.signal_recv@;go:runtime.notetsleepg@;"
        "go:runtime.notetsleep_internal@;go:runtime.futexsleep@;go:runtime.futex@",
    "nginx's master": "- rt_sigsuspend nginx n:main;n:ngx_master_process_cycle;n:sigsuspend",
    "WEBrick":
        "- pselect6 ruby n:x;ruby:block~in~WEBrick::GenericServer#start@/s.rb;ruby:IO.select@;n:select",
    "a worker of php-fpm":
        f"- accept php-fpm8.2 {FPM};n:@/usr/sbin/php-fpm8.2;n:accept;k:unix_accept",
    "php-fpm's master":
        f"- epoll_wait php-fpm8.2 {FPM};n:@/usr/sbin/php-fpm8.2;n:@/usr/sbin/php-fpm8.2;n:epoll_wait;k:ep_poll",
    "Ruby's timer": f"- futex ruby-timer-thr n:x;{LIBC}",
    "nginx": "- epoll_wait nginx n:main;n:ngx_epoll_process_events;n:epoll_wait",
    "GLib's loop": "- poll app n:main;n:g_main_loop_run;n:@/lib/libglib-2.0.so.0;n:poll",
}

# What is not, though it looks alike.
SHOWN = {
    "Go, for the world to start": f"- futex app {GO_WORKER};go:runtime.gcstopm@;{GO_STOPS}",
    "Go, for a goroutine of its own": f"- futex app {GO_WORKER};go:runtime.stoplockedm@;go:runtime.mPark@;{GO_SLEEPS}",
    "Go, for a lock": "- futex app n:main;go:runtime.sysmon@;go:runtime.lock2@;go:runtime.futexsleep@;go:runtime.futex@",
    "an executor's worker that waits for the lock": f"waited futex w {EXECUTOR};{LIBC}",
    "an executor's worker in a task": f"- futex w {EXECUTOR};python:_WorkItem.run@/t.py;{LIBC}",
    "an executor's worker that reads": f"- read w {EXECUTOR};{LIBC}",
    "an executor's worker in no system call": f"- - w {EXECUTOR};{LIBC}",
    "another _worker": f"- futex w n:main;python:_worker@/home/thread.py;{LIBC}",
    "a selector of one's own":
        "- epoll_wait app n:main;python:mine@/x.py;python:EpollSelector.select@/lib/selectors.py;n:x",
    "a Java worker in a task":
        f"- futex p {PARKS.replace('getTask', 'runWorker').replace('LinkedBlockingQueue.take', 'X')}",
    "a queue that is not Java's":
        f"- futex p {PARKS.replace('java.util.concurrent.LinkedBlockingQueue', 'my.Queue')}",
    "a thread that is called like the collector": f"- futex G1~Conc#0 n:start@/app;{LIBC}",
    "a callback of libuv": "- epoll_wait node n:uv_run;n:uv__io_poll;n:on_read;n:epoll_wait",
    "a script of php-fpm's that waits for others":
        f"- accept php-fpm8.2 {FPM};n:php_execute_script;php:<main>@/s.php;php:socket_accept@;n:accept",
    "a worker of php-fpm that reads a request": f"- read php-fpm8.2 {FPM};n:@/usr/sbin/php-fpm8.2;n:read",
    "a handler of nginx":
        "- epoll_wait nginx n:ngx_process_events_and_timers;n:ngx_http_handler;n:epoll_wait",
    "a delayed checkpoint":
        f"- epoll_wait postgres {POSTGRES};n:CheckpointerMain;n:CheckpointWriteDelay;n:WaitLatch;n:epoll_wait",
    "a lock of postgres":
        f"- epoll_wait postgres {POSTGRES};n:PostgresMain;n:ProcSleep;n:WaitLatch;n:WaitEventSetWait;n:epoll_wait",
    "a request of uwsgi's":
        "- epoll_wait uwsgi n:uwsgi_run@/bin/uwsgi;n:wsgi_req_recv@/bin/uwsgi;n:event_queue_wait@/bin/uwsgi",
    "a join inside of a method":
        "- ppoll ruby ruby:<main>@/x.rb;ruby:Job#run@/x.rb;ruby:Thread#join@;n:ppoll",
    "another server that accepts": "- accept app n:__libc_start_main;n:main;n:accept",
    "worker of another program": f"- futex x n:worker@/app;n:uv_cond_wait;{LIBC}",
}


def sample(text, state="waiting", event="wall ns 1000"):
    lock, call, thread, frames = text.split(" ")
    return f"{event} {state} {lock} {call} 42:app 42:{thread} {frames}"


def check_idle():
    busy = "wall ns 500 running - - 42:app 42:app n:main;n:busy"
    for name, text in IDLE.items():
        made(busy, sample(text))
        status, out, err = report("--format", "folded")
        tap.equal((status, out, err), (
            0, "main;busy 500\n",
            "hidden as idle: 1.00 us of 1.50 us in 1 thread (--idle show)\n"), f"{name}: hidden")
        made(sample(text, "running"), sample(text, "preempted"))
        tap.ok(sum(int(line.split()[-1]) for line in folded()) == 2000,
               f"{name}: not while it runs or could", folded())
    for name, text in SHOWN.items():
        made(sample(text))
        status, out, err = report("--format", "folded")
        tap.equal((status, out.split()[-1:], err), (0, ["1000"], ""), f"{name}: shown")


def check_hidden():
    """How much was hidden is always said."""
    idle = [sample(text) for text in IDLE.values()]
    worker = sample(IDLE["an executor's worker"])
    made(*idle, worker, worker.replace("42:w", "43:w"),
         "wall ns 3000 waiting - read 42:app 42:w n:main;n:read",
         worker.replace("wall ns 1000", "switches count 1"))
    n_waits = len(idle) + 2
    n_threads = len({text.split(" ")[2] for text in IDLE.values()}) + 1  # and 43:w
    hidden = (f"hidden as idle: {n_waits}.0 us of {n_waits + 3}.0 us in {n_threads} threads"
              " (--idle show)")
    missing = "waits of goroutines on no thread are not included (-e wall has them, as parked)"
    out = report()[1]
    tap.equal(out.splitlines()[1:4], ["event wall: 3.00 us in 1 samples", hidden, missing], "a table's heading")
    tap.ok(hidden in report("--histogram")[1], "a histogram's")
    tap.ok("mean 3.00 us" in report("--histogram")[1], "and what it counts")
    tap.ok(hidden in report("--format", "tree")[1], "a tree's")
    tap.ok(f"event wall: {n_waits + 3}.0 us in {n_waits + 1} samples" in report("--idle", "show")[1], "--idle show")
    tap.ok("hidden" not in report("--idle", "show")[1], "then nothing is hidden")
    tap.equal(report("--format", "folded", "--event", "switches")[2], "", "what is no time is kept")
    for page in "made.html", "made.svg":
        page = os.path.join(WORK.name, page)
        tap.equal(braid("flame", "-o", page, FILE)[0], 0, f"{page[-4:]}: status")
        with open(page, encoding="utf-8") as text:
            tap.ok(f'"notes":["{hidden}","{missing}"]' in text.read(), f"{page[-4:]}: says so")
    made(*idle)
    status, out, err = report()
    tap.equal((status, len(out.splitlines()), err), (0, 4, ""), "where nothing is left", out)
    tap.ok("nothing to show: all threads were idle" in out, "that is said", out)


def check_unbroken():
    """Threads that did one wait all the time: counted, and hidden on request."""
    second = "wall ns 1000000000"
    made(sample("- read stuck n:main;n:read", event=second),
         sample("- read other n:main;n:read", event=second).replace("42:other", "43:other"),
         sample("- read short n:main;n:read", event="wall ns 900000000").replace("42:short", "44:short"),
         sample("- read twice n:main;n:read", event=second).replace("42:twice", "45:twice"),
         "wall ns 10 running - - 42:app 45:twice n:main")
    with sqlite3.connect(FILE) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('duration_s', '1.000')")
    db.close()
    note = "waited all the time: 2 threads, 2.00 s (--idle "
    out = report()[1]
    tap.ok(note + "auto hides them)" in out and "event wall: 3.90 s" in out, "unbroken waits are counted", out)
    out = report("--idle", "auto")[1]
    tap.ok("hidden, " + note + "show)" in out and "event wall: 1.90 s" in out, "--idle auto hides them", out)
    out = report("--idle", "show")[1]
    tap.ok("all the time" not in out and "event wall: 3.90 s" in out, "--idle show does not count them", out)
    made(sample("- read stuck n:main;n:read", event=second))
    with sqlite3.connect(FILE) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('duration_s', '1.000')")
    db.close()
    tap.ok("nothing to show" in report("--idle", "auto")[1], "nothing is left")


def check_ages():
    """Of what is outstanding `object` is how long it has been held, in ns; of others it is not."""
    second = 1000000000
    ages = [1, second - 1, second, 10 * second, 60 * second, 600 * second, 3600 * second]
    made(*(f"outstanding:malloc bytes {10 ** i} - - - 42:app 42:app n:main;n:f {age}"
           for i, age in enumerate(ages)),
         "alloc bytes 7 - - - 42:app 42:app n:main 5000000000",
         "outstandings bytes 7 - - - 42:app 42:app n:main 5000000000")
    event = ("--event", "outstanding:malloc")
    tap.equal(sorted(folded("--by", "age", *event)), [
        "held 1 h or longer;main;f 1000000", "held 1 min to 10 min;main;f 10000",
        "held 1 s to 10 s;main;f 100", "held 10 min to 1 h;main;f 100000",
        "held 10 s to 1 min;main;f 1000", "held less than 1 s;main;f 11"], "--by age")
    tap.equal(folded(*event, "--min-age", "10"), ["main;f 1111000"], "--min-age: as old or older")
    tap.equal(folded(*event, "--min-age", "0.999999999"), ["main;f 1111110"],
              "--min-age: to the nanosecond")
    tap.equal(folded(*event, "--min-age", "3601"), [], "--min-age: nothing is so old")
    for other in ("alloc", "outstandings"):
        for words in (("--by", "age"), ("--min-age", "1")):
            status, out, err = report("--event", other, *words)
            tap.equal((status, out), (1, ""), f"{other} {words[0]}: status")
            tap.ok(f"{other} has no ages" in err, f"{other} {words[0]}: says why", err)


def pprof(*words):
    file = os.path.join(WORK.name, "made.pb.gz")
    status, _, err = report("--format", "pprof", "-o", file, *words)
    if status:
        return [err]
    reader = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools/read_pprof.py")
    return subprocess.run([sys.executable, reader, file], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def check_pprof():
    """All events as sample types; processes and threads as labels."""
    made("cpu samples 1 running - - 42:app 42:app n:main;script:f@/x/app.s;n:add@/lib/libq.so",
         "cpu samples 2 running - - 42:app 43:w n:main;script:f@/x/app.s;n:add@/lib/libq.so",
         "cpu samples 4 running - - 42:app 43:w n:main;script:f@/x/app.s;n:add@/lib/libq.so",
         "wall ns 300 waiting - read 42:app 43:w n:main;script:f@/x/app.s;n:read",
         "alloc bytes 64 running - - 50:tool 50:tool n:main;n:malloc",
         "pmu samples 9 running - - 50:tool 50:tool n:main")
    app, w, tool = (f" {{pid={pid}}} {{process={process}}} {{tid={tid}}} {{thread={thread}}}"
                    for pid, process, tid, thread in (
                        (42, "app", 42, "app"), (42, "app", 43, "w"), (50, "tool", 50, "tool")))
    tap.equal(pprof(), [
        "types samples/count wall occurrences/count wall/nanoseconds alloc occurrences/count alloc/bytes pmu:samples/count",
        "comment made up", "default samples",
        "stack 0 0 0 0 0 9 main" + tool, "stack 0 0 0 1 64 0 main;malloc" + tool,
        "stack 0 1 300 0 0 0 main;f (app.s);read {state=waiting}" + w,
        "stack 1 0 0 0 0 0 main;f (app.s);add" + app, "stack 6 0 0 0 0 0 main;f (app.s);add" + w],
        "pprof: all events, all threads")
    tap.matches("has no age", pprof("--min-age", "1")[0], "pprof: of no event that there is")
    tap.equal(pprof("--event", "wall")[0], "types wall occurrences/count wall/nanoseconds", "pprof: of one event")
    tap.equal(pprof("--frames", "script", "--thread", "w"), [
        "types samples/count wall occurrences/count wall/nanoseconds", "comment made up", "default samples",
        "stack 0 1 300 f (app.s) {state=waiting}" + w, "stack 6 0 0 f (app.s)" + w],
        "pprof: script frames of one thread")


def check_frames():
    made("cpu samples 1 running - - 42:app 42:app n:main@/bin/x;script:f@/x/app.s;"
         "n:go@/lib/libq.so.1;n:step@/lib/libq.so.1;k:entry;k:__x64_sys_read;k:vfs_read",
         "cpu samples 2 running - - 42:app 42:app n:main@/bin/x;n:idle@/bin/x")
    tap.equal(folded(), ["main;f (app.s);go;step;entry;__x64_sys_read;vfs_read 1", "main;idle 2"],
              "folded has all frames")
    tap.equal(folded("--frames", "collapsed"), ["main;f (app.s);go;__x64_sys_read 1", "main;idle 2"],
              "unless others are wanted")
    tap.equal(folded("--frames", "script"), ["f (app.s) 1", "main;idle 2"], "script frames")
    out = report("--format", "tree")[1]
    tap.equal(below(out, " Total%"), [
        "100.0%          3          0  main", " 66.7%          2          2    idle",
        " 33.3%          1          0    f (app.s)",
        " 33.3%          1          0      go [libq ×2]",
        " 33.3%          1          1        __x64_sys_read [kernel ×3]"],
        "a tree has collapsed ones", out)
    out = report("--group", "library", "--sort", "total")[1]
    tap.equal([line.split()[-1] for line in below(out, " Self%")],
              ["x", "kernel", "libq", "script"], "by library, of all frames", out)
    out = report("--group", "process")[1]
    tap.equal(below(out, "Total%"), ["100.0%          3  process  app (42)"], "by process", out)
    made(*[f"cpu samples {n} running - - 42:app 42:app n:f{n}" for n in range(1, 34)])
    tap.equal(len(below(report()[1], " Self%")), 31, "30 rows, and how many more")
    tap.equal(len(below(report("--rows", "all")[1], " Self%")), 33, "all rows")
    for words, says in (
            (["--frames", "few"], "--frames takes app, script, collapsed or all, not 'few'"),
            (["--sort", "size"], "--sort takes script, self, total, name or samples, not 'size'"),
            (["--group", "state"], "--group takes function, file, library, kind, process or "
                                   "thread, not 'state'"),
            (["--sort", "self", "--format", "tree"], "--sort and --group require --format table"),
            (["--inverted"], "--inverted requires --format tree"),
            (["--histogram", "--frames", "all"], "--histogram shows occurrences"),
            (["--rows", "0"], r"--rows \(or all\) takes a number from 1")):
        status, out, err = report(*words)
        tap.equal((status, out), (2, ""), f"{words}: status")
        tap.matches(says, err, f"{words}: says why")


def check_machinery():
    """Stubs and entries of a VM are no functions of the language: their weight is the method's."""
    made("alloc:jvm bytes 3 running - - 42:java 42:java "
         "jvm:a.B.main;jvm:a.B.make;jvm:_new_instance_Java;n:send@/libjvm.so",
         "alloc:jvm bytes 1 running - - 42:java 42:java jvm:a.B.main;jvm:a.B.make;n:send@/libjvm.so")
    out = report()[1]
    tap.ok("\n  Own%        Own  Self%       Self " in out, "compiled code: a column Own", out)
    tap.equal(below(out, "  Own%")[0].split()[:3] + below(out, "  Own%")[0].split()[-1:],
              ["100.0%", "4", "B", "a.B.make"], "the method is first", out)
    tap.ok(out.endswith("Own: a function's own weight, with the native code that it calls\n"),
           "the column is explained", out)
    tap.equal(folded("--frames", "script"), ["a.B.main;a.B.make 4"], "script frames have no stub")
    tap.equal(folded("--frames", "collapsed"),
              ["a.B.main;a.B.make;_new_instance_Java;send 3", "a.B.main;a.B.make;send 1"],
              "collapsed ones have")
    tap.ok("\n| Own | Self | Total |" in report("--format", "markdown")[1], "markdown: a column Own")
    page = os.path.join(WORK.name, "own.html")
    braid("flame", FILE, "-o", page)
    with open(page, encoding="utf-8") as text:
        tap.ok('"own":"Own"' in text.read(), "the page has the title")
    with sqlite3.connect(FILE) as db:
        db.execute("INSERT INTO kind SELECT MAX(id) + 1, 'python', '_[py]' FROM kind")
    db.close()
    tap.ok("\n  Own%        Own " in report()[1], "a language without functions does not count")
    made("cpu samples 1 running - - 42:a 42:a jvm:a.B.main;python:f@/x.py;n:g")
    tap.ok("\nScript%    Script  Self%" in report()[1], "with a script: Script")


def on_terminal(*words, **environment):
    """What arrives at a terminal, and the exit status."""
    pid, terminal = pty.fork()
    if not pid:
        for name in ("NO_COLOR", "PAGER", "BRAID_PAGER", "LESS"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm", **environment})
        os.execv(OUTPUT + "/braid", ["braid", "report", *words, FILE])
    got = b""
    try:
        while part := os.read(terminal, 65536):
            got += part
    except OSError:  # the terminal's other end is closed
        pass
    os.close(terminal)
    return got.decode().replace("\r\n", "\n"), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def check_terminal():
    made("cpu samples 1 running - - 42:app 42:app n:main@/bin/x;script:f@/x/app.s")
    plain = report()[1]
    text, status = on_terminal(BRAID_PAGER="")
    tap.ok("  \033[36mf (app.s)\033[m\n" in text, "colours on a terminal", text)
    tap.equal((text.replace("\033[36m", "").replace("\033[33m", "").replace("\033[m", ""), status),
              (plain, 0), "and nothing else")
    tap.equal(on_terminal(BRAID_PAGER="cat", NO_COLOR="1"), (plain, 0), "NO_COLOR")
    tap.equal(on_terminal(TERM="dumb", BRAID_PAGER="echo no"), (plain, 0),
              "no pager, no colours on a terminal that is dumb")
    tap.equal(on_terminal(NO_COLOR="1", BRAID_PAGER="sed 's/^/> /'", PAGER="echo no"),
              ("".join(f"> {line}\n" for line in plain.splitlines()), 0), "BRAID_PAGER")
    tap.equal(on_terminal(PAGER="echo $LESS; cat > /dev/null"), ("FRX\n", 0), "PAGER, as git has it")
    tap.equal(on_terminal(PAGER="true"), ("", 0), "a pager that has seen enough")
    tap.equal(on_terminal("--format", "folded", PAGER="echo no")[0], folded()[0] + "\n",
              "none for what is for programs")
    env = {**os.environ, "PAGER": "echo no", "TERM": "xterm"}
    tap.equal(subprocess.run([OUTPUT + "/braid", "report", FILE], capture_output=True, text=True,
                             check=False, env=env).stdout, plain, "nor into a pipe")


check_states()
check_filters()
check_tasks()
check_ages()
check_units()
check_histogram()
check_idle()
check_hidden()
check_unbroken()
check_pprof()
check_frames()
check_machinery()
check_terminal()
tap.done()
