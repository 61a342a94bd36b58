// SPDX-License-Identifier: GPL-2.0-or-later
/* helper_cost [-r RUNS]: what the parts of a probe program cost here, in ns: each is repeated in a
 * BPF program of its own, less what that program costs without it. Nothing is attached. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "core/util.h"

#define REPEATS	  64
#define INSNS_MAX 2048
#define RUNS_MAX  1000

/* linux/bpf.h has the parts of instructions only. */
#define INSN(op, to, from, offset, number) \
	((struct bpf_insn) { op, (to)&15, (from)&15, offset, number })
#define MOVE(to, from)	    INSN(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0)
#define SET(to, number)	    INSN(BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number)
#define ADD(to, number)	    INSN(BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, number)
#define SUBTRACT(to, from)  INSN(BPF_ALU64 | BPF_SUB | BPF_X, to, from, 0, 0)
#define HELPER(number)	    INSN(BPF_JMP | BPF_CALL, 0, 0, 0, number)
#define EXIT		    INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)
#define STORE(offset, from) INSN(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, from, offset, 0)
#define ATOMIC_ADD(offset, from) \
	INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_10, from, offset, BPF_ADD)

struct code {
	struct bpf_insn insns[INSNS_MAX];
	int n;
	int map;
};

static char text[256] = "a class's name";

static void add(struct code *code, struct bpf_insn insn)
{
	code->insns[code->n++] = insn;
}

/* Two instructions: a constant of 64 bits, or a map. */
static void add_wide(struct code *code, int to, int kind, uint64_t value)
{
	add(code, INSN(BPF_LD | BPF_IMM | BPF_DW, to, kind, 0, (int)value));
	add(code, INSN(0, 0, 0, 0, kind ? 0 : (int)(value >> 32)));
}

/* --- the parts --- */

static void part_nothing(struct code *code)
{
	(void)code;
}

static void part_task(struct code *code)
{
	add(code, HELPER(BPF_FUNC_get_current_task_btf));
}

static void part_pid(struct code *code)
{
	add(code, HELPER(BPF_FUNC_get_current_pid_tgid));
}

static void part_clock(struct code *code)
{
	add(code, HELPER(BPF_FUNC_ktime_get_ns));
}

static void part_jiffies(struct code *code)
{
	add(code, HELPER(BPF_FUNC_jiffies64));
}

static void part_lookup(struct code *code)
{
	add_wide(code, BPF_REG_1, BPF_PSEUDO_MAP_FD, code->map);
	add(code, MOVE(BPF_REG_2, BPF_REG_10));
	add(code, ADD(BPF_REG_2, -8));
	add(code, HELPER(BPF_FUNC_map_lookup_elem));
}

static void part_atomic(struct code *code)
{
	add(code, ATOMIC_ADD(-16, BPF_REG_6));
}

/* A function behind the program's end; main sets where. */
static void part_call(struct code *code)
{
	add(code, INSN(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL, 0, 0));
}

static void add_read(struct code *code, int bytes, int helper)
{
	add(code, MOVE(BPF_REG_1, BPF_REG_10));
	add(code, ADD(BPF_REG_1, -256));
	add(code, SET(BPF_REG_2, bytes));
	add_wide(code, BPF_REG_3, 0, (uintptr_t)text);
	add(code, HELPER(helper));
}

static void part_read_8(struct code *code)
{
	add_read(code, 8, BPF_FUNC_probe_read_user);
}

static void part_read_32(struct code *code)
{
	add_read(code, 32, BPF_FUNC_probe_read_user);
}

static void part_read_128(struct code *code)
{
	add_read(code, 128, BPF_FUNC_probe_read_user);
}

static void part_read_text(struct code *code)
{
	add_read(code, 128, BPF_FUNC_probe_read_user_str);
}

static const struct {
	const char *name;
	void (*add)(struct code *code);
} parts[] = {
	{ "nothing", part_nothing },
	{ "bpf_get_current_task_btf", part_task },
	{ "bpf_get_current_pid_tgid", part_pid },
	{ "bpf_ktime_get_ns", part_clock },
	{ "bpf_jiffies64", part_jiffies },
	{ "look-up in an array", part_lookup },
	{ "atomic addition", part_atomic },
	{ "call of a BPF function", part_call },
	{ "bpf_probe_read_user, 8 bytes", part_read_8 },
	{ "bpf_probe_read_user, 32 bytes", part_read_32 },
	{ "bpf_probe_read_user, 128 bytes", part_read_128 },
	{ "bpf_probe_read_user_str, 15 of 128 bytes", part_read_text },
};

/* --- measuring --- */

/* The program: the time that `REPEATS` of the part take. */
static int load(size_t part, int map)
{
	static char log[65536];
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .log_buf = log, .log_size = sizeof(log));
	struct code code = { .map = map };
	int fd;

	add(&code, SET(BPF_REG_6, 1));
	for (int offset = -256; offset < 0; offset += 8)
		add(&code, STORE(offset, BPF_REG_6));
	add(&code, HELPER(BPF_FUNC_ktime_get_ns));
	add(&code, MOVE(BPF_REG_7, BPF_REG_0));
	for (int i = 0; i < REPEATS; i++)
		parts[part].add(&code);
	add(&code, HELPER(BPF_FUNC_ktime_get_ns));
	add(&code, SUBTRACT(BPF_REG_0, BPF_REG_7));
	add(&code, EXIT);
	for (int i = 0; i < code.n; i++)
		if (code.insns[i].code == (BPF_JMP | BPF_CALL) &&
		    code.insns[i].src_reg == BPF_PSEUDO_CALL)
			code.insns[i].imm = code.n - i - 1;
	if (parts[part].add == part_call) {
		add(&code, SET(BPF_REG_0, 0));
		add(&code, EXIT);
	}
	fd = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, NULL, "GPL", code.insns, code.n, &opts);
	if (fd < 0)
		fprintf(stderr, "helper_cost: %s: %s\n%s", parts[part].name, strerror(errno), log);
	return fd;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	static double ns[ARRAY_SIZE(parts)][RUNS_MAX];
	int fds[ARRAY_SIZE(parts)], n_runs = 200, opt;
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 4096, 64, NULL);

	while ((opt = getopt(argc, argv, "r:")) > 0)
		if (opt == 'r')
			n_runs = max_of(min_of(atoi(optarg), RUNS_MAX), 1);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		fds[i] = load(i, map);
		if (fds[i] < 0)
			return 1;
	}
	for (int run = 0; run < n_runs; run++) {
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
			LIBBPF_OPTS(bpf_test_run_opts, opts);

			if (bpf_prog_test_run_opts(fds[i], &opts)) {
				perror("helper_cost");
				return 1;
			}
			ns[i][run] = opts.retval;
		}
	}
	printf("%-42s %8s %8s\n", "ns each", "best", "median");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		qsort(ns[i], n_runs, sizeof(**ns), compare);
	for (size_t i = 1; i < ARRAY_SIZE(parts); i++)
		printf("%-42s %8.1f %8.1f\n", parts[i].name, (ns[i][0] - ns[0][0]) / REPEATS,
		       (ns[i][n_runs / 2] - ns[0][n_runs / 2]) / REPEATS);
	return 0;
}
