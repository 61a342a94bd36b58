/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_FIT_H
#define BRAID_PHP_FIT_H

#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/php/php_build.h"
#include "runtimes/php/php_versions.h"

/* Checks whether a build whose version has no row has the layout of another version's row
 * (runtimes/common/untried.h). The file has the code of exported functions that use the fields of
 * executor_globals and of generators. Fields without such code are checked in a process. */

/* Returns NULL, or the part of the layout that differs. */
const char *php_fit__file(const struct elf_file *file, const struct php_build *build,
			  const struct php_offsets *offsets);

/* Compares @offsets with the frames of process @pid, whose file lies at @bias. Returns 0; -EAGAIN
 * if the process runs no script; -ENOTSUP if the layout differs; *@ret_part then names the part. */
int php_fit__process(uint32_t pid, const struct elf_file *file, uint64_t bias,
		     const struct php_build *build, const struct php_offsets *offsets,
		     const char **ret_part);

#endif
