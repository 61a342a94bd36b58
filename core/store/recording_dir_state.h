/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DIR_STATE_H
#define BRAID_RECORDING_DIR_STATE_H

/* For the files of recording_dir.h alone. */

#include "core/store/recording_dir.h"
#include "core/store/recording_name.h"

struct recording_dir_file {
	struct recording_name name;
	uint64_t bytes;
};

struct recording_dir {
	struct recording_dir_opts opts;
	struct recording_dir_stats stats;
	int fd, mark_fd; /* of the directory; of the file that says whose it is, locked */
	struct recording_dir_file *files; /* finished ones, the oldest first */
	size_t n_files, cap_files;
	struct recording_name newest; /* that was given */
	bool has_newest;
	bool told_keeps_none; /* there is room for none */

	/* --- the one that is being written --- */
	struct recording *recording; /* NULL: none */
	struct recording_name writing_name;
	char *writing; /* its path */
};

__attribute__((format(printf, 2, 3))) void recording_dir__note(const struct recording_dir *dir,
							       const char *fmt, ...);

/* Owned by the caller; NULL: out of memory. */
char *recording_dir__path(const struct recording_dir *dir, const char *name);

/* Is it a regular file? All others are not braid's. */
bool recording_dir__is_file(const struct recording_dir *dir, const char *name);

/* A finished one that is newer than all. -ENOMEM. */
int recording_dir__add(struct recording_dir *dir, const struct recording_name *name);

/* One that is whole gets its name, and is newer than all. */
int recording_dir__rename(struct recording_dir *dir, const struct recording_name *name,
			  struct err *err);

/* Removes what is too much. */
int recording_dir__keep_bounds(struct recording_dir *dir, struct err *err);

#endif
