/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_SCOPES_H
#define BRAID_JVM_SCOPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What HotSpot's compilers tell of a compiled method's code: its PcDescs, and the stream of scopes
 * that they point into (src/hotspot/share/code/{pcDesc.hpp,debugInfoRec.hpp,scopeDesc.cpp}). */
struct jvm_scopes {
	struct jvm_pc {
		int32_t offset; /* into the code; they rise, from -1 to INT32_MAX */
		uint32_t scope; /* 0: none, as of these two */
	} * pcs;
	size_t n_pcs;
	uint8_t *data;
	size_t size;
	bool is_without_zero; /* see struct jvm_stream */
};

/* Innermost scope at `pc_offset`: of the first place described that does not lie before it, which
 * for a return address is that very address, and for an instruction (`exact`) must lie behind its
 * start: that is how HotSpot itself answers (CompiledMethod::pc_desc_near). Where none follows, of
 * the last one before it: loops may come behind all else. 0: none. */
uint32_t jvm_scopes__at(const struct jvm_scopes *scopes, uint32_t pc_offset, bool exact);

/* Is there a description of this very return address? */
bool jvm_scopes__describe(const struct jvm_scopes *scopes, uint32_t pc_offset);

/* Do the places described around an instruction have the same methods inlined, by the same calls?
 */
bool jvm_scopes__agree(const struct jvm_scopes *scopes, uint32_t pc_offset);

struct jvm_scope_place {
	uint32_t method; /* index into the nmethod's metadata + 1; 0: none */
	uint32_t bci;
	uint32_t caller; /* the scope that this one is inlined into; 0: none */
};

/* 0, or -EBADMSG. Callers lie before the scopes inlined into them, so a walk comes to an end. */
int jvm_scopes__read(const struct jvm_scopes *scopes, uint32_t scope, struct jvm_scope_place *ret);

#endif
