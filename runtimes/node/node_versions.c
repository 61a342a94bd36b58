// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_versions.h"

#include <stddef.h>

#include "core/base/util.h"

/* Files of deps/v8/src/objects in Node's sources, at the version: Code::Fields in code.h,
 * BytecodeArray in bytecode-array.tq or code.tq, SharedFunctionInfo in shared-function-info.tq,
 * ScopeInfo in scope-info.tq, InstructionStream in instruction-stream.h. tests/long/node_layout.t
 * holds each row against running builds. */
static const struct node_version versions[] = {
	{ .major = 10,
	  .minor = 2,
	  .source = "Node 18.20.8, V8 10.2.154: code.h, code.tq, scope-info.tq",
	  .code_deopt = 16,
	  .code_positions = 24,
	  .code_start = 0,
	  .code_flags = 48,
	  .code_size = 40,
	  .stream_code = 0,
	  .sfi_data = 8,
	  .bytecode_positions = 32,
	  .scope_module = 3,
	  .scope_flags_is_smi = true },
	{ .major = 10,
	  .minor = 8,
	  .source = "Node 19.8.1, V8 10.8.168: as 10.2, held against npm's build",
	  .code_deopt = 16,
	  .code_positions = 24,
	  .code_start = 0,
	  .code_flags = 48,
	  .code_size = 40,
	  .stream_code = 0,
	  .sfi_data = 8,
	  .bytecode_positions = 32,
	  .scope_module = 3,
	  .scope_flags_is_smi = true },
	{ .major = 11,
	  .minor = 3,
	  .source = "Node 20.20.2, V8 11.3.244: code.h, bytecode-array.tq, scope-info.tq",
	  .code_deopt = 16,
	  .code_positions = 24,
	  .code_start = 40,
	  .code_flags = 48,
	  .code_size = 56,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 32,
	  .scope_module = 3,
	  .scope_flags_is_smi = true },
	{ .major = 12,
	  .minor = 4,
	  .source = "Node 22.23.3, V8 12.4.254: code.h, bytecode-array.tq, scope-info.tq",
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_flags = 48,
	  .code_size = 52,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .scope_module = 3,
	  .scope_flags_is_smi = true },
	{ .major = 12,
	  .minor = 9,
	  .source = "Node 23.11.1, V8 12.9.202: code as 12.4, scopes as 13.6, held against npm's "
		    "build",
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_flags = 48,
	  .code_size = 52,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .scope_start = 3,
	  .scope_module = 5 },
	{ .major = 13,
	  .minor = 6,
	  .source = "Node 24.21.0, V8 13.6.233: code.h, bytecode-array.tq, scope-info.tq",
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_flags = 52,
	  .code_size = 56,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .scope_start = 3,
	  .scope_module = 5 },
	{ .major = 14,
	  .minor = 1,
	  .source = "Node 25.9.0, V8 14.1.146: code.h, bytecode-array.tq, scope-info.tq",
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_flags = 52,
	  .code_size = 56,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .scope_start = 3,
	  .scope_module = 5,
	  .positions_with_bits = true },
	{ .major = 14,
	  .minor = 6,
	  .source = "Node 26.12.1, V8 14.6.202: as 14.1, held against npm's build",
	  .code_deopt = 8,
	  .code_positions = 16,
	  .code_start = 40,
	  .code_flags = 52,
	  .code_size = 56,
	  .stream_code = 8,
	  .sfi_data = 8,
	  .bytecode_positions = 24,
	  .scope_start = 3,
	  .scope_module = 5,
	  .positions_with_bits = true },
};

const struct node_version *node_versions__at(uint32_t i)
{
	return i < ARRAY_SIZE(versions) ? &versions[i] : NULL;
}

const struct node_version *node_versions__find(uint32_t major, uint32_t minor)
{
	const struct node_version *version;
	uint32_t i;

	for (i = 0; (version = node_versions__at(i)); i++)
		if (version->major == major && version->minor == minor)
			return version;
	return NULL;
}
