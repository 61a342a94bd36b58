// SPDX-License-Identifier: GPL-2.0-or-later
/* parked_tasks PID MOST LOOKS: polls the parked tasks of asyncio in a running CPython, as `-e wall`
 * does. Prints for each poll a line of tab-separated words: "poll", the number of offered tasks,
 * the sum of the tasks that they stand for, braid's CPU time in ns. Prints before it, for each
 * task: "task", its name, the reason of its wait. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_file.h"
#include "core/target/procfs.h"
#include "runtimes/registry.h"
#include "runtimes/runtime.h"

extern const struct runtime runtime_python;

struct poll {
	struct runtime_session *session;
	uint32_t pid;
	uint32_t n, moved;
	double stands_for;
	bool quiet;
};

static int on_task(void *ctx, const struct runtime_task *task)
{
	struct poll *poll = ctx;

	if (!runtime_python.parked->is_parked(poll->session, poll->pid, task)) {
		poll->moved++;
		return 0;
	}
	poll->n++;
	poll->stands_for += task->stands_for;
	if (!poll->quiet)
		printf("task\t%s\t%s\n", task->name, task->reason ?: "");
	return 0;
}

static int attach(struct poll *poll, const struct procfs_mapping *mapping, struct err *err)
{
	const struct runtime_files *files = runtime_python.files;
	struct runtime_target target = { .pid = poll->pid, .space = 1 };
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;
	struct elf_file *file;
	uint64_t vaddr;
	char *record;
	int ret;

	if (elf_file__open(procfs__open_mapping(poll->pid, mapping), mapping->path, &file, err))
		return -ENOENT;
	ret = files->detect(file) ? files->prepare(file, &image, &verdict) : -ENOENT;
	if (!ret && !image)
		ret = err__set(err, -ENOTSUP, "%s", verdict.reason);
	if (!ret && !elf_file__offset_to_vaddr(file, mapping->offset, &vaddr))
		ret = -EBADMSG;
	record = calloc(1, runtime_python.walker->record_bytes);
	if (!ret && record) {
		target.bias = mapping->start - vaddr;
		target.image = image;
		target.file = file;
		ret = runtime_python.attach(poll->session, &target, record, err);
	}
	free(record);
	if (image)
		files->free(image);
	elf_file__free(file);
	return ret;
}

static int attach_any(struct poll *poll, struct err *err)
{
	struct procfs_mappings mappings = {};
	int ret = procfs__mappings(poll->pid, &mappings);

	if (!ret)
		ret = -ENOENT;
	for (size_t i = 0; ret == -ENOENT && i < mappings.n; i++)
		if (!mappings.list[i].anonymous)
			ret = attach(poll, &mappings.list[i], err);
	procfs_mappings__done(&mappings);
	return ret;
}

int main(int argc, char **argv)
{
	struct poll poll = {};
	struct err err = {};
	uint32_t most;
	int polls, ret;

	if (argc != 4)
		return 2;
	poll.pid = strtoul(argv[1], NULL, 10);
	most = strtoul(argv[2], NULL, 10);
	polls = strtol(argv[3], NULL, 10);
	poll.quiet = polls > 1;
	ret = runtime_python.open(NULL, &poll.session, &err) ?: attach_any(&poll, &err);
	for (int i = 0; !ret && i < polls; i++) {
		uint64_t begin_ns = thread_cpu_ns();

		poll.n = poll.moved = 0;
		poll.stands_for = 0;
		ret = runtime_python.parked->sample(poll.session, poll.pid, most, on_task, &poll,
						    &err);
		printf("poll\t%u\t%.3f\t%" PRIu64 "\n", poll.n, poll.stands_for,
		       thread_cpu_ns() - begin_ns);
	}
	if (ret)
		fprintf(stderr, "parked_tasks: %s: %s\n", strerror(-ret), err.text);
	runtime_python.close(poll.session);
	return !!ret;
}
