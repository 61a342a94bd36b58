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
#include "core/target/procfs.h"

#define SEGMENTS_MAX  65534u
#define NOTES_MAX     (64u << 20)
#define FILES_MAX     65536u
#define THREADS_MAX   65536u
#define NOTE_ALIGN(n) (((n) + 3) & ~(uint64_t)3)

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
	int fd;
	uint64_t size;
	Elf64_Phdr *segments;
	size_t n_segments;
	char *notes;
	uint64_t n_notes;
	struct prpsinfo info;
	struct core_thread *threads;
	size_t n_threads, cap_threads;
	/* In the notes: */
	const char *files; /* the note NT_FILE; NULL: there is none */
	uint64_t n_files;
	uint64_t vdso;
	struct memory *memory;
	char dir[DIR_BYTES]; /* stands in for /proc; "": not made yet */
	struct procfs_source source;
	char note[400];
};

/* --- reading --- */

static bool read_at(const struct core_file *core, void *to, uint64_t size, uint64_t offset)
{
	return fits_in(offset, size, core->size) &&
	       pread(core->fd, to, size, (off_t)offset) == (ssize_t)size;
}

static const char *machine_name(unsigned machine)
{
	switch (machine) {
	case EM_386:
		return "a 32-bit x86";
	case EM_AARCH64:
		return "an arm64";
	case EM_ARM:
		return "an arm";
	case EM_RISCV:
		return "a RISC-V";
	case EM_PPC64:
		return "a POWER";
	case EM_S390:
		return "an s390";
	default:
		return "another";
	}
}

static int check_head(const struct core_file *core, const char *path, Elf64_Ehdr *ret,
		      struct err *err)
{
	struct stat st;

	if (fstat(core->fd, &st) || !S_ISREG(st.st_mode))
		return err__set(err, -EBADMSG, "%s is no regular file", path);
	if (!read_at(core, ret, sizeof(*ret), 0) || memcmp(ret->e_ident, ELFMAG, SELFMAG) != 0)
		return err__set(err, -EBADMSG, "%s is no core file: it does not begin as one",
				path);
	if (ret->e_type != ET_CORE)
		return err__set(err, -EBADMSG,
				"%s is no core file, but another ELF file (a program or library)",
				path);
	if (ret->e_machine != EM_X86_64 || ret->e_ident[EI_CLASS] != ELFCLASS64 ||
	    ret->e_ident[EI_DATA] != ELFDATA2LSB)
		return err__set(err, -ENOTSUP,
				"%s is the core file of %s process: braid reads those of 64-bit "
				"x86-64 processes",
				path, machine_name(ret->e_machine));
	return 0;
}

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

static void take_note(struct core_file *core, uint32_t type, const char *desc, uint64_t size)
{
	if (type == NT_PRSTATUS) {
		take_status(core, desc, size);
	} else if (type == NT_PRPSINFO && size >= sizeof(core->info)) {
		memcpy(&core->info, desc, sizeof(core->info));
	} else if (type == NT_AUXV) {
		take_vector(core, desc, size);
	} else if (type == NT_FILE && !core->files) {
		core->files = desc;
		core->n_files = size;
	}
}

static void read_notes(struct core_file *core, const Elf64_Phdr *segment)
{
	uint64_t size = segment->p_filesz, at = 0;

	if (core->notes || size > NOTES_MAX)
		return;
	core->notes = malloc(size + 1);
	if (!core->notes || !read_at(core, core->notes, size, segment->p_offset))
		return;
	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr head;
		uint64_t desc;

		memcpy(&head, core->notes + at, sizeof(head));
		desc = at + sizeof(head) + NOTE_ALIGN((uint64_t)head.n_namesz);
		if (desc > size || head.n_descsz > size - desc)
			return;
		take_note(core, head.n_type, core->notes + desc, head.n_descsz);
		at = min_of(desc + NOTE_ALIGN((uint64_t)head.n_descsz), size);
	}
}

static int read_segments(struct core_file *core, const char *path, const Elf64_Ehdr *head,
			 struct err *err)
{
	uint64_t end = 0;

	core->n_segments = head->e_phnum;
	if (!core->n_segments || core->n_segments > SEGMENTS_MAX ||
	    head->e_phentsize != sizeof(Elf64_Phdr))
		return err__set(err, -EBADMSG, "%s is damaged: it has no segments", path);
	core->segments = calloc(core->n_segments, sizeof(*core->segments));
	if (!core->segments)
		return err__set(err, -ENOMEM, "out of memory");
	if (!read_at(core, core->segments, core->n_segments * sizeof(*core->segments),
		     head->e_phoff))
		return err__set(err, -EBADMSG, "%s is truncated: its table of segments is missing",
				path);
	for (size_t i = 0; i < core->n_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];

		if (segment->p_type == PT_NOTE)
			read_notes(core, segment);
		if (fits_in(segment->p_offset, segment->p_filesz, INT64_MAX))
			end = max_of(end, segment->p_offset + segment->p_filesz);
	}
	if (!core->n_threads)
		return err__set(err, -EBADMSG,
				"%s has no threads in it: it is truncated or damaged", path);
	if (end > core->size)
		snprintf(
			core->note, sizeof(core->note),
			"the core file is truncated: %" PRIu64 " of its %" PRIu64
			" bytes are missing (ulimit -c, or a full disk), and stacks that lie there",
			end - core->size, end);
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
	for (size_t i = 0; i < core->n_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];

		if (segment->p_type == PT_LOAD && segment->p_vaddr < end &&
		    start < segment->p_vaddr + segment->p_memsz)
			return segment->p_flags & PF_X;
	}
	return true;
}

struct line {
	uint64_t start, end, offset;
	const char *path;
};

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Those of NT_FILE: count, page size, then (start, end, offset in pages) of each, then names. */
static size_t file_lines(const struct core_file *core, struct line *lines)
{
	uint64_t head[2], entry[3];
	const char *name, *end = core->files + core->n_files;
	size_t n = 0;

	if (core->n_files < sizeof(head))
		return 0;
	memcpy(head, core->files, sizeof(head));
	if (head[0] > FILES_MAX || head[0] > (core->n_files - sizeof(head)) / sizeof(entry))
		return 0;
	name = core->files + sizeof(head) + head[0] * sizeof(entry);
	for (uint64_t i = 0; i < head[0]; i++) {
		size_t length = strnlen(name, end - name);

		if (name + length == end)
			break;
		memcpy(entry, core->files + sizeof(head) + i * sizeof(entry), sizeof(entry));
		if (entry[0] < entry[1] && is_code(core, entry[0], entry[1]) && !strchr(name, '\n'))
			lines[n++] = (struct line) { entry[0], entry[1], entry[2] * head[1], name };
		name += length + 1;
	}
	return n;
}

/* Code of no file: a compiler's, and the vDSO. */
static size_t other_lines(const struct core_file *core, struct line *lines, size_t n)
{
	size_t n_files = n;

	for (size_t i = 0; i < core->n_segments; i++) {
		const Elf64_Phdr *segment = &core->segments[i];
		uint64_t end = segment->p_vaddr + segment->p_memsz;
		bool known = false;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) ||
		    end <= segment->p_vaddr)
			continue;
		for (size_t k = 0; !known && k < n_files; k++)
			known = lines[k].start < end && segment->p_vaddr < lines[k].end;
		if (!known)
			lines[n++] =
				(struct line) { segment->p_vaddr, end, 0,
						segment->p_vaddr == core->vdso ? "[vdso]" : "" };
	}
	return n;
}

static int write_maps(const struct core_file *core)
{
	struct line *lines = calloc(FILES_MAX + core->n_segments, sizeof(*lines));
	FILE *out = lines ? create(core, "maps") : NULL;
	size_t n;

	if (!out) {
		free(lines);
		return lines ? -errno : -ENOMEM;
	}
	n = core->files ? file_lines(core, lines) : 0;
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
	Elf64_Ehdr head;
	struct stat st;
	int code;

	if (!core)
		return err__set(err, -ENOMEM, "out of memory");
	core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not wait */
	if (core->fd < 0) {
		code = err__set(err, -errno, "cannot open %s: %s", path, strerror(errno));
		goto out;
	}
	core->size = fstat(core->fd, &st) ? 0 : st.st_size;
	code = check_head(core, path, &head, err);
	if (!code)
		code = read_segments(core, path, &head, err);
	if (!code)
		code = memory__of_core(dup(core->fd), path, &core->memory, err);
	if (!code) {
		code = lay_out(core, root);
		if (code)
			err__set(err, code, "cannot lay out %s in /tmp: %s", path, strerror(-code));
	}
	if (!code) {
		core->source = (struct procfs_source) { core->dir, core->memory };
		procfs__use(&core->source);
		*ret = core;
		return 0;
	}
out:
	core_file__close(core);
	return code;
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
	free(core->notes);
	free(core->segments);
	close_fd(&core->fd);
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
