// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_virtual.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_rule.h"
#include "core/base/util.h"
#include "runtimes/jvm/jvm_classes.h"
#include "runtimes/jvm/jvm_containers.h"
#include "runtimes/jvm/jvm_frozen.h"
#include "runtimes/jvm/jvm_threads.h"

#define PASSES 4 /* passes over all threads, since the collector may move them */
#define TRIES  3 /* attempts to read a thread that runs now and then */

#define STATE_BYTES 24
#define SUSPENDED   (1 << 8) /* by a debugger; a flag beside the state */

/* java.lang.VirtualThread's constants for its states; the numbers differ from JDK to JDK. */
static const char *const state_names[] = {
	"NEW",		 "STARTED",	  "RUNNABLE",	  "RUNNING",	  "PARKING",  "PARKED",
	"PINNED",	 "TIMED_PARKING", "TIMED_PARKED", "TIMED_PINNED", "UNPARKED", "YIELDING",
	"YIELDED",	 "BLOCKING",	  "BLOCKED",	  "UNBLOCKED",	  "WAITING",  "WAIT",
	"TIMED_WAITING", "TIMED_WAIT",	  "TERMINATED",
};
#define STATES ARRAY_SIZE(state_names)

struct search {
	const struct jvm_vm *vm;
	struct jvm_objects objects;
	bool knows_objects;
	struct jvm_containers containers;
	struct jvm_chunks chunks;
	uint32_t name, id;		       /* offsets in Thread */
	uint32_t state, continuation, carrier; /* offsets in VirtualThread */
	uint32_t tail;			       /* offset in Continuation */
	int32_t states[STATES];		       /* -1: this JDK has no such state */
	uint64_t collections_at;	       /* 0: unknown */
	struct jvm_frozen frozen;
	uint64_t listed; /* threads up to this id were listed */
	runtime_task_fn on_task;
	void *ctx;
};

/* --- classes and fields --- */

static int find_states(struct search *search)
{
	const struct jvm_objects *objects = &search->objects;
	uint64_t at;
	int rc = 0;

	for (size_t i = 0; !rc && i < STATES; i++) {
		search->states[i] = -1;
		rc = jvm_objects__static(objects, search->containers.virtual_thread, state_names[i],
					 "I", &at);
		if (!rc)
			rc = jvm_vm__read(search->vm, at, &search->states[i],
					  sizeof(search->states[i]));
		if (rc == -ENOENT)
			rc = 0;
	}
	return rc;
}

static void find_collections(struct search *search)
{
	uint64_t at, heap, offset;

	if (!jvm_vm__static(search->vm, "Universe", "_collectedHeap", &at) &&
	    !jvm_vm__field(search->vm, "CollectedHeap", "_total_collections", &offset) &&
	    !jvm_vm__read(search->vm, at, &heap, sizeof(heap)))
		search->collections_at = heap + offset;
}

static int find(struct search *search)
{
	const struct jvm_objects *objects = &search->objects;
	struct jvm_class continuation = { .name = "jdk/internal/vm/Continuation" };
	uint64_t thread, own;
	int rc = jvm_objects__find(search->vm, &search->objects);

	search->knows_objects = !rc;
	if (!rc)
		rc = jvm_containers__find(objects, &search->containers);
	if (!rc)
		rc = jvm_chunks__find(objects, &search->chunks);
	if (!rc)
		rc = jvm_classes__find(&objects->symbols, &continuation, 1);
	if (!rc)
		rc = jvm_objects__class(search->vm, "Thread", &thread);
	own = search->containers.virtual_thread;
	if (!rc &&
	    (jvm_objects__field(objects, thread, "name", "Ljava/lang/String;", &search->name) ||
	     jvm_objects__field(objects, thread, "tid", "J", &search->id) ||
	     jvm_objects__field(objects, own, "state", "I", &search->state) ||
	     jvm_objects__field(objects, own, "carrierThread", "Ljava/lang/Thread;",
				&search->carrier) ||
	     jvm_objects__field(objects, own, "cont", "Ljdk/internal/vm/Continuation;",
				&search->continuation) ||
	     !continuation.address ||
	     jvm_objects__field(objects, continuation.address, "tail",
				"Ljdk/internal/vm/StackChunk;", &search->tail)))
		rc = -ENOTSUP;
	if (!rc)
		rc = find_states(search);
	find_collections(search);
	return rc;
}

/* Returns a number that changes when the collector may have moved objects. */
static uint32_t collections(const struct search *search)
{
	uint32_t n;

	if (!search->collections_at ||
	    jvm_vm__read(search->vm, search->collections_at, &n, sizeof(n)))
		return 0;
	return n;
}

/* --- one --- */

struct thread {
	uint64_t object, id;
	uint64_t carrier, chunk;
	int32_t state;
};

static int thread__read(const struct search *search, struct thread *thread)
{
	const struct jvm_objects *objects = &search->objects;
	uint64_t continuation;

	if (jvm_objects__class_of(objects, thread->object) != search->containers.virtual_thread)
		return -EBADMSG;
	if (jvm_vm__read(search->vm, thread->object + search->id, &thread->id,
			 sizeof(thread->id)) ||
	    jvm_vm__read(search->vm, thread->object + search->state, &thread->state,
			 sizeof(thread->state)) ||
	    jvm_objects__ref(objects, thread->object + search->carrier, &thread->carrier) ||
	    jvm_objects__ref(objects, thread->object + search->continuation, &continuation) ||
	    !continuation || jvm_objects__ref(objects, continuation + search->tail, &thread->chunk))
		return -EFAULT;
	return 0;
}

/* Writes the name of a state, "timed parked"; "": this JDK's constants do not name the state. */
static void describe(const struct search *search, int32_t state, char ret[STATE_BYTES])
{
	ret[0] = '\0';
	for (size_t i = 0; i < STATES; i++)
		if (search->states[i] >= 0 && search->states[i] == (state & ~SUSPENDED))
			snprintf(ret, STATE_BYTES, "%s", state_names[i]);
	for (char *at = ret; *at; at++)
		*at = *at == '_' ? ' ' : tolower((unsigned char)*at);
}

static int tell(struct search *search, const struct thread *thread)
{
	const struct jvm_objects *objects = &search->objects;
	uint64_t regs[UNWIND_REGS] = { [UNWIND_REG_RSP] = search->frozen.sp,
				       [UNWIND_REG_RBP] = search->frozen.fp,
				       [UNWIND_REG_PC] = search->frozen.pc };
	char state[STATE_BYTES], number[24];
	char *name = NULL;
	uint64_t string;
	int rc;

	if (!jvm_objects__ref(objects, thread->object + search->name, &string) && string)
		name = jvm_objects__string(objects, string);
	snprintf(number, sizeof(number), "#%" PRIu64, thread->id); /* as Thread.toString() */
	describe(search, thread->state, state);
	rc = search->on_task(search->ctx,
			     &(struct runtime_task) { .name = name && *name ? name : number,
						      .state = state,
						      .regs = regs,
						      .patches = search->frozen.words,
						      .n_patches = search->frozen.n });
	free(name);
	return rc;
}

/* Reads and reports a thread. Returns 0, also if the thread is mounted, has not begun or has
 * ended; -EAGAIN if it runs now and then. */
static int see_thread(struct search *search, uint64_t object)
{
	struct thread thread = { .object = object }, after = { .object = object };
	int rc = -EAGAIN;

	for (int i = 0; rc == -EAGAIN && i < TRIES; i++) {
		if (thread__read(search, &thread) || thread.id <= search->listed ||
		    thread.carrier || !thread.chunk)
			return 0;
		rc = jvm_frozen__read(&search->chunks, thread.chunk, &search->frozen);
		if (rc == -ENOMEM)
			return rc;
		if (rc || thread__read(search, &after) || after.chunk != thread.chunk ||
		    after.state != thread.state)
			rc = -EAGAIN;
	}
	return rc || !search->frozen.n ? rc : tell(search, &thread);
}

/* --- all --- */

struct numbered {
	uint64_t id, object;
};

static int by_id(const void *a, const void *b)
{
	const struct numbered *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int number(const struct search *search, const struct jvm_virtual_list *list,
		  struct numbered **ret)
{
	struct thread thread;
	size_t n = 0;

	*ret = calloc(list->n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (size_t i = 0; i < list->n; i++) {
		thread = (struct thread) { .object = list->objects[i] };
		(*ret)[n].object = thread.object;
		(*ret)[n++].id = thread__read(search, &thread) ? 0 : thread.id;
	}
	if (n)
		qsort(*ret, n, sizeof(**ret), by_id);
	return 0;
}

/* Reads all threads once, in the order of their ids. Returns -EAGAIN if objects were moved in
 * between. `ret_missed` is the number of threads that could not be read. */
static int pass(struct search *search, struct jvm_virtual_list *list, size_t *ret_missed)
{
	uint32_t before = collections(search);
	struct numbered *threads = NULL;
	uint64_t *platform = NULL;
	size_t n = 0;
	int rc = jvm_threads__objects(search->vm, &platform, &n);

	if (!rc)
		rc = jvm_containers__list(&search->containers, platform, n, list);
	if (!rc)
		rc = number(search, list, &threads);
	*ret_missed = 0;
	for (size_t i = 0; !rc && i < list->n; i++) {
		rc = collections(search) != before ? -EAGAIN
						   : see_thread(search, threads[i].object);
		if (!rc)
			search->listed = max_of(search->listed, threads[i].id);
		if (rc == -EAGAIN && collections(search) == before) {
			++*ret_missed;
			rc = 0;
		}
	}
	free(threads);
	free(platform);
	return rc;
}

#define UNKNOWN "the layout of Java's objects is unknown: "

/* Writes a note about missing threads after find() has failed with @rc. -ENOENT: there is no
 * virtual thread. */
static void note_failure(const struct search *search, int rc, char ret[JVM_VIRTUAL_NOTE_BYTES])
{
	bool has_virtual = jvm_vm__major(search->vm) >= JVM_VIRTUAL_SINCE;

	if (rc == -ENOENT || rc == -ESRCH)
		return;
	if (!search->knows_objects)
		snprintf(ret, JVM_VIRTUAL_NOTE_BYTES,
			 UNKNOWN "names of threads are cut to 15 bytes%s",
			 has_virtual ? ", and virtual threads are not listed" : "");
	else if (has_virtual)
		snprintf(ret, JVM_VIRTUAL_NOTE_BYTES,
			 "virtual threads are not listed: JDK %u has an unknown layout for them",
			 jvm_vm__major(search->vm));
}

int jvm_virtual__list(const struct jvm_vm *vm, runtime_task_fn on_task, void *ctx,
		      char ret_note[JVM_VIRTUAL_NOTE_BYTES])
{
	struct search search = { .vm = vm, .on_task = on_task, .ctx = ctx };
	struct jvm_virtual_list list = {};
	size_t missed = 0;
	int rc = find(&search);

	ret_note[0] = '\0';
	if (rc) {
		note_failure(&search, rc, ret_note);
		return rc == -ENOMEM ? rc : 0;
	}
	rc = -EAGAIN;
	for (int i = 0; rc == -EAGAIN && i < PASSES; i++) {
		free(list.objects);
		list = (struct jvm_virtual_list) {};
		rc = pass(&search, &list, &missed);
	}
	if (rc == -EAGAIN)
		snprintf(ret_note, JVM_VIRTUAL_NOTE_BYTES,
			 "some virtual threads are not listed: the garbage collector moves objects "
			 "all the time");
	else if (list.is_cut)
		snprintf(ret_note, JVM_VIRTUAL_NOTE_BYTES,
			 "it has more virtual threads than are listed");
	else if (list.is_untracked)
		snprintf(ret_note, JVM_VIRTUAL_NOTE_BYTES,
			 "virtual threads that no executor or scope has started are not listed, as "
			 "the JVM does not track them (jdk.trackAllThreads)");
	else if (missed)
		snprintf(ret_note, JVM_VIRTUAL_NOTE_BYTES,
			 "%zu virtual thread%s could not be read: they run now and then, or the "
			 "collector moved them and left no trace (ZGC)",
			 missed, missed == 1 ? "" : "s");
	jvm_frozen__done(&search.frozen);
	free(list.objects);
	return rc == -ENOMEM || rc > 0 ? rc : rc == -EAGAIN ? 0 : rc;
}
