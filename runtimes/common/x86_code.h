/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_X86_CODE_H
#define BRAID_X86_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"
#include "runtimes/runtime.h"

/* Reads x86-64 machine code of a file without a disassembler: a few instruction forms are searched
 * at each byte, and the addresses in them must be valid. Addresses are link-time addresses. */

#define X86_STUB_BYTES_MAX 256

/* The beginning of a function. */
struct x86_stub {
	uint8_t code[X86_STUB_BYTES_MAX];
	size_t size;
	uint64_t vaddr;
};

/* Reads the function with the symbol @name. Returns 0, or -ENOENT if there is none, or it has no
 * size or is too small. */
int x86_stub__read(const struct elf_file *file, const char *name, struct x86_stub *ret);

/* Returns true if the stub has the @n bytes at byte @i. */
bool x86_stub__has(const struct x86_stub *stub, size_t i, const char *bytes, size_t n);

/* x86_stub__value() returns the 32 bits at byte `i`, which must be in the stub. __relative()
 * returns the address at that distance from the next instruction, if the 32 bits end this one. */
uint32_t x86_stub__value(const struct x86_stub *stub, size_t i);
uint64_t x86_stub__relative(const struct x86_stub *stub, size_t i);

/* Returns the constant address from which an instruction at byte @i loads %edi; 0: there is no such
 * instruction. */
uint64_t x86_stub__loads_edi(const struct x86_stub *stub, size_t i);

enum x86_tls_kind {
	X86_TLS_FIXED, /* at fs base + offset */
	X86_TLS_SLOT,  /* at fs base + the word at slot_vaddr */
	X86_TLS_INDEX, /* in the block of the module whose number is the word at slot_vaddr, at
			* offset + the word behind it (the ABI's tls_index) */
};

/* Location of a thread-local variable. */
struct x86_tls {
	enum x86_tls_kind kind;
	int64_t offset;
	uint64_t slot_vaddr;
};

/* Finds the variable in a process's threads: at `*ret_at` from the fs base, or in the block of
 * module `*ret_module` if that is not 0. `bias` is the bias of the file in the process. Returns 0,
 * or -EAGAIN if the dynamic linker has not set the variable up yet. */
int x86_tls__locate(const struct x86_tls *tls, uint32_t pid, uint64_t bias, uint32_t *ret_module,
		    uint64_t *ret_at);

/* Finds the 64-bit thread-local variable that the function loads first. Returns 0 or -ENOENT. */
int x86_stub__tls(const struct x86_stub *stub, struct x86_tls *ret);

/* Return true if the address is in a segment without code, or in a segment with code. */
bool x86_code__is_data(const struct elf_file *file, uint64_t vaddr);
bool x86_code__is_code(const struct elf_file *file, uint64_t vaddr);

/* The functions of a file by its frame descriptions. */
struct x86_functions {
	struct runtime_range *list; /* owned; in order of their start */
	size_t n, cap;
};

/* Returns 0, -ENOMEM, or an error of cfi_entries__functions(). */
int x86_functions__read(const struct elf_file *file, struct x86_functions *ret);
void x86_functions__done(struct x86_functions *functions); /* idempotent */

/* Returns the function that starts at @vaddr, or NULL. */
const struct runtime_range *x86_functions__at(const struct x86_functions *functions,
					      uint64_t vaddr);

/* Sets *@ret to the cold part of the function whose hot part is @hot, if the compiler placed a part
 * elsewhere. Returns false if there is no cold part. */
bool x86_functions__cold(const struct x86_functions *functions, const struct elf_file *file,
			 const struct runtime_range *hot, struct runtime_range *ret);

/* Returns the code of a range, owned by the caller. NULL: the file does not contain all of it, or
 * the range is empty or unreasonably long. */
uint8_t *x86_code__read(const struct elf_file *file, const struct runtime_range *range);

/* A use of a field: `mov 1016(%rcx),%rax`, `lea 184(%rbp),%rdi`. */
enum x86_use {
	X86_USE_ANY,
	X86_USE_ADDRESS, /* by lea */
};

/* Returns true if the code of @function has an instruction with a displacement of @offset, from 128
 * on, from any register. With @base, the link-time address of a variable, the field of this
 * variable counts as well. */
bool x86_code__uses(const struct elf_file *file, const char *function, uint64_t base,
		    uint32_t offset, enum x86_use use);

#endif
