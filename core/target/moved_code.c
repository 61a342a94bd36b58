// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/moved_code.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"

#define PAGE_BYTES 4096ULL

/* Pages that are compared, at equal distances, and breakpoints that are accepted in a page.
 * Breakpoints that were in the code when it was copied may differ from the file. */
#define PAGES_COMPARED	64
#define BREAKPOINTS_MAX 64
#define BREAKPOINT	0xcc

/* Maximum distance between segments of one file (2 MB observed, an alignment for huge pages). */
#define GAP_MAX (64ULL << 20)

static uint64_t page_down(uint64_t address)
{
	return address & ~(PAGE_BYTES - 1);
}

/* --- comparison --- */

/* Clips the page at @vaddr to the part that an executable segment has in the file. Returns false if
 * there is none. */
static bool clip(const struct image *image, uint64_t vaddr, uint64_t *ret_from, uint64_t *ret_to)
{
	for (size_t i = 0; i < image->file->n_segments; i++) {
		const struct elf_segment *segment = &image->file->segments[i];

		if (!segment->exec)
			continue;
		*ret_from = max_of(vaddr, segment->vaddr);
		*ret_to = min_of(vaddr + PAGE_BYTES, segment->vaddr + segment->filesz);
		if (*ret_from < *ret_to)
			return true;
	}
	return false;
}

static bool is_same(const uint8_t *memory, const uint8_t *file, size_t n)
{
	size_t breakpoints = 0;

	if (!memcmp(memory, file, n))
		return true;
	for (size_t i = 0; i < n; i++) {
		if (memory[i] == file[i])
			continue;
		if (memory[i] != BREAKPOINT || ++breakpoints > BREAKPOINTS_MAX)
			return false;
	}
	return true;
}

/* Returns true for padding, which proves nothing: all bytes are equal. */
static bool is_uniform(const uint8_t *bytes, size_t n)
{
	return n < 2 || !memcmp(bytes, bytes + 1, n - 1);
}

int moved_code__compare(uint32_t pid, const struct moved_code *moved)
{
	uint64_t n = (moved->end - moved->start + PAGE_BYTES - 1) / PAGE_BYTES, from, to;
	uint64_t n_compared = min_of(n, (uint64_t)PAGES_COMPARED);
	uint8_t memory[PAGE_BYTES], file[PAGE_BYTES];
	bool proves = false;

	for (uint64_t i = 0; i < n_compared; i++) {
		/* the first and the last page are included */
		uint64_t page = n_compared > 1 ? i * (n - 1) / (n_compared - 1) : 0;

		if (!clip(moved->image, moved->start + page * PAGE_BYTES - moved->bias, &from, &to))
			continue;
		to = min_of(to, moved->end - moved->bias);
		if (elf_file__read(moved->image->file, from, file, to - from) ||
		    !procfs__read_memory(pid, from + moved->bias, memory, to - from) ||
		    !is_same(memory, file, to - from))
			return -EAGAIN;
		proves |= !is_uniform(file, to - from);
	}
	return proves ? 0 : -EAGAIN;
}

/* --- search --- */

bool moved_code__narrow(struct moved_code *ret, uint64_t start, uint64_t end)
{
	uint64_t from = UINT64_MAX, to = 0;

	for (size_t i = 0; i < ret->image->file->n_segments; i++) {
		const struct elf_segment *segment = &ret->image->file->segments[i];
		uint64_t first = page_down(segment->vaddr) + ret->bias;
		uint64_t last =
			page_down(segment->vaddr + segment->filesz + PAGE_BYTES - 1) + ret->bias;

		if (!segment->exec || first >= last || first >= end || last <= start)
			continue;
		from = min_of(from, max_of(first, start));
		to = max_of(to, min_of(last, end));
	}
	ret->start = from;
	ret->end = to;
	return from < to;
}

static bool is_same_file(const struct procfs_mapping *a, const struct procfs_mapping *b)
{
	return a->inode == b->inode && a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

/* Returns true if the mapping begins in the segment. */
static bool has_part(const struct elf_segment *segment, const struct procfs_mapping *mapping)
{
	return mapping->offset >= page_down(segment->offset) &&
	       mapping->offset < segment->offset + segment->filesz;
}

static uint64_t bias_of(const struct elf_segment *segment, const struct procfs_mapping *mapping)
{
	return mapping->start - mapping->offset - (segment->vaddr - segment->offset);
}

/* Returns true if the image is loaded with this bias: a segment without code is mapped at its
 * place. A compiler may have mapped a part of the code again, among its generated code. */
static bool is_loaded(const struct procfs_mappings *mappings,
		      const struct procfs_mapping *neighbour, const struct moved_code *moved)
{
	bool has_data = false;

	for (size_t i = 0; i < moved->image->file->n_segments; i++) {
		const struct elf_segment *segment = &moved->image->file->segments[i];

		if (segment->exec)
			continue;
		has_data = true;
		for (size_t k = 0; k < mappings->n_files; k++) {
			const struct procfs_mapping *file = &mappings->files[k];

			if (is_same_file(file, neighbour) && has_part(segment, file) &&
			    bias_of(segment, file) == moved->bias)
				return true;
		}
	}
	return !has_data;
}

/* Tries each segment of the image of which the neighbour may be a part. Sets @ret as
 * moved_code__find() does. */
static int try_image(uint32_t pid, struct image *image, const struct procfs_mappings *mappings,
		     const struct procfs_mapping *mapping, const struct procfs_mapping *neighbour,
		     struct moved_code *ret)
{
	int code = -ENOENT;

	for (size_t i = 0; i < image->file->n_segments && code; i++) {
		const struct elf_segment *segment = &image->file->segments[i];
		struct moved_code moved = { .image = image };
		int compared;

		if (!has_part(segment, neighbour))
			continue;
		moved.bias = bias_of(segment, neighbour);
		if (!moved_code__narrow(&moved, mapping->start, mapping->end) ||
		    !is_loaded(mappings, neighbour, &moved))
			continue;
		compared = moved_code__compare(pid, &moved);
		if (!compared || code == -ENOENT) {
			*ret = moved;
			code = compared;
		}
	}
	return code;
}

static bool is_near(const struct procfs_mapping *mapping, const struct procfs_mapping *neighbour)
{
	if (neighbour->start >= mapping->end) /* a file does not begin with code */
		return neighbour->offset && neighbour->start - mapping->end <= GAP_MAX;
	return neighbour->end <= mapping->start && mapping->start - neighbour->end <= GAP_MAX;
}

int moved_code__find(struct images *images, uint32_t pid, const struct procfs_mappings *mappings,
		     const struct procfs_mapping *mapping, struct moved_code *ret)
{
	const uint32_t neighbours[] = { mapping->below, mapping->above };
	int code = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(neighbours) && code && code != -ENOMEM; i++) {
		const struct procfs_mapping *neighbour;
		struct moved_code moved;
		struct image *image;
		int found;

		if (!neighbours[i] || neighbours[i] > mappings->n_files)
			continue;
		neighbour = &mappings->files[neighbours[i] - 1];
		if (!is_near(mapping, neighbour))
			continue;
		found = images__look(images, pid, neighbour, &image);
		if (!found && image)
			found = try_image(pid, image, mappings, mapping, neighbour, &moved);
		else if (found != -ENOMEM)
			found = -ENOENT;
		if (!found || (found == -EAGAIN && code == -ENOENT))
			*ret = moved;
		if (found != -ENOENT)
			code = found;
	}
	return code;
}

int moved_code__find_copy(uint32_t pid, struct image *image, const struct runtime_range *code,
			  const struct procfs_mapping *mapping, struct moved_code *ret)
{
	uint64_t bytes = page_down(code->end - code->start + PAGE_BYTES - 1);

	if (code->end <= code->start || mapping->end - mapping->start < bytes)
		return -ENOENT;
	*ret = (struct moved_code) { .image = image, .bias = mapping->start - code->start };
	if (!moved_code__narrow(ret, mapping->start, mapping->start + bytes))
		return -ENOENT;
	ret->end = min_of(ret->end, code->end + ret->bias);
	return moved_code__compare(pid, ret);
}
