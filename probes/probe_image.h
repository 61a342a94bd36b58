/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_IMAGE_H
#define BRAID_PROBE_IMAGE_H

#include "core/target/liveness.h"
#include "probes/attach.h"
#include "probes/catalogue.h"
#include "probes/usdt.h"

/* What one ELF file offers to see the calls of its runtime by: its probe sites, which of them are
 * wanted and fire, and which source of frames follows from that. */

#define PROBE_VERSION_BYTES 64
#define PROBE_REASON_BYTES  400

/* The frame source ladder, best first. */
enum probe_rung {
	RUNG_WALK,   /* the interpreter's own frames, read at each sample */
	RUNG_USDT,   /* a pair of sites at which all calls and returns are seen */
	RUNG_UPROBE, /* the same by entry and return of a function */
	RUNG_MAP,    /* names of machine code that the runtime writes into a perf map */
	RUNG_NATIVE,
	PROBE_RUNGS_N
};

struct probe_source {
	bool works;
	char reason[PROBE_REASON_BYTES]; /* why not; what it is */
	const char *remedy;		 /* NULL: none */
};

struct probe_row {
	const struct probe_want *want; /* NULL: of no use */
	bool wanted;		       /* false also where something better is there */
	/* Borrowed from the file, and of its making: escape them. `provider` is "uprobe" or
	 * "uretprobe" for a function. */
	const char *provider, *name, *arguments;
	struct probe_point point;
	uint64_t hits; /* while measured */
};

/* What a runtime's walker says of the file. */
struct probe_walker {
	const char *runtime; /* its name; NULL: no runtime has detected the file */
	bool works;
	const char *version, *reason;
	const char *map; /* how to make the runtime write a map; NULL: no way is known */
};

struct probe_image {
	struct elf_file *file;		     /* owned */
	const char *runtime;		     /* NULL: no runtime that anybody knows */
	char version[PROBE_VERSION_BYTES];   /* "": unknown */
	const struct probe_edition *edition; /* NULL: no probes are wanted of it */
	struct usdt_sites sites;
	struct probe_row *rows; /* those of the catalogue first, then in the file's order */
	size_t n_rows;
	double measured_s; /* for so long hits were counted; 0: not at all */
	bool has_map;	   /* of the process */
	const char *map;   /* as in struct probe_walker */
	struct probe_source ladder[PROBE_RUNGS_N];
};

/* The catalogue that knows the file, or NULL. */
const struct probe_catalogue *probe_image__catalogue(const struct elf_file *file);

/* Takes `file`, also on failure. -EBADMSG for malformed notes, -ENOMEM. */
int probe_image__new(struct elf_file *file, const struct probe_walker *walker, bool has_map,
		     struct probe_image **ret, struct err *err);
void probe_image__free(struct probe_image *image); /* NULL is fine */

/* After hits were filled in: pairs are evaluated by these (core/target/liveness.h), whatever the
 * tables say.
 */
void probe_image__evaluate(struct probe_image *image);

/* The best rung that works. `usable` (bit n: rung n) leaves out what the caller cannot use. */
enum probe_rung probe_image__choose(const struct probe_image *image, unsigned usable);

/* Hits of all sites of a probe. */
uint64_t probe_image__hits(const struct probe_image *image, const struct probe_want *want);

/* The probe at the other end of the call, if the file has it. */
const struct probe_want *probe_image__partner(const struct probe_image *image,
					      const struct probe_want *want);

/* Of it and its partner, by their hits; LIVENESS_UNKNOWN where it has none. */
enum liveness probe_image__liveness(const struct probe_image *image, const struct probe_want *want);

/* Do both fire? With too few hits to know: what the tables say. */
bool probe_image__is_live(const struct probe_image *image, const struct probe_want *want);

/* Is it this one that does not fire in proportion to its partner? */
bool probe_image__is_dead(const struct probe_image *image, const struct probe_want *want);

#endif
