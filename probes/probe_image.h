/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_IMAGE_H
#define BRAID_PROBE_IMAGE_H

#include "core/target/liveness.h"
#include "probes/attach.h"
#include "probes/catalogue.h"
#include "probes/usdt.h"

/* The means of one ELF file to observe the calls of its runtime: its probe sites, those that braid
 * uses, those that fire, and the resulting source of frames. */

#define PROBE_VERSION_BYTES 64
#define PROBE_REASON_BYTES  400

/* the frame source ladder, best first */
enum probe_rung {
	RUNG_WALK,   /* the interpreter's own frames, read at each sample */
	RUNG_USDT,   /* a pair of sites that sees all calls and returns */
	RUNG_UPROBE, /* the same by entry and return of a function */
	RUNG_MAP,    /* names of machine code that the runtime writes into a perf map */
	RUNG_NATIVE,
	PROBE_RUNGS_N
};

struct probe_source {
	bool works;
	char reason[PROBE_REASON_BYTES]; /* reason for the failure, or description */
	const char *remedy;		 /* NULL: none */
};

struct probe_row {
	const struct probe_want *want; /* NULL: useless */
	bool selected;		       /* false also if there is a better probe */
	/* Borrowed from the file, which is untrusted: escape them for output. `provider` is
	 * "uprobe" or "uretprobe" for a function. */
	const char *provider, *name, *arguments;
	struct probe_point point;
	uint64_t hits; /* hits during the measurement */
};

/* the verdict of a runtime's walker on the file */
struct probe_walker {
	const char *runtime; /* its name; NULL: no runtime detected the file */
	bool works;
	const char *version, *reason;
	const char *map; /* way to make the runtime write a map; NULL: none */
};

struct probe_image {
	struct elf_file *file;		     /* owned */
	const char *runtime;		     /* NULL: not a runtime of braid */
	char version[PROBE_VERSION_BYTES];   /* "": unknown */
	const struct probe_edition *edition; /* NULL: braid uses no probes of it */
	struct usdt_sites sites;
	struct probe_row *rows; /* those of the catalogue first, then in the file's order */
	size_t n_rows;
	double measured_s; /* length of the measurement; 0: none */
	bool has_map;	   /* the process has a perf map */
	const char *map;   /* as in struct probe_walker */
	struct probe_source ladder[PROBE_RUNGS_N];
};

/* Returns the catalogue that recognizes the file, or NULL. */
const struct probe_catalogue *probe_image__catalogue(const struct elf_file *file);

/* Takes ownership of @file, also on failure. Returns 0, -EBADMSG for malformed notes, or
 * -ENOMEM. */
int probe_image__new(struct elf_file *file, const struct probe_walker *walker, bool has_map,
		     struct probe_image **ret, struct err *err);
void probe_image__free(struct probe_image *image); /* NULL is fine */

/* Evaluates the ladder after hits were filled in. The hits of a pair (core/target/liveness.h)
 * override the tables. */
void probe_image__evaluate(struct probe_image *image);

/* Returns the best rung that works, among those that the caller can use (bit n: rung n). */
enum probe_rung probe_image__choose(const struct probe_image *image, unsigned usable);

/* Returns the hits of all sites of a probe. */
uint64_t probe_image__hits(const struct probe_image *image, const struct probe_want *want);

/* Returns the probe at the other end of the call, if the file has it. */
const struct probe_want *probe_image__partner(const struct probe_image *image,
					      const struct probe_want *want);

/* Returns the liveness of a probe and its partner by their hits; LIVENESS_UNKNOWN without a
 * partner. */
enum liveness probe_image__liveness(const struct probe_image *image, const struct probe_want *want);

/* Returns true if both fire. With too few hits, the tables decide. */
bool probe_image__is_live(const struct probe_image *image, const struct probe_want *want);

/* Returns true if this probe is the one that fires too rarely in proportion to its partner. */
bool probe_image__is_dead(const struct probe_image *image, const struct probe_want *want);

#endif
