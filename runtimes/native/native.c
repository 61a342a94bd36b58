// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/native/native_idle.h"
#include "runtimes/runtime.h"

/* Machine code. Unwinding and naming it is the core's work for every process, so that there is
 * nothing to hook: this entry only gives native frames their name and suffix. */
const struct runtime runtime_native = {
	.name = "native",
	.suffix = "_[n]",
	.versions = "x86-64 ELF",
	.idle = native_idle,
};
