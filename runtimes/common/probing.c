// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/probing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <uthash.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "probes/usdt_args.h"

struct probed { /* one process */
	UT_hash_handle hh;
	uint32_t pid;
	struct probe_links *links;
	const struct elf_file *file;
	struct runtime_probing by;
	struct probe_rec recs[PROBING_SITES_MAX];
	uint32_t numbers[PROBING_SITES_MAX]; /* indexes of the records in the map */
	size_t n_recs;
};

struct probing {
	struct bpf_object *object; /* borrowed */
	const struct bpf_program *nothing;
	int recs_fd, hits_fd;
	uint64_t *no_hits; /* by CPU */
	uint32_t next;	   /* the search for a free number begins here */
	struct probed *by_pid;
};

int probing__new(struct bpf_object *object, struct probing **ret, struct err *err)
{
	struct probing *probing = calloc(1, sizeof(*probing));

	if (!probing)
		return err__set(err, -ENOMEM, "out of memory");
	probing->object = object;
	probing->nothing = bpf_object__find_program_by_name(object, "nothing");
	probing->recs_fd = bpf_object__find_map_fd_by_name(object, "probe_recs");
	probing->hits_fd = bpf_object__find_map_fd_by_name(object, "probe_hits");
	probing->no_hits = calloc(max_of(libbpf_num_possible_cpus(), 1), sizeof(*probing->no_hits));
	if (probing->recs_fd < 0 || probing->hits_fd < 0 || !probing->no_hits) {
		probing__free(probing);
		return err__set(err, -ENOENT, "the BPF maps probe_recs and probe_hits are missing");
	}
	*ret = probing;
	return 0;
}

const struct bpf_program *probing__program(const struct probing *probing, const char *name)
{
	return bpf_object__find_program_by_name(probing->object, name);
}

/* --- records: a number is free if the map has no record there, since all runtimes share it --- */

static int write_rec(const struct probing *probing, uint32_t number, const struct probe_rec *rec,
		     struct err *err)
{
	if (bpf_map_update_elem(probing->recs_fd, &number, rec, BPF_ANY))
		return err__set(err, -errno, "BPF map probe_recs: %s", strerror(errno));
	return 0;
}

static int find_number(struct probing *probing, uint32_t *ret, struct err *err)
{
	struct probe_rec rec;

	for (uint32_t i = 0; i < PROBE_SITES_MAX; i++) {
		uint32_t number = (probing->next + i) % PROBE_SITES_MAX;

		if (bpf_map_lookup_elem(probing->recs_fd, &number, &rec) || rec.flags & PROBE_TAKEN)
			continue;
		probing->next = number + 1;
		*ret = number;
		return 0;
	}
	return err__set(err, -ENOSPC,
			"cannot probe more sites: the limit of %d for all processes is reached",
			PROBE_SITES_MAX);
}

/* Numbers are free only when nothing is attached under them. */
static void probed__detach(struct probing *probing, struct probed *probed)
{
	static const struct probe_rec unused = {};

	if (probed->links)
		probe_links__detach(probed->links);
	for (size_t i = 0; i < probed->n_recs; i++)
		write_rec(probing, probed->numbers[i], &unused, NULL);
	probed->n_recs = 0;
}

static void probed__free(struct probing *probing, struct probed *probed)
{
	if (!probed)
		return;
	probed__detach(probing, probed);
	probe_links__free(probed->links);
	free(probed);
}

void probing__detach_all(struct probing *probing)
{
	struct probe_links **list = calloc(HASH_COUNT(probing->by_pid) + 1, sizeof(*list));
	struct probed *probed, *next;
	size_t n = 0;

	for (probed = probing->by_pid; list && probed; probed = probed->hh.next)
		list[n++] = probed->links;
	probe_links__detach_all(list, n);
	free(list);
	HASH_ITER (hh, probing->by_pid, probed, next) {
		HASH_DEL(probing->by_pid, probed);
		probed__free(probing, probed);
	}
}

void probing__free(struct probing *probing)
{
	if (!probing)
		return;
	probing__detach_all(probing);
	free(probing->no_hits);
	free(probing);
}

void probing__detach(struct probing *probing, uint32_t pid)
{
	struct probed *probed;

	HASH_FIND(hh, probing->by_pid, &pid, sizeof(pid), probed);
	if (!probed)
		return;
	HASH_DEL(probing->by_pid, probed);
	probed__free(probing, probed);
}

void probing__seen_since(struct probing *probing, uint32_t pid, uint64_t since_ns)
{
	struct probed *probed;

	HASH_FIND(hh, probing->by_pid, &pid, sizeof(pid), probed);
	for (size_t i = 0; probed && i < probed->n_recs; i++) {
		probed->recs[i].since_ns = since_ns;
		write_rec(probing, probed->numbers[i], &probed->recs[i], NULL);
	}
}

char *probing__environment(uint32_t pid, const char *variable)
{
	size_t size = 0, len = strlen(variable);
	char path[64], *entry = NULL;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/environ", procfs__living(pid));
	file = fopen(path, "re");
	while (file && !found && getdelim(&entry, &size, '\0', file) > 0)
		found = strncmp(entry, variable, len) == 0 && entry[len] == '=';
	if (file)
		fclose(file);
	if (found) {
		memmove(entry, entry + len + 1, strlen(entry + len + 1) + 1);
		return entry;
	}
	free(entry);
	return NULL;
}

int probing__extend_environment(const char *variable, char separator, const char *word)
{
	const char *before = getenv(variable);
	char *value;
	int rc;

	if (!before || !*before)
		return setenv(variable, word, 1);
	if (asprintf(&value, "%s%c%s", before, separator, word) < 0)
		return -1;
	rc = setenv(variable, value, 1);
	free(value);
	return rc;
}

/* --- sites --- */

int probing_sites__add_usdt(struct probing_sites *sites, const struct elf_file *file,
			    const struct usdt_site *from, uint32_t role, uint32_t n_args,
			    struct probing_site **ret, struct err *err)
{
	struct probing_site *site = &sites->list[sites->n];
	struct probe_arg args[USDT_ARGS_MAX];
	int n = usdt_args__parse(from->arguments, file, from->pc_vaddr, args, err);

	if (n < 0)
		return n;
	if ((uint32_t)n < n_args || n_args > PROBE_ARGS_MAX || sites->n == PROBING_SITES_MAX)
		return err__set(err, -ENOTSUP,
				"the probe %s has other arguments than braid supports", from->name);
	*site = (struct probing_site) {
		.rec = { .role = role, .n_args = n_args },
		.point = { .file = file,
			   .pc_vaddr = from->pc_vaddr,
			   .semaphore_vaddr = from->semaphore_vaddr },
	};
	memcpy(site->rec.args, args, n_args * sizeof(*args));
	sites->n++;
	*ret = site;
	return 0;
}

/* --- attaching --- */

int probing__renew(struct probing *probing, const struct runtime_target *target,
		   struct runtime_probing *ret, struct err *err)
{
	struct probed *probed;

	HASH_FIND(hh, probing->by_pid, &target->pid, sizeof(target->pid), probed);
	if (!probed || probed->file != target->file) {
		probing__detach(probing, target->pid);
		return 0;
	}
	for (size_t i = 0; i < probed->n_recs; i++) {
		int rc;

		probed->recs[i].space = target->space;
		rc = write_rec(probing, probed->numbers[i], &probed->recs[i], err);
		if (rc)
			return rc;
	}
	*ret = probed->by;
	return 1;
}

static int attach_site(struct probing *probing, struct probed *probed,
		       const struct runtime_target *target, const struct probing_site *site,
		       struct err *err)
{
	struct probe_point point = site->point;
	struct probe_rec rec = site->rec;
	uint32_t number = 0;
	int rc = find_number(probing, &number, err);

	if (rc)
		return rc;
	rec.space = target->space;
	rec.flags |= PROBE_TAKEN;
	point.cookie = number;
	rc = write_rec(probing, number, &rec, err);
	if (rc)
		return rc;
	bpf_map_update_elem(probing->hits_fd, &number, probing->no_hits, BPF_ANY);
	probed->recs[probed->n_recs] = rec;
	probed->numbers[probed->n_recs++] = number;
	return probe_links__attach(probed->links, site->program, target->pid, &point, 1, err);
}

static int attach_sites(struct probing *probing, struct probed *probed,
			const struct runtime_target *target, const struct probing_sites *sites,
			struct err *err)
{
	int rc = 0;

	if (sites->semaphore_vaddr)
		rc = probe_links__raise_semaphore(probed->links, probing->nothing, target->pid,
						  target->file, sites->semaphore_vaddr, err);
	for (int role = PROBE_RETURN; role >= PROBE_ENTRY; role--)
		for (size_t i = 0; !rc && i < sites->n; i++)
			if ((int)sites->list[i].rec.role == role)
				rc = attach_site(probing, probed, target, &sites->list[i], err);
	return rc;
}

int probing__attach(struct probing *probing, const struct runtime_target *target,
		    const struct probing_sites *sites, struct runtime_probing *by, struct err *err)
{
	struct probed *probed = calloc(1, sizeof(*probed));
	int rc = -ENOMEM;

	if (probed)
		probed->links = probe_links__new();
	if (!probed || !probed->links) {
		err__set(err, rc, "out of memory");
		goto out;
	}
	rc = attach_sites(probing, probed, target, sites, err);
	if (rc)
		goto out;
	probed->pid = target->pid;
	probed->file = target->file;
	by->traps = probe_links__traps(probed->links);
	probed->by = *by;
	HASH_ADD(hh, probing->by_pid, pid, sizeof(probed->pid), probed);
	probed = NULL;
out:
	probed__free(probing, probed);
	return rc;
}
