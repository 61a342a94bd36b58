/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MEMORY_H
#define BRAID_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* The memory of a target, wherever it is: a process that lives, this process itself, the core file
 * of one that has died, or pages that were recorded. The host build of the kernel half (bpf/host)
 * and the runtimes read through it and cannot tell the sources apart.
 *
 * Everything that is read is untrusted. Not thread-safe; one reader at a time. */
struct memory;

/* As process_vm_readv, also of a process whose first thread has ended. */
struct iovec;
ssize_t process__readv(uint32_t pid, const struct iovec *local, unsigned n_local,
		       const struct iovec *remote, unsigned n_remote);

/* Memory of a live process, by process_vm_readv. -ENOMEM. The process need not exist: then nothing
 * can be read. */
int memory__of_process(uint32_t pid, struct memory **ret);

/* Memory of this process. Addresses that are not mapped fail as they do elsewhere. -ENOMEM. */
int memory__of_self(struct memory **ret);

/* Memory as a core file (ELF, ET_CORE, x86-64) has it. Takes `fd`, also when it fails. What the
 * kernel left out of the core, since a file backs it, is read from that file if it is still there
 * (NT_FILE names it). Errors are those of core_elf__open(). */
int memory__of_core(int fd, const char *path, struct memory **ret, struct err *err);

/* Returns what else the core file has in it, borrowed; NULL for other memory. */
struct core_elf;
const struct core_elf *memory__core(const struct memory *memory);

/* What was read of `inner` (borrowed) once is read from a copy, until memory__forget: pages of 4096
 * bytes, some of which are kept. For many reads within a time in which nothing changes. -ENOMEM. */
int memory__cached(const struct memory *inner, struct memory **ret);
void memory__forget(struct memory *cached);

/* Memory as if some words of it were others, also where nothing is mapped: `inner` (borrowed), with
 * what memory__patch was last given, which is copied and must not overlap. -ENOMEM. */
struct memory_patch {
	uint64_t address, word;
};
int memory__patched(const struct memory *inner, struct memory **ret);
int memory__patch(struct memory *patched, const struct memory_patch *patches, size_t n);

/* Recorded pages: empty at first. -ENOMEM. */
int memory__of_pages(struct memory **ret);

void memory__free(struct memory *memory); /* NULL is fine */

/* Copies `size` bytes at `address` to `to`. 0, or
 * -EFAULT   not all of that was mapped in the target
 * -ENODATA  recorded pages only: it was mapped, but nobody has recorded it
 * In both cases `to` is left unspecified. */
int memory__read(const struct memory *memory, uint64_t address, void *to, size_t size);

/* Told of every read: where it was and what memory__read returns. One observer; NULL ends it. */
typedef void (*memory_read_fn)(void *ctx, uint64_t address, size_t size, int ret);
void memory__observe(struct memory *memory, memory_read_fn observer, void *ctx);

/* Recorded pages: the target had [start, end) mapped. -EINVAL for an empty range, -ENOMEM. */
int memory__add_mapping(struct memory *memory, uint64_t start, uint64_t end);

/* Recorded pages: the bytes at `address`, which are copied; ranges may come in any order and must
 * not overlap. -EINVAL where they do, or for an empty range or one that wraps; -ENOMEM. */
int memory__add_bytes(struct memory *memory, uint64_t address, const void *bytes, size_t size);

/* As memory__add_bytes(), but bytes that are there already stay, and the others are added. */
int memory__add_missing(struct memory *memory, uint64_t address, const void *bytes, size_t size);

#endif
