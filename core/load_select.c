// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/load_select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/escape.h"

/* Things that an error lists, and then "...". */
#define LISTED_MAX 8

struct list {
	char text[300];
	size_t n;
};

static void list_add(struct list *list, const char *name, uint32_t number)
{
	size_t len = strlen(list->text);
	const char *comma = list->n ? ", " : "";
	char item[64];

	list->n++;
	if (list->n > LISTED_MAX + 1)
		return;
	if (list->n > LISTED_MAX)
		snprintf(item, sizeof(item), "...");
	else if (number)
		snprintf(item, sizeof(item), "%u (%.32s)", number, name);
	else
		snprintf(item, sizeof(item), "%.32s", name);
	escape__printable(item);
	snprintf(list->text + len, sizeof(list->text) - len, "%s%s", comma, item);
}

static bool thread_matches(const struct load_tables *tables, const struct load_thread *thread,
			   const char *wanted)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u", thread->tid);
	return !strcmp(wanted, tid) || !strcmp(wanted, load_tables__text(tables, thread->name));
}

static bool process_matches(const struct load_tables *tables, uint32_t process, uint32_t pid)
{
	return !pid || (process != LOAD_NONE && tables->processes.rows[process].pid == pid);
}

static int no_process(const struct load_tables *tables, uint32_t pid, struct err *err)
{
	struct list list = { 0 };
	size_t i;

	for (i = 0; i < tables->processes.n; i++) {
		const struct load_process *process = &tables->processes.rows[i];

		list_add(&list, load_tables__text(tables, process->name), process->pid);
	}
	return err__set(err, -ENOENT, "%s has no process %u; there are: %s", tables->path, pid,
			list.text);
}

static int no_thread(const struct load_tables *tables, const struct load_filter *filter,
		     struct err *err)
{
	struct list list = { 0 };
	size_t i;

	for (i = 0; i < tables->threads.n; i++) {
		const struct load_thread *thread = &tables->threads.rows[i];

		if (process_matches(tables, thread->process, filter->pid))
			list_add(&list, load_tables__text(tables, thread->name), thread->tid);
	}
	return err__set(err, -ENOENT, "%s has no thread %.32s; there are: %s", tables->path,
			filter->thread, list.text);
}

int load_select__threads(const struct load_tables *tables, const struct load_filter *filter,
			 bool **ret_wanted, struct err *err)
{
	bool any_process = false, any_thread = false;
	bool *wanted;
	size_t i;

	if (!filter->pid && !filter->thread) {
		*ret_wanted = NULL;
		return 0;
	}
	for (i = 0; i < tables->processes.n; i++)
		any_process |= process_matches(tables, i, filter->pid);
	if (filter->pid && !any_process)
		return no_process(tables, filter->pid, err);
	wanted = calloc(tables->threads.n + 1, sizeof(*wanted));
	if (!wanted)
		return err__set(err, -ENOMEM, "out of memory");
	for (i = 0; i < tables->threads.n; i++) {
		const struct load_thread *thread = &tables->threads.rows[i];

		wanted[i] = process_matches(tables, thread->process, filter->pid) &&
			    (!filter->thread || thread_matches(tables, thread, filter->thread));
		any_thread |= wanted[i];
	}
	if (filter->thread && !any_thread) {
		free(wanted);
		return no_thread(tables, filter, err);
	}
	*ret_wanted = wanted;
	return 0;
}

int load_select__kinds(const struct load_tables *tables, const struct load_filter *filter,
		       uint32_t *ret_kinds, struct err *err)
{
	struct list list = { 0 };
	uint32_t kinds = 0;
	int i;

	for (i = 0; filter->runtime && i < KINDS_MAX; i++) {
		const char *name = load_tables__text(tables, tables->kind_names[i]);

		if (!*name)
			continue;
		if (!strcmp(name, filter->runtime))
			kinds |= 1u << i;
		list_add(&list, name, 0);
	}
	if (filter->runtime && !kinds)
		return err__set(err, -EINVAL, "%s has no runtime %.32s; there are: %s",
				tables->path, filter->runtime, list.text);
	*ret_kinds = kinds;
	return 0;
}
