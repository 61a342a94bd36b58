// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/strtab.h"
#include "core/base/text_ids.h"
#include "core/base/util.h"
#include "core/store/recording_db.h"

struct recording {
	struct sink sink; /* the first member: see recording_of */
	struct recording_db db;
	struct text_ids functions;
	struct strtab *counted; /* names of the counters that have rows */
	uint64_t n_samples;	/* rows */
	uint64_t n_rests;	/* rows that followed the last sample, among n_samples */
	uint64_t n_committed;
};

static const struct sink_ops recording_ops;

static struct recording *recording_of(struct sink *sink)
{
	return (struct recording *)sink;
}

static void recording_free(struct recording *recording)
{
	recording_db__done(&recording->db);
	text_ids__done(&recording->functions);
	strtab__free(recording->counted);
	free(recording);
}

int recording__create(const char *path, bool force, struct recording **ret, struct err *err)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int code;

	if (!recording)
		return err__set(err, -ENOMEM, "out of memory");
	recording->sink.ops = &recording_ops;
	recording->counted = strtab__new();
	code = recording_db__create(&recording->db, path, force, err);
	if (!code && !recording->counted)
		code = err__set(err, -ENOMEM, "out of memory");
	if (code)
		recording_free(recording);
	else
		*ret = recording;
	return code;
}

static int commit(struct recording *recording, bool last, struct err *err)
{
	int code = recording_db__commit(&recording->db, last, err);

	if (!code && sqlite3_get_autocommit(recording->db.db)) /* the commit was not deferred */
		recording->n_committed = recording->n_samples - recording->n_rests;
	return code;
}

int recording__commit(struct recording *recording, struct err *err)
{
	return commit(recording, false, err);
}

int recording__complete(struct recording *recording, struct err *err)
{
	return commit(recording, true, err);
}

uint64_t recording__committed(const struct recording *recording)
{
	return recording->n_committed;
}

void recording__keep_trying(struct recording *recording)
{
	recording->db.keeps_trying = true;
}

int recording__close(struct recording *recording, struct err *err)
{
	int ret = 0;

	if (recording) {
		ret = recording_db__commit(&recording->db, true, err);
		recording_free(recording);
	}
	return ret;
}

void recording__discard(struct recording *recording)
{
	if (recording)
		recording_free(recording);
}

int recording__meta(struct recording *recording, const char *key, const char *value,
		    struct err *err)
{
	return recording_db__insert(&recording->db, TABLE_meta, err, key, value);
}

int recording__counter(struct recording *recording, const char *name, uint64_t value,
		       struct err *err)
{
	uint32_t id;

	if (!value && !strtab__has(recording->counted, name))
		return recording_db__check(&recording->db, err);
	if (strtab__intern(recording->counted, name, &id))
		return recording_db__fail(&recording->db, -ENOMEM, err);
	return recording_db__insert(&recording->db, TABLE_counter, err, name, value);
}

int recording__kind(struct recording *recording, int kind, const char *name, const char *suffix,
		    struct err *err)
{
	return recording_db__insert(&recording->db, TABLE_kind, err, (int64_t)kind, name, suffix);
}

struct sink *recording__sink(struct recording *recording)
{
	return &recording->sink;
}

/* --- the sink --- */

static int write_event(struct sink *sink, uint32_t id, const struct sink_event *event,
		       struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_event, err, id, event->name,
				    event->unit);
}

static int write_process(struct sink *sink, uint32_t id, const struct sink_process *process,
			 struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_process, err, id, process->pid,
				    process->parent_pid, process->start_ticks, process->name,
				    process->command, process->cgroup, process->container);
}

static int write_process_is_called(struct sink *sink, uint32_t id, const char *name,
				   const char *command, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_process_is_called, err, name,
				    command, id);
}

static int write_thread(struct sink *sink, uint32_t id, uint32_t process, uint32_t tid,
			const char *name, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_thread, err, id, process, tid,
				    name);
}

static int write_thread_is_called(struct sink *sink, uint32_t id, const char *name, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_thread_is_called, err, name, id);
}

static int write_image(struct sink *sink, uint32_t id, const char *path, const char *build_id,
		       struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_image, err, id, path, build_id);
}

static int write_frame(struct sink *sink, uint32_t id, const struct sink_frame *frame,
		       struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_frame, err, id,
				    (int64_t)frame->kind, frame->image, frame->process,
				    frame->address, (uint32_t)frame->loop);
}

static int write_frame_is_loop(struct sink *sink, uint32_t id, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_frame_is_loop, err, id);
}

static int write_locations(struct sink *sink, uint32_t frame, const struct sink_location *locations,
			   size_t n, struct err *err)
{
	struct recording *recording = recording_of(sink);
	uint32_t function;
	bool is_new;
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		const struct sink_location *location = &locations[i];

		if (text_ids__at(&recording->functions, 0, 0, location->function,
				 location->file ? location->file : "", &function, &is_new))
			return recording_db__fail(&recording->db, -ENOMEM, err);
		if (is_new)
			ret = recording_db__insert(&recording->db, TABLE_function, err, function,
						   location->function, location->file);
		if (!ret)
			ret = recording_db__insert(&recording->db, TABLE_location, err, frame,
						   (int64_t)i, (int64_t)location->kind, function,
						   location->line);
	}
	return ret;
}

static int write_node(struct sink *sink, uint32_t id, const struct sink_node *node, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_node, err, id, node->parent,
				    node->frame, node->offset, node->evidence);
}

/* Limits @value to the range of SQLite's signed numbers. */
static int64_t signed_of(uint64_t value)
{
	return min_of(value, (uint64_t)INT64_MAX);
}

static int write_sample(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	struct recording *recording = recording_of(sink);
	int ret = recording_db__insert(
		&recording->db, TABLE_sample, err, recording->n_samples + 1, sample->time_ns,
		sample->event, sample->thread, (int64_t)sample->cpu, sample->native,
		sample->runtime, (int64_t)sample->flags, signed_of(sample->value),
		signed_of(sample->weight), signed_of(sample->total),
		(uint32_t)sample->condition.state, (uint32_t)sample->condition.lock,
		(uint32_t)(sample->condition.syscall + 1), (int64_t)sample->object, sample->peer,
		(int64_t)sample->link, (int64_t)sample->task, sample->context);

	recording->n_samples += !ret;
	recording->n_rests += !ret && sample->flags & SAMPLE_REST;
	return ret;
}

static int write_context(struct sink *sink, uint32_t id, const struct sink_context *context,
			 struct err *err)
{
	struct recording_db *db = &recording_of(sink)->db;
	int ret = recording_db__insert(db, TABLE_context, err, id, context->trace, context->span);

	for (size_t i = 0; !ret && i < context->n_labels; i++)
		ret = recording_db__insert(db, TABLE_label, err, id, context->labels[i].key,
					   context->labels[i].value);
	return ret;
}

static int write_attribute(struct sink *sink, uint32_t process, const struct sink_label *label,
			   struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_attribute, err, process,
				    label->key, label->value);
}

static int write_source(struct sink *sink, const struct sink_source *source, struct err *err)
{
	return recording_db__insert(&recording_of(sink)->db, TABLE_source, err, source->process,
				    source->runtime, source->version, source->source,
				    source->reason);
}

static const struct sink_ops recording_ops = {
	.event = write_event,
	.process = write_process,
	.thread = write_thread,
	.process_is_called = write_process_is_called,
	.thread_is_called = write_thread_is_called,
	.image = write_image,
	.frame = write_frame,
	.frame_is_loop = write_frame_is_loop,
	.locations = write_locations,
	.node = write_node,
	.context = write_context,
	.attribute = write_attribute,
	.sample = write_sample,
	.source = write_source,
};
