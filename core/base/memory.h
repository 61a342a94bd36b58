/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MEMORY_H
#define BRAID_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* The memory of a target, whatever its source: a live process, this process itself, the core file
 * of a dead process, or recorded pages. The host build of the kernel half (bpf/host) and the
 * runtimes read through it and cannot distinguish the sources.
 *
 * All memory that is read is untrusted. Not thread-safe; one reader at a time. */
struct memory;

/* As process_vm_readv(), also for a process whose first thread has ended. */
struct iovec;
ssize_t process__readv(uint32_t pid, const struct iovec *local, unsigned n_local,
		       const struct iovec *remote, unsigned n_remote);

/* Memory of a live process, by process_vm_readv(). Returns 0 or -ENOMEM. If the process does not
 * exist, reads fail later. */
int memory__of_process(uint32_t pid, struct memory **ret);

/* Memory of this process. Reads of unmapped addresses fail, as they do in other processes. Returns
 * 0 or -ENOMEM. */
int memory__of_self(struct memory **ret);

/* Reads of @inner (borrowed) are cached until memory__forget(), as pages of 4096 bytes, up to 1024
 * of them. For many reads during which nothing changes. Returns 0 or -ENOMEM. */
int memory__cached(const struct memory *inner, struct memory **ret);
void memory__forget(struct memory *cached);

/* Memory with some words replaced, also where nothing is mapped. @inner is borrowed.
 * memory__patch() replaces the patches of the call before; it copies them, and they must not
 * overlap. Both return 0 or -ENOMEM. */
struct memory_patch {
	uint64_t address, word;
};
int memory__patched(const struct memory *inner, struct memory **ret);
int memory__patch(struct memory *patched, const struct memory_patch *patches, size_t n);

/* Recorded pages, initially empty. Returns 0 or -ENOMEM. */
int memory__of_pages(struct memory **ret);

void memory__free(struct memory *memory); /* NULL is fine */

/* Copies @size bytes at @address to @to. Returns 0, or
 * -EFAULT   some of the bytes were not mapped in the target
 * -ENODATA  recorded pages only: the bytes were mapped, but not recorded
 * In both cases @to is left unspecified. */
int memory__read(const struct memory *memory, uint64_t address, void *to, size_t size);

/* Called after each read with its place and the result of memory__read(). There is one observer;
 * NULL removes it. */
typedef void (*memory_read_fn)(void *ctx, uint64_t address, size_t size, int ret);
void memory__observe(struct memory *memory, memory_read_fn observer, void *ctx);

/* Recorded pages: records that the target had [@start, @end) mapped. Returns 0, -EINVAL for an
 * empty range, or -ENOMEM. */
int memory__add_mapping(struct memory *memory, uint64_t start, uint64_t end);

/* Recorded pages: copies the bytes at @address. Ranges may come in any order and must not overlap.
 * Returns 0, -EINVAL for a range that overlaps, is empty or wraps, or -ENOMEM. */
int memory__add_bytes(struct memory *memory, uint64_t address, const void *bytes, size_t size);

/* As memory__add_bytes(), but bytes that are already recorded stay, and only the others are
 * added. */
int memory__add_missing(struct memory *memory, uint64_t address, const void *bytes, size_t size);

#endif
