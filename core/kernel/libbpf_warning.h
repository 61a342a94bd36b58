/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIBBPF_WARNING_H
#define BRAID_LIBBPF_WARNING_H

/* libbpf prints what it complains of, through one function for all threads. Instead each thread
 * keeps its own last complaint, for the sentence that says what went wrong. */

void libbpf_warning__keep(void); /* from now on, in all threads; idempotent */

/* This thread's last one, "" for none; borrowed until the next. */
const char *libbpf_warning__last(void);

#endif
