/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CORE_FILE_H
#define BRAID_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind_rule.h"
#include "core/base/err.h"
#include "core/base/memory.h"

/* A core file (ELF, ET_CORE, x86-64) in the place of the process that has left it: its memory, its
 * threads, and what /proc would say of it, for whoever reads that by core/target/procfs.h. All of
 * it is untrusted. */
struct core_file;

struct core_thread {
	uint32_t tid;
	int signal; /* that it had got; 0: none */
	uint64_t regs[UNWIND_REGS];
	uint64_t fs_base;
	int64_t call; /* orig_rax; below 0: it was in no system call */
};

/* Opens the file, and lets it stand in for the live system until core_file__close. `root`: where
 * the files are that were mapped; "/" unless they came from elsewhere. What is wrong with the file
 * is in the sentence: -EBADMSG, -ENOTSUP for another machine's, errors of open. */
int core_file__open(const char *path, const char *root, struct core_file **ret, struct err *err);
void core_file__close(struct core_file *core); /* NULL is fine */

uint32_t core_file__pid(const struct core_file *core);
const struct memory *core_file__memory(const struct core_file *core);
const struct core_thread *core_file__threads(const struct core_file *core, size_t *ret_n);

/* What people should know: the file is not whole, or files that were mapped are missing or others
 * now; NULL: nothing. */
const char *core_file__note(const struct core_file *core);

#endif
