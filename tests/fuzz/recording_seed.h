/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_FUZZ_RECORDING_SEED_H
#define BRAID_TESTS_FUZZ_RECORDING_SEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profile/profile.h"

/* Returns a small recording by the product's own writer, with rows in every table and the smallest
 * possible pages. Owned by the caller. */
uint8_t *recording_seed__make(size_t *ret_size);

/* Returns true if the recording's stacks have their names. Passes each profile to @show, which may
 * be NULL. */
bool recording_seed__load(const char *path, void (*show)(const struct profile *profile));

#endif
