/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGES_STATE_H
#define BRAID_IMAGES_STATE_H

#include <sys/stat.h>
#include <uthash.h>

#include "core/target/images.h"

/* What the files of images share. */

/* One version of one file. Its owner can set the time of the last change of its contents, but not
 * that of the last change of anything. */
struct file_key {
	uint64_t mount, dev, ino, size;
	int64_t mtime_ns, ctime_ns;
};

struct by_file {
	UT_hash_handle hh;
	struct file_key key;
	struct image_key kernel_key;
	struct image_key learned; /* images__learn; ino 0: there is none */
	struct image *image;	  /* NULL: not usable, with error */
	int error;
};

struct by_memory { /* an image that was copied from a process's memory */
	struct by_memory *next;
	uint32_t uid; /* of that process */
	struct image *image;
};

struct by_build_id {
	UT_hash_handle hh;
	uint8_t id[ELF_BUILD_ID_MAX];
	struct stat opened; /* its file, before anything of it was read */
	struct image *image;
};

/* A number, which is given again some time after its image is gone: there may be records on their
 * way that are about that one. */
struct image_slot {
	struct image *image;  /* NULL: released ... */
	uint64_t released_ns; /* ... then */
};

struct images {
	struct images_opts opts;
	struct by_file *by_file;
	struct by_build_id *by_build_id;
	struct by_memory *by_memory;
	struct image *first, *vdso;
	struct image_file *files; /* the last one first */
	uint64_t n_files;	  /* ever */
	struct image_slot *slots; /* by number, from 1 */
	size_t n_slots, cap_slots;
	struct unread_files *unread;
	struct images_stats stats;
};

/* Stores the image's table if it has rules that the cache does not have (images_code.c). */
void image__store_read(const struct images *images, struct image *image);

/* Forgets the files of the image, or of all images if that is NULL. */
void images__drop_files(struct images *images, const struct image *image);

/* Which is in no list any more. */
void image__free(const struct images *images, struct image *image);

/* Adds an image of @file, which is taken. @root as in symbols__new. */
int images__add(struct images *images, struct elf_file *file, const char *root, struct image **ret,
		struct err *err);

/* Its table is in the kernel half, if there is one and if there is room. -ENOMEM. */
int image__load_table(struct images *images, struct image *image, struct err *err);

/* The first number that may be given: n_slots + 1 if that takes another slot. */
uint32_t images__free_number(const struct images *images, uint64_t now_ns);

/* It is mapped anew after its table was given up. */
int image__unpark(struct images *images, struct image *image);

#endif
