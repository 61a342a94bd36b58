/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PHP_VERSIONS_H
#define BRAID_PHP_VERSIONS_H

#include <stdint.h>

#include "bpf/php.h"

/* Layouts of PHP on x86-64 Linux, with and without thread safety, one row per minor version: they
 * are the same in all its patch releases. */

struct php_version {
	unsigned int minor; /* N of PHP 8.N */
	struct php_offsets offsets;
};

const struct php_version *php_version__find(unsigned int minor); /* NULL: none */

/* Returns the newest row if @minor is newer than all rows, else NULL. */
const struct php_version *php_version__older(unsigned int minor);

/* Hides the rows that are newer than @minor, so that tests can have a version without a row. */
void php_version__hide(unsigned int minor);

#endif
