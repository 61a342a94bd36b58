// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python_versions.h"

#include <stddef.h>

#include "core/util.h"

/* One row per minor version, named after the headers of that version's source where each struct
 * is declared. scripts/check-python-offsets compares the rows with DWARF of real builds. */
static const struct python_version versions[] = {
	/* 3.11: Include/cpython/pystate.h (PyThreadState, _PyCFrame),
	 * Include/internal/pycore_frame.h (_PyInterpreterFrame), Include/cpython/code.h
	 * (PyCodeObject), Include/cpython/unicodeobject.h (PyASCIIObject, PyCompactUnicodeObject),
	 * Include/internal/pycore_runtime.h (_PyRuntimeState) */
	{
		.minor = 11,
		.runtime_tss = 592,
		.offsets = {
			.tstate_cframe = 56,
			.tstate_thread_id = 152,
			.cframe_current_frame = 8,
			.frame_previous = 48,
			.frame_code = 32,
			.frame_instr = 56, /* prev_instr */
			.frame_is_entry = 68,
			.frame_bytes = 72,
			.code_base = 64,
			.code_first_line = 72,
			.code_file = 112,
			.code_name = 128, /* co_qualname */
			.code_line_table = 136,
			.code_bytecode = 184, /* co_code_adaptive */
			.unicode_ascii_data = 48,
			.unicode_compact_data = 72,
		},
	},
};

const struct python_version *python_version__find(unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor == minor)
			return &versions[i];
	return NULL;
}
