/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBING_USDT_H
#define BRAID_PROBING_USDT_H

#include <stdbool.h>

#include "runtimes/common/probing.h"

/* The USDT probes by which an interpreter tells of calls and returns. */
struct probing_usdt {
	const char *provider;
	const char *absent; /* the sentence about a file that lacks one of them */
	uint32_t walker, n_args;
	struct {
		const char *name, *program;
		uint32_t role;
	} probes[4];
	int n_probes;
	/* Completes the record of a site of the probe with this number: where its anchor is. */
	int (*settle)(struct probing_site *site, int probe, const struct elf_file *file, void *ctx,
		      struct err *err);
};

/* The probe's number; -1: another one. */
int probing_usdt__probe(const struct probing_usdt *usdt, const struct usdt_site *site);

/* Appends those of the found sites that are of `wanted` probes (a bit for each number). -ENOENT if
 * not all probes are there, wanted or not; errors of probing_sites__add_usdt and `settle`. */
int probing_usdt__add(const struct probing_usdt *usdt, const struct probing *probing,
		      const struct elf_file *file, const struct usdt_sites *found, uint32_t wanted,
		      void *ctx, struct probing_sites *sites, struct err *err);

/* What was found in the file that was looked at last: processes fork, and execute it again. */
struct probing_known {
	const struct elf_file *file;
	struct probing_sites sites;
	int rc;
	struct err err;
};

/* Is it this file? Else it is from now on, with nothing found yet. */
bool probing_known__is(struct probing_known *known, const struct elf_file *file);

/* 0, or the error that came of looking. */
int probing_known__tell(const struct probing_known *known, struct err *err);

#endif
