// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/catalogue.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fnmatch.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/events/events.h"
#include "core/events/filter.h"
#include "core/events/perf.h"
#include "core/target/procfs.h"
#include "probes/usdt.h"

#define TRACEPOINT_PREFIX "btf_trace_"
#define TYPE_BYTES	  100
#define TYPE_DEPTH	  8

static int add(struct catalogue *catalogue, const char *name, const char *unit, const char *help)
{
	struct catalogue_line line = { .unit = unit };

	if (array__reserve(&catalogue->list, &catalogue->cap, catalogue->n + 1,
			   sizeof(*catalogue->list)))
		return -ENOMEM;
	line.name = strdup(name);
	line.help = strdup(help);
	catalogue->list[catalogue->n++] = line;
	return line.name && line.help ? 0 : -ENOMEM;
}

/* --- kinds, and events that perf counts --- */

static int add_counted(struct catalogue *catalogue)
{
	int ret = 0;

	for (const struct perf_name *name = perf_names; !ret && name->name; name++)
		if (name->help && perf__counts(name))
			ret = add(catalogue, name->name, "count", name->help);
	if (!ret && !catalogue->no_pmu)
		ret = add(catalogue, "rNNN", "count",
			  "The event with this hexadecimal number in the CPU's manual");
	return ret;
}

static int add_kinds(struct catalogue *catalogue)
{
	int ret = 0;

	for (int i = 0; !ret && event_kinds[i]; i++) {
		const struct event_kind *kind = event_kinds[i];
		char name[EVENT_NAME_BYTES];

		if (kind == &event_fault || kind == &event_software || kind == &event_pmu)
			continue; /* each of its names has a line */
		if (catalogue->no_kprobes &&
		    (kind == &event_kprobe || kind == &event_kretprobe || kind == &event_fentry))
			continue;
		event_kind__usage(kind, name, sizeof(name));
		ret = add(catalogue, name, kind->unit, kind->help);
	}
	return ret;
}

/* --- tracepoints --- */

/* Writes a type in C, unless it is complicated. */
static void write_type(const struct btf *btf, uint32_t id, int depth, char *ret)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const char *name = type ? btf__name_by_offset(btf, type->name_off) : NULL;
	size_t len;

	name = name && *name ? name : "?";
	if (!type || !id || !depth) {
		snprintf(ret, TYPE_BYTES, "void");
	} else if (btf_is_ptr(type)) {
		write_type(btf, type->type, depth - 1, ret);
		len = strlen(ret);
		snprintf(ret + len, TYPE_BYTES - len, "%s*", len && ret[len - 1] == '*' ? "" : " ");
	} else if (btf_is_mod(type)) {
		write_type(btf, type->type, depth - 1, ret);
	} else {
		snprintf(ret, TYPE_BYTES, "%s%.80s",
			 btf_is_struct(type)	 ? "struct "
			 : btf_is_union(type)	 ? "union "
			 : btf_is_any_enum(type) ? "enum "
						 : "",
			 btf_is_func_proto(type) ? "function" : name);
	}
}

static void write_arguments(const struct btf *btf, const char *tracepoint, char *ret, size_t size)
{
	bool named;
	const struct btf_type *proto = filter__arguments(btf, tracepoint, &named);
	size_t used = 0;

	ret[0] = '\0';
	for (int i = 1; proto && i < btf_vlen(proto) && used < size; i++) {
		const struct btf_param *param = &btf_params(proto)[i];
		char type[TYPE_BYTES] = "", number[16];

		snprintf(number, sizeof(number), "arg%d", i - 1);
		write_type(btf, param->type, TYPE_DEPTH, type);
		used += snprintf(ret + used, size - used, "%s%s%s%s", i > 1 ? ", " : "", type,
				 type[0] && type[strlen(type) - 1] == '*' ? "" : " ",
				 named ? btf__name_by_offset(btf, param->name_off) : number);
	}
}

/* Writes a tracepoint's name with a subsystem, mostly the first word of the name. The kernel's
 * types do not have the subsystem, and -e accepts any. */
static void write_name(const char *tracepoint, char *ret, size_t size)
{
	int len = strcspn(tracepoint, "_");

	if (!strcmp(tracepoint, "sys_enter") || !strcmp(tracepoint, "sys_exit"))
		snprintf(ret, size, "tracepoint:raw_syscalls:%s", tracepoint);
	else
		snprintf(ret, size, "tracepoint:%.*s:%s", len, tracepoint, tracepoint);
}

static int add_tracepoints(struct catalogue *catalogue)
{
	struct btf *btf = btf__load_vmlinux_btf();
	unsigned n = btf ? btf__type_cnt(btf) : 0;
	char name[EVENT_NAME_BYTES], arguments[600];
	int ret = 0;

	for (unsigned id = 1; !ret && id < n; id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *text;

		if (!btf_is_typedef(type))
			continue;
		text = btf__name_by_offset(btf, type->name_off);
		if (strncmp(text, TRACEPOINT_PREFIX, strlen(TRACEPOINT_PREFIX)) != 0)
			continue;
		text += strlen(TRACEPOINT_PREFIX);
		write_name(text, name, sizeof(name));
		write_arguments(btf, text, arguments, sizeof(arguments));
		ret = add(catalogue, name, event_tracepoint.unit, arguments);
	}
	btf__free(btf);
	return ret;
}

/* --- probes of a process --- */

static int add_sites(struct catalogue *catalogue, const char *path, const struct usdt_sites *sites)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < sites->n; i++) {
		const struct usdt_site *site = &sites->list[i];
		char name[EVENT_NAME_BYTES];

		snprintf(name, sizeof(name), "usdt:%.300s:%.80s:%.80s", path, site->provider,
			 site->name);
		ret = add(catalogue, name, event_usdt.unit, site->arguments);
	}
	return ret;
}

static int add_mapped(struct catalogue *catalogue, uint32_t pid,
		      const struct procfs_mapping *mapping)
{
	int fd = procfs__open_mapping(pid, mapping), ret = 0;
	struct usdt_sites sites = {};
	struct elf_file *file = NULL;

	if (fd < 0 || elf_file__open(fd, mapping->path, &file, NULL))
		return 0; /* `braid probes` reports unreadable files */
	if (!usdt__read(file, &sites, NULL))
		ret = add_sites(catalogue, mapping->path, &sites);
	usdt_sites__done(&sites);
	elf_file__free(file);
	return ret;
}

/* Returns true for the kernel's tracepoints, which are many and come last. */
static bool is_tracepoint(const char *name)
{
	return !strncmp(name, "tracepoint:", 11) && strncmp(name, "tracepoint:SYS", 14) != 0;
}

static int compare(const void *a, const void *b)
{
	const struct catalogue_line *one = a, *other = b;
	int order = is_tracepoint(one->name) - is_tracepoint(other->name);

	if (!order)
		order = strcasecmp(one->name, other->name);

	return order ? order : strcmp(one->help, other->help);
}

static void drop(struct catalogue_line *line)
{
	free(line->name);
	free(line->help);
}

/* Sorts the lines and removes duplicates: a probe has several sites, and a file several
 * mappings. */
static void sort(struct catalogue *catalogue)
{
	size_t n = 0;

	if (catalogue->n)
		qsort(catalogue->list, catalogue->n, sizeof(*catalogue->list), compare);
	for (size_t i = 0; i < catalogue->n; i++)
		if (n && !strcmp(catalogue->list[n - 1].name, catalogue->list[i].name))
			drop(&catalogue->list[i]);
		else
			catalogue->list[n++] = catalogue->list[i];
	catalogue->n = n;
}

int catalogue__read_process(uint32_t pid, struct catalogue *ret, struct err *err)
{
	struct procfs_mappings mappings = {};
	struct procfs_info info;
	int code = procfs__target(pid, &info, err);

	if (code)
		return code;
	code = procfs__mappings(info.pid, &mappings);
	if (code)
		return err__set(err, code, "cannot read the mappings of PID %u: %s", pid,
				strerror(-code));
	for (size_t i = 0; !code && i < mappings.n; i++)
		if (!mappings.list[i].anonymous)
			code = add_mapped(ret, info.pid, &mappings.list[i]);
	procfs_mappings__done(&mappings);
	sort(ret);
	return code ? err__set(err, code, "out of memory") : 0;
}

int catalogue__read(struct catalogue *ret, struct err *err)
{
	int code;

	ret->no_pmu = !perf__has_pmu();
	ret->no_kprobes = access(KPROBES_TYPE, F_OK);
	code = add_kinds(ret);
	if (!code)
		code = add_counted(ret);
	if (!code)
		code = add_tracepoints(ret);
	sort(ret);
	return code ? err__set(err, code, "out of memory") : 0;
}

static bool holds(const char *name, const char *pattern)
{
	return strpbrk(pattern, "*?[") ? !fnmatch(pattern, name, FNM_CASEFOLD)
				       : strcasestr(name, pattern) != NULL;
}

void catalogue__keep(struct catalogue *catalogue, const char *pattern)
{
	size_t n = 0;

	for (size_t i = 0; i < catalogue->n; i++)
		if (holds(catalogue->list[i].name, pattern))
			catalogue->list[n++] = catalogue->list[i];
		else
			drop(&catalogue->list[i]);
	catalogue->n = n;
}

struct nearest catalogue__nearest(const struct catalogue *catalogue, const char *requested)
{
	struct nearest nearest = nearest__to(requested, strlen(requested));

	for (size_t i = 0; i < catalogue->n; i++) {
		const char *name = catalogue->list[i].name, *last = strrchr(name, ':');

		nearest__add(&nearest, last && !strchr(requested, ':') ? last + 1 : name);
	}
	return nearest;
}

void catalogue__done(struct catalogue *catalogue)
{
	for (size_t i = 0; i < catalogue->n; i++)
		drop(&catalogue->list[i]);
	free(catalogue->list);
	*catalogue = (struct catalogue) {};
}
