// SPDX-License-Identifier: GPL-2.0-or-later
/* /proc/PID/maps: the one parser of its lines, and the files behind mappings. */
#include "core/target/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/target/process_context.h"
#include "core/target/target_view.h"

#define MAPPINGS_READ_MAX 65536
#define MAPS_BYTES_MAX	  (8 << 20) /* bytes of text: a path may have 4 KB in each line */

/* Extends generated code by the inaccessible memory behind it. A compiler reserves a range and
 * opens it page by page, so its next code will be there. */
static void extend(struct procfs_mapping *code, const struct maps_line *line)
{
	if (!code->path[0] && !strcmp(line->perms, "---p") && !line->inode &&
	    line->start == code->end)
		code->end = line->end;
}

/* Returns true for shared memory without a name. While a compiler writes code there (PHP's
 * opcache), none of it is executable, although threads will soon return to it. */
static bool may_hold_code(const char *perms, const char *path)
{
	return perms[3] == 's' && !strncmp(path, "/dev/zero", strlen("/dev/zero"));
}

size_t procfs__path_bytes(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);

	if (len >= strlen(deleted) && !strcmp(path + len - strlen(deleted), deleted))
		len -= strlen(deleted);
	return len;
}

/* Copies the line. Returns 0 or -ENOMEM. */
static int copy_line(const struct maps_line *line, struct procfs_mapping *ret)
{
	*ret = (struct procfs_mapping) { .start = line->start,
					 .end = line->end,
					 .offset = line->offset,
					 .inode = line->inode,
					 .dev_major = line->dev_major,
					 .dev_minor = line->dev_minor,
					 .anonymous = line->path[0] != '/',
					 .vdso = !strcmp(line->path, "[vdso]") };
	ret->path = strndup(line->path, procfs__path_bytes(line->path));
	return ret->path ? 0 : -ENOMEM;
}

/* Returns 1: @ret is an executable mapping; 0: the line is not one; or -ENOMEM. */
static int take_line(const struct maps_line *line, struct procfs_mapping *ret)
{
	int err;

	if ((line->perms[2] != 'x' && !may_hold_code(line->perms, line->path)) ||
	    !strcmp(line->path, "[vsyscall]"))
		return 0;
	err = copy_line(line, ret);
	return err ? err : 1;
}

/* Adds the mapping, and takes ownership of it. */
static int add_mapping(struct procfs_mappings *mappings, struct procfs_mapping *mapping)
{
	int err = array__reserve(&mappings->list, &mappings->cap, mappings->n + 1,
				 sizeof(*mappings->list));

	/* The kernel sorts the lines, so an overlap is not from a maps file. */
	if (err || (mappings->n && mapping->start < mappings->list[mappings->n - 1].end))
		free(mapping->path);
	else
		mappings->list[mappings->n++] = *mapping;
	return err;
}

/* --- neighbours --- */

/* The present line, and data of earlier lines. */
struct reading {
	struct maps_line line, file; /* this, and the last one of a file; start == end: none yet */
	char *text, *file_text;	     /* owned; the paths of the lines point there */
	size_t size, file_size;	     /* bytes allocated for the texts */
	bool is_listed;		     /* `file` is the last of mappings.files */
	uint64_t start, end;	     /* range of the previous line */
	size_t first_open;	     /* index in mappings.list of the first one without `above` */
};

/* Returns true if the line names a file that may have an ELF header. Files in the kernel's memory
 * have names, too. */
static bool is_file(const struct maps_line *line)
{
	static const char *const others[] = { "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strncmp(line->path, others[i], strlen(others[i])))
			return false;
	return line->inode && line->path[0] == '/';
}

/* Sets *@ret to 1 + the index of the last file in mappings->files, and adds the file if it is
 * missing; 0 without a file. */
static int keep_file(struct procfs_mappings *mappings, struct reading *reading, uint32_t *ret)
{
	int err;

	*ret = 0;
	if (reading->file.start == reading->file.end)
		return 0;
	if (!reading->is_listed) {
		err = array__reserve(&mappings->files, &mappings->cap_files, mappings->n_files + 1,
				     sizeof(*mappings->files));
		if (!err)
			err = copy_line(&reading->file, &mappings->files[mappings->n_files]);
		if (err)
			return err;
		mappings->n_files++;
		reading->is_listed = true;
	}
	*ret = mappings->n_files;
	return 0;
}

/* Makes the line the last file. Exchanges its text with that of the former file. */
static int meet_file(struct procfs_mappings *mappings, struct reading *reading)
{
	char *text = reading->file_text;
	size_t size = reading->file_size;
	uint32_t above;
	int err = 0;

	reading->file = reading->line;
	reading->is_listed = false;
	reading->file_text = reading->text;
	reading->file_size = reading->size;
	reading->text = text;
	reading->size = size;
	if (reading->first_open < mappings->n)
		err = keep_file(mappings, reading, &above);
	for (; !err && reading->first_open < mappings->n; reading->first_open++)
		mappings->list[reading->first_open].above = above;
	return err;
}

/* Adds the mapping of the line. */
static int read_line(struct procfs_mappings *mappings, struct reading *reading)
{
	const struct maps_line *line = &reading->line;
	struct procfs_mapping mapping;
	int taken = take_line(line, &mapping), err = min_of(taken, 0);
	bool adjoins = reading->end == line->start;
	size_t n = mappings->n;

	if (taken > 0) {
		mapping.adjoining = adjoins ? reading->start : 0;
		err = keep_file(mappings, reading, &mapping.below);
		if (err)
			free(mapping.path);
		else
			err = add_mapping(mappings, &mapping);
	} else if (!err && n) {
		extend(&mappings->list[n - 1], line);
	}
	reading->start = line->start;
	reading->end = line->end;
	if (!mappings->context && process_context__is_at(line->path))
		mappings->context = line->start;
	if (err || !is_file(line))
		return err;
	/* A mapping is not its own neighbour. */
	if (taken > 0 && mappings->n > n) {
		struct procfs_mapping own = mappings->list[--mappings->n];

		err = meet_file(mappings, reading);
		mappings->list[mappings->n++] = own;
		return err;
	}
	return meet_file(mappings, reading);
}

int procfs__parse_mappings(FILE *maps, struct procfs_mappings *ret)
{
	struct procfs_mappings mappings = {};
	struct reading reading = {};
	size_t text = 0;
	int err = 0;
	ssize_t len;

	while (!err && (len = getline(&reading.text, &reading.size, maps)) > 0) {
		text += len;
		mappings.is_cut = mappings.n == MAPPINGS_READ_MAX || text > MAPS_BYTES_MAX;
		if (mappings.is_cut)
			break;
		if (text / QUOTA_BLOCK != (text - len) / QUOTA_BLOCK)
			err = quota__look();
		if (!err && maps_line__parse(reading.text, &reading.line))
			err = read_line(&mappings, &reading);
	}
	free(reading.text);
	free(reading.file_text);
	if (err)
		procfs_mappings__done(&mappings);
	else
		*ret = mappings;
	return err;
}

/* Returns true for the file of an ended thread, which can be opened, and is empty. */
static bool is_empty(FILE *maps)
{
	char first;

	return pread(fileno(maps), &first, 1, 0) != 1;
}

static int open_maps(uint32_t id, FILE **ret)
{
	int fd = procfs__open(id, "maps", O_RDONLY);

	if (fd < 0)
		return fd == -ENOENT ? -ESRCH : fd;
	*ret = fdopen(fd, "r");
	if (!*ret) {
		close(fd);
		return -ENOMEM;
	}
	if (!is_empty(*ret))
		return 0;
	fclose(*ret);
	*ret = NULL;
	return -ESRCH;
}

int procfs__open_maps(uint32_t pid, FILE **ret)
{
	int err = open_maps(pid, ret);
	uint32_t living = err == -ESRCH ? procfs__living(pid) : pid;

	return living == pid ? err : open_maps(living, ret);
}

int target_view__take_lines(const struct maps_line *lines, size_t n, struct procfs_mappings *ret)
{
	struct procfs_mappings mappings = {};
	struct reading reading = {};
	int err = 0;

	for (size_t i = 0; !err && i < n; i++) {
		mappings.is_cut = mappings.n == MAPPINGS_READ_MAX;
		if (mappings.is_cut)
			break;
		reading.line = lines[i];
		err = read_line(&mappings, &reading);
	}
	if (err)
		procfs_mappings__done(&mappings);
	else
		*ret = mappings;
	return err;
}

int target_dir__mappings(const struct target_view *view, uint32_t pid, struct procfs_mappings *ret)
{
	FILE *maps;
	int err = procfs__open_maps(pid, &maps);

	(void)view;

	if (err)
		return err;
	err = procfs__parse_mappings(maps, ret);
	if (!err && is_empty(maps)) { /* the process ended during the read, which cut the text */
		procfs_mappings__done(ret);
		err = -ESRCH;
	}
	fclose(maps);
	return err;
}

void procfs_mappings__done(struct procfs_mappings *mappings)
{
	size_t i;

	for (i = 0; i < mappings->n; i++)
		free(mappings->list[i].path);
	for (i = 0; i < mappings->n_files; i++)
		free(mappings->files[i].path);
	free(mappings->list);
	free(mappings->files);
	*mappings = (struct procfs_mappings) {};
}

/* Finds the file of the link @name in the process's directory. */
static int find_link(uint32_t pid, const char *name, struct target_file *ret)
{
	char path[PROCFS_PATH_BYTES];
	uint32_t living;
	int rc;

	if (target_view__current()->mappings != target_dir__mappings)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), pid, name);
	rc = target_file__find_link(path, ret);
	living = rc == -ENOENT || rc == -ESRCH ? procfs__living(pid) : pid;
	if (living == pid)
		return rc;
	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), living, name);
	return target_file__find_link(path, ret);
}

int procfs__find_map_file(uint32_t pid, uint64_t start, uint64_t end, struct target_file *ret)
{
	char name[64];

	snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	return find_link(pid, name, ret);
}

/* Returns true if the file is certainly another one. Some file systems have separate devices for
 * their files (overlayfs, btrfs); then the inode proves nothing. */
static bool is_another_file(const struct target_file *file, const struct procfs_mapping *mapping)
{
	return mapping->inode && file->ino != mapping->inode &&
	       file->dev == makedev(mapping->dev_major, mapping->dev_minor);
}

int procfs__find_mapping(uint32_t pid, const struct procfs_mapping *mapping,
			 struct target_file *ret)
{
	int root, rc = mapping->is_program
			       ? find_link(pid, "exe", ret)
			       : procfs__find_map_file(pid, mapping->start, mapping->end, ret);

	/* Another file may have been mapped there since. */
	if (!rc && is_another_file(ret, mapping)) {
		target_file__done(ret);
		rc = -ESTALE;
	}
	if (!rc || mapping->path[0] != '/')
		return rc;
	root = procfs__open_root(pid);
	rc = root < 0 ? root : target_file__find(root, mapping->path, true, ret);
	close_fd(&root);
	if (!rc || procfs__is_recorded())
		return rc;
	/* The root disappears with the process, and may have been braid's root. */
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	rc = root < 0 ? -errno : target_file__find(root, mapping->path, true, ret);
	close_fd(&root);
	if (!rc && (ret->ino != mapping->inode ||
		    ret->dev != makedev(mapping->dev_major, mapping->dev_minor))) {
		target_file__done(ret);
		rc = -ESTALE;
	}
	return rc;
}

int procfs__open_mapping(uint32_t pid, const struct procfs_mapping *mapping)
{
	struct target_file file;
	int fd = procfs__find_mapping(pid, mapping, &file);

	if (!fd)
		fd = target_file__open(&file);
	target_file__done(&file);
	return fd;
}
