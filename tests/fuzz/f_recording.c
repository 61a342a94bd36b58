// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A recording becomes a profile or an error. SQLite opens by name only: the file is in memory, and
 * never in WAL mode (bytes 18 and 19), which would leave other files beside it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct load_filter filter = { .lines = true };
	char path[] = "/dev/shm/braid-fuzz-XXXXXX";
	struct profile *profile = NULL;
	struct merge_report report;
	int fd = mkstemp(path);

	if (fd < 0)
		return 0;
	if (write(fd, data, size) == (ssize_t)size && pwrite(fd, "\1\1", 2, 18) == 2 &&
	    !load__profile(path, &filter, &profile, &report, NULL))
		profile__free(profile);
	close(fd);
	unlink(path);
	return 0;
}
