/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEBUG_PACKAGE_H
#define BRAID_DEBUG_PACKAGE_H

#include <stddef.h>

#include "core/elf/elf_file.h"

/* Which Debian package would bring the symbols of a stripped file: by dpkg's database whose file it
 * is, and in which version; and by apt's lists which of the packages that are called as debug
 * packages are there is in just this version. Nothing is downloaded. */

struct debug_package_places {
	const char *root;      /* "": the machine's own */
	const char *apt_cache; /* the program; "/usr/bin/apt-cache" */
};

#define DEBUG_PACKAGE_BYTES 128

/* 0, or -ENOENT: the file is not the one that the machine has at its path, is of no package, none
 * is known to have its symbols, or that one is installed. Some hundredths of a second, and two
 * seconds at most. */
int debug_package__find(const struct elf_file *file, const struct debug_package_places *places,
			char ret[DEBUG_PACKAGE_BYTES]);

#endif
