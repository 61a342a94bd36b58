/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ATTACH_H
#define BRAID_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bpf/libbpf.h>

#include "core/base/err.h"
#include "core/elf/elf_file.h"
#include "core/kernel/trap.h"

/* BPF programs attached to places in ELF files, and semaphores raised. Everything is a file
 * descriptor of this process: however it ends, the kernel takes all of it back.
 */
/* clang-format off */
/* What a PID means, by experiment (Linux 6.18), since such a probe is an event of one task, and counts
 * for that task's address space:
 *
 *   threads  All fire, also those born later. It ends with the very thread whose id was given: if the
 *            main thread exits and others go on, nothing fires any more.
 *   fork     The child fires nothing. It has copies of the breakpoints, and each costs it one trap, in
 *            which the kernel takes it out; and of the raised semaphores, each of which it keeps until
 *            then, or until the parent's probe is detached.
 *   exec     Goes on if the process maps the same file anew, semaphores included.
 *
 * With PID -1 all processes that map the file fire, also those that start later. */
/* clang-format on */
struct probe_links;

struct probe_point {
	const struct elf_file *file; /* opened from a file, not from memory; whether it still has
				      * a name, in whatever mount namespace, does not matter */
	uint64_t pc_vaddr;
	uint64_t semaphore_vaddr; /* raised while attached; 0: none */
	bool retprobe;		  /* at the return of the function that begins at pc_vaddr */
	uint64_t cookie;	  /* bpf_get_attach_cookie() */
};

/* What the kernel will do at a hit of it, by the code that is in the file where it is attached. */
enum trap_kind probe_point__trap(const struct probe_point *point);

struct probe_links *probe_links__new(void);	   /* NULL: out of memory */
void probe_links__free(struct probe_links *links); /* detaches; NULL is fine */

/* Attaches `program` (loaded, of type kprobe) at all points, or at none of them; if it is one of
 * core/kernel/uprobe_multi.h, those that follow each other in one file by one link. `pid` is the
 * thread group's id, or -1 for every process that maps the file. -EPERM without the privilege,
 * -EINVAL where no code is, or for a point that somebody else probes with another semaphore. */
int probe_links__attach(struct probe_links *links, const struct bpf_program *program, pid_t pid,
			const struct probe_point *points, size_t n, struct err *err);

/* Raises a semaphore whose site is not to be probed: some interpreters take another path while it
 * is up. `nothing` is an empty program. The kernel raises semaphores for uprobes only, so it is
 * attached where the process does not come again: at its start or end. */
int probe_links__raise_semaphore(struct probe_links *links, const struct bpf_program *nothing,
				 pid_t pid, const struct elf_file *file, uint64_t semaphore_vaddr,
				 struct err *err);

/* Of the probes that have been attached: bit n: some site's trap is of enum trap_kind n. */
uint32_t probe_links__traps(const struct probe_links *links);

/* Takes back everything of these, those that were attached last first. All at once: the kernel
 * removes a probe at the beginning of a wait of up to a second. */
void probe_links__detach_all(struct probe_links *const *list, size_t n);

/* Takes back everything. Idempotent. */
void probe_links__detach(struct probe_links *links);

#endif
