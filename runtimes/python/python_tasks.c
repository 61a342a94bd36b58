// SPDX-License-Identifier: GPL-2.0-or-later
/* A task of asyncio has a coroutine, whose frame lies in the coroutine object. The awaited object
 * is on top of the frame's value stack: another coroutine, and so on, until another
 * object, such as a future. Frames of waiting coroutines are not linked to each other. The walker
 * gets a memory in which they are linked, and in which a thread runs the innermost one.
 *
 * asyncio has its tasks in a set of weak references in the module asyncio.tasks. From 3.14 on the
 * set has only tasks whose class is written in Python. Other tasks are in lists of the threads that
 * they run in, or in a list of the interpreter if the thread has ended. The layout of a task object
 * made in C differs by version. But it has one member that is a coroutine, and the task's name
 * behind that (Modules/_asynciomodule.c). */
#include "runtimes/python/python_tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/python/python_asyncio.h"
#include "runtimes/python/python_frames.h"
#include "runtimes/python/python_objects.h"

#define READS_MAX 400000 /* for one list, about 0.5 us each */
#define TASKS_MAX 10000
#define CHAIN_MAX 256 /* coroutines of one task */

/* Include/object.h, Include/cpython/setobject.h, Include/cpython/weakrefobject.h: the same in all
 * of these versions. */
#define SET_MASK       32
#define SET_TABLE      40
#define SET_ENTRY      16
#define WEAKREF_OBJECT 16
#define WORD	       8

#define TASK_BYTES    512 /* largest task object; 208 in 3.11 */
#define SET_SLOTS_MAX (1U << 20)

#define TAGS 7ULL /* tag bits of a reference, 3.14 on: Include/internal/pycore_stackref.h */

/* The version since which a frame has an index, or nothing, above the object that it iterates over
 * (GET_ITER of Python/bytecodes.c). */
#define INDEX_SINCE 15

#define LISTS_SINCE 14 /* 3.14 */

struct search {
	const struct python_version *version;
	struct python_reader reader;
	const struct python_layout *layout;
	bool has_lists;
	struct python_asyncio asyncio; /* then */
	uint64_t thread;	       /* a PyThreadState */
	uint64_t fs_base;	       /* the thread's */
	runtime_task_fn on_task;
	void *ctx;
};

static uint64_t word_at(struct search *search, uint64_t at)
{
	return python_reader__at(&search->reader, at);
}

/* --- objects --- */

static bool is_a(struct search *search, uint64_t object, const char *type_name)
{
	return python_object__is_a(&search->reader, object, type_name);
}

static bool is_coroutine(struct search *search, uint64_t object)
{
	return object && (is_a(search, object, "coroutine") || is_a(search, object, "generator") ||
			  is_a(search, object, "async_generator"));
}

/* --- a coroutine's frame --- */

static uint64_t frame_of(struct search *search, uint64_t coroutine)
{
	uint64_t at = coroutine + search->layout->coroutine_frame +
		      search->version->offsets.object_bytes - 2 * WORD;
	uint64_t frame, code;

	frame = search->version->minor <= 10 ? word_at(search, at) : at;
	code = frame ? word_at(search, frame + search->version->offsets.frame_code) &
			       ~(uint64_t)TAGS
		     : 0;
	return code && is_a(search, code, "code") ? frame : 0;
}

/* Returns the object on top of the frame's value stack; 0: there is none, or the frame runs. */
static uint64_t awaited_by(struct search *search, uint64_t frame)
{
	const struct python_layout *layout = search->layout;
	uint64_t at = frame + layout->stack, top = word_at(search, frame + layout->stack_top),
		 value;

	if (layout->is_pointer && !top)
		return 0;
	if (layout->is_pointer) {
		value = word_at(search, top - WORD) & ~TAGS;
		return value || layout->minor < INDEX_SINCE
			       ? value
			       : word_at(search, top - 2 * WORD) & ~TAGS;
	}
	if (layout->minor == 10)
		at = word_at(search, at);
	if ((int32_t)top < 1 || (int32_t)top > UINT16_MAX)
		return 0;
	return word_at(search, at + ((uint32_t)top - 1) * (uint64_t)WORD);
}

/* The coroutine behind the objects that await it for others: each has it as its first member
 * (Objects/genobject.c). */
static uint64_t object_of(struct search *search, uint64_t object)
{
	static const char *const wrappers[] = { "coroutine_wrapper", "async_generator_asend",
						"async_generator_athrow", "anext_awaitable" };

	for (size_t i = 0; object && i < ARRAY_SIZE(wrappers); i++)
		if (is_a(search, object, wrappers[i]))
			return python_object__field(&search->reader, object, 2 * WORD);
	return object;
}

/* --- a task --- */

struct chain {
	uint64_t frames[CHAIN_MAX]; /* outermost first */
	size_t n;
	uint64_t awaited; /* by the innermost one */
};

static void follow(struct search *search, uint64_t coroutine, struct chain *ret)
{
	uint64_t frame;

	ret->n = 0;
	ret->awaited = coroutine;
	while (ret->n < CHAIN_MAX && is_coroutine(search, ret->awaited)) {
		frame = frame_of(search, ret->awaited);
		if (!frame)
			return;
		ret->frames[ret->n++] = frame;
		ret->awaited = object_of(search, awaited_by(search, frame));
	}
}

/* Address of a shim frame, which no process uses: from 3.12 on the outermost frame is a shim, which
 * marks the start of a loop. */
#define SHIM	   0x1000ULL
#define SHIM_WORDS 16

static size_t add_shim(const struct search *search, struct memory_patch *patches)
{
	const struct python_offsets *offsets = &search->version->offsets;

	for (size_t i = 0; i < SHIM_WORDS; i++)
		patches[i] = (struct memory_patch) { SHIM + i * WORD, 0 };
	patches[offsets->frame_owner / WORD].word = (uint64_t)PYTHON_OWNER_SHIM
						    << 8 * (offsets->frame_owner % WORD);
	return SHIM_WORDS;
}

#define PATCHES_MAX (CHAIN_MAX + SHIM_WORDS + 2)

/* The thread runs the innermost one, which was called by the next, and so on. */
static size_t link_frames(struct search *search, const struct chain *chain,
			  struct memory_patch patches[PATCHES_MAX])
{
	const struct python_offsets *offsets = &search->version->offsets;
	bool shims = offsets->chain >= PYTHON_CHAIN_CFRAME_SHIMS;
	uint64_t current = search->thread + offsets->tstate_frame;
	uint64_t innermost = chain->frames[chain->n - 1];
	size_t n = shims ? add_shim(search, patches) : 0;

	for (size_t i = 0; i < chain->n; i++)
		patches[n++] = (struct memory_patch) { chain->frames[i] + offsets->frame_previous,
						       i       ? chain->frames[i - 1]
						       : shims ? SHIM
							       : 0 };
	if (offsets->chain == PYTHON_CHAIN_CFRAMES || offsets->chain == PYTHON_CHAIN_CFRAME_SHIMS) {
		current = word_at(search, current) + offsets->cframe_current_frame;
		patches[n++] = (struct memory_patch) { current + WORD, 0 };
	}
	patches[n++] = (struct memory_patch) { current, innermost };
	return n;
}

/* A task of C's is of a type that is derived from theirs; one in Python code has these attributes.
 */
static bool is_of_c(struct search *search, uint64_t task)
{
	return is_a(search, task, "_asyncio.Task");
}

static uint64_t attribute(struct search *search, uint64_t task, const char *name)
{
	return python_object__get(&search->reader, task, name);
}

static bool is_task(struct search *search, uint64_t object)
{
	return is_of_c(search, object) ||
	       (is_a(search, object, "Task") &&
		is_coroutine(search, attribute(search, object, "_coro")));
}

/* Members of a task object: its coroutine, the name behind that, and another task that it waits
 * for.
 */
struct members {
	uint64_t coroutine;
	char *name; /* owned */
	uint64_t waits_for;
};

/* Returns the task's name, owned by the caller, or NULL. From 3.12 on the name is a number until
 * the program reads it for the first time. */
static char *read_name(struct search *search, uint64_t object)
{
	char *name = python_str__dup(&search->reader, object);
	uint64_t number;

	if (!name && python_int__get(&search->reader, object, &number) &&
	    asprintf(&name, "Task-%" PRIu64, number) < 0)
		name = NULL;
	return name;
}

/* Reads a task written in Python: class Task of Lib/asyncio/tasks.py, and classes like it. */
static void read_attributes(struct search *search, uint64_t task, struct members *ret)
{
	uint64_t awaited = attribute(search, task, "_fut_waiter");

	*ret = (struct members) { .coroutine = attribute(search, task, "_coro"),
				  .name = read_name(search, attribute(search, task, "_name")),
				  .waits_for = is_task(search, awaited) ? awaited : 0 };
	if (!is_coroutine(search, ret->coroutine))
		ret->coroutine = 0;
}

static void read_members(struct search *search, uint64_t task, struct members *ret)
{
	uint64_t size = min_of(python_object__bytes(&search->reader, task), TASK_BYTES), member;

	*ret = (struct members) {};
	for (uint64_t at = search->version->offsets.object_bytes; at + WORD <= size; at += WORD) {
		member = word_at(search, task + at);
		if (!ret->coroutine && is_coroutine(search, member)) {
			ret->coroutine = member;
			ret->name = read_name(search, word_at(search, task + at + WORD));
		} else if (!ret->waits_for && at != search->asyncio.task_awaited_by &&
			   is_task(search, member)) {
			ret->waits_for = member;
		}
	}
}

static void read_task(struct search *search, uint64_t task, struct members *ret)
{
	is_of_c(search, task) ? read_members(search, task, ret)
			      : read_attributes(search, task, ret);
}

static int see_task(struct search *search, uint64_t task)
{
	struct memory_patch patches[PATCHES_MAX];
	struct members members, other = {};
	struct chain chain;
	int ret = 0;

	read_task(search, task, &members);
	follow(search, members.coroutine, &chain);
	/* Else it is done, runs, or has not begun. A generator that has nothing on its stack may
	 * be the innermost one. */
	if (chain.n > 1 || (chain.n && chain.awaited)) {
		if (members.waits_for)
			read_task(search, members.waits_for, &other);
		ret = search->on_task(search->ctx,
				      &(struct runtime_task) {
					      .name = members.name ?: "",
					      .waits_for = other.name,
					      .fs_base = search->fs_base,
					      .patches = patches,
					      .n_patches = link_frames(search, &chain, patches) });
	}
	free(members.name);
	free(other.name);
	return ret;
}

/* --- all of them --- */

/* A set of weak references. */
static int see_set(struct search *search, uint64_t set)
{
	uint64_t slots = python_object__field(&search->reader, set, SET_MASK) + 1, table, key, task;
	int ret = 0;

	table = python_object__field(&search->reader, set, SET_TABLE);
	if (!table || slots > SET_SLOTS_MAX)
		return 0;
	for (uint64_t i = 0, n = 0; !ret && i < slots && n < TASKS_MAX; i++) {
		key = word_at(search, table + i * SET_ENTRY);
		task = key ? python_object__field(&search->reader, key, WEAKREF_OBJECT) : 0;
		if (!task)
			continue;
		n++;
		ret = see_task(search, task);
	}
	return ret;
}

static int see_module(struct search *search, uint64_t interpreter)
{
	const char *name = search->version->minor < 12 ? "_all_tasks" : "_scheduled_tasks";
	struct python_reader *reader = &search->reader;
	uint64_t module, set;

	module = python_dict__get(reader, word_at(search, interpreter + search->version->modules),
				  "asyncio.tasks");
	set = module ? python_module__get(reader, module, name) : 0;
	set = set ? python_object__get(reader, set, "data") : 0;
	return set ? see_set(search, set) : 0;
}

/* A circle of nodes, each in a task. Include/internal/pycore_llist.h */
static int see_list(struct search *search, uint64_t head)
{
	uint64_t node = word_at(search, head), task;
	int ret = 0;

	for (uint64_t n = 0; !ret && node && node != head && n < TASKS_MAX; n++) {
		task = node - search->asyncio.task_node;
		if (is_of_c(search, task))
			ret = see_task(search, task);
		node = word_at(search, node);
	}
	return ret;
}

static int see_lists(struct search *search, uint64_t interpreter)
{
	int ret = see_list(search, interpreter + search->asyncio.interpreter_tasks);
	uint64_t at = word_at(search, interpreter + search->version->offsets.interp_threads);

	for (; !ret && at; at = word_at(search, at + PYTHON_TSTATE_NEXT))
		ret = see_list(search, at + search->asyncio.thread_tasks);
	return ret;
}

/* The thread state that is oldest: threads are put in front of the list. */
static uint64_t oldest_thread(struct search *search, uint64_t interpreter)
{
	uint64_t at = word_at(search, interpreter + search->version->offsets.interp_threads), last;

	for (last = at; at; at = word_at(search, at + PYTHON_TSTATE_NEXT))
		last = at;
	return last;
}

static int see_interpreter(struct search *search, uint64_t interpreter)
{
	int ret;

	search->thread = oldest_thread(search, interpreter);
	if (!search->thread)
		return 0;
	search->fs_base =
		word_at(search, search->thread + search->version->offsets.tstate_thread_id);
	ret = see_module(search, interpreter);
	return !ret && search->has_lists ? see_lists(search, interpreter) : ret;
}

int python_tasks__list(const struct python_threads *process, runtime_task_fn on_task, void *ctx)
{
	const struct python_version *version = &process->version;
	struct search search = { .version = version,
				 .reader = { process->pid, version, READS_MAX },
				 .on_task = on_task,
				 .ctx = ctx };
	uint64_t interpreter;
	int ret = 0;

	search.layout = python_layout__find(version->minor);
	if (!search.layout || !version->modules)
		return 0;
	search.has_lists = version->minor >= LISTS_SINCE &&
			   !python_asyncio__find(process->pid, &search.asyncio);
	interpreter = word_at(&search, process->interpreters);
	for (; !ret && interpreter;
	     interpreter = word_at(&search, interpreter + version->offsets.interp_next))
		ret = see_interpreter(&search, interpreter);
	return ret;
}
