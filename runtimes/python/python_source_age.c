// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_source_age.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

#define ANCESTORS_MAX 64
#define FORK_NO_EXEC  0x40 /* PF_FORKNOEXEC: forked, and has executed nothing since */
#define AUXV_BYTES    1024

/* Times of files are those of the last timer tick, and starts of processes are rounded down. */
#define TICK_NS 20000000

struct origin {
	uint32_t parent;
	bool forked; /* has executed no program itself */
	uint64_t start_ticks;
};

static ssize_t read_some(uint32_t pid, const char *name, void *to, size_t size)
{
	char path[PROCFS_PATH_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, to, size);
	close_fd(&fd);
	return n;
}

/* Reads the flags of the first thread, even if it has ended: other threads have their own flags. */
static bool read_origin(uint32_t pid, struct origin *ret)
{
	char text[1024], *close;
	unsigned int flags;
	ssize_t n = read_some(pid, "stat", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	close = strrchr(text, ')');
	if (!close || sscanf(close + 1,
			     " %*c %" SCNu32 " %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d"
			     " %*d %*d %*d %*d %" SCNu64,
			     &ret->parent, &flags, &ret->start_ticks) != 3)
		return false;
	ret->forked = flags & FORK_NO_EXEC;
	return true;
}

/* Returns true if both run the same program since the same exec: the auxiliary vector has random
 * addresses of that exec. */
static bool is_same_program(uint32_t a, uint32_t b)
{
	char of_a[AUXV_BYTES], of_b[AUXV_BYTES];
	ssize_t n = read_some(a, "auxv", of_a, sizeof(of_a));

	return n > 0 && read_some(b, "auxv", of_b, sizeof(of_b)) == n && !memcmp(of_a, of_b, n);
}

static int64_t to_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * (int64_t)NSEC_PER_SEC + time.tv_nsec;
}

bool python_source_age__is_older(uint32_t pid, const struct target_file *file)
{
	int64_t changed_ns = max_of(file->mtime_ns, file->ctime_ns), start_ns;
	struct origin origin;

	if (!read_origin(pid, &origin))
		return false;
	for (int i = 0; origin.forked; i++) {
		if (i == ANCESTORS_MAX || !origin.parent || !is_same_program(pid, origin.parent))
			return false;
		pid = origin.parent;
		if (!read_origin(pid, &origin))
			return false;
	}
	start_ns = to_ns(CLOCK_REALTIME) - to_ns(CLOCK_BOOTTIME) +
		   (int64_t)(origin.start_ticks * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK)));
	return changed_ns + TICK_NS < start_ns;
}
