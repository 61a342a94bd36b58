// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/files/core_elf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/arch/arch.h"
#include "core/base/util.h"

/* Uses pread() and its own checks. libelf maps or reads the whole file, which may have many
 * gigabytes. */
#define SEGMENTS_MAX  65534u /* PN_XNUM - 1: a core file with more is refused */
#define NOTES_MAX     (64u << 20)
#define FILES_MAX     65536u
#define NOTE_ALIGN(n) (((n) + 3) & ~(uint64_t)3)

bool core_elf__read(const struct core_elf *core, void *to, uint64_t size, uint64_t offset)
{
	return fits_in(offset, size, core->size) &&
	       pread(core->fd, to, size, (off_t)offset) == (ssize_t)size;
}

int core_elf__refuse(const char *path, unsigned machine, struct err *err)
{
	return err__set(err, -ENOTSUP,
			"cannot read %s: it is the core file of %s process. braid reads core "
			"files of 64-bit x86-64 processes only",
			path, arch__describe(machine));
}

static int read_head(struct core_elf *core, const char *path, Elf64_Ehdr *ret, struct err *err)
{
	if (!core_elf__read(core, ret, sizeof(*ret), 0) ||
	    memcmp(ret->e_ident, ELFMAG, SELFMAG) != 0)
		return err__set(err, -EBADMSG, "cannot read %s: it is not a core file", path);
	if (ret->e_type != ET_CORE)
		return err__set(err, -EBADMSG,
				"cannot read %s: it is a program or library, not a core file",
				path);
	core->arch = arch__of_machine(ret->e_machine);
	if (!core->arch || ret->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ret->e_ident[EI_DATA] != ELFDATA2LSB)
		return core_elf__refuse(path, ret->e_machine, err);
	return 0;
}

/* --- notes --- */

/* Reads the note at @at into *@ret; *@ret_next is the end of the note with its padding. Returns
 * false if the note is malformed or the notes end. */
static bool note_at(const struct core_elf *core, uint64_t at, struct core_note *ret,
		    uint64_t *ret_next)
{
	Elf64_Nhdr head;
	uint64_t desc;

	if (core->n_notes - at < sizeof(head))
		return false;
	memcpy(&head, core->notes + at, sizeof(head));
	desc = at + sizeof(head) + NOTE_ALIGN((uint64_t)head.n_namesz);
	if (desc > core->n_notes || head.n_descsz > core->n_notes - desc)
		return false;
	*ret = (struct core_note) { head.n_type, core->notes + desc, head.n_descsz };
	*ret_next = min_of(desc + NOTE_ALIGN((uint64_t)head.n_descsz), core->n_notes);
	return true;
}

bool core_elf__next_note(const struct core_elf *core, uint64_t *at, struct core_note *ret)
{
	return note_at(core, *at, ret, at);
}

/* Reads NT_FILE: the count, the page size, an entry (start, end, offset in pages) for each mapping,
 * then their names. Entries before a malformed one stay in use. */
static int read_files(struct core_elf *core, const struct core_note *note)
{
	uint64_t head[2], entry[3];
	const char *name, *end = note->desc + note->size;

	core->is_damaged = true;
	if (note->size < sizeof(head))
		return 0;
	memcpy(head, note->desc, sizeof(head));
	if (head[0] > FILES_MAX || head[0] > (note->size - sizeof(head)) / sizeof(entry))
		return 0;
	core->files = calloc(head[0] + 1, sizeof(*core->files));
	if (!core->files)
		return -ENOMEM;
	name = note->desc + sizeof(head) + head[0] * sizeof(entry);
	for (uint64_t i = 0; i < head[0]; i++) {
		size_t length = strnlen(name, end - name);

		if (name + length == end)
			return 0;
		memcpy(entry, note->desc + sizeof(head) + i * sizeof(entry), sizeof(entry));
		core->files[core->n_files++] =
			(struct core_mapping) { entry[0], entry[1], entry[2] * head[1], name };
		name += length + 1;
	}
	core->is_damaged = false;
	return 0;
}

/* Finds the end of the well-formed notes and reads the first NT_FILE among them. */
static int check_notes(struct core_elf *core)
{
	struct core_note note;
	uint64_t at = 0;
	int ret = 0;

	while (!ret && note_at(core, at, &note, &at))
		if (note.type == NT_FILE && !core->files && !core->is_damaged)
			ret = read_files(core, &note);
	core->is_damaged |= core->n_notes - at >= sizeof(Elf64_Nhdr);
	core->n_notes = at;
	return ret;
}

/* Reads the first segment of notes only: the kernel and gcore write just one. */
static int read_notes(struct core_elf *core, const Elf64_Phdr *segment)
{
	if (core->notes)
		return 0;
	core->is_damaged = segment->p_filesz > NOTES_MAX ||
			   !fits_in(segment->p_offset, segment->p_filesz, core->size);
	if (core->is_damaged)
		return 0;
	core->notes = malloc(segment->p_filesz + 1);
	if (!core->notes)
		return -ENOMEM;
	core->is_damaged = !core_elf__read(core, core->notes, segment->p_filesz, segment->p_offset);
	core->n_notes = core->is_damaged ? 0 : segment->p_filesz;
	return check_notes(core);
}

/* --- the whole file --- */

static int read_segments(struct core_elf *core, const char *path, const Elf64_Ehdr *head,
			 struct err *err)
{
	core->n_segments = head->e_phnum;
	if (!core->n_segments || core->n_segments > SEGMENTS_MAX ||
	    head->e_phentsize != sizeof(Elf64_Phdr))
		return err__set(err, -EBADMSG, "%s is damaged: it has no segments", path);
	core->segments = calloc(core->n_segments, sizeof(*core->segments));
	if (!core->segments)
		return err__set(err, -ENOMEM, "out of memory");
	if (!core_elf__read(core, core->segments, core->n_segments * sizeof(*core->segments),
			    head->e_phoff))
		return err__set(err, -EBADMSG, "%s is truncated: its table of segments is missing",
				path);
	for (size_t i = 0; i < core->n_segments; i++)
		if (core->segments[i].p_type == PT_NOTE && read_notes(core, &core->segments[i]))
			return err__set(err, -ENOMEM, "out of memory");
	return 0;
}

int core_elf__open(int fd, const char *path, struct core_elf *ret, struct err *err)
{
	Elf64_Ehdr head;
	struct stat st;
	int code;

	*ret = (struct core_elf) { .fd = fd };
	/* Reading from a device or a pipe could block forever. */
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		code = err__set(err, -EBADMSG, "%s is not a regular file", path);
		goto out;
	}
	ret->size = st.st_size;
	code = read_head(ret, path, &head, err);
	if (!code)
		code = read_segments(ret, path, &head, err);
out:
	if (code)
		core_elf__close(ret);
	return code;
}

void core_elf__close(struct core_elf *core)
{
	free(core->files);
	free(core->notes);
	free(core->segments);
	close_fd(&core->fd);
	*core = (struct core_elf) { .fd = -1 };
}
