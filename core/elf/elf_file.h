/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ELF_FILE_H
#define BRAID_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* One ELF file, open for reading. Contents are untrusted: everything is bounds-checked, and a
 * malformed file yields -EBADMSG, never a crash. Only 64-bit little-endian files of the machine
 * that this build unwinds are supported. Other machines and classes yield -ENOTSUP, files that are
 * not ELF -ENOEXEC. */

#define ELF_BUILD_ID_MAX 64

struct elf_segment {		 /* one PT_LOAD */
	uint64_t offset, filesz; /* in the file */
	uint64_t vaddr, memsz;
	bool exec;
};

struct arch;	      /* core/arch/arch.h */
struct loaded;	      /* core/elf/elf_section.c */
struct elf_generated; /* core/elf/elf_generated.h */
struct quota_account; /* core/base/quota.h */

struct elf_file {
	int fd;			       /* owned; -1 for memory images */
	uint64_t size;		       /* bytes of the whole file */
	struct quota_account *account; /* account of all reads; NULL: no limits */
	struct loaded **loaded;	       /* contents of the sections read so far */
	Elf *elf;		       /* headers only */
	struct elf_generated
		*generated; /* owned; headers of a file without section headers; else NULL */
	char *path;	    /* for messages and labels, as the target sees it */
	uint8_t build_id[ELF_BUILD_ID_MAX];
	size_t build_id_len; /* 0: none */
	uint16_t type;	     /* ET_EXEC or ET_DYN; ET_REL and others only if any_type */
	bool any_type;
	bool any_machine; /* machines of core/arch are accepted; else only that of this build */
	const struct arch *arch; /* the file's machine */
	struct elf_segment *segments;
	size_t n_segments;
};

/* Opens a file. Takes ownership of @fd and closes it also on failure. Copies @path. */
int elf_file__open(int fd, const char *path, struct elf_file **ret, struct err *err);

/* As elf_file__open(), for an ELF file of any type: also an object, or split debug information. */
int elf_file__open_any(int fd, const char *path, struct elf_file **ret, struct err *err);

/* As elf_file__open(), for the file of any machine in core/arch. */
int elf_file__open_foreign(int fd, const char *path, struct elf_file **ret, struct err *err);

/* Opens a copy of @data (the vDSO). */
int elf_file__open_memory(const void *data, size_t size, const char *path, struct elf_file **ret,
			  struct err *err);

/* Opens @data, which malloc() returned. Takes ownership of @data, also on failure. Charges reads to
 * @account, and the memory as QUOTA_RETAINED. @account is borrowed; the file has its own reference.
 */
int elf_file__take_memory(void *data, size_t size, const char *path, struct quota_account *account,
			  struct elf_file **ret, struct err *err);

void elf_file__free(struct elf_file *file); /* NULL is fine */

/* Frees all data that elf_file__section() returned; the caller must not use them any more. A later
 * call reads them again. */
void elf_file__drop(const struct elf_file *file);

/* Converts a file offset to a link-time virtual address, through the PT_LOAD that contains it.
 * Returns false if there is none. */
bool elf_file__offset_to_vaddr(const struct elf_file *file, uint64_t offset, uint64_t *ret_vaddr);

/* Returns a section by name, decompressed if needed. NULL if it is absent, empty (SHT_NOBITS),
 * malformed or over the budget, or if the work must stop (stop__is_due()). Borrowed until
 * elf_file__free(). @ret_shdr may be NULL. */
Elf_Data *elf_file__section(const struct elf_file *file, const char *name, GElf_Shdr *ret_shdr);

/* Copies entry @i of a section whose entries have @size bytes each. Returns false after the last
 * entry, or without data. Accessors of gelf.h must not be used: they assume that libelf allocated
 * the Elf_Data. */
bool elf_file__entry(const Elf_Data *data, size_t i, void *to, size_t size);

/* Copies @len bytes at virtual address @vaddr from the file. Returns 0, -EFAULT if the file does
 * not contain all of them, -EFBIG over the budget, or -EINTR if the work must stop. */
int elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);

/* As elf_file__read(), at a file offset. */
int elf_file__read_at(const struct elf_file *file, uint64_t offset, void *buf, size_t len);

/* Finds a defined symbol by its exact name in .dynsym, then in .symtab. Returns 0 or -ENOENT.
 * @ret_size may be NULL. */
int elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
			  uint64_t *ret_size);

#endif
