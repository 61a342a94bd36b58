// SPDX-License-Identifier: GPL-2.0-or-later
/* Sentences about a recording, made of its numbers: output__findings(). The profile is grouped by
 * state, has all frames, and their lines.
 *
 * Each node with its own weight adds it to one finding: the object of its wait, or CPU, and the
 * function that it counts for. That is the innermost function that the user has written. If there
 * is none, it is the innermost one of a runtime, otherwise the innermost native one outside the C
 * library. */
#include "core/out/out_findings.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/profile/function_rules.h"

#define SHOWN	    3	 /* findings in a sentence */
#define SHARE_LEAST 0.05 /* smallest share of the whole, except for the first finding */
#define TEXT_BYTES  600
#define LOCK_BYTES  80

struct finding {
	const char *what; /* object of the wait; NULL: CPU */
	uint32_t frame;	  /* frame of the function, at its line with most weight, + 1; 0: unknown */
	uint64_t weight, line_weight;
	bool lock;
};

struct findings {
	const struct profile *profile;
	struct finding *list;
	size_t n;
	uint64_t cpu, waiting, preempted, locks, native;
	char locks_of[KINDS_MAX][LOCK_BYTES]; /* "the lock of NAME", by kind */
};

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

static uint32_t group_of(const struct profile *profile, uint32_t node)
{
	while (profile->nodes[node].parent)
		node = profile->nodes[node].parent;
	return node;
}

/* Returns the name of the lock of the innermost runtime of the stack. */
static const char *name_lock(struct findings *findings, uint32_t node)
{
	const struct profile *profile = findings->profile;
	uint8_t kind;

	while (node && !profile__is_runtime(profile, frame_of(profile, node)))
		node = profile->nodes[node].parent;
	if (!node)
		return "the lock of the interpreter";
	kind = frame_of(profile, node)->kind;
	snprintf(findings->locks_of[kind], LOCK_BYTES, "the lock of %.40s",
		 profile->kinds[kind].name);
	return findings->locks_of[kind];
}

static void name_wait(struct findings *findings, uint32_t node, struct finding *ret)
{
	const struct profile *profile = findings->profile;
	const struct wait_name *call = find_name(profile, node, true, calls), *more;
	const char *what;

	*ret = (struct finding) { .what = "the kernel" };
	if (!strcmp(name_of(profile, group_of(profile, node)), "waiting for the lock")) {
		ret->what = name_lock(findings, node);
		ret->lock = true;
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

static bool is_same(const struct findings *findings, const struct finding *a,
		    const struct finding *b)
{
	const struct profile_frame *frames = findings->profile->frames;
	const struct profile_frame *x = a->frame ? &frames[a->frame - 1] : NULL;
	const struct profile_frame *y = b->frame ? &frames[b->frame - 1] : NULL;

	if (!a->what != !b->what || (a->what && strcmp(a->what, b->what) != 0) || !x != !y)
		return false;
	return !x || (x->name == y->name && x->file == y->file && x->kind == y->kind);
}

static void add(struct findings *findings, const struct finding *found)
{
	struct finding *at = findings->list;

	while (at < findings->list + findings->n && !is_same(findings, at, found))
		at++;
	if (at == findings->list + findings->n) {
		*at = *found;
		at->line_weight = found->weight;
		findings->n++;
		return;
	}
	at->weight += found->weight;
	if (found->weight > at->line_weight) {
		at->line_weight = found->weight;
		at->frame = found->frame;
	}
}

static void add_node(struct findings *findings, uint32_t node)
{
	const struct profile *profile = findings->profile;
	const struct profile_node *at = &profile->nodes[node];
	uint32_t owner = node ? find_owner(profile, node) : 0;
	uint32_t frame = owner ? profile->nodes[owner].frame + 1 : 0;
	uint64_t cpu = at->self - min_of(at->self, at->waiting + at->preempted);
	struct finding found = {};

	if (at->waiting) {
		name_wait(findings, node, &found);
		findings->locks += found.lock ? at->waiting : 0;
		found.frame = frame;
		found.weight = at->waiting;
		add(findings, &found);
	}
	if (cpu) {
		found = (struct finding) { .frame = frame, .weight = cpu };
		add(findings, &found);
		findings->native +=
			node && function_rules__is_function(profile, frame_of(profile, node)) ? 0
											      : cpu;
	}
	findings->waiting += at->waiting;
	findings->preempted += at->preempted;
	findings->cpu += cpu;
}

static int by_weight(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

static int percent(uint64_t part, uint64_t whole)
{
	return whole ? (int)(100.0 * part / whole + 0.5) : 0;
}

static int put_findings(const struct findings *findings, bool waits, uint64_t whole, FILE *out)
{
	const struct profile *profile = findings->profile;
	size_t n = 0;

	for (size_t i = 0; i < findings->n && n < SHOWN; i++) {
		const struct finding *at = &findings->list[i];
		char *label = NULL;

		if (!at->what == waits || (n && at->weight < SHARE_LEAST * whole) ||
		    (waits && !percent(at->weight, whole)))
			continue;
		if (at->frame) {
			label = output__label(profile, &profile->frames[at->frame - 1], false);
			if (!label)
				return -ENOMEM;
			escape__printable(label);
		}
		fputs(n++ ? ", " : ": ", out);
		if (waits)
			fprintf(out, "%d %% for %s%s%s", percent(at->weight, whole), at->what,
				label ? " in " : "", label ? label : "");
		else
			fprintf(out, "%s %d %%", label ? label : "[no stack]",
				percent(at->weight, whole));
		free(label);
	}
	fputs(".\n", out);
	return 0;
}

static int put_sentences(const struct findings *findings, FILE *out)
{
	const struct profile *profile = findings->profile;
	uint64_t whole = profile->total;
	char text[32];
	int ret = 0;

	if (findings->waiting) {
		fprintf(out, "%d %% of thread time is waiting", percent(findings->waiting, whole));
		ret = put_findings(findings, true, whole, out);
	}
	if (!ret && findings->preempted > SHARE_LEAST * whole)
		fprintf(out, "%d %% of thread time another thread had the CPU.\n",
			percent(findings->preempted, whole));
	if (ret || !findings->cpu)
		return ret;
	output__amount(profile, findings->cpu, text, sizeof(text));
	if (profile__mixes(profile))
		fprintf(out, "CPU %d %%", percent(findings->cpu, whole));
	else if (output__names_event(profile))
		fprintf(out, "%s %s", profile->event, text);
	else
		fprintf(out, "CPU %s", text);
	return put_findings(findings, false, findings->cpu, out);
}

int output__findings(const struct profile *profile, FILE *out, struct output_advice *ret)
{
	struct findings findings = { .profile = profile };
	int code = 0;

	*ret = (struct output_advice) {};
	findings.list = calloc(2 * profile->n_nodes, sizeof(*findings.list));
	if (!findings.list)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->n_nodes; i++)
		if (profile->nodes[i].self)
			add_node(&findings, i);
	qsort(findings.list, findings.n, sizeof(*findings.list), by_weight);
	if (!profile->total)
		fputs(profile->idle.weight || profile->unbroken.weight
			      ? "All threads were idle (--idle show shows them).\n"
			      : "This recording is empty.\n",
		      out);
	else
		code = put_sentences(&findings, out);
	ret->locks = findings.locks > 0.1 * profile->total;
	ret->native = findings.native > 0.3 * findings.cpu;
	free(findings.list);
	return code;
}
