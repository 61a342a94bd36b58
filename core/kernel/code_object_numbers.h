/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_OBJECT_NUMBERS_H
#define BRAID_CODE_OBJECT_NUMBERS_H

#include "core/base/u64map.h"

/* Reads the numbers of all code objects in a walker's map of code objects (runtime.codes; a map as
 * in core/kernel/maps.h) as keys of *@ret. Returns 0, -ENOTSUP if the map cannot be listed, or
 * -ENOMEM. The caller frees *@ret by u64map__done(), also after an error. */
int code_object_numbers__read(int map, struct u64map *ret);

#endif
