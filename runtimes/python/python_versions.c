// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_versions.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/python/python_lines.h"

/* One row per minor version, named after the headers of that version's source where each struct
 * is declared: Include/frameobject.h, from 3.10 on Include/cpython/frameobject.h (PyFrameObject),
 * from 3.11 on Include/internal/pycore_frame.h (_PyInterpreterFrame); Include/pystate.h, from 3.8
 * on Include/cpython/pystate.h (PyThreadState, _PyCFrame, PyInterpreterState); Include/code.h,
 * from 3.8 on Include/cpython/code.h (PyCodeObject); Include/cpython/unicodeobject.h
 * (PyASCIIObject, PyCompactUnicodeObject); Include/internal/pycore_runtime.h, in 3.7
 * Include/internal/pystate.h (_PyRuntimeState). scripts/check-python-offsets compares the rows
 * with DWARF of real builds. */

/* sizeof(PyObject), Include/object.h */
#define OBJECT_BYTES	  16
#define OBJECT_BYTES_FREE 32

#define CODE_BEFORE_3_8                                                            \
	.code_base = 32, .code_first_line = 36, .code_file = 96, .code_name = 104, \
	.code_line_table = 112, .line_format = PYTHON_LINES_LNOTAB
#define CODE_FROM_3_8                                                               \
	.code_base = 40, .code_first_line = 40, .code_file = 104, .code_name = 112, \
	.code_line_table = 120

/* 3.6 to 3.10: frame objects */
#define OBJECTS                                                                          \
	.object_bytes = OBJECT_BYTES, .chain = PYTHON_CHAIN_OBJECTS, .tstate_frame = 24, \
	.frame_previous = 24, .frame_code = 32, .unicode_ascii_data = 48,                \
	.unicode_compact_data = 72, .interp_next = 0, .interp_threads = 8
/* f_lasti of 3.7 to 3.9 */
#define OBJECTS_FROM_3_7                                                                   \
	OBJECTS, .tstate_thread_id = 176, .instr = PYTHON_INSTR_BYTES, .frame_instr = 104, \
		 .frame_bytes = 112

static const struct python_version versions[] = {
	{
		.minor = 6, /* its key and its list of interpreters are local symbols */
		.state = PYTHON_STATE_PLAIN_KEY,
		.offsets = {
			OBJECTS,
			CODE_BEFORE_3_8,
			.instr = PYTHON_INSTR_BYTES,
			.tstate_thread_id = 152,
			.frame_instr = 120, /* f_lasti */
			.frame_bytes = 128,
		},
	},
	{
		.minor = 7,
		.tss = 1504, /* 1416 in 3.7.0 to 3.7.3: the code of the build has the last word */
		.gil = 1264,
		.interpreters = 24,
		.offsets = { OBJECTS_FROM_3_7, CODE_BEFORE_3_8 },
	},
	{
		.minor = 8,
		.tss = 1392,
		.gil = 1152,
		.interpreters = 32,
		.modules = 56,
		.offsets = { OBJECTS_FROM_3_7, CODE_FROM_3_8, .line_format = PYTHON_LINES_LNOTAB },
	},
	{
		.minor = 9,
		.tss = 584,
		.gil = 352,
		.interpreters = 32,
		.modules = 856,
		.offsets = { OBJECTS_FROM_3_7, CODE_FROM_3_8, .line_format = PYTHON_LINES_LNOTAB },
	},
	{
		.minor = 10,
		.tss = 584,
		.gil = 352,
		.interpreters = 32,
		.modules = 856,
		.offsets = {
			OBJECTS,
			CODE_FROM_3_8,
			.line_format = PYTHON_LINES_RANGES,
			.instr = PYTHON_INSTR_UNITS,
			.tstate_thread_id = 176,
			.frame_instr = 96,
			.frame_bytes = 104,
		},
	},
	{
		.minor = 11,
		.tss = 592,
		.gil = 360,
		.interpreters = 40,
		.modules = 888,
		.offsets = {
			.object_bytes = OBJECT_BYTES,
			.chain = PYTHON_CHAIN_CFRAMES,
			.instr = PYTHON_INSTR_ADDRESS,
			.tstate_frame = 56, /* cframe */
			.tstate_root_cframe = 336,
			.tstate_thread_id = 152,
			.cframe_current_frame = 8,
			.frame_previous = 48,
			.frame_code = 32,
			.frame_instr = 56, /* prev_instr */
			.frame_owner = 68, /* is_entry */
			.frame_bytes = 72,
			.code_base = 64,
			.code_first_line = 72,
			.code_file = 112,
			.code_name = 128, /* co_qualname */
			.code_line_table = 136,
			.code_bytecode = 184, /* co_code_adaptive */
			.unicode_ascii_data = 48,
			.unicode_compact_data = 72,
			.interp_next = 0,
			.interp_threads = 16,
			.line_format = PYTHON_LINES_LOCATIONS,
			.tstate_native_id = 160,
		},
	},
	{
		.minor = 12,
		.tss = 1544,
		.interpreters = 40,
		.modules = 944,
		.offsets = {
			.object_bytes = OBJECT_BYTES,
			.chain = PYTHON_CHAIN_CFRAME_SHIMS,
			.instr = PYTHON_INSTR_ADDRESS,
			.tstate_frame = 56,
			.tstate_root_cframe = 272,
			.tstate_thread_id = 136,
			.cframe_current_frame = 0,
			.frame_previous = 8,
			.frame_code = 0,
			.frame_instr = 56,
			.frame_owner = 70,
			.frame_bytes = 72,
			.code_base = 64,
			.code_first_line = 68,
			.code_file = 112,
			.code_name = 128,
			.code_line_table = 136,
			.code_version = 92,
			.code_bytecode = 192,
			.unicode_ascii_data = 40,
			.unicode_compact_data = 56,
			.interp_next = 0,
			.interp_threads = 72,
			.line_format = PYTHON_LINES_LOCATIONS,
			.tstate_native_id = 144,
			.interp_gil = 384,
		},
	},
	{ .minor = 13, .tss = 2160 },
	{ .minor = 14, .tss = 2336 },
	{ .minor = 15, .state = PYTHON_STATE_TLS },
};

static unsigned int newest_shown = UINT_MAX;

void python_version__hide(unsigned int minor)
{
	newest_shown = minor;
}

const struct python_version *python_version__find(unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor == minor && minor <= newest_shown)
			return &versions[i];
	return NULL;
}

const struct python_version *python_version__older(unsigned int minor)
{
	const struct python_version *newest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor <= newest_shown)
			newest = &versions[i];
	return newest && minor > newest->minor ? newest : NULL;
}

/* --- _Py_DebugOffsets, Include/internal/pycore_runtime.h of 3.13, pycore_debug_offsets.h from 3.14
 * on: {char cookie[8]; u64 version; u64 free_threaded; ...}, all else offsets of 64 bits --- */

#define DEBUG_COOKIE	    "xdebugpy"
#define DEBUG_WORDS	    64
#define DEBUG_FREE_THREADED 2

struct debug_words { /* indexes of the words */
	uint8_t interpreters_head;
	uint8_t interp_next, interp_threads;
	uint8_t interp_modules, interp_gil, gil, gil_locked, gil_holder;
	uint8_t tstate_next, tstate_interp, tstate_frame, tstate_thread_id, tstate_native_id;
	uint8_t frame_previous, frame_code, frame_instr, frame_owner;
	uint8_t code_file, code_qualname, code_line_table, code_first_line, code_bytecode;
	uint8_t object_bytes;
	uint8_t frame_copy, code_copies; /* tlbc_index, co_tlbc; 0: unknown */
	uint8_t code_locals;		 /* co_localsplusnames, behind co_version */
};

static const struct debug_words words_3_13 = {
	.interpreters_head = 5,
	.interp_next = 8,
	.interp_threads = 9,
	.interp_modules = 11,
	.interp_gil = 14,
	.gil = 15,
	.gil_locked = 17,
	.gil_holder = 18,
	.tstate_next = 21,
	.tstate_interp = 22,
	.tstate_frame = 23,
	.tstate_thread_id = 24,
	.tstate_native_id = 25,
	.frame_previous = 29,
	.frame_code = 30,
	.frame_instr = 31,
	.frame_owner = 33,
	.code_file = 35,
	.code_qualname = 37,
	.code_line_table = 38,
	.code_first_line = 39,
	.code_bytecode = 43,
	.object_bytes = 44,
	.code_locals = 41,
};

static const struct debug_words words_3_14 = {
	.interpreters_head = 5,
	.interp_next = 8,
	.interp_threads = 9,
	.interp_modules = 12,
	.interp_gil = 15,
	.gil = 16,
	.gil_locked = 18,
	.gil_holder = 19,
	.tstate_next = 24,
	.tstate_interp = 25,
	.tstate_frame = 26,
	.tstate_thread_id = 27,
	.tstate_native_id = 28,
	.frame_previous = 32,
	.frame_code = 33,
	.frame_instr = 34,
	.frame_owner = 36,
	.code_file = 40,
	.code_qualname = 42,
	.code_line_table = 43,
	.code_first_line = 44,
	.code_bytecode = 48,
	.object_bytes = 50,
	.frame_copy = 38,
	.code_copies = 49,
	.code_locals = 46,
};

static const struct debug_words words_3_15 = {
	.interpreters_head = 5,
	.interp_next = 8,
	.interp_threads = 9,
	.interp_modules = 12,
	.interp_gil = 15,
	.gil = 16,
	.gil_locked = 18,
	.gil_holder = 19,
	.tstate_next = 24,
	.tstate_interp = 25,
	.tstate_frame = 26,
	.tstate_thread_id = 30,
	.tstate_native_id = 31,
	.frame_previous = 40,
	.frame_code = 41,
	.frame_instr = 42,
	.frame_owner = 44,
	.code_file = 48,
	.code_qualname = 50,
	.code_line_table = 51,
	.code_first_line = 52,
	.code_bytecode = 56,
	.object_bytes = 58,
	.frame_copy = 46,
	.code_copies = 57,
	.code_locals = 54,
};

bool python_version__is_described(const struct python_version *version)
{
	return version->minor >= 13;
}

/* The walker reads a frame and a code object in one piece each. */
static bool fits(struct python_offsets *offsets)
{
	unsigned int frame = max_of(max_of(offsets->frame_previous, offsets->frame_code),
				    max_of(max_of(offsets->frame_instr, offsets->frame_owner),
					   offsets->frame_copy));
	unsigned int code =
		max_of(max_of(offsets->code_file, offsets->code_name), offsets->code_line_table);

	offsets->frame_bytes = (frame + 8) & ~7U;
	offsets->code_base = min_of(offsets->code_first_line, offsets->code_file) & ~7U;
	return !((offsets->frame_previous | offsets->frame_code | offsets->frame_instr |
		  offsets->code_file | offsets->code_name | offsets->code_line_table) &
		 7) &&
	       !(offsets->frame_copy & 3) && frame < 256 &&
	       code + 8U - offsets->code_base <= PYTHON_CODE_BYTES &&
	       !(offsets->code_version & 3) && offsets->code_version > offsets->code_base &&
	       offsets->code_version < code && offsets->code_name > offsets->code_base &&
	       offsets->code_line_table > offsets->code_base;
}

/* Returns a word by its number. Word 0 is the cookie, so number 0 means that the field is absent.
 */
static uint64_t words_at(const uint64_t *words, uint8_t number)
{
	return number ? words[number] : 0;
}

static bool take_words(const uint64_t *words, const struct debug_words *at,
		       struct python_version *version)
{
	uint64_t all = words[at->interpreters_head];
	uint64_t head = words[at->object_bytes];
	bool with_lock;

	if (head != (words[DEBUG_FREE_THREADED] ? OBJECT_BYTES_FREE : OBJECT_BYTES))
		return false;
	for (size_t i = 0; i < sizeof(*at); i++)
		all |= words_at(words, ((const uint8_t *)at)[i]);
	if (all > UINT16_MAX || words[at->tstate_next] != PYTHON_TSTATE_NEXT)
		return false;
	with_lock = !words[DEBUG_FREE_THREADED] &&
		    words[at->tstate_interp] == PYTHON_TSTATE_INTERP &&
		    words[at->gil_holder] - words[at->gil] == PYTHON_GIL_HOLDER &&
		    words[at->gil_locked] - words[at->gil] == PYTHON_GIL_LOCKED;
	version->interpreters = words[at->interpreters_head];
	version->modules = words[at->interp_modules];
	version->offsets = (struct python_offsets) {
		.chain = PYTHON_CHAIN_SHIMS,
		.instr = PYTHON_INSTR_ADDRESS,
		.tstate_frame = words[at->tstate_frame],
		.tstate_thread_id = words[at->tstate_thread_id],
		.frame_previous = words[at->frame_previous],
		.frame_code = words[at->frame_code],
		.frame_instr = words[at->frame_instr],
		.frame_owner = words[at->frame_owner],
		.code_first_line = words[at->code_first_line],
		.code_file = words[at->code_file],
		.code_name = words[at->code_qualname],
		.code_line_table = words[at->code_line_table],
		.code_bytecode = words[at->code_bytecode],
		.unicode_ascii_data = head + 24,   /* sizeof(PyASCIIObject) and ... */
		.unicode_compact_data = head + 40, /* ... PyCompactUnicodeObject */
		.interp_next = words[at->interp_next],
		.interp_threads = words[at->interp_threads],
		.line_format = PYTHON_LINES_LOCATIONS,
		.tstate_native_id = words[at->tstate_native_id],
		.interp_gil = with_lock ? words[at->interp_gil] : 0,
		.object_bytes = head,
		.unicode_shift = words[DEBUG_FREE_THREADED] && version->minor >= 14 ? 6 : 0,
		.frame_copy = words[DEBUG_FREE_THREADED] ? words_at(words, at->frame_copy) : 0,
		.code_copies = words[DEBUG_FREE_THREADED] ? words_at(words, at->code_copies) : 0,
		.code_version = words[at->code_locals] - 4,
	};
	return fits(&version->offsets);
}

const char *python_version__read(const struct elf_file *file, uint64_t runtime, uint64_t hex,
				 struct python_version *version)
{
	uint64_t words[DEBUG_WORDS];

	if (elf_file__read(file, runtime, words, sizeof(words)) ||
	    memcmp(words, DEBUG_COOKIE, sizeof(words[0])) != 0)
		return "it has no _Py_DebugOffsets";
	if (words[1] != hex)
		return "its _Py_DebugOffsets belong to another version";
	if (!take_words(words,
			version->minor == 13   ? &words_3_13
			: version->minor == 14 ? &words_3_14
					       : &words_3_15,
			version))
		return "its _Py_DebugOffsets are malformed";
	return NULL;
}
