// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads machine code of images where samples fall (core/insn/insn_rows.h). Each block that is read
 * gives the image a new table. */
#include "core/target/images_state.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/target/image_files.h"

#define STORE_AFTER_NS (2 * NSEC_PER_SEC)

/* Copies the image's table with its words, which the caller owns. Returns 0 or -ENOMEM. */
static int copy_table(const struct images *images, const struct image *image,
		      struct unwind_table *ret)
{
	*ret = image->table;
	ret->words = malloc((size_t)ret->n_words * sizeof(*ret->words));
	if (!ret->words)
		return -ENOMEM;
	table_arena__read(images->opts.table_arena, image->base, ret->n_words, ret->words);
	return 0;
}

/* Publishes the files by which the kernel half finds the table. */
static void publish_files(const struct images *images, const struct image *image)
{
	for (struct by_file *file = images->by_file; file; file = file->hh.next) {
		if (file->image != image || images->opts.files_fd < 0)
			continue;
		image_files__publish(images->opts.files_fd, &file->kernel_key, image);
		if (file->learned.ino)
			image_files__publish(images->opts.files_fd, &file->learned, image);
	}
}

/* Replaces the image's table by the new one. Takes ownership of its words. Returns 0 or a negative
 * errno. */
static int replace_table(struct images *images, struct image *image, struct unwind_table *table)
{
	uint64_t now = now_ns();
	uint32_t base, words = image->table.n_words;
	int ret = table_arena__add(images->opts.table_arena, table, now, &base);

	free(table->words);
	table->words = NULL;
	if (ret)
		return ret;
	table_arena__remove(images->opts.table_arena, image->base, words, now);
	image->table = *table;
	image->base = base;
	image->read_ns = now;
	publish_files(images, image);
	return 0;
}

static int read_block(struct image *image, const struct unwind_table *old, uint64_t vaddr,
		      struct unwind_table *ret)
{
	int code = 0;

	if (unwind_table__find(old, vaddr)->kind != UNWIND_LATER)
		return -EALREADY;
	if (!image->reader)
		code = insn_reader__new(image->file, &image->reader);
	return code ? code : unwind_table__add_block(old, image->reader, vaddr, ret);
}

int images__read_code(struct images *images, struct image *image, uint64_t vaddr)
{
	struct unwind_table old, table;
	struct quota_account *previous;
	int ret;

	if (!image->has_table || copy_table(images, image, &old))
		return 0;
	previous = quota__enter(image->file->account);
	ret = read_block(image, &old, vaddr, &table);
	quota__leave(previous);
	elf_file__drop(image->file);
	free(old.words);
	table.own_start = old.own_start;
	table.own_end = old.own_end;
	if (!ret)
		ret = replace_table(images, image, &table);
	return ret == -ENOMEM ? ret : !ret;
}

void image__store_read(const struct images *images, struct image *image)
{
	struct unwind_table table;

	if (!image->read_ns || !image->has_table || copy_table(images, image, &table))
		return;
	image->read_ns = 0;
	unwind_table__store(image->file, images->opts.cache_dir, &table);
	elf_file__drop(image->file);
	free(table.words);
}

void images__store_read(struct images *images, uint64_t now_ns)
{
	for (struct image *image = images->first; image; image = image->next)
		if (image->read_ns && now_ns > image->read_ns + STORE_AFTER_NS)
			image__store_read(images, image);
}
