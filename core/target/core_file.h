/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CORE_FILE_H
#define BRAID_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/base/memory.h"

/* A core file (ELF, ET_CORE, x86-64) that replaces the process that left it: its memory, its
 * threads, and the facts that /proc would have. Callers read those by core/target/procfs.h. All of
 * the file is untrusted. */
struct core_file;

struct core_thread {
	uint32_t tid;
	int signal; /* the signal that it received; 0: none */
	uint64_t regs[UNWIND_REGS];
	uint64_t fs_base;
	int64_t call; /* orig_rax; negative: in no system call */
};

/* Opens the file, and lets it replace the live system until core_file__close(). @root is the
 * directory of the mapped files; "/" unless they come from another machine. Returns 0; -EBADMSG;
 * -ENOTSUP: a file of another architecture; errors of open(). Errors set the message in @err. */
int core_file__open(const char *path, const char *root, struct core_file **ret, struct err *err);
void core_file__close(struct core_file *core); /* NULL is fine */

uint32_t core_file__pid(const struct core_file *core);
const struct memory *core_file__memory(const struct core_file *core);
const struct core_thread *core_file__threads(const struct core_file *core, size_t *ret_n);

/* Returns a note for the user, or NULL: the file is truncated, or mapped files are missing or were
 * replaced. */
const char *core_file__note(const struct core_file *core);

#endif
