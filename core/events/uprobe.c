// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/debugfile.h"
#include "core/elf/minidebug.h"
#include "core/events/return_points.h"
#include "core/events/uprobe_pattern.h"
#include "core/kernel/uprobe_multi.h"
#include "core/target/tracker.h"
#include "probes/probe_set.h"
#include "probes/usdt.h"
#include "probes/usdt_args.h"

/* Places in a code file, in targets that map the file: a function's start, its return, or the sites
 * of a probe that the program was built with. They are attached in the files of that name that
 * targets mapped. If there are none, they are attached in the file that a program here would find
 * by the name. */

#define FILES_MAX  16 /* files of one name, for example in containers */
#define PATH_BYTES 1024
#define SINGLE_MAX 64 /* functions of a pattern, if each has a link of its own */

struct uprobe {
	char file[EVENT_NAME_BYTES]; /* a path, or the end of one */
	const char *place;	     /* a symbol, an offset, or PROVIDER:NAME */
	const struct event_spec *at;
	struct event *event;
	const struct bpf_program *program;
	bool begins;
	uint64_t values; /* part of the cookies: the values at each place */
	bool force;	 /* replace return addresses if there is no other way */
	const struct elf_file *done[FILES_MAX];
	size_t n_done;
	unsigned without;    /* number of files of that name without such a place */
	char available[300]; /* probes of the last such file, if it is a USDT probe */
};

/* Marks an event at all functions or probes that match a pattern. */
static int parse_pattern(struct event_spec *spec, const char *pattern, struct err *err)
{
	if (spec->kind == &event_uretprobe)
		return err__set(err, -EINVAL,
				"a pattern is for calls, not for returns: write uprobe:, or name "
				"one function instead of %s",
				pattern);
	for (uint32_t i = 0; i < spec->values.n; i++)
		if (!strcmp(event_value__name(&spec->values.list[i]), PLACE_NAME))
			return err__set(err, -EINVAL,
					"the value " PLACE_NAME " of %s has the name of the "
					"function that was called. Choose another name",
					spec->name);
	spec->values.by_place = true;
	return 0;
}

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec), *kind = spec->kind->name;
	const char *colon = strchr(argument, ':');
	char *end = NULL;

	if (!colon || colon == argument || !colon[1])
		return err__set(err, -EINVAL,
				"a %s is %s:FILE:SYMBOL or %s:FILE:0xOFFSET, such as "
				"%s:libc.so.6:malloc, not %s:%s",
				kind, kind, kind, kind, kind, argument);
	errno = 0;
	if (is_pattern(colon + 1))
		return parse_pattern(spec, colon + 1, err);
	if (isdigit((unsigned char)colon[1]) &&
	    (strncmp(colon + 1, "0x", 2) != 0 || !isxdigit((unsigned char)colon[3]) ||
	     !strtoull(colon + 1, &end, 16) || *end || errno))
		return err__set(err, -EINVAL,
				"the location in %s:%s is neither a symbol nor an offset in the "
				"file, such as 0x1a30",
				kind, argument);
	return 0;
}

static int parse_usdt(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	const char *colon = strchr(argument, ':');
	const char *second = colon ? strchr(colon + 1, ':') : NULL;

	if (colon && colon != argument && is_pattern(colon + 1))
		return parse_pattern(spec, colon + 1, err);
	if (!second || colon == argument || second == colon + 1 || !second[1])
		return err__set(err, -EINVAL,
				"a USDT probe is usdt:FILE:PROVIDER:NAME, such as "
				"usdt:libstdc++.so.6:libstdcxx:throw, not usdt:%s",
				argument);
	return 0;
}

static int set_values(struct event_spec *spec, struct err *err)
{
	return event_values__of_entry(&spec->values, spec->kind->name, err);
}

static int set_result(struct event_spec *spec, struct err *err)
{
	return event_values__of_return(&spec->values, spec->kind->name, err);
}

/* The places of a USDT probe's arguments depend on the site: see attach_sites(). */
static int set_arguments(struct event_spec *spec, struct err *err)
{
	struct event_values *values = &spec->values;
	int code = event_values__check_paths(values, err);

	if (code)
		return code;
	for (; values->is_all && values->n < VALUES_MAX; values->n++) {
		struct event_value *value = &values->list[values->n];

		value->argument = values->n + 1;
		snprintf(value->label, sizeof(value->label), VALUE_LABEL "arg%u", value->argument);
	}
	return 0;
}

/* Finds a symbol in all available tables. */
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

static int attach_return(struct uprobe *uprobe, const struct elf_file *file, uint64_t vaddr,
			 struct err *err)
{
	const struct return_wish wish = { .vaddr = vaddr,
					  .cookie = event__cookie(uprobe->event, false) |
						    uprobe->values,
					  .call = uprobe->at->call,
					  .force = uprobe->force,
					  .name = uprobe->place };
	struct return_points points = {};
	int ret = return_points__find(file, &wish, &points, err);

	if (!ret)
		ret = probe_set__attach(uprobe->event->probes, uprobe->program, points.list,
					points.n, err);
	if (!ret && points.replaces)
		snprintf(uprobe->event->caution, sizeof(uprobe->event->caution),
			 "--force: an exception, a longjmp or a switch of stacks through %s aborts "
			 "the process",
			 uprobe->place);
	return ret;
}

/* Returns the part of the cookie that says at which function or probe the trigger is. Stores it in
 * *@ret. Returns 0 or -E2BIG with a message. */
static int cookie_of_place(struct uprobe *uprobe, const char *name, uint64_t *ret, struct err *err)
{
	uint32_t place;

	*ret = 0;
	if (!uprobe->at->values.by_place || uprobe->begins)
		return 0;
	place = event_places__add(&uprobe->event->places, name);
	*ret = (uint64_t)place << COOKIE_PLACE_SHIFT;
	return place ? 0
		     : err__set(err, -E2BIG,
				"%s matches more than %d names. Make the pattern narrower",
				uprobe->event->spec.name, EVENT_PLACES_MAX);
}

/* Attaches to all functions that match the pattern. */
static int attach_matching(struct uprobe *uprobe, const struct elf_file *file, struct err *err)
{
	struct matched_functions functions = {};
	int code = matched_functions__find(file, uprobe->place, &functions, err);
	struct probe_point *points = calloc(functions.n + 1, sizeof(*points));

	if (!points)
		code = err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !code && i < functions.n; i++) {
		uint64_t place;

		code = cookie_of_place(uprobe, functions.list[i].name, &place, err);
		points[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = functions.list[i].vaddr,
						   .cookie = event__cookie(uprobe->event,
									   uprobe->begins) |
							     uprobe->values | place };
	}
	if (!code && !functions.n)
		code = -ENOENT;
	if (!code && functions.n > SINGLE_MAX && !uprobe_multi__is_set(uprobe->program))
		code = err__set(err, -E2BIG,
				"%s matches %zu functions of %s, and this kernel attaches them one "
				"by one (it has no uprobe_multi): at most %d can be probed. Make "
				"the pattern narrower",
				uprobe->place, functions.n, uprobe->file, SINGLE_MAX);
	if (!code)
		code = probe_set__attach(uprobe->event->probes, uprobe->program, points,
					 functions.n, err);
	free(points);
	matched_functions__done(&functions);
	return code;
}

static int attach_place(struct uprobe *uprobe, const struct elf_file *file, struct err *err)
{
	struct probe_point point = { .file = file,
				     .cookie = event__cookie(uprobe->event, uprobe->begins) |
					       uprobe->values };

	if (uprobe->at->values.by_place)
		return attach_matching(uprobe, file, err);
	if (find_place(file, uprobe->place, &point.pc_vaddr))
		return -ENOENT;
	if (uprobe->at->kind == &event_uretprobe)
		return attach_return(uprobe, file, point.pc_vaddr, err);
	if (uprobe->at->call)
		point.cookie |= COOKIE_FRAME;
	return probe_set__attach(uprobe->event->probes, uprobe->program, &point, 1, err);
}

static void note_available(struct uprobe *uprobe, const struct usdt_site *site)
{
	size_t used = strlen(uprobe->available);
	char one[100];

	snprintf(one, sizeof(one), "%.40s:%.40s", site->provider, site->name);
	if (strstr(uprobe->available, one) || used + strlen(one) + 8 > sizeof(uprobe->available))
		return;
	snprintf(uprobe->available + used, sizeof(uprobe->available) - used, "%s%s",
		 used ? ", " : "", one);
}

/* Sets the values of a site, whose arguments are where its note says. */
static int put_arguments(struct uprobe *uprobe, const struct elf_file *file,
			 const struct usdt_site *site, uint64_t *ret_cookie, struct err *err)
{
	const struct event_values *values = &uprobe->at->values;
	struct probe_arg args[USDT_ARGS_MAX];
	struct value_list list = {};
	int n, code;

	*ret_cookie = 0;
	if (!values->n || uprobe->begins)
		return 0;
	n = usdt_args__parse(site->arguments, file, site->pc_vaddr, args, err);
	if (n == -ENOTSUP && values->is_all) /* a register that probes cannot read */
		return 0;
	code = n < 0 ? n : event_values__of_site(values, args, n, &list, err);
	return code ? code : event__put_values(uprobe->event, &list, ret_cookie, err);
}

#define SITE_NAME_BYTES 200

/* Writes PROVIDER:NAME. */
static void site__name(const struct usdt_site *site, char *ret, size_t size)
{
	snprintf(ret, size, "%s:%s", site->provider, site->name);
}

static bool is_sought(const struct uprobe *uprobe, const struct usdt_site *site)
{
	char name[SITE_NAME_BYTES];

	site__name(site, name, sizeof(name));
	return uprobe->at->values.by_place ? !fnmatch(uprobe->place, name, 0)
					   : !strcmp(uprobe->place, name);
}

/* Attaches to all sites of the probe. */
static int attach_sites(struct uprobe *uprobe, const struct elf_file *file, struct err *err)
{
	struct usdt_sites sites = {};
	bool found = false;
	uint64_t values, place;
	char name[SITE_NAME_BYTES];
	int code = usdt__read(file, &sites, err);

	for (size_t i = 0; !code && i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];
		struct probe_point point = { .file = file,
					     .pc_vaddr = site->pc_vaddr,
					     .semaphore_vaddr = site->semaphore_vaddr,
					     .cookie =
						     event__cookie(uprobe->event, uprobe->begins) };

		if (!is_sought(uprobe, site)) {
			note_available(uprobe, site);
			continue;
		}
		found = true;
		site__name(site, name, sizeof(name));
		code = put_arguments(uprobe, file, site, &values, err);
		if (!code)
			code = cookie_of_place(uprobe, name, &place, err);
		if (code)
			break;
		point.cookie |= values | place;
		code = probe_set__attach(uprobe->event->probes, uprobe->program, &point, 1, err);
	}
	usdt_sites__done(&sites);
	return code ? code : found ? 0 : -ENOENT;
}

static int attach_in(struct uprobe *uprobe, const struct elf_file *file, struct err *err)
{
	struct err ignored = {};
	int code;

	for (size_t i = 0; i < uprobe->n_done; i++)
		if (uprobe->done[i] == file)
			return 0;
	if (uprobe->n_done == FILES_MAX)
		return err__set(err, -E2BIG, "cannot attach %s: more than %d files match",
				uprobe->event->spec.name, FILES_MAX);
	code = uprobe->at->kind == &event_usdt ? attach_sites(uprobe, file, &ignored)
					       : attach_place(uprobe, file, &ignored);
	if (code == -ENOENT || code == -EBADMSG) {
		uprobe->without++;
		return 0;
	}
	if (code)
		return err__set(err, code, "%s", ignored.text);
	uprobe->done[uprobe->n_done++] = file;
	return 0;
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

/* Attaches in the file at @path. Returns 1 if there is no such file. */
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
		uprobe->done[uprobe->n_done - 1] = NULL; /* another file may get the address */
	elf_file__free(file);
	return code;
}

/* Attaches in a file that is not mapped yet: a library, or the program itself, of a command that is
 * about to start. */
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

/* Returns the error for a path to a file that is neither a program nor a library; else 0. */
static int check_path(const char *path, struct err *err)
{
	struct elf_file *file = NULL;
	int fd, ret;

	if (!strchr(path, '/'))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : err__set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	ret = elf_file__open(fd, path, &file, err);
	elf_file__free(file);
	return ret;
}

static int refuse(const struct uprobe *uprobe, struct err *err)
{
	int ret = uprobe->without ? 0 : check_path(uprobe->file, err);

	if (ret)
		return ret;
	if (!uprobe->without)
		return err__set(err, -ENOENT,
				"no target has mapped a file %s, and braid finds no file of that "
				"name. Give its path",
				uprobe->file);
	if (uprobe->at->kind != &event_usdt && uprobe->at->values.by_place)
		return err__set(err, -ENOENT,
				"no function of %s matches %s in any available symbol table",
				uprobe->file, uprobe->place);
	if (uprobe->at->kind != &event_usdt)
		return err__set(err, -ENOENT, "%s has no symbol %s in any available symbol table",
				uprobe->file, uprobe->place);
	return err__set(err, -ENOENT, "%s has no probe %s: %s%s", uprobe->file, uprobe->place,
			uprobe->available[0] ? "it has " : "it was built without probes",
			uprobe->available);
}

static int attach_at(struct event *event, const struct event_spec *at, bool begins,
		     const struct event_place *place, struct err *err)
{
	struct uprobe uprobe = { .event = event,
				 .at = at,
				 .program = kernel_half__trigger(event->half, CHAIN_UPROBE,
								 event->number),
				 .begins = begins,
				 .force = place->force,
				 .place = strchr(event__argument(at), ':') + 1 };
	int code;

	snprintf(uprobe.file, sizeof(uprobe.file), "%s", event__argument(at));
	*strchr(uprobe.file, ':') = '\0';
	code = event__open_probes(event, place, err);
	if (!code && !begins && at->kind != &event_usdt)
		code = event__put_spec_values(event, at, &uprobe.values, err);
	if (!code)
		code = attach_mapped(&uprobe, place->tracker, err);
	if (!code && !uprobe.n_done)
		code = attach_named(&uprobe, err);
	return code < 0 || uprobe.n_done ? code : refuse(&uprobe, err);
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	return attach_at(event, &event->spec, false, place, err);
}

#define UPROBE                                                                   \
	.unit = "count", .type = CHAIN_UPROBE, .mapped = true, .attach = attach, \
	.attach_at = attach_at

const struct event_kind event_uprobe = {
	.name = "uprobe",
	.argument = "FILE:SYMBOL",
	.help = "Calls of a function of a program or library, or of all that match a pattern: "
		"uprobe:libc.so.6:malloc, uprobe:libpq.so.5:PQ*",
	.parse = parse,
	.values = set_values,
	UPROBE,
};

const struct event_kind event_uretprobe = {
	.name = "uretprobe",
	.argument = "FILE:SYMBOL",
	.help = "Returns of such a function, with the caller's stack: uretprobe:libc.so.6:malloc",
	.parse = parse,
	.values = set_result,
	UPROBE,
};

const struct event_kind event_usdt = {
	.name = "usdt",
	.argument = "FILE:PROVIDER:NAME",
	.help = "A static probe (USDT) of a program or library: "
		"usdt:libstdc++.so.6:libstdcxx:throw",
	.parse = parse_usdt,
	.values = set_arguments,
	UPROBE,
};
