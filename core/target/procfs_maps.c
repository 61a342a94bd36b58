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

#define MAPPINGS_READ_MAX 65536
#define MAPS_BYTES_MAX	  (8 << 20) /* of text: a path may have 4 KB, and be there in each line */

/* Memory that nobody can access, behind the code of a compiler, is where its next code will be: it
 * reserves a range and opens it page by page. So that is taken for code, too. */
static void extend(struct procfs_mapping *code, const struct maps_line *line)
{
	if (!code->path[0] && !strcmp(line->perms, "---p") && !line->inode &&
	    line->start == code->end)
		code->end = line->end;
}

/* Shared memory without a name: while a compiler writes code there (PHP's opcache), none of it is
 * executable, though threads are about to return to it. */
static bool may_hold_code(const char *perms, const char *path)
{
	return perms[3] == 's' && !strncmp(path, "/dev/zero", strlen("/dev/zero"));
}

bool maps_line__parse(char *text, struct maps_line *ret)
{
	int at = 0;

	text[strcspn(text, "\n")] = '\0';
	if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
		   &ret->start, &ret->end, ret->perms, &ret->offset, &ret->dev_major,
		   &ret->dev_minor, &ret->inode, &at) != 7 ||
	    !at || ret->start >= ret->end || strlen(ret->perms) != 4)
		return false;
	ret->path = text + at;
	return true;
}

/* 1: @ret is an executable mapping; 0: the line is none; -ENOMEM. */
static int take_line(const struct maps_line *line, struct procfs_mapping *ret)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(line->path);

	if ((line->perms[2] != 'x' && !may_hold_code(line->perms, line->path)) ||
	    !strcmp(line->path, "[vsyscall]"))
		return 0;
	if (len >= strlen(deleted) && !strcmp(line->path + len - strlen(deleted), deleted))
		len -= strlen(deleted);
	*ret = (struct procfs_mapping) { .start = line->start,
					 .end = line->end,
					 .offset = line->offset,
					 .inode = line->inode,
					 .dev_major = line->dev_major,
					 .dev_minor = line->dev_minor,
					 .anonymous = line->path[0] != '/',
					 .vdso = !strcmp(line->path, "[vdso]") };
	ret->path = strndup(line->path, len);
	return ret->path ? 1 : -ENOMEM;
}

/* Adds the mapping, which it owns from now on. */
static int add_mapping(struct procfs_mappings *mappings, struct procfs_mapping *mapping)
{
	int err = array__reserve(&mappings->list, &mappings->cap, mappings->n + 1,
				 sizeof(*mappings->list));

	/* The kernel sorts; what does not fit is no maps file. */
	if (err || (mappings->n && mapping->start < mappings->list[mappings->n - 1].end))
		free(mapping->path);
	else
		mappings->list[mappings->n++] = *mapping;
	return err;
}

int procfs__parse_mappings(FILE *maps, struct procfs_mappings *ret)
{
	struct procfs_mappings mappings = {};
	struct procfs_mapping mapping;
	struct maps_line parsed;
	size_t size = 0, text = 0;
	char *line = NULL;
	int err = 0, taken;
	ssize_t len;

	while (!err && (len = getline(&line, &size, maps)) > 0) {
		text += len;
		mappings.is_cut = mappings.n == MAPPINGS_READ_MAX || text > MAPS_BYTES_MAX;
		if (mappings.is_cut)
			break;
		if (text / QUOTA_BLOCK != (text - len) / QUOTA_BLOCK)
			err = quota__look();
		if (err || !maps_line__parse(line, &parsed))
			continue;
		taken = take_line(&parsed, &mapping);
		if (taken > 0)
			err = add_mapping(&mappings, &mapping);
		else if (taken < 0)
			err = taken;
		else if (mappings.n)
			extend(&mappings.list[mappings.n - 1], &parsed);
	}
	free(line);
	if (err)
		procfs_mappings__done(&mappings);
	else
		*ret = mappings;
	return err;
}

/* The file of a thread that has ended can be opened, and is empty. */
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

int procfs__mappings(uint32_t pid, struct procfs_mappings *ret)
{
	FILE *maps;
	int err = procfs__open_maps(pid, &maps);

	if (err)
		return err;
	err = procfs__parse_mappings(maps, ret);
	if (!err && is_empty(maps)) { /* it ended meanwhile, and so did the text */
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
	free(mappings->list);
	*mappings = (struct procfs_mappings) {};
}

int procfs__find_map_file(uint32_t pid, uint64_t start, uint64_t end, struct target_file *ret)
{
	char path[PROCFS_PATH_BYTES];
	uint32_t living;
	int rc;

	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, procfs__root(), pid,
		 start, end);
	rc = target_file__find_link(path, ret);
	living = rc == -ENOENT || rc == -ESRCH ? procfs__living(pid) : pid;
	if (living == pid)
		return rc;
	snprintf(path, sizeof(path), "%s/%u/map_files/%" PRIx64 "-%" PRIx64, procfs__root(), living,
		 start, end);
	return target_file__find_link(path, ret);
}

int procfs__find_mapping(uint32_t pid, const struct procfs_mapping *mapping,
			 struct target_file *ret)
{
	int root, rc = procfs__find_map_file(pid, mapping->start, mapping->end, ret);

	if (!rc || mapping->path[0] != '/')
		return rc;
	root = procfs__open_root(pid);
	rc = root < 0 ? root : target_file__find(root, mapping->path, true, ret);
	close_fd(&root);
	if (!rc || procfs__is_recorded())
		return rc;
	/* With the process its root is gone, which may have been ours. */
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
