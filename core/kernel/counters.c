// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/kernel/kernel_half.h"

const char *counter__text(unsigned counter)
{
	static const char *const texts[] = {
#define X(id, text) [COUNT_##id] = text,
		COUNTERS(X)
#undef X
	};

	return counter < ARRAY_SIZE(texts) ? texts[counter] : "";
}
