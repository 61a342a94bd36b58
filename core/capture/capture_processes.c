// SPDX-License-Identifier: GPL-2.0-or-later
/* The processes in capture, from their first record on. */
#include <errno.h>

#include "core/base/util.h"
#include "core/capture/capture_state.h"
#include "core/target/cgroups.h"
#include "core/target/compiled_code.h"
#include "core/target/process_context.h"

/* Records the sources again: the tracker reports each once, and an earlier sink may have received
 * it. */
static int offer_sources(struct capture *capture, const struct captured *captured, struct err *err)
{
	const struct captured_source *source;
	int ret = 0;

	for (source = captured->sources; !ret && source; source = source->next) {
		struct sink_source row = source->row;

		row.process = captured->id;
		ret = ids__source(capture->ids, &row, err);
	}
	return ret;
}

/* Records the attributes of the process's service, if they were published again. */
static int offer_attributes(struct capture *capture, struct captured *captured, struct err *err)
{
	const struct process_context *context = captured->process->context;
	int ret = 0;

	if (!context || captured->context_version == context->version)
		return 0;
	captured->context_version = context->version;
	for (size_t i = 0; !ret && i < context->n_attributes; i++)
		ret = ids__attribute(capture->ids, captured->id,
				     &(struct sink_label) { context->attributes[i].key,
							    context->attributes[i].value },
				     err);
	return ret;
}

int capture__captured_of(struct capture *capture, struct process *process, struct captured **ret,
			 struct err *err)
{
	const struct sink_process row = { process->info.pid,
					  process->info.parent_pid,
					  process->info.start_ticks,
					  process->info.name,
					  process->info.command,
					  process->cgroup ? process->cgroup->path : NULL,
					  process->cgroup ? process->cgroup->container : NULL };
	struct captured *captured = captured__get(&capture->processes, process);
	int code;

	*ret = captured;
	if (!captured)
		return err__set(err, -ENOMEM, "out of memory");
	if (captured->id)
		return offer_attributes(capture, captured, err);
	code = ids__process(capture->ids, &row, &captured->id, err);
	if (!code)
		code = offer_sources(capture, captured, err);
	return code ? code : offer_attributes(capture, captured, err);
}

int capture__process_id(struct capture *capture, struct process *process, uint32_t *ret_id,
			struct err *err)
{
	struct captured *captured;
	int ret = capture__captured_of(capture, process, &captured, err);

	if (!ret)
		*ret_id = captured->id;
	return ret;
}

int capture__read_code(struct capture *capture, struct process *process, struct err *err)
{
	struct captured *captured;
	int ret = capture__captured_of(capture, process, &captured, err);

	if (!ret && compiled_code__read(captured->process, JIT_LOOK_ALL))
		ret = err__set(err, -ENOMEM, "out of memory");
	return ret;
}

static int name_last_frames(struct capture *capture, const struct process *process,
			    struct captured *captured, struct err *err)
{
	int ret;

	ret = process->code ? naming__process_ended(capture->naming, captured->serial, err) : 0;
	return ret ? ret : naming_compiled__ended(capture->compiled, captured, err);
}

int capture__offer_attributes(struct capture *capture, struct err *err)
{
	struct captured *captured;
	int ret = 0;

	for (captured = capture->processes.first; !ret && captured; captured = captured->hh.next)
		ret = captured->id ? offer_attributes(capture, captured, err) : 0;
	return ret;
}

int capture__process_ended(struct capture *capture, const struct process *process, struct err *err)
{
	struct captured *captured = captured__find(&capture->processes, process->serial);
	int ret = captured ? process_names__ended(captured, capture->ids, err) : 0;

	if (!ret && captured && captured->id)
		ret = offer_attributes(capture, captured, err);

	return ret || !captured ? ret : name_last_frames(capture, process, captured, err);
}

int capture__forget_process(struct capture *capture, const struct process *process, struct err *err)
{
	struct captured *captured = captured__find(&capture->processes, process->serial);
	int ret = 0;

	if (!captured)
		return 0;
	if (process__is_ended(process)) /* else it has executed something else */
		ret = process_names__ended(captured, capture->ids, err);
	if (ret)
		return ret;
	/* This is the second call if samples arrived after the process ended. */
	ret = name_last_frames(capture, process, captured, err);
	naming_compiled__count(capture->compiled, captured);
	captured__forget(&capture->processes, captured);
	return ret;
}

void capture__compiled_stats(const struct capture *capture, struct compiled_stats *ret)
{
	naming_compiled__stats(capture->compiled, ret);
}

size_t capture__count_processes(const struct capture *capture)
{
	return HASH_COUNT(capture->processes.first);
}

int capture__source(struct capture *capture, struct process *process, const struct runtime *runtime,
		    const char *version, const char *source, const char *reason, struct err *err)
{
	struct sink_source row = {
		.runtime = runtime->name, .version = version, .source = source, .reason = reason
	};
	struct captured *captured;
	int ret = capture__captured_of(capture, process, &captured, err);

	if (ret)
		return ret;
	if (captured__source(captured, &row))
		return err__set(err, -ENOMEM, "out of memory");
	row.process = captured->id;
	return ids__source(capture->ids, &row, err);
}

void capture__forget_ended(struct capture *capture)
{
	struct captured *captured;

	if (capture->forgotten == ids__forgotten(capture->ids))
		return;
	capture->forgotten = ids__forgotten(capture->ids);
	for (captured = capture->processes.first; captured; captured = captured->hh.next)
		for (size_t i = 0; i < captured->n_places; i++)
			if (!ids__has_frame(capture->ids, captured->places[i].id))
				captured->places[i].id = 0;
	stack_nodes__forget(capture->nodes);
	sent_stacks__forget_results(capture->sent);
}
