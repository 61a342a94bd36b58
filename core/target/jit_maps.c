// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/jit_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"
#include "core/files/target_file.h"
#include "core/target/jit_file.h"
#include "core/target/jit_source.h"
#include "core/target/perf_map.h"
#include "core/target/process_words.h"
#include "core/target/procfs.h"

#define WRITERS_MAX (1 + JIT_ANCESTORS_MAX)
#define MORE_MAX    16 /* jitdump files with other names: some compilers have one for each thread */
#define SLOTS_MAX   (2 * WRITERS_MAX + 1 + MORE_MAX)

/* A file that may exist. */
struct slot {
	char *path;
	bool is_jitdump;
	uint64_t start, end;  /* its mapping in the process; 0: not mapped */
	uint64_t start_ticks; /* start of the process that writes it */
	uint64_t until_ns;    /* end of the validity; later reports are about another process */
	struct jit_source *source; /* NULL: not open */
	uint32_t edition, changes; /* state of the source when the version was computed last */
};

struct jit_maps {
	struct procfs_info info;
	int root_fd;
	bool root_is_new; /* the root and `info` are current; valid within one jit_maps__look() */
	struct jit_sources *sources; /* borrowed */
	struct slot slots[SLOTS_MAX];
	size_t n_slots;
	struct jit_ancestor writers[WRITERS_MAX]; /* the process itself is the first */
	size_t n_writers;
	uint32_t version;
	uint64_t looked_ns;
	struct perf_map_counts counts;
	struct err refusal;
	bool has_refusal, was_refused;
};

static struct slot *add_slot(struct jit_maps *maps, const char *path, bool is_jitdump,
			     const struct jit_ancestor *writer)
{
	struct slot *slot = &maps->slots[maps->n_slots];
	char *copy;

	if (maps->n_slots == SLOTS_MAX || !(copy = strdup(path)))
		return NULL;
	maps->n_slots++;
	*slot = (struct slot) { .path = copy,
				.is_jitdump = is_jitdump,
				.start_ticks = writer->start_ticks,
				.until_ns = writer->until_ns };
	return slot;
}

void jit_maps__inherit(struct jit_maps *maps, const struct jit_ancestor *ancestor)
{
	char path[64];

	if (maps->n_writers == WRITERS_MAX)
		return;
	maps->writers[maps->n_writers++] = *ancestor;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", ancestor->inner_pid);
	add_slot(maps, path, false, ancestor);
	snprintf(path, sizeof(path), "/tmp/jit-%u.dump", ancestor->inner_pid);
	add_slot(maps, path, true, ancestor);
}

/* Adds the perf map in the directory for temporary files that the environment of the process names,
 * if any. .NET 7 and older write the map there. */
static void add_temporary(struct jit_maps *maps)
{
	char directory[256], path[sizeof(directory) + 32];

	if (process_words__variable(maps->info.pid, "TMPDIR=", directory, sizeof(directory)) ||
	    directory[0] != '/')
		return;
	snprintf(path, sizeof(path), "%s/perf-%u.map", directory, maps->info.inner_pid);
	for (size_t i = 0; i < maps->n_slots; i++)
		if (!strcmp(maps->slots[i].path, path))
			return;
	add_slot(maps, path, false, &maps->writers[0]);
}

int jit_maps__new(const struct procfs_info *info, struct jit_sources *sources,
		  struct jit_maps **ret)
{
	struct jit_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->info = *info;
	maps->sources = sources;
	maps->root_fd = -1;
	maps->version = 1;
	jit_maps__inherit(maps, &(struct jit_ancestor) { info->inner_pid, info->start_ticks,
							 UINT64_MAX });
	add_temporary(maps);
	*ret = maps;
	return 0;
}

void jit_maps__free(struct jit_maps *maps)
{
	size_t i;

	if (!maps)
		return;
	for (i = 0; i < maps->n_slots; i++) {
		jit_source__release(maps->slots[i].source);
		free(maps->slots[i].path);
	}
	close_fd(&maps->root_fd);
	free(maps);
}

/* Skips @prefix and a number. Returns the text after the number, or NULL if @text does not begin
 * with them. */
static const char *skip_number(const char *text, const char *prefix, unsigned *ret)
{
	int len = 0;

	if (!text || strncmp(text, prefix, strlen(prefix)) != 0)
		return NULL;
	text += strlen(prefix);
	return *text != '+' && *text != '-' && sscanf(text, "%u%n", ret, &len) == 1 ? text + len
										    : NULL;
}

/* Returns true if @name is the name of a jitdump file. Sets the processes that may have written it:
 *   jit-PID.dump            also the name that perf uses; ret_pids[0]
 *   jit-PID-TEXT.dump       ret_pids[0]
 *   jit-TID-PID.dump        JavaScriptCore with a directory of its own; ret_pids[1]
 *   jit-TID-PID-TEXT        JavaScriptCore without */
static bool parse_name(const char *name, unsigned ret_pids[2])
{
	const char *rest = skip_number(name, "jit-", &ret_pids[0]), *more;

	ret_pids[1] = 0;
	if (!rest)
		return false;
	more = skip_number(rest, "-", &ret_pids[1]);
	if (more && *more == '-' && more[1])
		return true;
	if (*rest == '-')
		rest = strrchr(rest, '.');
	return rest && !strcmp(rest, ".dump");
}

static const struct jit_ancestor *writer_of(const struct jit_maps *maps, const char *path)
{
	const char *base = strrchr(path, '/');
	unsigned pids[2];

	if (!base || !parse_name(base + 1, pids))
		return NULL;
	for (size_t i = 0; i < maps->n_writers; i++)
		if (maps->writers[i].inner_pid == pids[0] ||
		    (pids[1] && maps->writers[i].inner_pid == pids[1]))
			return &maps->writers[i];
	return NULL;
}

void jit_maps__offer(struct jit_maps *maps, const char *path, uint64_t start, uint64_t end)
{
	const struct jit_ancestor *writer = writer_of(maps, path);
	struct slot *slot = NULL;

	for (size_t i = 0; writer && i < maps->n_slots; i++)
		if (!strcmp(maps->slots[i].path, path))
			slot = &maps->slots[i];
	if (writer && !slot)
		slot = add_slot(maps, path, true, writer);
	if (slot) {
		slot->start = start;
		slot->end = end;
	}
}

/* --- reading --- */

/* Opens the process's root and updates its UID, as a process may change its user. A process that
 * has ended is assumed to have had braid's root if it had the same PID in its namespace. */
static int open_root(struct jit_maps *maps)
{
	struct procfs_info info;

	if (maps->root_is_new)
		return 0;
	if (!procfs__info(maps->info.pid, &info, NULL) &&
	    info.start_ticks == maps->info.start_ticks)
		maps->info.uid = info.uid;
	maps->root_is_new = maps->root_fd >= 0;
	if (maps->root_is_new)
		return 0;
	maps->root_fd = fd_limit__hold(procfs__open_root(maps->info.pid));
	if (maps->root_fd < 0 && maps->info.inner_pid == maps->info.pid)
		maps->root_fd = fd_limit__hold(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	maps->root_is_new = maps->root_fd >= 0;
	return maps->root_is_new ? 0 : -ENOENT;
}

static int open_slot(struct jit_maps *maps, struct slot *slot)
{
	struct jit_file file = JIT_FILE_NONE;
	int64_t begin_s = procfs__begin_s(slot->start_ticks);
	struct err err = {};
	int rc = open_root(maps);

	if (!rc && slot->end)
		jit_file__open_mapped(maps->info.pid, slot->start, slot->end, maps->info.uid,
				      begin_s, &file, NULL);
	if (!rc && file.fd < 0)
		rc = jit_file__open(maps->root_fd, slot->path, maps->info.uid, begin_s, &file,
				    &err);
	if (file.fd >= 0) {
		rc = jit_sources__share(maps->sources, &file, slot->is_jitdump, maps->info.uid,
					slot->path, &slot->source);
		return rc == -ENOMEM ? rc : 0;
	}
	if (rc == -ENOENT || !err.text[0] || maps->was_refused)
		return 0;
	maps->refusal = err;
	maps->has_refusal = maps->was_refused = true;
	return 0;
}

static int look_at(struct jit_maps *maps, struct slot *slot, enum jit_look how, uint64_t now_ns)
{
	int rc = 0;

	if (how != JIT_LOOK_GROWTH && slot->source && !slot->end && maps->root_fd >= 0 &&
	    jit_file__is_replaced(jit_source__file(slot->source), maps->root_fd, slot->path)) {
		jit_source__release(slot->source);
		slot->source = NULL;
	}
	if (how != JIT_LOOK_GROWTH && !slot->source)
		rc = open_slot(maps, slot);
	if (rc || !slot->source)
		return rc;
	return jit_source__look(slot->source, how, now_ns, &maps->counts);
}

int jit_maps__look(struct jit_maps *maps, enum jit_look how, uint64_t now_ns)
{
	int rc = 0;
	size_t i;

	maps->root_is_new = false;
	for (i = 0; !rc && i < maps->n_slots; i++)
		rc = look_at(maps, &maps->slots[i], how, now_ns);
	maps->looked_ns = now_ns;
	return rc;
}

uint64_t jit_maps__looked_ns(const struct jit_maps *maps)
{
	return maps->looked_ns;
}

/* Returns true if the slot's source changed since the last call. Another process that shares the
 * file may have caused the read. */
static bool has_changed(struct slot *slot)
{
	uint32_t edition = slot->source ? jit_source__edition(slot->source) : 0;
	uint32_t changes = slot->source ? jit_source__changes(slot->source) : 0;
	bool ret = edition != slot->edition || changes != slot->changes;

	slot->edition = edition;
	slot->changes = changes;
	return ret;
}

uint32_t jit_maps__version(struct jit_maps *maps)
{
	bool changed = false;

	for (size_t i = 0; i < maps->n_slots; i++)
		changed |= has_changed(&maps->slots[i]);
	if (changed && !++maps->version)
		maps->version = 1;
	return maps->version;
}

/* --- queries --- */

static bool find_among(struct jit_maps *maps, bool jitdumps, uint64_t address, uint64_t time_ns,
		       struct jit_place *ret)
{
	size_t i;

	for (i = 0; i < maps->n_slots; i++) {
		const struct slot *slot = &maps->slots[i];

		if (slot->is_jitdump != jitdumps || !slot->source ||
		    !jit_source__find(slot->source, address, min_of(time_ns, slot->until_ns),
				      &ret->entry))
			continue;
		ret->source = i;
		ret->edition = jit_source__edition(slot->source);
		return true;
	}
	return false;
}

/* Searches jitdump files first: they have times and lines. */
bool jit_maps__find(struct jit_maps *maps, uint64_t address, uint64_t time_ns,
		    struct jit_place *ret)
{
	return find_among(maps, true, address, time_ns, ret) ||
	       find_among(maps, false, address, time_ns, ret);
}

bool jit_maps__symbol(const struct jit_maps *maps, const struct jit_place *place, uint64_t address,
		      uint32_t skew, struct jit_symbol *ret)
{
	const struct slot *slot = &maps->slots[place->source];

	return slot->source &&
	       jit_source__symbol(slot->source, place->edition, &place->entry, address, skew, ret);
}

void jit_maps__count(const struct jit_maps *maps, struct jit_maps_counts *add_to)
{
	add_to->symbols += maps->counts.symbols;
	add_to->skipped += maps->counts.skipped;
}

bool jit_maps__refusal(struct jit_maps *maps, struct err *ret)
{
	bool had = maps->has_refusal;

	*ret = maps->refusal;
	maps->has_refusal = false;
	return had;
}
