// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_xsubs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

/* The process changes its memory during the search: any value may be garbage, and only these bounds
 * end the search. */
#define DEPTH_MAX   12	   /* packages within packages */
#define ENTRIES_MAX 200000 /* sum of all packages */
#define BUCKETS_MAX (1U << 20)
#define CHAIN_MAX   64
#define NAME_BYTES  160

#define AGAIN_NS 5000000000ULL /* between two searches of one process */

/* sv.h, hv.h, gv.h; the same from 5.30 to 5.44 */
struct head {
	uint64_t body;
	uint32_t references, flags;
	uint64_t value;
};
#define TYPE_MASK     0xff
#define TYPE_GLOB     9	 /* SVt_PVGV */
#define TYPE_HASH     12 /* SVt_PVHV */
#define TYPE_CODE     13 /* SVt_PVCV */
#define HASH_MAX      24 /* struct xpvhv.xhv_max */
#define NAME_IN_HEK   8
#define CODE_ROOT     16 /* struct xpvcv: xcv_root_u behind xcv_stash */
#define CODE_GLOB     24
#define CODE_FLAGS    60
#define CODE_IS_XSUB  0x8    /* CVf_ISXSUB, cv.h */
#define CODE_IS_NAMED 0x8000 /* CVf_NAMED */

struct entry { /* HE */
	uint64_t next, name, value;
};

struct glob { /* GP, up to gp_hv */
	uint64_t scalar, io, code;
	uint32_t generation, references;
	uint64_t hash;
};

struct xsub {
	UT_hash_handle hh;
	uint64_t entry;
	char *name;
};

struct process {
	UT_hash_handle hh;
	uint32_t space, pid;
	struct perl_stashes stashes;
	struct xsub *by_entry;
	uint64_t searched_ns; /* 0: never */
	unsigned left;	      /* entries that this search may still read */
};

struct perl_xsubs {
	struct process *by_space;
};

static void forget(struct process *process)
{
	struct xsub *xsub, *next;

	HASH_ITER (hh, process->by_entry, xsub, next) {
		HASH_DEL(process->by_entry, xsub);
		free(xsub->name);
		free(xsub);
	}
}

struct perl_xsubs *perl_xsubs__new(void)
{
	return calloc(1, sizeof(struct perl_xsubs));
}

void perl_xsubs__free(struct perl_xsubs *xsubs)
{
	if (!xsubs)
		return;
	while (xsubs->by_space)
		perl_xsubs__detach(xsubs, xsubs->by_space->space);
	free(xsubs);
}

int perl_xsubs__attach(struct perl_xsubs *xsubs, uint32_t pid, uint32_t space,
		       const struct perl_stashes *stashes)
{
	struct process *process;

	perl_xsubs__detach(xsubs, space);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->space = space;
	process->stashes = *stashes;
	HASH_ADD(hh, xsubs->by_space, space, sizeof(space), process);
	if (process->hh.tbl)
		return 0;
	free(process);
	return -ENOMEM;
}

void perl_xsubs__detach(struct perl_xsubs *xsubs, uint32_t space)
{
	struct process *process;

	HASH_FIND(hh, xsubs->by_space, &space, sizeof(space), process);
	if (!process)
		return;
	HASH_DEL(xsubs->by_space, process);
	forget(process);
	free(process);
}

/* --- the search --- */

static bool read_at(const struct process *process, uint64_t address, void *to, size_t size)
{
	return address && procfs__read_memory(process->pid, address, to, size);
}

/* Reads the name of a HEK, which its length in bytes precedes. A name that is too long becomes "".
 */
static bool read_name(const struct process *process, uint64_t hek, char name[NAME_BYTES])
{
	uint32_t len;

	if (!read_at(process, hek + 4, &len, sizeof(len)))
		return false;
	*name = '\0';
	if (len >= NAME_BYTES)
		return true;
	name[len] = '\0';
	return !len || read_at(process, hek + NAME_IN_HEK, name, len);
}

/* Adds a name. A function with several names has all of them: "List::Util::sum, List::Util::sum0".
 */
static int add(struct process *process, uint64_t address, const char *name)
{
	struct xsub *xsub;
	char *both = NULL;

	HASH_FIND(hh, process->by_entry, &address, sizeof(address), xsub);
	if (xsub) {
		if (strlen(xsub->name) + strlen(name) + 3 > 2 * NAME_BYTES)
			return 0;
		if (asprintf(&both, "%s, %s", xsub->name, name) < 0)
			return -ENOMEM;
		free(xsub->name);
		xsub->name = both;
		return 0;
	}
	xsub = calloc(1, sizeof(*xsub));
	if (xsub)
		xsub->name = strdup(name);
	if (!xsub || !xsub->name)
		goto out;
	xsub->entry = address;
	HASH_ADD(hh, process->by_entry, entry, sizeof(address), xsub);
	if (xsub->hh.tbl)
		return 0;
out:
	if (xsub)
		free(xsub->name);
	free(xsub);
	return -ENOMEM;
}

/* Adds a subroutine only under the package that it names itself: an imported subroutine is in
 * several packages. */
static int add_code(struct process *process, uint64_t code, uint64_t glob, const char *name)
{
	uint64_t body, words[2]; /* xcv_root_u, xcv_gv_u */
	struct head head;
	uint32_t flags;

	if (!read_at(process, code, &head, sizeof(head)) || (head.flags & TYPE_MASK) != TYPE_CODE)
		return 0;
	body = head.body + process->stashes.offsets.code_stash;
	if (!read_at(process, body + CODE_FLAGS, &flags, sizeof(flags)) ||
	    !(flags & CODE_IS_XSUB) || flags & CODE_IS_NAMED ||
	    !read_at(process, body + CODE_ROOT, words, sizeof(words)) || words[1] != glob ||
	    !words[0])
		return 0;
	return add(process, words[0], name);
}

static int search(struct process *process, uint64_t stash, const char *package, unsigned depth);

static int search_entry(struct process *process, const struct entry *entry, const char *package,
			unsigned depth)
{
	char own[NAME_BYTES], name[2 * NAME_BYTES];
	struct head head;
	struct glob glob;
	size_t len;

	if (!read_at(process, entry->value, &head, sizeof(head)) ||
	    (head.flags & TYPE_MASK) != TYPE_GLOB ||
	    !read_at(process, head.value, &glob, sizeof(glob)) || (!glob.code && !glob.hash) ||
	    !read_name(process, entry->name, own) || !*own)
		return 0;
	len = strlen(own);
	snprintf(name, sizeof(name), "%s%s", package, own);
	if (strlen(name) >= NAME_BYTES)
		return 0;
	if (len > 2 && strcmp(own + len - 2, "::") == 0)
		/* The outermost package is in itself. */
		return strcmp(own, "main::") == 0 || !glob.hash
			       ? 0
			       : search(process, glob.hash, name, depth + 1);
	return glob.code ? add_code(process, glob.code, entry->value, name) : 0;
}

/* Searches one package, whose name ends with "::", and the packages in it. Returns 0 or -ENOMEM. */
static int search(struct process *process, uint64_t stash, const char *package, unsigned depth)
{
	uint64_t max, *buckets;
	struct head head;
	int ret = 0;

	if (depth > DEPTH_MAX || !read_at(process, stash, &head, sizeof(head)) ||
	    (head.flags & TYPE_MASK) != TYPE_HASH || !head.value ||
	    !read_at(process, head.body + HASH_MAX, &max, sizeof(max)) || max >= BUCKETS_MAX)
		return 0;
	buckets = malloc((max + 1) * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	if (!read_at(process, head.value, buckets, (max + 1) * sizeof(*buckets)))
		max = 0, *buckets = 0;
	for (size_t i = 0; !ret && i <= max; i++) {
		struct entry entry = { .next = buckets[i] };

		for (int n = 0; !ret && n < CHAIN_MAX && process->left; n++) {
			if (!read_at(process, entry.next, &entry, sizeof(entry)))
				break;
			process->left--;
			ret = search_entry(process, &entry, package, depth);
		}
	}
	free(buckets);
	return ret;
}

static void search_all(struct process *process)
{
	const struct perl_stashes *stashes = &process->stashes;
	uint64_t stash;

	forget(process);
	process->left = ENTRIES_MAX;
	if (!read_at(process, stashes->at, &stash, sizeof(stash)))
		return;
	if (!stashes->is_pointer &&
	    !read_at(process, stash + stashes->defstash, &stash, sizeof(stash)))
		return;
	search(process, stash, "", 0); /* on -ENOMEM the names found so far are used */
	process->searched_ns = now_ns();
}

const char *perl_xsubs__name(struct perl_xsubs *xsubs, uint32_t pid, uint64_t entry)
{
	struct process *process;
	struct xsub *xsub;

	for (process = xsubs->by_space; process && process->pid != pid;)
		process = process->hh.next;
	if (!process)
		return NULL;
	HASH_FIND(hh, process->by_entry, &entry, sizeof(entry), xsub);
	if (!xsub && now_ns() - process->searched_ns > AGAIN_NS) {
		search_all(process);
		HASH_FIND(hh, process->by_entry, &entry, sizeof(entry), xsub);
	}
	return xsub ? xsub->name : NULL;
}
