// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/push.h"

#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"
#include "core/push/libraries.h"
#include "core/push/push_state.h"
#include "core/push/push_target.h"

#define SUFFIX	     ".db"
#define STATE_NAME   ".braid-push-"
#define LOOK_EVERY_S 1.0 /* interval of reading a watched directory */

struct push {
	const struct push_opts *opts;
	struct push_result *result;
	struct err *err;
	char *directory;
	char *only; /* name of the only file; NULL: all files */
	char target_name[600];
	struct http *http;
	struct sender sender;
	struct push_target *target;
	struct push_state state;
	struct push_entry *current; /* being sent; NULL: none */
	uint32_t batch;		    /* samples; reduced to the size that the server accepts */
};

/* ---- one recording ---- */

/* Returns the size of the batch at @first. Batches are repeated halves, so that two batches are
 * nested or disjoint, however often they were divided. */
static uint32_t batch_at(const struct push *push, uint64_t first)
{
	uint64_t aligned = first & -first;

	return first && aligned < push->batch ? aligned : push->batch;
}

static uint64_t half(uint64_t n)
{
	return 1ULL << (63 - __builtin_clzll(n - 1));
}

static enum sent send_batch(struct push *push, struct push_entry *entry,
			    const struct push_batch *batch)
{
	enum sent sent = push->target->ops->send(push->target, batch, push->err);
	struct push_batch part = *batch;

	if (sent == SENT_TOO_LARGE && batch->n == 1)
		return SENT_REFUSED;
	if (sent == SENT_TOO_LARGE) {
		part.n = half(batch->n);
		push->batch = min_of(push->batch, part.n);
		sent = send_batch(push, entry, &part);
		if (sent != SENT_OK)
			return sent;
		part.samples += part.n;
		part.first += part.n;
		part.n = batch->n - part.n;
		return send_batch(push, entry, &part);
	}
	if (sent != SENT_OK)
		return sent;
	entry->acknowledged = batch->first + batch->n;
	push->result->samples += batch->n;
	return push_state__save(&push->state, push->err) ? SENT_FAILED : SENT_OK;
}

static enum sent send_all(struct push *push, struct push_entry *entry,
			  struct push_recording *recording)
{
	enum sent sent = SENT_OK;

	if (push->target->ops->begin)
		sent = push->target->ops->begin(push->target, recording, push->err);
	while (sent == SENT_OK) {
		uint64_t first = entry->acknowledged;
		struct push_batch batch;
		int code = push_recording__read(recording, first, batch_at(push, first), &batch,
						push->err);

		if (code)
			return code == -EBADMSG ? SENT_REFUSED : SENT_FAILED;
		if (!batch.n)
			break;
		sent = send_batch(push, entry, &batch);
	}
	return sent;
}

static enum sent refuse(struct push *push, struct push_entry *entry)
{
	push->result->refused++;
	if (push->opts->on_refused)
		push->opts->on_refused(push->opts->http.ctx, entry->name, push->err->text);
	entry->progress = PUSH_REFUSED;
	return push_state__save(&push->state, push->err) ? SENT_FAILED : SENT_OK;
}

/* Sends one recording. Returns SENT_OK also if it was refused, is missing, or is not finished yet,
 * so that other recordings can follow. */
static enum sent push_one(struct push *push, struct push_entry *entry)
{
	const struct push_opts *opts = push->opts;
	uint64_t before = push->result->samples;
	struct push_recording recording = {};
	enum sent sent;
	char *path;
	int code;

	if (asprintf(&path, "%s/%s", push->directory, entry->name) < 0) {
		err__set(push->err, -ENOMEM, "out of memory");
		return SENT_FAILED;
	}
	code = push_recording__open(path, opts->host, opts->service, &recording, push->err);
	if ((code == -EBUSY || code == -ENOENT) && !push->only)
		sent = SENT_OK;
	else if (code)
		sent = code == -EBADMSG ? SENT_REFUSED : SENT_FAILED;
	else
		sent = send_all(push, entry, &recording);
	push_recording__close(&recording);
	free(path);
	if (sent == SENT_REFUSED)
		return refuse(push, entry);
	if (sent != SENT_OK || code)
		return sent;
	entry->progress = PUSH_DONE;
	push->result->recordings++;
	if (opts->on_pushed)
		opts->on_pushed(opts->http.ctx, entry->name, push->result->samples - before);
	return push_state__save(&push->state, push->err) ? SENT_FAILED : SENT_OK;
}

/* ---- a directory ---- */

static int is_recording_name(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return *entry->d_name != '.' && len > strlen(SUFFIX) &&
	       !strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int note_file(struct push *push, const char *name)
{
	struct push_entry *entry;
	struct stat st;
	char *path;
	int code;

	if (asprintf(&path, "%s/%s", push->directory, name) < 0)
		return -ENOMEM;
	code = stat(path, &st) ? -errno : 0;
	free(path);
	if (code || !S_ISREG(st.st_mode))
		return push->only ? min_of(code, 0) : 0;
	entry = push_state__entry(&push->state, name, &st);
	if (!entry)
		return -ENOMEM;
	entry->present = true;
	return 0;
}

/* Updates the state with the present files. With only one file, the entries of the others stay. */
static int look(struct push *push)
{
	struct push_state *state = &push->state;
	struct dirent **entries;
	int n, ret = 0;

	for (size_t i = 0; i < state->n; i++)
		state->entries[i]->present = push->only;
	if (push->only) {
		ret = note_file(push, push->only);
		return ret ? err__set(push->err, ret, "cannot read %s: %s", push->opts->source,
				      strerror(-ret))
			   : 0;
	}
	n = scandir(push->directory, &entries, is_recording_name, by_name);
	if (n < 0)
		return err__set(push->err, -errno, "cannot read %s: %s", push->directory,
				strerror(errno));
	for (int i = 0; i < n; i++) {
		if (!ret)
			ret = note_file(push, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return ret ? err__set(push->err, ret, "out of memory") : 0;
}

static int drop_removed(struct push *push)
{
	size_t before = push->state.n, n = push_state__drop_absent(&push->state);

	push->result->removed += n;
	if (n && push->opts->on_removed)
		push->opts->on_removed(push->opts->http.ctx, n);
	return push->state.n == before ? 0 : push_state__save(&push->state, push->err);
}

static bool is_selected(const struct push *push, const struct push_entry *entry)
{
	return entry->present && entry->progress == PUSH_PENDING &&
	       (!push->only || !strcmp(entry->name, push->only));
}

/* Sends all pending recordings, the oldest first. The directory changes meanwhile, so it is read
 * again after each recording. */
static enum sent push_pending(struct push *push)
{
	char *last = NULL;
	enum sent sent = SENT_OK;

	for (;;) {
		struct push_entry *next = NULL;

		if (look(push) || drop_removed(push))
			sent = SENT_FAILED;
		for (size_t i = 0; i < push->state.n && !next && sent == SENT_OK; i++)
			if (is_selected(push, push->state.entries[i]) &&
			    (!last || strcmp(push->state.entries[i]->name, last) > 0))
				next = push->state.entries[i];
		free(last);
		if (!next)
			return sent;
		last = strdup(next->name);
		if (!last) {
			err__set(push->err, -ENOMEM, "out of memory");
			return SENT_FAILED;
		}
		push->current = next;
		sent = push_one(push, next);
		push->current = NULL;
	}
}

/* Called while the server is unavailable. The recorder continues, and removes old files. The
 * recording that is being sent stays open, so its removal does not matter. */
static void on_wait(void *ctx, const char *why, double wait_s)
{
	struct push *push = ctx;
	const struct push_opts *opts = push->opts;

	if (push->current && !push->only && !look(push)) {
		push->current->present = true;
		drop_removed(push);
	}
	if (opts->on_wait)
		opts->on_wait(opts->http.ctx, why, wait_s);
}

static bool stops(void *ctx)
{
	const struct http_opts *http = &((struct push *)ctx)->opts->http;

	return http->stops && http->stops(http->ctx);
}

static enum sent watch(struct push *push)
{
	const struct push_opts *opts = push->opts;
	enum sent sent = SENT_OK;
	bool reported = false;

	while (sent == SENT_OK) {
		sent = push_pending(push);
		if (sent != SENT_OK || !opts->watch)
			break;
		if (!reported && !push->state.n && opts->on_idle)
			opts->on_idle(opts->http.ctx);
		reported = true;
		if (sender__sleep(&push->sender, min_of(LOOK_EVERY_S, opts->max_wait_s)))
			sent = SENT_STOPPED;
	}
	return sent;
}

/* ---- the whole run ---- */

/* Finds the file or directory, and the place of its state. */
static int find_source(struct push *push)
{
	const char *source = push->opts->source;
	char *copy = strdup(source);
	struct stat st;

	if (!copy)
		return err__set(push->err, -ENOMEM, "out of memory");
	if (stat(source, &st)) {
		free(copy);
		return err__set(push->err, -errno, "cannot read %s: %s", source, strerror(errno));
	}
	if (S_ISDIR(st.st_mode)) {
		push->directory = copy;
		return 0;
	}
	if (!S_ISREG(st.st_mode)) {
		free(copy);
		return err__set(push->err, -EBADMSG, "%s is not a braid recording", source);
	}
	push->only = strdup(basename(copy));
	strcpy(copy, source); /* basename() may have changed it */
	push->directory = strdup(dirname(copy));
	free(copy);
	if (!push->only || !push->directory)
		return err__set(push->err, -ENOMEM, "out of memory");
	return push->opts->watch
		       ? err__set(push->err, -ENOTDIR,
				  "--watch requires a directory, and %s is a file", source)
		       : 0;
}

static int open_state(struct push *push)
{
	static const char *const formats[] = { "clickhouse", "pyroscope", "otlp" };
	const struct url *url = &push->opts->url;
	char *path = NULL;
	uint64_t id;
	int ret;

	snprintf(push->target_name, sizeof(push->target_name), "%s %s%s", formats[url->format],
		 url->server, url->path);
	if (push->opts->state)
		return push_state__open(push->opts->state, push->target_name, &push->state,
					push->err);
	if (content_hash__id("", push->target_name, strlen(push->target_name), &id) ||
	    asprintf(&path, "%s/" STATE_NAME "%08x", push->directory, (uint32_t)id) < 0)
		return err__set(push->err, -ENOMEM, "out of memory");
	ret = push_state__open(path, push->target_name, &push->state, push->err);
	free(path);
	return ret;
}

static int open_all(struct push *push)
{
	const struct push_opts *opts = push->opts;
	int ret;

	if (!libraries__get(push->err))
		return -ELIBACC;
	ret = find_source(push);
	if (!ret)
		ret = http__new(&opts->http, &push->http, push->err);
	if (ret)
		return ret;
	push->sender = (struct sender) { .http = push->http,
					 .max_wait_s = opts->max_wait_s,
					 .give_up_s = opts->give_up_s,
					 .stops = stops,
					 .on_wait = on_wait,
					 .ctx = push };
	ret = push_target__new(&opts->url, &push->sender, &push->target, push->err);
	return ret ? ret : open_state(push);
}

int push_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
		     struct err *err)
{
	switch (url->format) {
	case URL_CLICKHOUSE:
		return clickhouse_target__new(url, sender, ret, err);
	case URL_PYROSCOPE:
		return pyroscope_target__new(url, sender, ret, err);
	default:
		return otlp_target__new(url, sender, ret, err);
	}
}

static int result_of(struct push *push, enum sent sent)
{
	push->result->stopped = sent == SENT_STOPPED;
	switch (sent) {
	case SENT_OK:
	case SENT_STOPPED:
		break;
	case SENT_GAVE_UP:
		return -ETIMEDOUT;
	case SENT_FAILED:
		return -EIO;
	default:
		return -EREMOTEIO;
	}
	if (!push->state.n && !push->opts->watch)
		return err__set(push->err, -ENOENT,
				"there are no recordings in %s. Their names end in " SUFFIX,
				push->directory);
	return 0;
}

int push__run(const struct push_opts *opts, struct push_result *ret, struct err *err)
{
	struct push push = {
		.opts = opts, .result = ret, .err = err, .batch = opts->batch, .state.fd = -1
	};
	int code;

	*ret = (struct push_result) {};
	code = open_all(&push);
	if (!code)
		code = result_of(&push, watch(&push));
	push_state__close(&push.state);
	if (push.target)
		push.target->ops->free(push.target);
	http__free(push.http);
	free(push.directory);
	free(push.only);
	return code;
}
