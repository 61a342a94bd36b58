/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_BUILD_H
#define BRAID_PHP_BUILD_H

#include <stddef.h>
#include <stdint.h>

#include "bpf/php.h"
#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Addresses that differ between builds of one version, found in the file. Link-time addresses. */
struct php_build {
	uint64_t globals_vaddr; /* executor_globals; with thread safety, its offset */
	uint64_t key_vaddr;	/* TSRM's thread key; 0: built without thread safety */
	struct runtime_range loops[PHP_LOOPS_MAX]; /* execute_ex */
	size_t n_loops;				   /* 0: not found */
	struct unwind_rule left;		   /* as in php_proc_rec */
	uint64_t returns_vaddr;			   /* the same; 0: it jumps, or is unknown */
	uint64_t frameless_vaddr, handlers_vaddr;  /* the same; 0: there is none */
};

/* Returns 0 or -ENOENT. */
int php_build__version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES]);

/* Returns NULL, or the reason why its frames cannot be found. */
const char *php_build__read(const struct elf_file *file, struct php_build *ret);

#endif
