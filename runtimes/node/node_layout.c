// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_layout.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/node/node_versions.h"

#define NAME_BYTES 160

/* --- constants --- */

/* Reads the 32 bits at a symbol. */
static int read_u32(const struct elf_file *file, const char *symbol, uint32_t *ret)
{
	const struct elf_segment *segment;
	uint64_t vaddr;
	size_t i;

	if (elf_file__find_symbol(file, symbol, &vaddr, NULL))
		return -ENOENT;
	if (!elf_file__read(file, vaddr, ret, sizeof(*ret)))
		return 0;
	/* A constant that is 0 may be in .bss. */
	for (i = 0; i < file->n_segments; i++) {
		segment = &file->segments[i];
		if (vaddr >= segment->vaddr + segment->filesz &&
		    vaddr < segment->vaddr + segment->memsz) {
			*ret = 0;
			return 0;
		}
	}
	return -ENOENT;
}

/* Reads the first existing constant of @names, which end with NULL. */
static int constant(const struct elf_file *file, const char *const *names, uint32_t *ret)
{
	char symbol[NAME_BYTES];

	for (; *names; names++) {
		snprintf(symbol, sizeof(symbol), "v8dbg_%s", *names);
		if (!read_u32(file, symbol, ret))
			return 0;
	}
	return -ENOENT;
}

#define NAMES(...) ((const char *const[]) { __VA_ARGS__, NULL })

/* The member that a constant's value is stored in. */
struct required {
	size_t at; /* offset of the u16 in struct node_layout */
	const char *const *names;
};
#define REQUIRED_FIELD(field, ...)                                         \
	{                                                                  \
		offsetof(struct node_layout, field), (const char *const[]) \
		{                                                          \
			__VA_ARGS__, NULL                                  \
		}                                                          \
	}

/* Constants without which the layout is not supported. */
static const struct required needed[] = {
	REQUIRED_FIELD(rec.map_type, "class_Map__instance_type__uint16_t"),
	REQUIRED_FIELD(rec.function_shared, "class_JSFunction__shared__SharedFunctionInfo"),
	REQUIRED_FIELD(rec.sfi_name, "class_SharedFunctionInfo__name_or_scope_info__Object",
		       "class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_",
		       "class_SharedFunctionInfo__name_or_scope_info__Tagged_NameOrScopeInfoT_"),
	REQUIRED_FIELD(rec.sfi_script, "class_SharedFunctionInfo__script_or_debug_info__HeapObject",
		       "class_SharedFunctionInfo__script__Tagged_HeapObject_"),
	REQUIRED_FIELD(rec.stream_header, "class_InstructionStream__instruction_start__uintptr_t",
		       "class_Code__instruction_start__uintptr_t"),
	REQUIRED_FIELD(rec.kind_mask, "CodeKindFieldMask"),
	REQUIRED_FIELD(rec.kind_baseline, "CodeKindBaseline"),
	REQUIRED_FIELD(rec.type_map, "type_Map__MAP_TYPE"),
	REQUIRED_FIELD(rec.type_sfi, "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE"),
	REQUIRED_FIELD(rec.type_stream, "type_InstructionStream__INSTRUCTION_STREAM_TYPE",
		       "type_Code__CODE_TYPE"),
	REQUIRED_FIELD(rec.type_bytecodes, "type_BytecodeArray__BYTECODE_ARRAY_TYPE"),
	REQUIRED_FIELD(rec.text.first_nonstring, "FirstNonstringType"),
	REQUIRED_FIELD(rec.text.representation_mask, "StringRepresentationMask"),
	REQUIRED_FIELD(rec.text.one_byte, "OneByteStringTag"),
	REQUIRED_FIELD(rec.text.cons, "ConsStringTag"),
	REQUIRED_FIELD(external, "ExternalStringTag"),
	REQUIRED_FIELD(sliced, "SlicedStringTag"),
	REQUIRED_FIELD(rec.text.thin, "ThinStringTag"),
	REQUIRED_FIELD(rec.text.string_length, "class_String__length__int32_t"),
	REQUIRED_FIELD(rec.text.string_chars, "class_SeqOneByteString__chars__char"),
	REQUIRED_FIELD(rec.text.cons_first, "class_ConsString__first__String"),
	REQUIRED_FIELD(rec.text.cons_second, "class_ConsString__second__String"),
	REQUIRED_FIELD(rec.text.thin_actual, "class_ThinString__actual__String"),
	REQUIRED_FIELD(sliced_parent, "class_SlicedString__parent__String"),
	REQUIRED_FIELD(sliced_offset, "class_SlicedString__offset__SMI"),
	REQUIRED_FIELD(external_resource, "class_ExternalString__resource__Object"),
	REQUIRED_FIELD(array_length, "class_FixedArrayBase__length__SMI"),
	REQUIRED_FIELD(array_data, "class_FixedArray__data__uintptr_t"),
	REQUIRED_FIELD(rec.text.type_scope_info, "type_ScopeInfo__SCOPE_INFO_TYPE"),
	REQUIRED_FIELD(rec.type_script, "type_Script__SCRIPT_TYPE"),
	REQUIRED_FIELD(type_fixed_array, "type_FixedArray__FIXED_ARRAY_TYPE"),
	REQUIRED_FIELD(type_code, "type_Code__CODE_TYPE"),
	REQUIRED_FIELD(rec.text.script_name, "class_Script__name__Object"),
	REQUIRED_FIELD(rec.script_source, "class_Script__source__Object"),
	REQUIRED_FIELD(script_line_ends, "class_Script__line_ends__Object"),
	REQUIRED_FIELD(rec.text.scope_n_locals, "scopeinfo_idx_ncontextlocals"),
	REQUIRED_FIELD(rec.text.scope_variable, "scopeinfo_idx_first_vars"),
	REQUIRED_FIELD(bytecode_data, "class_BytecodeArray__data__uintptr_t"),
};

static int read_needed(const struct elf_file *file, struct node_layout *ret, struct err *err)
{
	uint32_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		if (constant(file, needed[i].names, &value) || value > UINT16_MAX)
			return err__set(err, -ENOTSUP, "V8's constant v8dbg_%s is missing",
					needed[i].names[0]);
		*(uint16_t *)((char *)ret + needed[i].at) = value;
	}
	return 0;
}

/* Checks the constants that the walker assumes, as no version has other values. */
static int check_fixed(const struct elf_file *file, struct err *err)
{
	static const struct {
		const char *name;
		int32_t value;
	} fixed[] = {
		{ "HeapObjectTag", NODE_TAG },
		{ "HeapObjectTagMask", NODE_TAG_MASK },
		{ "SmiTag", 0 },
		{ "class_HeapObject__map__Map", 0 },
		{ "off_fp_context_or_frame_type", -NODE_FP_CONTEXT },
		{ "off_fp_function", -NODE_FP_FUNCTION },
		{ "off_fp_bytecode_array", -NODE_FP_BYTECODES },
		{ "off_fp_bytecode_offset", -NODE_FP_BYTECODE_AT },
	};
	uint32_t value;
	size_t i;

	if (constant(file, NAMES("TaggedSize"), &value) || value != 8 ||
	    constant(file, NAMES("SmiShiftSize"), &value) || value != 31)
		return err__set(err, -ENOTSUP,
				"this V8 is built with pointer compression (like Electron's), for "
				"which there is no walker");
	for (i = 0; i < ARRAY_SIZE(fixed); i++)
		if (constant(file, NAMES(fixed[i].name), &value) ||
		    (int32_t)value != fixed[i].value)
			return err__set(err, -ENOTSUP, "V8's constant v8dbg_%s is not %d",
					fixed[i].name, fixed[i].value);
	return 0;
}

/* --- the table --- */

/* Stores the table's value, unless the file exports another one. */
static int take(const struct elf_file *file, const char *const *names, uint16_t value,
		uint16_t *ret, struct err *err)
{
	uint32_t defined;

	*ret = value;
	if (constant(file, names, &defined) || defined == value)
		return 0;
	return err__set(err, -ENOTSUP, "V8's constant v8dbg_%s is %u, not %u as in this version",
			names[0], defined, value);
}

static int read_code(const struct elf_file *file, const struct node_version *version,
		     struct node_layout *ret, struct err *err)
{
	struct node_proc_rec *rec = &ret->rec;
	int rc;

	rec->stream_code = version->stream_code;
	rc = take(file, NAMES("class_Code__deoptimization_data__FixedArray"), version->code_deopt,
		  &ret->code_deopt, err);
	rc = rc ? rc
		: take(file, NAMES("class_Code__source_position_table__ByteArray"),
		       version->code_positions, &ret->code_positions, err);
	rc = rc ? rc
		: take(file, NAMES("class_Code__instruction_start__Address"), version->code_start,
		       &rec->code_start, err);
	rc = rc ? rc
		: take(file, NAMES("class_Code__flags__uint32_t"), version->code_flags,
		       &rec->code_flags, err);
	rec->code_deopt = ret->code_deopt;
	return rc ? rc
		  : take(file, NAMES("class_Code__instruction_size__int"), version->code_size,
			 &rec->code_size, err);
}

/* Sets Script's fields without a constant. Their places have not changed since V8 8 (script.tq):
 * each is one word. */
static void set_script(struct node_layout *ret)
{
	ret->script_line_offset = ret->rec.text.script_name + 8;
	ret->rec.script_id = ret->script_line_ends + 8;
	/* After the field `script` are 8 bytes of counts, and the flags (shared-function-info.tq,
	 * in all of these versions). */
	ret->rec.sfi_literal = ret->rec.sfi_script + 8 + 8 + 4;
}

/* DeoptimizationData's elements (deoptimization-data.h, code.h up to V8 10). */
static void read_deopt(const struct elf_file *file, struct node_layout *ret)
{
	uint32_t value;

#define ELEMENT(field, otherwise, ...) \
	ret->field = constant(file, NAMES(__VA_ARGS__), &value) ? (otherwise) : value
	ELEMENT(deopt_n_inlined, 1, "DeoptimizationDataInlinedFunctionCountIndex");
	ELEMENT(deopt_literals, 2, "DeoptimizationDataLiteralArrayIndex");
	ELEMENT(deopt_inlinings, 7, "DeoptimizationDataInliningPositionsIndex");
	ELEMENT(deopt_function, 6, "DeoptimizationDataWrappedSharedFunctionInfoIndex",
		"DeoptimizationDataSharedFunctionInfoIndex");
	ELEMENT(wrapped_function, 0,
		"class_SharedFunctionInfoWrapper__shared_info__Tagged_SharedFunctionInfo_");
#undef ELEMENT
}

/* Reads the sizes of bytecodes. Without them, Sparkplug's code, which follows the bytecodes one by
 * one, has no lines. */
static void read_bytecode_sizes(const struct elf_file *file, struct node_layout *ret)
{
	static const char *const names[] = {
		"_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE",
		"_ZN2v88internal6detailL14kBytecodeSizesE",
	};
	uint64_t vaddr, size;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf_file__find_symbol(file, names[i], &vaddr, &size) || !size || size % 3 ||
		    size > sizeof(ret->bytecode_sizes) ||
		    elf_file__read(file, vaddr, ret->bytecode_sizes, size))
			continue;
		ret->n_bytecodes = size / 3;
		for (size_t k = 0; k < size; k++)
			if (!ret->bytecode_sizes[k])
				ret->n_bytecodes = 0;
		return;
	}
}

/* --- all of it --- */

int node_layout__version(const struct elf_file *file, uint32_t *ret_major, uint32_t *ret_minor)
{
	return read_u32(file, "_ZN2v88internal7Version6major_E", ret_major) ||
			       read_u32(file, "_ZN2v88internal7Version6minor_E", ret_minor)
		       ? -ENOENT
		       : 0;
}

/* Returns true if all fields lie within the bytes of an object that the walker reads. */
static bool is_in_reach(const struct node_layout *layout)
{
	const struct node_proc_rec *rec = &layout->rec;

	return max_of(max_of(rec->sfi_data, rec->sfi_name),
		      max_of(rec->sfi_script, rec->sfi_literal)) <= NODE_SFI_BYTES - 8 &&
	       max_of(max_of(rec->code_start, rec->code_size), rec->code_flags) <=
		       NODE_CODE_BYTES - 8 &&
	       layout->code_deopt <= NODE_CODE_BYTES - 8 &&
	       layout->code_positions <= NODE_CODE_BYTES - 8;
}

int node_layout__read(const struct elf_file *file, struct node_layout *ret, struct err *err)
{
	const struct node_version *version;
	uint32_t major, minor;
	int rc;

	memset(ret, 0, sizeof(*ret));
	if (node_layout__version(file, &major, &minor))
		return err__set(err, -ENOTSUP, "cannot determine V8's version");
	version = node_versions__find(major, minor);
	if (!version)
		return err__set(err, -ENOTSUP, "V8 %u.%u is not supported by this version of braid",
				major, minor);
	rc = check_fixed(file, err);
	rc = rc ? rc : read_needed(file, ret, err);
	rc = rc ? rc : read_code(file, version, ret, err);
	if (rc)
		return rc;
	set_script(ret);
	read_deopt(file, ret);
	read_bytecode_sizes(file, ret);
	ret->rec.sfi_data = version->sfi_data;
	ret->bytecode_positions = version->bytecode_positions;
	ret->scope_start = version->scope_start;
	ret->rec.text.scope_module = version->scope_module;
	ret->rec.text.scope_flags_is_smi = version->scope_flags_is_smi;
	ret->positions_with_bits = version->positions_with_bits;
	return is_in_reach(ret) ? 0 : err__set(err, -ENOTSUP, "V8's objects are too large");
}
