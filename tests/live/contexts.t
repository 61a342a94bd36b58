#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Request contexts: each sample of each event has the context that the thread had published, however the
program finds its thread-local variable, and records that are not valid are counted."""

import os
import subprocess
import zlib

import gate

SOURCES = "fixtures/context/"
ROUNDS = 60
LABEL = "LEFT JOIN label ON label.context = sample.context AND label.key = 'http.route' "
ROUTES = ("SELECT event.name, label.value, sum(weight), count(DISTINCT context.trace) FROM sample "
          "JOIN event ON event.id = sample.event "
          f"LEFT JOIN context ON context.id = sample.context {LABEL} GROUP BY 1, 2")


def compile(out, *args, cc="gcc"):
    subprocess.run([cc, "-g", "-O1", "-o", gate.path(out), *args], check=True)


def record(events, *command, options=()):
    """Records a program that waits for its input before it ends. What it says, the recording, what
    braid says."""
    file = gate.path("contexts.db")
    braid = gate.start(gate.BRAID, "record", "-e", events, "--max-overhead", "none", *options, "-o",
                       file, "--force", "--", *command, stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = []
    while not lines or lines[-1].split()[0] not in ("/health", "done"):
        lines.append(gate.line_of(braid))
        if not lines[-1]:
            raise RuntimeError(f"{command}: {lines} {braid.stderr.read().decode()}")
    recording = gate.Recording(file)
    # Names of attributes are read from the process when the first sample is recorded.
    gate.wait_until(lambda: os.path.exists(file) and recording.one("SELECT count(*) FROM label"),
                    "the first attributes")
    braid.stdin.close()
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{command[0]}: recorded", said)
    return lines, recording, said


def check_model(name, program, *args, missing):
    """@missing: the first requests may precede the discovery of the variable."""
    lines, recording, _ = record(f"uprobe:{program}:handle,uprobe:{program}:idle", program, ROUNDS,
                                 *args, options=("-c", "1"))
    want = {route: int(n) for route, n in map(str.split, lines)}
    rows = recording.sql(ROUTES)
    got = {route: n for event, route, n, _ in rows if event.endswith("handle") and route}
    without = sum(n for event, route, n, _ in rows if event.endswith("handle") and not route)
    traces = sum(n for event, route, _, n in rows if event.endswith("handle"))
    idle = [(route, n) for event, route, n, _ in rows if event.endswith("idle")]
    if missing:
        gate.ok(set(got) <= set(want) and sum(got.values()) + without == sum(want.values()) and
                all(n <= want[route] for route, n in got.items()) and got,
                f"{name}: routes as the program counts them, but for the first ones", rows)
    else:
        gate.equal(got, want, f"{name}: as many requests of each route as the program counts")
    gate.equal(traces, sum(got.values()), f"{name}: each with a trace id of its own")
    gate.equal(idle, [(None, 2 * ROUNDS)], f"{name}: and none outside of requests")


def check_models():
    static = [SOURCES + "requests.c", SOURCES + "writer.c"]
    export = "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1"
    compile("exec", *static, export)
    check_model("local exec", gate.path("exec"), missing=False)
    dialects = {"descriptor": "-mtls-dialect=gnu2", "general": "-mtls-dialect=gnu",
                "initial": "-ftls-model=initial-exec"}
    # The program's own copy of the writer makes records only.
    compile("loads", *static, "-DLOADED", "-Dotel_thread_ctx_v1=unused", "-ldl")
    for name, option in dialects.items():
        library = gate.path(f"lib{name}.so")
        compile(f"lib{name}.so", "-shared", "-fPIC", option, SOURCES + "writer.c")
        compile(f"links-{name}", SOURCES + "requests.c", library)
        check_model(f"{name}, linked", gate.path(f"links-{name}"), missing=True)
        check_model(f"{name}, loaded", gate.path("loads"), library, missing=True)


def check_musl():
    if not os.path.exists("/usr/bin/musl-gcc"):
        gate.skip("musl", "no musl-gcc")
        return
    compile("libmusl.so", "-shared", "-fPIC", SOURCES + "writer.c", cc="musl-gcc")
    compile("musl", SOURCES + "requests.c", gate.path("libmusl.so"), cc="musl-gcc")
    check_model("musl, linked", gate.path("musl"), missing=True)
    compile("musl-loads", SOURCES + "requests.c", SOURCES + "writer.c", "-DLOADED",
            "-Dotel_thread_ctx_v1=unused", cc="musl-gcc")
    check_model("musl, loaded", gate.path("musl-loads"), gate.path("libmusl.so"), missing=True)


def check_events():
    """A sample has a context if and only if its thread was in handle(), between the two calls that
    attach and detach the context."""
    lines, recording, said = record("cpu,off-cpu,syscall:getppid,syscall:clock_nanosleep,"
                                    f"faults,uprobe:{gate.path('exec')}:handle",
                                    gate.path("exec"), ROUNDS, options=("-c", "1"))
    want = {route: int(n) for route, n in map(str.split, lines)}
    handled = recording.sql(
        "SELECT event.name, sample.context IS NOT NULL, count(*) FROM sample "
        "JOIN event ON event.id = sample.event WHERE native IN "
        "(SELECT leaf FROM stack WHERE function = 'handle') GROUP BY 1, 2")
    gate.equal([row for row in handled if not row[1]], [],
               "each sample in a request has its context, of whatever event", handled, said)
    gate.equal({name for name, _, _ in handled} >= {"off-cpu", "syscall:getppid",
                                                    "syscall:clock_nanosleep"}, True,
               "and there are some of these events", handled)
    for event in "syscall:getppid", "syscall:clock_nanosleep":
        rows = recording.sql(f"SELECT label.value, count(*) FROM sample {LABEL} JOIN event ON "
                             "event.id = sample.event WHERE event.name = ? AND label.value NOT NULL "
                             "GROUP BY 1", event)
        gate.equal(dict(rows), want, f"{event}: as many as the program made in each route")
    result = gate.braid("report", "--event", "syscall:getppid", "--by", "label:http.route",
                        "--format", "json", recording.file)
    gate.equal(result.status, 0, "report --by label:http.route", result.err)
    for route, n in want.items():
        gate.ok(f'"{route}"' in result.out, f"it has {route}", result.out[:1000])
    attributes = recording.sql("SELECT key, value FROM attribute ORDER BY 1")
    gate.equal(attributes, [("service.instance.id", "a-1"), ("service.name", "shop"),
                            ("service.version", "1.2")], "the attributes of the service")
    result = gate.braid("report", "--event", "syscall:getppid", "--by", "service", recording.file)
    gate.matches(r"service +shop", result.out, "report --by service")
    check_where(recording, want)
    check_spans(recording, want)
    for form, label in ("otlp", b"service.name"), ("pprof", b"service"):
        file = gate.path(form)
        gate.braid("report", "--format", form, "-o", file, recording.file)
        with open(file, "rb") as out:
            content = out.read()
        content = zlib.decompress(content, 31) if content[:2] == b"\x1f\x8b" else content
        gate.ok(label in content and b"shop" in content, f"{form} has the service")


def check_where(recording, want):
    """The samples that --where selects, by their number."""
    def total(expression):
        result = gate.braid("report", "--event", "syscall:getppid", "--where", expression,
                            recording.file)
        found = gate.re.search(r"^event .* in (\d+) samples?", result.out, gate.re.M)
        return int(found.group(1)) if found else result

    orders, items, health = (want[route] for route in ("/orders", "/items", "/health"))
    trace, span = recording.sql("SELECT trace, span FROM context LIMIT 1")[0]
    for expression, n in (
            ("label.http.route = /orders", orders),
            ("label.http.route != '/orders'", 2 * items + 2 * health + orders),
            ("label.http.route ~ '^/(i|h)' and label.http.request.method = GET", items + health),
            ("not (label.http.route = /items or label.http.route = /health) and trace ~ .", orders),
            (f"trace = {trace} and span = {span}", 1), ("trace = ''", orders + items + health),
            ("service = shop and tid != 0 and time <= now", 2 * (orders + items + health)),
            ("service = other or process = other or label.none ~ .", 0)):
        gate.equal(total(expression), n, f"--where {expression}")


def check_spans(recording, want):
    event = f"uprobe:{gate.path('exec')}:handle"
    result = gate.braid("report", "--event", event, "--spans", "--by", "label:http.route",
                        recording.file)
    rows = gate.re.findall(r"^ +(\d+) +[\d.]+%  (\S+)\n +(\d+) 100.0%    handle ",
                           result.out, gate.re.M)
    gate.equal(sorted(rows), sorted((str(n), route, str(n)) for route, n in want.items()),
               "report --spans: each route, and the function", result)
    result = gate.braid("report", "--event", event, "--spans", "--rows", "all", recording.file)
    trace, span = recording.sql("SELECT trace, span FROM context WHERE id = (SELECT context FROM label "
                                "WHERE value = '/items' LIMIT 1)")[0]
    gate.equal(len(gate.re.findall(r"^ +1 +0\.8%  [0-9a-f]{16} ", result.out, gate.re.M)),
               sum(want.values()), "each request is one row", result)
    gate.matches(rf"(?m)  {span} http.request.method=GET, http.route=/items, trace {trace}$", result.out,
                 "with its span, attributes and trace")
    result = gate.braid("report", "--event", event, "--spans", "--by", "process", recording.file)
    gate.ok(result.status == 2 and "--by request" in result.err, "--spans --by process", result)


def check_bytes():
    lines, recording, said = record("alloc:malloc", gate.path("exec"), ROUNDS, options=("-c", "1"))
    want = {route: int(n) for route, n in map(str.split, lines)}
    rows = recording.sql(f"SELECT label.value, sum(total) FROM sample {LABEL} JOIN event ON "
                         "event.id = sample.event WHERE event.name LIKE 'alloc%' AND label.value NOT NULL "
                         "GROUP BY 1")
    gate.equal(dict(rows), {route: (1 + i) * 1000 * want[route] for i, route in
                            enumerate(("/orders", "/items", "/health"))},
               "alloc: the bytes of each route", said)


def check_invalid():
    compile("invalid", SOURCES + "invalid.c", SOURCES + "writer.c",
            "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1")
    names = ("valid detached reserved unmapped page_end attributes_unmapped attributes_long "
             "attributes_endless incomplete unknown_key control empty").split()
    program = gate.path("invalid")
    _, recording, said = record(",".join(f"uprobe:{program}:{name}" for name in names), program, 10,
                                options=("-c", "1"))
    rows = {name.rpartition(":")[2]: (n, trace and int(trace, 16), label) for name, n, trace, label
            in recording.sql(f"SELECT event.name, count(*), context.trace, label.value FROM sample "
                             f"JOIN event ON event.id = sample.event LEFT JOIN context ON context.id = "
                             f"sample.context {LABEL} GROUP BY 1, 3, 4")}
    gate.equal(rows, {
        "valid": (10, 1, "/valid"), "detached": (10, None, None), "reserved": (10, None, None),
        "unmapped": (10, None, None), "page_end": (10, 2, None),
        "attributes_unmapped": (10, None, None), "attributes_long": (10, 3, "/l"),
        "attributes_endless": (10, 3, "/l"), "incomplete": (10, 4, "/whole"),
        "unknown_key": (10, 5, "/known"), "control": (10, 6, "/?[2J?"),
        "empty": (10, None, None)}, "invalid records: what is valid of them", said)
    counters = {name: n for name, n in recording.counters().items() if "request context" in name}
    gate.equal(counters, {
        "request contexts missing: record invalid": 10,
        "request contexts missing: not readable": 20,
        "request contexts cut: attributes of more bytes than are read": 20,
        "request contexts cut: incomplete attribute": 10}, "and each is counted by its cause")


check_models()
check_musl()
check_events()
check_bytes()
check_invalid()
gate.done()
