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

/* BPF programs attached to places in ELF files, and raised semaphores. All resources are file
 * descriptors of this process, so that the kernel releases them however it ends. */
/* clang-format off */
/* The meaning of a PID, by experiment (Linux 6.18). Such a probe is an event of one task, and
 * applies to that task's address space:
 *
 *   threads  The probe fires in all threads, also in later ones. It ends with the very thread whose
 *            id was given: if the main thread exits and others continue, it no longer fires.
 *   fork     The probe does not fire in the child. The child has copies of the breakpoints. Each
 *            costs it one trap, in which the kernel removes the copy. It also has copies of the
 *            raised semaphores, until that trap, or until the parent's probe is detached.
 *   exec     The probe continues if the process maps the same file again, with semaphores.
 *
 * With PID -1 the probe fires in all processes that map the file, also in later ones. */
/* clang-format on */
struct probe_links;

struct probe_point {
	const struct elf_file *file; /* from a file, not from memory; needs no name */
	uint64_t pc_vaddr;
	uint64_t semaphore_vaddr; /* raised while attached; 0: none */
	bool retprobe;		  /* at the return of the function that begins at pc_vaddr */
	uint64_t cookie;	  /* bpf_get_attach_cookie() */
};

/* Returns the kernel's action at a hit of @point, by the code in the file at the point. */
enum trap_kind probe_point__trap(const struct probe_point *point);

struct probe_links *probe_links__new(void);	   /* NULL: out of memory */
void probe_links__free(struct probe_links *links); /* detaches; NULL is fine */

/* Attaches @program (loaded, of type kprobe) at all points, or at none. For a program of
 * core/kernel/uprobe_multi.h, consecutive points in one file share a link. @pid is the thread
 * group's id, or -1 for every process that maps the file. Returns 0, or -EPERM without the
 * privilege. Returns -EINVAL if there is no code, or if another tool probes the point with another
 * semaphore. */
int probe_links__attach(struct probe_links *links, const struct bpf_program *program, pid_t pid,
			const struct probe_point *points, size_t n, struct err *err);

/* Raises a semaphore without a probe at its site: some interpreters take another path while it is
 * raised. @nothing is an empty program. The kernel raises semaphores for uprobes only. So the
 * program is attached where the process does not execute again: at its start or end. */
int probe_links__raise_semaphore(struct probe_links *links, const struct bpf_program *nothing,
				 pid_t pid, const struct elf_file *file, uint64_t semaphore_vaddr,
				 struct err *err);

/* Returns the traps of all probes that were attached; bit n: some site has the trap of enum
 * trap_kind n. */
uint32_t probe_links__traps(const struct probe_links *links);

/* Detaches everything in these lists, in reverse order. All at once, as the kernel removes a probe
 * at the beginning of a wait of up to 1 s. */
void probe_links__detach_all(struct probe_links *const *list, size_t n);

/* Detaches everything. Idempotent. */
void probe_links__detach(struct probe_links *links);

#endif
