#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""record --rotate: every hit is in exactly one of the recordings, each of which is complete in itself,
whatever becomes of the recorder, the clock and the directory."""

import os
import re
import signal
import stat

import gate

EVENT = f"uprobe:{gate.MARKER}:braid_marker"
CLOCK = os.path.join(gate.OUTPUT, "fixtures/native/clock")
NAME = r"\d{8}T\d{6}Z-\d{6}"
MARK = ".braid-directory"


class Rotation:
    """A recorder that fills a directory, of a process that hits the marker when it is told to."""

    def __init__(self, directory, *options, target=None, env=None):
        self.directory = gate.path(directory)
        self.target = target or gate.marked(gate.MARKS)
        self.hits = 0
        left = self.files(".part")
        self.braid = gate.start(gate.BRAID, "record", "-e", EVENT, "--max-overhead", "none",
                                "--rotate", "1", *options, "-o", self.directory, "-p",
                                self.target.pid, stderr=gate.subprocess.PIPE,
                                env=dict(os.environ, **env or {}))
        # A recording has its place when sampling has begun.
        gate.wait_until(lambda: self.files(".part") not in ([], left), "the first commit")

    def files(self, suffix=".db"):
        """In the order of their names."""
        if not os.path.isdir(self.directory):
            return []
        return sorted(name for name in os.listdir(self.directory)
                      if re.fullmatch(NAME + re.escape(suffix), name))

    def recording(self, name):
        return gate.Recording(os.path.join(self.directory, name))

    def hit(self, times):
        if gate.ask(self.target, f"here {times}") != "done 0":
            raise RuntimeError("the target does not obey")
        self.hits += times

    def turn(self):
        """Waits for the next recording."""
        now = self.files(".part")
        gate.wait_until(lambda: self.files(".part") not in (now, []), "the next recording")

    def written(self):
        """How many samples are in the recording that is being written."""
        names = self.files(".part")
        try:
            return self.recording(names[-1]).count() if names else 0
        except gate.sqlite3.OperationalError:
            return 0  # it was finished just now

    def end(self, number=signal.SIGINT):
        self.braid.send_signal(number)
        said = self.braid.stderr.read().decode()
        return self.braid.wait(), said

    def counts(self):
        return [self.recording(name).count() for name in self.files()]


def check_file(title, recording, count):
    """It is complete in itself."""
    gate.equal(recording.sql("PRAGMA integrity_check"), [("ok",)], f"{title}: is whole")
    gate.equal(recording.counters(), {}, f"{title}: nothing is lost")
    gate.equal(recording.one("SELECT count(*) FROM frame WHERE id NOT IN "
                             "(SELECT frame FROM location)"), 0, f"{title}: all frames are named")
    gate.equal(recording.sql("SELECT DISTINCT process.name, thread.name FROM sample JOIN thread ON "
                             "thread.id = thread JOIN process ON process.id = process"),
               [("marks", "marks")] if count else [], f"{title}: process and thread")
    if count:
        gate.check_merged(title, recording.merged(), gate.HERE, count)


def check_exact():
    """Hits go on while one recording follows the other."""
    run = Rotation("exact", "--keep", "1000")
    while len(run.files()) < 3:
        run.hit(7)
    status, said = run.end()
    gate.equal(status, 0, "exact: status", said)
    gate.equal(run.files(".part"), [], "exact: all are finished")
    counts = run.counts()
    gate.equal(sum(counts), run.hits, "exact: every hit is in one recording")
    for name, count in zip(run.files(), counts):
        check_file(f"exact: {name}", run.recording(name), count)
    gate.equal({stat.S_IMODE(os.stat(os.path.join(run.directory, name)).st_mode)
                for name in os.listdir(run.directory)}, {0o600}, "exact: modes of files")
    gate.equal(stat.S_IMODE(os.stat(run.directory).st_mode), 0o700, "exact: mode of the directory")
    spans = [(int(one.meta("start_ns")), float(one.meta("duration_s")))
             for one in map(run.recording, run.files())]
    gate.equal([start < following for (start, _), (following, _) in zip(spans, spans[1:])],
               [True] * (len(spans) - 1), "exact: one begins after the other")
    check_views(run, counts)
    return run


def total(words):
    result = gate.braid("report", "--format", "folded", *words)
    return (result.status, sum(count for _, count in gate.running.stacks_of(result.out)),
            result.err)


def times_of(run):
    """Of all samples, in ns since 1970."""
    times = []
    for one in map(run.recording, run.files()):
        offset = int(one.meta("clock_offset_ns"))
        times += [time + offset for time, in one.sql("SELECT time_ns FROM sample")]
    return times


def check_views(run, counts):
    merged = gate.Recording(run.directory).merged()
    gate.check_merged("views: the directory as one", merged, gate.HERE, run.hits)
    times = sorted(times_of(run))
    # The fraction has nine digits, as times have.
    middle = times[len(times) // 2]
    at = f"@{middle // 10**9}.{middle % 10**9:09}"
    later = sum(time >= middle for time in times)
    gate.equal(total(["--from", at, run.directory]), (0, later, ""), "views: --from")
    gate.equal(total(["--to", at, run.directory]), (0, run.hits - later, ""), "views: --to")
    last = run.recording(run.files()[-1])
    gate.equal(total(["--from", "@1", "--to", "@2", run.directory])[:2], (1, 0),
               "views: no samples from that time")
    gate.equal(total(["--from", "-100d", last.file]), (0, counts[-1], ""), "views: of one file")
    page = gate.path("page.html")
    gate.equal(gate.braid("flame", "-o", page, run.directory).status, 0, "views: a page")
    result = gate.braid("report", "--diff", run.directory, "--from", "-100d", run.directory)
    gate.equal(result.status, 0, "views: --diff", result.err)
    damaged = os.path.join(run.directory, run.files()[0])
    with open(damaged, "r+b") as file:
        file.seek(100)
        file.write(bytes(300))
    status, found, said = total([run.directory])
    gate.equal((status, found), (0, run.hits - counts[0]), "views: without a damaged one")
    gate.matches(f"(?m)^left out: {re.escape(damaged)} is damaged", said, "views: which is named")


def check_bounds():
    """No more than that, and nothing else goes."""
    directory = gate.path("bounds")
    run = Rotation("bounds", "--keep", "2")
    others = {"notes.txt", "20000101T000000Z-000000.db.bak", "20000101T000000Z-000000.txt"}
    for name in others:
        with open(os.path.join(directory, name), "w", encoding="ascii") as file:
            file.write("precious\n")
    os.symlink("notes.txt", os.path.join(directory, "20000101T000000Z-000001.db"))
    os.mkdir(os.path.join(directory, "20000101T000000Z-000002.db"))
    first = run.files(".part")[0][:-5]
    gate.wait_until(lambda: [name for name in run.files() if name > first + ".db"][1:],
                    "the third recording")
    run.turn()
    status, said = run.end()
    gate.equal(status, 0, "bounds: status", said)
    run = Rotation("bounds", "--keep", "1", target=run.target)
    gate.equal(run.end()[0], 0, "bounds: status, again")
    kept = set(os.listdir(directory)) - others
    gate.equal({name[:8] for name in kept if name.startswith("2000")}, {"20000101"},
               "bounds: what is not braid's stays")
    gate.equal(len([name for name in kept if not name.startswith("2000")]), 2,
               "bounds: one recording, and the mark", kept)


def check_too_small():
    """Room for none: each goes when it is finished, which is said once."""
    run = Rotation("small", "--keep-bytes", "1")
    run.turn()
    run.turn()
    status, said = run.end()
    gate.equal((status, run.files()), (0, []), "too small: none is kept")
    gate.equal(said.count("--keep-bytes is too small for one finished recording"), 1,
               "too small: it says so, once", said)


def check_killed():
    run = Rotation("killed", "--keep", "1000")
    run.hit(5)
    run.turn()
    run.hit(4)
    gate.wait_until(lambda: run.written() + sum(run.counts()) == 9, "a commit")
    gate.equal(run.end(signal.SIGKILL)[0], -signal.SIGKILL, "killed: status")
    left = run.files(".part")
    with open(os.path.join(run.directory, ".braid-Ab3xYz"), "wb"):
        pass  # as it is before a recording has its place
    again = Rotation("killed", "--keep", "1000", target=run.target)
    gate.equal(again.files(".part") == left, False, "killed: the next one goes on with another")
    again.hit(3)
    status, said = again.end()
    gate.equal(status, 0, "killed: status of the next one", said)
    gate.equal(again.files(".part"), [], "killed: no file is unfinished")
    gate.equal(sum(again.counts()), 12, "killed: nothing is lost, and nothing is there twice")
    for name in left:
        gate.matches(f"(?m)^{name} comes from a braid that was killed: it has all committed data$",
                     said, "killed: the next one says so")
        gate.ok(name.replace(".part", ".db") in again.files(), "killed: and finishes it")
    gate.equal([name for name in os.listdir(run.directory) if name.startswith(".braid-A")], [],
               "killed: what was no recording yet is gone")


def check_clock():
    """Set back and forth by days."""
    step = gate.path("step")

    def set_clock(seconds):
        with open(step + ".new", "w", encoding="ascii") as file:
            file.write(f"{seconds}\n")
        os.rename(step + ".new", step)
    set_clock(0)
    run = Rotation("clock", "--keep", "1000", env={"LD_PRELOAD": CLOCK, "CLOCK_STEP": step})
    order = []
    for seconds in 0, -86400, 86400 * 3, 0:
        set_clock(seconds)
        run.turn()
        run.hit(2)
        order += [name for name in run.files() if name not in order]
    status, said = run.end()
    order += [name for name in run.files() if name not in order]
    gate.equal(status, 0, "clock: status", said)
    gate.equal(order, run.files(), "clock: names sort as they were written")
    gate.equal(sum(run.counts()), run.hits, "clock: nothing is lost")
    days = [round((int(run.recording(name).meta("clock_offset_ns")) -
                   int(run.recording(run.files()[0]).meta("clock_offset_ns"))) / 86400e9)
            for name in run.files()]
    gate.equal(sorted(set(days)), [-1, 0, 3], "clock: each has the time of its own")
    starts = [int(run.recording(name).meta("start_ns")) for name in run.files()]
    gate.equal(starts, sorted(starts), "clock: and the other clock goes on")
    gate.equal(total([run.directory]), (0, run.hits, ""), "clock: all is found")
    return run


def refuse(title, wanted, directory, *options):
    result = gate.braid("record", "--rotate", "1", "--keep", "2", *options, "-o", directory, "--",
                        "true")
    gate.equal(result.status, 1, f"{title}: status")
    gate.matches(f"^braid: {wanted}[^\n]*\n$", result.err, f"{title}: why")


def check_refused():
    run = Rotation("taken", "--keep", "2")
    refuse("two of them", f"another braid is recording to {run.directory}", run.directory)
    gate.equal(run.end()[0], 0, "two of them: the first goes on")
    other = gate.path("other")
    os.mkdir(other, 0o700)
    with open(os.path.join(other, "precious"), "w", encoding="ascii") as file:
        file.write("precious\n")
    refuse("not braid's", f"cannot use {other}: it contains other files \\(precious\\)", other)
    gate.equal(os.listdir(other), ["precious"], "not braid's: nothing is changed")
    refuse("a file", f"{other}/precious is not a directory", other + "/precious")
    refuse("not there", f"cannot make {other}/none/none: No such file", other + "/none/none")
    shared = gate.path("shared")
    os.mkdir(shared)
    os.chmod(shared, 0o777)
    refuse("others may write", f"cannot use {shared}: other users may write into it. Use chmod go-w", shared)
    os.chmod(shared, 0o755)
    os.chown(shared, 65534, 65534)
    refuse("another's", f"cannot use {shared}: it belongs to user 65534", shared)
    os.chown(shared, 0, 0)
    public, goal = gate.path("public"), gate.path("goal")
    os.mkdir(public)
    os.chmod(public, 0o1777)
    os.mkdir(goal, 0o700)
    link = os.path.join(public, "link")
    os.symlink(goal, link)
    os.lchown(link, 65534, 65534)
    for name in link, f"{link}/":
        refuse("another's link", f"cannot use {name}: it is another user's link, in a directory that others may write", name)
    gate.equal(os.listdir(goal), [], "another's link: nothing is made where it leads")
    os.symlink("/etc/hostname", os.path.join(shared, MARK))
    refuse("a link for a mark", "cannot open .braid-directory in", shared)
    for words, wanted in (((), "--rotate would fill the disk"),
                          (("--keep", "2", "--force"), "--force replaces only files"),
                          (("--keep", "2", "-e", "lock-order"), "lock-order covers a whole recording"),
                          (("--keep", "0"), "--keep takes"),
                          (("--keep", "1.5"), "--keep takes a whole number"),
                          (("--keep", "2", "--metrics", ""), "--metrics takes a file"),
                          (("--keep-bytes", "x"), "--keep-bytes")):
        result = gate.braid("record", "--rotate", "1", *words, "-o", gate.path("new"), "--", "true")
        gate.equal(result.status, 2, f"{words}: status", result)
        gate.ok(wanted in result.err, f"{words}: why", result.err)
    result = gate.braid("record", "--keep", "2", "--", "true", cwd=gate.tmp)
    gate.equal((result.status, "require --rotate" in result.err), (2, True), "--keep alone", result.err)


gate.need_root()
check_exact()
check_bounds()
check_too_small()
check_killed()
check_clock()
check_refused()
gate.done()
