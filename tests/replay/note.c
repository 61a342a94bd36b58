// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/note.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/elf_file.h"
#include "core/procfs.h"
#include "core/profile.h"
#include "core/util.h"
#include "runtimes/registry.h"
#include "tests/replay/expect.h"
#include "tests/replay/extract.h"
#include "tests/replay/pipeline.h"

#define GRANULE		256 /* of memory: whole ones are kept, and one on either side */
#define STACK_BYTES_MAX (1 << 20)
#define STACK_BELOW	256		   /* the red zone, and a bit */
#define FILE_BYTES_MAX	(1 << 20)	   /* of sources and perf maps */
#define MAP_BYTES_MAX	(16 << 20)	   /* of a perf map ... */
#define MAP_WHOLE_MAX	(32 << 10)	   /* ... that is kept whole */
#define MAP_NEAR	(16 << 10)	   /* of others: entries so near to a native frame */
#define VDSO_PATH	"/linux-vdso.so.1" /* it gets a file of its own: each machine has another */

struct span {
	uint64_t start, end;
};

struct mapping { /* any, also of data */
	uint64_t start, end, offset;
	char path[PATH_MAX]; /* as the target sees it; "" or "[heap]": no file */
};

struct wish { /* of what was read of an image during a run */
	const struct elf_file *file;
	uint64_t vaddr, size;
	char *symbol; /* or this one */
};

struct note {
	pid_t pid;
	char root[PATH_MAX]; /* of the target; "": ours */
	struct memory *memory;
	struct pipeline *pipeline;
	struct pack files, cases;
	char **names; /* of the files */
	size_t n_names, cap_names;
	struct extract **images;
	size_t n_images, cap_images;
	char *unwound;	   /* text of the last case's natives */
	char *merged;	   /* and of its merged stack */
	uint64_t *natives; /* and the addresses of these natives */
	size_t n_natives, cap_natives;
	/* of the case that is being noted */
	const struct unwound *by_oracle;
	struct span *reads;
	size_t n_reads, cap_reads;
	struct mapping *mappings;
	size_t n_mappings, cap_mappings;
	struct wish *wishes;
	size_t n_wishes, cap_wishes;
	int code;
};

static struct note *noting; /* whose run it is; NULL: none */

static void reserve(void *array, size_t *cap, size_t need, size_t size)
{
	if (array__reserve(array, cap, need, size))
		abort(); /* the recorder has no use for half a bundle */
}

/* --- what braid reads of images: the linker brings its calls here --- */

int __real_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);
int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);
int __real_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size);
int __wrap_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size);

static void wish(const struct wish *wish)
{
	if (!noting)
		return;
	reserve(&noting->wishes, &noting->cap_wishes, noting->n_wishes + 1,
		sizeof(*noting->wishes));
	noting->wishes[noting->n_wishes++] = *wish;
}

int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	wish(&(struct wish) { file, vaddr, len, NULL });
	return __real_elf_file__read(file, vaddr, buf, len);
}

int __wrap_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size)
{
	if (noting)
		wish(&(struct wish) { file, 0, 0, strdup(name) });
	return __real_elf_file__find_symbol(file, name, ret_vaddr, ret_size);
}

/* --- files --- */

static char *slurp(const char *path, size_t max, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(max + 1);
	size_t size = 0;
	ssize_t n = 1;

	while (text && n > 0 && size < max) {
		n = read(fd, text + size, max - size);
		size += n > 0 ? n : 0;
	}
	close_fd(&fd);
	if (text)
		text[size] = '\0';
	*ret_size = size;
	return text;
}

static int add_proc_file(struct note *note, const char *name)
{
	char path[64], *text, *field, *rest;
	size_t size;
	int code;

	snprintf(path, sizeof(path), "/proc/%d/%s", note->pid, name);
	text = slurp(path, FILE_BYTES_MAX, &size);
	if (!text)
		return -errno;
	if (!strcmp(name, "status") && (field = strstr(text, "\nUid:"))) {
		rest = strchr(field + 1, '\n'); /* whoever replays it has another */
		memmove(field, rest, strlen(rest) + 1);
		size = strlen(text);
	}
	if (!strcmp(name, "stat") && (field = strrchr(text, ')'))) {
		/* The time it began at, field 22, is of another boot. */
		for (int i = 2; i < 22 && field; i++)
			field = strchr(field + 1, ' ');
		rest = field ? strchr(field + 1, ' ') : NULL;
		if (rest) {
			memmove(field + 2, rest, strlen(rest) + 1);
			field[1] = '1';
		}
		size = strlen(text);
	}
	code = pack__add(&note->files, PACK_FILE, name, note->pid, 0, text, size);
	free(text);
	return code;
}

/* A source file that the target has at an absolute path, once. */
static int add_source(struct note *note, const char *path)
{
	char full[PATH_MAX + 64], name[PACK_NAME_BYTES];
	struct stat st;
	size_t size;
	char *text;
	int code;

	snprintf(full, sizeof(full), "/proc/%d/root%s", note->pid, path);
	if (path[0] != '/' || stat(full, &st) || !S_ISREG(st.st_mode) ||
	    st.st_size > FILE_BYTES_MAX)
		return 0;
	for (size_t i = 0; i < note->n_names; i++)
		if (!strcmp(note->names[i], path))
			return 0;
	reserve(&note->names, &note->cap_names, note->n_names + 1, sizeof(*note->names));
	note->names[note->n_names++] = strdup(path);
	snprintf(name, sizeof(name), "root%s", path);
	text = slurp(full, FILE_BYTES_MAX, &size);
	code = text ? pack__add(&note->files, PACK_FILE, name, note->pid, 0, text, size) : -errno;
	free(text);
	return code;
}

static bool is_near_native(const struct note *note, const char *line)
{
	uint64_t start, size;

	if (sscanf(line, "%" SCNx64 " %" SCNx64, &start, &size) != 2)
		return false;
	for (size_t i = 0; i < note->n_natives; i++)
		if (note->natives[i] + MAP_NEAR >= start &&
		    note->natives[i] < start + size + MAP_NEAR)
			return true;
	return false;
}

/* What the perf map says by now; of a large one the lines of code around the native frames. */
static int add_perf_map(struct note *note)
{
	char path[128], name[64], *text, *to;
	size_t size;
	int code;

	snprintf(name, sizeof(name), "root/tmp/perf-%d.map", note->pid);
	snprintf(path, sizeof(path), "/proc/%d/%s", note->pid, name);
	text = slurp(path, MAP_BYTES_MAX, &size);
	if (!text)
		return 0;
	to = text;
	for (char *line = text, *next; size > MAP_WHOLE_MAX && *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (!is_near_native(note, line))
			continue;
		memmove(to, line, next - line);
		to += next - line;
	}
	size = size > MAP_WHOLE_MAX ? (size_t)(to - text) : size;
	code = pack__add(&note->cases, PACK_FILE, name, note->pid, 0, text, size);
	free(text);
	return code;
}

/* --- mappings --- */

static void take_mapping(struct note *note, const char *line, FILE *out)
{
	struct mapping mapping = {};
	unsigned long inode = 1;
	char perms[8], dev[16];
	size_t skip = strlen(note->root);

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %15s %lu %4095[^\n]",
		   &mapping.start, &mapping.end, perms, &mapping.offset, dev, &inode,
		   mapping.path) < 6)
		return;
	if (skip && !strncmp(mapping.path, note->root, skip))
		memmove(mapping.path, mapping.path + skip, strlen(mapping.path + skip) + 1);
	if (!strcmp(mapping.path, "[vdso]")) {
		snprintf(mapping.path, sizeof(mapping.path), VDSO_PATH);
		inode = 1;
	}
	fprintf(out, "%" PRIx64 "-%" PRIx64 " %s %08" PRIx64 " %s %lu %s\n", mapping.start,
		mapping.end, perms, mapping.offset, dev, inode, mapping.path);
	reserve(&note->mappings, &note->cap_mappings, note->n_mappings + 1,
		sizeof(*note->mappings));
	note->mappings[note->n_mappings++] = mapping;
}

static int add_maps(struct note *note)
{
	char path[64], *line = NULL, *text = NULL;
	size_t cap = 0, size = 0;
	FILE *in, *out;
	int code;

	snprintf(path, sizeof(path), "/proc/%d/maps", note->pid);
	in = fopen(path, "re");
	if (!in)
		return -errno;
	out = open_memstream(&text, &size);
	note->n_mappings = 0;
	while (getline(&line, &cap, in) > 0)
		take_mapping(note, line, out);
	fclose(out);
	fclose(in);
	code = pack__add(&note->cases, PACK_FILE, "maps", note->pid, 0, text, size);
	free(text);
	free(line);
	return code;
}

static const struct mapping *find_mapping(const struct note *note, uint64_t address)
{
	for (size_t i = 0; i < note->n_mappings; i++)
		if (address >= note->mappings[i].start && address < note->mappings[i].end)
			return &note->mappings[i];
	return NULL;
}

/* --- images --- */

static const char *path_of(const struct note *note, const struct elf_file *file)
{
	size_t skip = strlen(note->root);

	if (!strcmp(file->path, "[vdso]"))
		return VDSO_PATH;
	return skip && !strncmp(file->path, note->root, skip) ? file->path + skip : file->path;
}

static struct extract *find_extract(const struct note *note, const char *path)
{
	for (size_t i = 0; i < note->n_images; i++)
		if (!strcmp(extract__path(note->images[i]), path))
			return note->images[i];
	return NULL;
}

static struct extract *extract_of(struct note *note, const struct elf_file *file)
{
	struct extract *extract = find_extract(note, path_of(note, file));
	const void *bytes;
	int fd = file->fd;
	size_t size;

	if (extract)
		return extract;
	if (fd < 0) { /* the vDSO */
		bytes = elf_rawfile(file->elf, &size);
		fd = memfd_create("vdso", MFD_CLOEXEC);
		if (write(fd, bytes, size) != (ssize_t)size)
			abort();
	}
	note->code = extract__new(fd, path_of(note, file), &extract);
	if (fd != file->fd)
		close(fd);
	if (note->code)
		return NULL;
	reserve(&note->images, &note->cap_images, note->n_images + 1, sizeof(*note->images));
	note->images[note->n_images++] = extract;
	return extract;
}

static void want_loops(struct extract *extract, const struct image *image)
{
	const struct runtime_range *ranges;
	enum runtime_loops how;

	for (int i = 0; runtimes[i]; i++) {
		size_t n = runtimes[i]->loops && image->runtimes[i].image
				   ? runtimes[i]->loops(image->runtimes[i].image, &ranges, &how)
				   : 0;

		for (size_t k = 0; k < n; k++)
			extract__want_code(extract, ranges[k].start, ranges[k].end);
	}
}

/* The code at an address of the process, as an address of its image; "" where it has none. */
static void locate(struct note *note, const struct process *process, uint64_t address,
		   const char **ret_image, uint64_t *ret_vaddr)
{
	const struct mapped *mapped = process__find(process, address);
	const char *path;

	*ret_image = "?";
	*ret_vaddr = address;
	if (!mapped || !mapped->image)
		return;
	path = path_of(note, mapped->image->file);
	*ret_image = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	*ret_vaddr = address - mapped->bias;
}

static void note_unwound(struct note *note, const struct process *process)
{
	const struct unwound *unwound = note->by_oracle;
	size_t size;
	FILE *out;

	free(note->unwound);
	out = open_memstream(&note->unwound, &size);
	for (size_t i = 0; i < unwound->n; i++) {
		const char *image;
		uint64_t vaddr;

		locate(note, process, unwound->ips[i] - (i > 0), &image, &vaddr);
		if (!strcmp(image, "?"))
			break; /* what libdwfl makes of code that it does not know is a guess */
		fprintf(out, "%s+%#" PRIx64 "\n", image, vaddr + (i > 0));
	}
	fclose(out);
}

static void note_merged(struct note *note, const struct pipeline_stack *stack)
{
	size_t size;
	FILE *out;

	free(note->merged);
	out = open_memstream(&note->merged, &size);
	expect__print_merged(stack, out);
	fclose(out);
}

static void inspect(void *ctx, struct process *process, const struct pipeline_stack *stack)
{
	struct note *note = ctx;

	noting = NULL; /* from here on nothing is read for the run's sake */
	for (size_t i = 0; i < process->n_mapped; i++) {
		const struct image *image = process->mapped[i].image;
		struct extract *extract = image ? extract_of(note, image->file) : NULL;

		if (!extract)
			continue;
		want_loops(extract, image);
		for (size_t k = 0; k < note->n_wishes; k++) {
			const struct wish *wish = &note->wishes[k];

			if (wish->file != image->file)
				continue;
			if (wish->symbol)
				extract__want_symbol(extract, wish->symbol);
			else
				extract__want_bytes(extract, wish->vaddr, wish->size);
		}
	}
	reserve(&note->natives, &note->cap_natives, stack->n_natives + 1, sizeof(*note->natives));
	note->n_natives = stack->n_natives;
	for (size_t i = 0; i < stack->n_natives; i++) {
		const struct mapped *mapped = process__find(process, stack->natives[i].address);
		uint64_t vaddr = mapped ? stack->natives[i].address - mapped->bias : 0;

		note->natives[i] = stack->natives[i].address;
		if (mapped && mapped->image && extract_of(note, mapped->image->file))
			extract__want_code(extract_of(note, mapped->image->file), vaddr, vaddr + 1);
	}
	note_unwound(note, process);
	note_merged(note, stack);
	for (size_t i = 0; i < stack->n_frames; i++)
		if (stack->frames[i].kind >= KIND_RUNTIME && !note->code)
			note->code = add_source(note, stack->frames[i].file);
}

/* --- memory --- */

static void on_read(void *ctx, uint64_t address, size_t size, int ret)
{
	struct note *note = ctx;

	if (ret || !size)
		return;
	reserve(&note->reads, &note->cap_reads, note->n_reads + 1, sizeof(*note->reads));
	note->reads[note->n_reads++] =
		(struct span) { (address & ~(uint64_t)(GRANULE - 1)) - GRANULE,
				(address + size + 2 * GRANULE - 1) & ~(uint64_t)(GRANULE - 1) };
}

static void add_stack(struct note *note, uint64_t sp)
{
	const struct mapping *mapping = find_mapping(note, sp);
	uint64_t start = (sp - STACK_BELOW) & ~(uint64_t)(GRANULE - 1);

	if (!mapping)
		return;
	reserve(&note->reads, &note->cap_reads, note->n_reads + 1, sizeof(*note->reads));
	note->reads[note->n_reads++] =
		(struct span) { start, min_of(mapping->end, sp + STACK_BYTES_MAX) };
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* A span that lies in one mapping. What cannot be read is left out. */
static int add_part(struct note *note, const struct mapping *mapping, uint64_t start, uint64_t end)
{
	struct extract *extract = find_extract(note, mapping->path);
	size_t size = end - start;
	char *bytes = malloc(size);
	int code = 0;

	if (!bytes)
		return -ENOMEM;
	if (!memory__read(note->memory, start, bytes, size)) {
		if (extract &&
		    extract__has(extract, mapping->offset + (start - mapping->start), bytes, size))
			code = pack__add(&note->cases, PACK_SAME, "", start, size, NULL, 0);
		else
			code = pack__add(&note->cases, PACK_BYTES, "", start, 0, bytes, size);
	} else if (size > GRANULE) { /* a guard page is in it */
		uint64_t middle = start + (size / 2 / GRANULE) * GRANULE;

		middle = middle == start ? start + GRANULE : middle;
		code = add_part(note, mapping, start, middle);
		if (!code && middle < end)
			code = add_part(note, mapping, middle, end);
	}
	free(bytes);
	return code;
}

static int add_memory(struct note *note)
{
	struct span *reads = note->reads;
	size_t n = 0;
	int code = 0;

	if (note->n_reads)
		qsort(reads, note->n_reads, sizeof(*reads), by_start);
	for (size_t i = 0; i < note->n_reads; i++) {
		if (n && reads[i].start <= reads[n - 1].end)
			reads[n - 1].end = max_of(reads[n - 1].end, reads[i].end);
		else
			reads[n++] = reads[i];
	}
	memory__observe(note->memory, NULL, NULL);
	for (size_t i = 0; !code && i < n; i++) {
		for (size_t m = 0; !code && m < note->n_mappings; m++) {
			const struct mapping *mapping = &note->mappings[m];
			uint64_t start = max_of(reads[i].start, mapping->start);
			uint64_t end = min_of(reads[i].end, mapping->end);

			if (start < end)
				code = add_part(note, mapping, start, end);
		}
	}
	return code;
}

/* --- */

int note__new(pid_t pid, struct note **ret)
{
	static const char *const files[] = { "status", "stat", "cmdline", "comm" };
	struct note *note = calloc(1, sizeof(*note));
	char path[64];
	ssize_t n;
	int code = note ? memory__of_process(pid, &note->memory) : -ENOMEM;

	if (!code)
		code = pipeline__new(&note->pipeline);
	if (code)
		return code;
	note->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	n = readlink(path, note->root, sizeof(note->root) - 1);
	note->root[n > 1 ? n : 0] = '\0';
	for (size_t i = 0; !code && i < ARRAY_SIZE(files); i++)
		code = add_proc_file(note, files[i]);
	*ret = note;
	return code;
}

void note__free(struct note *note)
{
	if (!note)
		return;
	for (size_t i = 0; i < note->n_images; i++)
		extract__free(note->images[i]);
	for (size_t i = 0; i < note->n_names; i++)
		free(note->names[i]);
	pack__done(&note->files);
	pack__done(&note->cases);
	memory__free(note->memory);
	pipeline__free(note->pipeline);
	free(note->names);
	free(note->images);
	free(note->unwound);
	free(note->merged);
	free(note->natives);
	free(note->reads);
	free(note->mappings);
	free(note->wishes);
	free(note);
}

static int add_case(struct note *note, const char *name, const struct host_thread *thread)
{
	uint64_t regs[UNWIND_REGS + 1];
	int code;

	memcpy(regs, thread->regs, sizeof(thread->regs));
	regs[UNWIND_REGS] = thread->fs_base;
	code = pack__add(&note->cases, PACK_CASE, name, thread->tid, 0, regs, sizeof(regs));
	return code ? code : add_maps(note);
}

int note__case(struct note *note, const char *name, const struct host_thread *thread,
	       const struct unwound *unwound, struct err *err)
{
	struct procfs_source source = { "/proc", note->memory };
	struct pipeline_input input = { .thread = *thread,
					.memory = note->memory,
					.work = "/tmp",
					.inspect = inspect,
					.ctx = note };
	char work[] = "/tmp/braid-record-XXXXXX";
	struct pipeline_stack stack;
	int code = add_case(note, name, thread);

	if (code || !mkdtemp(work))
		return err__set(err, code ? code : -errno, "%s", strerror(code ? -code : errno));
	input.work = work;
	note->by_oracle = unwound;
	note->n_reads = note->n_wishes = 0;
	noting = note;
	memory__observe(note->memory, on_read, note);
	procfs__use(&source);
	code = pipeline__run(note->pipeline, &input, &stack, err);
	procfs__use(NULL);
	noting = NULL;
	rmdir(work);
	pipeline__done(&stack);
	add_stack(note, thread->regs[UNWIND_REG_RSP]);
	if (!code && (note->code || add_memory(note) || add_perf_map(note)))
		code = err__set(err, -EIO, "cannot note what was read");
	for (size_t i = 0; i < note->n_wishes; i++)
		free(note->wishes[i].symbol);
	return code;
}

void note__print_unwound(const struct note *note, const struct unwound *unwound, FILE *out)
{
	size_t lines = 0;

	for (const char *at = note->unwound; *at; at++)
		lines += *at == '\n';
	fprintf(out, "-- unwound%s\n%s", lines < unwound->n || !unwound->complete ? " part" : "",
		note->unwound);
}

void note__print_merged(const struct note *note, FILE *out)
{
	fputs(note->merged, out);
}

int note__write(struct note *note, const char *path, const char *images, struct err *err)
{
	struct pack pack = {};
	struct pack_entry entry;
	size_t at = 0;
	int code = 0;

	while (!code && pack__next(&note->files, &at, &entry) > 0)
		code = pack__add(&pack, entry.tag, entry.name, entry.a, entry.b, entry.bytes,
				 entry.size);
	for (size_t i = 0; !code && i < note->n_images; i++) {
		const char *name = extract__name(note->images[i]);

		code = pack__add(&pack, PACK_IMAGE, extract__path(note->images[i]), 0, 0, name,
				 strlen(name));
		if (!code)
			code = extract__write(note->images[i], images, err);
	}
	for (at = 0; !code && pack__next(&note->cases, &at, &entry) > 0;)
		code = pack__add(&pack, entry.tag, entry.name, entry.a, entry.b, entry.bytes,
				 entry.size);
	if (!code)
		code = pack__write(&pack, path, err);
	else
		err__set(err, code, "%s: %s", path, strerror(-code));
	pack__done(&pack);
	return code;
}
