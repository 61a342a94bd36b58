// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/usdt.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"

#define NOTE_OWNER "stapsdt"
#define NOTE_TYPE  3 /* NT_STAPSDT, <sys/sdt.h>: _SDT_NOTE_TYPE */
#define SITES_MAX  65536

/* The start of a note's descriptor; three strings follow. */
struct addresses {
	uint64_t pc, base, semaphore;
};

/* Returns the string at *@at, and moves *@at after its NUL. Returns NULL if there is no NUL before
 * @end. */
static const char *take_string(const char **at, const char *end)
{
	const char *text = *at, *nul = memchr(text, '\0', end - text);

	if (nul)
		*at = nul + 1;
	return nul ? text : NULL;
}

static int parse_descriptor(const char *desc, size_t size, uint64_t base_vaddr,
			    struct usdt_site *ret)
{
	const char *at = desc + sizeof(struct addresses), *end = desc + size;
	struct addresses note;

	if (size < sizeof(note))
		return -EBADMSG;
	memcpy(&note, desc, sizeof(note));
	ret->provider = take_string(&at, end);
	ret->name = ret->provider ? take_string(&at, end) : NULL;
	ret->arguments = ret->name ? take_string(&at, end) : NULL;
	if (!ret->arguments)
		return -EBADMSG;
	/* Notes are not loaded, and prelink does not adjust them. It moves the section, whose
	 * address shows the distance. */
	if (base_vaddr) {
		note.pc += base_vaddr - note.base;
		note.semaphore += note.semaphore ? base_vaddr - note.base : 0;
	}
	ret->pc_vaddr = note.pc;
	ret->semaphore_vaddr = note.semaphore;
	return 0;
}

static int add_site(struct usdt_sites *sites, const char *desc, size_t size, uint64_t base_vaddr)
{
	if (sites->n == SITES_MAX)
		return -E2BIG;
	if (array__reserve(&sites->list, &sites->cap, sites->n + 1, sizeof(*sites->list)))
		return -ENOMEM;
	if (parse_descriptor(desc, size, base_vaddr, &sites->list[sites->n]))
		return -EBADMSG;
	sites->n++;
	return 0;
}

/* Reads all notes. libelf checks that each note's name and descriptor lie in the section. */
static int read_notes(Elf_Data *data, uint64_t base_vaddr, struct usdt_sites *sites)
{
	size_t at = 0, next, name_at, desc_at;
	const char *notes = data->d_buf;
	GElf_Nhdr note;
	int ret;

	for (; at < data->d_size; at = next) {
		next = gelf_getnote(data, at, &note, &name_at, &desc_at);
		if (next <= at)
			return -EBADMSG;
		if (note.n_type != NOTE_TYPE || note.n_namesz != sizeof(NOTE_OWNER) ||
		    memcmp(notes + name_at, NOTE_OWNER, sizeof(NOTE_OWNER)) != 0)
			continue;
		ret = add_site(sites, notes + desc_at, note.n_descsz, base_vaddr);
		if (ret)
			return ret;
	}
	return 0;
}

int usdt__read(const struct elf_file *file, struct usdt_sites *ret_sites, struct err *err)
{
	Elf_Data *notes = elf_file__section(file, ".note.stapsdt", NULL);
	struct usdt_sites sites = {};
	GElf_Shdr base = {};
	int ret = 0;

	elf_file__section(file, ".stapsdt.base", &base);
	if (notes && notes->d_type != ELF_T_NHDR && notes->d_type != ELF_T_NHDR8)
		ret = -EBADMSG; /* not of type SHT_NOTE: libelf would not check it */
	if (notes && !ret)
		ret = read_notes(notes, base.sh_addr, &sites);
	if (!ret) {
		*ret_sites = sites;
		return 0;
	}
	usdt_sites__done(&sites);
	return err__set(err, ret, "%s: %s", file->path,
			ret == -ENOMEM	? "out of memory"
			: ret == -E2BIG ? "too many probe sites"
					: "malformed probe notes (.note.stapsdt)");
}

void usdt_sites__done(struct usdt_sites *sites)
{
	free(sites->list);
	*sites = (struct usdt_sites) {};
}
