// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/process_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/target/procfs.h"

#define WAIT_MAX 64 /* commits */

/* minimum time between reads, for a program that changes its name all the time */
#define READ_MIN_NS (NSEC_PER_SEC / 10)

static void read_names(struct captured *captured)
{
	struct process_names *names = &captured->names;
	const struct procfs_info *had = &captured->process->info;
	struct procfs_info info;

	names->read_ns = now_ns();
	if (procfs__is_recorded() || process__is_ended(captured->process) ||
	    procfs__info(had->pid, &info, NULL) || info.start_ticks != had->start_ticks ||
	    strchr("ZX", info.state))
		return;
	names->has_changed = false;
	if (!names->read)
		names->read = malloc(sizeof(*names->read));
	if (names->read)
		*names->read = info;
}

void process_names__see(struct captured *captured, uint32_t tid,
			const char kernel[THREAD_NAME_BYTES])
{
	struct process_names *names = &captured->names;
	const char *before = names->kernel[0] ? names->kernel : captured->process->info.name;

	if (tid != captured->process->pid)
		return;
	if (strncmp(before, kernel, THREAD_NAME_BYTES - 1) != 0) {
		names->has_changed = true;
		if (now_ns() - names->read_ns >= READ_MIN_NS)
			read_names(captured);
	}
	memcpy(names->kernel, kernel, THREAD_NAME_BYTES);
}

static int record_names(struct captured *captured, const char *name, const char *command,
			struct ids *ids, struct err *err)
{
	struct procfs_info *info = &captured->process->info;

	if (!strcmp(info->name, name) && !strcmp(info->command, command))
		return 0;
	snprintf(info->name, sizeof(info->name), "%s", name);
	snprintf(info->command, sizeof(info->command), "%s", command);
	return captured->id
		       ? ids__process_is_called(ids, captured->id, info->name, info->command, err)
		       : 0;
}

static int record_read(struct captured *captured, struct ids *ids, struct err *err)
{
	struct process_names *names = &captured->names;
	int ret = names->read ? record_names(captured, names->read->name, names->read->command, ids,
					     err)
			      : 0;

	free(names->read);
	names->read = NULL;
	return ret;
}

int process_names__ended(struct captured *captured, struct ids *ids, struct err *err)
{
	struct process_names *names = &captured->names;
	struct procfs_info last = captured->process->info;
	int ret = record_read(captured, ids, err);

	if (ret || !names->has_changed)
		return ret;
	/* The name arrived with a sample, and the title could not be read in time. */
	snprintf(last.name, sizeof(last.name), "%.*s", THREAD_NAME_BYTES, names->kernel);
	procfs__make_printable(last.name, strlen(last.name));
	names->has_changed = false;
	return record_names(captured, last.name, captured->process->info.command, ids, err);
}

int process_names__run(const struct captured_set *set, struct ids *ids, bool last, struct err *err)
{
	struct captured *captured;
	int ret = 0;

	for (captured = set->first; !ret && captured; captured = captured->hh.next) {
		struct process_names *names = &captured->names;

		if (process__is_ended(captured->process)) { /* samples may have come since */
			ret = process_names__ended(captured, ids, err);
			continue;
		}
		ret = record_read(captured, ids, err);
		if (!last && !names->has_changed && names->wait-- > 1)
			continue;
		read_names(captured);
		names->waited = min_of(max_of(2 * names->waited, 1u), (uint32_t)WAIT_MAX);
		names->wait = names->waited;
		if (!ret && last)
			ret = record_read(captured, ids, err);
	}
	return ret;
}

void process_names__done(struct process_names *names)
{
	free(names->read);
	*names = (struct process_names) {};
}
