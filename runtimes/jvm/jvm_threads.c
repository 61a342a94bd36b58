// SPDX-License-Identifier: GPL-2.0-or-later
/* ThreadsSMRSupport::_java_thread_list is a list of pointers that is never modified, but
 * replaced by another list (runtime/threadSMR.hpp). A list may be freed while it is read, so
 * that it may contain anything. JDK 8 to 11 chain the threads themselves
 * (Threads::_thread_list), and free a thread when it ends. */
#include "runtimes/jvm/jvm_threads.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define THREADS_MAX 65536

struct list {
	const struct jvm_vm *vm;
	uint64_t *threads; /* JavaThread *; owned */
	uint32_t n;
	uint64_t osthread, thread_id; /* offsets in JavaThread, in OSThread */
};

static void list__done(struct list *list)
{
	free(list->threads);
}

/* Reads the chain of threads. Returns 0, -ENOENT if this version has no chain, or another error.
 * A chain that changes while it is read may lead anywhere. */
static int list__follow(struct list *list)
{
	const struct jvm_vm *vm = list->vm;
	uint64_t at, next, thread;
	size_t cap = 0;
	int rc;

	if (jvm_vm__static(vm, "Threads", "_thread_list", &at) ||
	    jvm_vm__field(vm, "JavaThread", "_next", &next))
		return -ENOENT;
	rc = jvm_vm__read(vm, at, &thread, sizeof(thread));
	while (!rc && thread && list->n < THREADS_MAX) {
		rc = array__reserve(&list->threads, &cap, list->n + 1, sizeof(*list->threads));
		if (rc)
			return rc;
		list->threads[list->n++] = thread;
		if (jvm_vm__read(vm, thread + next, &thread, sizeof(thread)))
			thread = 0;
	}
	return rc;
}

/* Reads the list of threads. The caller calls list__done() after any result. */
static int list__read(const struct jvm_vm *vm, struct list *ret)
{
	uint64_t at, length, threads, list, array;
	int rc;

	*ret = (struct list) { .vm = vm };
	if (jvm_vm__field(vm, "OSThread", "_thread_id", &ret->thread_id) ||
	    (jvm_vm__field(vm, "JavaThread", "_osthread", &ret->osthread) &&
	     jvm_vm__field(vm, "Thread", "_osthread", &ret->osthread)))
		return -ENOTSUP;
	rc = list__follow(ret);
	if (rc != -ENOENT)
		return rc;
	if (jvm_vm__static(vm, "ThreadsSMRSupport", "_java_thread_list", &at) ||
	    jvm_vm__field(vm, "ThreadsList", "_length", &length) ||
	    jvm_vm__field(vm, "ThreadsList", "_threads", &threads))
		return -ENOTSUP;
	rc = jvm_vm__read(vm, at, &list, sizeof(list));
	if (!rc)
		rc = jvm_vm__read(vm, list + length, &ret->n, sizeof(ret->n));
	if (!rc)
		rc = jvm_vm__read(vm, list + threads, &array, sizeof(array));
	if (rc)
		return rc;
	ret->n = min_of(ret->n, THREADS_MAX);
	ret->threads = malloc(ret->n * sizeof(*ret->threads) + 1);
	if (!ret->threads)
		return -ENOMEM;
	return jvm_vm__read(vm, array, ret->threads, ret->n * sizeof(*ret->threads));
}

/* Finds the address of a thread's kernel id. Returns 0, -ENOENT if the thread has none, or
 * another error. */
static int list__tid_at(const struct list *list, uint64_t thread, uint64_t *ret_address)
{
	int rc = jvm_vm__read(list->vm, thread + list->osthread, ret_address, sizeof(*ret_address));

	if (!rc && !*ret_address)
		rc = -ENOENT; /* not started yet, or ended */
	*ret_address += list->thread_id;
	return rc;
}

static int find_names(struct jvm_threads *threads)
{
	const struct jvm_vm *vm = threads->vm;
	const char *kind = jvm_vm__field_kind(vm, "JavaThread", "_threadObj");
	int rc = jvm_objects__find(vm, &threads->objects);
	uint64_t class;

	if (!rc)
		rc = jvm_objects__class(vm, "Thread", &class);
	if (!rc)
		rc = jvm_objects__field(&threads->objects, class, "name", "Ljava/lang/String;",
					&threads->name);
	if (!rc)
		rc = jvm_vm__field(vm, "JavaThread", "_threadObj", &threads->thread_object);
	threads->is_handle = kind && strcmp(kind, "OopHandle") == 0;
	threads->is_resolved = !rc || rc == -ENOTSUP || rc == -ENOENT;
	threads->code = rc;
	return rc;
}

/* Returns the java.lang.Thread of a JavaThread; 0: none, or unreadable. */
static uint64_t object_of(const struct jvm_threads *threads, uint64_t thread)
{
	uint64_t at = thread + threads->thread_object, object;

	if (threads->is_handle && jvm_vm__read(threads->vm, at, &at, sizeof(at)))
		return 0;
	return jvm_objects__handle(&threads->objects, at, &object) ? 0 : object;
}

/* Returns the name of a thread; owned. NULL: none, or unreadable. */
static char *read_name(const struct jvm_threads *threads, uint64_t thread)
{
	const struct jvm_objects *objects = &threads->objects;
	uint64_t object = object_of(threads, thread), name;

	if (!object || jvm_objects__ref(objects, object + threads->name, &name) || !name)
		return NULL;
	return jvm_objects__string(objects, name);
}

int jvm_threads__objects(const struct jvm_vm *vm, uint64_t **ret, size_t *ret_n)
{
	struct jvm_threads threads = { .vm = vm };
	struct list list = {};
	uint64_t object;
	int rc = find_names(&threads);

	*ret_n = 0;
	if (!rc)
		rc = list__read(vm, &list);
	for (uint32_t i = 0; !rc && i < list.n; i++) {
		object = object_of(&threads, list.threads[i]);
		if (object)
			list.threads[(*ret_n)++] = object;
	}
	*ret = list.threads;
	return rc;
}

size_t jvm_threads__unnamed(const struct jvm_vm *vm)
{
	struct jvm_threads threads = { .vm = vm };
	struct list list = {};
	size_t n = 0;
	char *name;

	if (!find_names(&threads) && !list__read(vm, &list))
		for (uint32_t i = 0; i < list.n; i++) {
			name = read_name(&threads, list.threads[i]);
			n += !name;
			free(name);
		}
	list__done(&list);
	return n;
}

int jvm_threads__search(void *process, struct thread_finds *finds)
{
	struct jvm_threads *threads = process;
	int rc = threads->is_resolved ? threads->code : find_names(threads);
	struct list list = {};
	uint64_t tid_at;
	uint32_t tid;
	char *name;

	if (!rc)
		rc = list__read(threads->vm, &list);
	for (uint32_t i = 0; !rc && i < list.n; i++) {
		if (list__tid_at(&list, list.threads[i], &tid_at) ||
		    jvm_vm__read(threads->vm, tid_at, &tid, sizeof(tid)))
			continue;
		name = read_name(threads, list.threads[i]);
		if (name)
			rc = thread_finds__add(finds, tid, name);
	}
	list__done(&list);
	return rc == -ENOMEM ? rc : 0;
}

/* --- holder of a monitor --- */

/* ObjectMonitor::_owner (runtime/objectMonitor.hpp) is one of:
 *   - until JDK 23, a JavaThread, which the walker records. If the thread locked the object before
 *     others waited for it, this is the address of a note on the thread's stack;
 *   - from JDK 24 on, an id that Java itself assigns;
 *   - anonymous, if the thread locked the object before others waited for it. Then the object is in
 *     the thread's LockStack (JDK 21 on), or the monitor has the place on its stack (JDK 24 on). */
#define OWNER_ANONYMOUS 1
#define OWNER_FIRST	3 /* lower ids are not threads */

#define LOCK_STACK_MAX 8 /* LockStack::CAPACITY, runtime/lockStack.hpp */

/* The owner to find, and offsets in JavaThread. */
struct owner {
	uint64_t id, id_at;
	uint64_t object, stack_at, top_at, base_at;
	bool by_id;
};

static uint64_t read_field(const struct jvm_vm *vm, uint64_t object, const char *type,
			   const char *field)
{
	uint64_t at, value;

	if (jvm_vm__field(vm, type, field, &at) ||
	    jvm_vm__read(vm, object + at, &value, sizeof(value)))
		return 0;
	return value;
}

static int find_object(const struct jvm_vm *vm, uint64_t monitor, struct owner *ret)
{
	uint64_t handle = read_field(vm, monitor, "ObjectMonitor", "_object");
	uint32_t color_bits;

	if (!handle || jvm_vm__field(vm, "JavaThread", "_lock_stack", &ret->stack_at) ||
	    jvm_vm__field(vm, "LockStack", "_top", &ret->top_at) ||
	    jvm_vm__field(vm, "LockStack", "_base[0]", &ret->base_at) ||
	    jvm_objects__color_bits(vm, &color_bits) ||
	    jvm_vm__read(vm, handle, &ret->object, sizeof(ret->object)))
		return -ENOENT;
	ret->object >>= color_bits;
	return ret->object ? 0 : -ENOENT;
}

static bool owner__is(const struct owner *owner, const struct jvm_vm *vm, uint64_t thread)
{
	uint64_t id, objects[LOCK_STACK_MAX], base = owner->stack_at + owner->base_at;
	uint32_t top; /* end of the last object; offset in JavaThread */

	if (owner->by_id)
		return !jvm_vm__read(vm, thread + owner->id_at, &id, sizeof(id)) && id == owner->id;
	if (jvm_vm__read(vm, thread + owner->stack_at + owner->top_at, &top, sizeof(top)) ||
	    jvm_vm__read(vm, thread + base, objects, sizeof(objects)))
		return false;
	for (size_t i = 0; i < LOCK_STACK_MAX && base + (i + 1) * sizeof(*objects) <= top; i++)
		if (objects[i] == owner->object)
			return true;
	return false;
}

static uint32_t find_thread(const struct jvm_vm *vm, const struct owner *owner)
{
	struct list list;
	uint32_t ret = 0;
	uint64_t tid_at;

	if (!list__read(vm, &list))
		for (uint32_t i = 0; !ret && i < list.n; i++)
			if (owner__is(owner, vm, list.threads[i]) &&
			    (list__tid_at(&list, list.threads[i], &tid_at) ||
			     jvm_vm__read(vm, tid_at, &ret, sizeof(ret))))
				ret = 0;
	list__done(&list);
	return ret;
}

struct runtime_holder jvm_threads__holder(const struct jvm_vm *vm, uint64_t monitor)
{
	struct owner owner = { .id = read_field(vm, monitor, "ObjectMonitor", "_owner") };
	struct runtime_holder holder = {};

	if (owner.id == OWNER_ANONYMOUS) {
		holder.on_stack = read_field(vm, monitor, "ObjectMonitor", "_stack_locker");
		if (!holder.on_stack && !find_object(vm, monitor, &owner))
			holder.tid = find_thread(vm, &owner);
	} else if (!jvm_vm__field(vm, "JavaThread", "_monitor_owner_id", &owner.id_at)) {
		owner.by_id = true;
		holder.tid = owner.id < OWNER_FIRST ? 0 : find_thread(vm, &owner);
	} else {
		holder.on_stack = owner.id;
	}
	return holder;
}
