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

/* The processes whose shadow stacks a runtime's probes feed: the part that all runtimes share. */
struct probing;

#define PROBING_SITES_MAX 32 /* in one process; a probe may have several sites */

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

/* Appends a USDT site: its first `n_args` arguments are read. Returns -ENOTSUP if the site has
 * fewer arguments. The caller completes *@ret. */
int probing_sites__add_usdt(struct probing_sites *sites, const struct elf_file *file,
			    const struct usdt_site *from, uint32_t role, uint32_t n_args,
			    struct probing_site **ret, struct err *err);

/* Reuses the probes of this file that are attached to the process already, since new ones would
 * miss calls in between. They get the target's address space, whose number changes when a process
 * no longer shares it with a child; `ret` is as it was attached. Returns 1; 0 if the process has no
 * such probes, after detaching all others; or a negative errno. */
int probing__renew(struct probing *probing, const struct runtime_target *target,
		   struct runtime_probing *ret, struct err *err);

/* Attaches all sites, or none. Return sites come first, so that no seen entry lacks its return.
 * Fills in `by->traps`. */
int probing__attach(struct probing *probing, const struct runtime_target *target,
		    const struct probing_sites *sites, struct runtime_probing *by, struct err *err);
void probing__detach(struct probing *probing, uint32_t pid); /* idempotent */
void probing__detach_all(struct probing *probing);	     /* from all processes, in one call */

/* Sets the time (CLOCK_MONOTONIC) since which probes see all calls of the process's new threads. A
 * time of 1 includes the threads that exist. Without it, the kernel half treats the outer part of
 * each stack as missing. */
void probing__seen_since(struct probing *probing, uint32_t pid, uint64_t since_ns);

/* Returns the value of an environment variable with which the process was started. The caller frees
 * it. NULL: there is none, or it cannot be read. */
char *probing__environment(uint32_t pid, const char *variable);

/* Appends @word to an environment variable for the commands that braid starts. Returns 0 or -1. */
int probing__extend_environment(const char *variable, char separator, const char *word);

#endif
