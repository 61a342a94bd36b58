// SPDX-License-Identifier: GPL-2.0-or-later
/* Code of the test program, copied to anonymous memory between two parts of its file. */
#include "core/target/moved_code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define PAGE 4096UL
#define ROOM (64UL << 20)

static const struct runtime *const no_runtimes[] = { NULL };
static struct images *images;
static const struct elf_segment *text; /* the executable segment */
static uint64_t base, bytes;	       /* reserved address space; size of `text` */

static uint64_t down(uint64_t value)
{
	return value & -PAGE;
}

/* Maps [@offset, @offset + @size) of the file to the address that a loader would use. */
static bool map_part(int fd, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	return mmap((void *)(base + down(vaddr)), size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd,
		    down(offset)) != MAP_FAILED;
}

static uint8_t *code(void)
{
	return (uint8_t *)(base + down(text->vaddr));
}

/* Maps all segments of the file, with the code in anonymous memory. */
static bool lay_out(const struct elf_file *file)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool good = fd >= 0;

	base = (uintptr_t)mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec)
			text = segment;
		else
			good &= map_part(fd, segment->vaddr, segment->offset,
					 segment->filesz + segment->vaddr % PAGE);
	}
	good &= text != NULL;
	bytes = good ? down(text->filesz + text->vaddr % PAGE + PAGE - 1) : 0;
	good = good && mmap(code(), bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
	good = good && pread(fd, code(), bytes, down(text->offset)) > 0;
	close(fd);
	return good;
}

static int find(struct moved_code *ret)
{
	struct procfs_mappings mappings = {};
	int found = -ESRCH;

	mprotect(code(), bytes, PROT_READ | PROT_WRITE | PROT_EXEC);
	procfs__mappings(getpid(), &mappings);
	for (size_t i = 0; i < mappings.n; i++)
		if (mappings.list[i].start == (uintptr_t)code())
			found = moved_code__find(images, getpid(), &mappings, &mappings.list[i],
						 ret);
	procfs_mappings__done(&mappings);
	return found;
}

static void test_changes(void)
{
	struct moved_code moved = {};
	uint8_t *last = code() + down(bytes - 1), before = last[16];
	uint64_t n = text->filesz + text->vaddr % PAGE;

	is_int(find(&moved), 0, "the file is found");
	is_int(moved.bias, base, "with its bias");
	is_int(moved.start, (uintptr_t)code(), "from the first page");
	is_int(moved.end, (uintptr_t)code() + bytes, "to the last one");
	last[16] = before == 1 ? 2 : 1;
	is_int(find(&moved), n - down(bytes - 1) > 16 ? -EAGAIN : 0, "other bytes are no proof");
	is_int(moved.bias, base, "but tell which file it may be");
	last[16] = 0xcc;
	is_int(find(&moved), 0, "a breakpoint is none of the file's bytes");
	last[16] = before;
	memset(code(), 0, bytes);
	is_int(find(&moved), -EAGAIN, "nothing was copied yet");
}

/* No code counts as moved if neither neighbour is the file. */
static void test_alone(void)
{
	struct moved_code moved = {};

	munmap((void *)base, down(text->vaddr));
	munmap(code() + bytes, ROOM - down(text->vaddr) - bytes);
	ok(find(&moved) == -ENOENT, "without neighbours there is no file");
}

int main(void)
{
	const struct images_opts opts = { .files_fd = -1, .runtimes = no_runtimes };
	struct elf_file *file;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (images__new(&opts, &images) || elf_file__open(fd, "self", &file, NULL))
		return 1;
	if (!ok(lay_out(file), "a program whose code was moved"))
		return tap__done();
	test_changes();
	test_alone();
	elf_file__free(file);
	images__free(images);
	return tap__done();
}
