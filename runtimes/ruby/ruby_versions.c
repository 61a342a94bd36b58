// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_versions.h"

#include <limits.h>
#include <stddef.h>

#include "core/base/util.h"

/* Sources, all at the version of the row:
 *   - vm_core.h: rb_execution_context_t, rb_thread_t, rb_vm_t, rb_control_frame_t, struct
 *     rb_iseq_constant_body
 *   - iseq.h: struct iseq_insn_info_entry
 *   - gc.c, from 3.4 on gc/default/default.c: rb_objspace_t
 *   - cont.c: rb_fiber_t
 *   - internal/class.h, in 2.7 internal.h: struct RClass, rb_classext_t
 *   - include/ruby/internal/core/rstring.h, in 2.7 include/ruby/ruby.h: struct RString
 *   - include/ruby/internal/fl_type.h: FL_SINGLETON
 *   - id.h: tLAST_OP_ID
 *
 * tests/unit/ruby_offsets.t compares the rows with DWARF of real builds. */

#define ANY_LATER UINT_MAX /* the row also serves all later patch levels */

#define COMMON .body_first_line = 88, .lock_of = 24

#define COMMON_TO_3_1                                                                              \
	COMMON, .fiber_ec = 80, .body_entries = 120, .body_n_entries = 136, .body_positions = 144, \
		.body_local = 176, .first_line_is_value = 1, .string_embedded = 16,                \
		.class_ext = 24, .class_super = 16, .class_iv_table = 8, .objspace_flags = 16,     \
		.singleton_bit = 12

#define COMMON_FROM_3_2                                                                           \
	COMMON, .body_entries = 112, .body_n_entries = 128, .body_positions = 136,                \
		.entry_size = 12, .string_embedded = 24, .string_has_length = 1, .ec_thread = 48, \
		.thread_ec = 48, .thread_vm = 32

#define COMMON_3_2_TO_3_4 \
	COMMON_FROM_3_2, .fiber_ec = 80, .body_local = 168, .class_ext = 32, .class_super = 16

#define CLASS_3_3_AND_3_4 .class_path = 120, .class_attached = 96

/* vm_core.h (rb_thread_t), cont.c (rb_fiber_t). These offsets were compared with builds of 2.7,
 * 3.1 and 3.3 only, independent of `verified`. For the other rows they are from these headers. */
#define THREADS_2_7 \
	.threads = { .name = { 48, 208 }, .proc = 40, .fiber_status = 8, .fiber_context = 16 }
#define THREADS_FROM_3_0 \
	.threads = { .name = { 24 }, .proc = 40, .fiber_status = 16, .fiber_context = 24 }
#define THREADS_UNSEEN THREADS_FROM_3_0 /* compared with no build */
#define THREADS_4_1 \
	.threads = { .name = { 24 }, .proc = 32, .fiber_status = 16, .fiber_context = 24 }

/* thread_pthread.h, ractor_core.h */
#define LOCK_OF_RACTOR .lock_start = 336, .lock_bytes = 184, .lock_running = 336
#define LOCK_FROM_3_3 \
	.lock_bytes = 96, .lock_ready = 72, .lock_native = 40, .lock_cond = 40, .lock_tid = 24

/* In rb_vm_t, 3.1.4 and 3.2.3 insert loaded_features_realpath_map; 3.2.4 has static_ext_inits in
 * all builds, not only in those with extensions linked in. */
#define ROW_3_1                                                                                \
	COMMON_TO_3_1, .ec_machine = 144, .ec_thread = 48, .thread_ec = 40, .thread_vm = 32,   \
		       .cfp_size = 64, .entry_size = 12, .fiber_prev = 512, .last_op_id = 169, \
		       LOCK_OF_RACTOR, .lock_ready = 104, .lock_cond = 120, .lock_tid = 88
#define ROW_3_2                                                                                    \
	COMMON_3_2_TO_3_4, .ec_machine = 152, .objspace_flags = 16, .cfp_size = 64,                \
			   .class_ivs = 32, .singleton_bit = 12, .fiber_prev = 520,                \
			   .last_op_id = 169, LOCK_OF_RACTOR, .lock_ready = 56, .lock_native = 40, \
			   .lock_cond = 32, .lock_tid = 16

static const struct ruby_version versions[] = {
	{
		.major = 2,
		.minor = 7,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_2_7,
		.offsets = {
			COMMON_TO_3_1,
			.ec_machine = 152,
			.ec_thread = 56,
			.thread_ec = 32,
			.thread_native = 72,
			.thread_vm = 24,
			.vm_objspace = 1152,
			.cfp_size = 56,
			.entry_size = 8,
			.fiber_prev = 520,
			.last_op_id = 168,
			.lock_start = 8,
			.lock_bytes = 184,
			.lock_running = 8,
			.lock_ready = 88,
			.lock_cond = 104,
			.lock_tid = 72,
			.lock_tid_is_pthread = 1,
		},
	},
	{
		.major = 3,
		.minor = 0,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = {
			COMMON_TO_3_1,
			.ec_machine = 152,
			.ec_thread = 56,
			.thread_ec = 40,
			.thread_vm = 32,
			.vm_objspace = 1088,
			.cfp_size = 56,
			.entry_size = 8,
			.fiber_prev = 520,
			.last_op_id = 168,
			LOCK_OF_RACTOR,
			.lock_ready = 96,
			.lock_cond = 112,
			.lock_tid = 80,
			.lock_tid_is_pthread = 1,
		},
	},
	{
		.major = 3,
		.minor = 1,
		.teeny_last = 3,
		.verified = true,
		THREADS_FROM_3_0,
		.offsets = { ROW_3_1, .vm_objspace = 1104 },
	},
	{
		.major = 3,
		.minor = 1,
		.teeny_first = 4,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_FROM_3_0,
		.offsets = { ROW_3_1, .vm_objspace = 1112 },
	},
	{
		.major = 3,
		.minor = 2,
		.teeny_last = 2,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = { ROW_3_2, .vm_objspace = 1128 },
	},
	{
		.major = 3,
		.minor = 2,
		.teeny_first = 3,
		.teeny_last = 3,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = { ROW_3_2, .vm_objspace = 1136 },
	},
	{
		.major = 3,
		.minor = 2,
		.teeny_first = 4,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = { ROW_3_2, .vm_objspace = 1144 },
	},
	{
		.major = 3,
		.minor = 3,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_FROM_3_0,
		.offsets = {
			COMMON_3_2_TO_3_4,
			CLASS_3_3_AND_3_4,
			LOCK_FROM_3_3,
			.lock_start = 288,
			.lock_running = 328,
			.ec_machine = 152,
			.vm_objspace = 1304,
			.objspace_flags = 16,
			.cfp_size = 56,
			.singleton_bit = 12,
			.fiber_prev = 520,
			.last_op_id = 169,
		},
	},
	{
		.major = 3,
		.minor = 4,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = {
			COMMON_3_2_TO_3_4,
			CLASS_3_3_AND_3_4,
			LOCK_FROM_3_3,
			.lock_start = 288,
			.lock_running = 328,
			.ec_machine = 144,
			.vm_objspace = 1296,
			.objspace_flags = 20,
			.cfp_size = 56,
			.singleton_bit = 13,
			.fiber_prev = 504,
			.last_op_id = 170,
		},
	},
	{
		.major = 4,
		.minor = 0,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_UNSEEN,
		.offsets = {
			COMMON_FROM_3_2,
			LOCK_FROM_3_3,
			.lock_start = 216,
			.lock_running = 256,
			.ec_machine = 176,
			.vm_objspace = 1248,
			.objspace_flags = 28,
			.cfp_size = 56,
			.body_local = 176,
			.class_ext = 24,
			.class_super = 32, /* in rb_classext_t */
			.class_path = 128,
			.class_attached = 112,
			.singleton_bit = 13,
			.fiber_prev = 536,
			.fiber_ec = 80,
			.last_op_id = 171,
		},
	},
	{
		/* 4.1.0dev of 2026-07-28, before the first release */
		.major = 4,
		.minor = 1,
		.teeny_last = ANY_LATER,
		.verified = true,
		THREADS_4_1,
		.offsets = {
			COMMON_FROM_3_2,
			LOCK_FROM_3_3,
			.lock_start = 272,
			.lock_running = 312,
			.ec_machine = 0, /* not compared with any build */
			.vm_objspace = 1368,
			.objspace_flags = 76,
			.cfp_size = 56,
			.body_local = 176,
			.class_ext = 24,
			.class_super = 32, /* in rb_classext_t */
			.class_path = 24,
			.class_attached = 104,
			.singleton_bit = 13,
			.fiber_prev = 544,
			.fiber_ec = 88,
			.last_op_id = 171,
			.jit_return = 48,
		},
	},
};

const struct ruby_version *ruby_version__find(unsigned int major, unsigned int minor,
					      unsigned int teeny)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const struct ruby_version *version = &versions[i];

		if (version->major == major && version->minor == minor &&
		    version->teeny_first <= teeny && teeny <= version->teeny_last)
			return version;
	}
	return NULL;
}
