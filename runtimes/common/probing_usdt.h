/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBING_USDT_H
#define BRAID_PROBING_USDT_H

#include <stdbool.h>

#include "runtimes/common/probing.h"

/* The USDT probes with which an interpreter reports calls and returns. */
struct probing_usdt {
	const char *provider;
	const char *absent; /* message about a file that lacks one of the probes */
	uint32_t walker, n_args;
	struct {
		const char *name, *program;
		uint32_t role;
	} probes[4];
	int n_probes;
	/* Completes the record of a site of probe number `probe` with the place of its anchor. */
	int (*settle)(struct probing_site *site, int probe, const struct elf_file *file, void *ctx,
		      struct err *err);
};

/* Returns the number of the site's probe in @usdt; -1: another probe. */
int probing_usdt__probe(const struct probing_usdt *usdt, const struct usdt_site *site);

/* Appends the found sites of the probes that @selected selects (a bit for each number). Returns
 * -ENOENT if the file lacks any of the probes, selected or not, or an error of
 * probing_sites__add_usdt or `settle`. */
int probing_usdt__add(const struct probing_usdt *usdt, const struct probing *probing,
		      const struct elf_file *file, const struct usdt_sites *found,
		      uint32_t selected, void *ctx, struct probing_sites *sites, struct err *err);

/* The result for the last file that was searched. Processes fork and execute the same file again.
 */
struct probing_result {
	const struct elf_file *file;
	struct probing_sites sites;
	int rc;
	struct err err;
};

/* Returns true if the result is for @file. Otherwise makes it an empty result for @file. */
bool probing_result__is(struct probing_result *result, const struct elf_file *file);

/* Returns 0, or the error of the search. */
int probing_result__get(const struct probing_result *result, struct err *err);

#endif
