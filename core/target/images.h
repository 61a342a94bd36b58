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
#include "core/elf/thread_variable.h"
#include "core/kernel/table_arena.h"
#include "core/target/procfs.h"
#include "core/target/unread_files.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/runtime.h"

/* Images: each ELF file that targets map has one image. Files are identified by file identity.
 * Files with the same build-id share one image if their bytes are equal. So processes, and copies
 * in other containers, share tables, symbols and the findings of runtimes. */

#define RUNTIMES_MAX 32

struct image_runtime { /* findings of one runtime about this image */
	bool detected;
	struct runtime_verdict verdict;
	struct runtime_image *image; /* NULL unless usable */
};

struct image {
	struct elf_file *file;
	struct symbols *symbols;
	struct function_names *names; /* from tables (image_names.h); NULL: not read */
	struct unwind_table table;    /* words are freed once they are in the kernel half */
	uint32_t base;		      /* index in the table arena */
	bool has_table;
	bool is_parked;		    /* its table was freed, as it was unmapped for long */
	uint64_t used_ns;	    /* last time at which it was seen mapped */
	struct insn_reader *reader; /* reader for deferred rules; NULL: none was read */
	uint64_t read_ns; /* time of the newest rules that the cache lacks; 0: it has all */
	uint32_t number;  /* number from 1 */
	bool is_plain;	  /* examined, and no process that executed it had a runtime so far */
	bool queried;	  /* `runtimes`, `has_context` are valid */
	bool has_context; /* it defines the variable of request contexts */
	struct thread_variable context; /* that variable */
	uint32_t places, nameless;	/* places in its code in stacks; those without symbol */
	struct image_runtime runtimes[RUNTIMES_MAX];
	struct image *next; /* next in the list of all images */
};

/* A file of an image. Copies with the same bytes share one image, but a probe belongs to one inode.
 */
struct image_file {
	const struct image *image;
	struct elf_file *file; /* open */
	bool is_first;	       /* is image->file, and owned by the image */
	uint64_t ino;
	int64_t ctime_ns;
	uint64_t number; /* from 1, in the order of their first opening */
	struct image_file *next;
};

struct images;

struct images_opts {
	struct table_arena *table_arena; /* NULL: build no unwind tables */
	int files_fd;			 /* the kernel half's map of files; borrowed; -1: none */
	const char *cache_dir;		 /* NULL: no cache */
	const struct runtime *const *runtimes;
	uint32_t enabled; /* bit n: runtimes[n] examines images */
};

struct images_stats {
	uint64_t unread;    /* number of files that could not be opened for lack of descriptors */
	uint64_t tableless; /* images whose table did not fit into the kernel half */
	const char *first_tableless; /* path of the first of them; NULL: none */
	uint64_t known, released;    /* present images, and released ones */
};

int images__new(const struct images_opts *opts, struct images **ret);
void images__free(struct images *images); /* NULL is fine; frees all images */

/* Finds or opens the image of a mapping. *@ret is borrowed until images__free(), or until the image
 * is released (below). *@ret is NULL without an error for memory without a file. Returns 0, or a
 * negative errno if the file cannot be opened or is not an ELF file for this architecture. */
int images__get(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		struct image **ret, struct err *err);

/* As images__get(), for a mapping that may have no code: files that cannot be opened are not
 * counted as unread. */
int images__look(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		 struct image **ret);

/* As images__get(), for the file with this path in the root of process @pid, which may map the file
 * later. The kernel half finds the image then. *@ret is not NULL if 0 is returned. */
int images__read_ahead(struct images *images, uint32_t pid, const char *path, struct image **ret);

/* Lets each runtime examine the image, once per image. Separate from the opening of an image, as a
 * new program needs its unwind tables first. The search of a large image's symbols takes longer
 * than the tables. Returns 0 or -ENOMEM. */
int images__ask_runtimes(struct images *images, struct image *image);

/* Marks the image as mapped by a tracked process. */
void image__use(struct image *image, uint64_t now_ns);

/* Makes the rules of the code around the link-time address @vaddr if they were deferred
 * (UNWIND_LATER). Returns 1: the image has a new table, which must be published; 0: no change; or
 * -ENOMEM. */
int images__read_code(struct images *images, struct image *image, uint64_t vaddr);

/* Stores tables in the cache that have got new rules, if the newest rules are at least two seconds
 * old. */
void images__store_read(struct images *images, uint64_t now_ns);

/* Frees the tables of images that no process has used for 60 s. The table is made again when a
 * process maps the image. */
void images__park_unused(struct images *images, uint64_t now_ns);

/* Frees images that no process has used for 60 s, except those of runtimes that may have probes
 * there. The caller must ensure that no results of samples and no attached event refer to unused
 * images. Returns the number of freed images. */
size_t images__release_unused(struct images *images, uint64_t now_ns);

/* Returns true if the image has a runtime, or if images__ask_runtimes() was not called for it. */
bool image__has_runtime(const struct image *image);

/* Returns the image with this number, or NULL if there is none or if it was released. */
struct image *images__by_number(const struct images *images, uint32_t number);

/* Publishes the image under @key, by which the kernel half reported a mapping of the image. Ignored
 * unless an opened file of the image has the same key except for the device. */
void images__learn(struct images *images, const struct image_key *key, const struct image *image);

/* Sets the distance between link-time addresses of code and file positions. Returns false if it
 * varies within the image. */
bool image__vaddr_less_offset(const struct image *image, __u64 *ret_distance);

/* Returns the load bias of an image with this mapping: address = link-time address + bias. */
uint64_t image__bias(const struct image *image, const struct procfs_mapping *mapping);

/* Returns the files that could not be opened. Borrowed until images__free(). */
const struct unread_files *images__unread(const struct images *images);

/* Calls @on_file for each file with a number above *@seen, the newest first, and sets *@seen to the
 * newest number. Stops if @on_file returns nonzero, and returns that value. */
typedef int (*image_file_fn)(void *ctx, const struct image *image, const struct elf_file *file);
int images__each_new_file(const struct images *images, uint64_t *seen, image_file_fn on_file,
			  void *ctx);

/* Returns the number of the newest file; 0: none. */
uint64_t images__last_file(const struct images *images);

const struct images_stats *images__stats(const struct images *images);
struct image *images__first(const struct images *images); /* next: image->next */

#endif
