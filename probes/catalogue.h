/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CATALOGUE_H
#define BRAID_CATALOGUE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/probe_rec.h"
#include "core/elf/elf_file.h"

/* The probes of a runtime that braid uses, and their properties: tables, one file per runtime
 * (probes/NAME.c). A probe in a file need not fire: the properties here were found by
 * experiment. */

enum probe_life {
	PROBE_LIVES,	  /* fires whenever its code runs */
	PROBE_LIVES_WHEN, /* fires under a condition that the file does not show */
};

struct probe_want {
	const char *provider; /* NULL: not a site but a function, probed at its entry or return */
	const char *name;
	const char *partner; /* name of the probe at the call's other end; NULL: none */
	enum probe_role role;
	enum probe_life life;
	/* The probe and its partner see every call of the language, so that a stack can be
	 * maintained. */
	bool frames;
	const char *why;    /* purpose of the probe */
	const char *only;   /* condition (if, while, when), or the calls that it sees; NULL: all */
	const char *remedy; /* remedy if it does not fire */
};

/* the properties of a range of versions */
struct probe_edition {
	const char *name; /* for users */
	const struct probe_want *wants;
	size_t n_wants;
	const char *no_sites; /* reason why a file may lack the sites */
	const char *map;      /* way to get a perf map; NULL: none */
};

struct probe_catalogue {
	const char *runtime; /* as in the registry of runtimes */

	/* Returns the file's edition; NULL: the file is not such a runtime. */
	const struct probe_edition *(*choose)(const struct elf_file *file);

	const char *version_symbol; /* symbol of a version text in the file; NULL: none */
};

extern const struct probe_catalogue *const probe_catalogues[]; /* NULL-terminated */

#endif
