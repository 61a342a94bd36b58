/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_FUZZ_H
#define BRAID_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A fuzz target is one file f_NAME.c with these two functions; nothing else has to be told of it.
 */

/* Parses what may be anything. True only if it got through to what a parser is for (a symbol has a
 * line, a stack has names): every seed must get there, and no input at all must not. */
bool target__run(const uint8_t *data, size_t size);

/* Gives the inputs to start from, by fuzz__seed and fuzz__seed_elf. They should be made by the
 * product's own writer, by a compiler, or from its structures, so that they cannot be outdated. */
void target__seeds(void);

void fuzz__seed(const void *data, size_t size);
void fuzz__seed_text(const char *text);

/* A program by gcc with the flags (-x assembler for other sources than C): small, with main as its
 * entry, and no library. */
void fuzz__seed_elf(const char *flags, const char *source);

/* The same as bytes, owned by the caller. */
uint8_t *fuzz__compile(const char *flags, const char *source, size_t *ret_size);

/* A temporary name, always the same one, for parsers that open their file by name; with the bytes
 * in it. Without `data` it is removed. */
const char *fuzz__file(const void *data, size_t size);

/* The directory that it is in: it has nothing else in it that is not the target's own. */
const char *fuzz__dir(void);

/* The whole file, owned by the caller; ends the process where that fails. */
uint8_t *fuzz__read(const char *path, size_t *ret_size);

/* Ends the process with the sentence, as a failure of the target itself. */
__attribute__((noreturn, format(printf, 1, 2))) void fuzz__die(const char *fmt, ...);

#endif
