# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in Java, with the C functions behind a native method (JNI).
TRUTH_JAVA="8 11": JDKs of these versions, those of the test roots (scripts/test-roots) included,
each with all options; else the machine's own JDKs take turns."""

import atexit
import glob
import os
import re
import shutil
import subprocess
import tempfile

import truth_graph
from javas import CHROOT
from pythons import roots_directory
from truth_graph import ANY

NAME = "Java"
EDGES = {
    "ss": {"call": (), "run": ("K_{n}.run",), "compare": ("K_{n}.compare", ANY),
           "init": ("K_{n}.<init>",), "virtual": ("K_{n}.go",), "interface": ("K_{n}.get", ANY),
           "synchronized": ("K_{n}.locked",), "finally": (), "reflect": (ANY,),
           "string": ("K_{n}.toString", ANY), "iterate": ("K_{n}.next",), "each": ("K_{n}.accept", ANY),
           "caught": ("K_{n}.fail",)},
    "sc": {"native": ("enter_c", "enter_method", "T.enter", ANY)},
    "cs": {"static": (ANY, "back_static"), "virtual": ("T.go", ANY, "back_virtual")},
}
ROOT = ("T.loop", ANY)
RECURSION = ()
ENDS = r"_*clone3?"
GLUE = """
#include <jni.h>
#include <stdio.h>
static __thread JNIEnv *env;
static jclass owner;
static jmethodID methods[1000], go;
FUNCTION void back_static(int number, int depth)
{ char name[16]; snprintf(name, sizeof(name), "s%d", number);
  if (!methods[number]) methods[number] = (*env)->GetStaticMethodID(env, owner, name, "(I)V");
  (*env)->CallStaticVoidMethod(env, owner, methods[number], (jint)depth); work(40); }
FUNCTION void back_virtual(int number, int depth)
{ jobject object = (*env)->AllocObject(env, owner);
  if (!go) go = (*env)->GetMethodID(env, owner, "go", "(II)V");
  (*env)->CallVoidMethod(env, object, go, (jint)number, (jint)depth);
  (*env)->DeleteLocalRef(env, object); work(40); }
FUNCTION void enter_method(JNIEnv *given, jclass class, jint number)
{ JNIEnv *before = env; env = given; if (!owner) owner = (*env)->NewGlobalRef(env, class);
  enter_c(number); env = before; }
JNIEXPORT jint JNI_OnLoad(JavaVM *vm, void *unused);
JNIEXPORT jint JNI_OnLoad(JavaVM *vm, void *unused)
{ JNINativeMethod method = { "enter", "(I)V", (void *)enter_method }; JNIEnv *given; (void)unused;
  (*vm)->GetEnv(vm, (void **)&given, JNI_VERSION_1_8);
  (*given)->RegisterNatives(given, (*given)->FindClass(given, "T"), &method, 1);
  return JNI_VERSION_1_8; }
"""
C_CALLS = {via: f"back_{via}({{n}}, {{depth}});" for via in EDGES["cs"]}
CALLS = {
    "call": "s{n}({depth});", "run": "new K_{n}().run();",
    "compare": "Arrays.sort(new Integer[] {{ 2, 1 }}, new K_{n}());", "init": "new K_{n}();",
    "virtual": "((Base)K_{n}.it).go();", "interface": "x += (Integer)((Supplier)K_{n}.it).get();",
    "synchronized": "K_{n}.it.locked();", "finally": "try {{ x++; }} finally {{ s{n}({depth}); }}",
    "reflect": "try {{ T.class.getDeclaredMethod(\"s{n}\", int.class).invoke(null, {depth}); }} "
               "catch (ReflectiveOperationException e) {{ System.exit(1); }}",
    "string": "x += String.valueOf((Object)K_{n}.it).length();",
    "iterate": "for (Object i : new K_{n}()) x++;", "each": "Collections.singletonList(1).forEach(new K_{n}());",
    "caught": "try {{ K_{n}.fail(); }} catch (IllegalStateException e) {{ x++; }}",
    "native": "enter({n});",
}
RUN = "T.s{n}({depth}); x++;"
ENTRIES = {
    "run": ("implements Runnable", f"public void run() {{{{ {RUN} }}}}"),
    "compare": ("implements Comparator",
                f"public int compare(Object a, Object b) {{{{ {RUN} return (Integer)a - (Integer)b; }}}}"),
    "init": ("", f"K_{{n}}() {{{{ {RUN} }}}}"), "virtual": ("extends Base", f"void go() {{{{ {RUN} }}}}"),
    "interface": ("implements Supplier", f"public Object get() {{{{ {RUN} return 1; }}}}"),
    "synchronized": ("", f"synchronized void locked() {{{{ {RUN} }}}}"),
    "string": ("", f"public String toString() {{{{ {RUN} return \"ab\"; }}}}"),
    "iterate": ("implements Iterable, Iterator",
                "int n; public Iterator iterator() {{ return this; }} public boolean hasNext() "
                f"{{{{ return n < 1; }}}} public Object next() {{{{ n++; {RUN} return 1; }}}}"),
    "each": ("implements Consumer", f"public void accept(Object o) {{{{ {RUN} }}}}"),
    "caught": ("", f"static void fail() {{{{ int x = 0; {RUN} throw new IllegalStateException(); }}}}"),
}
# Options of the JVM, one after the other with the compilers of C. Between two safepoints HotSpot
# records only nearby what was inlined there (docs/runtimes/jvm.md): wrong ones are marked.
OPTIONS = (["-Xint"], ["-XX:-Inline"], ["-XX:TieredStopAtLevel=1", "-XX:-Inline"],
           ["-XX:-TieredCompilation", "-XX:-Inline"], ["-XX:TieredStopAtLevel=1"],
           ["-XX:-TieredCompilation"], [],
           ["-XX:-TieredCompilation", "-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"])
COMPILERS = (("gcc", "-O0", "-w"), ("gcc", "-O2", "-w"), ("clang", "-O2", "-w"), ("gcc", "-Os", "-w"),
             ("gcc", "-O2", "-w"), ("gcc", "-O2", "-w"), ("clang", "-O2", "-w"), ("gcc", "-O2", "-w"))


def _entry(via, number, depth):
    if via not in ENTRIES:
        return ""
    more, body = ENTRIES[via]
    instance = "" if via in ("init", "caught") else f"static final K_{number} it = new K_{number}();"
    return (f"class K_{number} {more} {{ int x; {instance} " + body.format(n=number, depth=depth) + " }")


def _function(number, nodes):
    node = nodes[number]
    lines = [f"static void s{number}(int depth) {{ int x = depth;",
             "for (int i = 0; i < 90; i++) { sink += i * i; }"]
    if node.repeats > 1:
        lines.append(f"if (depth > 0) s{number}(depth - 1); else {{")
    for child in node.children:
        lines.append(CALLS[nodes[child].via].format(n=child, depth=nodes[child].repeats - 1))
    lines.append("}" * (node.repeats > 1) + " for (int i = 0; i < 50; i++) { sink -= i; } sink += x; }")
    return "\n".join(lines)


def homes():
    """The machine's own JDKs."""
    found = {os.path.dirname(os.path.dirname(os.path.realpath(java)))
             for java in (shutil.which("java") or "", *glob.glob("/usr/lib/jvm/*/bin/java")) if java}
    return sorted(home for home in found if os.path.exists(f"{home}/include/jni.h") and
                  os.path.exists(f"{home}/bin/javac"))


def chosen():
    """[(version, root, home in it)] of TRUTH_JAVA; JVMs without a compiler are enough."""
    found = {}
    for root in ["", *sorted(glob.glob(roots_directory() + "/*"))]:
        for home in sorted(glob.glob(root + "/usr/lib/jvm/*")):
            version = re.search(r"(?:java|temurin)-(\d+)-", home)
            if version and not os.path.islink(home) and os.path.exists(home + "/bin/java"):
                found.setdefault(version[1], (version[1], root, home[len(root):]))
    return [found[version] for version in CHOSEN if version in found]


CHOSEN = os.environ.get("TRUTH_JAVA", "").split()
JAVAS = chosen() if CHOSEN else [("", "", home) for home in homes()]
if CHOSEN:
    COMPILERS, OPTIONS = COMPILERS * len(JAVAS), OPTIONS * len(JAVAS)


def _java(at):
    return JAVAS[at // (len(OPTIONS) // len(JAVAS)) if CHOSEN else at % len(JAVAS)]


def label(at):
    """What the table has of the program beside its options."""
    return f"JDK {_java(at)[0]}" if CHOSEN else ""


def missing():
    if CHOSEN and len(JAVAS) < len(CHOSEN):
        return f"one of the JDKs {' '.join(CHOSEN)}"
    return None if JAVAS and homes() else "a JDK"


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    at = int(place.rpartition("-")[2])
    _, root, java = _java(at)
    home = homes()[0] if root or CHOSEN else java
    if root:
        place = tempfile.mkdtemp(prefix="braid-truth-", dir=root + "/tmp")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
        os.chmod(place, 0o755)
    inside = place[len(root):]
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    subprocess.run([*compiler, f"-I{home}/include", f"-I{home}/include/linux", "-shared", "-fPIC",
                    f"{place}/lib.c", "-o", f"{place}/libtruth.so"], check=True)
    functions = [number for number, node in nodes.items() if node.letter == "s"]
    cases = " ".join(f"case {number}: s{number}(depth); break;" for number in functions)
    entries = [_entry(node.via, number, node.repeats - 1) for number, node in nodes.items()
               if node.parent is not None and nodes[node.parent].letter == "s" and node.letter == "s"]
    text = ["import java.util.*; import java.util.function.*;",
            "class Base { void go() { } }", *entries, "class T { static volatile int sink;",
            "static native void enter(int n);",
            f"void go(int n, int depth) {{ switch (n) {{ {cases} }} sink++; }}",
            *(_function(number, nodes) for number in functions),
            "static void loop() { while (true) s0(0); }",
            f"public static void main(String[] words) {{ System.load(\"{inside}/libtruth.so\");",
            "new Thread(T::loop).start(); System.out.println(\"READY\"); loop(); } }", ""]
    with open(f"{place}/T.java", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    subprocess.run([f"{home}/bin/javac", "--release", "8", "-nowarn", "-Xlint:none", "-d", place,
                    f"{place}/T.java"], check=True, stderr=subprocess.DEVNULL)
    return [*([*CHROOT, root] if root else []), f"{java}/bin/java", *OPTIONS[at % len(OPTIONS)], "-Xmx256m",
            "-cp", inside, "T"]


def normal(name):
    return name.removeprefix("T.") if name.startswith("T.s") else name
