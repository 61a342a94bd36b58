// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/push_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/base/file_beside.h"
#include "core/base/util.h"

/* The lines of the file: MAGIC TARGET; removed N; one for each entry with its name last, in which a
 * backslash and control characters are \xHH. */
#define MAGIC	       "braid push 1 "
#define FILE_BYTES_MAX (64 << 20)

/* ---- the lock ---- */

/* Locks the file. A process that replaces the file holds a lock on the new one. So the locked file
 * must still be the file at the path. */
static int lock(const char *path, int *ret_fd)
{
	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
		struct stat ours, there;

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			close_fd(&fd);
			return -EBUSY;
		}
		if (!fstat(fd, &ours) && !stat(path, &there) && ours.st_ino == there.st_ino &&
		    ours.st_dev == there.st_dev) {
			*ret_fd = fd;
			return 0;
		}
		close_fd(&fd);
	}
}

/* ---- reading ---- */

static int find(const struct push_state *state, const char *name, size_t *ret)
{
	size_t low = 0, high = state->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(state->entries[middle]->name, name);

		if (!order) {
			*ret = middle;
			return 1;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret = low;
	return 0;
}

static void free_entry(struct push_entry *entry)
{
	if (!entry)
		return;
	free(entry->name);
	free(entry);
}

static struct push_entry *add(struct push_state *state, const char *name)
{
	struct push_entry *entry, **place;
	size_t at;

	if (find(state, name, &at))
		return state->entries[at];
	if (array__reserve(&state->entries, &state->cap, state->n + 1, sizeof(entry)))
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (!entry || !(entry->name = strdup(name))) {
		free(entry);
		return NULL;
	}
	place = &state->entries[at];
	memmove(place + 1, place, (state->n++ - at) * sizeof(entry));
	*place = entry;
	return entry;
}

/* Decodes \xHH in place. */
static void unescape(char *text)
{
	char *to = text;
	unsigned byte;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text, "\\x%2x", &byte) == 1 && byte) {
			*to++ = byte;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

static int read_entry(struct push_state *state, char *line)
{
	struct push_entry *entry, read = {};
	unsigned progress;
	int name = 0;

	if (sscanf(line, "%u %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &progress,
		   &read.acknowledged, &read.size, &read.mtime_ns, &read.inode, &name) != 5 ||
	    !name || !line[name] || progress >= PUSH_PROGRESS_N || strchr(line + name, '/'))
		return -EBADMSG;
	unescape(line + name);
	entry = add(state, line + name);
	if (!entry)
		return -ENOMEM;
	read.name = entry->name;
	read.progress = progress;
	*entry = read;
	return 0;
}

static int read_lines(struct push_state *state, char *text, struct err *err)
{
	char *line = strsep(&text, "\n");
	int ret = 0;

	if (strncmp(line, MAGIC, strlen(MAGIC)) != 0 || !text)
		return -EBADMSG;
	if (strcmp(line + strlen(MAGIC), state->target) != 0)
		return err__set(err, -EINVAL,
				"the state file %s belongs to the target %s. Choose another file "
				"with --state",
				state->path, line + strlen(MAGIC));
	line = strsep(&text, "\n");
	if (sscanf(line, "removed %" SCNu64, &state->removed) != 1)
		return -EBADMSG;
	while (!ret && text && (line = strsep(&text, "\n")) && *line)
		ret = read_entry(state, line);
	return ret;
}

static int read_file(struct push_state *state, struct err *err)
{
	struct stat st;
	ssize_t n;
	char *text;
	int ret;

	if (fstat(state->fd, &st) || !S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX)
		return err__set(err, -EBADMSG, "%s is not a state file of braid push", state->path);
	if (!st.st_size)
		return 0;
	text = calloc(1, st.st_size + 1);
	if (!text)
		return err__set(err, -ENOMEM, "out of memory");
	n = pread(state->fd, text, st.st_size, 0);
	ret = n == st.st_size ? read_lines(state, text, err) : -EBADMSG;
	free(text);
	if (ret == -EBADMSG)
		err__set(err, ret,
			 "%s is damaged, or not a state file of braid push. Choose another file "
			 "with --state",
			 state->path);
	return ret == -ENOMEM ? err__set(err, ret, "out of memory") : ret;
}

int push_state__open(const char *path, const char *target, struct push_state *ret, struct err *err)
{
	int code;

	*ret = (struct push_state) { .fd = -1, .path = strdup(path), .target = strdup(target) };
	if (!ret->path || !ret->target)
		return err__set(err, -ENOMEM, "out of memory");
	code = lock(path, &ret->fd);
	if (code == -EBUSY)
		return err__set(err, code, "another braid push is using %s", path);
	if (code)
		return err__set(err, code, "cannot write %s: %s. Choose another file with --state",
				path, strerror(-code));
	return read_file(ret, err);
}

void push_state__close(struct push_state *state)
{
	for (size_t i = 0; i < state->n; i++)
		free_entry(state->entries[i]);
	free(state->entries);
	free(state->path);
	free(state->target);
	close_fd(&state->fd);
	*state = (struct push_state) { .fd = -1 };
}

/* ---- writing ---- */

static void write_name(FILE *out, const char *name)
{
	for (; *name; name++) {
		if (*name == '\\' || (unsigned char)*name < ' ')
			fprintf(out, "\\x%02x", (unsigned char)*name);
		else
			fputc(*name, out);
	}
	fputc('\n', out);
}

static int write_all(const struct push_state *state, int fd)
{
	int copy = dup(fd);
	FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
	bool failed;

	if (!out) {
		close_fd(&copy);
		return -errno;
	}
	fprintf(out, MAGIC "%s\nremoved %" PRIu64 "\n", state->target, state->removed);
	for (size_t i = 0; i < state->n; i++) {
		const struct push_entry *entry = state->entries[i];

		fprintf(out, "%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", entry->progress,
			entry->acknowledged, entry->size, entry->mtime_ns, entry->inode);
		write_name(out, entry->name);
	}
	failed = fflush(out) || ferror(out);
	if (fclose(out) || failed)
		return errno ? -errno : -EIO;
	return 0;
}

int push_state__save(struct push_state *state, struct err *err)
{
	struct file_beside file;
	int ret = file_beside__create(state->path, &file);

	if (!ret && flock(file.fd, LOCK_EX | LOCK_NB))
		ret = -errno;
	if (!ret)
		ret = write_all(state, file.fd);
	if (!ret)
		ret = file_beside__replace(&file, state->path);
	if (!ret) {
		close_fd(&state->fd);
		state->fd = file.fd;
		file.fd = -1;
	}
	file_beside__done(&file);
	return ret ? err__set(err, ret, "cannot write %s: %s", state->path, strerror(-ret)) : 0;
}

/* ---- entries ---- */

struct push_entry *push_state__entry(struct push_state *state, const char *name,
				     const struct stat *st)
{
	uint64_t mtime_ns = st->st_mtim.tv_sec * NSEC_PER_SEC + st->st_mtim.tv_nsec;
	struct push_entry *entry = add(state, name);

	if (!entry)
		return NULL;
	if (entry->size != (uint64_t)st->st_size || entry->mtime_ns != mtime_ns ||
	    entry->inode != st->st_ino)
		*entry = (struct push_entry) { .name = entry->name,
					       .size = st->st_size,
					       .mtime_ns = mtime_ns,
					       .inode = st->st_ino };
	return entry;
}

size_t push_state__drop_absent(struct push_state *state)
{
	size_t retained = 0, pending = 0;

	for (size_t i = 0; i < state->n; i++) {
		struct push_entry *entry = state->entries[i];

		if (entry->present) {
			state->entries[retained++] = entry;
			continue;
		}
		pending += entry->progress == PUSH_PENDING;
		free_entry(entry);
	}
	state->n = retained;
	state->removed += pending;
	return pending;
}
