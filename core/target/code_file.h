/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_FILE_H
#define BRAID_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* A file in which a process reports what code it makes, and which grows meanwhile. It is the
 * process's, so nothing about it is trusted: neither what it is nor what is in it. */

#define CODE_FILE_MAX	(1ULL << 30) /* bytes; a longer file is too large to look at */
#define CODE_FILE_PRINT 64

/* Bytes of a copy: files of a file system that may hang are copied into memory. */
#define CODE_FILE_COPY_MAX (64ULL << 20)

struct quota_account; /* core/base/quota.h */

struct code_file {
	int fd;			       /* -1: not open */
	struct quota_account *account; /* that reads are charged to; borrowed; may be NULL */
	int refused; /* why the last read was refused: -EFBIG, -EINTR; 0: it was not */
	uint64_t dev, ino;
	int64_t copied_ns;	       /* of a copy: the time of the file; it does not grow */
	int64_t mtime_ns;	       /* when it was looked at */
	uint64_t size;		       /* bytes, when it was looked at */
	uint64_t done;		       /* bytes that were taken */
	uint8_t head[CODE_FILE_PRINT]; /* the first of them, and the last: does the file still */
	uint8_t tail[CODE_FILE_PRINT]; /* begin with what was taken? */
	size_t n_print;
};

enum code_file_state {
	CODE_FILE_SAME,
	CODE_FILE_GROWN,
	CODE_FILE_REWRITTEN, /* what was taken is not in it any more: `done` is 0 again */
};

#define CODE_FILE_NONE     \
	(struct code_file) \
	{                  \
		.fd = -1   \
	}

/* Opens `path` as it is below the directory `root_fd`, which stands for "/" in links, too; the last
 * part may be no link. Never waits. Only a regular file that belongs to `uid` or to root is taken:
 * else -EPERM. -ESTALE: nobody has written to it since `begin_s` (CLOCK_REALTIME). -EFBIG: it would
 * have to be copied, and is larger than CODE_FILE_COPY_MAX. -ENOENT, -ELOOP and others as of
 * openat2. */
int code_file__open(int root_fd, const char *path, uint32_t uid, int64_t begin_s,
		    struct code_file *ret, struct err *err);

/* The same of a file that is mapped by the process at [start, end): even if it was deleted. */
int code_file__open_mapped(uint32_t pid, uint64_t start, uint64_t end, uint32_t uid,
			   int64_t begin_s, struct code_file *ret, struct err *err);
void code_file__close(struct code_file *file); /* idempotent */

/* Is `path` another file by now? */
bool code_file__is_replaced(const struct code_file *file, int root_fd, const char *path);

enum code_file_state code_file__look(struct code_file *file);

/* All before `done` has been taken. */
void code_file__take(struct code_file *file, uint64_t done);

/* Reads up to @size bytes at @offset. Returns how many; 0 at the end, if the file is unreadable, or
 * if the budget does not allow the read, which sets @file->refused. */
size_t code_file__read(struct code_file *file, uint64_t offset, void *buf, size_t size);

#endif
