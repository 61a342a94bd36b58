// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks that wait outside of any thread. Their frames are walked like those of a thread, in a
 * patched memory in which a thread runs them. */
#include "core/dump/dump_state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/host/programs.h"
#include "core/base/fnv.h"
#include "core/base/u64map.h"
#include "core/base/util.h"

/* First of the ids that no thread has (PID_MAX_LIMIT, include/linux/threads.h). */
#define FIRST_ID (1U << 30)

/* Maximum number of entries of tasks with a number. Their stacks are claims of the process. */
#define GROUPS_MAX 20000

struct group { /* the tasks of one entry */
	size_t entry;
	uint64_t *key; /* owned */
	size_t n;      /* words of the key */
};

struct taking {
	struct dump *dump;
	const struct runtime *runtime;
	int number; /* its index */
	struct memory *patched;
	struct u64map by_hash; /* number of the group + 1 */
	struct group *groups;
	size_t n_groups, cap_groups;
	size_t n_moved;	 /* tasks that ran while they were read */
	size_t n_beyond; /* tasks whose stacks exceed GROUPS_MAX */
	struct err *err;
};

/* Adds an entry for the task with all data except frames. NULL: out of memory. */
static struct dump_thread *add_task(const struct taking *taking, const struct runtime_task *task)
{
	struct dump_process *result = taking->dump->result;
	struct dump_thread *ret;

	if (array__reserve(&result->tasks, &result->cap_tasks, result->n_tasks + 1, sizeof(*ret)))
		return NULL;
	ret = &result->tasks[result->n_tasks++];
	*ret = (struct dump_thread) { .tid = FIRST_ID + result->n_tasks,
				      .call = -1,
				      .sort = taking->runtime->inspect->task ?: "task" };
	snprintf(ret->name, sizeof(ret->name), "%s", task->name);
	snprintf(ret->waits_for, sizeof(ret->waits_for), "%s", task->waits_for ?: "");
	snprintf(ret->doing, sizeof(ret->doing), "%s", task->state ?: "");
	snprintf(ret->reason, sizeof(ret->reason), "%s", task->reason ?: "");
	if (task->tid)
		ret->of_thread = dump__by_own_id(taking->dump, task->tid);
	return ret;
}

static int add_alike(struct dump_thread *entry, const struct runtime_task *task)
{
	if (array__reserve(&entry->alike, &entry->cap_alike, entry->n_alike + 1,
			   sizeof(*entry->alike)))
		return -ENOMEM;
	entry->alike[entry->n_alike++] = (struct dump_alike) { task->id, task->waited_ns };
	return 0;
}

/* --- tasks with equal stacks --- */

#define KEY_TEXT_BYTES (DUMP_DOING_BYTES + DUMP_REASON_BYTES)
#define KEY_WORDS_MAX  (KEY_TEXT_BYTES / 8 + SAMPLE_WORDS_MAX)

/* Writes the key of the task's last sample: state, reason, the addresses of native frames without
 * their places on the stack, and the pairs of sections. Returns the number of words. */
static size_t make_key(const struct dump *dump, const struct runtime_task *task, uint64_t *ret)
{
	const struct rec_sample *rec = dump__last_sample(dump);
	const uint64_t *words = (const uint64_t *)(rec + 1) + (rec ? rec->n_kernel : 0);
	size_t n = KEY_TEXT_BYTES / 8;

	memset(ret, 0, KEY_TEXT_BYTES);
	snprintf((char *)ret, DUMP_DOING_BYTES, "%s", task->state ?: "");
	snprintf((char *)ret + DUMP_DOING_BYTES, DUMP_REASON_BYTES, "%s", task->reason ?: "");
	for (int i = 0; rec && i < rec->n_native; i++, words += 2)
		ret[n++] = words[0];
	for (int i = 0; rec && i < rec->n_sections; i++) {
		memcpy(ret + n, words, 16 * (size_t)rec->sections[i].n);
		n += 2 * (size_t)rec->sections[i].n;
		words += 2 * (size_t)rec->sections[i].n;
	}
	return n;
}

/* Adds the task to the entry with the same key. Returns 1 if there is one, or there are too many
 * entries; 0: the key is that of the next entry; or -ENOMEM. */
static int join(struct taking *taking, const struct runtime_task *task)
{
	static uint64_t key[KEY_WORDS_MAX];
	struct dump_process *result = taking->dump->result;
	size_t n = make_key(taking->dump, task, key);
	uint64_t hash = fnv__add(FNV_BEGIN, (const char *)key, 8 * n);
	uint32_t found = u64map__get(&taking->by_hash, hash);
	struct group *group = found ? &taking->groups[found - 1] : NULL;

	if (group && group->n == n && !memcmp(group->key, key, 8 * n))
		return add_alike(&result->tasks[group->entry], task) ?: 1;
	if (taking->n_groups == GROUPS_MAX) {
		taking->n_beyond++;
		return 1;
	}
	if (array__reserve(&taking->groups, &taking->cap_groups, taking->n_groups + 1,
			   sizeof(*taking->groups)))
		return -ENOMEM;
	group = &taking->groups[taking->n_groups];
	*group = (struct group) { result->n_tasks, malloc(8 * n), n };
	if (!group->key)
		return -ENOMEM;
	memcpy(group->key, key, 8 * n);
	return u64map__put(&taking->by_hash, hash, ++taking->n_groups);
}

/* --- one task --- */

static int take_sample(const struct taking *taking, const struct runtime_task *task)
{
	struct dump *dump = taking->dump;
	struct host_thread thread = { .tgid = dump->process->pid,
				      .tid = dump->process->pid,
				      .name = dump->process->info.name,
				      .syscall = -1,
				      .fs_base = task->fs_base,
				      .own_ids = dump->own_ids,
				      .start_stack = dump->start_stack,
				      .suspended = !!task->regs };

	if (memory__patch(taking->patched, task->patches, task->n_patches))
		return -ENOMEM;
	for (int i = 0; i < UNWIND_REGS; i++)
		thread.regs[i] = task->regs ? task->regs[i] : UNKNOWN_REG;
	if (task->has_native_frames)
		thread.tid = FIRST_ID + dump->result->n_tasks + 1;
	return dump__sample(dump, &thread, taking->patched);
}

/* Returns true if the task did not run during the sample. */
static bool stood_still(const struct taking *taking, const struct runtime_task *task)
{
	const struct runtime *runtime = taking->runtime;
	const struct dump *dump = taking->dump;

	return !runtime->parked ||
	       runtime->parked->is_parked(dump->sessions[taking->number], dump->process->pid, task);
}

static int on_task(void *ctx, const struct runtime_task *task)
{
	struct taking *taking = ctx;
	struct dump *dump = taking->dump;
	struct dump_thread *entry;
	int code;

	if (dump->opts.min_age_ns && task->waited_ns < dump->opts.min_age_ns)
		return 0;
	code = take_sample(taking, task);
	if (!code && !stood_still(taking, task)) {
		taking->n_moved++;
		dump__drop_samples(dump);
		return 0;
	}
	if (!code && task->id)
		code = join(taking, task);
	if (code) {
		dump__drop_samples(dump);
		return min_of(code, 0);
	}
	entry = add_task(taking, task);
	if (!entry || (task->id && add_alike(entry, task)))
		return -ENOMEM;
	entry->complete = dump__is_whole(dump);
	if (!task->has_native_frames)
		dump__keep_runtimes(dump, entry->tid);
	return dump__route(dump, taking->err);
}

/* Compares tasks by thread, number and name. Those without a thread are last. */
static int by_name(const void *a, const void *b)
{
	const struct dump_thread *x = a, *y = b;
	int order = strverscmp(x->name, y->name);

	if (x->of_thread != y->of_thread)
		return x->of_thread - 1 < y->of_thread - 1 ? -1 : 1;
	if (x->n_alike != y->n_alike)
		return x->n_alike > y->n_alike ? -1 : 1;
	return order ? order : x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void note_left_out(struct dump_process *result, const char *what)
{
	size_t n = strlen(result->note);

	if (what)
		snprintf(result->note + n, sizeof(result->note) - n, "%s%s", n ? "; " : "", what);
}

static void free_groups(struct taking *taking)
{
	for (size_t i = 0; i < taking->n_groups; i++)
		free(taking->groups[i].key);
	free(taking->groups);
	u64map__done(&taking->by_hash);
}

/* Notes that @n tasks are missing. */
static void note_missing(struct taking *taking, size_t n, const char *why)
{
	char text[128];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%zu %s%s missing: %s", n,
		 taking->runtime->inspect->task ?: "task", n == 1 ? " is" : "s are", why);
	note_left_out(taking->dump->result, text);
}

/* Reads the tasks of one runtime. */
static int take_of(struct taking *taking)
{
	const struct dump *dump = taking->dump;
	const struct runtime *runtime = taking->runtime;
	struct runtime_session *session = dump->sessions[taking->number];
	int code = runtime->inspect->tasks(session, dump->process->pid, on_task, taking);

	if (!code && runtime->inspect->tasks_left_out)
		note_left_out(dump->result, runtime->inspect->tasks_left_out(session));
	note_missing(taking, taking->n_moved, "the stack changed while braid read it");
	note_missing(taking, taking->n_beyond, "dump lists 20,000 different stacks");
	taking->n_moved = taking->n_beyond = 0;
	return code;
}

int dump__take_tasks(struct dump *dump, struct err *err)
{
	const struct runtime *const *runtimes = dump->opts.runtimes;
	struct dump_process *result = dump->result;
	struct taking taking = { .dump = dump, .err = err };
	int code = memory__patched(dump->cached, &taking.patched);

	for (int r = 0; !code && runtimes[r]; r++) {
		if (!runtime__has(runtimes[r], inspect, tasks) || !dump->sessions[r])
			continue;
		taking.runtime = runtimes[r];
		taking.number = r;
		code = take_of(&taking);
	}
	memory__free(taking.patched);
	free_groups(&taking);
	if (result->n_tasks)
		qsort(result->tasks, result->n_tasks, sizeof(*result->tasks), by_name);
	return code ? err__set(err, code, "cannot list the tasks of PID %u: %s", dump->process->pid,
			       strerror(-code))
		    : 0;
}
