/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_UNTRIED_H
#define BRAID_UNTRIED_H

#include "runtimes/runtime.h"

/* A version that is newer than all rows of its runtime may be walked by the newest row. Its layout
 * must pass checks against the build, and against the process where the build is not enough. A
 * version that fails is refused by name. docs/decisions/0148-untried-versions.md */

/* Sets the verdict of a version that passed the checks of its build. @row: "Perl 5.44". */
void untried__accept(struct runtime_verdict *verdict, const char *row);

/* Writes why a version is refused: @part of the layout is not as in @row. */
void untried__refuse(char *buf, size_t size, const char *row, const char *part);

#endif
