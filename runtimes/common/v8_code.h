/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_V8_CODE_H
#define BRAID_V8_CODE_H

#include "bpf/unwind_rule.h"

/* V8 makes a frame before it calls anything, in all of its compilers: EnterFrame of
 * src/codegen/x64/macro-assembler-x64.cc, src/compiler/backend/frame-elider.cc. Code that calls
 * nothing may have none. */
#define V8_KEEPS (KEEPS_POINTERS | KEEPS_CALLERS)

/* V8 reserves 128 MB or 512 MB for code (kMaximalCodeRangeSize, src/common/globals.h). */
#define V8_GENERATED_BYTES (32ULL << 20)

#endif
