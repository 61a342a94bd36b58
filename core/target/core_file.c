// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/memory_core.h"
#include "core/target/procfs.h"

#define THREADS_MAX 65536u

/* Linux' struct elf_prpsinfo of x86-64, which holds text without an end. */
struct prpsinfo {
	char state[4];
	uint64_t flag;
	uint32_t uid, gid;
	int32_t pid, ppid, pgrp, sid;
	char name[16];
	char arguments[80];
};

#define DIR_BYTES 160

struct core_file {
	struct memory *memory;
	const struct core_elf *elf; /* of the memory */
	struct prpsinfo info;
	struct core_thread *threads;
	size_t n_threads, cap_threads;
	uint64_t vdso;
	char dir[DIR_BYTES]; /* stands in for /proc; "": not made yet */
	struct procfs_source source;
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
	if (!core->n_threads) /* the one that got it comes first; the others have it noted, too */
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

/* Writes the sentence about what is missing. */
static void note_missing(struct core_file *core)
{
	uint64_t end = 0;

	for (size_t i = 0; i < core->elf->n_segments; i++) {
		const Elf64_Phdr *segment = &core->elf->segments[i];

		if (fits_in(segment->p_offset, segment->p_filesz, INT64_MAX))
			end = max_of(end, segment->p_offset + segment->p_filesz);
	}
	if (end > core->elf->size)
		snprintf(
			core->note, sizeof(core->note),
			"the core file is truncated: %" PRIu64 " of its %" PRIu64
			" bytes are missing (ulimit -c, or a full disk), and stacks that lie there",
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
		return err__set(err, -EBADMSG,
				"%s has no threads in it: it is truncated or damaged", path);
	note_missing(core);
	return 0;
}

/* --- what /proc would say --- */

static int write_file(const struct core_file *core, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static FILE *create(const struct core_file *core, const char *name)
{
	char path[DIR_BYTES + 64];

	snprintf(path, sizeof(path), "%s/%u/%s", core->dir, core_file__pid(core), name);
	return fopen(path, "wxe");
}

static int write_file(const struct core_file *core, const char *name, const char *format, ...)
{
	FILE *out = create(core, name);
	va_list args;
	bool bad;

	if (!out)
		return -errno;
	va_start(args, format);
	bad = vfprintf(out, format, args) < 0;
	va_end(args);
	return fclose(out) || bad ? -EIO : 0;
}

/* gcore leaves out segments that are as their files have them: code, above all. */
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

/* Code of no file: a compiler's, and the vDSO. */
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

static int write_maps(const struct core_file *core)
{
	struct core_mapping *lines =
		calloc(core->elf->n_files + core->elf->n_segments, sizeof(*lines));
	FILE *out = lines ? create(core, "maps") : NULL;
	size_t n;

	if (!out) {
		free(lines);
		return lines ? -errno : -ENOMEM;
	}
	n = file_lines(core, lines);
	n = other_lines(core, lines, n);
	qsort(lines, n, sizeof(*lines), compare_lines);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 %d %s\n",
			lines[i].start, lines[i].end, lines[i].offset, lines[i].path[0] == '/',
			lines[i].path);
	free(lines);
	return fclose(out) ? -EIO : 0;
}

static void safe_copy(char *to, size_t size, const char *from, size_t max)
{
	snprintf(to, size, "%.*s", (int)strnlen(from, max), from);
	procfs__make_printable(to, strlen(to));
}

static int lay_out(struct core_file *core, const char *root)
{
	const char *parent = secure_getenv("TMPDIR");
	uint32_t pid = core_file__pid(core);
	char name[32], arguments[96], path[DIR_BYTES + 64];
	int code;

	safe_copy(name, sizeof(name), core->info.name, sizeof(core->info.name));
	safe_copy(arguments, sizeof(arguments), core->info.arguments, sizeof(core->info.arguments));
	snprintf(core->dir, sizeof(core->dir), "%s/braid-core-XXXXXX",
		 parent && strlen(parent) < DIR_BYTES / 2 ? parent : "/tmp");
	if (!mkdtemp(core->dir)) {
		core->dir[0] = '\0';
		return -errno;
	}
	snprintf(path, sizeof(path), "%s/%u", core->dir, pid);
	if (mkdir(path, 0700))
		return -errno;
	snprintf(path, sizeof(path), "%s/%u/root", core->dir, pid);
	if (symlink(root, path))
		return -errno;
	code = write_file(core, "status",
			  "Name:\t%s\nTgid:\t%u\nPid:\t%u\nUid:\t%u\t%u\t%u\t%u\nNStgid:\t%u\n",
			  name, pid, pid, geteuid(), geteuid(), geteuid(), geteuid(), pid);
	if (!code)
		code = write_file(core, "stat",
				  "%u (%s) S %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0\n", pid,
				  name, core->info.ppid);
	if (!code)
		code = write_file(core, "cmdline", "%s", arguments);
	return code ? code : write_maps(core);
}

int core_file__open(const char *path, const char *root, struct core_file **ret, struct err *err)
{
	struct core_file *core = calloc(1, sizeof(*core));
	int code, fd;

	if (!core)
		return err__set(err, -ENOMEM, "out of memory");
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait */
	code = fd < 0 ? err__set(err, -errno, "cannot open %s: %s", path, strerror(errno))
		      : read_core(core, fd, path, err);
	if (!code) {
		code = lay_out(core, root);
		if (code)
			err__set(err, code, "cannot lay out %s in /tmp: %s", path, strerror(-code));
	}
	if (code) {
		core_file__close(core);
		return code;
	}
	core->source = (struct procfs_source) { core->dir, core->memory };
	procfs__use(&core->source);
	*ret = core;
	return 0;
}

void core_file__close(struct core_file *core)
{
	static const char *const names[] = { "status", "stat", "cmdline", "maps", "root", "" };
	char path[DIR_BYTES + 64];

	if (!core)
		return;
	procfs__use(NULL);
	for (size_t i = 0; core->dir[0] && i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%u/%s", core->dir, core_file__pid(core), names[i]);
		names[i][0] ? unlink(path) : rmdir(path);
	}
	if (core->dir[0])
		rmdir(core->dir);
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
