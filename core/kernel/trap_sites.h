/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRAP_SITES_H
#define BRAID_TRAP_SITES_H

#include <stdint.h>

/* Code to be probed: functions that do nearly nothing. Each begins with the instruction in its
 * name. A pair has a one-byte nop at the beginning and another one 8 bytes later, like USDT probes
 * at a function's entry and return. The arguments are for the probes. There are several functions
 * of a kind, so that each can have its own probes at the same time. */
typedef void (*trap_site_fn)(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_nop(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_nop5(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_push(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_push_return(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_push_pair(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_step(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_pair(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_pair_shadow(uintptr_t a, uintptr_t b, uintptr_t c);
void trap_site_pair_calls(uintptr_t a, uintptr_t b, uintptr_t c);
#define TRAP_SITE_PAIR_RETURN 8

/* Returns the link-time address of code in this program, and its offset in the file, or -ENOENT for
 * other code. */
int trap_site__find(const void *code, uint64_t *ret_vaddr, uint64_t *ret_offset);

#endif
