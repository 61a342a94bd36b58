// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/attach.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/files/target_file.h"
#include "core/kernel/uprobe_multi.h"

/* bytes of code at a site that determine the kind of its trap: the maximum length of an instruction
 * is 15 */
#define CODE_BYTES   16
#define MARKER_BYTES 4 /* endbr64 */

/* A link of libbpf at one place, or a link's descriptor at several places if @link is NULL. */
struct attached_link {
	struct bpf_link *link;
	int fd;
};

struct probe_links {
	struct attached_link *list;
	size_t n, cap;
	uint32_t traps;
};

struct probe_links *probe_links__new(void)
{
	return calloc(1, sizeof(struct probe_links));
}

uint32_t probe_links__traps(const struct probe_links *links)
{
	return links->traps;
}

static void close_link(const struct attached_link *attached)
{
	if (attached->link)
		bpf_link__destroy(attached->link);
	else
		close(attached->fd);
}

static void detach_from(struct probe_links *links, size_t first)
{
	while (links->n > first)
		close_link(&links->list[--links->n]);
}

static int hold(struct probe_links *links, struct bpf_link *link, int fd, struct err *err)
{
	const struct attached_link attached = { link, fd };

	if (array__reserve(&links->list, &links->cap, links->n + 1, sizeof(*links->list))) {
		close_link(&attached);
		return err__set(err, -ENOMEM, "out of memory");
	}
	links->list[links->n++] = attached;
	return 0;
}

#define THREADS_MAX 64

struct detaching {
	const struct attached_link *list; /* the rest of the list is being closed from its end */
	size_t left;
};

static void *detach_some(void *arg)
{
	struct detaching *detaching = arg;
	size_t left = __atomic_load_n(&detaching->left, __ATOMIC_RELAXED);

	while (left)
		if (__atomic_compare_exchange_n(&detaching->left, &left, left - 1, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			close_link(&detaching->list[--left]);
	return NULL;
}

/* Closes the links in several threads, as closing a descriptor is the operation that waits. */
static void detach_at_once(const struct attached_link *list, size_t n)
{
	struct detaching detaching = { list, n };
	pthread_t threads[THREADS_MAX];
	size_t n_threads = 0;

	while (n_threads + 1 < min_of(n, (size_t)THREADS_MAX) &&
	       !pthread_create(&threads[n_threads], NULL, detach_some, &detaching))
		n_threads++;
	detach_some(&detaching);
	while (n_threads)
		pthread_join(threads[--n_threads], NULL);
}

void probe_links__detach_all(struct probe_links *const *list, size_t n)
{
	struct attached_link *all;
	size_t n_all = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		n_all += list[i]->n;
	all = calloc(max_of(n_all, 1U), sizeof(*all));
	for (size_t i = 0; all && i < n; i++)
		for (size_t k = 0; k < list[i]->n; k++)
			all[at++] = list[i]->list[k];
	if (all)
		detach_at_once(all, n_all);
	for (size_t i = 0; i < n; i++) {
		if (all)
			list[i]->n = 0;
		detach_from(list[i], 0);
	}
	free(all);
}

void probe_links__detach(struct probe_links *links)
{
	probe_links__detach_all(&links, 1);
}

void probe_links__free(struct probe_links *links)
{
	if (!links)
		return;
	probe_links__detach(links);
	free(links->list);
	free(links);
}

static bool vaddr_to_offset(const struct elf_file *file, uint64_t vaddr, bool exec,
			    uint64_t *ret_offset)
{
	for (size_t i = 0; i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (vaddr < segment->vaddr || vaddr - segment->vaddr >= segment->filesz ||
		    (exec && !segment->exec))
			continue;
		*ret_offset = segment->offset + (vaddr - segment->vaddr);
		return true;
	}
	return false;
}

static enum trap_kind kind_at(const struct elf_file *file, uint64_t vaddr, bool retprobe)
{
	uint8_t code[CODE_BYTES];
	size_t size = sizeof(code);

	while (size && elf_file__read(file, vaddr, code, size))
		size--;
	return trap__kind(code, size, retprobe);
}

/* Skips endbr64, which compilers put where functions may be jumped to (-fcf-protection). It does
 * nothing, but is single-stepped if it is probed. That costs several times as much as the push that
 * mostly follows, where the state is still the same. */
static uint64_t skip_marker(const struct elf_file *file, uint64_t vaddr)
{
	static const uint8_t marker[MARKER_BYTES] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[MARKER_BYTES];

	if (elf_file__read(file, vaddr, code, sizeof(code)) ||
	    memcmp(code, marker, sizeof(code)) != 0 ||
	    kind_at(file, vaddr + MARKER_BYTES, false) == TRAP_STEP)
		return vaddr;
	return vaddr + MARKER_BYTES;
}

enum trap_kind probe_point__trap(const struct probe_point *point)
{
	return kind_at(point->file, skip_marker(point->file, point->pc_vaddr), point->retprobe);
}

/* Returns the traps of a hit. A probe of a return makes the kernel put a trap at the function's
 * entry, too. */
static uint32_t traps_of(const struct probe_point *point)
{
	uint64_t vaddr = skip_marker(point->file, point->pc_vaddr);
	uint32_t entry = 1U << kind_at(point->file, vaddr, false);

	return point->retprobe ? entry | 1U << kind_at(point->file, vaddr, true) : entry;
}

static int explain(int code, const struct probe_point *point, struct err *err)
{
	if (code == -EPERM || code == -EACCES)
		return privilege__explain(1U << PRIVILEGE_PROBES, "to attach probes", err);
	return err__set(err, code, "%s: cannot attach a probe at 0x%llx: %s%s", point->file->path,
			(unsigned long long)point->pc_vaddr, strerror(-code),
			code == -EINVAL && point->semaphore_vaddr
				? " (another tool may be attached there)"
				: "");
}

/* Finds the offset of the point in its file, and that of its semaphore (0: none). */
static int find_offsets(const struct probe_point *point, uint64_t *ret_offset,
			uint64_t *ret_semaphore, struct err *err)
{
	*ret_semaphore = 0;
	if (!vaddr_to_offset(point->file, skip_marker(point->file, point->pc_vaddr), true,
			     ret_offset))
		return err__set(err, -EINVAL, "%s: no code at 0x%llx", point->file->path,
				(unsigned long long)point->pc_vaddr);
	if (point->semaphore_vaddr &&
	    (!vaddr_to_offset(point->file, point->semaphore_vaddr, false, ret_semaphore) ||
	     *ret_semaphore > UINT32_MAX)) /* the width of the event's field */
		return err__set(err, -EINVAL, "%s: no semaphore at 0x%llx", point->file->path,
				(unsigned long long)point->semaphore_vaddr);
	if (target_file__is_copy(point->file->fd))
		return err__set(err, -ENOTSUP,
				"cannot attach probes to %s: its file system may not respond",
				point->file->path);
	return 0;
}

static int attach_one(struct probe_links *links, const struct bpf_program *program, pid_t pid,
		      const struct probe_point *point, struct err *err)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = point->cookie,
		    .retprobe = point->retprobe);
	uint64_t offset, semaphore;
	struct bpf_link *link;
	char path[64];
	int ret = find_offsets(point, &offset, &semaphore, err);

	if (ret)
		return ret;
	opts.ref_ctr_offset = semaphore;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", point->file->fd);
	link = bpf_program__attach_uprobe_opts(program, pid, path, offset, &opts);
	if (!link)
		return explain(-errno, point, err);
	ret = hold(links, link, -1, err);
	if (!ret)
		links->traps |= traps_of(point);
	return ret;
}

/* Attaches the leading points in the same file and of the same kind by one link; *@ret_n is their
 * number. */
static int attach_some(struct probe_links *links, const struct bpf_program *program, pid_t pid,
		       const struct probe_point *points, size_t n, size_t *ret_n, struct err *err)
{
	struct uprobe_multi_places places = { .at_return = points->retprobe };
	char path[64];
	int ret;

	n = min_of(n, (size_t)UPROBE_MULTI_MAX);
	for (size_t i = 0;
	     i < n && points[i].file == points->file && points[i].retprobe == points->retprobe;
	     i++) {
		ret = find_offsets(&points[i], &places.offsets[i], &places.semaphores[i], err);
		if (ret)
			return ret;
		places.cookies[i] = points[i].cookie;
		places.n++;
		links->traps |= traps_of(&points[i]);
	}
	*ret_n = places.n;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", points->file->fd);
	ret = uprobe_multi__attach(program, path, pid, &places);
	return ret < 0 ? explain(ret, points, err) : hold(links, NULL, ret, err);
}

int probe_links__attach(struct probe_links *links, const struct bpf_program *program, pid_t pid,
			const struct probe_point *points, size_t n, struct err *err)
{
	size_t first = links->n, some = 1;
	bool multi = uprobe_multi__is_set(program);

	for (size_t i = 0; i < n; i += some) {
		int ret = multi ? attach_some(links, program, pid, &points[i], n - i, &some, err)
				: attach_one(links, program, pid, &points[i], err);

		if (ret) {
			detach_from(links, first);
			return ret;
		}
	}
	return 0;
}

/* Finds code that a running process no longer executes (the entry point, the initialiser), or not
 * yet (the finaliser). Several places are needed, as one place can serve one semaphore only. */
static size_t find_quiet_code(const struct elf_file *file, uint64_t ret[3])
{
	Elf_Data *dynamic = elf_file__section(file, ".dynamic", NULL);
	GElf_Ehdr ehdr;
	Elf64_Dyn dyn;
	size_t n = 0;

	if (gelf_getehdr(file->elf, &ehdr) && ehdr.e_entry)
		ret[n++] = ehdr.e_entry;
	for (size_t i = 0; n < 3 && elf_file__entry(dynamic, i, &dyn, sizeof(dyn)); i++)
		if (dyn.d_tag == DT_INIT || dyn.d_tag == DT_FINI)
			ret[n++] = dyn.d_un.d_ptr;
	return n;
}

int probe_links__raise_semaphore(struct probe_links *links, const struct bpf_program *nothing,
				 pid_t pid, const struct elf_file *file, uint64_t semaphore_vaddr,
				 struct err *err)
{
	struct probe_point point = { .file = file, .semaphore_vaddr = semaphore_vaddr };
	int ret = err__set(err, -ENOENT, "%s: cannot raise a semaphore: the file has no code",
			   file->path);
	uint64_t places[3];
	size_t n = find_quiet_code(file, places);
	uint32_t traps = links->traps;

	for (size_t i = 0; ret && i < n; i++) {
		point.pc_vaddr = places[i];
		ret = attach_one(links, nothing, pid, &point, err);
	}
	links->traps = traps; /* the process never executes these places */
	return ret;
}
