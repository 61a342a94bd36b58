/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CATALOGUE_H
#define BRAID_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/probe_rec.h"
#include "core/elf/elf_file.h"

/* Which probes of a runtime are wanted, and what is known of them: tables, one file per runtime
 * (probes/NAME.c). That a probe is in a file does not mean that it fires: what is said here was
 * found out by experiment. */

enum probe_life {
	PROBE_LIVES,	  /* fires whenever its code runs */
	PROBE_LIVES_WHEN, /* fires under a condition that cannot be seen in the file */
};

struct probe_want {
	const char *provider; /* NULL: no site but a function, probed at its entry or return */
	const char *name;
	const char *partner; /* name of the probe at the call's other end; NULL: none */
	enum probe_role role;
	enum probe_life life;
	/* With its partner it sees every call of the language, so that a stack can be kept of it.
	 */
	bool frames;
	const char *why;    /* what it is wanted for */
	const char *only;   /* PROBE_LIVES_WHEN: if, while or when; else what it sees; NULL: all */
	const char *remedy; /* if it does not fire */
};

/* What a range of versions has in common. */
struct probe_edition {
	const char *name; /* for people */
	const struct probe_want *wants;
	size_t n_wants;
	const char *no_sites; /* why a file of it may lack the sites */
	const char *map;      /* how to get a perf map; NULL: not at all */
};

struct probe_catalogue {
	const char *runtime; /* as in the registry of runtimes */

	/* The file's edition; NULL: the file is no such runtime. */
	const struct probe_edition *(*choose)(const struct elf_file *file);

	const char *version_symbol; /* of a version text in the file; NULL: there is none */
};

extern const struct probe_catalogue *const probe_catalogues[]; /* NULL-terminated */

#endif
