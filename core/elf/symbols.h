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
 * Sources are opened at the first resolve, not before. */
struct symbols;

#define SYMBOL_INLINES_MAX 32

struct symbol_frame {
	const char *function; /* demangled; borrowed until the next fetch, or the end */
	const char *file;     /* source path as DWARF has it, or NULL */
	uint32_t line;	      /* 0: unknown */
	bool inlined;	      /* inlined into the entry that follows it */
};

/* `root` is a directory in front of all look-ups of debug files ("/proc/4711/root" for another
 * mount namespace; "" for ours); where nothing is found below it our own root is tried. Borrows
 * `file` until symbols__free. -ENOMEM at worst: an image without symbols is not an error. */
int symbols__new(const struct elf_file *file, const char *root, struct symbols **ret);
/* Of a target that was recorded: this machine's debug files say nothing of its images. */
void symbols__stay_below_root(struct symbols *symbols);
void symbols__free(struct symbols *symbols); /* NULL is fine */

/* Resolves one link-time virtual address. Entries come innermost first; the last is the function
 * that owns the code. Returns their number, at most `max`; 0 when no symbol's [start, start+size)
 * contains the address (a symbol of size 0 — hand-written assembly — reaches to the next symbol or
 * the end of its section, whichever comes first, and if only exported symbols are known no further
 * than its code leads). -ENOMEM. Never the nearest wrong one. -EINTR if the work is to stop: it
 * may be asked again. */
int symbols__resolve(struct symbols *symbols, uint64_t vaddr, struct symbol_frame *ret, size_t max);

/* After a resolve: does nothing but .dynsym name the file's code, so that a debug server may help?
 */
bool symbols__is_stripped(const struct symbols *symbols);

/* A source of debug files outside this machine. `open` returns 0 and the file with this build-id,
 * which the caller frees with elf_file__free(), or a negative errno. */
struct debug_server {
	int (*open)(void *ctx, const void *build_id, size_t len, struct elf_file **ret);
	void *ctx;
};

/* Reads the symbols again, with the debug file that @server has. Returns 0, or a negative errno of
 * debug_server.open, -ENOENT or -ENOMEM; there are no more names than before then. */
int symbols__fetch(struct symbols *symbols, const struct debug_server *server);

/* From where to where the function reaches that has the address: its symbol, or else, where it has
 * none, by the call frame information. 0, -ENOENT or -ENOMEM. */
int symbols__range(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);

/* Where the function around `vaddr` starts, by the call frame information: for code that has no
 * symbol, so that all of one function is one frame. 0, -ENOENT or -ENOMEM. */
int symbols__function_start(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start);

#endif
