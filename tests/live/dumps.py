# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of `braid dump` share: a dump as its JSON says it."""

import json

import gate


class Thread:
    def __init__(self, said):
        self.__dict__.update(said)
        self.said = said

    def functions(self, *kinds):
        return [frame["function"] for frame in self.frames if frame["kind"] in kinds]

    def places(self, kind):
        """[[function, file, line]] of a runtime's frames."""
        return [[frame["function"], frame.get("file"), frame.get("line")]
                for frame in self.frames if frame["kind"] == kind]

    def stands_to(self):
        """(relation, what, holder); None: nothing is known."""
        lock = self.said.get("lock")
        return lock and (lock["relation"], lock["what"], lock.get("holder"))

    def call(self):
        return self.said.get("syscall", {}).get("name")


class Dump:
    def __init__(self, result):
        self.result = result
        self.processes = json.loads(result.out)["processes"] if result.out else []
        self.tasks = [Thread(task) for process in self.processes for task in process.get("tasks", [])]
        self.threads = {thread["tid"]: Thread(thread)
                        for process in self.processes for thread in process["threads"]}

    def called(self, name):
        """The only thread of that name."""
        found = [thread for thread in self.threads.values() if thread.name == name]
        if len(found) != 1:
            raise RuntimeError(f"{len(found)} threads are called {name}: {self.result}")
        return found[0]


def dump(*args, **options):
    return Dump(gate.braid("dump", "--json", *args, **options))


def stands(pid, tid):
    """Until the thread is off the CPU."""
    def is_off():
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            return file.read() != "running\n"
    gate.wait_until(is_off, "the wait")


def check_stack(name, got, want):
    gate.ok(got == want, name, *(f"got {frame}" for frame in got), *(f"want {frame}" for frame in want))
