// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/insn/function_returns.h"

const struct probe_catalogue *probe_image__catalogue(const struct elf_file *file)
{
	for (size_t i = 0; probe_catalogues[i]; i++)
		if (probe_catalogues[i]->choose(file))
			return probe_catalogues[i];
	return NULL;
}

static bool same_name(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool has_row(const struct probe_image *image, const struct probe_want *want)
{
	for (size_t i = 0; i < image->n_rows; i++)
		if (image->rows[i].want == want)
			return true;
	return false;
}

uint64_t probe_image__hits(const struct probe_image *image, const struct probe_want *want)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < image->n_rows; i++)
		if (image->rows[i].want == want)
			hits += image->rows[i].hits;
	return hits;
}

const struct probe_want *probe_image__partner(const struct probe_image *image,
					      const struct probe_want *want)
{
	for (size_t i = 0; image->edition && want->partner && i < image->edition->n_wants; i++) {
		const struct probe_want *other = &image->edition->wants[i];

		if (other != want && other->role != want->role &&
		    same_name(other->provider, want->provider) &&
		    same_name(other->name, want->partner) && has_row(image, other))
			return other;
	}
	return NULL;
}

enum liveness probe_image__liveness(const struct probe_image *image, const struct probe_want *want)
{
	const struct probe_want *partner = probe_image__partner(image, want);
	uint64_t hits = probe_image__hits(image, want), others;

	if (!partner)
		return LIVENESS_UNKNOWN;
	others = probe_image__hits(image, partner);
	return want->role == PROBE_ENTRY ? liveness__of(hits, others) : liveness__of(others, hits);
}

bool probe_image__is_live(const struct probe_image *image, const struct probe_want *want)
{
	const struct probe_want *partner = probe_image__partner(image, want);
	enum liveness liveness = probe_image__liveness(image, want);

	if (liveness == LIVENESS_UNKNOWN)
		return partner && want->life == PROBE_LIVES && partner->life == PROBE_LIVES;
	return liveness == LIVENESS_LIVES;
}

bool probe_image__is_dead(const struct probe_image *image, const struct probe_want *want)
{
	enum liveness dead = want->role == PROBE_ENTRY ? LIVENESS_NO_ENTRIES : LIVENESS_NO_RETURNS;

	return probe_image__liveness(image, want) == dead;
}

/* --- rows --- */

static const struct probe_want *find_want(const struct probe_edition *edition,
					  const struct usdt_site *site)
{
	for (size_t i = 0; edition && i < edition->n_wants; i++)
		if (edition->wants[i].provider &&
		    strcmp(edition->wants[i].provider, site->provider) == 0 &&
		    strcmp(edition->wants[i].name, site->name) == 0)
			return &edition->wants[i];
	return NULL;
}

/* Adds the rows of the sites for @want. */
static void add_sites(struct probe_image *image, const struct probe_want *want)
{
	for (size_t i = 0; i < image->sites.n; i++) {
		const struct usdt_site *site = &image->sites.list[i];

		if (find_want(image->edition, site) == want)
			image->rows[image->n_rows++] = (struct probe_row) {
				.want = want,
				.selected = want,
				.provider = site->provider,
				.name = site->name,
				.arguments = site->arguments,
				.point = { .file = image->file,
					   .pc_vaddr = site->pc_vaddr,
					   .semaphore_vaddr = site->semaphore_vaddr },
			};
	}
}

static void add_function(struct probe_image *image, const struct probe_want *want, bool selected,
			 uint64_t vaddr)
{
	image->rows[image->n_rows++] = (struct probe_row) {
		.want = want,
		.selected = selected && want->frames,
		.provider = want->role == PROBE_RETURN ? "uretprobe" : "uprobe",
		.name = want->name,
		.arguments = "",
		.point = { .file = image->file, .pc_vaddr = vaddr },
	};
}

/* Adds the function's `ret` instructions; none if these are not proven to be all returns. */
static int add_returns(struct probe_image *image, const struct probe_want *want, bool selected,
		       uint64_t vaddr)
{
	struct function_returns returns;
	struct function_map *map = NULL;
	struct err ignored = {};
	int ret = function_map__new(image->file, &map);

	if (!ret)
		ret = function_returns__find(map, vaddr, false, &returns, &ignored);
	for (size_t i = 0; !ret && !returns.n_jumps && !returns.shared && i < returns.n; i++)
		add_function(image, want, selected, returns.list[i]);
	function_map__free(map);
	return ret == -ENOMEM ? ret : 0;
}

static int add_functions(struct probe_image *image, bool selected)
{
	int ret = 0;

	for (size_t i = 0; !ret && image->edition && i < image->edition->n_wants; i++) {
		const struct probe_want *want = &image->edition->wants[i];
		uint64_t vaddr;

		if (want->provider || elf_file__find_symbol(image->file, want->name, &vaddr, NULL))
			continue;
		if (want->role == PROBE_RETURN)
			ret = add_returns(image, want, selected, vaddr);
		else
			add_function(image, want, selected, vaddr);
	}
	return ret;
}

static bool pair_is_there(const struct probe_image *image, bool sites,
			  const struct probe_want **ret_entry)
{
	for (size_t i = 0; image->edition && i < image->edition->n_wants; i++) {
		const struct probe_want *want = &image->edition->wants[i];

		if (want->role != PROBE_ENTRY || !want->provider == sites ||
		    (sites && !want->frames))
			continue;
		*ret_entry = want;
		return has_row(image, want) && probe_image__partner(image, want);
	}
	*ret_entry = NULL;
	return false;
}

static int make_rows(struct probe_image *image)
{
	size_t n_wants = image->edition ? image->edition->n_wants : 0;
	const struct probe_want *entry;
	int ret;

	image->rows =
		calloc(image->sites.n + n_wants * FUNCTION_RETURNS_MAX + 1, sizeof(*image->rows));
	if (!image->rows)
		return -ENOMEM;
	for (size_t i = 0; i < n_wants; i++)
		if (image->edition->wants[i].provider)
			add_sites(image, &image->edition->wants[i]);
	ret = add_functions(image,
			    !pair_is_there(image, true, &entry) || entry->life != PROBE_LIVES);
	if (ret)
		return ret;
	add_sites(image, NULL);
	return 0;
}

/* --- the ladder --- */

__attribute__((format(printf, 4, 5))) static void set(struct probe_image *image,
						      enum probe_rung rung, bool works,
						      const char *fmt, ...)
{
	struct probe_source *source = &image->ladder[rung];
	va_list args;

	source->works = works;
	source->remedy = NULL;
	va_start(args, fmt);
	vsnprintf(source->reason, sizeof(source->reason), fmt, args);
	va_end(args);
}

/* Sets a reason such as "python:function__entry fired 36 times, function__return 20163 times". */
static void set_dead(struct probe_image *image, enum probe_rung rung,
		     const struct probe_want *entry)
{
	const struct probe_want *ret = probe_image__partner(image, entry);
	bool sites = rung == RUNG_USDT;

	set(image, rung, false,
	    "%s%s%s fired %" PRIu64 " times, %s %" PRIu64 " times: %s is dead%s%s",
	    sites ? entry->provider : "the entry of", sites ? ":" : " ", entry->name,
	    probe_image__hits(image, entry), sites ? ret->name : "its return",
	    probe_image__hits(image, ret),
	    !sites				 ? "one"
	    : probe_image__is_dead(image, entry) ? entry->name
						 : ret->name,
	    entry->life == PROBE_LIVES_WHEN ? ", as it fires only " : "",
	    entry->life == PROBE_LIVES_WHEN ? entry->only : "");
	image->ladder[rung].remedy = entry->remedy;
}

static void evaluate_sites(struct probe_image *image)
{
	const struct probe_edition *edition = image->edition;
	const struct probe_want *entry, *ret;

	if (!pair_is_there(image, true, &entry)) {
		set(image, RUNG_USDT, false, "%s",
		    edition ? edition->no_sites : "no probes are known for this runtime");
		return;
	}
	ret = probe_image__partner(image, entry);
	switch (probe_image__liveness(image, entry)) {
	case LIVENESS_LIVES:
		set(image, RUNG_USDT, true, "%s:%s and %s fire", entry->provider, entry->name,
		    ret->name);
		break;
	case LIVENESS_NO_ENTRIES:
	case LIVENESS_NO_RETURNS:
		set_dead(image, RUNG_USDT, entry);
		break;
	case LIVENESS_UNKNOWN:
		if (probe_image__is_live(image, entry)) {
			set(image, RUNG_USDT, true, "%s:%s and %s see every call", entry->provider,
			    entry->name, ret->name);
			break;
		}
		set(image, RUNG_USDT, false, "%s:%s fires only %s", entry->provider, entry->name,
		    entry->only);
		image->ladder[RUNG_USDT].remedy = entry->remedy;
	}
}

static void evaluate_function(struct probe_image *image)
{
	const struct probe_want *entry;
	bool there = pair_is_there(image, false, &entry);

	if (there && entry->frames && !probe_image__is_live(image, entry))
		set_dead(image, RUNG_UPROBE, entry);
	else if (there && entry->frames)
		set(image, RUNG_UPROBE, true, "every call enters %s", entry->name);
	else if (entry && !entry->frames)
		set(image, RUNG_UPROBE, false, "%s sees only %s", entry->name, entry->only);
	else if (entry)
		set(image, RUNG_UPROBE, false, "the symbol %s was stripped", entry->name);
	else
		set(image, RUNG_UPROBE, false, "no function is known through which all calls go");
}

static void evaluate_map(struct probe_image *image)
{
	const char *how = image->edition && image->edition->map ? image->edition->map : image->map;

	if (image->has_map)
		set(image, RUNG_MAP, true, "the process has written a perf map");
	else if (how)
		set(image, RUNG_MAP, false, "only for a process that has written a perf map");
	else
		set(image, RUNG_MAP, false, "this runtime writes none");
	image->ladder[RUNG_MAP].remedy = image->has_map ? NULL : how;
}

void probe_image__evaluate(struct probe_image *image)
{
	evaluate_sites(image);
	evaluate_function(image);
	evaluate_map(image);
	set(image, RUNG_NATIVE, true, "no frames of the runtime");
}

enum probe_rung probe_image__choose(const struct probe_image *image, unsigned usable)
{
	enum probe_rung rung = RUNG_WALK;

	while (rung < RUNG_NATIVE && !(image->ladder[rung].works && usable >> rung & 1))
		rung++;
	return rung;
}

/* --- the whole image --- */

static void read_version(struct probe_image *image, const struct probe_catalogue *catalogue)
{
	uint64_t vaddr, size;

	if (catalogue->version_symbol && !image->version[0] &&
	    !elf_file__find_symbol(image->file, catalogue->version_symbol, &vaddr, &size) &&
	    size < sizeof(image->version) &&
	    elf_file__read(image->file, vaddr, image->version, size))
		image->version[0] = '\0';
}

static int fill(struct probe_image *image, const struct probe_walker *walker, struct err *err)
{
	const struct probe_catalogue *catalogue = probe_image__catalogue(image->file);
	int ret;

	image->runtime = walker->runtime;
	image->map = walker->map;
	if (walker->runtime)
		snprintf(image->version, sizeof(image->version), "%s", walker->version);
	if (catalogue && (!walker->runtime || !strcmp(walker->runtime, catalogue->runtime))) {
		image->runtime = catalogue->runtime;
		image->edition = catalogue->choose(image->file);
		read_version(image, catalogue);
	}
	if (!walker->runtime)
		set(image, RUNG_WALK, false, "no walker for this runtime");
	else
		set(image, RUNG_WALK, walker->works, "%s",
		    walker->reason[0] ? walker->reason
				      : "the interpreter's own frames, read at each sample");
	ret = usdt__read(image->file, &image->sites, err);
	if (ret)
		return ret;
	if (make_rows(image))
		return err__set(err, -ENOMEM, "out of memory");
	probe_image__evaluate(image);
	return 0;
}

int probe_image__new(struct elf_file *file, const struct probe_walker *walker, bool has_map,
		     struct probe_image **ret_image, struct err *err)
{
	struct probe_image *image = calloc(1, sizeof(*image));
	int ret;

	if (!image) {
		elf_file__free(file);
		return err__set(err, -ENOMEM, "out of memory");
	}
	image->file = file;
	image->has_map = has_map;
	ret = fill(image, walker, err);
	if (ret)
		probe_image__free(image);
	else
		*ret_image = image;
	return ret;
}

void probe_image__free(struct probe_image *image)
{
	if (!image)
		return;
	usdt_sites__done(&image->sites);
	free(image->rows);
	elf_file__free(image->file);
	free(image);
}
