// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/intern.h"
#include "core/recording_db.h"
#include "core/strtab.h"
#include "core/util.h"

/* Bounds of what is remembered, so that memory is flat: 50 MB of nodes, 12 MB of frames, some
 * 20 MB of each kind of text. Things seen before then get a second id, which readers accept. */
#define NODES_MAX  ((1u << 21) / 4 * 3)
#define FRAMES_MAX ((1u << 19) / 4 * 3)
#define TEXTS_MAX  (1u << 17)

/* Texts that have ids, dense from base + 1. */
struct texts {
	struct strtab *strtab;
	uint32_t base;
};

struct recording {
	struct recording_db db;
	struct intern nodes, frames;
	struct texts threads, images, functions, counted;
	uint32_t n_processes, n_frames, n_nodes;
	uint64_t n_samples, n_committed;
	char *key; /* of the text being looked up */
	size_t cap_key;
};

static int texts_intern(struct texts *texts, const char *text, uint32_t *ret_id, bool *ret_new)
{
	uint32_t n, id;

	if (texts->strtab && strtab__count(texts->strtab) > TEXTS_MAX) {
		texts->base += strtab__count(texts->strtab) - 1;
		strtab__free(texts->strtab);
		texts->strtab = NULL;
	}
	if (!texts->strtab)
		texts->strtab = strtab__new();
	if (!texts->strtab)
		return -ENOMEM;
	n = strtab__count(texts->strtab);
	if (strtab__intern(texts->strtab, text, &id))
		return -ENOMEM;
	*ret_new = strtab__count(texts->strtab) > n;
	*ret_id = texts->base + id;
	return 0;
}

/* Interns two numbers and two texts together. */
static int intern_texts(struct recording *recording, struct texts *texts, uint32_t a, uint32_t b,
			const char *c, const char *d, uint32_t *ret_id, bool *ret_new,
			struct err *err)
{
	/* The first text's length keeps ("ab", "c") and ("a", "bc") apart. */
	size_t len_c = strlen(c), size = len_c + strlen(d) + 3 * 21 + 1;

	if (recording_db__check(&recording->db, err))
		return recording->db.failed;
	if (array__reserve(&recording->key, &recording->cap_key, size, 1))
		return recording_db__fail(&recording->db, -ENOMEM, err);
	snprintf(recording->key, size, "%u:%u:%zu:%s%s", a, b, len_c, c, d);
	if (texts_intern(texts, recording->key, ret_id, ret_new))
		return recording_db__fail(&recording->db, -ENOMEM, err);
	return 0;
}

static void recording_free(struct recording *recording)
{
	recording_db__done(&recording->db);
	intern__done(&recording->nodes);
	intern__done(&recording->frames);
	strtab__free(recording->threads.strtab);
	strtab__free(recording->images.strtab);
	strtab__free(recording->functions.strtab);
	strtab__free(recording->counted.strtab);
	free(recording->key);
	free(recording);
}

int recording__create(const char *path, bool force, struct recording **ret, struct err *err)
{
	struct recording *recording = calloc(1, sizeof(*recording));
	int code;

	if (!recording)
		return err__set(err, -ENOMEM, "out of memory");
	intern__init(&recording->nodes, NODES_MAX);
	intern__init(&recording->frames, FRAMES_MAX);
	code = recording_db__create(&recording->db, path, force, err);
	if (code)
		recording_free(recording);
	else
		*ret = recording;
	return code;
}

int recording__commit(struct recording *recording, struct err *err)
{
	int code = recording_db__commit(&recording->db, false, err);

	if (!code && sqlite3_get_autocommit(recording->db.db)) /* it was not put off */
		recording->n_committed = recording->n_samples;
	return code;
}

uint64_t recording__committed(const struct recording *recording)
{
	return recording->n_committed;
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
	bool new;

	if (!value && !(recording->counted.strtab && strtab__has(recording->counted.strtab, name)))
		return recording_db__check(&recording->db, err);
	if (texts_intern(&recording->counted, name, &id, &new))
		return recording_db__fail(&recording->db, -ENOMEM, err);
	return recording_db__insert(&recording->db, TABLE_counter, err, name, value);
}

int recording__kind(struct recording *recording, int kind, const char *name, const char *suffix,
		    struct err *err)
{
	return recording_db__insert(&recording->db, TABLE_kind, err, (int64_t)kind, name, suffix);
}

int recording__process(struct recording *recording, const struct recording_process *process,
		       uint32_t *ret_id, struct err *err)
{
	uint32_t id = recording->n_processes + 1;
	int ret = recording_db__insert(&recording->db, TABLE_process, err, id, process->pid,
				       process->parent_pid, process->start_ticks, process->name,
				       process->command);

	if (!ret)
		*ret_id = recording->n_processes = id;
	return ret;
}

int recording__source(struct recording *recording, uint32_t process, const char *runtime,
		      const char *version, const char *source, const char *reason, struct err *err)
{
	return recording_db__insert(&recording->db, TABLE_source, err, process, runtime, version,
				    source, reason);
}

int recording__thread(struct recording *recording, uint32_t process, uint32_t tid, const char *name,
		      uint32_t *ret_id, struct err *err)
{
	uint32_t id;
	bool new;
	int ret = intern_texts(recording, &recording->threads, process, tid, name, "", &id, &new,
			       err);

	if (!ret && new)
		ret = recording_db__insert(&recording->db, TABLE_thread, err, id, process, tid,
					   name);
	if (!ret)
		*ret_id = id;
	return ret;
}

int recording__image(struct recording *recording, const char *path, const char *build_id,
		     uint32_t *ret_id, struct err *err)
{
	uint32_t id;
	bool new;
	int ret = intern_texts(recording, &recording->images, 0, 0, path, build_id, &id, &new, err);

	if (!ret && new)
		ret = recording_db__insert(&recording->db, TABLE_image, err, id, path, build_id);
	if (!ret)
		*ret_id = id;
	return ret;
}

static int insert_frame(struct recording *recording, uint32_t id,
			const struct recording_frame *frame, bool loop, struct err *err)
{
	return recording_db__insert(&recording->db, TABLE_frame, err, id, (int64_t)frame->kind,
				    frame->image, frame->process, frame->address, (uint32_t)loop);
}

int recording__frame_is_loop(struct recording *recording, uint32_t id,
			     const struct recording_frame *frame, struct err *err)
{
	return insert_frame(recording, id, frame, true, err); /* a commit replaces the row */
}

int recording__frame(struct recording *recording, const struct recording_frame *frame,
		     uint32_t *ret_id, bool *ret_new, struct err *err)
{
	/* Each image comes with a file and each process with a fork: 28 bits hold them all. Code of
	 * a process has no image. */
	uint64_t file = frame->image ? frame->image : frame->generation;
	uint64_t where = (uint64_t)frame->kind << 56 | file << 28 | frame->process;
	uint32_t *id;
	bool new;
	int ret;

	if (recording_db__check(&recording->db, err))
		return recording->db.failed;
	if ((file | frame->process) >> 28 || frame->kind < 0 || frame->kind > UINT8_MAX)
		return recording_db__fail(&recording->db, -EOVERFLOW, err);
	id = intern__at(&recording->frames, frame->address, where);
	if (!id)
		return recording_db__fail(&recording->db, -ENOMEM, err);
	new = !*id;
	if (new) {
		*id = ++recording->n_frames;
		ret = insert_frame(recording, *id, frame, frame->loop, err);
		if (ret)
			return ret;
	}
	*ret_id = *id;
	if (ret_new)
		*ret_new = new;
	return 0;
}

int recording__locations(struct recording *recording, uint32_t frame,
			 const struct recording_location *locations, size_t n, struct err *err)
{
	int ret = 0;
	size_t i;

	for (i = 0; !ret && i < n; i++) {
		const struct recording_location *location = &locations[i];
		const char *file = location->file ? location->file : "";
		uint32_t function;
		bool new;

		ret = intern_texts(recording, &recording->functions, 0, 0, location->function, file,
				   &function, &new, err);
		if (!ret && new)
			ret = recording_db__insert(&recording->db, TABLE_function, err, function,
						   location->function, location->file);
		if (!ret)
			ret = recording_db__insert(&recording->db, TABLE_location, err, frame,
						   (int64_t)i, (int64_t)location->kind, function,
						   location->line);
	}
	return ret;
}

int recording__node(struct recording *recording, uint32_t parent, uint32_t frame, int64_t offset,
		    uint32_t *ret_id, struct err *err)
{
	uint32_t *id;
	int ret = 0;

	if (recording_db__check(&recording->db, err))
		return recording->db.failed;
	id = intern__at(&recording->nodes, (uint64_t)parent << 32 | frame, offset);
	if (!id)
		return recording_db__fail(&recording->db, -ENOMEM, err);
	if (!*id) {
		if (recording->n_nodes == UINT32_MAX)
			return recording_db__fail(&recording->db, -EOVERFLOW, err);
		*id = ++recording->n_nodes;
		ret = recording_db__insert(&recording->db, TABLE_node, err, *id, parent, frame,
					   offset);
	}
	if (!ret)
		*ret_id = *id;
	return ret;
}

int recording__sample(struct recording *recording, const struct recording_sample *sample,
		      struct err *err)
{
	int ret = recording_db__insert(&recording->db, TABLE_sample, err, recording->n_samples + 1,
				       sample->time_ns, sample->thread, (int64_t)sample->cpu,
				       sample->native, sample->runtime, sample->flags,
				       sample->weight);

	recording->n_samples += !ret;
	return ret;
}
