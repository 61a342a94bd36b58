// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/probing_usdt.h"

#include <errno.h>
#include <string.h>

int probing_usdt__probe(const struct probing_usdt *usdt, const struct usdt_site *site)
{
	for (int i = 0; i < usdt->n_probes && strcmp(site->provider, usdt->provider) == 0; i++)
		if (strcmp(site->name, usdt->probes[i].name) == 0)
			return i;
	return -1;
}

int probing_usdt__add(const struct probing_usdt *usdt, const struct probing *probing,
		      const struct elf_file *file, const struct usdt_sites *found,
		      uint32_t selected, void *ctx, struct probing_sites *sites, struct err *err)
{
	struct probing_site *site;
	uint32_t seen = 0;
	int rc = 0;

	for (size_t i = 0; !rc && i < found->n; i++) {
		int probe = probing_usdt__probe(usdt, &found->list[i]);

		if (probe < 0)
			continue;
		seen |= 1U << probe;
		if (!(selected & 1U << probe))
			continue;
		rc = probing_sites__add_usdt(sites, file, &found->list[i], usdt->probes[probe].role,
					     usdt->n_args, &site, err);
		if (rc)
			break;
		site->program = probing__program(probing, usdt->probes[probe].program);
		site->rec.runtime = usdt->walker;
		rc = usdt->settle(site, probe, file, ctx, err);
	}
	if (!rc && seen != (1U << usdt->n_probes) - 1)
		rc = err__set(err, -ENOENT, "%s", usdt->absent);
	return rc;
}

bool probing_result__is(struct probing_result *result, const struct elf_file *file)
{
	if (result->file == file)
		return true;
	*result = (struct probing_result) { .file = file };
	return false;
}

int probing_result__get(const struct probing_result *result, struct err *err)
{
	return result->rc ? err__set(err, result->rc, "%s", result->err.text) : 0;
}
