// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/fd_limit.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <unistd.h>

/* descriptors for the recording's journal, and spare ones */
#define RESERVE 4

/* descriptors for files of /proc, and for maps of address spaces, several of which are created
 * together */
#define PASSING 24

/* descriptors of a session: maps and programs; then links and events of each CPU */
#define OWN	    144
#define OWN_PER_CPU 6

static void set_soft(rlim_t soft)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static rlim_t hard_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? RESERVE : limit.rlim_max;
}

int fd_limit__raise(struct rlimit *ret_users, struct err *err)
{
	rlim_t least = OWN + OWN_PER_CPU * libbpf_num_possible_cpus() + PASSING + RESERVE;
	rlim_t hard = hard_limit();

	if (getrlimit(RLIMIT_NOFILE, ret_users))
		return err__set(err, -errno, "cannot read the limit of open files");
	if (hard < least)
		return err__set(err, -EMFILE,
				"cannot open enough files: the hard limit is %llu (ulimit -Hn), "
				"and braid needs %llu on this machine",
				(unsigned long long)hard, (unsigned long long)least);
	fd_limit__close_reserve();
	return 0;
}

void fd_limit__restore(const struct rlimit *users)
{
	setrlimit(RLIMIT_NOFILE, users);
}

void fd_limit__open_reserve(void)
{
	set_soft(hard_limit());
}

void fd_limit__close_reserve(void)
{
	set_soft(hard_limit() - RESERVE);
}

/* The kernel gives a new descriptor the lowest free number, so @fd shows how many are open. */
int fd_limit__hold(int fd)
{
	struct rlimit limit;

	if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) || (rlim_t)fd + PASSING < limit.rlim_cur)
		return fd;
	close(fd);
	return -EMFILE;
}
