#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid report --diff`: made-up recordings whose samples were drawn by hand or by a seeded random
number generator, and what the change of each function must be by arithmetic on these samples."""

import collections
import math
import os
import pty
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
OLD, NEW = os.path.join(WORK.name, "old.db"), os.path.join(WORK.name, "new.db")


def made(path, samples, **meta):
    """As in report.t: fields of tests/tools/mksamples, with blanks between."""
    if os.path.exists(path):
        os.unlink(path)
    lines = "".join(sample.replace(" ", "\t") + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", path], input=lines, text=True, check=True)
    if meta:
        with sqlite3.connect(path) as file:
            file.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


def cpu(n, frames, thread="42:app 42:app", value=1):
    return [f"cpu samples {value} running - - {thread} {frames}"] * n


def report(*words):
    result = subprocess.run([OUTPUT + "/braid", "report", "--diff", OLD, *words, NEW],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def table(*words):
    """{function: the rest of its row}"""
    status, out, err = report("--rows", "all", *words)
    tap.equal((status, err), (0, ""), f"a table {words}", out)
    rows = out[out.index("\n\n"):].splitlines()[3:]
    return {row.split("  ")[-1].strip(): row for row in rows}


# ---- the oracle ----

def verdict(errors, enough, old, new):
    """In words, of a change with so many standard errors."""
    mark = "new" if not old else "gone" if not new else ""
    if math.isclose(old, new, rel_tol=1e-12):
        return "same"
    if not enough:
        return (mark + ", " if mark else "") + "too few samples"
    if errors < 3:
        return (mark + ", " if mark else "") + f"within error {errors:.1f}σ"
    return f"{mark or ('more' if new > old else 'less')} {errors:.1f}σ"


def effect(threads, function, share):
    """Of clusters that are threads of one role: {role: [{function: count}, ...]}; by the definition,
    thread by thread."""
    whole = sum(sum(thread.values()) for role in threads.values() for thread in role)
    between = 0
    for role in threads.values():
        if len(role) < 2:
            continue
        rests = [thread.get(function, 0) - share * sum(thread.values()) for thread in role]
        between += len(role) * statistics.variance(rests)
    drawn = share * (1 - share) * whole
    return max(1, between / drawn) if drawn else 1


def by_share(old, new, function):
    """Two proportions, pooled, of samples that weigh 1."""
    count, whole, effects = [], [], []
    for threads in (old, new):
        all_of = collections.Counter()
        for role in threads.values():
            for thread in role:
                all_of.update(thread)
        count.append(all_of[function])
        whole.append(sum(all_of.values()))
        effects.append(effect(threads, function, count[-1] / whole[-1]))
    pooled = sum(count) / sum(whole)
    shares = [k / n for k, n in zip(count, whole)]
    variance = pooled * (1 - pooled) * sum(d / n for d, n in zip(effects, whole))
    errors = abs(shares[1] - shares[0]) / math.sqrt(variance) if variance else 0
    enough = all(n * pooled >= 5 and n * (1 - pooled) >= 5 for n in whole)
    return f"{100 * shares[0]:5.1f}% {100 * shares[1]:5.1f}% {100 * (shares[1] - shares[0]):+6.1f}%  " \
        + verdict(errors, enough, *shares)


def samples_of(threads, first):
    tid, out = first, []
    for role, members in threads.items():
        for number, counts in enumerate(members):
            tid += 1
            for function, n in counts.items():
                out += cpu(n, f"n:{function}", f"{first}:app {tid}:{role}{number}")
    return out


def check_drawn():
    """One thread, and roles with several, whose threads differ more than chance would have it."""
    draw = random.Random(5)
    functions = [f"f{i}" for i in range(24)]

    def thread(n, weights):
        return collections.Counter(draw.choices(functions, weights, k=n))

    weights = [draw.random() ** 3 for _ in functions]
    changed = [weight * (1 if i % 3 else 4) for i, weight in enumerate(weights)]
    alone = {"main": [thread(900, weights)]}, {"main": [thread(1300, changed)]}
    skewed = [[weight * draw.choice((0.2, 1, 5)) for weight in weights] for _ in range(5)]
    pools = ({"main": [thread(300, weights)], "io-": [thread(200, skewed[i]) for i in range(3)]},
             {"main": [thread(250, changed)], "io-": [thread(150 + 40 * i, skewed[i])
                                                      for i in range(5)]})
    for what, (old, new) in (("one thread", alone), ("pools of threads", pools)):
        made(OLD, samples_of(old, 100))
        made(NEW, samples_of(new, 200))
        rows = table()
        want = {f: by_share(old, new, f) for f in rows}
        tap.equal({f: row[:len(want[f])] for f, row in rows.items()}, want, f"{what}: each change")
        tap.equal({f for f, row in rows.items() if row[len(want[f]):].strip() != f"native   {f}"},
                  set(), f"{what}: nothing else is said")
        words = " ".join(want.values())
        tap.ok(("more" in words and "less" in words) == (what == "one thread") and "within" in words,
               f"{what}: of all sorts", words)
    spread = [effect(new, f, 0.05) for f in functions]
    tap.ok(max(spread) > 3, "pools: clusters matter", spread)


def check_words():
    made(OLD, cpu(400, "n:main;python:f@/old/app.py;n:strcmp") + cpu(100, "n:main;python:g@/old/app.py")
         + cpu(20, "n:main;n:before") + cpu(4, "n:main;n:seldom"))
    made(NEW, cpu(400, "n:main;python:f@/new/app.py;n:strcmp", "9:app 9:app")
         + cpu(180, "n:main;python:g@/new/app.py", "9:app 9:app")
         + cpu(36, "n:main;n:after", "9:app 9:app"))
    status, out, err = report()
    tap.equal((status, err), (0, ""), "old and new")
    tap.equal(out.splitlines(), [
        "old: made up", "524 samples", "new: made up", "616 samples",
        "compared by share: % of each recording's whole; within error: less than 3 standard "
        "errors (σ)",
        "script: self, with the native code that it calls (--sort)", "",
        "  Old%   New%   Delta  Change                   Kind     Function",
        " 76.3%  64.9%  -11.4%  less 4.2σ                python   f (app.py)",
        " 19.1%  29.2%  +10.1%  more 4.0σ                python   g (app.py)",
        "  0.0%   5.8%   +5.8%  new 5.6σ                 native   after",
        "  3.8%   0.0%   -3.8%  gone 4.9σ                native   before",
        "  0.8%   0.0%   -0.8%  gone, too few samples    native   seldom"], "a table")
    rows = table("--sort", "self", "--frames", "all")
    tap.ok(rows["strcmp"].startswith(" 76.3%") and "f (app.py)" not in rows, "--sort self")
    tap.ok(table("--sort", "total")["main"].startswith("  4.6%   5.8%   +1.3%  within"),
           "--sort total")
    tap.equal(list(table("--sort", "name")), ["after", "before", "f (app.py)", "g (app.py)", "seldom"],
              "--sort name")
    tap.equal(list(table("--group", "process")), ["app"], "a process has another PID, and is the same")
    tap.equal(list(table("--frames", "script", "--runtime", "python")), ["f (app.py)", "g (app.py)"],
              "--frames and filters are of both")
    status, out, err = report("--format", "tree", "--by", "thread")
    tap.ok("  0.0%   5.8%   +5.8%  new 5.6σ" in out and "gone 4.9σ" in out, "a tree has deltas", out)
    status, inverted, err = report("--format", "tree", "--inverted", "--frames", "script")
    tap.ok(" 19.1%  29.2%  +10.1%  more 4.0σ                g (app.py)" in inverted.splitlines(),
           "and so it has turned round", inverted)


def check_folded():
    status, out, err = report("--format", "folded")
    scale = 616 / 524
    tap.equal((status, err, out.splitlines()), (
        0, f"old values are multiplied by {scale:.6g}: both recordings then have the same total\n", [
            "main;after 0 36",
            f"main;before {round(20 * scale)} 0",
            f"main;f (app.py);strcmp {round(400 * scale)} 400",
            f"main;g (app.py) {round(100 * scale)} 180",
            f"main;seldom {round(4 * scale)} 0"]), "folded: two columns, scaled")
    status, out, err = report("--format", "folded", "--diff-by", "value")
    tap.equal((status, err, out.splitlines()[1:3]), (0, "", [
        "main;before 20 0", "main;f (app.py);strcmp 400 400"]), "by value: sums")


def check_values():
    """Rates of Poisson processes: samples of clocks as time, durations and frequencies differ."""
    made(OLD, cpu(400, "n:f") + cpu(90, "n:g") + cpu(30, "n:same"), duration_s="10",
         frequency_hz="100")
    made(NEW, cpu(1100, "n:f") + cpu(90, "n:g") + cpu(120, "n:same"), duration_s="20",
         frequency_hz="200")
    rows = table("--diff-by", "value")

    def want(old, new):
        rates = old * 10 / 10, new * 5 / 20  # ms in a second
        pooled = (old * 10 + new * 5) / 30
        errors = abs(rates[1] - rates[0]) / math.sqrt(pooled * (10 / 10 + 5 / 20))
        return verdict(errors, True, *rates)

    tap.equal(rows["f"][:46].rstrip(), "    400 ms     275 ms -    125 ms  " + want(400, 1100),
              "by value: less time a second")
    tap.equal(rows["g"][:46].rstrip(), "   90.0 ms    22.5 ms -   67.5 ms  " + want(90, 90),
              "by value: of as many samples")
    tap.equal(rows["same"][:46].rstrip(), "   30.0 ms    30.0 ms +      0 ns  same",
              "by value: the same")
    status, out, err = report("--diff-by", "value", "--format", "folded")
    tap.equal((out.splitlines(), err), (
        ["f 1600 1100", "g 360 90", "same 120 120"],
        "old values are multiplied by 4: they are then per second, or sample, of the new recording\n"),
        "by value: folded")
    check_kish((400, 120), (900, 120), True)
    check_kish((40, 12), (60, 20), False)


def check_kish(old, new, enough):
    """Of runs of 1 ms and waits of 30 ms: the number of samples is Kish's effective one."""
    counts = []
    for path, (runs, waits) in ((OLD, old), (NEW, new)):
        made(path, ["wall ns 1000000 running - - 1:a 1:a n:f"] * runs
             + ["wall ns 30000000 waiting - - 1:a 1:a n:g"] * waits)
        whole = runs + 30 * waits
        counts.append((runs / whole, whole**2 / (runs + 900 * waits)))
    pooled = sum(share * n for share, n in counts) / sum(n for _, n in counts)
    errors = abs(counts[1][0] - counts[0][0]) / math.sqrt(
        pooled * (1 - pooled) * sum(1 / n for _, n in counts))
    tap.equal(min(n for _, n in counts) * pooled >= 5, enough, "the oracle's number of samples")
    tap.equal(table()["f"][:46].rstrip()[23:], verdict(errors, enough, *(p for p, _ in counts)),
              f"long waits are few samples, whatever their time: {enough}")


def check_refused():
    def refused(want, *words):
        status, out, err = report(*words)
        tap.equal((status != 0, out), (True, ""), f"{words}: is refused")
        tap.ok(want in err, f"{words}: says why", err)

    made(OLD, cpu(5, "n:f"))
    made(NEW, ["wall ns 1000 running - - 1:a 1:a n:f"])
    refused("wall")
    made(OLD, ["x ns 1000 running - - 1:a 1:a n:f"])
    made(NEW, ["x bytes 1000 running - - 1:a 1:a n:f"])
    refused("compare the event x: it is in ns in the older recording and in bytes in the newer")
    made(OLD, cpu(5, "n:f"), duration_s="3")
    made(NEW, cpu(5, "n:f"))
    refused("the duration of the newer recording is unknown", "--diff-by", "value")
    made(OLD, cpu(5, "n:f"), frequency_hz="3")
    refused("the sampling frequency of the newer recording is unknown", "--diff-by", "value")
    refused("table, tree, json, markdown or folded", "--format", "pprof", "-o", os.path.join(WORK.name, "x"))
    refused("table, tree, json, markdown or folded", "--histogram")
    refused("--diff cannot be sorted by samples", "--sort", "samples")
    refused("share or value", "--diff-by", "x")
    result = subprocess.run([OUTPUT + "/braid", "report", "--diff-by", "share", NEW],
                            capture_output=True, text=True, check=False)
    tap.ok(result.returncode == 2 and "--diff OLD" in result.stderr, "--diff-by alone")
    os.unlink(OLD)
    refused(OLD)


def in_place(*words):
    result = subprocess.run([os.path.abspath(OUTPUT) + "/braid", *words], cwd=WORK.name,
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


def check_kept():
    """--diff without OLD takes the recording that `record` has kept; a word behind it is still OLD."""
    made(OLD, cpu(60, "n:f") + cpu(40, "n:g"))
    made(NEW, cpu(60, "n:g") + cpu(40, "n:f"))
    os.rename(OLD, os.path.join(WORK.name, "braid.db.old"))
    os.rename(NEW, os.path.join(WORK.name, "braid.db"))
    status, want, err = in_place("report", "--diff", "braid.db.old", "braid.db")
    tap.equal((status, err, "+20.0%" in want), (0, "", True), "both are named", want)
    said = "comparing braid.db with braid.db.old\n"
    tap.equal(in_place("report", "--diff"), (0, want, said), "none is named")
    tap.equal(in_place("report", "--diff", "--rows", "30"), (0, want, said), "an option follows")
    tap.equal(in_place("report", "braid.db", "--diff"), (0, want, said), "the newer one is named")
    tap.equal(in_place("report", "--diff=braid.db.old"), (0, want, ""), "with =")
    tap.equal(in_place("report", "--diff", "braid.db.old"), (0, want, ""), "the older one is named")
    tap.equal(in_place("flame", "--diff")[0::2], (0, said), "a page of both")
    os.rename(os.path.join(WORK.name, "braid.db"), os.path.join(WORK.name, "other.db"))
    status, out, err = in_place("report", "other.db", "--diff")
    tap.equal((status, out, err), (1, "", "braid: cannot compare other.db with other.db.old: No such file or "
              "directory. Name the older recording: --diff OLD\n"), "there is no older one")


def on_terminal(*words):
    pid, terminal = pty.fork()
    if not pid:
        for name in ("NO_COLOR", "PAGER", "LESS"):
            os.environ.pop(name, None)
        os.environ.update({"TERM": "xterm", "BRAID_PAGER": "cat"})
        os.execv(OUTPUT + "/braid", ["braid", "report", "--diff", OLD, *words, NEW])
    got = b""
    try:
        while part := os.read(terminal, 65536):
            got += part
    except OSError:  # the terminal's other end is closed
        pass
    os.close(terminal)
    os.waitpid(pid, 0)
    return got.decode().replace("\r\n", "\n")


def check_colours():
    """Of check_words' recordings: more is red, less blue, what may be chance grey."""
    colours = {"\033[31m": ("more", "new"), "\033[34m": ("less", "gone"), "\033[2m": ()}
    for words in ((), ("--format", "tree")):
        text = on_terminal(*words)
        rows = [row for row in text[text.index("Change"):].splitlines()[1:] if "%" in row]
        for row in rows:
            colour = next((one for one in colours if row.startswith(one)), None)
            sure = "σ" in row and "within" not in row
            want = [one for one, of in colours.items()
                    if (any(word in row for word in of) if sure else not of)]
            tap.equal([colour], want, f"the colour of: {row[5:60]}")
            tap.ok(row.endswith("\033[m"), "and its end", row)


def check_empty():
    made(OLD, cpu(1, "n:f", value=0))
    made(NEW, cpu(3, "n:f"))
    tap.equal(table()["f"][:46].rstrip(), "  0.0% 100.0% +100.0%  new, too few samples",
              "an empty old recording")
    made(NEW, cpu(1, "n:f", value=0))
    tap.equal(table(), {}, "two empty recordings")
    made(OLD, cpu(20, "n:f"))
    made(NEW, cpu(20, "n:f;python:p@/a.py"))
    tap.ok("only new has python frames, which alone makes stacks differ" in report()[1],
           "frames of a kind that one does not have")


check_words()
check_folded()
check_colours()
check_drawn()
check_values()
check_empty()
check_kept()
check_refused()
tap.done()
