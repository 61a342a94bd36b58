/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROCESS_WORDS_H
#define BRAID_PROCESS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Arguments and environment of a process, as the process was given them at its last exec. */

/* Returns true if @text is part of an argument of process @pid, or of the environment variable
 * @variable ("NAME="; "": of any). '_' counts as '-' there, as some programs take either. */
bool process_words__have(uint32_t pid, const char *variable, const char *text);

/* Copies the value of the environment variable @variable ("NAME=") to @buf. 0; -ENOENT: the process
 * has none, or the environment is unreadable; -ENAMETOOLONG. */
int process_words__variable(uint32_t pid, const char *variable, char *buf, size_t size);

#endif
