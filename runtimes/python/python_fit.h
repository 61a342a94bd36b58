/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_FIT_H
#define BRAID_PYTHON_FIT_H

#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/python/python_versions.h"

/* Checks a version of CPython that was not tried yet (runtimes/common/untried.h). Its offsets are
 * its own, from _Py_DebugOffsets, but the order of the fields there is that of another version. So
 * each offset is compared with the objects of a process: the interpreter exports its types. */

/* Returns NULL, or the part of the layout that differs by the offsets alone. */
const char *python_fit__offsets(const struct python_version *version);

/* Compares @version with process @pid, whose file lies at @bias. Returns 0; -EAGAIN if the process
 * runs no Python code yet; -ENOTSUP if the layout differs, @ret_part then says where. */
int python_fit__process(uint32_t pid, const struct elf_file *file, uint64_t bias,
			uint64_t interpreters, const struct python_version *version,
			const char **ret_part);

#endif
