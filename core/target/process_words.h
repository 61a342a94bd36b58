/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_WORDS_H
#define BRAID_PROCESS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arguments and environment of a process at its last exec. */

/* Returns true if @text is part of an argument of process @pid, or of the environment variable
 * @variable ("NAME="; "": any variable). '_' and '-' are equal, as some programs accept either. */
bool process_words__have(uint32_t pid, const char *variable, const char *text);

/* Copies the value of the environment variable @variable ("NAME=") to @buf. Returns 0; -ENOENT: no
 * such variable, or the environment is unreadable; -ENAMETOOLONG. */
int process_words__variable(uint32_t pid, const char *variable, char *buf, size_t size);

#endif
