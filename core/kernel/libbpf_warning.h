/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIBBPF_WARNING_H
#define BRAID_LIBBPF_WARNING_H

/* libbpf reports each failure by a series of warnings, through one function for all threads: first
 * the cause, then the verifier's log, then further failures. The first warning of each thread is
 * stored for the message to the user. */

/* Stores the warnings of all threads instead of printing them. Idempotent. */
void libbpf_warning__keep(void);

/* Clears this thread's warnings, so that the next one is the first. Called before each load. */
void libbpf_warning__begin(void);

/* Returns this thread's first warning, followed by the verifier's reason if there is one; "" for
 * none. Borrowed until the thread's next warning or libbpf_warning__begin(). */
const char *libbpf_warning__first(void);

/* Also passes every warning of every thread to @show, in full; lines end with '\n'. A verifier's
 * log may have 16 MB. NULL ends that. Includes libbpf_warning__keep(). */
void libbpf_warning__show(void (*show)(const char *text));

#endif
