#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Node.js, every one at hand: names, files and lines of a known call tree, as V8 itself sees it;
known shares of CPU time, and those of --cpu-prof; what is told where V8 writes no map; jitdump files;
a program that nobody wrote for this."""

import collections
import glob
import json
import os
import re
import shutil
import subprocess
import time

import lib
import pythons

BY_MAP = ("-F", "999", "--source", "map")
MAP = ["--perf-basic-prof", "--interpreted-frames-native-stack"]
FIXTURES = "fixtures/node"


class Node:
    """One Node.js; `root` is where its "/" is, `work` a directory in there."""

    def __init__(self, program, root=""):
        self.root = root
        self.command = ["chroot", root, program] if root else [program]
        version = subprocess.run([*self.command, "--version"], check=True, stdout=subprocess.PIPE)
        self.version = version.stdout.decode().strip()[1:]
        self.label = f"Node {self.version}" + (f" {os.path.basename(root)}" if root else "")
        self.work = root + lib.path(f"{self.version}-{len(glob.glob(root + lib.path('*')))}")
        shutil.copytree(FIXTURES, self.work, dirs_exist_ok=True)

    def no_inlining(self):
        maglev = int(self.version.split(".")[0]) >= 20
        return ["--no-turbo-inlining", *(["--no-maglev-inlining"] if maglev else [])]

    def inside(self, path):
        return path[len(self.root):]

    def script(self, name):
        return self.inside(os.path.join(self.work, name))

    def arguments(self, name, *args, options=()):
        return [*self.command, *self.log(), *options, self.script(name), *map(str, args)]

    def log(self):
        """V8's log comes with its maps, and would be in the working directory."""
        return ["--no-logfile-per-isolate", f"--logfile={self.script('v8.log')}"]

    def start(self, name, options=(), **more):
        return lib.start_ready(*self.arguments(name, options=options), **more)

    def clean(self):
        for path in glob.glob(self.root + "/tmp/perf-*.map"):
            pid = re.search(r"perf-(\d+)\.map", path).group(1)
            if not os.path.exists("/proc/" + pid):
                os.unlink(path)
        if self.root:
            shutil.rmtree(self.root + lib.tmp)


def nodes():
    found, seen = [], set()
    places = [(os.path.join(directory, "node"), "")
              for directory in os.environ["PATH"].split(":") + ["/usr/bin"]]
    places += [("/usr/bin/node", root) for root in
               sorted(glob.glob(os.path.join(pythons.roots_directory(), "*")))]
    places += [(program, "") for program in sorted(glob.glob(os.path.join(
        pythons.roots_directory(), "nodes", "*", "bin", "node")))]
    for program, root in places:
        binary = os.path.realpath(root + program)
        if os.path.exists(binary) and binary not in seen:
            seen.add(binary)
            found.append(Node(program, root))
    return found


def javascript(frames):
    """The frames of JavaScript, without kind, in a stack of folded --annotate."""
    return [frame[:-len("_[j]")] for frame in frames
            if frame.endswith("_[j]") and not frame.startswith("Builtins_")]


# --- a known call tree ---

def v8_stack(node):
    """What V8 says the stack of tree.js is: functions, outermost first."""
    run = subprocess.run(node.arguments("tree.js", "--oracle"), check=True, stdout=subprocess.PIPE)
    names = []
    for line in run.stdout.decode().splitlines()[1:]:
        match = re.match(r" +at (?:(.*) \()?([^()]*):\d+:\d+\)?$", line)
        if match and match.group(2).endswith("tree.js"):
            name = re.sub(r" \[as .*\]$", "", match.group(1) or "<anonymous>")
            name = re.sub(r"^\w+\.(?=[^.]*$)", "", name)  # the receiver's class
            names.insert(0, name.replace("<anonymous>", "(anonymous)"))
    return names


def definitions():
    """Line of each function of tree.js."""
    with open(os.path.join(FIXTURES, "tree.js"), encoding="utf-8") as file:
        lines = file.read().splitlines()

    def line(text):
        return 1 + next(i for i, found in enumerate(lines) if text in found)

    return {"leaf": line("function leaf"), "generate": line("function* generate"),
            "takeFirst": line("const takeFirst"), "get size": line("get size()"),
            "method": line("method()"), "outer": line("function outer"),
            "loop": line("function loop")}


def check_tree(node, what, recording, by_map=True):
    want = v8_stack(node)
    label = f"{node.label}, {what}"
    lib.ok(want[0] == "(anonymous)" and want[-1] == "leaf" and len(want) == 9,
           f"{label}: V8's own stack", want)
    tree, total, lines = 0, 0, collections.Counter()
    stacks = recording.folded("--annotate", "--lines")
    for frames, count in stacks:
        names = [re.match(r"(.*) \((tree\.js):(\d+)\)$", frame) for frame in javascript(frames)]
        names = [name for name in names if name]
        if any("leaf" == name.group(1) for name in names):
            total += count
            tree += [name.group(1) for name in names] == want and count
            lines.update((name.group(1), int(name.group(3))) for name in names)
    everything = sum(count for _, count in stacks)
    lib.ok(total >= 0.9 * everything and tree >= 0.98 * total, f"{label}: the functions as V8 sees "
           "them", f"{tree} of {total} of {everything}", want,
           *(frames for frames, _ in sorted(stacks, key=lambda stack: -stack[1])[:2]))
    lib.check_complete(recording, 99, label)
    if not by_map:
        return
    wrong = {name: found for name, line in definitions().items()
             for found in [{got for got_name, got in lines if got_name == name}] if found != {line}}
    lib.equal(wrong, {}, f"{label}: their lines", lines)


def check_walk(node):
    """No option, no map: what is inlined has frames, too."""
    target = node.start("tree.js")
    recordings = [lib.record("-p", target.pid, "-d", 1) for _ in range(2)]
    lib.stop(target)
    lib.matches(rf"(^|\n)pid {target.pid}: node {re.escape(node.version)}: walk(: this build has no [^\n]*)?\n",
                recordings[0].result.err, f"{node.label}: it is told")
    for recording, what in zip(recordings, ("walked at first", "walked later")):
        check_tree(node, what, recording, by_map=False)
        check_named(node, what, recording)


def check_named(node, what, recording):
    frames = [frame for frames, count in recording.folded("--annotate")
              for frame in javascript(frames) for _ in range(count)]
    unknown = sum(frame.startswith("[unknown") for frame in frames)
    lib.ok(frames and unknown <= 0.002 * len(frames), f"{node.label}, {what}: JavaScript has names",
           f"{unknown} of {len(frames)} frames have none")


def check_map(node):
    target = node.start("tree.js", [*MAP, *node.no_inlining()])
    recording = lib.record("-p", target.pid, "-d", 1.5, options=BY_MAP)
    raw = lib.record("-p", target.pid, "-d", 0.5, options=("-F", "999", "-r", "jit"))
    native = lib.record("-p", target.pid, "-d", 0.5, options=("-F", "999", "-r", "native"))
    lib.stop(target)
    check_tree(node, "perf map", recording)
    lib.matches(rf"(^|\n)pid {target.pid}: node {re.escape(node.version)}: map\n",
                recording.result.err, f"{node.label}: it is told")
    lib.equal(recording.sql("SELECT runtime, version, source FROM source"),
              [("node", node.version, "map")], f"{node.label}: and recorded")
    places, named = (int(recording.meta(key)) for key in ("jit_places", "jit_places_named"))
    # Debian 13's Node 20 runs a copy of its builtins, which its map does not tell of.
    lib.ok(places and named >= 0.7 * places, f"{node.label}: code has names", f"{named} of {places}")
    lib.check_share(raw.folded(), r";[A-Za-z]+:[*^~+]'?leaf [^;]*tree\.js:\d+(:\d+)?", 0.9,
                    f"{node.label}, -r jit: V8's own names")
    stacks = native.folded()
    lib.check_share(stacks, r"\[anon\+0x", 0.9, f"{node.label}, -r native")
    lib.equal(lib.share_of(stacks, "leaf"), 0, f"{node.label}, -r native: no names")


def check_environment(node):
    """The option may come by the environment; without --interpreted-frames-native-stack what is
    missing is told."""
    env = {**os.environ, "NODE_OPTIONS": "--perf_basic_prof"}
    target = node.start("tree.js", node.no_inlining(), env=env)
    recording = lib.record("-p", target.pid, "-d", 0.7, options=BY_MAP)
    lib.stop(target)
    lib.matches(r"node [\d.]+: map: [^\n]*--interpreted-frames-native-stack", recording.result.err,
                f"{node.label}, NODE_OPTIONS: told")
    lib.check_share(recording.folded(), r"outer \(tree\.js\);.*leaf \(tree\.js\)(;|$)", 0.9,
                    f"{node.label}, NODE_OPTIONS")


def check_without(node):
    target = node.start("tree.js", node.no_inlining())
    time.sleep(1)  # until then Node 18 interprets
    recording = lib.record("-p", target.pid, "-d", 0.7, options=BY_MAP)
    lib.stop(target)
    lib.matches(r"node [\d.]+: none: [^\n]*NODE_OPTIONS=[^\n]*--perf-basic-prof",
                recording.result.err, f"{node.label}, no map: told, with the remedy")
    lib.check_share(recording.folded(), r"(;\[JavaScript\]){3}", 0.9, f"{node.label}, no map")
    lib.check_complete(recording, 99, f"{node.label}, no map")


def check_jitdump(node):
    """V8 writes the file with some delay, and its lines are those of the code, not of the function:
    here inside leaf."""
    directory = os.path.join(node.work, "dump")
    os.makedirs(directory)
    command = node.arguments("tree.js", 3, options=["--perf-prof", *MAP[1:], *node.no_inlining()])
    place = len(node.command) - 1  # of the program: it writes where it is
    recording = lib.record("--", *command[:place], "/bin/sh", "-c", 'cd "$0" && exec "$@"',
                           node.inside(directory), *command[place:], options=BY_MAP)
    stacks = recording.folded("--annotate", "--lines")
    tree = r"outer \(tree\.js:\d+\)_\[j\];.*leaf \(tree\.js:(\d+)\)_\[j\](;|$)"
    lib.check_share(stacks, tree, 0.7, f"{node.label}, jitdump")
    begin = definitions()["leaf"]
    lines = {int(re.search(tree, ";".join(frames)).group(1)) for frames, _ in stacks
             if re.search(tree, ";".join(frames))}
    lib.ok(lines and lines <= set(range(begin, begin + 6)), f"{node.label}, jitdump: lines", lines)


# --- shares ---

def read_cpu_profile(directory):
    """CPU time by function, itself and what is not JavaScript below it, and with all that it calls:
    {(function, file): share of all JavaScript}."""
    path, = glob.glob(os.path.join(directory, "*.cpuprofile"))
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    nodes_by_id = {node["id"]: node for node in profile["nodes"]}
    parents = {child: node["id"] for node in profile["nodes"] for child in node.get("children", ())}
    own, total = collections.Counter(), collections.Counter()
    for node in profile["nodes"]:
        chain, at = [], node["id"]
        while at:
            frame = nodes_by_id[at]["callFrame"]
            if frame["url"]:
                name = frame["functionName"] or "(anonymous)"
                file = frame["url"] if frame["url"].startswith("node:") else os.path.basename(
                    frame["url"])
                chain.append((name.rpartition(".")[2], file))
            at = parents.get(at)
        if chain:
            own[chain[0]] += node["hitCount"]
            total.update({name: node["hitCount"] for name in set(chain)})
    return shares(own), shares(total, sum(own.values()))


def shares(counts, of=None):
    of = of or sum(counts.values())
    return {name: count / max(of, 1) for name, count in counts.items()}


def measured(recording):
    """The same of a recording."""
    own, total = collections.Counter(), collections.Counter()
    for frames, count in recording.folded("--annotate"):
        names = [re.match(r"(.*) \((.*)\)$", frame) for frame in javascript(frames)]
        chain = [(name.group(1).rpartition(".")[2], name.group(2)) for name in names if name]
        if chain:
            own[chain[-1]] += count
            total.update({name: count for name in set(chain)})
    return shares(own), shares(total, sum(own.values()))


def record_profiled(directory, command):
    """V8's own profiler locks itself up at the end of some runs, with braid or without: its last
    thread and the main one wait for each other. Such a run has no profile: (recording, has one)."""
    recording = lib.record("--", "timeout", "-s", "KILL", "40", *command)
    return recording, bool(glob.glob(os.path.join(directory, "*.cpuprofile")))


def check_shares(node):
    """By construction, and as V8's own profiler sees it in the same run."""
    directory = os.path.join(node.work, "profile")
    command = node.arguments("shares.mjs", 3, options=[
        "--cpu-prof", f"--cpu-prof-dir={node.inside(directory)}"])
    recording, has_profile = record_profiled(directory, command)
    own, _ = measured(recording)
    for name, want in ("js60", 0.6), ("json30", 0.3), ("js10", 0.1):
        got = own.get((name, "shares.mjs"), 0)
        lib.ok(abs(got - want) < 0.1, f"{node.label}: share of {name}", f"{got:.3f}")
        if not has_profile:
            lib.skip(f"{node.label}: {name} as in --cpu-prof", "V8's profiler has locked itself up")
            continue
        theirs = read_cpu_profile(directory)[0].get((name, "shares.mjs"), 0)
        lib.ok(abs(got - theirs) < 0.05, f"{node.label}: {name} as in --cpu-prof",
               f"{got:.3f}, {theirs:.3f}")
    lib.check_complete(recording, 99, f"{node.label}: shares", begin=0.05)


# --- a program of others ---

def find_program(node):
    """(name, arguments) of a JavaScript program that has something to do."""
    for npm in "/usr/lib/node_modules/npm", "/usr/share/nodejs/npm":
        if os.path.exists(f"{node.root}{npm}/bin/npm-cli.js"):
            return "npm", [npm + "/bin/npm-cli.js", "ls", "--all", "--global"]
    for acorn in glob.glob(node.root + "/usr/share/nodejs/acorn/bin/acorn*"):
        source = node.root + "/usr/share/nodejs/acorn/dist/acorn.js"
        if os.path.exists(source):
            return "acorn", [node.inside(acorn), "--silent", "--ecma2020",
                             *[node.inside(source)] * 60]
    return None, None


def check_program(node):
    """What takes most of the time, with all that it calls, does so in both profiles."""
    name, arguments = find_program(node)
    if not name:
        lib.skip(f"{node.label}: a real program", "neither npm nor acorn is here")
        return
    directory = os.path.join(node.work, "program")
    recording, has_profile = record_profiled(directory, [
        *node.command, "--cpu-prof", f"--cpu-prof-dir={node.inside(directory)}", *arguments])
    label = f"{node.label}: {name}"
    if not has_profile:
        lib.skip(label, "V8's profiler has locked itself up")
        return
    _, total = measured(recording)
    _, oracle = read_cpu_profile(directory)
    top = sorted((key for key in oracle if key[0] != "(anonymous)" and ":" not in key[1]),
                 key=lambda key: -oracle[key])[:12]
    found = {key: (round(oracle[key], 2), round(total.get(key, 0), 2)) for key in top}
    close = [key for key in top if abs(oracle[key] - total.get(key, 0)) < 0.12]
    lib.ok(len(top) >= 8 and len(close) >= 0.75 * len(top),
           f"{label}: functions as in --cpu-prof", found)
    lib.check_complete(recording, 98, label, begin=0.1)
    check_named(node, name, recording)


lib.need_bpf()
found_nodes = nodes()
for found_node in found_nodes:
    check_walk(found_node)
    check_map(found_node)
    check_environment(found_node)
    check_without(found_node)
    check_jitdump(found_node)
    check_shares(found_node)
    check_program(found_node)
    found_node.clean()
if not found_nodes:
    lib.skip("Node.js", "there is none")
lib.done()
