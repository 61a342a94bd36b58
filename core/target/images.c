// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/images_state.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/target/image_files.h"
#include "core/target/target_view.h"
#include "core/target/thread_context.h"

int images__new(const struct images_opts *opts, struct images **ret)
{
	struct images *images = calloc(1, sizeof(*images));

	if (!images)
		return -ENOMEM;
	images->opts = *opts;
	images->unread = unread_files__new();
	if (!images->unread) {
		free(images);
		return -ENOMEM;
	}
	*ret = images;
	return 0;
}

void image__free(const struct images *images, struct image *image)
{
	int i;

	for (i = 0; images->opts.runtimes[i]; i++)
		if (image->runtimes[i].image)
			images->opts.runtimes[i]->files->free(image->runtimes[i].image);
	symbols__free(image->symbols);
	function_names__free(image->names);
	insn_reader__free(image->reader);
	unwind_table__done(&image->table);
	elf_file__free(image->file);
	free(image);
}

void images__free(struct images *images)
{
	struct by_build_id *id, *next_id;
	struct by_file *file, *next_file;
	struct by_memory *memory;
	struct image *image;

	if (!images)
		return;
	HASH_ITER (hh, images->by_file, file, next_file) {
		HASH_DEL(images->by_file, file);
		free(file);
	}
	HASH_ITER (hh, images->by_build_id, id, next_id) {
		HASH_DEL(images->by_build_id, id);
		free(id);
	}
	while ((memory = images->by_memory)) {
		images->by_memory = memory->next;
		free(memory);
	}
	images__drop_files(images, NULL);
	while ((image = images->first)) {
		images->first = image->next;
		image__store_read(images, image);
		image__free(images, image);
	}
	free(images->slots);
	unread_files__free(images->unread);
	free(images);
}

/* Returns the hook that unwinds the image's code where it has no call frame information, or NULL.
 * Includes runtimes that are not enabled: native stacks do not depend on them. */
static unwind_rows_fn rows_of(const struct images *images, const struct image *image)
{
	for (int i = 0; images->opts.runtimes[i]; i++)
		if (runtime__has(images->opts.runtimes[i], files, unwind_rows) &&
		    images->opts.runtimes[i]->files->detect(image->file) > 0)
			return images->opts.runtimes[i]->files->unwind_rows;
	return NULL;
}

/* Returns the range of code that has frame pointers according to the file's runtime. An empty
 * range: none. */
static struct insn_range pointer_code_of(const struct images *images, const struct image *image)
{
	struct insn_range range = {};

	for (int i = 0; images->opts.runtimes[i] && !range.end; i++) {
		const struct runtime *runtime = images->opts.runtimes[i];

		if (runtime__has(runtime, files, pointer_code) &&
		    runtime->files->detect(image->file) > 0)
			runtime->files->pointer_code(image->file, &range.start, &range.end);
	}
	return range;
}

static int make_table(const struct images *images, struct image *image, struct err *err)
{
	struct quota_account *previous = quota__enter(image->file->account);
	unwind_rows_fn rows = rows_of(images, image);
	struct insn_range pointers = pointer_code_of(images, image);
	int ret = rows ? unwind_table__build_with(image->file, rows, &image->table, err)
		       : unwind_table__get(image->file, images->opts.cache_dir, &pointers,
					   &image->table, err);

	quota__leave(previous);
	return ret;
}

int image__load_table(struct images *images, struct image *image, struct err *err)
{
	int ret;

	if (!images->opts.table_arena)
		return 0;
	ret = make_table(images, image, err);
	/* An interrupted build may be incomplete. The table is built again when it is used. */
	if (stop__is_due()) {
		unwind_table__done(&image->table);
		return -EINTR;
	}
	if (ret || !image->table.n_pages)
		return ret == -ENOMEM ? ret : 0; /* malformed: frame pointers remain */
	ret = table_arena__add(images->opts.table_arena, &image->table, now_ns(), &image->base);
	image->has_table = !ret;
	if (ret) {
		images->stats.tableless++;
		if (!images->stats.first_tableless)
			images->stats.first_tableless = image->file->path;
	}
	free(image->table.words);
	image->table.words = NULL;
	return 0;
}

static int ask_runtimes(struct images *images, struct image *image)
{
	const struct runtime *runtime;
	int i, ret;

	for (i = 0; (runtime = images->opts.runtimes[i]) && i < RUNTIMES_MAX; i++) {
		struct image_runtime *found = &image->runtimes[i];

		if (!(images->opts.enabled & 1U << i) || !runtime->files)
			continue;
		ret = runtime->files->detect(image->file);
		if (ret <= 0)
			continue;
		found->detected = true;
		ret = runtime->files->prepare(image->file, &found->image, &found->verdict);
		if (ret)
			return ret;
	}
	return 0;
}

int images__ask_runtimes(struct images *images, struct image *image)
{
	struct quota_account *previous;
	int ret;

	if (image->queried)
		return 0;
	image->queried = true;
	previous = quota__enter(image->file->account);
	ret = ask_runtimes(images, image);
	image->has_context =
		!thread_variable__find(image->file, THREAD_CONTEXT_VARIABLE, &image->context);
	quota__leave(previous);
	return ret == -ENOMEM ? ret : 0;
}

/* --- files of images --- */

void images__drop_files(struct images *images, const struct image *image)
{
	struct image_file **at = &images->files, *file;

	while ((file = *at)) {
		if (image && file->image != image) {
			at = &file->next;
			continue;
		}
		*at = file->next;
		if (!file->is_first)
			elf_file__free(file->file);
		free(file);
	}
}

/* Returns true if @st is a file of the image. One inode may have many paths and, on overlayfs, one
 * device per mount. */
static bool has_file(const struct images *images, const struct image *image, const struct stat *st)
{
	const struct image_file *file;

	for (file = images->files; file; file = file->next)
		if (file->image == image && file->ino == st->st_ino &&
		    file->ctime_ns ==
			    (int64_t)(st->st_ctim.tv_sec * NSEC_PER_SEC) + st->st_ctim.tv_nsec)
			return true;
	return false;
}

/* Adds a file of the image. Takes ownership of @file unless it is the image's own. Returns 0 or
 * -ENOMEM. */
static int add_file(struct images *images, const struct image *image, struct elf_file *file)
{
	struct image_file *to;
	struct stat st = {};

	if (file->fd < 0 || fstat(file->fd, &st) || has_file(images, image, &st)) {
		if (file != image->file)
			elf_file__free(file);
		return 0;
	}
	to = calloc(1, sizeof(*to));
	if (!to) {
		if (file != image->file)
			elf_file__free(file);
		return -ENOMEM;
	}
	*to = (struct image_file) {
		.image = image,
		.file = file,
		.is_first = file == image->file,
		.ino = st.st_ino,
		.ctime_ns = (int64_t)(st.st_ctim.tv_sec * NSEC_PER_SEC) + st.st_ctim.tv_nsec,
		.number = ++images->n_files,
		.next = images->files,
	};
	images->files = to;
	return 0;
}

int images__each_new_file(const struct images *images, uint64_t *seen, image_file_fn on_file,
			  void *ctx)
{
	const struct image_file *file = images->files;
	int ret = 0;

	for (; !ret && file && file->number > *seen; file = file->next)
		ret = on_file(ctx, file->image, file->file);
	*seen = images->n_files;
	return ret;
}

uint64_t images__last_file(const struct images *images)
{
	return images->n_files;
}

int images__add(struct images *images, struct elf_file *file, const char *root, struct image **ret,
		struct err *err)
{
	struct image *image = calloc(1, sizeof(*image));
	uint32_t number;
	int rc;

	if (!image) {
		elf_file__free(file);
		return -ENOMEM;
	}
	image->file = file;
	rc = symbols__new(file, root, &image->symbols);
	if (!rc && procfs__is_recorded())
		symbols__stay_below_root(image->symbols);
	if (!rc)
		rc = image__load_table(images, image, err);
	elf_file__drop(file); /* call frame information is large, and seldom read again */
	number = images__free_number(images, now_ns());
	if (!rc)
		rc = array__reserve(&images->slots, &images->cap_slots, number,
				    sizeof(*images->slots));
	if (rc) {
		image__free(images, image);
		return rc;
	}
	image->next = images->first;
	images->first = image;
	images->stats.known++;
	images->slots[number - 1] = (struct image_slot) { .image = image };
	images->n_slots = max_of(images->n_slots, (size_t)number);
	image->number = number;
	*ret = image;
	return 0;
}

static void publish(const struct images *images, const struct image_key *key,
		    const struct image *image)
{
	if (images->opts.files_fd >= 0 && image)
		image_files__publish(images->opts.files_fd, key, image);
}

/* Finds the vDSO. All 64-bit processes share the kernel's one vDSO, so braid's own represents all.
 */
static int get_vdso(struct images *images, struct image **ret, struct err *err)
{
	const void *start = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct procfs_mappings mappings = {};
	struct elf_file *file;
	int rc = 0;
	size_t i;

	if (!images->vdso && start && !procfs__mappings(getpid(), &mappings)) {
		for (i = 0; i < mappings.n; i++)
			if (mappings.list[i].start == (uintptr_t)start)
				break;
		rc = i < mappings.n
			     ? elf_file__open_memory(start,
						     mappings.list[i].end - mappings.list[i].start,
						     "[vdso]", &file, err)
			     : -ENOENT;
		if (!rc)
			rc = images__add(images, file, "", &images->vdso, err);
		if (!rc)
			publish(images,
				&(struct image_key) { .size = mappings.list[i].end -
							      mappings.list[i].start },
				images->vdso);
		procfs_mappings__done(&mappings);
	}
	*ret = images->vdso;
	return rc;
}

/* Returns true if both files have equal bytes. The build-id proves nothing, as anyone can copy it
 * into another program, and the image is shared. */
static bool same_bytes(const struct elf_file *a, const struct elf_file *b, off_t size)
{
	char *blocks = malloc(2 * QUOTA_BLOCK);
	bool same = blocks != NULL;

	for (off_t at = 0; at < size && same; at += QUOTA_BLOCK) {
		size_t n = min_of(size - at, (off_t)QUOTA_BLOCK);

		same = !elf_file__read_at(a, at, blocks, n) &&
		       !elf_file__read_at(b, at, blocks + QUOTA_BLOCK, n) &&
		       !memcmp(blocks, blocks + QUOTA_BLOCK, n);
	}
	free(blocks);
	return same;
}

/* Returns the image of another copy of the file, or NULL. That copy must be unchanged since it was
 * read. Its owner must be the same, as an owner could conceal changes. */
static struct image *find_copy(const struct images *images, const struct elf_file *file,
			       const struct stat *st)
{
	struct by_build_id *found = NULL;
	const struct stat *then;
	struct stat now;

	if (file->build_id_len)
		HASH_FIND(hh, images->by_build_id, file->build_id, file->build_id_len, found);
	if (!found || fstat(found->image->file->fd, &now))
		return NULL;
	then = &found->opened;
	if (now.st_ctim.tv_sec != then->st_ctim.tv_sec ||
	    now.st_ctim.tv_nsec != then->st_ctim.tv_nsec || now.st_uid != st->st_uid ||
	    now.st_size != st->st_size)
		return NULL;
	return same_bytes(found->image->file, file, st->st_size) ? found->image : NULL;
}

static int index_build_id(struct images *images, struct image *image, const struct stat *opened)
{
	struct by_build_id *entry;

	if (!image->file->build_id_len)
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	memcpy(entry->id, image->file->build_id, image->file->build_id_len);
	entry->opened = *opened;
	entry->image = image;
	HASH_ADD_KEYPTR(hh, images->by_build_id, entry->id, image->file->build_id_len, entry);
	return 0;
}

/* Opens the image of a file. Takes ownership of @fd. */
static int open_image(struct images *images, int fd, uint32_t pid, const char *path,
		      struct image **ret, struct err *err)
{
	struct elf_file *file;
	char root[PATH_MAX];
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	rc = elf_file__open(fd, path, &file, err);
	if (rc)
		return rc;
	*ret = find_copy(images, file, &st);
	if (*ret) {
		elf_file__drop(file);
		return add_file(images, *ret, file);
	}
	target_view__current()->root(target_view__current(), pid, root, sizeof(root));
	rc = images__add(images, file, root, ret, err);
	rc = rc ? rc : add_file(images, *ret, (*ret)->file);
	return rc ? rc : index_build_id(images, *ret, &st);
}

/* Returns true for a lack of descriptors, which may end later. */
static bool is_want(int ret)
{
	return ret == -EMFILE || ret == -ENFILE;
}

static bool is_passing(int ret)
{
	return is_want(ret) || ret == -EINTR;
}

/* Opens a file that is not in by_file. */
static int open_found(struct images *images, const struct target_file *found, uint32_t pid,
		      const struct procfs_mapping *mapping, struct by_file *entry, struct err *err)
{
	int fd = target_file__open(found);

	if (fd < 0)
		return err__set(err, fd, "cannot open %s of PID %u: %s", mapping->path, pid,
				strerror(-fd));
	entry->error = open_image(images, fd, pid, mapping->path, &entry->image, err);
	return 0;
}

/* Counts the file as unreadable. A memfd without a file to open has code that the process
 * generated, as anonymous memory has. */
static void note_unread(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
			int code)
{
	if (code == -ENOENT && !strncmp(mapping->path, "/memfd:", strlen("/memfd:")))
		return;
	unread_files__add(images->unread, pid, mapping, code);
	images->stats.unread += is_want(code);
}

/* As get(), for the file that was found for the mapping. */
static int get_found(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		     const struct target_file *found, bool has_code, struct image **ret,
		     struct err *err)
{
	struct file_key key = { found->mount, found->dev,      found->ino,
				found->size,  found->mtime_ns, found->ctime_ns };
	struct by_file *entry;
	int rc;

	HASH_FIND(hh, images->by_file, &key, sizeof(key), entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		rc = entry ? open_found(images, found, pid, mapping, entry, err) : -ENOMEM;
		if (!rc && is_passing(entry->error))
			rc = entry->error;
		if (rc) { /* the file may be readable later */
			if (has_code)
				note_unread(images, pid, mapping, rc);
			free(entry);
			return rc;
		}
		entry->key = key;
		entry->kernel_key = image_key__of(mapping, found->size, found->ctime_ns);
		publish(images, &entry->kernel_key, entry->image);
		HASH_ADD(hh, images->by_file, key, sizeof(key), entry);
		unread_files__remove(images->unread, mapping); /* counted by an earlier attempt */
	}
	*ret = entry->image;
	rc = entry->error;
	if (*ret && (*ret)->is_parked && !image__unpark(images, *ret))
		publish(images, &entry->kernel_key, *ret);
	if (*ret)
		image__use(*ret, now_ns());
	return rc;
}

/* Finds the image of a mapping with a file. @has_code: a file that cannot be opened counts as
 * unread. */
static int get(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
	       bool has_code, struct image **ret, struct err *err)
{
	struct target_file found;
	int rc = procfs__find_mapping(pid, mapping, &found);

	if (rc) {
		if (has_code)
			note_unread(images, pid, mapping, rc);
		return err__set(err, rc, "cannot open %s of PID %u: %s", mapping->path, pid,
				strerror(-rc));
	}
	rc = get_found(images, pid, mapping, &found, has_code, ret, err);
	target_file__done(&found);
	return rc;
}

int images__read_ahead(struct images *images, uint32_t pid, const char *path, struct image **ret)
{
	struct procfs_mapping mapping = { .path = (char *)path };
	struct target_file found;
	int root = procfs__open_root(pid);
	int rc = root < 0 ? root : target_file__find(root, path, true, &found);

	*ret = NULL;
	close_fd(&root);
	if (rc)
		return rc;
	mapping.inode = found.ino;
	mapping.dev_major = major(found.dev);
	mapping.dev_minor = minor(found.dev);
	rc = get_found(images, pid, &mapping, &found, false, ret, NULL);
	target_file__done(&found);
	return rc || *ret ? rc : -ENOENT;
}

int images__get(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		struct image **ret, struct err *err)
{
	*ret = NULL;
	if (mapping->vdso)
		return get_vdso(images, ret, err);
	return mapping->anonymous ? 0 : get(images, pid, mapping, true, ret, err);
}

int images__look(struct images *images, uint32_t pid, const struct procfs_mapping *mapping,
		 struct image **ret)
{
	*ret = NULL;
	return mapping->anonymous ? 0 : get(images, pid, mapping, false, ret, NULL);
}

bool image__has_runtime(const struct image *image)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(image->runtimes); i++)
		if (image->runtimes[i].detected)
			return true;
	return !image->queried;
}

struct image *images__by_number(const struct images *images, uint32_t number)
{
	return number && number <= images->n_slots ? images->slots[number - 1].image : NULL;
}

void images__learn(struct images *images, const struct image_key *key, const struct image *image)
{
	struct by_file *file;

	for (file = images->by_file; file; file = file->hh.next)
		if (file->image == image && image_key__is_same_file(&file->kernel_key, key)) {
			file->learned = *key;
			publish(images, key, image);
			return;
		}
}

bool image__vaddr_less_offset(const struct image *image, __u64 *ret_distance)
{
	const struct elf_segment *segment;
	bool found = false;
	size_t i;

	for (i = 0; i < image->file->n_segments; i++) {
		segment = &image->file->segments[i];
		if (!segment->exec)
			continue;
		if (found && *ret_distance != segment->vaddr - segment->offset)
			return false;
		*ret_distance = segment->vaddr - segment->offset;
		found = true;
	}
	return found;
}

uint64_t image__bias(const struct image *image, const struct procfs_mapping *mapping)
{
	const struct elf_segment *segment;
	size_t i;

	for (i = 0; i < image->file->n_segments; i++) {
		segment = &image->file->segments[i];
		/* The kernel maps whole pages around a segment. */
		if (segment->exec && (segment->offset & ~4095ULL) <= mapping->offset &&
		    mapping->offset < segment->offset + segment->filesz)
			return mapping->start -
			       (segment->vaddr + (mapping->offset - segment->offset));
	}
	return mapping->start - mapping->offset;
}

const struct unread_files *images__unread(const struct images *images)
{
	return images->unread;
}

struct image *images__first(const struct images *images)
{
	return images->first;
}

const struct images_stats *images__stats(const struct images *images)
{
	return &images->stats;
}
