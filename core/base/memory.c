// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/living_task.h"
#include "core/base/memory_source.h"

static bool has_thread(uint32_t pid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/task/%u", pid, tid);
	return !access(path, F_OK);
}

/* process_vm_readv() finds memory by thread, but not by a first thread that has ended. The thread
 * to use instead is cached, as the search takes longer than the read. */
ssize_t process__readv(uint32_t pid, const struct iovec *local, unsigned n_local,
		       const struct iovec *remote, unsigned n_remote)
{
	static __thread uint32_t cached_pid, cached_living;
	uint32_t living = pid;
	ssize_t n;

	if (pid == cached_pid && has_thread(pid, cached_living))
		living = cached_living;
	n = process_vm_readv((pid_t)living, local, n_local, remote, n_remote, 0);
	if (n >= 0 || errno != ESRCH)
		return n;
	living = living_task__of(pid);
	cached_pid = living == pid ? 0 : pid;
	cached_living = living;
	if (living != pid)
		return process_vm_readv((pid_t)living, local, n_local, remote, n_remote, 0);
	errno = ESRCH;
	return -1;
}

struct live {
	struct memory memory;
	pid_t pid;
};

static int live__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct live *live = (const struct live *)memory;
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	return process__readv(live->pid, &local, 1, &remote, 1) == (ssize_t)size ? 0 : -EFAULT;
}

static void live__free(struct memory *memory)
{
	free(memory);
}

int memory__of_process(uint32_t pid, struct memory **ret)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return -ENOMEM;
	*live = (struct live) { { .read = live__read, .free = live__free }, (pid_t)pid };
	*ret = &live->memory;
	return 0;
}

int memory__of_self(struct memory **ret)
{
	return memory__of_process(getpid(), ret);
}

void memory__free(struct memory *memory)
{
	if (memory)
		memory->free(memory);
}

int memory__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	int ret = memory->read(memory, address, to, size);

	if (memory->observer)
		memory->observer(memory->observer_ctx, address, size, ret);
	return ret;
}

void memory__observe(struct memory *memory, memory_read_fn observer, void *ctx)
{
	memory->observer = observer;
	memory->observer_ctx = ctx;
}
