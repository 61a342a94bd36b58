// SPDX-License-Identifier: GPL-2.0-or-later
/* The virtual threads are found the same way as by jcmd's Thread.dump_to_file.
 * ThreadContainers.CONTAINER_REGISTRY is a set of weak references to containers. The containers
 * that a thread has opened for itself are in its stack of scopes. A container has a set of its
 * virtual threads in a field whose name differs, or has a ThreadFlock with such a set. The
 * root's set is a static field. All of these sets are ConcurrentHashMap.KeySetView. */
#include "runtimes/jvm/jvm_containers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_classes.h"

#define VIRTUAL_MAX 100000
#define READS_MAX   2000000 /* limit for one list, about 0.5 us each */
#define FIELD_READS 2000    /* maximum number of reads to find a field */
#define SCOPES_MAX  64	    /* limit for one thread */
#define TABLE_MAX   (1U << 24)
#define TABLE_BATCH 512 /* references read at once */
#define CLASSES_MAX 32	/* limit for classes of containers */
#define SUPERS_MAX  4

/* ConcurrentHashMap.Node.hash of nodes without a key */
#define HASH_MOVED    (-1)
#define HASH_TREE_BIN (-2)

#define SET	  "Ljava/util/Set;"
#define MAP	  "Ljava/util/concurrent/ConcurrentHashMap;"
#define NODE	  "Ljava/util/concurrent/ConcurrentHashMap$Node;"
#define TREE_NODE "Ljava/util/concurrent/ConcurrentHashMap$TreeNode;"
#define SCOPE	  "Ljdk/internal/vm/StackableScope;"
#define FLOCK	  "Ljdk/internal/misc/ThreadFlock;"

enum {
	CONTAINERS,
	ROOT,
	VIRTUAL_THREAD,
	STACKABLE_SCOPE,
	SET_VIEW,
	HASH_MAP,
	MAP_NODE,
	REFERENCE,
	THREAD_FLOCK,
	CLASSES_N
};

/* Returns true if the JVM may have a virtual thread. @class is java.lang.VirtualThread's; 0: it
 * is not loaded. HotSpot loads this class at its start, and Java initializes it for the first
 * virtual thread. */
static bool has_virtual(const struct jvm_vm *vm, uint64_t class)
{
	uint64_t at;
	int64_t initialized;
	uint8_t state;

	if (jvm_vm__major(vm) < JVM_VIRTUAL_SINCE)
		return false;
	return !class || jvm_vm__field(vm, "InstanceKlass", "_init_state", &at) ||
	       jvm_vm__constant(vm, "InstanceKlass::fully_initialized", &initialized) ||
	       jvm_vm__read(vm, class + at, &state, sizeof(state)) || state >= initialized;
}

int jvm_containers__find(const struct jvm_objects *objects, struct jvm_containers *ret)
{
	struct jvm_class classes[CLASSES_N] = {
		[CONTAINERS] = { "jdk/internal/vm/ThreadContainers", 0 },
		[ROOT] = { "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer",
			   0 },
		[VIRTUAL_THREAD] = { "java/lang/VirtualThread", 0 },
		[STACKABLE_SCOPE] = { "jdk/internal/vm/StackableScope", 0 },
		[SET_VIEW] = { "java/util/concurrent/ConcurrentHashMap$CollectionView", 0 },
		[HASH_MAP] = { "java/util/concurrent/ConcurrentHashMap", 0 },
		[MAP_NODE] = { "java/util/concurrent/ConcurrentHashMap$Node", 0 },
		[REFERENCE] = { "java/lang/ref/Reference", 0 },
		[THREAD_FLOCK] = { "jdk/internal/misc/ThreadFlock", 0 },
	};
	const struct {
		int class;
		const char *name, *signature;
		uint32_t *to;
	} fields[] = {
		{ STACKABLE_SCOPE, "previous", SCOPE, &ret->previous },
		{ SET_VIEW, "map", MAP, &ret->map },
		{ HASH_MAP, "table", "[" NODE, &ret->table },
		{ MAP_NODE, "hash", "I", &ret->hash },
		{ MAP_NODE, "key", "Ljava/lang/Object;", &ret->key },
		{ MAP_NODE, "next", NODE, &ret->next },
		{ REFERENCE, "referent", "Ljava/lang/Object;", &ret->referent },
		{ THREAD_FLOCK, "threads", SET, &ret->threads },
	};
	uint64_t thread;
	int rc = jvm_classes__find(&objects->symbols, classes, CLASSES_N);

	*ret = (struct jvm_containers) { .objects = objects,
					 .containers = classes[CONTAINERS].address,
					 .virtual_thread = classes[VIRTUAL_THREAD].address,
					 .root = classes[ROOT].address };
	if (!rc && !ret->containers)
		return has_virtual(objects->vm, ret->virtual_thread) ? -ENOTSUP : -ENOENT;
	if (!rc && !ret->virtual_thread)
		rc = -ENOTSUP;
	if (!rc)
		rc = jvm_objects__class(objects->vm, "Thread", &thread);
	if (!rc)
		rc = jvm_objects__field(objects, thread, "headStackableScopes", SCOPE,
					&ret->scopes);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(fields); i++)
		if (classes[fields[i].class].address)
			rc = jvm_objects__field(objects, classes[fields[i].class].address,
						fields[i].name, fields[i].signature, fields[i].to);
		else if (fields[i].class != THREAD_FLOCK)
			rc = -ENOTSUP;
	return rc == -ENOENT ? -ENOTSUP : rc;
}

/* --- sets --- */

struct kind { /* kind of container, by class */
	uint64_t class;
	uint32_t set, flock; /* offsets of the field; 0: no such field */
};

/* A field by which a node without a key refers to other nodes. Each kind of node has its own
 * class. */
struct link {
	const char *name, *signature;
	uint64_t class; /* 0: none seen yet */
	uint32_t at;	/* 0: the class has no such field */
};

enum { LINK_FIRST, LINK_NEXT_TABLE, LINKS_N };

struct listing {
	const struct jvm_containers *containers;
	struct link links[LINKS_N];
	struct jvm_virtual_list *to;
	unsigned reads_left;
	struct kind kinds[CLASSES_MAX];
	size_t n_kinds;
	int rc; /* -ENOMEM */
};

typedef void (*key_fn)(struct listing *listing, uint64_t key);

/* Takes @reads from the limit of the list. Returns false if the limit is reached: a structure
 * that changes, or a hostile one, may have no end. */
static bool spend(struct listing *listing, unsigned reads)
{
	bool may = listing->reads_left >= reads;

	listing->reads_left = may ? listing->reads_left - reads : 0;
	return may;
}

/* Returns the reference at @address; 0: null, unreadable, or the limit is reached. */
static uint64_t ref_at(struct listing *listing, uint64_t address)
{
	uint64_t ref;

	return !spend(listing, 1) || jvm_objects__ref(listing->containers->objects, address, &ref)
		       ? 0
		       : ref;
}

static uint64_t follow(struct listing *listing, uint64_t node, struct link *link)
{
	const struct jvm_objects *objects = listing->containers->objects;
	uint64_t class = jvm_objects__class_of(objects, node);

	if (class && class != link->class) {
		if (!spend(listing, FIELD_READS))
			return 0;
		link->class = class;
		if (jvm_objects__field(objects, class, link->name, link->signature, &link->at))
			link->at = 0;
	}
	return class && link->at ? ref_at(listing, node + link->at) : 0;
}

static void each_of_table(struct listing *listing, uint64_t table, key_fn on_key, bool moved);

/* Calls @on_key for the keys in a bin of the map. A bin is a list of nodes, or a node that leads
 * to others. */
static void each_of_bin(struct listing *listing, uint64_t node, key_fn on_key, bool moved)
{
	const struct jvm_containers *containers = listing->containers;
	uint64_t key;
	int32_t hash;

	while (node && !listing->rc) {
		if (!spend(listing, 1) ||
		    jvm_vm__read(containers->objects->vm, node + containers->hash, &hash,
				 sizeof(hash)))
			return;
		if (hash == HASH_TREE_BIN) {
			node = follow(listing, node, &listing->links[LINK_FIRST]);
			continue;
		}
		if (hash == HASH_MOVED) {
			if (!moved)
				each_of_table(listing,
					      follow(listing, node,
						     &listing->links[LINK_NEXT_TABLE]),
					      on_key, true);
			return;
		}
		key = ref_at(listing, node + containers->key);
		if (key)
			on_key(listing, key);
		node = ref_at(listing, node + containers->next);
	}
}

/* Calls @on_key for the keys in a table. While a map grows, some of its keys are in the next
 * table. `moved`: @table is that next table. */
static void each_of_table(struct listing *listing, uint64_t table, key_fn on_key, bool moved)
{
	const struct jvm_objects *objects = listing->containers->objects;
	uint64_t nodes[TABLE_BATCH], at = table + objects->array_refs;
	uint32_t n, part;

	if (!table || jvm_vm__read(objects->vm, table + objects->array_length, &n, sizeof(n)) ||
	    n > TABLE_MAX)
		return;
	for (; n && spend(listing, 1); n -= part) {
		part = min_of(n, TABLE_BATCH);
		if (jvm_objects__refs(objects, at, nodes, part))
			return;
		for (uint32_t i = 0; i < part; i++)
			each_of_bin(listing, nodes[i], on_key, moved);
		at += (uint64_t)part * (objects->narrow_refs ? sizeof(uint32_t) : sizeof(*nodes));
	}
}

static void each_of_set(struct listing *listing, uint64_t set, key_fn on_key)
{
	uint64_t map = set ? ref_at(listing, set + listing->containers->map) : 0;

	if (map)
		each_of_table(listing, ref_at(listing, map + listing->containers->table), on_key,
			      false);
}

/* --- containers --- */

static void take_thread(struct listing *listing, uint64_t object)
{
	struct jvm_virtual_list *to = listing->to;

	if (jvm_objects__class_of(listing->containers->objects, object) !=
	    listing->containers->virtual_thread)
		return;
	to->is_cut = to->n >= VIRTUAL_MAX;
	if (to->is_cut)
		return;
	if (array__reserve(&to->objects, &to->cap, to->n + 1, sizeof(*to->objects)))
		listing->rc = -ENOMEM;
	else
		to->objects[to->n++] = object;
}

/* Returns the kind of a container. Its fields belong to its class, or to one of its
 * superclasses. */
static const struct kind *kind_of(struct listing *listing, uint64_t object)
{
	const struct jvm_objects *objects = listing->containers->objects;
	uint64_t class = jvm_objects__class_of(objects, object), super_at;
	struct kind *kind;

	for (size_t i = 0; i < listing->n_kinds; i++)
		if (listing->kinds[i].class == class)
			return &listing->kinds[i];
	if (!class || listing->n_kinds == CLASSES_MAX ||
	    jvm_vm__field(objects->vm, "Klass", "_super", &super_at))
		return NULL;
	kind = &listing->kinds[listing->n_kinds++];
	*kind = (struct kind) { .class = class };
	for (int i = 0; i < SUPERS_MAX && class && !kind->set && !kind->flock; i++) {
		if (!spend(listing, 2 * FIELD_READS))
			break;
		if (jvm_objects__field(objects, class, NULL, SET, &kind->set))
			kind->set = 0;
		if (jvm_objects__field(objects, class, NULL, FLOCK, &kind->flock))
			kind->flock = 0;
		if (jvm_vm__read(objects->vm, class + super_at, &class, sizeof(class)))
			break;
	}
	return kind;
}

static void see_container(struct listing *listing, uint64_t object)
{
	const struct kind *kind = object && spend(listing, 1) ? kind_of(listing, object) : NULL;
	uint64_t flock;

	if (!kind)
		return;
	if (kind->set)
		each_of_set(listing, ref_at(listing, object + kind->set), take_thread);
	flock = kind->flock ? ref_at(listing, object + kind->flock) : 0;
	if (flock && listing->containers->threads)
		each_of_set(listing, ref_at(listing, flock + listing->containers->threads),
			    take_thread);
}

static void see_weak(struct listing *listing, uint64_t reference)
{
	see_container(listing, ref_at(listing, reference + listing->containers->referent));
}

/* Sees the containers that the thread has opened for itself. */
static void see_scopes(struct listing *listing, uint64_t thread)
{
	uint64_t scope = ref_at(listing, thread + listing->containers->scopes);

	for (int i = 0; scope && i < SCOPES_MAX; i++) {
		see_container(listing, scope);
		scope = ref_at(listing, scope + listing->containers->previous);
	}
}

static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int jvm_containers__list(const struct jvm_containers *containers, const uint64_t *platform,
			 size_t n, struct jvm_virtual_list *ret)
{
	const struct jvm_objects *objects = containers->objects;
	struct listing listing = { .containers = containers,
				   .links = { [LINK_FIRST] = { "first", TREE_NODE, 0, 0 },
					      [LINK_NEXT_TABLE] = { "nextTable", "[" NODE, 0, 0 } },
				   .to = ret,
				   .reads_left = READS_MAX };
	uint64_t set;
	size_t retained = 0;

	*ret = (struct jvm_virtual_list) { .is_untracked = true };
	if (containers->root && !jvm_objects__static(objects, containers->root, NULL, SET, &set)) {
		ret->is_untracked = false;
		each_of_set(&listing, ref_at(&listing, set), take_thread);
	}
	if (!jvm_objects__static(objects, containers->containers, "CONTAINER_REGISTRY", SET, &set))
		each_of_set(&listing, ref_at(&listing, set), see_weak);
	for (size_t i = 0; i < n; i++)
		see_scopes(&listing, platform[i]);
	for (size_t i = 0; i < ret->n; i++) /* the list grows in this loop */
		see_scopes(&listing, ret->objects[i]);
	if (ret->n)
		qsort(ret->objects, ret->n, sizeof(*ret->objects), by_address);
	for (size_t i = 0; i < ret->n; i++)
		if (!retained || ret->objects[i] != ret->objects[retained - 1])
			ret->objects[retained++] = ret->objects[i];
	ret->n = retained;
	ret->is_cut |= !listing.reads_left;
	return listing.rc;
}
