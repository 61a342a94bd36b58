/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_FUZZ_H
#define BRAID_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fuzz target is one file f_NAME.c with these two functions. It needs no entry in a list. */

/* Parses arbitrary bytes. Returns true only if it reached the purpose of the parser (a symbol has a
 * line, a stack has names). Every seed must get there, and an empty input must not. */
bool target__run(const uint8_t *data, size_t size);

/* Writes the inputs to start from, by fuzz__seed() and fuzz__seed_elf(). They should be made by the
 * product's own writer, by a compiler, or from its structures, so that they cannot become stale. */
void target__seeds(void);

void fuzz__seed(const void *data, size_t size);
void fuzz__seed_text(const char *text);

/* Writes a program compiled by gcc with the flags (-x assembler for other sources than C). It is
 * small, has main as its entry, and uses no library. */
void fuzz__seed_elf(const char *flags, const char *source);

/* As fuzz__seed_elf(), but returns the bytes, owned by the caller. */
uint8_t *fuzz__compile(const char *flags, const char *source, size_t *ret_size);

/* Writes the bytes to a temporary file, for parsers that open their file by name. Returns its name,
 * which is always the same. Without @data removes the file. */
const char *fuzz__file(const void *data, size_t size);

/* Returns the directory of that file. It contains nothing but the target's own files. */
const char *fuzz__dir(void);

/* Returns the whole file, owned by the caller. Ends the process if that fails. */
uint8_t *fuzz__read(const char *path, size_t *ret_size);

/* Ends the process with a message, as a failure of the target itself. */
__attribute__((noreturn, format(printf, 1, 2))) void fuzz__die(const char *fmt, ...);

#endif
