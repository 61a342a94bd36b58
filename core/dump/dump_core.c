// SPDX-License-Identifier: GPL-2.0-or-later
/* The process of a core file: all threads stand still, and all registers are available. */
#include "core/dump/dump_state.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/programs.h"
#include "core/base/util.h"
#include "core/target/core_file.h"

#define PAGE 4096

/* Returns true if @page, the first page of a mapped file, has another build-id than @file. Linkers
 * put the note into the first page. */
static bool is_other(const unsigned char *page, const struct elf_file *file)
{
	static const unsigned char head[] = {
		4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0
	};
	const unsigned char *note = memmem(page, PAGE, head, sizeof(head));

	if (memcmp(page, ELFMAG, SELFMAG) != 0 || !note || note + sizeof(head) + 20 > page + PAGE)
		return false;
	return file->build_id_len == 20 && memcmp(note + sizeof(head), file->build_id, 20) != 0;
}

static void note_file(struct dump_process *result, const struct mapped *mapped, const char *what)
{
	size_t n = strlen(result->note);

	if (strstr(result->note, mapped->path))
		return;
	snprintf(result->note + n, sizeof(result->note) - n, "%s%s %s", n ? "; " : "", mapped->path,
		 what);
}

/* Returns true if the file exists. An existing file without an image is data, which gcore does not
 * distinguish from code. */
static bool is_there(const struct dump *dump, const struct mapped *mapped)
{
	const struct procfs_mapping mapping = { .start = mapped->start,
						.end = mapped->end,
						.path = mapped->path };
	struct target_file file = TARGET_FILE_NONE;
	bool there = !procfs__find_mapping(dump->process->pid, &mapping, &file);

	target_file__done(&file);
	return there;
}

/* Notes mapped files that are missing or were replaced. */
static void check_files(const struct dump *dump, struct dump_process *result)
{
	const struct process *process = dump->process;
	unsigned char page[PAGE];

	for (size_t i = 0; i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];

		if (mapped->path[0] == '/' && !mapped->image && !is_there(dump, mapped))
			note_file(result, mapped,
				  "is missing (try --sysroot): its frames have no names, and "
				  "stacks may end at them");
		else if (mapped->image && /* with parts mapped in the file's order */
			 !memory__read(dump->cached, mapped->start - mapped->offset, page, PAGE) &&
			 is_other(page, mapped->image->file))
			note_file(result, mapped,
				  "differs from the file that was mapped (another build-id): its "
				  "frames may be wrong");
	}
}

static int take(struct dump *dump, const struct core_thread *from, struct dump_thread *ret,
		struct err *err)
{
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = from->tid,
				      .fs_base = from->fs_base,
				      .name = dump->process->info.name,
				      .syscall = from->call,
				      .own_ids = true };
	static const uint64_t no_kernel_frames[1];
	int code;

	*ret = (struct dump_thread) { .tid = from->tid,
				      .call = from->call >= 0 && from->call < SYSCALLS_MAX
						      ? (int)from->call
						      : THREAD_NO_CALL,
				      .signal = from->signal,
				      .fs_base = from->fs_base };
	snprintf(ret->name, sizeof(ret->name), "%.15s", dump->process->info.name);
	memcpy(thread.regs, from->regs, sizeof(thread.regs));
	ret->args[0] = from->regs[UNWIND_REG_RDI];
	ret->args[1] = from->regs[UNWIND_REG_RSI];
	ret->args[2] = from->regs[UNWIND_REG_RDX];
	if (from->call >= 0)
		thread.kernel = no_kernel_frames;
	code = dump__sample(dump, &thread, dump->cached);
	if (code)
		return err__set(err, code, "out of memory");
	dump__describe(dump, ret);
	return dump__route(dump, err);
}

static int take_threads(struct dump *dump, const struct core_file *core, struct err *err)
{
	struct dump_process *result = dump->result;
	const struct core_thread *threads;
	size_t n;
	int code = 0;

	threads = core_file__threads(core, &n);
	result->threads = calloc(n + 1, sizeof(*result->threads));
	if (!result->threads)
		return err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++)
		result->threads[i].tid = threads[i].tid;
	result->n_threads = n;
	for (size_t i = 0; !code && i < n; i++)
		code = take(dump, &threads[i], &result->threads[i], err);
	return code;
}

int dump__core(struct dump *dump, const char *path, const char *root, struct dump_process *ret,
	       struct err *err)
{
	struct core_file *core = NULL;
	int code;

	*ret = (struct dump_process) { .is_core = true };
	dump->result = ret;
	code = core_file__open(path, root, &core, err);
	if (code)
		return code;
	code = dump__open_process(dump, core_file__pid(core), core_file__memory(core), err);
	if (!code) {
		if (core_file__note(core))
			snprintf(ret->note, sizeof(ret->note), "%s", core_file__note(core));
		check_files(dump, ret);
		code = take_threads(dump, core, err);
	}
	if (!code)
		code = dump__take_tasks(dump, err);
	if (!code)
		code = dump__finish_process(dump, err);
	dump__close_process(dump);
	core_file__close(core);
	if (code)
		dump_process__done(ret);
	return code;
}
