/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBING_H
#define BRAID_PROBING_H

#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/probe_rec.h"
#include "core/base/err.h"
#include "probes/attach.h"
#include "probes/usdt.h"
#include "runtimes/runtime.h"

/* Processes that a runtime's probes feed the shadow stacks of: what all runtimes do alike. */
struct probing;

#define PROBING_SITES_MAX 32 /* of one process: a probe may have several sites */

struct probing_site {
	struct probe_rec rec;	  /* without its address space */
	struct probe_point point; /* without its cookie */
	const struct bpf_program *program;
};

struct probing_sites {
	struct probing_site list[PROBING_SITES_MAX];
	size_t n;
	uint64_t semaphore_vaddr; /* to be raised as well, without a probe; 0: none */
};

/* `object` has the probe programs, which probing__program finds by name; they are loaded before the
 * first is attached. */
int probing__new(struct bpf_object *object, struct probing **ret, struct err *err);
void probing__free(struct probing *probing); /* detaches; NULL is fine */
const struct bpf_program *probing__program(const struct probing *probing, const char *name);

/* Appends a USDT site: its first `n_args` arguments are read. -ENOTSUP if it has fewer. `ret` is
 * for the caller to complete. */
int probing_sites__add_usdt(struct probing_sites *sites, const struct elf_file *file,
			    const struct usdt_site *from, uint32_t role, uint32_t n_args,
			    struct probing_site **ret, struct err *err);

/* Is this file probed in the process already? Then it has the target's address space from now on,
 * whose number changes when a process no longer shares it with a child, and `ret` is as it was
 * attached; probes that are attached anew would miss calls meanwhile. Else what is attached there
 * is detached, and the result is 0. 1, or a negative errno. */
int probing__renew(struct probing *probing, const struct runtime_target *target,
		   struct runtime_probing *ret, struct err *err);

/* Attaches all sites, or none: returns first, as an entry that is seen shall not lack its
 * return. Fills in `by->traps`. */
int probing__attach(struct probing *probing, const struct runtime_target *target,
		    const struct probing_sites *sites, struct runtime_probing *by, struct err *err);
void probing__detach(struct probing *probing, uint32_t pid); /* idempotent */
void probing__detach_all(struct probing *probing);	     /* of all processes, at once */

/* Tells the kernel half since when (CLOCK_MONOTONIC) it sees all calls of the process's new
 * threads (1: of all). Before, it takes every stack to lack its outer part. */
void probing__seen_since(struct probing *probing, uint32_t pid, uint64_t since_ns);

/* The value of a variable of the environment that the process was started with, for the caller to
 * free; NULL: it has none, or it cannot be read. */
char *probing__environment(uint32_t pid, const char *variable);

/* Appends a word to a variable of the environment that commands get. 0 or -1. */
int probing__extend_environment(const char *variable, char separator, const char *word);

#endif
