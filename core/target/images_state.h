/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGES_STATE_H
#define BRAID_IMAGES_STATE_H

#include <sys/stat.h>
#include <uthash.h>

#include "core/target/images.h"

/* Definitions that the files of images share. */

/* One version of one file. Its owner can set mtime, but not ctime. */
struct file_key {
	uint64_t mount, dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

struct by_file {
	UT_hash_handle hh;
	struct file_key key;
	struct image_key kernel_key;
	struct image_key learned; /* from images__learn(); ino 0: none */
	struct image *image;	  /* NULL: unusable, see `error` */
	int error;
};

struct by_memory { /* an image that was copied from a process's memory */
	struct by_memory *next;
	uint32_t uid; /* user of that process */
	struct image *image;
};

struct by_build_id {
	UT_hash_handle hh;
	uint8_t id[ELF_BUILD_ID_MAX];
	struct stat opened; /* state of its file before the first read */
	struct image *image;
};

/* A number of an image. The number is reused some time after its image is released, as pending
 * records may still refer to the image. */
struct image_slot {
	struct image *image;  /* NULL: released ... */
	uint64_t released_ns; /* ... at this time */
};

struct images {
	struct images_opts opts;
	struct by_file *by_file;
	struct by_build_id *by_build_id;
	struct by_memory *by_memory;
	struct image *first, *vdso;
	struct image_file *files; /* newest first */
	uint64_t n_files;	  /* files ever added */
	struct image_slot *slots; /* by number, from 1 */
	size_t n_slots, cap_slots;
	struct unread_files *unread;
	struct images_stats stats;
};

/* Stores the image's table if it has rules that are missing in the cache (images_code.c). */
void image__store_read(const struct images *images, struct image *image);

/* Removes the files of @image, or of all images if @image is NULL. */
void images__drop_files(struct images *images, const struct image *image);

/* Frees the image, which must be in no list. */
void image__free(const struct images *images, struct image *image);

/* Adds an image of @file, and takes ownership of @file. @root is as in symbols__new(). */
int images__add(struct images *images, struct elf_file *file, const char *root, struct image **ret,
		struct err *err);

/* Builds the image's table and puts it into the kernel half, if it fits. Returns 0, -EINTR or
 * -ENOMEM. */
int image__load_table(struct images *images, struct image *image, struct err *err);

/* Returns the first free number; n_slots + 1 if that needs a new slot. */
uint32_t images__free_number(const struct images *images, uint64_t now_ns);

/* Builds the table again for an image that is mapped after its table was freed. */
int image__unpark(struct images *images, struct image *image);

#endif
