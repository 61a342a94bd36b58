// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/native/native_idle.h"
#include "runtimes/runtime.h"

/* Machine code. The core unwinds and names it for every process, so this runtime has no hooks: the
 * entry only defines the name and the suffix of native frames. */
const struct runtime runtime_native = {
	.name = "native",
	.suffix = "_[n]",
	.versions = "x86-64 ELF",
	.idle = native_idle,
};
