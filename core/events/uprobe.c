// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/debugfile.h"
#include "core/elf/minidebug.h"
#include "core/target/tracker.h"
#include "probes/attach.h"

/* A place in a file of code, mostly the beginning of a function, in every process that maps the
 * file. It is attached in the files of that name which targets have mapped; if there is none, in
 * that which a program here would get by the name. */

#define FILES_MAX  16 /* of one name, in containers for instance */
#define PATH_BYTES 1024

struct uprobe {
	char file[EVENT_NAME_BYTES]; /* a path, or the end of one */
	const char *symbol;
	struct event *event;
	struct probe_links *links;
	const struct elf_file *done[FILES_MAX];
	size_t n_done;
	unsigned without_symbol; /* files of that name that have no such symbol */
};

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	const char *colon = strchr(argument, ':');
	char *end = NULL;

	if (!colon || colon == argument || !colon[1])
		return err__set(err, -EINVAL,
				"a uprobe is uprobe:FILE:SYMBOL or uprobe:FILE:0xOFFSET, such as "
				"uprobe:libc.so.6:malloc, not uprobe:%s",
				argument);
	errno = 0;
	if (isdigit((unsigned char)colon[1]) &&
	    (strncmp(colon + 1, "0x", 2) != 0 || !isxdigit((unsigned char)colon[3]) ||
	     !strtoull(colon + 1, &end, 16) || *end || errno))
		return err__set(err, -EINVAL,
				"the place in uprobe:%s is neither a symbol nor an offset in the "
				"file such as 0x1a30",
				argument);
	return 0;
}

/* In any of the tables that there are. */
static int find_symbol(const struct elf_file *file, const char *symbol, uint64_t *ret_vaddr)
{
	struct elf_file *other = NULL;
	int code = elf_file__find_symbol(file, symbol, ret_vaddr, NULL);

	if (!code)
		return 0;
	if (!minidebug__open(file, &other))
		code = elf_file__find_symbol(other, symbol, ret_vaddr, NULL);
	elf_file__free(other);
	other = NULL;
	if (code && !debugfile__open(file, "", false, &other))
		code = elf_file__find_symbol(other, symbol, ret_vaddr, NULL);
	elf_file__free(other);
	return code;
}

static int find_place(const struct elf_file *file, const char *symbol, uint64_t *ret_vaddr)
{
	if (strncmp(symbol, "0x", 2) != 0)
		return find_symbol(file, symbol, ret_vaddr);
	return elf_file__offset_to_vaddr(file, strtoull(symbol, NULL, 16), ret_vaddr) ? 0 : -ENOENT;
}

static int attach_in(struct uprobe *uprobe, const struct elf_file *file, struct err *err)
{
	struct probe_point point = { .file = file, .cookie = uprobe->event->number };
	int code;

	for (size_t i = 0; i < uprobe->n_done; i++)
		if (uprobe->done[i] == file)
			return 0;
	if (uprobe->n_done == FILES_MAX)
		return err__set(err, -E2BIG, "%s: there are more than %d such files",
				uprobe->event->spec.name, FILES_MAX);
	if (find_place(file, uprobe->symbol, &point.pc_vaddr)) {
		uprobe->without_symbol++;
		return 0;
	}
	code = probe_links__attach(uprobe->links, uprobe->event->program, -1, &point, 1, err);
	if (!code)
		uprobe->done[uprobe->n_done++] = file;
	return code;
}

static int attach_mapped(struct uprobe *uprobe, const struct tracker *tracker, struct err *err)
{
	struct process *process;
	int code = 0;

	for (process = tracker__first(tracker); !code && process; process = process->hh.next)
		for (size_t i = 0; !code && i < process->n_mapped; i++)
			if (process->mapped[i].image && process->mapped[i].image->file &&
			    path__ends_with(process->mapped[i].path, uprobe->file))
				code = attach_in(uprobe, process->mapped[i].image->file, err);
	return code;
}

/* 1: there is no such file. */
static int attach_path(struct uprobe *uprobe, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	struct elf_file *file;

	if (fd < 0)
		return 1;
	if (elf_file__open(fd, path, &file, NULL))
		return 1;
	code = attach_in(uprobe, file, err);
	if (uprobe->n_done && uprobe->done[uprobe->n_done - 1] == file)
		uprobe->done[uprobe->n_done - 1] = NULL; /* another may get the address */
	elf_file__free(file);
	return code;
}

/* What is not mapped yet: a library, or the program itself, of a command that is to be started. */
static int attach_named(struct uprobe *uprobe, struct err *err)
{
	static const char *const folders[] = { "/lib/x86_64-linux-gnu",
					       "/usr/lib/x86_64-linux-gnu",
					       "/lib64",
					       "/usr/lib64",
					       "/lib",
					       "/usr/lib",
					       "/usr/local/lib",
					       NULL };
	const char *paths = getenv("PATH");
	char path[PATH_BYTES];
	int code = 1;

	if (strchr(uprobe->file, '/'))
		return attach_path(uprobe, uprobe->file, err);
	for (int i = 0; code == 1 && folders[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], uprobe->file);
		code = attach_path(uprobe, path, err);
	}
	for (; code == 1 && paths && *paths; paths += strspn(paths, ":")) {
		size_t len = strcspn(paths, ":");

		snprintf(path, sizeof(path), "%.*s/%s", (int)min_of(len, sizeof(path) / 2), paths,
			 uprobe->file);
		code = attach_path(uprobe, path, err);
		paths += len;
	}
	return code;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct uprobe *uprobe = calloc(1, sizeof(*uprobe));
	int code;

	if (!uprobe)
		return err__set(err, -ENOMEM, "out of memory");
	event->own = uprobe;
	snprintf(uprobe->file, sizeof(uprobe->file), "%s", event__argument(&event->spec));
	uprobe->symbol = strchr(event__argument(&event->spec), ':') + 1;
	*strchr(uprobe->file, ':') = '\0';
	uprobe->event = event;
	uprobe->links = probe_links__new();
	if (!uprobe->links)
		return err__set(err, -ENOMEM, "out of memory");
	code = attach_mapped(uprobe, place->tracker, err);
	if (!code && !uprobe->n_done)
		code = attach_named(uprobe, err);
	if (code < 0 || uprobe->n_done)
		return code;
	if (uprobe->without_symbol)
		return err__set(err, -ENOENT,
				"%s has no symbol %s, in no symbol table that there is",
				uprobe->file, uprobe->symbol);
	return err__set(err, -ENOENT,
			"no target has mapped a file %s, and there is none of that name here: give "
			"its path",
			uprobe->file);
}

static void detach(struct event *event)
{
	struct uprobe *uprobe = event->own;

	probe_links__free(uprobe->links);
	free(uprobe);
}

const struct event_kind event_uprobe = {
	.name = "uprobe",
	.argument = "FILE:SYMBOL",
	.unit = "count",
	.help = "A function of a program or library is called: uprobe:libc.so.6:malloc",
	.type = CHAIN_UPROBE,
	.mapped = true,
	.parse = parse,
	.attach = attach,
	.detach = detach,
};
