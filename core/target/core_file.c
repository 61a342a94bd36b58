// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/memory_core.h"
#include "core/target/target_view.h"

#define THREADS_MAX 65536u

/* struct elf_prpsinfo of Linux for x86-64, whose text may have no terminating NUL. */
struct prpsinfo {
	char state[4];
	uint64_t flag;
	uint32_t uid, gid;
	int32_t pid, ppid, pgrp, sid;
	char name[16];
	char arguments[80];
};

struct core_file {
	struct target_view view;
	struct memory *memory;
	const struct core_elf *elf; /* borrowed from `memory` */
	struct prpsinfo info;
	struct core_thread *threads;
	size_t n_threads, cap_threads;
	uint64_t vdso;
	char root[PATH_MAX]; /* directory that stands for "/" in paths of mapped files */
	char note[400];
};

/* --- reading --- */

static void take_status(struct core_file *core, const char *desc, uint64_t size)
{
	struct elf_prstatus status;
	struct core_thread thread = {};

	if (size < sizeof(status) || core->n_threads == THREADS_MAX ||
	    array__reserve(&core->threads, &core->cap_threads, core->n_threads + 1,
			   sizeof(*core->threads)))
		return;
	memcpy(&status, desc, sizeof(status));
	const unsigned long long *r = status.pr_reg; /* as struct user_regs_struct */
	const uint64_t regs[UNWIND_REGS] = { r[10], r[12], r[11], r[5], r[13], r[14],
					     r[4],  r[19], r[9],  r[8], r[7],  r[6],
					     r[3],  r[2],  r[1],  r[0], r[16] };

	thread.tid = status.pr_pid;
	if (!core->n_threads) /* the receiving thread comes first; all others have the number, too
			       */
		thread.signal = status.pr_cursig;
	thread.call = (int64_t)r[15];
	thread.fs_base = r[21];
	memcpy(thread.regs, regs, sizeof(regs));
	core->threads[core->n_threads++] = thread;
}

static void take_vector(struct core_file *core, const char *desc, uint64_t size)
{
	Elf64_auxv_t entry;

	for (; size >= sizeof(entry); desc += sizeof(entry), size -= sizeof(entry)) {
		memcpy(&entry, desc, sizeof(entry));
		if (entry.a_type == AT_SYSINFO_EHDR)
			core->vdso = entry.a_un.a_val;
	}
}

static void take_notes(struct core_file *core)
{
	struct core_note note;
	uint64_t at = 0;

	while (core_elf__next_note(core->elf, &at, &note)) {
		if (note.type == NT_PRSTATUS)
			take_status(core, note.desc, note.size);
		else if (note.type == NT_PRPSINFO && note.size >= sizeof(core->info))
			memcpy(&core->info, note.desc, sizeof(core->info));
		else if (note.type == NT_AUXV)
			take_vector(core, note.desc, note.size);
	}
}

/* Sets the note about missing parts. */
static void note_missing(struct core_file *core)
{
	uint64_t end = 0;

	for (size_t i = 0; i < core->elf->n_segments; i++) {
		const Elf64_Phdr *segment = &core->elf->segments[i];

		if (fits_in(segment->p_offset, segment->p_filesz, INT64_MAX))
			end = max_of(end, segment->p_offset + segment->p_filesz);
	}
	if (end > core->elf->size)
		snprintf(core->note, sizeof(core->note),
			 "the core file is truncated: %" PRIu64 " of its %" PRIu64
			 " bytes are missing (ulimit -c, or a full disk), with the stacks in them",
			 end - core->elf->size, end);
	else if (core->elf->is_damaged)
		snprintf(core->note, sizeof(core->note),
			 "the notes of the core file are damaged: threads and mapped files may be "
			 "missing");
}

static int read_core(struct core_file *core, int fd, const char *path, struct err *err)
{
	int code = memory__of_core(fd, path, &core->memory, err);

	if (code)
		return code;
	core->elf = memory__core(core->memory);
	take_notes(core);
	if (!core->n_threads)
		return err__set(err, -EBADMSG, "%s contains no threads: it is truncated or damaged",
				path);
	note_missing(core);
	return 0;
}

/* --- the view --- */

static const struct core_file *core_of(const struct target_view *view)
{
	return (const struct core_file *)view;
}

/* Returns true if the memory at [@start, @end) is executable. gcore leaves out segments that equal
 * their files, which is mostly code; they count as executable. */
static bool is_code(const struct core_file *core, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < core->elf->n_segments; i++) {
		const Elf64_Phdr *segment = &core->elf->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_vaddr < end &&
		    start < segment->p_vaddr + segment->p_memsz)
			return segment->p_flags & PF_X;
	}
	return true;
}

static int compare_lines(const void *a, const void *b)
{
	const struct core_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static size_t file_lines(const struct core_file *core, struct core_mapping *lines)
{
	size_t n = 0;

	for (size_t i = 0; i < core->elf->n_files; i++) {
		const struct core_mapping *file = &core->elf->files[i];

		if (file->start < file->end && is_code(core, file->start, file->end) &&
		    !strchr(file->path, '\n'))
			lines[n++] = *file;
	}
	return n;
}

/* Adds executable memory without a file: a compiler's code, and the vDSO. */
static size_t other_lines(const struct core_file *core, struct core_mapping *lines, size_t n)
{
	size_t n_files = n;

	for (size_t i = 0; i < core->elf->n_segments; i++) {
		const Elf64_Phdr *segment = &core->elf->segments[i];
		uint64_t end = segment->p_vaddr + segment->p_memsz;
		bool known = false;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    end <= segment->p_vaddr)
			continue;
		for (size_t k = 0; !known && k < n_files; k++)
			known = lines[k].start < end && segment->p_vaddr < lines[k].end;
		if (!known)
			lines[n++] =
				(struct core_mapping) { segment->p_vaddr, end, 0,
							segment->p_vaddr == core->vdso ? "[vdso]"
										       : "" };
	}
	return n;
}

static int core__mappings(const struct target_view *view, uint32_t pid, struct procfs_mappings *ret)
{
	const struct core_file *core = core_of(view);
	size_t n_max = core->elf->n_files + core->elf->n_segments, n;
	struct core_mapping *found;
	struct maps_line *lines;
	int ret_code = -ENOMEM;

	if (pid != core_file__pid(core))
		return -ESRCH;
	found = calloc(n_max, sizeof(*found));
	lines = calloc(n_max, sizeof(*lines));
	if (found && lines) {
		n = file_lines(core, found);
		n = other_lines(core, found, n);
		qsort(found, n, sizeof(*found), compare_lines);
		for (size_t i = 0; i < n; i++)
			lines[i] = (struct maps_line) { .start = found[i].start,
							.end = found[i].end,
							.offset = found[i].offset,
							.inode = found[i].path[0] == '/',
							.perms = "r-xp",
							.path = found[i].path };
		ret_code = target_view__take_lines(lines, n, ret);
	}
	free(found);
	free(lines);
	return ret_code;
}

static bool has_thread(const struct core_file *core, uint32_t id)
{
	for (size_t i = 0; i < core->n_threads; i++)
		if (core->threads[i].tid == id)
			return true;
	return id == core_file__pid(core);
}

static void safe_copy(char *to, size_t size, const char *from, size_t max)
{
	snprintf(to, size, "%.*s", (int)strnlen(from, max), from);
	procfs__make_printable(to, strlen(to));
}

/* Reports the user of braid as the process's owner. */
static int core__status(const struct target_view *view, uint32_t id, struct procfs_info *ret,
			struct err *err)
{
	const struct core_file *core = core_of(view);
	const size_t n = strnlen(core->info.arguments, sizeof(core->info.arguments));

	if (!has_thread(core, id))
		return err__set(err, -ESRCH, "the core file contains no process with PID %u", id);
	*ret = (struct procfs_info) { .pid = core_file__pid(core),
				      .parent_pid = core->info.ppid,
				      .inner_pid = core_file__pid(core),
				      .uid = geteuid(),
				      .state = 'S' };
	safe_copy(ret->name, sizeof(ret->name), core->info.name, sizeof(core->info.name));
	procfs__join_arguments(core->info.arguments, n, ret);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int core__threads(const struct target_view *view, uint32_t pid, uint32_t **ret,
			 size_t *ret_n)
{
	const struct core_file *core = core_of(view);
	uint32_t *ids;

	if (pid != core_file__pid(core))
		return -ESRCH;
	ids = calloc(core->n_threads, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	for (size_t i = 0; i < core->n_threads; i++)
		ids[i] = core->threads[i].tid;
	qsort(ids, core->n_threads, sizeof(*ids), compare_ids);
	*ret = ids;
	*ret_n = core->n_threads;
	return 0;
}

/* Copies the arguments as one word: the kernel stored the first 80 bytes, joined by blanks. */
static ssize_t core__words(const struct target_view *view, uint32_t pid, const char *name,
			   char *buf, size_t size)
{
	const struct core_file *core = core_of(view);
	size_t n = strnlen(core->info.arguments, sizeof(core->info.arguments));

	if (pid != core_file__pid(core) || strcmp(name, "cmdline") != 0)
		return -ENOENT;
	n = min_of(n, size);
	memcpy(buf, core->info.arguments, n);
	procfs__make_printable(buf, n);
	return (ssize_t)n;
}

static int core__memory(const struct target_view *view, uint32_t pid, uint64_t address, void *to,
			size_t size)
{
	const struct core_file *core = core_of(view);

	return pid == core_file__pid(core) ? memory__read(core->memory, address, to, size) : -ESRCH;
}

static void core__root(const struct target_view *view, uint32_t pid, char *ret, size_t size)
{
	(void)pid;
	snprintf(ret, size, "%s", core_of(view)->root);
}

int core_file__open(const char *path, const char *root, struct core_file **ret, struct err *err)
{
	struct core_file *core = calloc(1, sizeof(*core));
	int code, fd;

	if (!core)
		return err__set(err, -ENOMEM, "out of memory");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* the open of a pipe must not block */
	code = fd < 0 ? err__set(err, -errno, "cannot open %s: %s", path, strerror(errno))
		      : read_core(core, fd, path, err);
	if (!code &&
	    snprintf(core->root, sizeof(core->root), "%s", root) >= (int)sizeof(core->root))
		code = err__set(err, -ENAMETOOLONG, "%s: %s", root, strerror(ENAMETOOLONG));
	if (code) {
		core_file__close(core);
		return code;
	}
	core->view = (struct target_view) { .status = core__status,
					    .mappings = core__mappings,
					    .threads = core__threads,
					    .words = core__words,
					    .memory = core__memory,
					    .root = core__root };
	target_view__use(&core->view);
	*ret = core;
	return 0;
}

void core_file__close(struct core_file *core)
{
	if (!core)
		return;
	target_view__use(NULL);
	memory__free(core->memory);
	free(core->threads);
	free(core);
}

uint32_t core_file__pid(const struct core_file *core)
{
	return core->info.pid > 0 ? (uint32_t)core->info.pid : core->threads[0].tid;
}

const struct memory *core_file__memory(const struct core_file *core)
{
	return core->memory;
}

const struct core_thread *core_file__threads(const struct core_file *core, size_t *ret_n)
{
	*ret_n = core->n_threads;
	return core->threads;
}

const char *core_file__note(const struct core_file *core)
{
	return core->note[0] ? core->note : NULL;
}
