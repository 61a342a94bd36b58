// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/memory_source.h"

struct live {
	struct memory memory;
	pid_t pid;
};

static int live__read(const struct memory *memory, uint64_t address, void *to, size_t size)
{
	const struct live *live = (const struct live *)memory;
	struct iovec local = { to, size }, remote = { (void *)(uintptr_t)address, size };

	return process_vm_readv(live->pid, &local, 1, &remote, 1, 0) == (ssize_t)size ? 0 : -EFAULT;
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
