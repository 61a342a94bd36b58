/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_PART_H
#define BRAID_KERNEL_PART_H

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/base/err.h"

/* Some programs of the kernel half, as one BPF object of its own: the verifier reads no more than
 * what is needed, when it is needed. Lists of names are NULL-terminated. */

/* --- with all of them --- */

/* NULL with errno. Destroy with braid_bpf__destroy. */
struct braid_bpf *kernel_part__open_whole(void);

/* Sets the sentence for a load that failed with @code: the missing privilege, or what libbpf and
 * the verifier reported first. Returns -EPERM, -ENOTSUP without BTF, or @code. */
int kernel_part__explain(int code, struct err *err);

/* Gives a map that the session does not need the smallest size that its type allows.
 *
 * No map is left out of an object. Kernels before 6.8 verify every global function of a program by
 * itself, also a function that nothing calls, and refuse one whose map does not exist. So a session
 * without a runtime still has the maps of that runtime's global functions, with one element each
 * (docs/decisions/0070-small-maps.md). 0 or what libbpf returns. */
int kernel_part__shrink(struct bpf_map *map);

/* --- with few maps of a usual size: for measuring and counting, where a session would be too much
 */

/* Opens the BPF object with all other programs left out and all other maps shrunk; the caller sizes
 * its maps and sets its constants. Destroy with braid_bpf__destroy. */
int kernel_part__open(const char *const *programs, const char *const *maps, struct braid_bpf **ret,
		      struct err *err);

/* Loads it. Errors as kernel_part__explain(). */
int kernel_part__load(struct braid_bpf *skel, struct err *err);

/* --- beside another one, with the maps of that --- */

struct kernel_part_map {
	const char *name; /* NULL: the end of a list */
	int fd;		  /* used instead; -1: the object has its own */
};

/* Opened, not loaded yet. `but`: maps that are not those of `with`, which is loaded, and outlives
 * it. What libbpf returns; close with bpf_object__close. */
int kernel_part__beside(const struct bpf_object *with, const char *const *programs,
			const struct kernel_part_map *but, struct bpf_object **ret);

/* The maps of @object that @maps names become those. What libbpf returns. */
int kernel_part__replace_maps(struct bpf_object *object, const struct kernel_part_map *maps);

/* Loads it. Errors as kernel_part__explain(). */
int kernel_part__load_object(struct bpf_object *object, struct err *err);

/* These programs are loaded, or not loaded, with an object that is open. -ENOENT. */
int kernel_part__select(struct bpf_object *object, const char *const *programs, bool loaded);

#endif
