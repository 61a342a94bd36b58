// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/insn_padding.h"
#include "core/insn/insn_starts.h"

#define BLOCK_BYTES (64 << 10)

/* Limit of a file that is stored whole, because names and tables matter. Larger ones are not worth
 * their disk space. musl itself has 700 KB. */
#define WHOLE_BYTES_MAX (4 << 20)

int file__read(int fd, void *buf, size_t len)
{
	char *at = buf;
	ssize_t n;

	while (len) {
		n = read(fd, at, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
	return 0;
}

int file__write(int fd, const void *buf, size_t len)
{
	const char *at = buf;
	ssize_t n;

	while (len) {
		n = write(fd, at, len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			len -= n;
		}
	}
	return 0;
}

struct facts {
	uint64_t *list; /* owned */
	size_t n, cap;
	bool full; /* out of memory */
};

static void add(struct facts *facts, uint64_t fact)
{
	if (array__reserve(&facts->list, &facts->cap, facts->n + 1, sizeof(*facts->list)))
		facts->full = true;
	else
		facts->list[facts->n++] = fact;
}

/* Adds the addresses of code: segments and executable sections. */
static void add_places(struct facts *facts, const struct elf_file *file)
{
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	add(facts, file->n_segments);
	for (size_t i = 0; i < file->n_segments; i++) {
		add(facts, file->segments[i].exec);
		add(facts, file->segments[i].vaddr);
		add(facts, file->segments[i].memsz);
		add(facts, file->segments[i].filesz);
	}
	while ((section = elf_nextscn(file->elf, section))) {
		if (!gelf_getshdr(section, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR))
			continue;
		add(facts, shdr.sh_type);
		add(facts, shdr.sh_addr);
		add(facts, shdr.sh_size);
	}
}

/* Adds the results that insn_starts__find() derives from the rest of the file. */
static int add_starts(struct facts *facts, const struct elf_file *file,
		      const struct insn_ranges *ranges)
{
	struct insn_starts starts;
	int rc = insn_starts__find(file, ranges, &starts);

	for (size_t i = 0; i < starts.n; i++) {
		add(facts, starts.list[i].vaddr);
		add(facts, starts.list[i].how);
		add(facts, starts.list[i].site);
	}
	insn_starts__done(&starts);
	return rc;
}

/* Adds the short gaps between functions that contain code, which frame descriptions do not show. */
static int add_gaps(struct facts *facts, const struct elf_file *file)
{
	struct insn_padding *padding = calloc(1, sizeof(*padding));
	struct cfi_entries entries = {};
	int rc = padding ? cfi_entries__read(file, &entries, NULL) : -ENOMEM;

	if (padding)
		padding->file = file;
	for (size_t i = 0; padding && i < entries.n_fdes; i++)
		if (insn_padding__has_code(padding, &entries.fdes[i]))
			add(facts, entries.fdes[i].start);
	cfi_entries__done(&entries);
	free(padding);
	return rc == -EBADMSG ? 0 : rc;
}

static int read_sections(const struct elf_file *file, struct facts *facts, struct iovec *ret)
{
	static const char *const names[] = { ".eh_frame", ".debug_frame" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		GElf_Shdr shdr;
		Elf_Data *data = elf_file__section(file, names[i], &shdr);

		add(facts, data ? shdr.sh_addr : 0);
		add(facts, data ? data->d_size : 0);
		if (data)
			ret[i] = (struct iovec) { data->d_buf, data->d_size };
	}
	return facts->full ? -ENOMEM : 0;
}

static int read_whole(const struct elf_file *file, struct unwind_source *ret)
{
	if (file->size > WHOLE_BYTES_MAX)
		return -EFBIG;
	ret->code = malloc(file->size + 1);
	if (!ret->code)
		return -ENOMEM;
	ret->parts[3] = (struct iovec) { ret->code, file->size };
	return elf_file__read_at(file, 0, ret->code, file->size);
}

/* Checks ranges, which may come from a cache file. Returns 0 and their total size, or -EBADMSG. */
static int check_ranges(const struct insn_ranges *ranges, size_t *ret_bytes)
{
	size_t bytes = 0;

	for (size_t i = 0; i < ranges->n; i++) {
		const struct insn_range *range = &ranges->list[i];

		if (range->end <= range->start ||
		    !fits_in(bytes, range->end - range->start, INSN_BYTES_MAX))
			return -EBADMSG;
		bytes += range->end - range->start;
	}
	*ret_bytes = bytes;
	return 0;
}

static int read_code(const struct elf_file *file, const struct insn_ranges *ranges, size_t size,
		     struct unwind_source *ret)
{
	size_t at = 0;
	int rc = 0;

	ret->code = malloc(size + 1);
	if (!ret->code)
		return -ENOMEM;
	for (size_t i = 0; i < ranges->n && !rc; i++) {
		const struct insn_range *range = &ranges->list[i];
		size_t n = range->end - range->start;

		rc = elf_file__read(file, range->start, ret->code + at, n) ? -EBADMSG : 0;
		at += n;
	}
	ret->parts[3] = (struct iovec) { ret->code, size };
	return rc;
}

int unwind_source__read(const struct elf_file *file, const struct insn_ranges *ranges,
			struct unwind_source *ret)
{
	struct unwind_source source = {};
	struct facts facts = {};
	size_t bytes = 0;
	int rc = ranges->named ? 0 : check_ranges(ranges, &bytes);

	add_places(&facts, file);
	if (!rc && !ranges->named)
		rc = add_starts(&facts, file, ranges) ?: add_gaps(&facts, file);
	if (!rc)
		rc = read_sections(file, &facts, source.parts + 1);
	source.facts = facts.list;
	source.parts[0] = (struct iovec) { facts.list, facts.n * sizeof(*facts.list) };
	if (!rc)
		rc = ranges->named ? read_whole(file, &source)
				   : read_code(file, ranges, bytes, &source);
	for (size_t i = 0; i < ARRAY_SIZE(source.parts); i++)
		source.bytes += source.parts[i].iov_len;
	if (rc)
		unwind_source__done(&source);
	*ret = source;
	return rc;
}

void unwind_source__done(struct unwind_source *source)
{
	free(source->facts);
	free(source->code);
	*source = (struct unwind_source) {};
}

int unwind_source__compare(const struct unwind_source *source, int fd)
{
	char *block = malloc(BLOCK_BYTES);
	int rc = block ? 0 : -ENOMEM;

	for (size_t i = 0; i < ARRAY_SIZE(source->parts) && !rc; i++) {
		const struct iovec *part = &source->parts[i];

		for (size_t at = 0, n; at < part->iov_len && !rc; at += n) {
			n = min_of(part->iov_len - at, (size_t)BLOCK_BYTES);
			rc = file__read(fd, block, n);
			if (!rc && memcmp(block, (const char *)part->iov_base + at, n) != 0)
				rc = -EBADMSG;
		}
	}
	free(block);
	return rc;
}

int unwind_source__write(const struct unwind_source *source, int fd)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_SIZE(source->parts) && !rc; i++)
		rc = file__write(fd, source->parts[i].iov_base, source->parts[i].iov_len);
	return rc;
}
