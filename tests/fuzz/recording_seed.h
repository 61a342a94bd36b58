/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_FUZZ_RECORDING_SEED_H
#define BRAID_TESTS_FUZZ_RECORDING_SEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profile/profile.h"

/* A small recording by the product's own writer, with rows in every table; its pages are as small
 * as they can be. Owned by the caller. */
uint8_t *recording_seed__make(size_t *ret_size);

/* True if the recording's stacks have their names. The profile is handed to `show`, if there is
 * one. */
bool recording_seed__load(const char *path, void (*show)(const struct profile *profile));

#endif
