// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/thread_context.h"

#include <errno.h>
#include <string.h>

#include "core/target/process_context.h"

#define MODULES_MAX 4096 /* as TLS_MODULES_MAX of bpf/thread_local.bpf.h */

/* Returns true if musl is the C library of the process: one file defines both functions. In glibc,
 * the first one is the dynamic linker's. */
static bool has_musl(const struct process *process)
{
	uint64_t vaddr;

	for (size_t i = 0; i < process->n_mapped; i++) {
		const struct image *image = process->mapped[i].image;

		if (image && !elf_file__find_symbol(image->file, "__tls_get_addr", &vaddr, NULL))
			return !elf_file__find_symbol(image->file, "pthread_getspecific", &vaddr,
						      NULL);
	}
	return false;
}

/* Reads the index at @address: the number of a module, and an offset in its block. */
static int read_index(const struct process *process, uint64_t address, struct context_rec *ret)
{
	uint64_t words[2];

	if (!procfs__read_memory(process->pid, address, words, sizeof(words)) || !words[0] ||
	    words[0] >= MODULES_MAX)
		return -EAGAIN;
	*ret = (struct context_rec) { .module = words[0], .at = words[1] };
	/* The walkers' reader of blocks distinguishes the C libraries by this member only. */
	ret->libc.values = has_musl(process);
	return 0;
}

/* On x86-64, offsets from the thread pointer are negative, and addresses are not. */
static int read_descriptor(const struct process *process, uint64_t address, struct context_rec *ret)
{
	uint64_t words[2];

	if (!procfs__read_memory(process->pid, address, words, sizeof(words)) || !words[0])
		return -EAGAIN;
	if ((int64_t)words[1] >= 0)
		return read_index(process, words[1], ret);
	*ret = (struct context_rec) { .at = words[1] };
	return 0;
}

static int locate(const struct process *process, const struct mapped *mapped,
		  struct context_rec *ret)
{
	const struct thread_variable *variable = &mapped->image->context;
	uint64_t slot = mapped->bias + variable->slot_vaddr, offset;

	switch (variable->access) {
	case THREAD_VARIABLE_FIXED:
		*ret = (struct context_rec) { .at = variable->offset };
		return 0;
	case THREAD_VARIABLE_SLOT:
		if (!procfs__read_memory(process->pid, slot, &offset, sizeof(offset)) || !offset)
			return -EAGAIN;
		*ret = (struct context_rec) { .at = offset };
		return 0;
	case THREAD_VARIABLE_INDEX:
		return read_index(process, slot, ret);
	case THREAD_VARIABLE_DESCRIPTOR:
		return read_descriptor(process, slot, ret);
	}
	return -ENOENT;
}

int thread_context__find(const struct process *process, struct context_rec *ret)
{
	int code = -ENOENT;

	if (!process_context__allows_records(process->context))
		return -ENOENT;
	for (size_t i = 0; code == -ENOENT && i < process->n_mapped; i++)
		if (process->mapped[i].image && process->mapped[i].image->has_context)
			code = locate(process, &process->mapped[i], ret);
	return code;
}
