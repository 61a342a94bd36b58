// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/target/container.h"
#include "tests/fuzz/fuzz.h"

/* Finds the container of a cgroup by its path. Each user who may make a cgroup chooses the name. */
bool target__run(const uint8_t *data, size_t size)
{
	char *path = strndup((const char *)data, size), container[CONTAINER_BYTES];
	bool found = path && container__of_cgroup(path, container);

	if (found && (!*container || strlen(container) >= sizeof(container)))
		abort();
	free(path);
	return found;
}

void target__seeds(void)
{
	static const char *const paths[] = { "/system.slice/crun-a.scope/b", "/lxc/a\\x2db",
					     "/machine.slice/machine-a\\x2db.scope/payload" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
		fuzz__seed_text(paths[i]);
}
