/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_BLOBS_H
#define BRAID_JVM_BLOBS_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_vm.h"

#define JVM_BLOB_NAME_BYTES 64

/* An entry of the code cache: an nmethod, the interpreter, a stub (class CodeBlob). */
struct jvm_blob {
	uint64_t address;		/* address of the CodeBlob */
	uint64_t code;			/* start of its machine code */
	uint64_t end;			/* end of the whole blob, exclusive */
	uint64_t name_address;		/* address of the text in `name` */
	char name[JVM_BLOB_NAME_BYTES]; /* "nmethod", "Interpreter", "StubRoutines (1)" */
	uint64_t method;		/* address of the Method; valid in an nmethod only */
	uint32_t compile_id;
};

/* Calls `visit` for the blobs in the first `max` blocks of heap `i` of jvm_proc_rec, by rising
 * address. Stops when `visit` returns anything but 0, and returns that value; else 0. A running
 * JVM changes its code cache, so that blobs may be missing. */
int jvm_blobs__each(const struct jvm_vm *vm, size_t i, size_t max,
		    int (*visit)(const struct jvm_blob *blob, void *arg), void *arg);

/* Finds the blob that holds `pc`, by the code cache's own map of segments. Returns 0, -ENOENT if
 * there is none, or -EFAULT. */
int jvm_blobs__find(const struct jvm_vm *vm, uint64_t pc, struct jvm_blob *ret);

/* Reads the blob at `address`. Returns 0, or -EFAULT if it is unreadable. */
int jvm_blobs__read(const struct jvm_vm *vm, uint64_t address, struct jvm_blob *ret);

#endif
