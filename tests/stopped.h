/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_STOPPED_H
#define BRAID_TESTS_STOPPED_H

/* For tests: a stopped process that this one traces. It is unwound from a copy of its registers and
 * its stack, and by libdwfl, which reads the process itself. */

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "core/base/util.h"
#include "core/copy/unwind_copy.h"
#include "tests/tap.h"

#define FRAMES_MAX 1024
#define MAPS_MAX   256
#define STACK_MAX  (1 << 20)

struct map {
	uint64_t start, end, offset;
	struct elf_file *file;
	bool owner; /* the first mapping of its file */
};

struct target {
	pid_t pid;
	int mem; /* /proc/PID/mem */
	struct map maps[MAPS_MAX];
	size_t n_maps;
	uint64_t own_start, own_end; /* link-time addresses, as in struct unwind_copy_place */
	struct unwind_copy *copy;
	struct unwind_copy_input input;
	char *stack; /* STACK_MAX bytes */
};

static inline void target__open_mapping(const struct target *target, struct map *map,
					const char *path)
{
	size_t size = map->end - map->start;
	char *memory;

	for (size_t i = 0; i < target->n_maps; i++) {
		if (strcmp(target->maps[i].file->path, path) == 0) {
			map->file = target->maps[i].file;
			return;
		}
	}
	map->owner = true;
	if (*path == '/') {
		elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &map->file, NULL);
	} else if (strcmp(path, "[vdso]") == 0) {
		memory = calloc(1, size);
		if (pread(target->mem, memory, size, map->start) > 0)
			elf_file__open_memory(memory, size, path, &map->file, NULL);
		free(memory);
	}
}

static inline void target__read_maps(struct target *target)
{
	char name[64], line[4400], path[4097];
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%d/maps", target->pid);
	in = fopen(name, "re");
	while (in && target->n_maps < MAPS_MAX && fgets(line, sizeof(line), in)) {
		struct map map = { 0 };
		char exec;

		*path = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%*c%c%*c %" SCNx64 " %*s %*s %4096s",
			   &map.start, &map.end, &exec, &map.offset, path) < 4 ||
		    exec != 'x')
			continue;
		target__open_mapping(target, &map, path);
		if (map.file)
			target->maps[target->n_maps++] = map;
	}
	if (in)
		fclose(in);
}

static inline const struct elf_file *target__find_image(const struct target *target, uint64_t ip,
							uint64_t *ret_bias)
{
	for (size_t i = 0; i < target->n_maps; i++) {
		const struct map *map = &target->maps[i];
		uint64_t vaddr;

		if (ip < map->start || ip >= map->end)
			continue;
		if (!elf_file__offset_to_vaddr(map->file, map->offset, &vaddr))
			return NULL;
		*ret_bias = map->start - vaddr;
		return map->file;
	}
	return NULL;
}

static inline const struct elf_file *target__find_place(void *ctx, uint64_t ip,
							struct unwind_copy_place *ret)
{
	const struct target *target = ctx;

	ret->own_start = target->own_start;
	ret->own_end = target->own_end;
	return target__find_image(target, ip, &ret->bias);
}

/* Copies the registers and the stack. @stack_start 0: 128 bytes below the stack pointer, which a
 * signal handler would leave unchanged. At the end of a function, rules can refer to registers that
 * are already popped. */
static inline void target__snapshot(struct target *target, uint64_t stack_start)
{
	struct user_regs_struct regs;
	ssize_t n;

	ptrace(PTRACE_GETREGS, target->pid, NULL, &regs);
	target->input = (struct unwind_copy_input) {
		.regs = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp,
			  regs.rsp, regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13,
			  regs.r14, regs.r15, regs.rip },
		.stack_start = stack_start ? stack_start : regs.rsp - 128,
		.stack = target->stack,
	};
	n = pread(target->mem, target->stack, STACK_MAX, target->input.stack_start);
	target->input.stack_size = n > 0 ? n : 0;
}

static inline bool target__open(struct target *target, pid_t pid)
{
	char name[64];

	*target = (struct target) { .pid = pid };
	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	target->mem = open(name, O_RDONLY | O_CLOEXEC);
	target->stack = malloc(STACK_MAX);
	target__read_maps(target);
	return target->mem >= 0 && target->n_maps &&
	       unwind_copy__new(target__find_place, target, &target->copy) == 0;
}

static inline void target__close(struct target *target)
{
	unwind_copy__free(target->copy);
	for (size_t i = 0; i < target->n_maps; i++) {
		if (target->maps[i].owner)
			elf_file__free(target->maps[i].file);
	}
	close_fd(&target->mem);
	free(target->stack);
}

/* --- stacks --- */

struct stack {
	struct unwind_copy_frame frames[FRAMES_MAX];
	int n;
	bool complete;
};

static inline void target__unwind(struct target *target, struct stack *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->n = unwind_copy__run(target->copy, &target->input, ret->frames, FRAMES_MAX,
				  &ret->complete);
}

static inline int stack__add(Dwfl_Frame *frame, void *ctx)
{
	struct stack *stack = ctx;
	Dwarf_Addr pc;

	if (stack->n == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	stack->frames[stack->n++].ip = pc;
	return DWARF_CB_OK;
}

static inline int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name,
			       Dwarf_Addr base, const char *path, const char *link, GElf_Word crc,
			       char **ret_path)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)path, (void)link, (void)crc, (void)ret_path;
	return -1;
}

static inline Dwfl *target__open_libdwfl(const struct target *target)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = no_debuginfo,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	dwfl_linux_proc_report(dwfl, target->pid);
	dwfl_report_end(dwfl, NULL, NULL);
	dwfl_linux_proc_attach(dwfl, target->pid, true);
	return dwfl;
}

static inline void target__unwind_with_libdwfl(const struct target *target, struct stack *ret)
{
	Dwfl *dwfl = target__open_libdwfl(target);

	memset(ret, 0, sizeof(*ret));
	ret->complete = dwfl_getthread_frames(dwfl, target->pid, stack__add, ret) == 0;
	dwfl_end(dwfl);
}

/* Returns the number of equal frames, innermost first. */
static inline int stack__count_equal(const struct stack *a, const struct stack *b)
{
	int i = 0;

	while (i < a->n && i < b->n && a->frames[i].ip == b->frames[i].ip)
		i++;
	return i;
}

static inline bool stack__same(const struct stack *got, const struct stack *want)
{
	return got->n == want->n && stack__count_equal(got, want) == want->n;
}

static inline void target__show_difference(const struct target *target, const struct stack *got,
					   const struct stack *want)
{
	int i = stack__count_equal(got, want);
	uint64_t bias = 0, ip = i ? got->frames[i - 1].ip : 0;
	const struct elf_file *file = target__find_image(target, ip, &bias);

	tap__diag("%d frames, want %d; they part after frame %d, %s+%#" PRIx64, got->n, want->n,
		  i - 1, file ? file->path : "?", ip - bias);
	if (i < got->n && i < want->n)
		tap__diag("%#" PRIx64 ", want %#" PRIx64, got->frames[i].ip, want->frames[i].ip);
}

#endif
