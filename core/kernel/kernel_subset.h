/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_SUBSET_H
#define BRAID_KERNEL_SUBSET_H

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/base/err.h"

/* A subset of the kernel half's programs as a BPF object of its own. The verifier thus checks only
 * programs that are needed, at the time of need. Lists of names are NULL-terminated. */

/* --- an object with all programs --- */

/* Returns an open object with all programs, or NULL with errno. Destroy it by
 * braid_bpf__destroy(). */
struct braid_bpf *kernel_subset__open_whole(void);

/* Sets the message for a load that failed with @code: the missing privilege, or the first report of
 * libbpf and the verifier. Returns -EPERM, -ENOTSUP without BTF, or @code. */
int kernel_subset__explain(int code, struct err *err);

/* Gives a map that the session does not need the smallest size that its type allows.
 *
 * No map is left out of an object. Kernels before 6.8 verify every global function of a program by
 * itself, also one without a caller. They refuse a function whose map does not exist. So a session
 * without a runtime still has the maps of that runtime's global functions, with one element each
 * (docs/decisions/0070-small-maps.md). Returns 0 or an error of libbpf. */
int kernel_subset__shrink(struct bpf_map *map);

/* --- an object with few maps of usual size: for measurements and counts without a session --- */

/* Opens the BPF object with only @programs selected, and with all maps but @maps shrunk. The caller
 * sizes @maps and sets constants. Destroy it by braid_bpf__destroy(). */
int kernel_subset__open(const char *const *programs, const char *const *maps,
			struct braid_bpf **ret, struct err *err);

/* Loads the object. Errors are those of kernel_subset__explain(). */
int kernel_subset__load(struct braid_bpf *skel, struct err *err);

/* --- an object that shares the maps of another one --- */

struct kernel_subset_map {
	const char *name; /* NULL: end of the list */
	int fd;		  /* replacement; -1: the object has its own */
};

/* Opens @programs in an object that shares the maps of @with, except the maps in @but. Does not
 * load it. @with must be loaded and must outlive the object. Returns 0 or an error of libbpf. Close
 * it by bpf_object__close(). */
int kernel_subset__beside(const struct bpf_object *with, const char *const *programs,
			  const struct kernel_subset_map *but, struct bpf_object **ret);

/* Replaces those maps of @object that @maps names. Returns 0 or an error of libbpf. */
int kernel_subset__replace_maps(struct bpf_object *object, const struct kernel_subset_map *maps);

/* Loads the object. Errors are those of kernel_subset__explain(). */
int kernel_subset__load_object(struct bpf_object *object, struct err *err);

/* Selects @programs for the load of an open object, or deselects them. Returns 0 or -ENOENT. */
int kernel_subset__select(struct bpf_object *object, const char *const *programs, bool loaded);

#endif
