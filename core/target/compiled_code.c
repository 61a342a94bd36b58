// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/compiled_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/jit_maps.h"

struct compiled_code {
	struct jit_maps *maps; /* NULL: no runtime uses them */
};

/* --- runtimes --- */

static bool is_attached(const struct process *process, int i)
{
	return process__attached(process) & 1U << i;
}

bool compiled_code__has_names_of(const struct process *process, int i)
{
	const struct runtime *runtime = process->runtimes->list[i];

	return runtime__has(runtime, jit, label) && process->runtimes->enabled & 1U << i &&
	       (!runtime->files || is_attached(process, i));
}

static bool is_selected(const struct process *process)
{
	for (int i = 0; process->runtimes->list[i]; i++)
		if (compiled_code__has_names_of(process, i))
			return true;
	return false;
}

static bool is_anonymous(const struct mapped *mapped)
{
	return mapped && (!mapped->path[0] || strncmp(mapped->path, "[anon", 5) == 0);
}

bool compiled_code__is_generated(const struct mapped *mapped)
{
	static const char *const shared[] = { "/memfd:", "/dev/zero" };
	bool generated = is_anonymous(mapped);

	for (size_t i = 0; mapped && i < ARRAY_SIZE(shared); i++)
		generated = generated || strncmp(mapped->path, shared[i], strlen(shared[i])) == 0;
	return generated;
}

bool compiled_code__may_be_of(const struct runtime *runtime, const struct mapped *mapped)
{
	const char *memory;

	if (!runtime__has(runtime, jit, code) || !mapped)
		return false;
	memory = runtime->jit->memory;
	return memory ? strncmp(mapped->path, memory, strlen(memory)) == 0 : is_anonymous(mapped);
}

/* Returns true if the process's build of the runtime compiles. */
static bool compiles(const struct process *process, int i)
{
	const struct runtime *runtime = process->runtimes->list[i];

	for (size_t m = 0; runtime__has(runtime, jit, compiles) && m < process->n_mapped; m++) {
		const struct image *image = process->mapped[m].image;

		if (image && image->runtimes[i].image)
			return runtime->jit->compiles(image->runtimes[i].image);
	}
	return !runtime__has(runtime, jit, compiles);
}

int compiled_code__compiler(const struct process *process, const struct mapped *mapped)
{
	for (int i = 0; process->runtimes->list[i]; i++)
		if ((is_attached(process, i) || process__is_pending(process, i)) &&
		    compiled_code__may_be_of(process->runtimes->list[i], mapped) &&
		    compiles(process, i))
			return i;
	return -1;
}

static uint32_t skew_of(const struct process *process)
{
	for (int i = 0; process->runtimes->list[i]; i++)
		if (is_attached(process, i) &&
		    runtime__has(process->runtimes->list[i], jit, jitdump_skew))
			return process->runtimes->list[i]->jit->jitdump_skew;
	return 0;
}

/* --- reading --- */

static int make_maps(struct process *process)
{
	int ret = jit_maps__new(&process->info, process->jit_sources, &process->code->maps);

	for (size_t i = 0; !ret && i < process->n_ancestors; i++)
		jit_maps__inherit(process->code->maps, &process->ancestors[i]);
	return ret;
}

/* Allocates process->code, and the maps if a runtime uses them. Returns at once if that was done.
 */
static int begin(struct process *process)
{
	if (process->code)
		return 0;
	process->code = calloc(1, sizeof(*process->code));
	if (!process->code)
		return -ENOMEM;
	process__read_info(process);
	return is_selected(process) ? make_maps(process) : 0;
}

static int look(struct process *process, enum jit_look how)
{
	struct jit_maps *maps = process->code->maps;

	if (!maps)
		return 0;
	for (size_t i = 0; how != JIT_LOOK_GROWTH && i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];

		if (!mapped->image)
			jit_maps__offer(maps, mapped->path, mapped->start, mapped->end);
	}
	return jit_maps__look(maps, how, now_ns());
}

int compiled_code__read(struct process *process, enum jit_look how)
{
	int ret = begin(process);

	/* A runtime that uses maps may have been detected after the first samples. */
	if (!ret && !process->code->maps && is_selected(process))
		ret = make_maps(process);
	return ret ? ret : look(process, how);
}

/* Reads all that was written until @time_ns, unless already done. */
static int catch_up(struct process *process, uint64_t time_ns)
{
	struct jit_maps *maps = process->code->maps;
	uint64_t looked_ns = maps ? jit_maps__looked_ns(maps) : UINT64_MAX;

	if (looked_ns >= time_ns)
		return 0;
	return look(process, looked_ns ? JIT_LOOK_GROWTH : JIT_LOOK_FILES);
}

int compiled_code__version(struct process *process, uint64_t time_ns, uint32_t *ret_version)
{
	int ret;

	*ret_version = 0;
	if (!process->code || !process->code->maps)
		return 0;
	ret = catch_up(process, time_ns);
	*ret_version = jit_maps__version(process->code->maps);
	return ret;
}

/* --- code of an address --- */

static uint32_t hash_of(const char *name)
{
	uint32_t hash = 2166136261; /* FNV-1a */

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * 16777619;
	return hash ? hash : 1;
}

/* Stores the hash of the name while the file has it. A rewritten file loses the name. */
static void take_name(struct jit_maps *maps, uint64_t address, struct jit_life *life)
{
	struct jit_symbol symbol;

	if (jit_maps__symbol(maps, &life->in_map, address, 0, &symbol))
		life->name_hash = hash_of(symbol.name);
}

static bool is_same(const struct jit_maps *maps, uint64_t address, const struct jit_life *life,
		    const struct jit_place *now)
{
	const struct jit_entry *a = &life->in_map.entry, *b = &now->entry;
	struct jit_symbol symbol;

	if (a->start != b->start || a->size != b->size)
		return false;
	if (life->in_map.source == now->source && life->in_map.edition == now->edition &&
	    a->text == b->text)
		return true;
	return !life->name_hash || (jit_maps__symbol(maps, now, address, 0, &symbol) &&
				    hash_of(symbol.name) == life->name_hash);
}

static bool has_changed(struct jit_maps *maps, uint64_t address, struct jit_life *life,
			const struct jit_place *now)
{
	if (!now->entry.text)
		return false;
	if (!life->in_map.entry.text) {
		if (!jit_maps__find(maps, address, life->first_ns, &life->in_map))
			return false;
		take_name(maps, address, life);
	}
	return !is_same(maps, address, life, now);
}

int compiled_code__meet(struct process *process, uint64_t address, uint64_t time_ns,
			struct jit_life *ret)
{
	struct jit_maps *maps;

	*ret = (struct jit_life) { .first_ns = time_ns };
	if (begin(process) || compiled_code__version(process, time_ns, &ret->version))
		return -ENOMEM;
	maps = process->code->maps;
	if (maps && jit_maps__find(maps, address, time_ns, &ret->in_map))
		take_name(maps, address, ret);
	return 0;
}

int compiled_code__follow(struct process *process, uint64_t address, uint64_t time_ns,
			  struct jit_life *life, struct jit_life *ret)
{
	struct jit_place now = {};
	uint32_t version;

	if (compiled_code__version(process, time_ns, &version))
		return -ENOMEM;
	if (life->version == version)
		return 0;
	life->version = version;
	jit_maps__find(process->code->maps, address, time_ns, &now);
	return has_changed(process->code->maps, address, life, &now) &&
			       !compiled_code__meet(process, address, time_ns, ret)
		       ? 1
		       : 0;
}

static bool find_symbol(struct process *process, uint64_t address, uint64_t time_ns,
			struct jit_place *in_map, struct jit_symbol *ret)
{
	struct jit_maps *maps = process->code ? process->code->maps : NULL;

	return maps && jit_maps__find(maps, address, time_ns, in_map) &&
	       jit_maps__symbol(maps, in_map, address, skew_of(process), ret);
}

bool compiled_code__symbol(struct process *process, uint64_t address, struct jit_life *life,
			   struct jit_symbol *ret)
{
	struct jit_place in_map;

	if (!find_symbol(process, address, life->first_ns, &in_map, ret))
		return false;
	life->in_map = in_map;
	life->name_hash = hash_of(ret->name);
	return true;
}

bool compiled_code__image_symbol(struct process *process, uint64_t address, struct jit_symbol *ret)
{
	struct jit_place in_map;

	return find_symbol(process, address, UINT64_MAX, &in_map, ret);
}

/* --- the rest --- */

void compiled_code__count(const struct process *process, struct jit_maps_counts *add_to)
{
	if (process->code && process->code->maps)
		jit_maps__count(process->code->maps, add_to);
}

bool compiled_code__refusal(struct process *process, struct err *ret)
{
	return process->code && process->code->maps && jit_maps__refusal(process->code->maps, ret);
}

void compiled_code__free(struct compiled_code *code)
{
	if (!code)
		return;
	jit_maps__free(code->maps);
	free(code);
}
