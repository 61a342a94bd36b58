// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/walker_records.h"

#include <errno.h>
#include <string.h>

#include "core/kernel/maps.h"

int walker_record__write(const struct kernel_half *half, const struct runtime *runtime,
			 uint32_t space, const void *record, struct err *err)
{
	int fd = kernel_half__map_fd(half, runtime->walker->records), ret = fd < 0 ? fd : 0;

	if (!ret)
		ret = map__update(fd, &space, record);
	return ret ? err__set(err, ret, "%s: BPF map %s: %s", runtime->name,
			      runtime->walker->records, strerror(-ret))
		   : 0;
}

void walker_record__delete(const struct kernel_half *half, const struct runtime *runtime,
			   uint32_t space)
{
	int fd = runtime->walker ? kernel_half__map_fd(half, runtime->walker->records) : -ENOENT;

	if (fd >= 0)
		map__delete(fd, &space);
}
