// SPDX-License-Identifier: GPL-2.0-or-later
/* deadfs DIRECTORY NAME FILE: mounts a file system with one file, NAME, which contains the bytes of
 * FILE. Serves it, and leaves requests unanswered on command. Commands are lines on standard input:
 *
 *   hang     accepts all later requests, and answers none of them
 *   read     as hang, but only for requests to read
 *   go       answers again, except requests that were left unanswered
 *
 * Prints "ready" when it has mounted, and repeats each command when it is in effect. Prints "took"
 * for the first request that it leaves unanswered after a command. At the end of its input it
 * unmounts, and waiting processes receive an error. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_BYTES (1 << 20)
#define THE_FILE      2 /* node of the file; the directory's is FUSE_ROOT_ID */

enum { ANSWER, HANG_READS, HANG };

static const char *name;
static int device, file;
static struct stat stat_of_file;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(const struct fuse_in_header *request, int error, const void *bytes, size_t n)
{
	struct fuse_out_header head = { .len = sizeof(head) + n,
					.error = error,
					.unique = request->unique };
	static char out[REQUEST_BYTES];

	memcpy(out, &head, sizeof(head));
	if (n)
		memcpy(out + sizeof(head), bytes, n);
	if (write(device, out, head.len) < 0 && errno != ENOENT)
		fail("write");
}

static struct fuse_attr attributes(uint64_t node)
{
	bool is_file = node == THE_FILE;

	return (struct fuse_attr) { .ino = node,
				    .size = is_file ? stat_of_file.st_size : 0,
				    .mode = is_file ? S_IFREG | 0755 : S_IFDIR | 0755,
				    .nlink = 1,
				    .mtime = stat_of_file.st_mtime,
				    .ctime = stat_of_file.st_mtime,
				    .blksize = 4096 };
}

static void look_up(const struct fuse_in_header *request)
{
	struct fuse_entry_out out = { .nodeid = THE_FILE, .attr = attributes(THE_FILE) };
	bool found = !strcmp((const char *)(request + 1), name);

	answer(request, found ? 0 : -ENOENT, &out, found ? sizeof(out) : 0);
}

static void read_file(const struct fuse_in_header *request)
{
	const struct fuse_read_in *in = (const void *)(request + 1);
	static char bytes[REQUEST_BYTES / 2];
	ssize_t n = in->size <= sizeof(bytes) ? pread(file, bytes, in->size, in->offset) : -1;

	answer(request, n < 0 ? -EIO : 0, bytes, n < 0 ? 0 : n);
}

static void serve(const struct fuse_in_header *request)
{
	const struct fuse_init_in *requested = (const void *)(request + 1);

	switch (request->opcode) {
	case FUSE_INIT:
		answer(request, 0,
		       &(struct fuse_init_out) { .major = FUSE_KERNEL_VERSION,
						 .minor = requested->minor <
									  FUSE_KERNEL_MINOR_VERSION
								  ? requested->minor
								  : FUSE_KERNEL_MINOR_VERSION,
						 .max_readahead = requested->max_readahead,
						 .max_write = 4096 },
		       sizeof(struct fuse_init_out));
		break;
	case FUSE_LOOKUP:
		look_up(request);
		break;
	case FUSE_GETATTR:
		answer(request, 0, &(struct fuse_attr_out) { .attr = attributes(request->nodeid) },
		       sizeof(struct fuse_attr_out));
		break;
	case FUSE_OPEN:
		answer(request, 0, &(struct fuse_open_out) { .open_flags = FOPEN_KEEP_CACHE },
		       sizeof(struct fuse_open_out));
		break;
	case FUSE_READ:
		read_file(request);
		break;
	case FUSE_STATFS:
		answer(request, 0, &(struct fuse_statfs_out) {}, sizeof(struct fuse_statfs_out));
		break;
	case FUSE_RELEASE:
		answer(request, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(request, -ENOSYS, NULL, 0);
	}
}

/* Reads a command. Returns false at the end of the input. */
static bool obey(int *mode)
{
	static char line[64];

	if (!fgets(line, sizeof(line), stdin))
		return false;
	*mode = !strcmp(line, "hang\n") ? HANG : !strcmp(line, "read\n") ? HANG_READS : ANSWER;
	fputs(line, stdout);
	return true;
}

static void take_request(int mode, bool *reported)
{
	static char bytes[REQUEST_BYTES];
	const struct fuse_in_header *request = (const void *)bytes;

	if (read(device, bytes, sizeof(bytes)) < 0) {
		if (errno != ENOENT && errno != EINTR)
			fail("read");
		return;
	}
	if (mode == ANSWER || (mode == HANG_READS && request->opcode != FUSE_READ)) {
		serve(request);
	} else if (!*reported) {
		puts("took");
		*reported = true;
	}
}

int main(int argc, char **argv)
{
	struct pollfd polled[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	char options[128];
	bool reported = false;
	int mode = ANSWER;

	if (argc != 4)
		return 2;
	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	name = argv[2];
	file = open(argv[3], O_RDONLY | O_CLOEXEC);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (file < 0 || fstat(file, &stat_of_file) || device < 0)
		fail(device < 0 ? "/dev/fuse" : argv[3]);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("deadfs", argv[1], "fuse", 0, options))
		fail(argv[1]);
	puts("ready");
	polled[1] = (struct pollfd) { .fd = device, .events = POLLIN };
	while (poll(polled, 2, -1) > 0) {
		if (polled[1].revents)
			take_request(mode, &reported);
		if (!polled[0].revents)
			continue;
		reported = false;
		if (!obey(&mode))
			break;
	}
	return umount2(argv[1], MNT_DETACH) ? 1 : 0;
}
