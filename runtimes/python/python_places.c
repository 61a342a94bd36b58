// SPDX-License-Identifier: GPL-2.0-or-later
/* asyncio has its tasks in a set of weak references in the module asyncio.tasks. From 3.14 on the
 * set has only tasks whose class is written in Python. Other tasks are in lists of the threads that
 * they run in, or in a list of the interpreter if the thread has ended.
 *
 * A poll of a part of the tasks reads a window of the set's table that begins at a random slot. A
 * list has no random access. Lists of more than NODES_MAX nodes are read in a round of polls. Each
 * poll begins where the last one ended. Each task is read once a round. */
#include "runtimes/python/python_places.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define WORD 8

/* Include/object.h, Include/cpython/setobject.h, Include/cpython/weakrefobject.h,
 * Include/cpython/dictobject.h: the same in all of these versions. */
#define SET_MASK       32
#define SET_TABLE      40
#define WEAKREF_OBJECT 16
#define DICT_USED      16

#define SET_SLOTS_MAX	 (1U << 22)
#define CHUNK_SLOTS	 1024 /* slots in one read */
#define WINDOW_SLOTS	 4096 /* slots in a poll of a part */
#define NODES_MAX	 2048 /* nodes of lists in a poll of a part */
#define TASKS_MAX	 200000
#define LISTS_MAX	 1024
#define INTERPRETERS_MAX 256

#define LISTS_SINCE 14 /* 3.14 */

struct set_slot { /* setentry */
	uint64_t key;
	int64_t hash;
};
#define HASH_REMOVED (-1)

static uint64_t word_at(struct python_task_reader *reader, uint64_t at)
{
	return python_reader__at(&reader->reader, at);
}

uint64_t python_places__random(struct python_task_places *places, uint64_t n)
{
	uint64_t x = places->random ?: now_ns() | 1;

	/* xorshift64*: Marsaglia 2003, Vigna 2016 */
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	places->random = x;
	return (x * 0x2545F4914F6CDD1DULL >> 11) % n;
}

static int add(struct python_found *found, const struct python_found_task *task)
{
	if (found->n >= TASKS_MAX) {
		found->cut = true;
		return 0;
	}
	if (array__reserve(&found->list, &found->cap, found->n + 1, sizeof(*found->list)))
		return -ENOMEM;
	found->list[found->n++] = *task;
	return 0;
}

uint64_t python_places__task(struct python_task_reader *reader,
			     const struct python_found_task *found)
{
	return found->is_reference
		       ? python_object__field(&reader->reader, found->at, WEAKREF_OBJECT)
		       : found->at;
}

/* --- the set --- */

static struct python_task_set *cached_set(struct python_task_places *places, uint64_t interpreter)
{
	for (size_t i = 0; i < places->n_sets; i++)
		if (places->sets[i].interpreter == interpreter)
			return &places->sets[i];
	if (places->n_sets == PYTHON_TASK_SETS)
		places->n_sets = 0;
	places->sets[places->n_sets] = (struct python_task_set) { interpreter, 0, 0 };
	return &places->sets[places->n_sets++];
}

/* Returns the set of the interpreter's asyncio; 0: the module is not loaded. The search reads all
 * keys of sys.modules, so that it is repeated only if modules were added. */
static uint64_t find_set(struct python_task_places *places, struct python_task_reader *reader,
			 uint64_t interpreter)
{
	const struct python_version *version = reader->reader.version;
	const char *name = version->minor < 12 ? "_all_tasks" : "_scheduled_tasks";
	struct python_task_set *cached = cached_set(places, interpreter);
	uint64_t modules = word_at(reader, interpreter + version->modules), module, set, n;

	n = modules ? python_object__field(&reader->reader, modules, DICT_USED) : 0;
	if (cached->n_modules == n && n)
		return cached->set;
	module = python_dict__get(&reader->reader, modules, "asyncio.tasks");
	set = module ? python_module__get(&reader->reader, module, name) : 0;
	set = set ? python_object__get(&reader->reader, set, "data") : 0;
	/* A module without the set is being imported. */
	*cached = (struct python_task_set) { interpreter, module && !set ? 0 : n, set };
	return set;
}

/* Adds the tasks in @n slots of the table, from slot @first on. */
static int read_slots(struct python_task_reader *reader, uint64_t table, uint64_t first, uint64_t n,
		      struct python_found_task *task, struct python_found *ret)
{
	struct set_slot slots[CHUNK_SLOTS];
	int code = 0;

	for (uint64_t i = first, part; !code && i < first + n; i += part) {
		part = min_of(first + n - i, (uint64_t)CHUNK_SLOTS);
		if (!python_reader__bytes(&reader->reader, table + i * sizeof(*slots), slots,
					  part * sizeof(*slots)))
			return 0;
		for (uint64_t k = 0; !code && k < part; k++) {
			task->at = slots[k].key;
			if (task->at && slots[k].hash != HASH_REMOVED)
				code = add(ret, task);
		}
	}
	return code;
}

/* Adds the tasks in the set, or in a window of @window slots. */
static int read_set(struct python_task_places *places, struct python_task_reader *reader,
		    uint64_t interpreter, uint64_t window, struct python_found *ret)
{
	struct python_found_task task = { .interpreter = interpreter, .is_reference = true };
	uint64_t set = find_set(places, reader, interpreter), slots, table, first, n;
	int code;

	if (!set || !python_object__is(&reader->reader, set, "set"))
		return 0;
	slots = python_object__field(&reader->reader, set, SET_MASK) + 1;
	table = python_object__field(&reader->reader, set, SET_TABLE);
	if (!table || !slots || slots > SET_SLOTS_MAX || slots & (slots - 1))
		return 0;
	window = min_of(window, slots);
	task.stands_for = slots / window; /* both are powers of two */
	first = window < slots ? python_places__random(places, slots) : 0;
	n = min_of(window, slots - first);
	code = read_slots(reader, table, first, n, &task, ret);
	return code ?: read_slots(reader, table, 0, window - n, &task, ret);
}

/* --- the lists --- */

struct list {
	uint64_t head, interpreter;
};

/* Puts the heads of the interpreter's lists behind the @n that there are. Returns their number. */
static size_t find_lists(struct python_task_reader *reader, uint64_t interpreter,
			 struct list lists[LISTS_MAX], size_t n)
{
	const struct python_asyncio *asyncio = reader->asyncio;
	uint64_t at = word_at(reader, interpreter + reader->reader.version->offsets.interp_threads);

	if (n < LISTS_MAX)
		lists[n++] =
			(struct list) { interpreter + asyncio->interpreter_tasks, interpreter };
	for (; at && n < LISTS_MAX; at = word_at(reader, at + PYTHON_TSTATE_NEXT))
		lists[n++] = (struct list) { at + asyncio->thread_tasks, interpreter };
	return n;
}

/* Include/internal/pycore_llist.h: a circle of {next, previous}. */
static bool is_linked(struct python_task_reader *reader, uint64_t node)
{
	return word_at(reader, word_at(reader, node + WORD)) == node;
}

static bool is_task_of_node(struct python_task_reader *reader, uint64_t node)
{
	return python_task__kinds(reader, node - reader->asyncio->task_node) & PYTHON_C_TASK;
}

/* Adds up to *@left tasks of the list, from *@node on, and sets *@node to the next one; 0: the list
 * ends. @ret NULL: counts only. */
static int read_list(struct python_task_reader *reader, const struct list *list, uint64_t *node,
		     uint64_t *left, struct python_found *ret)
{
	struct python_found_task task = { .interpreter = list->interpreter, .stands_for = 1 };
	int code = 0;

	for (; !code && *left && *node && *node != list->head; --*left) {
		task.at = *node - reader->asyncio->task_node;
		if (ret)
			code = add(ret, &task);
		*node = word_at(reader, *node);
	}
	if (*node == list->head)
		*node = 0;
	return code;
}

/* Returns the number of all nodes, up to TASKS_MAX. */
static uint64_t count_nodes(struct python_task_reader *reader, const struct list *lists, size_t n)
{
	uint64_t left = TASKS_MAX, node;

	for (size_t i = 0; i < n && left; i++) {
		node = word_at(reader, lists[i].head);
		read_list(reader, &lists[i], &node, &left, NULL);
	}
	return TASKS_MAX - left;
}

static size_t index_of(const struct list *lists, size_t n, uint64_t head)
{
	size_t i = 0;

	while (i < n && lists[i].head != head)
		i++;
	return i;
}

/* Returns the list with which the poll begins, and its node in *@ret_node; 0: the first one. */
static size_t begin_poll(struct python_task_places *places, struct python_task_reader *reader,
			 const struct list *lists, size_t n, uint64_t *ret_node)
{
	size_t i = places->node ? index_of(lists, n, places->list) : n;

	*ret_node = places->node;
	places->node = 0;
	if (i < n && is_task_of_node(reader, *ret_node) && is_linked(reader, *ret_node))
		return i;
	*ret_node = 0;
	places->polls = 0;
	return 0;
}

/* Adds the tasks of the part of the round that is due. */
static int read_round(struct python_task_places *places, struct python_task_reader *reader,
		      const struct list *lists, size_t n, struct python_found *ret)
{
	uint64_t node, left = NODES_MAX;
	size_t first = ret->n, i = begin_poll(places, reader, lists, n, &node);
	int code = 0;

	for (; !code && i < n; i++, node = 0) {
		node = node ?: word_at(reader, lists[i].head);
		code = read_list(reader, &lists[i], &node, &left, ret);
		if (!left && node) {
			places->list = lists[i].head;
			places->node = node;
			break;
		}
	}
	if (!places->polls)
		places->polls =
			places->node ? (count_nodes(reader, lists, n) + NODES_MAX - 1) / NODES_MAX
				     : 1;
	for (i = first; i < ret->n; i++)
		ret->list[i].stands_for = places->polls;
	return code;
}

static int read_lists(struct python_task_places *places, struct python_task_reader *reader,
		      const struct list *lists, size_t n, bool all, struct python_found *ret)
{
	uint64_t node, left = TASKS_MAX;
	int code = 0;

	if (!all)
		return read_round(places, reader, lists, n, ret);
	for (size_t i = 0; !code && i < n; i++) {
		node = word_at(reader, lists[i].head);
		code = read_list(reader, &lists[i], &node, &left, ret);
	}
	ret->cut = ret->cut || !left;
	return code;
}

/* --- all of them --- */

/* Searches for the process's description of its tasks once asyncio is loaded. */
static void describe(struct python_threads *process, struct python_task_reader *reader)
{
	struct python_task_places *places = &process->places;
	bool is_loaded = false;

	for (size_t i = 0; i < places->n_sets; i++)
		is_loaded = is_loaded || places->sets[i].set;
	if (process->version.minor < LISTS_SINCE || !is_loaded)
		return;
	if (!places->searched_lists)
		places->has_lists = !python_asyncio__find(process->pid, &places->asyncio);
	places->searched_lists = true;
	if (places->has_lists)
		reader->asyncio = &places->asyncio;
}

static int find(struct python_threads *process, struct python_task_reader *reader, bool all,
		struct python_found *ret)
{
	uint64_t interpreter = word_at(reader, process->interpreters);
	size_t n = 0;
	struct list *lists;
	int code = 0;

	lists = calloc(LISTS_MAX, sizeof(*lists));
	if (!lists)
		return -ENOMEM;
	for (int i = 0; !code && interpreter && i < INTERPRETERS_MAX; i++) {
		code = read_set(&process->places, reader, interpreter,
				all ? SET_SLOTS_MAX : WINDOW_SLOTS, ret);
		describe(process, reader);
		if (reader->asyncio)
			n = find_lists(reader, interpreter, lists, n);
		interpreter = word_at(reader, interpreter + process->version.offsets.interp_next);
	}
	if (!code && n)
		code = read_lists(&process->places, reader, lists, n, all, ret);
	free(lists);
	return code;
}

int python_places__all(struct python_threads *process, struct python_task_reader *reader,
		       struct python_found *ret)
{
	return find(process, reader, true, ret);
}

int python_places__some(struct python_threads *process, struct python_task_reader *reader,
			struct python_found *ret)
{
	return find(process, reader, false, ret);
}
