/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SCOPES_H
#define BRAID_JVM_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The debug information of a compiled method: its PcDescs, and the stream of scopes that they
 * refer to (src/hotspot/share/code/{pcDesc.hpp,debugInfoRec.hpp,scopeDesc.cpp}). */
struct jvm_scopes {
	struct jvm_pc {
		int32_t offset; /* into the machine code; ascending, from -1 to INT32_MAX */
		uint32_t scope; /* 0: none, as for the first and the last one */
	} * pcs;
	size_t n_pcs;
	uint8_t *data;
	size_t size;
	bool is_without_zero; /* see struct jvm_stream */
};

/* Returns the innermost scope at `pc_offset`; 0: none. It is the scope of the first described
 * place at or after a return address, or after the start of an instruction (`exact`). HotSpot
 * finds it the same way (CompiledMethod::pc_desc_near). If no described place follows, it is the
 * scope of the last one before: loops may come after all other code. */
uint32_t jvm_scopes__at(const struct jvm_scopes *scopes, uint32_t pc_offset, bool exact);

/* Returns true if exactly this return address is described. */
bool jvm_scopes__describe(const struct jvm_scopes *scopes, uint32_t pc_offset);

/* Returns true if the described places around an instruction have the same methods inlined, by
 * the same calls. *@ret_start and *@ret_end are the offsets of these places. */
bool jvm_scopes__agree(const struct jvm_scopes *scopes, uint32_t pc_offset, uint32_t *ret_start,
		       uint32_t *ret_end);

#define INSTRUCTION_BYTES_MAX 15

/* Returns true if the machine code proves the methods of an instruction between two places that
 * agree. @code begins at the first place, and ends INSTRUCTION_BYTES_MAX bytes after the second
 * one, which is at @end. The instruction is at @at. No jump may lie from there up to the end of the
 * instruction at @end. C2 moves instructions of inlined methods in front of the jump that decides
 * which method is called. C2 also shares jumps and constants between methods. So neither place may
 * be at a constant. */
bool jvm_scopes__prove(const uint8_t *code, size_t at, size_t end);

struct jvm_scope_place {
	uint32_t method; /* index in the nmethod's metadata + 1; 0: none */
	uint32_t bci;
	uint32_t caller; /* the scope into which this one is inlined; 0: none */
};

/* Reads a scope. Returns 0 or -EBADMSG. Callers lie before the scopes inlined into them, so that
 * a walk ends. */
int jvm_scopes__read(const struct jvm_scopes *scopes, uint32_t scope, struct jvm_scope_place *ret);

#endif
