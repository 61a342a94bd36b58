// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/jit_source.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <uthash.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/target/jit_maps.h"
#include "core/target/jitdump.h"

/* Bytes of one file that one jit_source__look() reads. Reading them takes about 5 and 150 ms. */
#define GROWTH_BYTES (1 << 20)
#define FILES_BYTES  (32 << 20)

/* Time after which a file over the budget is read again. The time doubles with each attempt.
 * Meanwhile the file may have been rewritten, or its user's other files may be gone. */
#define RETRY_NS	(10 * NSEC_PER_SEC)
#define RETRY_SHIFT_MAX 10

/* Visits of a search that are not charged, and the charge for each further one in ns. */
#define FREE_VISITS 64
#define VISIT_NS    20

struct identity { /* without padding, as its bytes are hashed */
	uint64_t dev, ino;
	uint32_t uid;
	uint32_t is_jitdump;
	uint64_t copy; /* serial number of a copy, which is never shared; 0: not a copy */
};

struct jit_source {
	struct jit_sources *all;
	struct identity identity;
	uint32_t refs;
	uint32_t edition, changes;
	struct quota_account *account;
	uint64_t copied; /* bytes of a copy in memory */
	struct jit_file file;
	struct jit_index index;
	struct jitdump dump;
	bool anew;	   /* the file was rewritten and must be read from its start */
	bool is_too_large; /* over the budget: there is no index ... */
	uint64_t retry_ns; /* ... until this time */
	uint32_t retries;  /* number of times that retry_ns was set */
	uint64_t whole_ns; /* time at which the whole file was last read; 0: never */
	UT_hash_handle hh;
};

struct jit_sources {
	struct jit_source *list;
	uint32_t last_edition;
	uint64_t last_copy;
};

struct jit_sources *jit_sources__new(void)
{
	return calloc(1, sizeof(struct jit_sources));
}

void jit_sources__free(struct jit_sources *sources)
{
	free(sources);
}

static void forget(struct jit_source *source)
{
	jit_index__done(&source->index);
	source->dump = (struct jitdump) {};
	source->edition = ++source->all->last_edition;
	source->changes++;
	source->anew = false;
	source->is_too_large = false;
	source->file.done = source->file.n_print = 0;
}

/* Drops the index, and thereby the names of all code that has no name yet. */
static void give_up(struct jit_source *source, uint64_t now_ns)
{
	forget(source);
	source->is_too_large = true;
	source->retry_ns = now_ns + (RETRY_NS << min_of(source->retries, RETRY_SHIFT_MAX));
	source->retries++;
	quota__refuse(source->account);
}

/* Charges the memory of a copied file. */
static int charge_copy(struct jit_source *source)
{
	struct stat st;
	int ret;

	if (!source->file.copied_ns || fstat(source->file.fd, &st))
		return 0;
	ret = quota__charge(source->account, QUOTA_READ, st.st_size);
	if (!ret)
		ret = quota__charge(source->account, QUOTA_RETAINED, st.st_size);
	source->copied = ret ? 0 : st.st_size;
	return ret;
}

static void free_source(struct jit_source *source)
{
	jit_index__done(&source->index);
	quota__give_back(source->account, source->copied);
	quota__close(source->account);
	jit_file__close(&source->file);
	free(source);
}

static int add_source(struct jit_sources *sources, struct jit_file *file,
		      const struct identity *identity, const char *path, struct jit_source **ret)
{
	struct jit_source *source = calloc(1, sizeof(*source));
	int code;

	if (!source) {
		jit_file__close(file);
		return -ENOMEM;
	}
	source->all = sources;
	source->identity = *identity;
	source->edition = ++sources->last_edition;
	source->account = quota__open(&(struct quota_subject) {
		.dev = file->dev, .ino = file->ino, .uid = identity->uid, .name = path });
	source->file = *file;
	*file = JIT_FILE_NONE;
	source->file.account = source->index.account = source->account;
	code = source->account ? charge_copy(source) : -ENOMEM;
	if (code) {
		free_source(source);
		return code;
	}
	HASH_ADD(hh, sources->list, identity, sizeof(source->identity), source);
	*ret = source;
	return 0;
}

int jit_sources__share(struct jit_sources *sources, struct jit_file *file, bool is_jitdump,
		       uint32_t uid, const char *path, struct jit_source **ret)
{
	struct identity identity = { .dev = file->dev,
				     .ino = file->ino,
				     .uid = uid,
				     .is_jitdump = is_jitdump,
				     .copy = file->copied_ns ? ++sources->last_copy : 0 };
	struct jit_source *source;
	int code = 0;

	HASH_FIND(hh, sources->list, &identity, sizeof(identity), source);
	if (source)
		jit_file__close(file);
	else
		code = add_source(sources, file, &identity, path, &source);
	if (code)
		return code;
	source->refs++;
	*ret = source;
	return 0;
}

void jit_source__release(struct jit_source *source)
{
	if (!source || --source->refs)
		return;
	HASH_DEL(source->all->list, source);
	free_source(source);
}

/* --- reading --- */

static int64_t read_part(struct jit_source *source, uint64_t max, uint64_t now_ns,
			 struct perf_map_counts *counts)
{
	struct jitdump before = source->dump;
	int64_t taken;

	if (!source->identity.is_jitdump)
		return perf_map__read(&source->file, max, source->whole_ns, &source->index, counts);
	taken = jitdump__read(&source->dump, &source->file, max, source->whole_ns, now_ns,
			      &source->index);
	counts->symbols += source->dump.symbols - before.symbols;
	counts->skipped += source->dump.skipped - before.skipped;
	return taken;
}

static int read_more(struct jit_source *source, uint64_t max, uint64_t now_ns,
		     struct perf_map_counts *counts)
{
	struct quota_account *previous = quota__enter(source->account);
	size_t before = source->index.n;
	int64_t taken = read_part(source, max, now_ns, counts);

	quota__leave(previous);
	source->changes += source->index.n != before;
	if (taken >= 0 && source->file.refused)
		taken = source->file.refused;
	if (taken == -ENOSPC || taken == -EFBIG)
		give_up(source, now_ns);
	else if (taken >= 0 && (uint64_t)taken < max)
		source->whole_ns = now_ns;
	return taken == -ENOMEM ? -ENOMEM : 0;
}

int jit_source__look(struct jit_source *source, enum jit_look how, uint64_t now_ns,
		     struct perf_map_counts *counts)
{
	static const uint64_t most[] = { [JIT_LOOK_GROWTH] = GROWTH_BYTES,
					 [JIT_LOOK_FILES] = FILES_BYTES,
					 [JIT_LOOK_ALL] = UINT64_MAX };
	enum jit_file_state state = jit_file__look(&source->file);

	if (source->file.size > JIT_FILE_MAX) {
		if (!source->is_too_large)
			give_up(source, now_ns);
		return 0;
	}
	source->anew |= state == JIT_FILE_REWRITTEN;
	source->anew |= source->is_too_large && now_ns >= source->retry_ns;
	if (source->anew) {
		if (how == JIT_LOOK_GROWTH)
			return 0; /* a file that is rewritten continuously must not cost more */
		forget(source);
	} else if (source->is_too_large) {
		return 0;
	} else if (state == JIT_FILE_SAME) {
		source->whole_ns = now_ns;
		return 0;
	}
	return read_more(source, most[how], now_ns, counts);
}

/* --- queries --- */

const struct jit_file *jit_source__file(const struct jit_source *source)
{
	return &source->file;
}

uint32_t jit_source__changes(const struct jit_source *source)
{
	return source->changes;
}

uint32_t jit_source__edition(const struct jit_source *source)
{
	return source->edition;
}

/* Charges long searches: ranges that overlap a thousand times make each search long. */
bool jit_source__find(struct jit_source *source, uint64_t address, uint64_t time_ns,
		      struct jit_entry *ret)
{
	uint64_t before = source->index.visits, visits;
	bool found = jit_index__find(&source->index, address, time_ns, ret);

	visits = source->index.visits - before;
	if (visits > FREE_VISITS &&
	    quota__charge(source->account, QUOTA_CPU_NS, visits * VISIT_NS) == -EFBIG) {
		give_up(source, now_ns());
		found = false;
	}
	return found;
}

bool jit_source__symbol(struct jit_source *source, uint32_t edition, const struct jit_entry *entry,
			uint64_t address, uint32_t skew, struct jit_symbol *ret)
{
	ret->file[0] = '\0';
	ret->line = 0;
	if (edition != source->edition)
		return false;
	if (!source->identity.is_jitdump)
		return perf_map__name(&source->file, entry, ret->name, sizeof(ret->name));
	jitdump__line(&source->file, entry, address, skew, ret->file, sizeof(ret->file),
		      &ret->line);
	return jitdump__name(&source->file, entry, ret->name, sizeof(ret->name));
}
