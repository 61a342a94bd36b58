#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers: of podman and runc where these work, and namespaces and a cgroup made by hand, with an
overlay file system. Two of them have other programs by the same path, one of which was replaced
meanwhile. And braid in a PID namespace of its own."""

import json
import os
import shutil
import subprocess

import gate
import scopes

ID = "5a" * 32
PODMAN = ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]

# Comes to the marker as often as each line says, in a function that is called as the compiler is told.
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa)) void braid_marker(void) { __asm__ volatile(""); }
__attribute__((noipa)) void NAME(int n) { while (n-- > 0) braid_marker(); __asm__ volatile(""); }
int main(void)
{
	char line[16];

	for (puts("ready"), fflush(stdout); fgets(line, sizeof(line), stdin); puts("done"), fflush(stdout))
		NAME(atoi(line));
	return 0;
}
"""

BY_HAND = """
echo $$ > "$1/cgroup.procs" &&
exec unshare --user --map-root-user --mount --pid --cgroup --uts --ipc --fork --kill-child sh -c '
mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/merged" &&
exec chroot "$2/merged" /bin/program' sh "$2" "$3"
"""


def root(name):
    """A file system with nothing but /bin/program, and that program's own name here."""
    directory = gate.path(name)
    for part in "bin", "proc", "sys", "dev", "etc", "tmp", "run":
        os.makedirs(f"{directory}/{part}")
    subprocess.run(["gcc", "-g", "-O2", "-static", f"-DNAME={name}", "-x", "c", "-", "-o",
                    f"{directory}/bin/program"], input=SOURCE.encode(), check=True)
    os.link(f"{directory}/bin/program", gate.path(f"{name}.program"))
    return directory


def in_podman(directory):
    """(the process that speaks for it, its id); None where that does not work here."""
    name = f"braid-test-{os.getpid()}"
    process = gate.start(*PODMAN, "run", "--rm", "-i", "--network", "none", "--name", name,
                         "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000",
                         "--rootfs", directory, "/bin/program", stderr=subprocess.DEVNULL)
    if gate.line_of(process) != "ready":
        return None
    found = gate.run(*PODMAN, "ps", "--no-trunc", "--format", "{{.ID}}", "--filter", f"name={name}")
    return process, found.out.strip()


def in_runc(directory):
    """The same of a bare `runc run NAME`, whose cgroup has that name and nothing else."""
    name, bundle = f"braid-bare-{os.getpid()}", gate.path("bundle")
    os.mkdir(bundle)
    gate.run("runc", "spec", cwd=bundle)
    with open(bundle + "/config.json", encoding="utf-8") as file:
        spec = json.load(file)
    spec["process"].update(terminal=False, args=["/bin/program"], rlimits=[])
    spec["root"]["path"] = directory
    with open(bundle + "/config.json", "w", encoding="utf-8") as file:
        json.dump(spec, file)
    process = gate.start("runc", "run", name, cwd=bundle, stderr=subprocess.DEVNULL)
    return (process, name) if gate.line_of(process) == "ready" else None


def check_bare():
    """A name that no rule knows: that of one cgroup, with processes that have their own files."""
    directory = root("bare")
    found = in_runc(directory) if shutil.which("runc") else None
    name = found[1] if found else f"braid-bare-{os.getpid()}"
    if not found:
        gate.skip("a bare container of runc", "it does not run here")
        scopes.Cgroup("/" + name)
    other = scopes.Cgroup(f"/braid-{os.getpid()}")
    event = f"uprobe:{gate.path('bare')}.program:braid_marker"
    words = (gate.BRAID, "record", "-e", event, "--max-overhead", "none", "-d", "0.1", "-o",
             gate.path("never.db"), "--container")
    inside = scopes.Cgroup(f"{other.path}/{name}")
    process = gate.start("sleep", "1000")
    inside.take(process)
    for one in (name[:-1], other.path[1:], "sh.scope", *([] if found else [name])):
        result = gate.run(*words, one)
        gate.equal((result.status, f"there is no container '{one}'" in result.err), (1, True),
                   f"bare: {one} is none", result.err)
    if not found:
        return
    recorder = gate.start(*words[:6], "-o", gate.path("bare.db"), "--container", name,
                          stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(gate.path("bare.db")) or recorder.poll() is not None,
                    "the first commit")
    gate.ask(found[0], "3")
    recorder.send_signal(gate.signal.SIGINT)
    said = recorder.stderr.read().decode()
    gate.equal(recorder.wait(), 0, "bare: status", said)
    gate.equal(stacks(gate.Recording(gate.path("bare.db"))), {name: ["bare"] * 3},
               "bare: by its name alone, though another cgroup has it, too")
    twin = gate.start("unshare", "--mount", "sh", "-c", "echo ready; read x; :")
    gate.wait_line(twin, "ready")
    inside.empty()
    inside.take(twin)
    result = gate.run(*words, name)
    gate.equal((result.status, f"2 cgroups with different files are called {name}. Choose one "
                "with --cgroup" in result.err), (1, True), "bare: two of them", result.err)
    gate.say(twin, "")
    twin.wait()
    found[0].stdin.close()
    found[0].wait()


def by_hand(directory):
    """The same with what the kernel has."""
    cgroup = scopes.Cgroup(f"/docker-{ID}.scope")
    room = gate.path("overlay")
    for part in "upper", "work", "merged":
        os.makedirs(f"{room}/{part}")
    process = gate.start("sh", "-c", BY_HAND, "sh", cgroup.directory, directory, room)
    gate.equal(gate.line_of(process), "ready", "namespaces and an overlay by hand")
    return process, ID


def stacks(recording, *options):
    """{container: [name of the caller of the marker]}."""
    found = {}
    for frames, number in recording.merged("--by", "container", *options):
        label, caller = frames[0], frames[-2].split(" (")[0].split("_[")[0]
        found.setdefault(label.split("_[")[0], []).extend([caller] * number)
    return found


def check_containers():
    roots = root("in_podman"), root("by_hand")
    podman = in_podman(roots[0]) if shutil.which("podman") and shutil.which("runc") else None
    if not podman:
        gate.skip("a container of podman with runc", "it does not run here")
    containers = [one for one in (podman, by_hand(roots[1])) if one]
    shutil.copy(f"{roots[0]}/bin/program", f"{roots[1]}/bin/other")
    os.rename(f"{roots[1]}/bin/other", f"{roots[1]}/bin/program")  # what runs there is replaced
    events = ",".join(f"uprobe:{gate.path(name)}.program:braid_marker"
                      for name in ("in_podman", "by_hand"))
    file = gate.path("all.db")
    recorders = [gate.start(gate.BRAID, "record", "-e", events, "--max-overhead", "none", *words,
                            "-o", file, stderr=subprocess.PIPE)
                 for words, file in ((["-a"], file), (["--container", ID[:9]], gate.path("one.db")))]
    for one, path in zip(recorders, (file, gate.path("one.db"))):
        gate.wait_until(lambda one=one, path=path: os.path.exists(path) or one.poll() is not None,
                        "the first commit")
    for process, _ in containers:
        gate.ask(process, "3")
    for one in recorders:
        one.send_signal(gate.signal.SIGINT)
        said = one.stderr.read().decode()
        gate.equal(one.wait(), 0, "status", said)
    want = {ID: ["by_hand"] * 3}
    if podman:
        want[podman[1]] = ["in_podman"] * 3
    events = ",".join(name for name, in gate.Recording(file).sql("SELECT name FROM event"))
    gate.equal(stacks(gate.Recording(file), "--event", events), want,
               "each container with its own program's functions, by the same path")
    gate.equal(stacks(gate.Recording(gate.path("one.db")), "--event", events), {ID: ["by_hand"] * 3},
               "--container when recording")
    gate.equal(stacks(gate.Recording(file), "--event", events, "--container", ID[:5]),
               {ID: ["by_hand"] * 3}, "--container when reporting")
    gate.equal(sum(gate.Recording(file).one("SELECT sum(flags & 1) FROM sample") for _ in "1"),
               3 * len(containers), "all stacks are whole")
    for process, _ in containers:
        process.stdin.close()
        process.wait()


def check_own_namespace():
    """It sees what is in its own PID namespace, by the numbers there."""
    own = scopes.marker()
    outside = scopes.obeying(own, gate.MARKS)
    file = gate.path("inside.db")
    os.mkfifo(gate.path("orders"))
    braid = gate.start("unshare", "--pid", "--mount-proc", "--fork", "--kill-child", "sh", "-c",
                       'LD_PRELOAD="$2" "$1" < "$5" & exec "$0" record -a -e '
                       '"uprobe:$2:braid_marker" --max-overhead none -o "$3"',
                       gate.BRAID, gate.MARKS, own, file, "", gate.path("orders"),
                       stderr=subprocess.PIPE)
    with open(gate.path("orders"), "w", encoding="ascii") as orders:
        gate.wait_line(braid, "ready")
        gate.wait_until(lambda: os.path.exists(file), "the first commit")
        gate.ask(outside, "here 2")
        orders.write("here 3\n")
        orders.flush()
        gate.wait_line(braid, "done")
        with open(f"/proc/{braid.pid}/task/{braid.pid}/children", encoding="ascii") as children:
            os.kill(int(children.read().split()[0]), gate.signal.SIGINT)
        said = braid.stderr.read().decode()
        braid.wait()
    recording = gate.Recording(file)
    gate.equal(scopes.counts(recording), {2: 3}, "in its own PID namespace: by the numbers there", said)
    gate.check_merged("namespace", recording.merged(), gate.HERE, 3)


gate.need_root()
scopes.cgroup_root()
gate.need_program("/usr/bin/gcc")
check_containers()
check_bare()
check_own_namespace()
gate.done()
