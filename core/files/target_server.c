// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/target_helper.h"

#define COPY_BYTES_MAX (1ULL << 30)
#define COPY_BLOCK     (64 << 10)
#define COPY_SIGN      (4 << 20) /* bytes copied between two messages that work continues */

/* missing in linux/magic.h of some releases */
#define MAGIC_ZFS      0x2fc12fc1
#define MAGIC_BCACHEFS 0xca451a4e
#define MAGIC_EXFAT    0x2011bab0
#define MAGIC_NTFS3    0x7366746e
#define MAGIC_JFS      0x3153464a
#define MAGIC_UDF      0x15013346
#define MAGIC_HUGETLB  0x958458f6
#define MAGIC_CONFIGFS 0x62656570
#define MAGIC_FUSECTL  0x65735543

/* file systems with files on a disk of this machine, or in its memory */
static const uint32_t local[] = {
	EXT4_SUPER_MAGIC,  XFS_SUPER_MAGIC,   BTRFS_SUPER_MAGIC,    TMPFS_MAGIC,
	RAMFS_MAGIC,	   F2FS_SUPER_MAGIC,  SQUASHFS_MAGIC,	    EROFS_SUPER_MAGIC_V1,
	MSDOS_SUPER_MAGIC, ISOFS_SUPER_MAGIC, REISERFS_SUPER_MAGIC, MAGIC_ZFS,
	MAGIC_BCACHEFS,	   MAGIC_EXFAT,	      MAGIC_NTFS3,	    MAGIC_JFS,
	MAGIC_UDF,	   MAGIC_HUGETLB,
};

/* file systems of the kernel, where a read can have an effect */
static const uint32_t pseudo[] = {
	PROC_SUPER_MAGIC,   SYSFS_MAGIC,	 DEBUGFS_MAGIC,	       TRACEFS_MAGIC,
	CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,	       SECURITYFS_MAGIC,
	SELINUX_MAGIC,	    SMACK_MAGIC,	 EFIVARFS_MAGIC,       PSTOREFS_MAGIC,
	BINFMTFS_MAGIC,	    DEVPTS_SUPER_MAGIC,	 RDTGROUP_SUPER_MAGIC, NSFS_MAGIC,
	MAGIC_CONFIGFS,	    MAGIC_FUSECTL,
};

static bool is_one_of(uint32_t magic, const uint32_t *list, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (list[i] == magic)
			return true;
	return false;
}

/* Returns true if the file system is also mounted in braid's own mount namespace. Any user can put
 * an overlay over a file system of his own in his own namespace, but not in braid's. The overlays
 * of containers usually are in braid's. */
static bool is_mounted_here(const struct statx *info)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	unsigned dev_major, dev_minor;
	char *line = NULL;
	bool found = false;
	size_t size = 0;

	while (mounts && !found && getline(&line, &size, mounts) > 0)
		found = sscanf(line, "%*u %*u %u:%u", &dev_major, &dev_minor) == 2 &&
			dev_major == info->stx_dev_major && dev_minor == info->stx_dev_minor;
	free(line);
	if (mounts)
		fclose(mounts);
	return found;
}

static int describe(int fd, struct target_answer *answer)
{
	struct statfs system;

	if (fstatfs(fd, &system) || statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &answer->info))
		return -errno;
	if (is_one_of(system.f_type, pseudo, ARRAY_SIZE(pseudo)))
		return -EINVAL;
	answer->may_hang =
		!is_one_of(system.f_type, local, ARRAY_SIZE(local)) &&
		!(system.f_type == OVERLAYFS_SUPER_MAGIC && is_mounted_here(&answer->info));
	return 0;
}

/* Copies up to @size bytes. The copy is shorter if the file shrinks meanwhile. */
static int copy_bytes(int socket, int from, int to, uint64_t size)
{
	static const struct target_answer goes_on = { .code = EINPROGRESS };
	static char block[COPY_BLOCK];
	uint64_t at = 0;
	ssize_t n;

	while (at < size) {
		n = pread(from, block, min_of(size - at, sizeof(block)), at);
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		if (pwrite(to, block, n, at) != n)
			return -ENOMEM;
		if (at / COPY_SIGN != (at + n) / COPY_SIGN &&
		    target_helper__send(socket, &goes_on, sizeof(goes_on), -1) < 0)
			return -EPIPE;
		at += n;
	}
	return 0;
}

static int copy(int socket, int path_fd, int *ret_fd)
{
	int from, to = -1, code;
	struct stat st;
	char link[64];

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	from = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (from < 0 || fstat(from, &st))
		code = -errno;
	else if (!S_ISREG(st.st_mode))
		code = -EINVAL;
	else if ((uint64_t)st.st_size > COPY_BYTES_MAX)
		code = -EFBIG;
	else
		code = (to = memfd_create(TARGET_COPY_NAME, MFD_CLOEXEC)) < 0 ? -errno : 0;
	if (!code)
		code = copy_bytes(socket, from, to, st.st_size);
	/* The copy gets the file's owner, as that decides the trust in it, and the file's times. */
	if (!code && (fchown(to, st.st_uid, -1) ||
		      futimens(to, (struct timespec[]) { st.st_atim, st.st_mtim })))
		code = -errno;
	close_fd(&from);
	if (code)
		close_fd(&to);
	*ret_fd = to;
	return code;
}

static int find(int root_fd, const struct target_request *request, int *ret_fd)
{
	struct open_how how = { .flags = request->open_flags,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	*ret_fd = syscall(SYS_openat2, root_fd, request->path, &how, sizeof(how));
	return *ret_fd < 0 ? -errno : 0;
}

void target_server__run(void *ctx, int socket)
{
	static struct target_request request;
	int fd, found;

	(void)ctx;
	while (target_helper__receive(socket, &request, sizeof(request), &fd) > 0) {
		struct target_answer answer = {};

		found = -1;
		if (request.op == TARGET_HELPER_FIND)
			answer.code = find(fd, &request, &found);
		else if (request.op == TARGET_HELPER_DESCRIBE)
			answer.code = describe(fd, &answer);
		else
			answer.code = copy(socket, fd, &found);
		if (target_helper__send(socket, &answer, sizeof(answer), found) < 0)
			break;
		close_fd(&found);
		close_fd(&fd);
	}
	_exit(0);
}
