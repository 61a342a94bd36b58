# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of the files that `braid report --format` writes for viewers, by what their formats'
documents say alone: the oracle of formats.t. Each takes bytes, asserts the format's rules and
returns {track: [(frames root first, value), ...]}."""

import decimal
import json
import re

# Characters of the categories Cc, Cf and Co... that a name must not have in any file: those that
# are invisible or turn text round, and lone surrogates cannot even be decoded.
HOSTILE = [*map(chr, range(0x20)), "\x7f", "\u200e", "\u202e", "\u2066", "\ufeff"]


def text_of(data, allowed="\n"):
    text = data.decode()  # strict: it is UTF-8
    found = [sign for sign in HOSTILE if sign in text and sign not in allowed]
    assert not found, found
    return text


def json_of(data):
    """Of what is escaped in it, too."""
    def no_number(text):
        raise AssertionError(text)

    def check(value):
        if isinstance(value, str):
            text_of(value.encode(), "")
        elif isinstance(value, dict):
            list(map(check, [*value.keys(), *value.values()]))
        elif isinstance(value, list):
            list(map(check, value))

    value = json.loads(text_of(data), parse_constant=no_number)
    check(value)
    return value


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def speedscope(data):
    """file-format-schema.json of speedscope 1.25; tracks are "NAME [UNIT]", the active one first,
    frames "NAME (FILE:LINE)"."""
    file = json_of(data)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(file) == {"$schema", "shared", "profiles", "name", "exporter", "activeProfileIndex"}
    assert isinstance(file["name"], str) and set(file["shared"]) == {"frames"} and file["profiles"]
    names = []
    for frame in file["shared"]["frames"]:
        assert set(frame) <= {"name", "file", "line"} and isinstance(frame["name"], str)
        assert isinstance(frame.get("file", ""), str)
        assert "line" not in frame or (whole(frame["line"]) and frame["line"])
        place = frame.get("file", "") + (f":{frame['line']}" if "line" in frame else "")
        names.append(f"{frame['name']} ({place})" if place else frame["name"])
    tracks, used = {}, {0}
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples",
                                "weights"} and profile["type"] == "sampled"
        assert profile["unit"] in ("none", "nanoseconds", "microseconds", "milliseconds", "seconds",
                                   "bytes") and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(map(whole, profile["weights"]))
        assert profile["endValue"] == min(sum(profile["weights"]), (1 << 64) - 1)
        assert all(stack and all(map(whole, stack)) for stack in profile["samples"])
        used.update(frame for stack in profile["samples"] for frame in stack)
        track = f"{profile['name']} [{profile['unit']}]"
        assert track not in tracks
        tracks[track] = [(tuple(names[frame] for frame in stack), weight)
                         for stack, weight in zip(profile["samples"], profile["weights"])]
    assert used == set(range(len(names))), "frames that no stack has"
    active = list(tracks)[file["activeProfileIndex"]]
    return {active: tracks[active], **tracks}


def columns(table, *names):
    """A table of the Firefox profiler: all columns are as long as it says."""
    assert set(table) == {"length", *names}, table.keys()
    assert all(len(table[name]) == table["length"] for name in names)
    return range(table["length"])


def firefox_stacks(shared, categories):
    """The stacks of the shared tables, root first, as "NAME (FILE:LINE) [LIBRARY] CATEGORY"."""
    strings, funcs, frames = shared["stringArray"], shared["funcTable"], shared["frameTable"]
    sources, resources = shared["sources"], shared["resourceTable"]
    assert all(isinstance(text, str) for text in strings) and len(set(strings)) == len(strings)
    columns(sources, "filename", "id", "startLine", "startColumn", "sourceMapURL", "content")
    columns(resources, "name", "host", "type")
    columns(shared["nativeSymbols"], "libIndex", "address", "name", "functionSize")
    columns(shared["sourceLocationTable"], "source", "line", "column")
    names = []
    for i in columns(funcs, "name", "resource", "source", "isJS", "relevantForJS", "lineNumber",
                     "columnNumber", "originalLocation"):
        source, resource = funcs["source"][i], funcs["resource"][i]
        names.append((strings[funcs["name"][i]],
                      None if source is None else strings[sources["filename"][source]],
                      None if resource == -1 else strings[resources["name"][resource]]))
    labels = []
    for i in columns(frames, "func", "category", "line", "subcategory", "address", "lib",
                     "inlineDepth", "nativeSymbol", "innerWindowID", "column", "originalLocation"):
        name, file, library = names[frames["func"][i]]
        line = frames["line"][i]
        assert line is None or line > 0
        assert frames["address"][i] == -1 and frames["lib"][i] == -1
        place = (file or "") + (f":{line}" if line else "")
        labels.append(name + (f" ({place})" if place else "") + (f" [{library}]" if library else "")
                      + " " + categories[frames["category"][i]]["name"])
    assert set(frames["func"]) == set(range(len(names))), "functions that no frame has"
    assert set(shared["stackTable"]["frame"]) == set(range(len(labels))), "frames without a stack"
    stacks = []
    for i in columns(shared["stackTable"], "frame", "prefixOffset"):
        offset = shared["stackTable"]["prefixOffset"][i]
        assert whole(offset) and offset <= i
        stacks.append((stacks[i - offset] if offset else ()) +
                      (labels[shared["stackTable"]["frame"][i]],))
    return stacks


def firefox(data):
    """src/types/profile.ts of the Firefox profiler at format version 70; tracks are "NAME of PROCESS
    PID/TID [WEIGHTS]", times the ends of the samples before, and weights in ms are given in ns."""
    json_of(data)
    file = json.loads(data, parse_float=decimal.Decimal)
    meta = file["meta"]
    assert set(file) == {"meta", "libs", "threads", "shared"} and file["libs"] == []
    assert (meta["preprocessedProfileVersion"], meta["symbolicated"]) == (70, True)
    assert meta["categories"][0]["color"] == "grey" and meta["interval"] > 0
    assert all(category["subcategories"] == ["Other"] for category in meta["categories"])
    assert len({category["name"] for category in meta["categories"]}) == len(meta["categories"])
    stacks = firefox_stacks(file["shared"], meta["categories"])
    tracks = {}
    assert file["threads"]
    for thread in file["threads"]:
        assert isinstance(thread["pid"], str) and whole(thread["tid"])
        columns(thread["markers"], "data", "name", "startTime", "endTime", "phase", "category")
        samples = thread["samples"]
        kind, now = samples["weightType"], decimal.Decimal(0)
        track = tracks.setdefault(f"{thread['name']} of {thread['processName']} {thread['pid']}/"
                                  f"{thread['tid']} [{kind}]", [])
        assert not track and (not thread["isMainThread"] or thread["pid"] == str(thread["tid"]))
        rows = zip(samples["stack"], samples["time"], samples["weight"])
        assert len(samples) == 5 and samples["length"] == len(samples["stack"])
        assert samples["length"] == len(samples["time"]) == len(samples["weight"])
        for stack, time, weight in rows:
            value = weight * 10**6 if kind == "tracing-ms" else weight
            assert value == int(value) >= 0 and kind in ("tracing-ms", "bytes", "samples")
            assert abs(time - now) <= max(now * decimal.Decimal("1e-12"), decimal.Decimal("2e-6"))
            now += weight if kind == "tracing-ms" else decimal.Decimal("0.001")
            track.append((() if stack is None else stacks[stack], int(value)))
    return tracks


# The fields of perf-script(1) as its readers take them apart, each by an expression of its own.
HEADER = re.compile(r"(\S.*?)\s+(\d+)/(\d+)\s+(\d+)\.(\d{9}): +(\d+) (\S+): $")
FRAME = re.compile(r"\t *([0-9a-f]+) (.+) \(([^\s()]+)\)$")


def perf(data):
    """Tracks are "EVENT COMM PID/TID", frames "SYMBOL (DSO)"; times must be where the values of the
    thread's samples before them end, or microseconds."""
    tracks, stack, track, value, times = {}, None, None, None, {}
    text = text_of(data, "\n\t")
    assert text.endswith("\n")
    for line in text.split("\n")[:-1]:
        header, frame = HEADER.match(line), FRAME.match(line)
        if line.startswith("#"):
            assert not tracks, "a comment between samples"
        elif stack is None:
            comm, pid, tid, seconds, nanos, value, event = header.groups()
            assert " " not in comm
            track, value, stack = f"{event} {comm} {pid}/{tid}", int(value), []
            now = int(seconds) * 10**9 + int(nanos)
            tracks.setdefault(track, [])
            ends, steps = times.setdefault(track, ([0, 0], {0, 1}))
            steps -= {step for step in (0, 1) if ends[step] != now}
            ends[0], ends[1] = ends[0] + value, ends[1] + 1000
            assert steps, line
        elif line:
            assert int(frame[1], 16) == 0
            stack.append(f"{frame[2]} ({frame[3]})")
        else:
            assert stack
            tracks[track].append((tuple(reversed(stack)), value))
            stack = None
    assert stack is None
    return tracks
