// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/return_points.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"

#define JUMPS_AWAY "it may end by jumping to a function of another library"

static void add(struct return_points *points, const struct elf_file *file, uint64_t vaddr,
		uint64_t cookie)
{
	points->list[points->n++] =
		(struct probe_point) { .file = file, .pc_vaddr = vaddr, .cookie = cookie };
}

/* Adds all returns. A return that is shared with other functions belongs to this function only if
 * the call's entry was seen. */
static void add_all(struct return_points *points, const struct elf_file *file,
		    const struct return_wish *wish, const struct function_returns *returns)
{
	uint64_t cookie = wish->cookie | COOKIE_AT_RET;

	if (wish->call)
		cookie |= COOKIE_FRAME | COOKIE_TIMED;
	if (returns->shared)
		cookie |= COOKIE_FRAME | COOKIE_SHARED;
	for (size_t i = 0; i < returns->n; i++)
		add(points, file, returns->list[i], cookie);
	if (returns->shared && !wish->call)
		add(points, file, wish->vaddr, wish->cookie | COOKIE_FRAME | COOKIE_ENTERS);
}

static int refuse(const struct return_wish *wish, const char *why, struct err *err)
{
	return err__set(err, -ENOTSUP,
			"cannot probe the returns of %s: %s. --force replaces its return addresses "
			"instead, which aborts the process if an exception, a longjmp or a switch "
			"of stacks passes one. uprobe:, for its calls, is harmless",
			wish->name, why);
}

int return_points__find(const struct elf_file *file, const struct return_wish *wish,
			struct return_points *points, struct err *err)
{
	struct function_returns returns;
	struct function_map *map = NULL;
	struct err why = {};
	int ret = function_map__new(file, &map);

	points->n = 0;
	points->replaces = false;
	if (!ret)
		ret = function_returns__find(map, wish->vaddr, false, &returns, &why);
	function_map__free(map);
	if (!ret && returns.n_jumps)
		ret = err__set(&why, -ENOTSUP, JUMPS_AWAY);
	if (ret == -ENOMEM)
		return err__set(err, ret, "out of memory");
	if (!ret) {
		add_all(points, file, wish, &returns);
		return 0;
	}
	if (!wish->force)
		return refuse(wish, why.text, err);
	add(points, file, wish->vaddr,
	    wish->cookie | (wish->call ? COOKIE_FRAME | COOKIE_TIMED : 0));
	points->list[0].retprobe = points->replaces = true;
	return 0;
}

/* --- several functions --- */

static int append(struct return_list *list, const struct probe_point *point)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->list[i].pc_vaddr == point->pc_vaddr && !point->retprobe)
			return 0;
	if (array__reserve(&list->list, &list->cap, list->n + 1, sizeof(*list->list)))
		return -ENOMEM;
	list->list[list->n++] = *point;
	return 0;
}

static void note_left_out(struct return_list *list, const char *name, const char *why)
{
	char names[80] = "";
	const char *end = strstr(list->left_out, " (");

	snprintf(names, sizeof(names), "%.*s", end ? (int)(end - list->left_out) : 0,
		 list->left_out);
	snprintf(list->left_out, sizeof(list->left_out), "%s%s%s (%.120s)", names,
		 *names ? ", " : "", name, why);
}

int return_list__add(struct return_list *list, const struct elf_file *file,
		     const struct function_map *map, const struct listed_function *function,
		     bool *ret_added)
{
	struct probe_point point = { .file = file, .cookie = function->cookie };
	struct function_returns returns;
	struct err why = {};
	int ret = function_returns__find(map, function->vaddr, function->through_stubs, &returns,
					 &why);

	if (ret == -ENOMEM)
		return ret;
	if (!ret && returns.n_jumps && !function->jump_cookie)
		ret = err__set(&why, -ENOTSUP, JUMPS_AWAY);
	*ret_added = !ret || function->force;
	if (!*ret_added)
		note_left_out(list, function->name, why.text);
	if (ret) {
		point.pc_vaddr = function->vaddr;
		point.retprobe = true;
		return function->force ? append(list, &point) : 0;
	}
	for (size_t i = 0; !ret && i < returns.n; i++) {
		point.pc_vaddr = returns.list[i];
		ret = append(list, &point);
	}
	for (size_t i = 0; !ret && i < returns.n_jumps; i++) {
		point.pc_vaddr = returns.jumps[i];
		point.cookie = function->jump_cookie;
		ret = append(list, &point);
	}
	return ret;
}

void return_list__done(struct return_list *list)
{
	free(list->list);
	*list = (struct return_list) {};
}
