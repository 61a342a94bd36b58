/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_FILE_H
#define BRAID_CODE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* A file in which a process reports the code that it generates, and which grows meanwhile. The
 * process controls the file, so neither its type nor its contents are trusted. */

#define CODE_FILE_MAX	(1ULL << 30) /* bytes; longer files are not read */
#define CODE_FILE_PRINT 64

/* Maximum size of a copy, in bytes. Files of a file system that may hang are copied into memory. */
#define CODE_FILE_COPY_MAX (64ULL << 20)

struct quota_account; /* core/base/quota.h */

struct code_file {
	int fd;			       /* -1: not open */
	struct quota_account *account; /* charged for reads; borrowed; may be NULL */
	int refused; /* reason why the last read was refused (-EFBIG, -EINTR); 0: not refused */
	uint64_t dev, ino;
	int64_t copied_ns; /* mtime of a copied file, as a copy does not grow; 0: no copy */
	int64_t mtime_ns;  /* modification time at the last code_file__look() */
	uint64_t size;	   /* bytes, at the last code_file__look() */
	uint64_t done;	   /* bytes that were processed */
	uint8_t head[CODE_FILE_PRINT]; /* first bytes of the processed part, */
	uint8_t tail[CODE_FILE_PRINT]; /* and its last; they change if the file is rewritten */
	size_t n_print;
};

enum code_file_state {
	CODE_FILE_SAME,
	CODE_FILE_GROWN,
	CODE_FILE_REWRITTEN, /* the processed contents are gone; `done` is 0 again */
};

#define CODE_FILE_NONE     \
	(struct code_file) \
	{                  \
		.fd = -1   \
	}

/* Opens @path below the directory @root_fd, which stands for "/" in links, too. Never blocks. The
 * last component must not be a link. The file must be regular and belong to @uid or to root.
 *
 * Returns 0; -EPERM: wrong type or owner; -ESTALE: last written before @begin_s (CLOCK_REALTIME);
 * -EFBIG: larger than CODE_FILE_COPY_MAX, and needs a copy; -ENOENT, -ELOOP and others as
 * openat2(). Errors set the message in @err. */
int code_file__open(int root_fd, const char *path, uint32_t uid, int64_t begin_s,
		    struct code_file *ret, struct err *err);

/* As code_file__open(), for the file that the process maps at [@start, @end), even if the file was
 * deleted. */
int code_file__open_mapped(uint32_t pid, uint64_t start, uint64_t end, uint32_t uid,
			   int64_t begin_s, struct code_file *ret, struct err *err);
void code_file__close(struct code_file *file); /* idempotent */

/* Returns true if @path is now another file. */
bool code_file__is_replaced(const struct code_file *file, int root_fd, const char *path);

enum code_file_state code_file__look(struct code_file *file);

/* Marks all bytes before @done as processed. */
void code_file__take(struct code_file *file, uint64_t done);

/* Reads up to @size bytes at @offset. Returns their number. Returns 0 at the end, if the file is
 * unreadable, or if the budget does not allow the read, which sets @file->refused. */
size_t code_file__read(struct code_file *file, uint64_t offset, void *buf, size_t size);

#endif
