/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IMAGES_H
#define BRAID_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"
#include "core/elf/function_names.h"
#include "core/elf/symbols.h"
#include "core/kernel/table_arena.h"
#include "core/target/procfs.h"
#include "core/target/unread_files.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/runtime.h"

/* Every ELF file that a target maps, once: by file identity, and by its bytes where the build-id is
 * that of another, so that many processes (and copies in other containers) share tables, symbols
 * and runtimes' findings. */

#define RUNTIMES_MAX 32

struct image_runtime { /* what one runtime says of this image */
	bool detected;
	struct runtime_verdict verdict;
	struct runtime_image *image; /* NULL unless usable */
};

struct image {
	struct elf_file *file;
	struct symbols *symbols;
	struct function_names *names; /* from tables (core/target/image_names.h); NULL: not read */
	struct unwind_table table;    /* words are released once they are in the kernel half */
	uint32_t base;		      /* in the table arena */
	bool has_table;
	bool is_parked;		    /* its table was given up, as nobody had mapped it for long */
	uint64_t used_ns;	    /* when it was last known to be mapped by somebody */
	struct code_reader *reader; /* of code whose rules are made later; NULL: none was read */
	uint64_t read_ns; /* when the table got rules that the cache does not have; 0: it has all */
	uint32_t number;  /* from 1 */
	bool is_plain; /* no process that executed it had a runtime so far, and one was looked at */
	bool asked;    /* what follows is known */
	uint32_t places, nameless; /* of its code in stacks; of these, without symbol */
	struct image_runtime runtimes[RUNTIMES_MAX];
	struct image *next; /* all images */
};

/* A file of an image. Copies with the same bytes share one image, but a probe is of one inode. */
struct image_file {
	const struct image *image;
	struct elf_file *file; /* open */
	bool is_first;	       /* image->file, which owns it */
	uint64_t ino;
	int64_t ctime_ns;
	uint64_t number; /* from 1, in the order in which files were met */
	struct image_file *next;
};

struct images;

struct images_opts {
	struct table_arena *table_arena; /* NULL: build no unwind tables */
	int files_fd;			 /* the kernel half's map of files, borrowed; -1: none */
	const char *cache_dir;		 /* NULL: no cache */
	const struct runtime *const *runtimes;
	uint32_t enabled; /* bit n: runtimes[n] looks at images */
};

struct images_stats {
	uint64_t unread;    /* times that a file could not be opened for want of descriptors */
	uint64_t tableless; /* images whose table found no place in the kernel half */
	const char *first_tableless; /* the path of the first; NULL: none */
	uint64_t known, released;    /* images that there are, and were but are no more */
};

int images__new(const struct images_opts *opts, struct images **ret);
void images__free(struct images *images); /* NULL is fine; frees all images */

/* The image of a mapping; borrowed until images__free, or until it is released (below). NULL
 * without an error for memory that no file backs; else a negative errno where the file cannot be
 * opened or is no ELF file for this machine. */
int images__get(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		struct image **ret, struct err *err);

/* As images__get(), for a mapping that may have no code: no file that cannot be opened is noted as
 * unread. */
int images__look(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		 struct image **ret);

/* Once per image: has each runtime say what it is. Not done when an image is opened, since a
 * program that just started should get its unwind tables first: searching the symbols of a large
 * image takes longer than these. -ENOMEM. */
int images__ask_runtimes(struct images *images, struct image *image);

/* A process that is known maps it. */
void image__use(struct image *image, uint64_t now_ns);

/* Makes the rules of the code around the link-time address @vaddr if they are put off
 * (UNWIND_LATER). Returns 1 if the image has another table now, which is to be published, 0 if it
 * has not, or -ENOMEM. */
int images__read_code(struct images *images, struct image *image, uint64_t vaddr);

/* Stores tables in the cache that got more rules, and no further ones for two seconds. */
void images__store_read(struct images *images, uint64_t now_ns);

/* Gives up the tables of those that nobody has used for a while: with the next that maps one it is
 * made again. */
void images__park_unused(struct images *images, uint64_t now_ns);

/* Frees those that nobody has used for as long, as if they had never been; but not an image of a
 * runtime that may have probes there. For an owner that knows that nothing refers to an image that
 * nobody uses: neither what samples were made of, nor an event that is attached in it. How many. */
size_t images__release_unused(struct images *images, uint64_t now_ns);

/* Is a runtime in it, or may one be, as images__ask_runtimes did not ask yet? */
bool image__has_runtime(const struct image *image);

/* NULL: there is none of that number (any more). */
struct image *images__by_number(const struct images *images, uint32_t number);

/* The kernel half knows the file of a mapping of this image by `key`, which it has no image for. It
 * is believed if a file of that image was opened which is the same but for the device. */
void images__learn(struct images *images, const struct image_key *key, const struct image *image);

/* How far link-time addresses of code are from its place in the file. False: not the same for
 * all of it. */
bool image__vaddr_less_offset(const struct image *image, __u64 *ret_distance);

/* Load bias of an image that is mapped like this: address = link-time address + bias. */
uint64_t image__bias(const struct image *image, const struct procfs_mapping *mapping);

/* What could not be opened, until images__free. */
const struct unread_files *images__unread(const struct images *images);

/* Calls @on_file for each file that was met after the file number *@seen, the last one first, and
 * sets *@seen to the number of the last one. Ends with what @on_file returns if that is not 0. */
typedef int (*image_file_fn)(void *ctx, const struct image *image, const struct elf_file *file);
int images__each_new_file(const struct images *images, uint64_t *seen, image_file_fn on_file,
			  void *ctx);

/* Returns the number of the last file that was met; 0: none was. */
uint64_t images__last_file(const struct images *images);

const struct images_stats *images__stats(const struct images *images);
struct image *images__first(const struct images *images); /* then image->next */

#endif
