// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/code_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/fd_limit.h"
#include "core/base/target_file.h"
#include "core/base/util.h"
#include "core/target/code_file.h"
#include "core/target/jitdump.h"
#include "core/target/perf_map.h"
#include "core/target/procfs.h"

#define WRITERS_MAX (1 + CODE_ANCESTORS_MAX)
#define SOURCES_MAX (2 * WRITERS_MAX)

/* Bytes of one file that are read at a time: these take some 5 and 150 ms. */
#define GROWTH_BYTES (1 << 20)
#define FILES_BYTES  (32 << 20)

struct source {
	char *path;
	bool is_jitdump;
	uint64_t start, end;  /* where it is mapped; 0: it is not */
	uint64_t start_ticks; /* of the process that writes it */
	uint64_t until_ns;    /* what it tells of later times is of another process */
	struct code_file file;
	struct code_index index;
	struct jitdump dump;
	struct perf_map_counts counts;
	uint32_t edition;
	bool anew;	   /* it was written anew, and has to be read so */
	uint64_t whole_ns; /* when all of it had been read; 0: never yet */
};

struct code_maps {
	struct procfs_info info;
	int root_fd;
	bool root_is_new; /* and the info, within one look */
	struct source sources[SOURCES_MAX];
	size_t n_sources;
	struct code_ancestor writers[WRITERS_MAX]; /* the process itself is the first */
	size_t n_writers;
	uint32_t version;
	uint64_t looked_ns;
	struct err refusal;
	bool has_refusal, was_refused;
};

static struct source *add_source(struct code_maps *maps, const char *path, bool is_jitdump,
				 const struct code_ancestor *writer)
{
	struct source *source = &maps->sources[maps->n_sources];
	char *copy;

	if (maps->n_sources == SOURCES_MAX || !(copy = strdup(path)))
		return NULL;
	maps->n_sources++;
	*source = (struct source) { .path = copy,
				    .is_jitdump = is_jitdump,
				    .start_ticks = writer->start_ticks,
				    .until_ns = writer->until_ns,
				    .file = CODE_FILE_NONE };
	return source;
}

void code_maps__inherit(struct code_maps *maps, const struct code_ancestor *ancestor)
{
	char path[64];

	if (maps->n_writers == WRITERS_MAX)
		return;
	maps->writers[maps->n_writers++] = *ancestor;
	snprintf(path, sizeof(path), "/tmp/perf-%u.map", ancestor->inner_pid);
	add_source(maps, path, false, ancestor);
	snprintf(path, sizeof(path), "/tmp/jit-%u.dump", ancestor->inner_pid);
	add_source(maps, path, true, ancestor);
}

int code_maps__new(const struct procfs_info *info, struct code_maps **ret)
{
	struct code_maps *maps = calloc(1, sizeof(*maps));

	if (!maps)
		return -ENOMEM;
	maps->info = *info;
	maps->root_fd = -1;
	maps->version = 1;
	code_maps__inherit(maps, &(struct code_ancestor) { info->inner_pid, info->start_ticks,
							   UINT64_MAX });
	*ret = maps;
	return 0;
}

static void forget(struct source *source)
{
	code_index__done(&source->index);
	source->dump = (struct jitdump) {};
	source->edition++;
	source->anew = false;
}

void code_maps__free(struct code_maps *maps)
{
	size_t i;

	if (!maps)
		return;
	for (i = 0; i < maps->n_sources; i++) {
		forget(&maps->sources[i]);
		code_file__close(&maps->sources[i].file);
		free(maps->sources[i].path);
	}
	close_fd(&maps->root_fd);
	free(maps);
}

/* "…/jit-PID.dump", of the process or an ancestor, as perf knows them, too. */
void code_maps__offer(struct code_maps *maps, const char *path, uint64_t start, uint64_t end)
{
	const char *base = strrchr(path, '/');
	struct source *source = NULL;
	unsigned pid = 0;
	int len = 0;
	size_t i;

	if (!base || sscanf(base, "/jit-%u.dump%n", &pid, &len) != 1 || !len || base[len])
		return;
	for (i = 0; i < maps->n_sources; i++)
		if (!strcmp(maps->sources[i].path, path))
			source = &maps->sources[i];
	for (i = 0; !source && i < maps->n_writers; i++)
		if (maps->writers[i].inner_pid == pid)
			source = add_source(maps, path, true, &maps->writers[i]);
	if (source) {
		source->start = start;
		source->end = end;
	}
}

/* --- reading --- */

/* As it is now: a process may change its user. What has ended had the same files as braid, if it
 * had the same PIDs. */
static int open_root(struct code_maps *maps)
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

/* A file is believed to be of a process if it was written to since that started, give or take what
 * clocks and ticks may differ by: one from a former life of its PID names code that is no more. */
#define CLOCK_SLACK_S 2

static int64_t real_time_s(uint64_t start_ticks)
{
	struct timespec boot, real;

	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_REALTIME, &real);
	return real.tv_sec - boot.tv_sec + (int64_t)(start_ticks / sysconf(_SC_CLK_TCK)) -
	       CLOCK_SLACK_S;
}

static void open_source(struct code_maps *maps, struct source *source)
{
	int64_t begin_s = real_time_s(source->start_ticks);
	struct err err = {};
	int rc = open_root(maps);

	if (!rc && source->end &&
	    !code_file__open_mapped(maps->info.pid, source->start, source->end, maps->info.uid,
				    begin_s, &source->file, NULL))
		return;
	if (!rc)
		rc = code_file__open(maps->root_fd, source->path, maps->info.uid, begin_s,
				     &source->file, &err);
	if (!rc || rc == -ENOENT || !err.text[0] || maps->was_refused)
		return;
	maps->refusal = err;
	maps->has_refusal = maps->was_refused = true;
}

static int read_source(struct code_maps *maps, struct source *source, uint64_t max, uint64_t now_ns)
{
	size_t before = source->index.n;
	int64_t taken;

	taken = source->is_jitdump ? jitdump__read(&source->dump, &source->file, max,
						   source->whole_ns, now_ns, &source->index)
				   : perf_map__read(&source->file, max, source->whole_ns,
						    &source->index, &source->counts);
	if (source->index.n != before && !++maps->version)
		maps->version = 1;
	if (taken >= 0 && (uint64_t)taken < max)
		source->whole_ns = now_ns;
	return taken < 0 ? (int)taken : 0;
}

static int look_at(struct code_maps *maps, struct source *source, enum code_look how,
		   uint64_t now_ns)
{
	static const uint64_t most[] = { [CODE_LOOK_GROWTH] = GROWTH_BYTES,
					 [CODE_LOOK_FILES] = FILES_BYTES,
					 [CODE_LOOK_ALL] = UINT64_MAX };
	enum code_file_state state;

	if (how != CODE_LOOK_GROWTH && source->file.fd >= 0 && !source->end && maps->root_fd >= 0 &&
	    code_file__is_replaced(&source->file, maps->root_fd, source->path)) {
		code_file__close(&source->file);
		source->anew = true;
	}
	if (how != CODE_LOOK_GROWTH && source->file.fd < 0)
		open_source(maps, source);
	if (source->file.fd < 0)
		return 0;
	state = code_file__look(&source->file);
	source->anew |= state == CODE_FILE_REWRITTEN;
	if (source->anew) {
		if (how == CODE_LOOK_GROWTH)
			return 0; /* it might be written anew all the time */
		forget(source);
	} else if (state == CODE_FILE_SAME) {
		source->whole_ns = now_ns;
		return 0;
	}
	return read_source(maps, source, most[how], now_ns);
}

int code_maps__look(struct code_maps *maps, enum code_look how, uint64_t now_ns)
{
	int rc = 0;
	size_t i;

	maps->root_is_new = false;
	for (i = 0; !rc && i < maps->n_sources; i++)
		rc = look_at(maps, &maps->sources[i], how, now_ns);
	maps->looked_ns = now_ns;
	return rc;
}

uint64_t code_maps__looked_ns(const struct code_maps *maps)
{
	return maps->looked_ns;
}

uint32_t code_maps__version(const struct code_maps *maps)
{
	return maps->version;
}

/* --- asking --- */

static bool find_among(struct code_maps *maps, bool jitdumps, uint64_t address, uint64_t time_ns,
		       struct code_place *ret)
{
	size_t i;

	for (i = 0; i < maps->n_sources; i++) {
		struct source *source = &maps->sources[i];

		if (source->is_jitdump != jitdumps ||
		    !code_index__find(&source->index, address, min_of(time_ns, source->until_ns),
				      &ret->entry))
			continue;
		ret->source = i;
		ret->edition = source->edition;
		return true;
	}
	return false;
}

/* Jitdump files know times and lines. */
bool code_maps__find(struct code_maps *maps, uint64_t address, uint64_t time_ns,
		     struct code_place *ret)
{
	return find_among(maps, true, address, time_ns, ret) ||
	       find_among(maps, false, address, time_ns, ret);
}

bool code_maps__symbol(const struct code_maps *maps, const struct code_place *place,
		       uint64_t address, uint32_t skew, struct code_symbol *ret)
{
	const struct source *source = &maps->sources[place->source];
	const struct code_entry *entry = &place->entry;

	ret->file[0] = '\0';
	ret->line = 0;
	if (source->file.fd < 0 || place->edition != source->edition)
		return false;
	if (!source->is_jitdump)
		return perf_map__name(&source->file, entry, ret->name, sizeof(ret->name));
	jitdump__line(&source->file, entry, address, skew, ret->file, sizeof(ret->file),
		      &ret->line);
	return jitdump__name(&source->file, entry, ret->name, sizeof(ret->name));
}

void code_maps__count(const struct code_maps *maps, struct code_maps_counts *add_to)
{
	size_t i;

	for (i = 0; i < maps->n_sources; i++) {
		const struct source *source = &maps->sources[i];

		add_to->symbols += source->counts.symbols + source->dump.symbols;
		add_to->skipped += source->counts.skipped + source->dump.skipped;
	}
}

bool code_maps__refusal(struct code_maps *maps, struct err *ret)
{
	bool had = maps->has_refusal;

	*ret = maps->refusal;
	maps->has_refusal = false;
	return had;
}
