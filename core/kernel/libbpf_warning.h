/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIBBPF_WARNING_H
#define BRAID_LIBBPF_WARNING_H

/* libbpf reports each failure by a series of warnings, through one function for all threads: first
 * the cause, then the verifier's log, then what failed in consequence. Each thread keeps its own
 * first warning for the sentence that the user gets. */

/* From now on the warnings of all threads are kept instead of printed. Idempotent. */
void libbpf_warning__keep(void);

/* Forgets this thread's warnings: the next one is the first. Called before a load begins. */
void libbpf_warning__begin(void);

/* This thread's first warning, and in parentheses the verifier's reason if it gave one; "" for
 * none. Borrowed until the next warning of the thread or the next libbpf_warning__begin(). */
const char *libbpf_warning__first(void);

/* Passes every warning of every thread to @show as well, in full; lines end with '\n'. A verifier's
 * log is up to 16 MB long. NULL: to nobody. Also does what libbpf_warning__keep() does. */
void libbpf_warning__show(void (*show)(const char *text));

#endif
