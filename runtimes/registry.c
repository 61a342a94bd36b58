// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/registry.h"

extern const struct runtime runtime_native;
extern const struct runtime runtime_python;

const struct runtime *const runtimes[] = {
	&runtime_native,
	&runtime_python,
	NULL,
};
