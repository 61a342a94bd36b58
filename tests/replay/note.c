// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/note.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/elf_file.h"
#include "core/profile/profile.h"
#include "core/target/procfs.h"
#include "runtimes/registry.h"
#include "tests/replay/expect.h"
#include "tests/replay/extract.h"
#include "tests/replay/pipeline.h"
#include "tests/replay/spans.h"
#include "tests/replay/target_files.h"
#include "tests/replay/target_maps.h"

#define GRANULE		256 /* bytes of memory; whole granules are stored, with one on either side */
#define STACK_BYTES_MAX (1 << 20)
#define STACK_BELOW	256 /* the red zone, and a margin */

struct wish { /* a read of an image during a run */
	char *path;
	uint64_t vaddr, size;
	char *symbol; /* name of a symbol that was looked up instead; NULL: bytes */
};

struct note {
	pid_t pid;
	char root[PATH_MAX]; /* root directory of the target; "": ours */
	struct memory *memory;
	struct pipeline *pipeline;
	struct pack files, cases;
	char **names; /* names of the files */
	size_t n_names, cap_names;
	struct extract **images;
	size_t n_images, cap_images;
	char *unwound;	   /* text of the natives of the last case */
	char *merged;	   /* text of its merged stack */
	uint64_t *natives; /* addresses of these natives */
	size_t n_natives, cap_natives;
	/* data of the present case */
	const struct unwound *by_oracle;
	struct spans reads;
	struct target_maps maps;
	struct wish *wishes;
	size_t n_wishes, cap_wishes;
	int code;
};

static struct note *noting; /* note whose run is in progress; NULL: none */

static void reserve(void *array, size_t *cap, size_t need, size_t size)
{
	if (array__reserve(array, cap, need, size))
		abort(); /* half a bundle is useless */
}

/* --- reads of images: the linker redirects braid's calls to here --- */

int __real_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);
int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);
int __real_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size);
int __wrap_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size);

static void wish(const struct wish *wish)
{
	reserve(&noting->wishes, &noting->cap_wishes, noting->n_wishes + 1,
		sizeof(*noting->wishes));
	noting->wishes[noting->n_wishes++] = *wish;
}

int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	if (noting)
		wish(&(struct wish) { strdup(file->path), vaddr, len, NULL });
	return __real_elf_file__read(file, vaddr, buf, len);
}

int __wrap_elf_file__find_symbol(const struct elf_file *file, const char *name, uint64_t *ret_vaddr,
				 uint64_t *ret_size)
{
	if (noting)
		wish(&(struct wish) { strdup(file->path), 0, 0, strdup(name) });
	return __real_elf_file__find_symbol(file, name, ret_vaddr, ret_size);
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

	for (int i = 0; runtimes[i]; i++) {
		size_t n = runtime__has(runtimes[i], files, loops) && image->runtimes[i].image
				   ? runtimes[i]->files->loops(image->runtimes[i].image, &ranges)
				   : 0;

		for (size_t k = 0; k < n; k++)
			extract__want_code(extract, ranges[k].start, ranges[k].end);
	}
}

/* Returns the code at an address of the process as an address of its image. The image is "?" if
 * there is none. */
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
			break; /* libdwfl only guesses the callers of code without a file */
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

/* Adds a source file once. */
static int add_source(struct note *note, const char *path)
{
	for (size_t i = 0; i < note->n_names; i++)
		if (!strcmp(note->names[i], path))
			return 0;
	reserve(&note->names, &note->cap_names, note->n_names + 1, sizeof(*note->names));
	note->names[note->n_names++] = strdup(path);
	return target_files__add_source(&note->files, note->pid, path);
}

static void inspect(void *ctx, struct process *process, const struct pipeline_stack *stack)
{
	struct note *note = ctx;

	noting = NULL; /* later reads do not belong to the run */
	for (size_t i = 0; i < process->n_mapped; i++) {
		const struct image *image = process->mapped[i].image;
		struct extract *extract = image ? extract_of(note, image->file) : NULL;

		if (!extract)
			continue;
		want_loops(extract, image);
		for (size_t k = 0; k < note->n_wishes; k++) {
			const struct wish *wish = &note->wishes[k];

			if (strcmp(wish->path, image->file->path) != 0)
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

static void want_memory(struct note *note, uint64_t start, uint64_t end)
{
	if (spans__add(&note->reads, start, end))
		abort();
}

static void on_read(void *ctx, uint64_t address, size_t size, int ret)
{
	struct note *note = ctx;

	if (ret || !size)
		return;
	want_memory(note, (address & ~(uint64_t)(GRANULE - 1)) - GRANULE,
		    (address + size + 2 * GRANULE - 1) & ~(uint64_t)(GRANULE - 1));
}

static void add_stack(struct note *note, uint64_t sp)
{
	const struct target_mapping *mapping = target_maps__find(&note->maps, sp);
	uint64_t start = (sp - STACK_BELOW) & ~(uint64_t)(GRANULE - 1);

	if (!mapping)
		return;
	want_memory(note, start, min_of(mapping->end, sp + STACK_BYTES_MAX));
}

/* Adds a span that lies in one mapping, without its unreadable parts. */
static int add_part(struct note *note, const struct target_mapping *mapping, uint64_t start,
		    uint64_t end)
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
	} else if (size > GRANULE) { /* the span contains a guard page */
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
	const struct spans *reads = &note->reads;
	int code = 0;

	spans__join(&note->reads);
	memory__observe(note->memory, NULL, NULL);
	for (size_t i = 0; !code && i < reads->n; i++) {
		for (size_t m = 0; !code && m < note->maps.n; m++) {
			const struct target_mapping *mapping = &note->maps.list[m];
			uint64_t start = max_of(reads->list[i].start, mapping->start);
			uint64_t end = min_of(reads->list[i].end, mapping->end);

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
		code = target_files__add_proc(&note->files, pid, files[i]);
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
	spans__done(&note->reads);
	target_maps__done(&note->maps);
	free(note->wishes);
	free(note);
}

static int add_case(struct note *note, const char *name, const struct host_thread *thread)
{
	uint64_t regs[UNWIND_REGS + 1];
	char *maps = NULL;
	int code;

	memcpy(regs, thread->regs, sizeof(thread->regs));
	regs[UNWIND_REGS] = thread->fs_base;
	code = pack__add(&note->cases, PACK_CASE, name, thread->tid, EM_X86_64, regs, sizeof(regs));
	if (!code)
		code = target_maps__read(&note->maps, note->pid, note->root, &maps);
	if (!code)
		code = pack__add(&note->cases, PACK_FILE, "maps", note->pid, 0, maps, strlen(maps));
	free(maps);
	return code;
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
	note->reads.n = note->n_wishes = 0;
	noting = note;
	memory__observe(note->memory, on_read, note);
	procfs__use(&source);
	code = pipeline__run(note->pipeline, &input, &stack, err);
	procfs__use(NULL);
	noting = NULL;
	rmdir(work);
	pipeline__done(&stack);
	add_stack(note, thread->regs[UNWIND_REG_RSP]);
	if (!code &&
	    (note->code || add_memory(note) ||
	     target_files__add_perf_map(&note->cases, note->pid, note->natives, note->n_natives)))
		code = err__set(err, -EIO, "cannot note what was read");
	for (size_t i = 0; i < note->n_wishes; i++) {
		free(note->wishes[i].symbol);
		free(note->wishes[i].path);
	}
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
