/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SYMBOLS_H
#define BRAID_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* Names, lines and inlined frames of one image, from the best of: the file's own .symtab and
 * .dynsym, .gnu_debugdata, a separate debug file found by build-id or debuglink, DWARF.
 * Sources are opened at the first resolve. */
struct symbols;

#define SYMBOL_INLINES_MAX 32

struct symbol_frame {
	const char *function; /* demangled; borrowed until the next fetch, or the end */
	const char *file;     /* source path as in DWARF, or NULL */
	uint32_t line;	      /* 0: unknown */
	bool inlined;	      /* inlined into the entry that follows it */
};

/* Creates the symbols of @file, which is borrowed until symbols__free(). @root is a directory that
 * precedes all paths of debug files ("/proc/4711/root" for another mount namespace; "" for braid's
 * own). If a debug file is not found below @root, braid's own root is searched. Returns 0 or
 * -ENOMEM; an image without symbols is no error. */
int symbols__new(const struct elf_file *file, const char *root, struct symbols **ret);
/* Searches debug files below the root only. For a recorded target, whose images are unrelated to
 * the debug files of this machine. */
void symbols__stay_below_root(struct symbols *symbols);
void symbols__free(struct symbols *symbols); /* NULL is fine */

/* Resolves one link-time virtual address. Entries are innermost first; the last is the function
 * that owns the machine code. Returns their number, at most @max, or 0 if no symbol's [start,
 * start+size) contains the address: never the nearest wrong one. A symbol of size 0 (hand-written
 * assembly) extends to the next symbol or the end of its section, whichever is first. If only
 * exported symbols are available, it extends no further than its code. Returns -ENOMEM, or -EINTR
 * if the work must stop; a later call may succeed. */
int symbols__resolve(struct symbols *symbols, uint64_t vaddr, struct symbol_frame *ret, size_t max);

/* Returns true if only .dynsym names the file's code, so that a debug server may help. Valid after
 * a resolve. */
bool symbols__is_stripped(const struct symbols *symbols);

/* A source of debug files outside this machine. @open returns 0 and the file with this build-id, or
 * a negative errno. The caller frees the file with elf_file__free(). */
struct debug_server {
	int (*open)(void *ctx, const void *build_id, size_t len, struct elf_file **ret);
	void *ctx;
};

/* Reads the symbols again, with the debug file that @server has. Returns 0, or a negative errno of
 * debug_server.open, -ENOENT or -ENOMEM. After an error there are no more names than before. */
int symbols__fetch(struct symbols *symbols, const struct debug_server *server);

/* Returns the range of the function that contains @vaddr: its symbol, or else its call frame
 * information. Returns 0, -ENOENT or -ENOMEM. */
int symbols__range(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);

/* Returns the start of the function around @vaddr, by the call frame information. For code without
 * a symbol, so that all of one function is one frame. Returns 0, -ENOENT or -ENOMEM. */
int symbols__function_start(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start);

#endif
