# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of the files that `braid report --format` writes for viewers, by what their formats'
documents say alone: the oracle of formats.t. Each takes bytes, asserts the format's rules and
returns {track: [(frames root first, value), ...]}."""

import decimal
import json
import os
import re
import subprocess

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


def firefox(data, times=None):
    """src/types/profile.ts of the Firefox profiler at format version 70; tracks are "NAME of PROCESS
    PID/TID [WEIGHTS]", and weights in ms are given in ns. Times are those of the samples, which `times`
    gets by track in ns, or, where the file says so, the ends of the samples before."""
    json_of(data)
    file = json.loads(data, parse_float=decimal.Decimal)
    meta = file["meta"]
    assert set(file) == {"meta", "libs", "threads", "shared"} and file["libs"] == []
    assert (meta["preprocessedProfileVersion"], meta["symbolicated"]) == (70, True)
    assert meta["categories"][0]["color"] == "grey" and meta["interval"] > 0
    assert all(category["subcategories"] == ["Other"] for category in meta["categories"])
    assert len({category["name"] for category in meta["categories"]}) == len(meta["categories"])
    stacks = firefox_stacks(file["shared"], meta["categories"])
    instants = meta["extra"][0]["entries"][0]["value"].startswith("since the first sample")
    assert instants or times is None
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
            if instants:
                assert time >= now and time * 10**6 == int(time * 10**6)
                now = time
            else:
                assert abs(time - now) <= max(now * decimal.Decimal("1e-12"), decimal.Decimal("2e-6"))
                now += weight if kind == "tracing-ms" else decimal.Decimal("0.001")
            if times is not None:
                times.setdefault(f"{thread['name']}/{thread['tid']}", []).append(int(time * 10**6))
            track.append((() if stack is None else stacks[stack], int(value)))
    return tracks


def chrome(data):
    """Chrome's Trace Event Format: slices nest; tracks are "TITLE in PROCESS PID", of what is open
    between one event and the next, in microseconds times 1000; frames "NAME CATEGORY CALLS"."""
    json_of(data)
    file = json.loads(data, parse_float=decimal.Decimal)
    assert set(file) == {"displayTimeUnit", "otherData", "traceEvents"}
    names, tracks, open_ones, last = {}, {}, {}, {}
    for event in file["traceEvents"]:
        at = event["pid"], event["tid"]
        if event["ph"] == "M":
            assert set(event) == {"ph", "pid", "tid", "name", "args"} and at not in open_ones
            names.setdefault(at, {})[event["name"]] = event["args"]["name"]
            continue
        stack, now = open_ones.setdefault(at, []), event["ts"]
        track = tracks.setdefault(f"{names[at]['thread_name']} in {names[at]['process_name']} "
                                  f"{at[0]}", [])
        passed = (now - last.get(at, 0)) * 1000
        assert passed == int(passed) >= 0
        if passed:
            track.append((tuple(stack), int(passed)))
        last[at] = now
        if event["ph"] == "B":
            calls = "".join(f" {n}" for n in event.get("args", {}).values())
            stack.append(f"{event['name']} {event['cat']}{calls}")
        else:
            assert set(event) == {"ph", "pid", "tid", "ts"} and event["ph"] == "E"
            stack.pop()
    assert not any(open_ones.values())
    return tracks


# The fields of perf-script(1) as its readers take them apart, each by an expression of its own.
HEADER = re.compile(r"(\S.*?)\s+(\d+)/(\d+)\s+(\d+)\.(\d{9}): +(\d+) (\S+): $")
FRAME = re.compile(r"\t *([0-9a-f]+) (.+) \(([^\s()]+)\)$")
# FlameGraph's stackcollapse-perf.pl leaves such names out or cuts them in two.
NO_SYMBOL = re.compile(r" *\(|.*->")


def perf(data, instants=None):
    """Tracks are "EVENT COMM PID/TID", frames "SYMBOL (DSO)"; times must ascend and are given to
    `instants` by track, in ns, or, where the file says so, be where the values of the thread's
    samples before them end, or microseconds."""
    tracks, stack, track, value, times, last = {}, None, None, None, {}, 0
    timed = b"times are since the first sample" in data
    assert timed or instants is None
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
            assert now >= last if timed else steps, line
            last = now
            if instants is not None:
                instants.setdefault(track, []).append(now)
        elif line:
            assert int(frame[1], 16) == 0 and not NO_SYMBOL.match(frame[2]), line
            stack.append(f"{frame[2]} ({frame[3]})")
        else:
            assert stack
            tracks[track].append((tuple(reversed(stack)), value))
            stack = None
    assert stack is None
    return tracks


def decoded(data, message, proto="otlp.proto"):
    """What protoc makes of it, as {field: [value, ...]}; it says no word of what it knows."""
    here = os.path.dirname(os.path.abspath(__file__))
    result = subprocess.run(["protoc", "--decode=" + message, "-I", here, os.path.join(here, proto)],
                            input=data, capture_output=True, check=True)
    assert not result.stderr, result.stderr  # as of strings that are not UTF-8
    open_ones = [{}]
    for line in result.stdout.decode().splitlines():
        line = line.strip()
        if line == "}":
            open_ones.pop()
        elif line.endswith(" {") and ": " not in line:
            open_ones[-1].setdefault(line[:-2], []).append({})
            open_ones.append(open_ones[-1][line[:-2]][-1])
        else:
            field, value = line.split(": ", 1)
            assert not field.isdigit(), f"a field that is not known: {line}"
            if value[0] == '"':
                value = value[1:-1].encode().decode("unicode_escape").encode("latin1")
            open_ones[-1].setdefault(field, []).append(
                value if isinstance(value, bytes) else int(value))
    assert len(open_ones) == 1
    return open_ones[0]


def any_value(value):
    assert len(value) == 1
    return [found.decode() if isinstance(found, bytes) else found
            for found, in value.values()][0]


def attributes_of(attributes):
    """{key: value}, of a resource."""
    pairs = [(of["key"][0].decode(), any_value(of["value"][0])) for of in attributes]
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


class Dictionary:
    """The tables: entry 0 is empty, nothing is twice, and all that there is has been asked for."""
    def __init__(self, tables):
        self.tables = tables
        self.used = {name: {0} for name in ("mapping", "location", "function", "string",
                                            "attribute", "stack")}
        assert tables["link_table"] == [{"trace_id": [bytes(16)], "span_id": [bytes(8)]}]
        for name in self.used:
            entries = tables[name + "_table"]
            assert entries[0] == (b"" if name == "string" else {}), entries[0]
            keys = [repr(entry) for entry in entries]
            assert len(set(keys)) == len(keys), f"a {name} is twice"

    def get(self, name, index):
        self.used[name].add(index)
        return self.tables[name + "_table"][index]

    def text(self, of, field):
        text = text_of(self.get("string", of.get(field, [0])[0]), "")
        return text

    def attributes(self, of):
        found = [self.get("attribute", index) for index in of.get("attribute_indices", [])]
        pairs = [(self.text(one, "key_strindex"), any_value(one["value"][0])) for one in found]
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    def frame(self, index):
        of = self.get("location", index)
        line, = of["lines"]
        function = self.get("function", line.get("function_index", [0])[0])
        mapping = self.get("mapping", of.get("mapping_index", [0])[0])
        name, file = (self.text(function, field) for field in ("name_strindex", "filename_strindex"))
        place = file + "".join(f":{number}" for number in line.get("line", []))
        library = self.text(mapping, "filename_strindex")
        return name + (f" ({place})" if place else "") + (f" [{library}]" if library else "") + " " + \
            self.attributes(of)["profile.frame.type"]

    def check_used(self):
        for name, used in self.used.items():
            assert used == set(range(len(self.tables[name + "_table"]))), f"a {name} without use"


def otlp(data, origin=None):
    """OpenTelemetry's rules for profiles; tracks are "TYPE THREAD TID of SERVICE PID [UNIT]". `origin`:
    a list for what is told of a profile's, its host, time and id."""
    request = decoded(data, "Request")
    tables = Dictionary(request["dictionary"][0])
    tracks = {}
    for resource in request.get("resource_profiles", []):
        of = attributes_of(resource["resource"][0].get("attributes", []))
        assert origin is not None or of.get("service.name") == of.get("process.executable.name")
        scope, = resource["scope_profiles"]
        assert scope["scope"] == [{"name": [b"braid"]}]
        for profile in scope["profiles"]:
            kind = profile["sample_type"][0]
            name, unit = (tables.text(kind, field) for field in ("type_strindex", "unit_strindex"))
            assert ("period" in profile) == ("period_type" in profile)
            assert profile.get("period_type", [kind]) == [kind]
            seen = set()
            assert ("profile_id" in profile) == ("time_unix_nano" in profile) == (origin is not None)
            if origin is not None:
                assert len(profile["profile_id"][0]) == 16
                origin.append((of.get("host.name"), profile["time_unix_nano"][0],
                               profile["profile_id"][0]))
            for sample in profile["samples"]:
                thread = tables.attributes(sample)
                stack = tables.get("stack", sample.get("stack_index", [0])[0])
                frames = tuple(map(tables.frame, reversed(stack.get("location_indices", []))))
                value, = sample["values"]  # without times there is one
                identity = (sample.get("stack_index", [0])[0],
                            frozenset(sample.get("attribute_indices", [])))
                assert value > 0 and identity not in seen, "two samples are one"
                seen.add(identity)
                track = f"{name} {thread.get('thread.name')} {thread.get('thread.id')} of " \
                    f"{of.get('service.name')} {of.get('process.pid')} [{unit}]"
                tracks.setdefault(track, []).append((frames, value))
    tables.check_used()
    return tracks
