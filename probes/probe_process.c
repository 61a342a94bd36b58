// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "probes/counter.h"

static int look_at(struct elf_file *file, probe_walker_fn walker, void *ctx, bool has_map,
		   struct probe_image **ret, struct err *err)
{
	struct probe_walker found = {};

	walker(ctx, file, &found);
	return probe_image__new(file, &found, has_map, ret, err);
}

int probe_process__open_file(const char *path, probe_walker_fn walker, void *ctx, bool has_map,
			     struct probe_image **ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), rc;
	struct elf_file *file;

	if (fd < 0)
		return err__set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	rc = elf_file__open(fd, path, &file, err);
	return rc ? rc : look_at(file, walker, ctx, has_map, ret, err);
}

static int add_unread(struct probe_process *process, const struct err *err)
{
	if (array__reserve(&process->unread, &process->cap_unread, process->n_unread + 1,
			   sizeof(*process->unread)))
		return -ENOMEM;
	process->unread[process->n_unread++] = *err;
	return 0;
}

/* Adds the image if it has data to report, or frees it. */
static int add_image(struct probe_process *process, struct probe_image *image)
{
	if (!image->n_rows && !image->runtime) {
		probe_image__free(image);
		return 0;
	}
	if (array__reserve(&process->images, &process->cap_images, process->n_images + 1,
			   sizeof(*process->images))) {
		probe_image__free(image);
		return -ENOMEM;
	}
	process->images[process->n_images++] = image;
	return 0;
}

static int open_mapping(struct probe_process *process, const struct procfs_mapping *mapping,
			probe_walker_fn walker, void *ctx, bool has_map)
{
	struct probe_image *image;
	struct elf_file *file;
	struct err err = {};
	int fd = procfs__open_mapping(process->pid, mapping), rc;

	if (fd < 0) {
		err__set(&err, fd, "cannot open %s: %s", mapping->path, strerror(-fd));
		return add_unread(process, &err);
	}
	rc = elf_file__open(fd, mapping->path, &file, &err);
	if (rc == -ENOEXEC || rc == -ENOTSUP)
		return 0; /* not a program, or for another machine */
	if (!rc)
		rc = look_at(file, walker, ctx, has_map, &image, &err);
	if (rc == -ENOMEM)
		return rc;
	return rc ? add_unread(process, &err) : add_image(process, image);
}

/* Returns true if an earlier mapping has the file of mapping @i. */
static bool is_repeated(const struct procfs_mappings *mappings, size_t i)
{
	const struct procfs_mapping *one = &mappings->list[i];

	for (size_t k = 0; k < i; k++) {
		const struct procfs_mapping *other = &mappings->list[k];

		if (!other->anonymous && other->inode == one->inode &&
		    other->dev_major == one->dev_major && other->dev_minor == one->dev_minor)
			return true;
	}
	return false;
}

int probe_process__open(uint32_t pid, probe_walker_fn walker, void *ctx,
			struct probe_process *ret_process, struct err *err)
{
	struct probe_process process = { .pid = pid };
	struct procfs_mappings mappings = {};
	bool has_map = procfs__has_perf_map(pid);
	int ret = procfs__mappings(pid, &mappings);

	if (ret == -EACCES || ret == -EPERM)
		return privilege__explain(1U << PRIVILEGE_PROCESSES,
					  "to inspect another user's process", err);
	if (ret)
		return err__set(err, ret, "cannot read the mappings of PID %u: %s", pid,
				strerror(-ret));
	for (size_t i = 0; !ret && i < mappings.n; i++)
		if (!mappings.list[i].anonymous && !is_repeated(&mappings, i))
			ret = open_mapping(&process, &mappings.list[i], walker, ctx, has_map);
	procfs_mappings__done(&mappings);
	if (ret) {
		probe_process__done(&process);
		return err__set(err, ret, "out of memory");
	}
	*ret_process = process;
	return 0;
}

void probe_process__done(struct probe_process *process)
{
	for (size_t i = 0; i < process->n_images; i++)
		probe_image__free(process->images[i]);
	free(process->images);
	free(process->unread);
	*process = (struct probe_process) {};
}

/* --- measurement --- */

/* Numbers the rows to be measured, and writes their points to @ret_points unless that is NULL. */
static size_t collect(struct probe_process *process, struct probe_point *ret_points)
{
	size_t n = 0;

	for (size_t i = 0; i < process->n_images; i++) {
		for (size_t k = 0; k < process->images[i]->n_rows; k++) {
			struct probe_row *row = &process->images[i]->rows[k];

			if (!row->selected)
				continue;
			row->point.cookie = n;
			if (ret_points)
				ret_points[n] = row->point;
			n++;
		}
	}
	return n;
}

static void take_hits(struct probe_process *process, const struct probe_counter *counter)
{
	for (size_t i = 0; i < process->n_images; i++) {
		struct probe_image *image = process->images[i];

		for (size_t k = 0; k < image->n_rows; k++) {
			struct probe_row *row = &image->rows[k];

			if (row->selected)
				row->hits = probe_counter__hits(counter, row->point.cookie);
		}
	}
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void wait_for(double seconds)
{
	struct timespec left = { .tv_sec = seconds };

	left.tv_nsec = (seconds - left.tv_sec) * NSEC_PER_SEC;
	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void measure(struct probe_process *process, struct probe_counter *counter, double seconds)
{
	double cpu_s = procfs__cpu_s(process->pid), start_s = now_s(), measured_s;

	probe_counter__count(counter, true);
	wait_for(seconds);
	probe_counter__count(counter, false);
	measured_s = now_s() - start_s;
	process->cpu_s = procfs__cpu_s(process->pid) - cpu_s;
	take_hits(process, counter);
	for (size_t i = 0; i < process->n_images; i++) {
		process->images[i]->measured_s = measured_s;
		probe_image__evaluate(process->images[i]);
	}
}

int probe_process__measure(struct probe_process *process, double seconds, struct err *err)
{
	size_t n = collect(process, NULL);
	struct probe_counter *counter = NULL;
	struct probe_point *points;
	int ret;

	if (!n)
		return 0;
	points = calloc(n, sizeof(*points));
	if (!points)
		return err__set(err, -ENOMEM, "out of memory");
	collect(process, points);
	ret = probe_counter__open(n, &counter, err);
	if (!ret)
		ret = probe_counter__attach(counter, process->pid, points, n, err);
	if (!ret)
		measure(process, counter, seconds);
	probe_counter__free(counter);
	free(points);
	return ret;
}
