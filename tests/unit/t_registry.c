// SPDX-License-Identifier: GPL-2.0-or-later
/* The registry keeps the promises of runtimes/runtime.h. */
#include <string.h>

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

#define RUNTIMES_MAX 32

static struct braid_bpf *half; /* opened, not loaded */

static void check_identity(const struct runtime *runtime)
{
	const char *name = runtime->name;

	ok(name && *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(name),
	   "a plain name: %s", name);
	ok(runtime->suffix && strncmp(runtime->suffix, "_[", 2) == 0 &&
		   runtime->suffix[strlen(runtime->suffix) - 1] == ']',
	   "%s: suffix %s", name, runtime->suffix);
	ok(runtime->versions && *runtime->versions, "%s: says what is supported", name);
	ok(runtime->walker >= -1 && runtime->walker < WALKER_SHADOW, "%s: walker slot %d", name,
	   runtime->walker);
}

static bool maps_named(const struct runtime *runtime)
{
	size_t n = 0;

	if (!runtime->maps)
		return true;
	for (; runtime->maps[n]; n++)
		if (!*runtime->maps[n])
			return false;
	return n > 0;
}

static bool has_map(const struct runtime *runtime, const char *name)
{
	for (size_t i = 0; runtime->maps && runtime->maps[i]; i++)
		if (strcmp(runtime->maps[i], name) == 0)
			return true;
	return false;
}

/* Of one of the kernel half's maps; 0: there is none. */
static size_t value_bytes(const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(half->obj, name);

	return map ? bpf_map__value_size(map) : 0;
}

/* Hooks that make sense only together are there together. */
static void check_hooks(const struct runtime *runtime)
{
	const char *name = runtime->name;
	bool walker = runtime->walker >= 0;

	ok(walker == (runtime->program && *runtime->program), "%s: a program per walker", name);
	ok(maps_named(runtime), "%s: maps have names", name);
	ok(!walker || runtime->maps, "%s: a walker has maps", name);
	ok(!runtime->slot_map || has_map(runtime, runtime->slot_map),
	   "%s: slot_map is one of its maps", name);
	ok(walker == !!runtime->records &&
		   (!walker || (has_map(runtime, runtime->records) && runtime->record_bytes &&
				runtime->record_bytes <= RUNTIME_RECORD_MAX &&
				runtime->record_bytes == value_bytes(runtime->records))),
	   "%s: records for its walker, of the map's size", name);
	ok(!runtime->detect == !runtime->prepare && !runtime->prepare == !runtime->image_free,
	   "%s: all image hooks or none", name);
	ok(!runtime->open == !runtime->close && (runtime->attach || !runtime->detach),
	   "%s: hooks that give have one that takes back", name);
	ok(!runtime->attach || runtime->prepare, "%s: instances have an image", name);
	ok(runtime->walker < 0 || !runtime->attach || runtime->open,
	   "%s: instances of a walker have a session", name);
	ok(!runtime->on_code || runtime->symbolize, "%s: what is learnt can be asked for", name);
	ok(!walker || (runtime->attach && (runtime->symbolize || runtime->resolve)),
	   "%s: a walker's frames have names and processes", name);
}

/* Suffixes may be shared: "_[j]" is all code of JIT compilers. */
static bool differ(const struct runtime *a, const struct runtime *b)
{
	return strcmp(a->name, b->name) != 0 && (a->walker < 0 || a->walker != b->walker) &&
	       (!a->program || !b->program || strcmp(a->program, b->program) != 0);
}

int main(void)
{
	bool native = false;
	size_t n = 0;

	half = braid_bpf__open();
	if (!ok(half, "the kernel half's object can be opened"))
		return tap__done();
	for (; n < RUNTIMES_MAX && runtimes[n]; n++) {
		check_identity(runtimes[n]);
		check_hooks(runtimes[n]);
		native |= strcmp(runtimes[n]->name, "native") == 0;
		for (size_t i = 0; i < n; i++)
			ok(differ(runtimes[i], runtimes[n]), "%s and %s share nothing",
			   runtimes[i]->name, runtimes[n]->name);
	}
	ok(n && n < RUNTIMES_MAX && !runtimes[n], "%zu runtimes, NULL-terminated", n);
	braid_bpf__destroy(half);
	ok(native, "native is a runtime, too");
	return tap__done();
}
