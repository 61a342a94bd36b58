// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/unwind.bpf.c"

void host_unwind__open(void);

void host_unwind__open(void)
{
	HOST_ARRAY(copy_slots, 1);
	HOST_ARRAY(cached_unwinds, CACHED_WAYS);
	HOST_HASH(image_files, 64);
	HOST_HASH(reported_images, 64);
	HOST_HASH(unmapped_reports, 64);
	HOST_ARRAY_OF_MAPS(chunks, CHUNKS_MAX);
	HOST_HASH_OF_MAPS(mappings, 2048);
	host.stages[STAGE_UNWIND] = unwind_stack;
}
