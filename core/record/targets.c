// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/heap.h"

static void prepare_command(const struct session_opts *opts)
{
	for (int i = 0; opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i &&
		    runtime__has(opts->runtimes[i], probes, prepare_command))
			opts->runtimes[i]->probes->prepare_command(opts->command);
}

/* Sets the command's environment so that it loads the sampler for the probes of alloc:usdt. */
static void preload(const struct session *session)
{
	const struct session_opts *opts = &session->opts;
	uint32_t number = event_list__of_slot(&opts->events, EVENT_ALLOC);
	struct err note = {};

	if (opts->no_preload || !number || !heap__is(&opts->events.list[number - 1]))
		return;
	if (heap__preload(opts->bytes, &note) && opts->on_note)
		opts->on_note(opts->ctx, note.text);
}

/* Returns true if all processes must be read before sampling starts: to find threads that wait, or
 * mappings of probed files. */
static bool needs_all(const struct session *session)
{
	return session->opts.trigger || event_list__waiting(&session->opts.events) ||
	       event_list__has_mapped(&session->opts.events);
}

void session__look_at_scope(struct session *session)
{
	struct err note = {};

	if (!session->targets.scope || !scope__look(session->targets.scope, &note))
		return;
	kernel_half__set_cgroup(session->half, scope__cgroup(session->targets.scope));
	if (session->opts.on_note)
		session->opts.on_note(session->opts.ctx, note.text);
}

static int add_scope(struct session *session, struct err *err)
{
	struct err note = {};
	int ret;

	snprintf(session->targets.text, sizeof(session->targets.text), "%s",
		 scope__text(session->targets.scope));
	kernel_half__set_cgroup(session->half, scope__cgroup(session->targets.scope));
	ret = tracker__refuse_ancestors(session->tracker);
	if (!ret && needs_all(session))
		ret = tracker__add_scope(session->tracker);
	if (ret)
		return err__set(err, ret, "cannot list the running processes: %s", strerror(-ret));
	if (!scope__finds_any(session->targets.scope, &note) && session->opts.on_note)
		session->opts.on_note(session->opts.ctx, note.text);
	return 0;
}

int session__add_targets(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct process *process;
	uint32_t pid;
	size_t i;
	int ret = 0;

	if (opts->command) {
		if (opts->source == RUNTIME_SOURCE_PROBES || opts->source == RUNTIME_SOURCE_CALLS)
			prepare_command(opts);
		preload(session);
		ret = child__fork(
			&session->command.child,
			&(struct child_opts) { .command = opts->command,
					       .files = &session->command.users_files,
					       .mask = stopper__users_mask(session->stopper) },
			err);
		pid = session->command.child.pid;
		return ret ? ret : tracker__add(session->tracker, pid, true, &process, err);
	}
	/* Nothing is sampled before all is attached. */
	kernel_half__sample_from(session->half, UINT64_MAX);
	if (session->targets.scope)
		return add_scope(session, err);
	for (i = 0; !ret && i < opts->n_pids; i++) {
		ret = tracker__add(session->tracker, opts->pids[i], false, &process, err);
		if (!ret && opts->n_pids == 1)
			snprintf(session->targets.text, sizeof(session->targets.text),
				 "pid %u (%.300s)", process->pid, process->info.command);
		else if (!ret && strlen(session->targets.text) + 60 < sizeof(session->targets.text))
			sprintf(session->targets.text + strlen(session->targets.text),
				"%spid %u (%.30s)", i ? ", " : "", process->pid,
				process->info.name);
	}
	return ret;
}

/* Does not read a command, which has no mappings of its own before its exec. */
int session__refresh_targets(struct session *session, struct err *err)
{
	struct process *process;

	if (session->opts.command || (session->targets.scope && !session->opts.trigger &&
				      !event_list__has_mapped(&session->opts.events)))
		return 0;
	for (process = tracker__first(session->tracker); process; process = process->hh.next) {
		if (process->space) /* it has been read */
			continue;
		if (tracker__refresh(session->tracker, process))
			return err__set(err, -ENOMEM, "out of memory");
		if (session->opts.source != RUNTIME_SOURCE_CALLS && !session->targets.scope &&
		    capture__read_code(session->capture, process, err))
			return -ENOMEM;
	}
	return 0;
}

int session__find_process(struct session *session, uint32_t pid, struct process **ret)
{
	struct process *process = tracker__find(session->tracker, pid);
	int code = 0;

	if (!process && session->targets.scope) {
		code = tracker__add_running(session->tracker, pid);
		process = tracker__find(session->tracker, pid);
	}
	if (!code && process && session->targets.scope && !process->space &&
	    !process__is_ended(process))
		code = tracker__refresh(session->tracker, process);
	*ret = process;
	return code;
}

/* Attaches the probes that depend on mappings: events of code, and the trigger of tests. */
int session__attach_in_targets(struct session *session, struct err *err)
{
	const struct event_place place = session__place(session);
	int ret = events__attach(session->events, true, &place, err);
	const char *caution;

	for (size_t i = 0; !ret && (caution = events__caution(session->events, i)); i++)
		if (*caution && session->opts.on_note)
			session->opts.on_note(session->opts.ctx, caution);
	return ret || !session->opts.trigger
		       ? ret
		       : trigger__attach(session->opts.trigger, session->half, session->tracker,
					 &session->targets.trigger, err);
}

/* Adds the children of targets. Forks are reported already, so none is missed. */
static int add_descendants(struct session *session, struct err *err)
{
	int ret = 0;

	if (!session->opts.no_children && !session->targets.scope)
		ret = tracker__add_descendants(session->tracker, &session->targets.n_children);
	if (ret)
		return err__set(err, ret, "cannot find the child processes of the targets: %s",
				strerror(-ret));
	return session->targets.n_children ? session__refresh_targets(session, err) : 0;
}

int session__start_targets(struct session *session, struct err *err)
{
	int ret;

	if (session->opts.command)
		return session__start_command(session, err);
	ret = add_descendants(session, err);
	if (!ret)
		ret = session__attach_in_targets(session, err);
	if (!ret)
		ret = session__begin_ahead(session, err);
	if (!ret)
		ret = session__begin(session, err);
	return ret ? ret : session__commit(session, err);
}
