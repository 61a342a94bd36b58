// SPDX-License-Identifier: GPL-2.0-or-later
/* The registry fulfils the contract of runtimes/runtime.h. */
#include <string.h>

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

#define RUNTIMES_MAX 32

static struct braid_bpf *half; /* opened, but not loaded */

static void check_identity(const struct runtime *runtime)
{
	const char *name = runtime->name;

	ok(name && *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(name),
	   "a plain name: %s", name);
	ok(runtime->suffix && strncmp(runtime->suffix, "_[", 2) == 0 &&
		   runtime->suffix[strlen(runtime->suffix) - 1] == ']',
	   "%s: suffix %s", name, runtime->suffix);
	ok(runtime->versions && *runtime->versions, "%s: says what is supported", name);
}

static bool is_list(const char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		if (!*names[i])
			return false;
	return names && *names;
}

static bool has_map(const struct runtime_walker *walker, const char *name)
{
	for (size_t i = 0; walker->maps[i]; i++)
		if (strcmp(walker->maps[i], name) == 0)
			return true;
	return false;
}

/* Returns the value size of one of the kernel half's maps, or 0 if there is no such map. */
static size_t value_bytes(const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(half->obj, name);

	return map ? bpf_map__value_size(map) : 0;
}

static void check_walker(const char *name, const struct runtime_walker *walker)
{
	ok(walker->slot >= 0 && walker->slot < WALKER_SHADOW, "%s: walker slot %d", name,
	   walker->slot);
	ok(walker->program && bpf_object__find_program_by_name(half->obj, walker->program),
	   "%s: the kernel half has the walker's program", name);
	if (!ok(is_list(walker->maps), "%s: a walker has maps", name))
		return;
	ok(has_map(walker, walker->records) && walker->record_bytes &&
		   walker->record_bytes <= RUNTIME_RECORD_MAX &&
		   walker->record_bytes == value_bytes(walker->records),
	   "%s: records for its walker, of the map's size", name);
	ok((!walker->slot_map || has_map(walker, walker->slot_map)) &&
		   (!walker->codes || has_map(walker, walker->codes)),
	   "%s: slot_map and codes are among its maps", name);
}

/* Checks the members that a capability must have, and capabilities that require each other. */
static void check_capabilities(const struct runtime *runtime)
{
	const struct runtime_files *files = runtime->files;
	const struct runtime_probes *probes = runtime->probes;
	const char *name = runtime->name;

	if (runtime->walker)
		check_walker(name, runtime->walker);
	ok(!files || (files->detect && files->prepare && files->free), "%s: files", name);
	ok(!runtime->names || runtime->names->symbolize, "%s: names", name);
	ok(!runtime->jit || runtime->jit->code || runtime->jit->label, "%s: compiled code", name);
	ok(!probes || (is_list(probes->programs) && probes->probe && probes->unprobe &&
		       probes->unprobe_all),
	   "%s: probes", name);
	ok(!runtime->inspect || runtime->inspect->lock_holders || runtime->inspect->tasks,
	   "%s: inspection", name);
	ok(!runtime->parked || (runtime->parked->many && runtime->parked->sample &&
				runtime->parked->is_parked && runtime->open && runtime->attach),
	   "%s: parked tasks", name);
	ok(!runtime->open == !runtime->close && (runtime->attach || !runtime->detach),
	   "%s: what is opened is closed", name);
	ok(!runtime->attach || files, "%s: instances have an image", name);
	ok(!runtime->walker || (runtime->attach && runtime->open &&
				(runtime->names || runtime__has(runtime, files, resolve))),
	   "%s: frames of a walker have a process, a session and names", name);
	ok(!runtime__has(runtime, walker, codes) ||
		   (runtime->names->on_code && runtime->names->forget_codes),
	   "%s: announced codes are kept and forgotten", name);
	ok(!probes || runtime->open, "%s: probes have a session", name);
}

/* Returns true if the names and the walkers of both runtimes differ. Suffixes may be shared: "_[j]"
 * is the code of all JIT compilers. */
static bool differ(const struct runtime *a, const struct runtime *b)
{
	return strcmp(a->name, b->name) != 0 &&
	       (!a->walker || !b->walker ||
		(a->walker->slot != b->walker->slot &&
		 strcmp(a->walker->program, b->walker->program) != 0));
}

/* The launcher of a JVM says where the JVM is. */
static void check_loads(void)
{
	static const struct {
		const char *file, *loads; /* NULL: nothing */
	} places[] = {
		{ "/opt/jdk-25/lib/libjli.so", "/opt/jdk-25/lib/server/libjvm.so" },
		{ "/opt/jdk-8/jre/lib/amd64/jli/libjli.so",
		  "/opt/jdk-8/jre/lib/amd64/server/libjvm.so" },
		{ "/opt/jdk-25/lib/libjava.so", NULL },
		{ "libjli.so", NULL },
	};
	const struct runtime *jvm = NULL;
	char buf[128], small[16];

	for (size_t i = 0; runtimes[i]; i++)
		jvm = strcmp(runtimes[i]->name, "jvm") ? jvm : runtimes[i];
	if (!ok(jvm && jvm->files->loads, "a JVM has a launcher"))
		return;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct elf_file file = { .path = (char *)places[i].file };
		int loads = jvm->files->loads(&file, buf, sizeof(buf));

		ok(loads == !!places[i].loads && (!loads || !strcmp(buf, places[i].loads)),
		   "what %s loads", places[i].file);
		ok(!jvm->files->loads(&file, small, sizeof(small)), "... too long for a path");
	}
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
		check_capabilities(runtimes[n]);
		native |= strcmp(runtimes[n]->name, "native") == 0;
		for (size_t i = 0; i < n; i++)
			ok(differ(runtimes[i], runtimes[n]), "%s and %s share nothing",
			   runtimes[i]->name, runtimes[n]->name);
	}
	ok(n && n < RUNTIMES_MAX && !runtimes[n], "%zu runtimes, NULL-terminated", n);
	braid_bpf__destroy(half);
	ok(native, "native is a runtime, too");
	check_loads();
	return tap__done();
}
