/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_REPLAY_STUBS_H
#define BRAID_TESTS_REPLAY_STUBS_H

#include "tests/replay/elf_view.h"
#include "tests/replay/spans.h"

/* Adds the data that name the stubs of procedure linkage tables in @code to @pieces (offsets in the
 * file). These are the stub, the relocation of its slot, the symbol and its name. Returns 0 or
 * -ENOMEM. */
int stubs__keep(const struct elf_view *view, const struct spans *code, struct spans *pieces);

#endif
