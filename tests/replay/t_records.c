// SPDX-License-Identifier: GPL-2.0-or-later
/* The record of an address space that a walker receives, from `attach` to the end. It passes
 * through a map of the kernel half that runs on the host. */
#include <errno.h>
#include <string.h>

#include "bpf/host/host.h"
#include "core/kernel/walker_records.h"
#include "runtimes/registry.h"
#include "tests/replay/half.h"
#include "tests/tap.h"

#define SPACE 7

static const void *record_of(const struct runtime *runtime, uint32_t space)
{
	return host_map__lookup(host_map__named(runtime->walker->records)->map, &space);
}

static void check_runtime(const struct runtime *runtime)
{
	const char *name = runtime->name;
	uint8_t record[RUNTIME_RECORD_MAX];
	uint32_t space = SPACE;
	struct err err = {};

	memset(record, 0xab, sizeof(record));
	is_int(walker_record__write(NULL, runtime, SPACE, record, &err), 0, "%s: written", name);
	ok(record_of(runtime, SPACE) &&
		   !memcmp(record_of(runtime, SPACE), record, runtime->walker->record_bytes),
	   "%s: as attach filled it in", name);
	ok(!record_of(runtime, SPACE + 1), "%s: for no other address space", name);
	while (!walker_record__write(NULL, runtime, ++space, record, &err))
		;
	ok(space > SPACE + 1 && !record_of(runtime, space) &&
		   strstr(err.text, runtime->walker->records),
	   "%s: a full map is an error: %s", name, err.text);
	walker_record__delete(NULL, runtime, SPACE);
	walker_record__delete(NULL, runtime, SPACE);
	ok(!record_of(runtime, SPACE) && record_of(runtime, SPACE + 1), "%s: deleted", name);
}

int main(void)
{
	half__open();
	for (int i = 0; runtimes[i]; i++) {
		if (runtimes[i]->walker)
			check_runtime(runtimes[i]);
		else
			walker_record__delete(NULL, runtimes[i], SPACE);
	}
	half__close();
	return tap__done();
}
