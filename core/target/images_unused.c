// SPDX-License-Identifier: GPL-2.0-or-later
/* Releases images that no process maps. First the image's table is freed, as it takes the most
 * memory. The image itself is freed only on request of its owner, who ensures that no reference is
 * left. */
#include "core/target/images_state.h"

#include <stdlib.h>

#include "core/base/util.h"
#include "core/kernel/maps.h"

#define UNUSED_AFTER_NS (60 * NSEC_PER_SEC)

void image__use(struct image *image, uint64_t now_ns)
{
	image->used_ns = now_ns;
}

static bool is_unused(const struct images *images, const struct image *image, uint64_t now_ns)
{
	return image != images->vdso && now_ns > image->used_ns + UNUSED_AFTER_NS;
}

/* --- tables --- */

int image__unpark(struct images *images, struct image *image)
{
	image->is_parked = false;
	unwind_table__done(&image->table);
	return image__load_table(images, image, NULL);
}

/* Removes the image's files from the kernel half, which finds the table by them. */
static void hide(const struct images *images, const struct image *image)
{
	for (struct by_file *file = images->by_file; file; file = file->hh.next) {
		if (file->image != image || images->opts.files_fd < 0)
			continue;
		map__delete(images->opts.files_fd, &file->kernel_key);
		if (file->learned.ino)
			map__delete(images->opts.files_fd, &file->learned);
	}
}

static void park(struct images *images, struct image *image, uint64_t now_ns)
{
	hide(images, image);
	image__store_read(images, image);
	insn_reader__free(image->reader);
	image->reader = NULL;
	table_arena__remove(images->opts.table_arena, image->base, image->table.n_words, now_ns);
	image->has_table = false;
	image->is_parked = true;
}

void images__park_unused(struct images *images, uint64_t now_ns)
{
	for (struct image *image = images->first; image; image = image->next)
		if (image->has_table && is_unused(images, image, now_ns))
			park(images, image, now_ns);
}

/* --- images --- */

/* Returns true if a runtime may have probes in the image: their sites belong to an open file. */
static bool has_probes(const struct images *images, const struct image *image)
{
	for (int i = 0; images->opts.runtimes[i]; i++)
		if (image->runtimes[i].detected && images->opts.runtimes[i]->probes)
			return true;
	return false;
}

static void unlink_memory(struct images *images, const struct image *image)
{
	struct by_memory **at = &images->by_memory, *memory;

	while ((memory = *at)) {
		if (memory->image != image) {
			at = &memory->next;
			continue;
		}
		*at = memory->next;
		free(memory);
	}
}

static void unlink_image(struct images *images, const struct image *image)
{
	struct by_build_id *id, *next_id;
	struct by_file *file, *next_file;

	HASH_ITER (hh, images->by_file, file, next_file)
		if (file->image == image) {
			HASH_DEL(images->by_file, file);
			free(file);
		}
	HASH_ITER (hh, images->by_build_id, id, next_id)
		if (id->image == image) {
			HASH_DEL(images->by_build_id, id);
			free(id);
		}
	unlink_memory(images, image);
}

static void release(struct images *images, struct image *image, uint64_t now_ns)
{
	if (image->has_table)
		park(images, image, now_ns);
	else
		hide(images, image);
	unlink_image(images, image);
	images__drop_files(images, image);
	images->slots[image->number - 1] = (struct image_slot) { .released_ns = now_ns };
	image__free(images, image);
}

size_t images__release_unused(struct images *images, uint64_t now_ns)
{
	struct image **at = &images->first, *image;
	size_t n = 0;

	while ((image = *at)) {
		if (!is_unused(images, image, now_ns) || has_probes(images, image)) {
			at = &image->next;
			continue;
		}
		*at = image->next;
		release(images, image, now_ns);
		n++;
	}
	images->stats.known -= n;
	images->stats.released += n;
	return n;
}

uint32_t images__free_number(const struct images *images, uint64_t now_ns)
{
	for (size_t i = 0; i < images->n_slots; i++)
		if (!images->slots[i].image &&
		    now_ns > images->slots[i].released_ns + UNUSED_AFTER_NS)
			return i + 1;
	return images->n_slots + 1;
}
