// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/go.h"
#include "core/base/util.h"
#include "runtimes/go/go_function_rules.h"
#include "runtimes/go/go_idle.h"
#include "runtimes/go/go_layout.h"
#include "runtimes/go/go_names.h"
#include "runtimes/go/go_rows.h"
#include "runtimes/go/go_switches.h"
#include "runtimes/go/go_table.h"
#include "runtimes/go/go_tasks.h"
#include "runtimes/runtime.h"

/* Go. Its functions are native code of files that have tables for the garbage collector. The
 * tables have each frame's size, function, file and line (docs/runtimes/go.md). */

struct runtime_image {
	const struct elf_file *file;
	struct go_table table;
	struct go_places places;
	struct go_fields layout;
	uint64_t data; /* go_names__data */
	struct go_names_buf names;
};

struct runtime_session {
	struct go_process *processes; /* by pid */
	char left_out[RUNTIME_REASON_BYTES];
};

#define NO_LIST "cannot find the list of goroutines in its code, so that waiting ones are missing"

static const char *const go_maps[] = { "go_procs", NULL };

/* --- image --- */

static int go__detect(const struct elf_file *file)
{
	struct go_table table;
	size_t n_sections = 0;
	int ret;

	if (!go_table__is_likely(file) ||
	    (!file->generated && !elf_getshdrnum(file->elf, &n_sections) && n_sections))
		return go_table__is_likely(file);
	ret = go_table__open(file, &table); /* without sections, any file is */
	if (!ret)
		go_table__done(&table);
	return ret == -ENOMEM ? ret : !ret;
}

#define BUILD_INFO	 ".go.buildinfo"
#define BUILD_INFO_BYTES 33 /* up to the version, since Go 1.18 (src/debug/buildinfo) */

/* Since Go 1.18 it is a text in a section of its own, its length before it. */
static void read_version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES])
{
	const Elf_Data *info = elf_file__section(file, BUILD_INFO, NULL);
	const char *text = info ? info->d_buf : NULL;
	size_t n = 0;

	if (!text || info->d_size < BUILD_INFO_BYTES + 2 ||
	    memcmp(text + BUILD_INFO_BYTES, "go", 2)) {
		snprintf(ret, RUNTIME_VERSION_BYTES, "(unknown)");
		return;
	}
	text += BUILD_INFO_BYTES + 2;
	while (n < info->d_size - BUILD_INFO_BYTES - 2 && n < RUNTIME_VERSION_BYTES - 1 &&
	       (isalnum((unsigned char)text[n]) || text[n] == '.'))
		n++;
	if (n > (uint8_t)text[-3] - 2U)
		n = (uint8_t)text[-3] - 2U;
	snprintf(ret, RUNTIME_VERSION_BYTES, "%.*s", (int)n, text);
}

static void go__image_free(struct runtime_image *image)
{
	if (image)
		go_table__done(&image->table);
	free(image);
}

static int go__prepare(const struct elf_file *file, struct runtime_image **ret_image,
		       struct runtime_verdict *ret_verdict)
{
	struct runtime_image *image = calloc(1, sizeof(*image));
	int ret = image ? go_table__open(file, &image->table) : -ENOMEM;

	*ret_verdict = (struct runtime_verdict) { .support = RUNTIME_SUPPORTED };
	read_version(file, ret_verdict->version);
	if (ret) {
		free(image);
		ret_verdict->support = RUNTIME_REFUSED;
		snprintf(ret_verdict->reason, sizeof(ret_verdict->reason),
			 "its table of functions has an unsupported format (supported: Go 1.16 to "
			 "1.27)");
		return ret == -ENOMEM ? ret : 0;
	}
	ret = go_names__data(file, &image->table, &image->data);
	if (ret == -ENOMEM) {
		go__image_free(image);
		return ret;
	}
	if (ret) {
		ret_verdict->support = RUNTIME_DEGRADED;
		snprintf(ret_verdict->reason, sizeof(ret_verdict->reason),
			 "cannot find its lists of inlined calls, so inlined functions are missing "
			 "and their callers have no line there");
	}
	image->file = file;
	image->places = go_places__of(file, &image->table);
	go_layout__find(file, &image->table, &image->places, &image->layout);
	*ret_image = image;
	return 0;
}

static int go__resolve(const struct runtime_image *image, uint64_t vaddr,
		       struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	struct runtime_image *own = (struct runtime_image *)image;

	return go_names__resolve(own->file, &own->table, own->data, vaddr, &own->names, ret);
}

/* --- session, instance --- */

static int go__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	(void)probes;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err__set(err, -ENOMEM, "out of memory");
}

static void drop_process(struct runtime_session *session, struct go_process *process)
{
	HASH_DEL(session->processes, process);
	free(process);
}

static void go__close(struct runtime_session *session)
{
	while (session && session->processes)
		drop_process(session, session->processes);
	free(session);
}

static struct go_process *find_process(struct runtime_session *session, uint32_t pid)
{
	struct go_process *process;

	HASH_FIND(hh, session->processes, &pid, sizeof(pid), process);
	return process;
}

static int add_process(struct runtime_session *session, const struct runtime_target *target)
{
	struct go_process *process = find_process(session, target->pid);

	if (process)
		drop_process(session, process);
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = target->pid;
	process->space = target->space;
	process->bias = target->bias;
	process->layout = target->image->layout;
	HASH_ADD(hh, session->processes, pid, sizeof(process->pid), process);
	return 0;
}

static int go__attach(struct runtime_session *session, const struct runtime_target *target,
		      void *ret_record, struct err *err)
{
	const struct go_places *places = &target->image->places;
	struct go_proc_rec *rec = ret_record;

	if (add_process(session, target))
		return err__set(err, -ENOMEM, "go: out of memory");
	if (!places->known || !places->goid_at) {
		err__set(err, 0, "cannot find the running goroutines of this program");
		return 0;
	}
	*rec = (struct go_proc_rec) { .g_at = places->g_at,
				      .curg_at = places->curg_at,
				      .goid_at = places->goid_at };
	if (!target->image->layout.goroutines)
		err__set(err, 0, NO_LIST);
	return 0;
}

static void go__detach(struct runtime_session *session, uint32_t space)
{
	struct go_process *process, *next;

	HASH_ITER (hh, session->processes, process, next) {
		if (process->space == space)
			drop_process(session, process);
	}
}

/* --- goroutines on no thread --- */

static int go__tasks(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
		     void *ctx)
{
	struct go_process *process = find_process(session, pid);
	size_t n = 0;
	int ret = process ? go_tasks__list(process, on_task, ctx, &n) : 0;

	session->left_out[0] = '\0';
	if (ret == -ENOTSUP)
		snprintf(session->left_out, sizeof(session->left_out), "%s", NO_LIST);
	else if (ret == -EFAULT)
		snprintf(session->left_out, sizeof(session->left_out),
			 "cannot read the list of goroutines, so that waiting ones are missing");
	else if (n)
		snprintf(session->left_out, sizeof(session->left_out),
			 "cannot read %zu of the goroutines", n);
	return ret == -ENOTSUP || ret == -EFAULT ? 0 : ret;
}

static const char *go__tasks_left_out(struct runtime_session *session)
{
	return session->left_out[0] ? session->left_out : NULL;
}

static int go__sample(struct runtime_session *session, uint32_t pid, uint32_t most,
		      runtime_task_fn on_task, void *ctx, struct err *err)
{
	struct go_process *process = find_process(session, pid);
	int ret = process ? go_tasks__sample(process, most, on_task, ctx) : 0;

	return ret == -ENOTSUP ? err__set(err, ret, NO_LIST) : ret;
}

static bool go__is_parked(struct runtime_session *session, uint32_t pid,
			  const struct runtime_task *task)
{
	const struct go_process *process = find_process(session, pid);

	(void)task;
	return process && go_tasks__is_parked(process);
}

static const struct runtime_files files = {
	.detect = go__detect,
	.prepare = go__prepare,
	.free = go__image_free,
	.unwind_rows = go_rows__read,
	.resolve = go__resolve,
};

static const struct runtime_walker walker = {
	.slot = WALKER_GO,
	.program = "walk_go",
	.maps = go_maps,
	.records = "go_procs",
	.record_bytes = sizeof(struct go_proc_rec),
	.task = "goroutine",
};

static const struct runtime_inspect inspect = {
	.tasks = go__tasks,
	.task = "goroutine",
	.tasks_left_out = go__tasks_left_out,
};

static const struct runtime_parked parked = {
	.many = "goroutines",
	.sample = go__sample,
	.is_parked = go__is_parked,
};

const struct runtime runtime_go = {
	.name = "go",
	.suffix = "_[go]",
	.versions = "Go 1.16 to 1.27, stripped or not",
	.files = &files,
	.walker = &walker,
	.inspect = &inspect,
	.parked = &parked,
	.idle = go_idle,
	.function_rules = &go_function_rules,
	.open = go__open,
	.close = go__close,
	.attach = go__attach,
	.detach = go__detach,
};
