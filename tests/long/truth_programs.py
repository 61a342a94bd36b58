# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs whose every stack is known: generated calls form a tree, so that a function's name says
which functions have called it. Function number N is called tN; t0 is the root of a thread's stack.
Beside the plain calls of the tree there are roots of their own: what a signal handler calls, and what
a coroutine runs. A tree is {number: Node}; `check.Truth` (truth.t) compares stacks with it."""

import collections
import random

# How a function is reached from its parent:
#   call     by a plain call
#   sort     as the comparison of qsort(3): libc's frames are between
#   jit      by code in anonymous memory, which is one frame without a name
#   signal   as a signal handler: whatever was interrupted comes outside
#   switch   as the first function of a coroutine's stack
Node = collections.namedtuple("Node", "parent via repeats style place")

STYLES = ("plain", "array", "alloca", "many", "structure", "aligned", "table", "fatal", "double")
PLACES = ("a", "b", "lib")  # b: without call frame information, where the configuration says so
JIT_CODE = {  # each calls rdi, and no table describes it
    "frame pointer": "55 48 89 e5 ff d7 5d c3",
    "rsp only": "48 83 ec 28 ff d7 48 83 c4 28 c3",
    "saved registers": "53 41 54 48 83 ec 08 ff d7 48 83 c4 08 41 5c 5b c3",
    "rbp as a number": "55 bd 40 9c 00 00 ff d7 5d c3",
    "realigned": "55 48 89 e5 48 83 e4 c0 48 83 ec 40 ff d7 c9 c3",
}


def tree(seed, n, special=True):
    """`special`: also what is not a plain call."""
    rng = random.Random(seed)
    nodes = {0: Node(None, "root", 1, "plain", "a")}
    depth = {0: 0}
    kinds = ["call"] * 12 + (["sort", "jit"] if special else [])
    for number in range(1, n):
        parent = rng.choice([k for k in nodes if depth[k] < 14][-12:])
        nodes[number] = Node(parent, rng.choice(kinds), rng.choice((1, 1, 1, 1, 2, 7)),
                             rng.choice(STYLES), rng.choice(PLACES))
        depth[number] = depth[parent] + 1
    for i, via in enumerate(("signal", "switch", "switch") if special else ()):
        root = n + 3 * i
        nodes[root] = Node(None, via, 1, "plain", "a")
        nodes[root + 1] = Node(root, "call", 1, rng.choice(STYLES), "a")
        nodes[root + 2] = Node(root + 1, "call", 2, rng.choice(STYLES), "b")
    return nodes


BODY = {  # before and after the calls; both keep the calls from being the last thing
    "plain": ("work(9);", "work(5);"),
    "array": ("volatile char local[600]; local[depth & 255] = 1; work(4);", "sink[1] += local[7];"),
    "alloca": ("volatile char *local = __builtin_alloca(16 + (sink[2] & 63)); local[3] = 1; work(6);",
               "sink[1] += local[3];"),
    "many": ("sink[3] += many(1, 2, 3, 4, 5, 6, 7, depth, 9, 10);", "work(3);"),
    "structure": ("struct big local = structure(depth); sink[3] += local.words[5];",
                  "sink[4] += local.words[depth & 7];"),
    "aligned": ("volatile char local[64] __attribute__((aligned(64))); local[depth & 63] = 1; work(3);",
                "sink[4] += local[9];"),
    "table": ("switch (sink[5]++ & 7) { case 0: work(1); break; case 1: work(2); break; "
              "case 2: sink[6]++; break; case 3: work(5); break; case 4: sink[7] ^= 3; break; "
              "case 5: work(4); break; default: sink[1]--; }", "work(2);"),
    "fatal": ("if (never) fatal(depth); work(3);", "if (never) fatal(2 * depth); sink[2]++;"),
    "double": ("volatile double x = depth + 0.5; for (int i = 0; i < 9; i++) x = x * 1.5 - i;",
               "sink[3] += x > 3;"),
}

HEAD = """
#include <stdlib.h>
#define FUNCTION __attribute__((noinline, visibility("default") NOIPA))
#ifdef __clang__
#define NOIPA
#else
#define NOIPA , noipa
#endif
struct big { long words[16]; };
extern volatile long sink[8];
extern volatile int never;
void fatal(int) __attribute__((noreturn));
long many(long, long, long, long, long, long, long, long, long, long);
struct big structure(int);
void by_jit(int style, void (*call)(void));
static inline __attribute__((always_inline)) void work(int n) { for (int i = 0; i < n; i++) sink[i & 7] += i; }
"""

# What the tree rests on. Coroutines: two ways to switch, one of libc's and one of its own.
MAIN = """
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
volatile long sink[8];
volatile int never;
static unsigned char *code;
static const struct { unsigned char bytes[32]; } styles[] = { %(styles)s };
void fatal(int n) { _exit(n); }
FUNCTION long many(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{ return a + b * c - d + e + f + g * h + i + j; }
FUNCTION struct big structure(int n)
{ struct big made; for (int i = 0; i < 16; i++) made.words[i] = n + i; return made; }
FUNCTION void by_jit(int style, void (*call)(void))
{ ((void (*)(void (*)(void)))(code + 64 * style))(call); sink[0]++; }
static void on_signal(int number) { (void)number; t%(signal)d(0); sink[1]++; }

static __thread ucontext_t outside, inside;
static void in_context(void) { for (;;) { t%(context)d(0); swapcontext(&inside, &outside); } }

void switch_to(void **from, void *to);
__asm__(".text\\n.globl switch_to\\n.type switch_to,@function\\nswitch_to:\\n"
	"push %%rbp\\npush %%rbx\\npush %%r12\\npush %%r13\\npush %%r14\\npush %%r15\\n"
	"mov %%rsp,(%%rdi)\\nmov %%rsi,%%rsp\\n"
	"pop %%r15\\npop %%r14\\npop %%r13\\npop %%r12\\npop %%rbx\\npop %%rbp\\nret\\n"
	".size switch_to,.-switch_to");
static __thread void *own_outside, *own_inside;
static void in_own(void) { for (;;) { t%(own)d(0); switch_to(&own_inside, own_outside); } }

static void *stack_of(size_t bytes)
{ return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void make_coroutines(void)
{
	void **top = (void **)((char *)stack_of(65536) + 65536 - 8); /* as at a call */
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack_of(65536);
	inside.uc_stack.ss_size = 65536;
	makecontext(&inside, in_context, 0);
	*--top = (void *)in_own;
	own_inside = top - 6;
}

static void *run(void *arg)
{
	long n = (long)arg;
	stack_t alternate = { .ss_sp = stack_of(65536), .ss_size = 65536 };
	sigaltstack(&alternate, NULL);
	make_coroutines();
	for (long i = 0; i < n; i++) {
		t0(0);
		swapcontext(&outside, &inside);
		switch_to(&own_outside, own_inside);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval every = { { 0, 300 }, { 0, 300 } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART | %(altstack)s };
	long n = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread;
	code = stack_of(4096);
	for (size_t i = 0; i < sizeof(styles) / sizeof(*styles); i++)
		memcpy(code + 64 * i, styles[i].bytes, 32);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	pthread_create(&thread, NULL, run, (void *)n);
	run((void *)n);
	pthread_join(thread, NULL);
	return 0;
}
"""


def _call(number, node):
    if node.via == "sort":
        return f"sort_{number}();"
    if node.via == "jit":
        return f"by_jit({number % len(JIT_CODE)}, jit_{number});"
    return f"t{number}({node.repeats - 1});"


def _function(number, nodes):
    """A function that is repeated calls itself so often before its children."""
    node = nodes[number]
    children = [k for k, other in nodes.items() if other.parent == number]
    before, after = BODY[node.style]
    calls = " ".join(_call(k, nodes[k]) for k in children)
    again = f"if (depth) t{number}(depth - 1); else {{ {calls} }}" if node.repeats > 1 else calls
    return f"FUNCTION void t{number}(int depth)\n{{ {before} {again} {after} work(2); }}\n"


def _entry(number, node):
    """Where a function is called by what knows nothing of its argument."""
    first = f"t{number}({node.repeats - 1});"
    if node.via == "jit":
        return f"static void jit_{number}(void) {{ {first} sink[2]++; }}\n"
    if node.via == "sort":
        return (f"static int compare_{number}(const void *a, const void *b)\n"
                f"{{ {first} return *(const int *)a - *(const int *)b; }}\n"
                f"static void sort_{number}(void)\n"
                f"{{ int list[2] = {{ 2, 1 }}; qsort(list, 2, sizeof(int), compare_{number}); "
                "sink[0] += list[0]; }\n")
    return ""


def sources(nodes, altstack=False):
    """{place: C source}; a's has main."""
    declared = "".join(f"void t{number}(int);\n" for number in nodes)
    made = {place: HEAD + declared for place in PLACES}
    roots = {node.via: number for number, node in nodes.items() if node.parent is None}
    switches = [number for number, node in nodes.items() if node.via == "switch"]
    for number, node in nodes.items():
        if node.parent is not None:
            made[nodes[node.parent].place] += _entry(number, node)
    for number, node in nodes.items():
        made[node.place] += _function(number, nodes)
    styles = ", ".join("{ { " + ", ".join(f"0x{byte}" for byte in code.split()) + " } }"
                       for code in JIT_CODE.values())
    made["a"] = "#define _GNU_SOURCE\n" + made["a"] + MAIN.replace("#define _GNU_SOURCE\n", "") % {
        "styles": styles, "signal": roots["signal"], "context": switches[0], "own": switches[1],
        "altstack": "SA_ONSTACK" if altstack else "0"}
    return made
