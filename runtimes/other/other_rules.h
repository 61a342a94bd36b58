/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OTHER_RULES_H
#define BRAID_OTHER_RULES_H

#include "core/elf/elf_file.h"
#include "runtimes/other/other_rows.h"

/* Returns which runtime without a walker @file belongs to, or OTHER_NONE. */
enum other_kind other_rules__find(const struct elf_file *file);

#endif
