/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_NUMBERS_H
#define BRAID_CODE_NUMBERS_H

#include "core/base/u64map.h"

/* The numbers of all code objects that are in a walker's map of these (runtime.codes; a map as in
 * core/kernel/maps.h), as keys. -ENOTSUP: that cannot be told; -ENOMEM. Freed by u64map__done, also
 * after an error. */
int code_numbers__read(int map, struct u64map *ret);

#endif
