/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_FILE_H
#define BRAID_JIT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

/* A file in which a process reports the code that it generates, and which grows meanwhile. The
 * process controls the file, so neither its type nor its contents are trusted. */

#define JIT_FILE_MAX   (1ULL << 30) /* bytes; longer files are not read */
#define JIT_FILE_PRINT 64

/* Maximum size of a copy, in bytes. Files of a file system that may hang are copied into memory. */
#define JIT_FILE_COPY_MAX (64ULL << 20)

struct quota_account; /* core/base/quota.h */

struct jit_file {
	int fd;			       /* -1: not open */
	struct quota_account *account; /* charged for reads; borrowed; may be NULL */
	int refused; /* reason why the last read was refused (-EFBIG, -EINTR); 0: not refused */
	uint64_t dev, ino;
	int64_t copied_ns; /* mtime of a copied file, as a copy does not grow; 0: no copy */
	int64_t mtime_ns;  /* modification time at the last jit_file__look() */
	uint64_t size;	   /* bytes, at the last jit_file__look() */
	uint64_t done;	   /* bytes that were processed */
	uint8_t head[JIT_FILE_PRINT]; /* first bytes of the processed part, */
	uint8_t tail[JIT_FILE_PRINT]; /* and its last; they change if the file is rewritten */
	size_t n_print;
};

enum jit_file_state {
	JIT_FILE_SAME,
	JIT_FILE_GROWN,
	JIT_FILE_REWRITTEN, /* the processed contents are gone; `done` is 0 again */
};

#define JIT_FILE_NONE     \
	(struct jit_file) \
	{                 \
		.fd = -1  \
	}

/* Opens @path below the directory @root_fd, which stands for "/" in links, too. Never blocks. The
 * last component must not be a link. The file must be regular and belong to @uid or to root.
 *
 * Returns 0; -EPERM: wrong type or owner; -ESTALE: last written before @begin_s (CLOCK_REALTIME);
 * -EFBIG: larger than JIT_FILE_COPY_MAX, and needs a copy; -ENOENT, -ELOOP and others as
 * openat2(). Errors set the message in @err. */
int jit_file__open(int root_fd, const char *path, uint32_t uid, int64_t begin_s,
		   struct jit_file *ret, struct err *err);

/* As jit_file__open(), for the file that the process maps at [@start, @end), even if the file was
 * deleted. */
int jit_file__open_mapped(uint32_t pid, uint64_t start, uint64_t end, uint32_t uid, int64_t begin_s,
			  struct jit_file *ret, struct err *err);
void jit_file__close(struct jit_file *file); /* idempotent */

/* Returns true if @path is now another file. */
bool jit_file__is_replaced(const struct jit_file *file, int root_fd, const char *path);

enum jit_file_state jit_file__look(struct jit_file *file);

/* Marks all bytes before @done as processed. */
void jit_file__take(struct jit_file *file, uint64_t done);

/* Reads up to @size bytes at @offset. Returns their number. Returns 0 at the end, if the file is
 * unreadable, or if the budget does not allow the read, which sets @file->refused. */
size_t jit_file__read(struct jit_file *file, uint64_t offset, void *buf, size_t size);

#endif
