/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_H
#define BRAID_PYTHON_H

/* What the CPython walker must know of one interpreter build, shared by both halves. All offsets
 * are bytes from the start of the object. */

#include <linux/types.h>

struct python_offsets {
	/* PyThreadState, _PyCFrame */
	__u16 tstate_cframe;
	__u16 cframe_current_frame; /* `previous` is the word behind it */
	/* _PyInterpreterFrame */
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instr; /* address of the last executed code unit */
	__u16 frame_is_entry;
	__u16 frame_bytes; /* one read of so many bytes holds all of the above */
	/* PyCodeObject; one read of PYTHON_CODE_BYTES from code_base holds these */
	__u16 code_base; /* a multiple of 8 */
	__u16 code_first_line;
	__u16 code_file;
	__u16 code_name;
	__u16 code_line_table;
	__u16 code_bytecode; /* offset of the instructions; not read */
	/* PyUnicodeObject: length, hash and state are at 16, 24 and 32 in all versions */
	__u16 unicode_ascii_data;
	__u16 unicode_compact_data;
	__u16 tstate_thread_id; /* pthread_self(), that is the fs base */
};
_Static_assert(sizeof(struct python_offsets) == 32, "python_offsets");

#define PYTHON_CODE_BYTES 128 /* a power of two */

/* PyBytesObject, all versions */
#define PYTHON_BYTES_SIZE 16
#define PYTHON_BYTES_DATA 32

struct python_proc_rec { /* key: address space */
	struct python_offsets offsets;
	__u64 tss_address; /* of the Py_tss_t {int is_initialized; pthread_key_t key} */
};
_Static_assert(sizeof(struct python_proc_rec) == 40, "python_proc_rec");

#endif
