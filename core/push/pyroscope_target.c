// SPDX-License-Identifier: GPL-2.0-or-later
/* Pyroscope's push API: github.com/grafana/pyroscope, api/push/v1/push.proto, called as a Connect
 * procedure with one message. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/protobuf.h"
#include "core/base/util.h"
#include "core/profile/group.h"
#include "core/push/batch_profiles.h"
#include "core/push/push_target.h"

#define PATH "/push.v1.PusherService/Push"

enum {
	PUSH_REQUEST_SERIES = 1,
	SERIES_LABELS = 1,
	SERIES_SAMPLES = 2,
	LABEL_NAME = 1,
	LABEL_VALUE = 2,
	RAW_SAMPLE_PROFILE = 1,
	RAW_SAMPLE_ID = 2,
};

struct pyroscope_target {
	struct push_target base;
	struct sender *sender;
	char url[600];
};

/* Threads that are shown as one: those of processes with the same name, service and container. */
struct group {
	const struct push_recording *recording;
	const char *service, *process, *container;
};

static struct group group_of(const struct push_recording *recording, uint32_t thread)
{
	const struct recorded *recorded = recording->recorded;

	return (struct group) {
		.recording = recording,
		.service = push_recording__service(recording, thread),
		.process =
			group__thread(recorded, recorded__find(&recorded->threads, thread)).process,
		.container = push_recording__container(recording, thread),
	};
}

static bool is_same(const struct group *a, const struct group *b)
{
	return !strcmp(a->service, b->service) && !strcmp(a->process, b->process) &&
	       !strcmp(a->container, b->container);
}

static bool wants(void *ctx, uint32_t thread)
{
	const struct group *group = ctx;
	const struct group other = group_of(group->recording, thread);

	return is_same(group, &other);
}

/* ---- the message ---- */

/* Writes a label, except an empty one, which Pyroscope refuses. */
static int put_label(struct protobuf *series, const char *name, const char *value)
{
	struct protobuf label = {};
	char *text = strdup(value);

	if (!text)
		return -ENOMEM;
	escape__printable(text);
	protobuf__text(&label, LABEL_NAME, name, strlen(name));
	protobuf__text(&label, LABEL_VALUE, text, strlen(text));
	if (*text)
		protobuf__submessage(series, SERIES_LABELS, &label);
	protobuf__done(&label);
	free(text);
	return 0;
}

/* Writes the name that Pyroscope's own agents use, if they have the event. Otherwise writes the
 * event's name, in characters that are valid in a metric's name. */
static void name_of(const struct profile *profile, char *buf, size_t size)
{
	const char *event = profile->event ? profile->event : "cpu";

	snprintf(buf, size, "%s", !strcmp(event, "cpu") ? "process_cpu" : event);
	for (char *at = buf; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
		      (*at >= '0' && *at <= '9' && at > buf)))
			*at = '_';
}

static int put_sample(struct protobuf *series, const struct output_origin *origin, uint32_t number,
		      const struct batch_bytes *bytes)
{
	struct protobuf sample = {};
	const uint8_t *id = origin->id;
	char text[40];

	/* A UUID of version 8 (custom). */
	snprintf(text, sizeof(text), "%02x%02x%02x%02x-%02x%02x-8%01x%02x-9%01x%02x-%02x%02x%08x",
		 id[0], id[1], id[2], id[3], id[4], id[5], id[6] & 15, id[7], id[8] & 15, id[9],
		 id[10], id[11],
		 ((uint32_t)id[12] << 24 | id[13] << 16 | id[14] << 8 | id[15]) ^ number);
	protobuf__text(&sample, RAW_SAMPLE_PROFILE, bytes->data, bytes->len);
	protobuf__text(&sample, RAW_SAMPLE_ID, text, strlen(text));
	protobuf__submessage(series, SERIES_SAMPLES, &sample);
	protobuf__done(&sample);
	return 0;
}

static int put_series(struct protobuf *message, struct profile *profile, const struct group *group,
		      const struct output_origin *origin, uint32_t number)
{
	const struct batch_profiles one = { .rows = &profile, .n = 1 };
	struct batch_bytes bytes = {};
	struct protobuf series = {};
	char name[100];
	int code;

	name_of(profile, name, sizeof(name));
	code = put_label(&series, "__name__", name);
	if (!code)
		code = put_label(&series, "service_name", group->service);
	if (!code)
		code = put_label(&series, "hostname", group->recording->host);
	if (!code)
		code = put_label(&series, "process", group->process);
	if (!code)
		code = put_label(&series, "container", group->container);
	if (!code)
		code = batch_profiles__write(&one, output__pprof, origin, &bytes);
	if (!code)
		code = put_sample(&series, origin, number, &bytes);
	protobuf__submessage(message, PUSH_REQUEST_SERIES, &series);
	protobuf__done(&series);
	free(bytes.data);
	return code;
}

static int put_group(struct protobuf *message, const struct push_batch *batch, struct group *group,
		     const struct output_origin *origin, uint32_t *number, struct err *err)
{
	struct batch_profiles profiles;
	int code = batch_profiles__init(&profiles, batch, wants, group, false, err);

	for (size_t i = 0; !code && i < profiles.n; i++) {
		code = put_series(message, profiles.rows[i], group, origin, (*number)++);
		if (code)
			err__set(err, code, "out of memory");
	}
	batch_profiles__done(&profiles);
	return code;
}

/* Finds the groups, in the order of their first samples. */
static int find_groups(const struct push_batch *batch, struct group **ret, size_t *ret_n)
{
	size_t cap = 0, k;

	for (size_t i = 0; i < batch->n; i++) {
		const struct group group = group_of(batch->of, batch->samples[i].thread);

		for (k = 0; k < *ret_n && !is_same(&group, &(*ret)[k]); k++)
			;
		if (k < *ret_n)
			continue;
		if (array__reserve(ret, &cap, *ret_n + 1, sizeof(group)))
			return -ENOMEM;
		(*ret)[(*ret_n)++] = group;
	}
	return 0;
}

static int make_message(const struct push_batch *batch, struct protobuf *message, struct err *err)
{
	struct output_origin origin;
	struct group *groups = NULL;
	uint32_t number = 0;
	size_t n = 0;
	int code = 0;

	if (find_groups(batch, &groups, &n) || batch_profiles__origin(batch, &origin))
		code = err__set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; !code && i < n; i++)
		code = put_group(message, batch, &groups[i], &origin, &number, err);
	if (!code && message->failed)
		code = err__set(err, -ENOMEM, "out of memory");
	free(groups);
	return code;
}

/* ---- the target ---- */

static enum sent send(struct push_target *base, const struct push_batch *batch, struct err *err)
{
	struct pyroscope_target *target = (struct pyroscope_target *)base;
	struct protobuf message = {};
	struct http_reply reply;
	enum sent sent = SENT_FAILED;
	int code = make_message(batch, &message, err);

	if (!code && !message.len) {
		sent = SENT_OK; /* samples without weight */
	} else if (!code) {
		const struct http_request request = { .url = target->url,
						      .content_type = "application/proto",
						      .body = message.data,
						      .len = message.len,
						      .once = true };

		sent = sender__post(target->sender, target->url, &request, &reply, err);
		if (sent == SENT_OK)
			http_reply__done(&reply);
	}
	protobuf__done(&message);
	return sent;
}

static void free_target(struct push_target *base)
{
	free(base);
}

int pyroscope_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
			  struct err *err)
{
	static const struct push_target_ops ops = { .send = send, .free = free_target };
	struct pyroscope_target *target = calloc(1, sizeof(*target));

	if (!target)
		return err__set(err, -ENOMEM, "out of memory");
	target->base.ops = &ops;
	target->sender = sender;
	snprintf(target->url, sizeof(target->url), "%s%s" PATH, url->server, url->path);
	*ret = &target->base;
	return 0;
}
