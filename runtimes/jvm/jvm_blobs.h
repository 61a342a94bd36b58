/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_BLOBS_H
#define BRAID_JVM_BLOBS_H

#include <stddef.h>
#include <stdint.h>

#include "runtimes/jvm/jvm_vm.h"

#define JVM_BLOB_NAME_BYTES 64

/* What lies in the code cache: nmethods, the interpreter, stubs (class CodeBlob). */
struct jvm_blob {
	uint64_t address;		/* of the CodeBlob */
	uint64_t code;			/* where its code begins */
	uint64_t end;			/* of all that belongs to it */
	uint64_t name_address;		/* of the text below */
	char name[JVM_BLOB_NAME_BYTES]; /* "nmethod", "Interpreter", "StubRoutines (1)" */
	uint64_t method;		/* Method; these two make sense in an nmethod only */
	uint32_t compile_id;
};

/* Calls `visit` for the blobs in the first `max` blocks of heap `i` of jvm_proc_rec, by rising
 * address, until it returns anything but 0, which is then returned. A running JVM changes its code
 * cache: what is told may be incomplete. Else 0. */
int jvm_blobs__each(const struct jvm_vm *vm, size_t i, size_t max,
		    int (*visit)(const struct jvm_blob *blob, void *arg), void *arg);

/* The blob that holds `pc`, as the code cache's own map of segments tells. -ENOENT: none;
 * -EFAULT. */
int jvm_blobs__find(const struct jvm_vm *vm, uint64_t pc, struct jvm_blob *ret);

/* The blob at `address`. 0, or -EFAULT where nothing is readable. */
int jvm_blobs__read(const struct jvm_vm *vm, uint64_t address, struct jvm_blob *ret);

#endif
