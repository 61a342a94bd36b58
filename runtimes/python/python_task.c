// SPDX-License-Identifier: GPL-2.0-or-later
/* A task of asyncio has a coroutine, whose frame lies in the coroutine object. The awaited object
 * is on top of the frame's value stack: another coroutine, and so on, until another object, such as
 * a future. Frames of waiting coroutines are not linked to each other. The walker gets a memory in
 * which they are linked, and in which a thread runs the innermost one.
 *
 * A waiting task also refers to the future that resumes it. The task's step clears this member
 * before it runs the coroutine (task_step_impl of Modules/_asynciomodule.c, __step_run_and_handle
 * of Lib/asyncio/tasks.py), and a future that has its result is no longer pending. So a task waits
 * if and only if it has such a member and the future is pending. */
#include "runtimes/python/python_task.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define WORD	   8
#define TASK_BYTES 512	/* largest task object; 208 in 3.11 */
#define TAGS	   7ULL /* tag bits of a reference, 3.14 on: Include/internal/pycore_stackref.h */

/* The version since which a frame has an index, or nothing, above the object that it iterates over
 * (GET_ITER of Python/bytecodes.c). */
#define INDEX_SINCE 15

/* --- types --- */

#define TYPE_NAME  24
#define TYPE_BYTES 32
#define TYPE_BASE  256
#define BASES_MAX  16
#define NAME_BYTES 32
#define PAGE_BYTES 4096

static const struct {
	const char *name; /* tp_name */
	enum python_kind kind;
} kind_names[] = {
	{ "coroutine", PYTHON_COROUTINE },
	{ "generator", PYTHON_COROUTINE },
	{ "async_generator", PYTHON_COROUTINE },
	{ "code", PYTHON_CODE },
	{ "_asyncio.Future", PYTHON_C_FUTURE },
	{ "_asyncio.Task", PYTHON_C_FUTURE | PYTHON_C_TASK },
	{ "Future", PYTHON_FUTURE },
	{ "Task", PYTHON_TASK },
	/* Each has the coroutine that it awaits for others as its first member
	 * (Objects/genobject.c, Objects/iterobject.c). */
	{ "coroutine_wrapper", PYTHON_WRAPPER },
	{ "async_generator_asend", PYTHON_WRAPPER },
	{ "async_generator_athrow", PYTHON_WRAPPER },
	{ "anext_awaitable", PYTHON_WRAPPER },
};

static uint64_t word_at(struct python_task_reader *reader, uint64_t at)
{
	return python_reader__at(&reader->reader, at);
}

static uint64_t field(struct python_task_reader *reader, uint64_t object, unsigned offset)
{
	return python_object__field(&reader->reader, object, offset);
}

static unsigned kinds_of_name(struct python_task_reader *reader, uint64_t at)
{
	size_t size = min_of((size_t)NAME_BYTES, PAGE_BYTES - at % PAGE_BYTES);
	char name[NAME_BYTES + 1] = {};
	unsigned kinds = 0;

	if (!python_reader__bytes(&reader->reader, at, name, size))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(kind_names); i++)
		if (!strcmp(name, kind_names[i].name))
			kinds |= kind_names[i].kind;
	return kinds;
}

static const struct python_type *type_of(struct python_task_reader *reader, uint64_t object)
{
	uint64_t type = object ? python_object__type(&reader->reader, object) : 0, at = type;
	struct python_type *slot = &reader->types[(type >> 4) & (PYTHON_TYPES - 1)];
	unsigned kinds;

	if (slot->type == type)
		return slot;
	*slot = (struct python_type) { .type = type, .bytes = field(reader, type, TYPE_BYTES) };
	for (int i = 0; i < BASES_MAX && at; i++) {
		kinds = kinds_of_name(reader, field(reader, at, TYPE_NAME));
		if (kinds == PYTHON_C_FUTURE)
			reader->future_bytes = field(reader, at, TYPE_BYTES);
		slot->kinds |= kinds;
		at = field(reader, at, TYPE_BASE);
	}
	return slot;
}

unsigned python_task__kinds(struct python_task_reader *reader, uint64_t object)
{
	return type_of(reader, object)->kinds;
}

static bool is_coroutine(struct python_task_reader *reader, uint64_t object)
{
	return python_task__kinds(reader, object) & PYTHON_COROUTINE;
}

static uint64_t attribute(struct python_task_reader *reader, uint64_t object, const char *name)
{
	return python_object__get(&reader->reader, object, name);
}

/* A task of C's is of a type that is derived from theirs; one in Python code has these attributes.
 */
bool python_task__is_task(struct python_task_reader *reader, uint64_t object)
{
	unsigned kinds = python_task__kinds(reader, object);

	return kinds & PYTHON_C_TASK ||
	       (kinds & PYTHON_TASK && is_coroutine(reader, attribute(reader, object, "_coro")));
}

/* --- a coroutine's frame --- */

static uint64_t frame_of(struct python_task_reader *reader, uint64_t coroutine)
{
	const struct python_version *version = reader->reader.version;
	uint64_t at = coroutine + reader->layout->coroutine_frame + version->offsets.object_bytes -
		      2 * WORD;
	uint64_t frame, code;

	frame = version->minor <= 10 ? word_at(reader, at) : at;
	code = frame ? word_at(reader, frame + version->offsets.frame_code) & ~TAGS : 0;
	return code && python_task__kinds(reader, code) & PYTHON_CODE ? frame : 0;
}

/* Returns the object on top of the frame's value stack; 0: there is none, or the frame runs. */
static uint64_t awaited_by(struct python_task_reader *reader, uint64_t frame)
{
	const struct python_layout *layout = reader->layout;
	uint64_t at = frame + layout->stack, top = word_at(reader, frame + layout->stack_top),
		 value;

	if (layout->is_pointer && !top)
		return 0;
	if (layout->is_pointer) {
		value = word_at(reader, top - WORD) & ~TAGS;
		return value || layout->minor < INDEX_SINCE
			       ? value
			       : word_at(reader, top - 2 * WORD) & ~TAGS;
	}
	if (layout->minor == 10)
		at = word_at(reader, at);
	if ((int32_t)top < 1 || (int32_t)top > UINT16_MAX)
		return 0;
	return word_at(reader, at + ((uint32_t)top - 1) * (uint64_t)WORD);
}

/* Returns the coroutine behind an object that awaits it for others, else the object. */
static uint64_t unwrap(struct python_task_reader *reader, uint64_t object)
{
	for (int i = 0; i < BASES_MAX && python_task__kinds(reader, object) & PYTHON_WRAPPER; i++)
		object = field(reader, object, 2 * WORD);
	return object;
}

void python_task__follow(struct python_task_reader *reader, uint64_t coroutine,
			 struct python_coroutines *ret)
{
	uint64_t frame;

	ret->n = 0;
	ret->awaited = coroutine;
	while (ret->n < PYTHON_CHAIN_MAX && is_coroutine(reader, ret->awaited)) {
		frame = frame_of(reader, ret->awaited);
		if (!frame)
			return;
		ret->frames[ret->n++] = frame;
		ret->awaited = unwrap(reader, awaited_by(reader, frame));
	}
}

/* Addresses that no process uses. From 3.12 on the outermost frame is a shim, which marks the start
 * of a loop. In 3.11 and 3.12 the thread refers to a C frame, which refers to the innermost frame.
 * The thread's own C frame is not patched: the thread may have left it when the walker reads. */
#define SHIM	     0x1000ULL
#define CFRAME	     0x1100ULL
#define CFRAME_WORDS 4

static size_t add_words(uint64_t at, size_t n, struct memory_patch *patches)
{
	for (size_t i = 0; i < n; i++)
		patches[i] = (struct memory_patch) { at + i * WORD, 0 };
	return n;
}

/* The thread runs the innermost one, which was called by the next, and so on. */
size_t python_task__patches(struct python_task_reader *reader,
			    const struct python_coroutines *chain,
			    struct memory_patch patches[PYTHON_PATCHES_MAX])
{
	const struct python_offsets *offsets = &reader->reader.version->offsets;
	bool shims = offsets->chain >= PYTHON_CHAIN_CFRAME_SHIMS;
	uint64_t current = chain->frames[chain->n - 1];
	size_t n = 0;

	if (shims) {
		n = add_words(SHIM, PYTHON_SHIM_WORDS, patches);
		patches[offsets->frame_owner / WORD].word = (uint64_t)PYTHON_OWNER_SHIM
							    << 8 * (offsets->frame_owner % WORD);
	}
	for (size_t i = 0; i < chain->n; i++)
		patches[n++] = (struct memory_patch) { chain->frames[i] + offsets->frame_previous,
						       i       ? chain->frames[i - 1]
						       : shims ? SHIM
							       : 0 };
	if (offsets->chain == PYTHON_CHAIN_CFRAMES || offsets->chain == PYTHON_CHAIN_CFRAME_SHIMS) {
		n += add_words(CFRAME, CFRAME_WORDS, patches + n);
		patches[n - CFRAME_WORDS + offsets->cframe_current_frame / WORD].word = current;
		current = CFRAME;
	}
	patches[n++] = (struct memory_patch) { reader->thread + offsets->tstate_frame, current };
	return n;
}

/* --- a task's members --- */

/* Modules/_asynciomodule.c: the future, the coroutine and the name follow each other in each
 * version. */
#define FUTURE_BEFORE WORD
#define NAME_BEHIND   WORD

static unsigned offset_of(struct python_task_reader *reader, const uint64_t *words, size_t bytes)
{
	for (unsigned at = reader->reader.version->offsets.object_bytes + FUTURE_BEFORE;
	     at + NAME_BEHIND < bytes; at += WORD)
		if (is_coroutine(reader, words[at / WORD]))
			return at;
	return 0;
}

/* Reads a task that C code has made. Its members are at the same offsets in all of them. */
static void read_members(struct python_task_reader *reader, uint64_t task, struct python_task *ret)
{
	size_t bytes = min_of(type_of(reader, task)->bytes, TASK_BYTES) & ~(WORD - 1);
	uint64_t words[TASK_BYTES / WORD];
	unsigned at = reader->coroutine_at;

	if (!python_reader__bytes(&reader->reader, task, words, bytes))
		return;
	if (!at || at + NAME_BEHIND >= bytes || !is_coroutine(reader, words[at / WORD]))
		at = offset_of(reader, words, bytes);
	if (!at)
		return;
	reader->coroutine_at = at;
	ret->coroutine = words[at / WORD];
	ret->future = words[(at - FUTURE_BEFORE) / WORD];
	ret->name = words[(at + NAME_BEHIND) / WORD];
}

/* Returns 0 for None, too. */
static uint64_t object_or_0(struct python_task_reader *reader, uint64_t object)
{
	return object && !python_object__is(&reader->reader, object, "NoneType") ? object : 0;
}

void python_task__read(struct python_task_reader *reader, uint64_t task, struct python_task *ret)
{
	*ret = (struct python_task) { .at = task };
	if (python_task__kinds(reader, task) & PYTHON_C_TASK) {
		read_members(reader, task, ret);
		return;
	}
	/* class Task of Lib/asyncio/tasks.py, and classes like it */
	ret->coroutine = attribute(reader, task, "_coro");
	ret->name = attribute(reader, task, "_name");
	ret->future = object_or_0(reader, attribute(reader, task, "_fut_waiter"));
	if (!is_coroutine(reader, ret->coroutine))
		ret->coroutine = 0;
}

/* From 3.12 on the name is a number until the program reads it for the first time. */
char *python_task__name(struct python_task_reader *reader, const struct python_task *task)
{
	char *name = python_str__dup(&reader->reader, task->name);
	uint64_t number;

	if (!name && python_int__get(&reader->reader, task->name, &number) &&
	    asprintf(&name, "Task-%" PRIu64, number) < 0)
		name = NULL;
	return name;
}

/* --- its state --- */

/* Bytes from fut_state to the end of a FutureObj (Modules/_asynciomodule.c at each version).
 * Members before fut_state differ within a minor version (fut_exception_tb). From 3.14 on a process
 * describes its tasks. tests/live/tasks_python.t compares. */
static const uint8_t state_from_end[] = {
	[8] = 32, [9] = 64, [10] = 64, [11] = 40, [12] = 40, [13] = 8
};

#define PENDING	    0 /* enum fut_state */
#define STATE_BYTES 4 /* before the member task_is_task, which a process describes */

/* Returns true if a future that C code has made has no result yet. */
static bool is_c_pending(struct python_task_reader *reader, uint64_t future)
{
	unsigned minor = reader->reader.version->minor;
	uint32_t state;
	uint64_t at;

	if (reader->asyncio)
		at = future + reader->asyncio->task_is_task - STATE_BYTES;
	else if (minor < ARRAY_SIZE(state_from_end))
		at = future + reader->future_bytes - state_from_end[minor];
	else
		return false;
	return python_reader__bytes(&reader->reader, at, &state, sizeof(state)) && state == PENDING;
}

bool python_task__is_parked(struct python_task_reader *reader, const struct python_task *task)
{
	unsigned kinds = python_task__kinds(reader, task->future);

	if (!task->future || !kinds)
		return false;
	if (kinds & PYTHON_C_FUTURE)
		return is_c_pending(reader, task->future);
	return python_str__is(&reader->reader, attribute(reader, task->future, "_state"),
			      "PENDING");
}

void python_task_reader__begin(struct python_task_reader *ret, uint32_t pid,
			       const struct python_version *version, unsigned reads)
{
	*ret = (struct python_task_reader) {
		.reader = { .pid = pid, .version = version, .reads_left = reads },
		.layout = version->modules ? python_layout__find(version->minor) : NULL
	};
}
