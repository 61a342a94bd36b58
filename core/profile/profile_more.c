// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

/* Libraries, threads, and copies of a profile. profile.c holds the frames and nodes. */

/* Cuts the name of a shared object at the first dot that no digit follows: "libx3.11.so.1.0",
 * "_x.abi3.so". That removes ".so", the numbers of a version, and the tag of an interpreter's
 * module. Other names stay. */
void profile__library(const char *file, char *buf, size_t size)
{
	const char *slash = strrchr(file, '/'), *name = slash && slash[1] ? slash + 1 : file;
	const char *so = strstr(name, ".so"), *dot;
	size_t len = strlen(name);

	if (so && so > name && (!so[3] || so[3] == '.')) {
		for (dot = strchr(name, '.'); dot && isdigit((unsigned char)dot[1]);)
			dot = strchr(dot + 1, '.');
		if (dot && dot > name)
			len = dot - name;
	}
	snprintf(buf, size, "%.*s", (int)min_of(len, size), name);
}

static bool is_interpreter(const struct profile *profile, uint32_t library)
{
	for (size_t i = 0; i < profile->n_interpreters; i++)
		if (profile->interpreters[i] == library)
			return true;
	return false;
}

static bool is_caller(const struct profile *profile, const char *name)
{
	for (const char *const *caller = profile->callers; caller && *caller; caller++)
		if (!fnmatch(*caller, name, FNM_EXTMATCH))
			return true;
	return false;
}

/* Detects system calls by the prefixes of arch/ARCH/include/asm/syscall_wrapper.h (Linux 6.1). */
uint8_t profile__role(const struct profile *profile, const struct profile_frame *frame)
{
	static const char *const syscalls[] = { "__x64_sys_", "__ia32_sys_", "__arm64_sys_" };
	const char *name = strtab__get(profile->strings, frame->name);
	bool native = frame->kind == KIND_NATIVE || frame->kind == KIND_INLINED;

	for (size_t i = 0; frame->kind == KIND_KERNEL && i < ARRAY_SIZE(syscalls); i++)
		if (!strncmp(name, syscalls[i], strlen(syscalls[i])))
			return ROLE_SYSCALL;
	if (!native || !is_interpreter(profile, frame->library))
		return ROLE_PLAIN;
	if (frame->name == frame->library)
		return ROLE_BLOCK;
	return is_caller(profile, name) ? ROLE_CALLER : ROLE_INTERPRETER;
}

int profile__interpreter(struct profile *profile, const char *library)
{
	uint32_t id, block;

	if (strtab__intern(profile->strings, library, &id) ||
	    array__reserve(&profile->interpreters, &profile->cap_interpreters,
			   profile->n_interpreters + 1, sizeof(*profile->interpreters)))
		return -ENOMEM;
	if (!id || is_interpreter(profile, id))
		return 0;
	profile->interpreters[profile->n_interpreters++] = id;
	return profile__block(profile, id, &block);
}

int profile__add_image(struct profile *profile, const char *path, const char *build_id,
		       uint32_t *ret)
{
	struct profile_image image;

	if (strtab__intern(profile->strings, path, &image.path) ||
	    strtab__intern(profile->strings, build_id, &image.build_id) ||
	    array__reserve(&profile->images, &profile->cap_images, profile->n_images + 1,
			   sizeof(*profile->images)))
		return -ENOMEM;
	profile->images[profile->n_images++] = image;
	*ret = profile->n_images;
	return 0;
}

int profile__block(struct profile *profile, uint32_t library, uint32_t *ret_frame)
{
	const char *name = strtab__get(profile->strings, library);

	return profile__code(profile, KIND_NATIVE, name, NULL, 0, name, ret_frame);
}

void profile_thread__done(struct profile_thread *thread)
{
	free(thread->process);
	free(thread->name);
	free(thread->cgroup);
	free(thread->container);
	free(thread->command);
	free(thread->service);
}

int profile__add_thread(struct profile *profile, const struct profile_thread_of *of, uint32_t *ret)
{
	struct profile_thread thread = { of->pid,
					 of->tid,
					 of->task,
					 strdup(of->process),
					 strdup(of->name),
					 strdup(of->cgroup ?: ""),
					 strdup(of->container ?: ""),
					 strdup(of->command ?: ""),
					 strdup(of->service ?: "") };

	if (!thread.process || !thread.name || !thread.cgroup || !thread.container ||
	    !thread.command || !thread.service ||
	    array__reserve(&profile->threads, &profile->cap_threads, profile->n_threads + 1,
			   sizeof(thread))) {
		profile_thread__done(&thread);
		return -ENOMEM;
	}
	*ret = profile->n_threads;
	profile->threads[profile->n_threads++] = thread;
	return 0;
}

int profile__copy_thread(struct profile *profile, const struct profile_thread *thread,
			 uint32_t *ret)
{
	const struct profile_thread_of of = { thread->pid,	 thread->tid,	  thread->task,
					      thread->process,	 thread->name,	  thread->cgroup,
					      thread->container, thread->command, thread->service };

	return profile__add_thread(profile, &of, ret);
}

int profile__add_share(struct profile *profile, const struct profile_share *share)
{
	if (array__reserve(&profile->shares, &profile->cap_shares, profile->n_shares + 1,
			   sizeof(*share)))
		return -ENOMEM;
	profile->shares[profile->n_shares++] = *share;
	return 0;
}

static char *copy_of(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

static int copy_frames(const struct profile *from, struct profile *to)
{
	int ret = 0;
	size_t i;

	to->callers = from->callers;
	to->rules = from->rules;
	for (i = 0; !ret && i < from->n_images; i++) {
		uint32_t number;

		ret = profile__add_image(to, strtab__get(from->strings, from->images[i].path),
					 strtab__get(from->strings, from->images[i].build_id),
					 &number);
	}
	for (i = 0; !ret && i < from->n_frames; i++) {
		const struct profile_frame *frame = &from->frames[i];
		uint32_t id;

		ret = profile__code_at(to, frame, strtab__get(from->strings, frame->name),
				       strtab__get(from->strings, frame->file),
				       strtab__get(from->strings, frame->library), &id);
		if (!ret)
			to->frames[id].role = frame->role;
	}
	for (i = 0; !ret && i < from->n_interpreters; i++)
		ret = profile__interpreter(to, strtab__get(from->strings, from->interpreters[i]));
	return ret;
}

/* Writes the share with at most three significant digits. Only a share of 0 is shown as 0. */
static int put_share(char *text, size_t size, uint64_t part, uint64_t whole, const char *what)
{
	double percent = 100.0 * part / whole;

	return percent < 0.001 ? snprintf(text, size, "less than 0.001 %% of %s frames", what)
			       : snprintf(text, size, "%.3g %% of %s frames", percent, what);
}

void profile__inferred(const struct profile_evidence *evidence, char text[PROFILE_INFERRED_BYTES])
{
	size_t size = PROFILE_INFERRED_BYTES;
	int len = 0;

	text[0] = '\0';
	if (evidence->inferred_natives)
		len += put_share(text, size, evidence->inferred_natives, evidence->natives,
				 "native");
	if (evidence->inferred_natives && evidence->inferred_runtimes)
		len += snprintf(text + len, size - len, " and ");
	if (evidence->inferred_runtimes)
		len += put_share(text + len, size - len, evidence->inferred_runtimes,
				 evidence->runtimes, "runtime");
	if (len)
		snprintf(text + len, size - len, " are inferred");
}

struct profile *profile__like(const struct profile *from)
{
	struct profile *to = profile__new();
	bool failed = false;
	size_t i;

	if (!to)
		return NULL;
	memcpy(to->kinds, from->kinds, sizeof(to->kinds));
	to->n_kinds = from->n_kinds;
	to->unit = from->unit;
	to->counts_calls = from->counts_calls;
	to->group_kind = from->group_kind;
	to->idle = from->idle;
	to->unbroken = from->unbroken;
	to->evidence = from->evidence;
	to->parked = from->parked;
	to->parked_samples = from->parked_samples;
	to->has_parked = from->has_parked;
	to->duration_s = from->duration_s;
	to->frequency_hz = from->frequency_hz;
	to->samples = from->samples;
	to->occurrences = from->occurrences;
	to->unit_name = copy_of(from->unit_name, &failed);
	to->event = copy_of(from->event, &failed);
	to->occurrences_name = copy_of(from->occurrences_name, &failed);
	to->task_name = copy_of(from->task_name, &failed);
	to->other_events = copy_of(from->other_events, &failed);
	to->nameless = copy_of(from->nameless, &failed);
	to->target = copy_of(from->target, &failed);
	to->started = copy_of(from->started, &failed);
	to->host = copy_of(from->host, &failed);
	for (i = 0; i < from->n_losses; i++)
		failed |= profile__add_loss(to, from->losses[i].name, from->losses[i].count) != 0;
	if (failed || copy_frames(from, to)) {
		profile__free(to);
		return NULL;
	}
	return to;
}

/* A file can contain long stacks that all differ at their ends, which makes many nodes. */
#define INVERTED_NODES_MAX (1u << 26)

/* Adds the stack that ends at @node, turned round. */
static int invert_stack(const struct profile *from, uint32_t node, struct profile *to,
			uint32_t *stack, uint32_t *ret_node)
{
	const struct profile_node *end = &from->nodes[node];
	const struct profile_value value = { .weight = end->self,
					     .waiting = end->waiting,
					     .preempted = end->preempted,
					     .samples = end->samples,
					     .occurrences = end->occurrences,
					     .waits = end->waits,
					     .preemptions = end->preemptions };
	size_t n = 0;

	if (!end->self && !end->samples && !end->occurrences)
		return 0;
	stack++; /* leaves room for the outermost label */
	for (; node; node = from->nodes[node].parent)
		stack[n++] = from->nodes[node].frame;
	if (n && from->kinds[from->frames[stack[n - 1]].kind].label) {
		stack[-1] = stack[n - 1];
		stack--;
	}
	if (to->n_nodes + n > INVERTED_NODES_MAX)
		return -ENOMEM;
	return profile__add_value(to, stack, n, &value, ret_node);
}

/* Copies threads and shares. @nodes: by node, the node where its stack ends now. */
static int copy_shares(const struct profile *from, const uint32_t *nodes, struct profile *to)
{
	uint32_t number;
	int ret = 0;

	for (size_t i = 0; !ret && i < from->n_threads; i++) {
		const struct profile_thread *thread = &from->threads[i];

		ret = profile__copy_thread(to, thread, &number);
	}
	for (size_t i = 0; !ret && i < from->n_shares; i++) {
		struct profile_share share = from->shares[i];

		share.node = nodes[share.node];
		share.value.calls = 0;
		ret = profile__add_share(to, &share);
	}
	return ret;
}

int profile__inverted(const struct profile *from, struct profile **ret)
{
	struct profile *to = profile__like(from);
	uint32_t *stack = NULL, *depth = calloc(from->n_nodes, sizeof(*depth));
	uint32_t *nodes = calloc(from->n_nodes, sizeof(*nodes)), deepest = 0;
	int code = -ENOMEM;

	for (size_t i = 1; depth && i < from->n_nodes; i++) {
		depth[i] = depth[from->nodes[i].parent] + 1;
		deepest = max_of(deepest, depth[i]);
	}
	stack = calloc(deepest + 2, sizeof(*stack));
	if (!to || !depth || !nodes || !stack)
		goto out;
	code = 0;
	for (size_t i = 0; !code && i < from->n_nodes; i++)
		code = invert_stack(from, i, to, stack, &nodes[i]);
	if (!code)
		code = copy_shares(from, nodes, to);
	if (code)
		goto out;
	*ret = to;
	to = NULL;
out:
	profile__free(to);
	free(stack);
	free(nodes);
	free(depth);
	return code;
}
