// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/access.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/privilege.h"

/* Returns Yama's restriction of ptrace (Documentation/admin-guide/LSM/Yama.rst); 0: none, or no
 * Yama. */
static int ptrace_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope = 0;

	if (file && fscanf(file, "%d", &scope) != 1)
		scope = 0;
	if (file)
		fclose(file);
	return scope;
}

static int not_permitted(const struct procfs_info *info, struct err *err)
{
	char what[120];
	bool same = info->uid == geteuid();

	snprintf(what, sizeof(what), "to look into PID %u (%s)", info->pid, info->name);
	if (!same || !privilege__missing(1U << PRIVILEGE_PROCESSES))
		return privilege__explain(1U << PRIVILEGE_PROCESSES, what, err);
	if (ptrace_scope())
		return err__set(err, -EPERM,
				"not permitted %s, although it belongs to user %u: "
				"kernel.yama.ptrace_scope is %d, which requires CAP_SYS_PTRACE. "
				"Run as root (sudo), or set it to 0",
				what, info->uid, ptrace_scope());
	return err__set(err, -EPERM,
			"not permitted %s, although it belongs to user %u: it is not dumpable, or "
			"has capabilities that braid lacks. Run as root (sudo)",
			what, info->uid);
}

/* Finds the first readable mapping. Returns false if there is none or maps is unreadable;
 * *@ret_errno is 0 if maps has no such line. */
static bool first_mapping(uint32_t pid, uint64_t *ret, int *ret_errno)
{
	struct maps_line parsed;
	char *line = NULL;
	bool found = false;
	size_t size = 0;
	FILE *maps;

	*ret_errno = -procfs__open_maps(pid, &maps);
	if (*ret_errno)
		return false;
	errno = 0;
	while (!found && getline(&line, &size, maps) > 0) {
		found = maps_line__parse(line, &parsed) && parsed.perms[0] == 'r';
		*ret = parsed.start;
	}
	if (!found)
		*ret_errno = errno;
	free(line);
	fclose(maps);
	return found;
}

int process__check_access(const struct procfs_info *info, struct err *err)
{
	uint8_t head[EI_NIDENT];
	struct iovec local = { head, sizeof(head) }, remote = { NULL, sizeof(head) };
	uint64_t address = 0;
	int code;

	if (!first_mapping(info->pid, &address, &code))
		return code == EACCES || code == EPERM
			       ? not_permitted(info, err)
			       : err__set(err, -ESRCH, "process %u has just ended", info->pid);
	remote.iov_base = (void *)(uintptr_t)address;
	if (process__readv(info->pid, &local, 1, &remote, 1) < 0) {
		if (errno == EPERM)
			return not_permitted(info, err);
		return errno == ESRCH
			       ? err__set(err, -ESRCH, "process %u has just ended", info->pid)
			       : 0;
	}
	/* A program is mapped from the start of its file. Its mapping is the lowest, unless the
	 * program is position-independent. The lowest may then be the dynamic linker's, which has
	 * the same class. */
	if (!memcmp(head, ELFMAG, SELFMAG) && head[EI_CLASS] == ELFCLASS32)
		return err__set(
			err, -ENOTSUP,
			"PID %u (%s) is a 32-bit program, and braid supports 64-bit ones only",
			info->pid, info->name);
	return 0;
}
