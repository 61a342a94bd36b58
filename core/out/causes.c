// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/causes.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/function_rules.h"

struct wait_name {
	const char *pattern, *what;
	bool lock;
};

/* System calls, by the names of their functions in the kernel. */
static const struct wait_name calls[] = {
	{ "*_sys_futex*", "another thread (futex)", false },
	{ "*_sys_@(recv|accept|connect|send)*", "a socket", false },
	{ "*_sys_@(read|readv|pread*|write|writev|pwrite*|splice|sendfile*)", "a file", false },
	{ "*_sys_@(poll|ppoll|epoll_*|select|pselect*)*", "an event (poll)", false },
	{ "*_sys_*nanosleep*", "a timer (sleep)", false },
	{ "*_sys_@(wait*)", "a child process", false },
	{ "*_sys_@(flock|fcntl)*", "a file lock", true },
	{ "*_sys_@(fsync|fdatasync|msync|sync*)", "the disk", false },
	{}
};

/* Functions of the kernel that describe the wait more exactly. */
static const struct wait_name kernel_functions[] = {
	{ "@(tcp|udp|inet|inet6|inet_csk)_*", "the network", false },
	{ "unix_*", "a local socket", false },
	{ "@(pipe|anon_pipe|fifo)_*", "a pipe", false },
	{ "@(tty|n_tty)_*", "a terminal", false },
	{ "@(io_schedule|folio_wait|bio|submit_bio)*", "the disk", false },
	{}
};

/* Functions of the C library that wait by a futex. */
static const struct wait_name libc_functions[] = { { "*pthread_mutex_*lock*", "a mutex", true },
						   { "*lll_lock_wait*", "a mutex", true },
						   { "*pthread_rwlock_*lock*", "a lock", true },
						   { "*pthread_cond_*wait*", "a condition", false },
						   { "*sem_*wait*", "a semaphore", false },
						   { "*pthread_*join*", "the end of a thread",
						     false },
						   {} };

static const struct profile_frame *frame_of(const struct profile *profile, uint32_t node)
{
	return &profile->frames[profile->nodes[node].frame];
}

static const char *name_of(const struct profile *profile, uint32_t node)
{
	return strtab__get(profile->strings, frame_of(profile, node)->name);
}

/* Returns the first rule that matches a function of the stack, innermost first. */
static const struct wait_name *find_name(const struct profile *profile, uint32_t node, bool kernel,
					 const struct wait_name *names)
{
	for (; node; node = profile->nodes[node].parent) {
		if ((frame_of(profile, node)->kind == KIND_KERNEL) != kernel)
			continue;
		for (const struct wait_name *name = names; name->pattern; name++)
			if (!fnmatch(name->pattern, name_of(profile, node), FNM_EXTMATCH))
				return name;
	}
	return NULL;
}

static const char *runtime_wait(const struct profile *profile, uint32_t node)
{
	const char *what = NULL;

	for (; node && !what; node = profile->nodes[node].parent)
		what = function_rules__wait(profile, frame_of(profile, node));
	return what;
}

/* Returns the label of the stack's state: the first label rootwards. */
static const char *state_of(const struct profile *profile, uint32_t node)
{
	while (node && !profile->kinds[frame_of(profile, node)->kind].label)
		node = profile->nodes[node].parent;
	return node ? name_of(profile, node) : "";
}

/* Returns the name of the lock of the innermost runtime of the stack. */
static const char *name_lock(struct causes *causes, uint32_t node)
{
	const struct profile *profile = causes->profile;
	uint8_t kind;

	while (node && !profile__is_runtime(profile, frame_of(profile, node)))
		node = profile->nodes[node].parent;
	if (!node)
		return "the lock of the interpreter";
	kind = frame_of(profile, node)->kind;
	snprintf(causes->locks_of[kind], CAUSE_LOCK_BYTES, "the lock of %.40s",
		 profile->kinds[kind].name);
	return causes->locks_of[kind];
}

static void name_wait(struct causes *causes, uint32_t node, struct cause *ret)
{
	const struct profile *profile = causes->profile;
	const struct wait_name *call = find_name(profile, node, true, calls), *more;
	const char *state = state_of(profile, node), *what;

	*ret = (struct cause) { .what = "the kernel" };
	if (!strcmp(state, "waiting for the lock")) {
		ret->what = name_lock(causes, node);
		ret->lock = true;
		return;
	}
	if (!strcmp(state, "parked")) {
		what = runtime_wait(profile, node);
		ret->what = what ? what : "an event";
		ret->lock = what && !strcmp(what, "a lock");
		return;
	}
	if (!call)
		return;
	if (call == &calls[0]) { /* the call does not show the purpose of the futex */
		more = find_name(profile, node, false, libc_functions);
		what = runtime_wait(profile, node);
		ret->what = what ? what : more ? more->what : call->what;
		ret->lock = what ? !strcmp(what, "a lock") : more && more->lock;
		return;
	}
	more = find_name(profile, node, true, kernel_functions);
	ret->what = more ? more->what : call->what;
	ret->lock = call->lock;
}

static bool is_libc(const struct profile *profile, const struct profile_frame *frame)
{
	const char *library = strtab__get(profile->strings, frame->library);

	return !fnmatch("@(libc|libc-*|libc.*|ld-*|libpthread*|[[]vdso*)", library, FNM_EXTMATCH);
}

/* Returns the node of the function that the weight counts for, or 0 if there is none. */
static uint32_t find_owner(const struct profile *profile, uint32_t node)
{
	uint32_t runtime = 0, native = 0, any = node;

	for (; node; node = profile->nodes[node].parent) {
		const struct profile_frame *frame = frame_of(profile, node);

		if (function_rules__is_own(profile, frame))
			return node;
		if (!runtime && function_rules__is_function(profile, frame))
			runtime = node;
		if (!native && (frame->kind == KIND_NATIVE || frame->kind == KIND_INLINED) &&
		    !is_libc(profile, frame))
			native = node;
	}
	node = runtime ? runtime : native ? native : any;
	return profile->kinds[frame_of(profile, node)->kind].label ? 0 : node;
}

static bool is_same(const struct causes *causes, const struct cause *a, const struct cause *b)
{
	const struct profile_frame *frames = causes->profile->frames;
	const struct profile_frame *x = a->frame ? &frames[a->frame - 1] : NULL;
	const struct profile_frame *y = b->frame ? &frames[b->frame - 1] : NULL;

	if (!a->what != !b->what || (a->what && strcmp(a->what, b->what) != 0) || !x != !y)
		return false;
	return !x || (x->name == y->name && x->file == y->file && x->kind == y->kind);
}

static void add(struct causes *causes, const struct cause *found)
{
	struct cause *at = causes->list;

	while (at < causes->list + causes->n && !is_same(causes, at, found))
		at++;
	if (at == causes->list + causes->n) {
		*at = *found;
		at->line_weight = found->weight;
		causes->n++;
		return;
	}
	at->weight += found->weight;
	if (found->weight > at->line_weight) {
		at->line_weight = found->weight;
		at->frame = found->frame;
	}
}

static void add_node(struct causes *causes, uint32_t node)
{
	const struct profile *profile = causes->profile;
	const struct profile_node *at = &profile->nodes[node];
	uint32_t owner = node ? find_owner(profile, node) : 0;
	uint32_t frame = owner ? profile->nodes[owner].frame + 1 : 0;
	uint64_t cpu = at->self - min_of(at->self, at->waiting + at->preempted);
	struct cause found = {};

	if (at->waiting) {
		name_wait(causes, node, &found);
		causes->locks += found.lock ? at->waiting : 0;
		found.frame = frame;
		found.weight = at->waiting;
		add(causes, &found);
	}
	if (cpu) {
		found = (struct cause) { .frame = frame, .weight = cpu };
		add(causes, &found);
		causes->native +=
			node && function_rules__is_function(profile, frame_of(profile, node)) ? 0
											      : cpu;
	}
	causes->waiting += at->waiting;
	causes->preempted += at->preempted;
	causes->cpu += cpu;
}

static int by_weight(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

int causes__init(struct causes *causes, const struct profile *profile, const uint32_t *nodes,
		 size_t n)
{
	if (!nodes)
		n = profile->n_nodes;
	*causes = (struct causes) { .profile = profile };
	causes->list = calloc(2 * n, sizeof(*causes->list));
	if (!causes->list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint32_t node = nodes ? nodes[i] : i;

		if (profile->nodes[node].self)
			add_node(causes, node);
	}
	qsort(causes->list, causes->n, sizeof(*causes->list), by_weight);
	return 0;
}

void causes__done(struct causes *causes)
{
	free(causes->list);
	causes->list = NULL;
}
