/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUNTIME_H
#define BRAID_RUNTIME_H

/* The contract between the profiler and its runtimes. A runtime is one stem everywhere
 * (runtimes/NAME*.c, bpf/NAME.bpf.c, probes/NAME.c, fixtures/NAME/) and one `const struct runtime`
 * in runtimes/registry.c. Nothing else in the tree knows a language by name.
 *
 * Three lifetimes:
 *   image     one ELF file. detect and prepare look at the file only, so their result serves
 *             every process that maps it.
 *   instance  one process, or rather one address space: attach tells the kernel half where this
 *             process has what prepare found, and detach takes it back.
 *   session   one run of braid: open to close; owns all names learnt.
 *
 * A runtime that is not enabled costs nothing: its BPF programs are not loaded, its maps not
 * created, none of its hooks called. */

#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/elf_file.h"
#include "core/err.h"

#define RUNTIME_VERSION_BYTES 32
#define RUNTIME_REASON_BYTES  200

enum runtime_support {
	RUNTIME_SUPPORTED,
	RUNTIME_DEGRADED, /* usable; the reason says what is missing */
	RUNTIME_REFUSED,  /* not usable; the reason says why and what would help */
};

/* What prepare found out about one image. Never "treat it as the nearest known version". */
struct runtime_verdict {
	enum runtime_support support;
	char version[RUNTIME_VERSION_BYTES]; /* "3.11.2" */
	char reason[RUNTIME_REASON_BYTES];   /* one sentence; "" when supported */
};

struct runtime_image;	/* a runtime's own knowledge of one ELF file */
struct runtime_session; /* a runtime's own state of one run */

/* One instance. */
struct runtime_target {
	uint32_t pid;	/* as braid sees it; for process_vm_readv and /proc */
	uint32_t space; /* key of all kernel-half state of this address space */
	uint64_t bias;	/* address in the process = link-time address + bias */
	const struct runtime_image *image;
};

/* What a frame key stands for. Strings are borrowed until the session's next call. */
struct runtime_symbol {
	const char *function; /* never NULL */
	const char *file;     /* NULL: unknown */
	uint32_t line;	      /* 0: unknown */
};

struct runtime {
	/* --- identity --- */
	const char *name;	 /* as in -r and in recordings: "python" */
	const char *suffix;	 /* for --annotate: "_[py]" */
	const char *versions;	 /* for people: what is supported */
	int walker;		 /* slot in the kernel half (bpf/shared.h), -1: no walker */
	const char *program;	 /* name of the walker's BPF program; NULL: none */
	const char *const *maps; /* its BPF maps, NULL-terminated; NULL: none */
	/* The map among `maps`, or NULL, that holds one entry per CPU and must be sized so. */
	const char *cpu_map;

	/* --- image --- */

	/* Is this file (part of) such a runtime? Cheap: names first. 0 no, 1 yes, negative errno:
	 * it claims to be but is broken. NULL: never (the runtime has no images of its own). */
	int (*detect)(const struct elf_file *file);

	/* Called after detect said yes. Fills `ret_verdict` always; on RUNTIME_SUPPORTED and
	 * RUNTIME_DEGRADED also `ret_image`. 0 or -ENOMEM. */
	int (*prepare)(const struct elf_file *file, struct runtime_image **ret_image,
		       struct runtime_verdict *ret_verdict);
	void (*image_free)(struct runtime_image *image); /* NULL is fine */

	/* --- session --- */

	/* After the BPF object is loaded. */
	int (*open)(struct bpf_object *object, struct runtime_session **ret, struct err *err);
	void (*close)(struct runtime_session *session); /* idempotent on NULL */

	/* --- instance --- */

	/* All or nothing. From its return on the walker may run for this address space. */
	int (*attach)(struct runtime_session *session, const struct runtime_target *target,
		      struct err *err);
	/* The address space is gone (exit, exec). Idempotent, cannot fail. */
	void (*detach)(struct runtime_session *session, uint32_t space);

	/* --- records and names --- */

	/* A REC_CODE of this runtime's walker. `size` is what arrived: untrusted. 0, -EBADMSG or
	 * -ENOMEM. Must not block or print. */
	int (*on_code)(struct runtime_session *session, const struct rec_code *rec, size_t size);

	/* Names one frame key. 0; -ENOENT for a code number that was never announced. */
	int (*symbolize)(struct runtime_session *session, uint64_t key, struct runtime_symbol *ret);
};

#endif
