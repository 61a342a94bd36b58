// SPDX-License-Identifier: GPL-2.0-or-later
/* OpenTelemetry's protocol over HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/push/batch_profiles.h"
#include "core/push/push_target.h"

#define PATH "/v1development/profiles"

struct otlp_target {
	struct push_target base;
	struct sender *sender;
	char url[600];
};

static enum sent send(struct push_target *base, const struct push_batch *batch, struct err *err)
{
	struct otlp_target *target = (struct otlp_target *)base;
	struct batch_profiles profiles = {};
	struct batch_bytes bytes = {};
	struct output_origin origin;
	struct http_reply reply;
	enum sent sent = SENT_FAILED;
	int code = batch_profiles__init(&profiles, batch, NULL, NULL, true, err);

	if (!code && !profiles.n) {
		sent = SENT_OK; /* samples without weight */
		goto out;
	}
	if (!code && (batch_profiles__origin(batch, &origin) ||
		      batch_profiles__write(&profiles, output__otlp, &origin, &bytes)))
		code = err__set(err, -ENOMEM, "out of memory");
	if (!code) {
		const struct http_request request = { .url = target->url,
						      .content_type = "application/x-protobuf",
						      .body = bytes.data,
						      .len = bytes.len,
						      .once = true };

		sent = sender__post(target->sender, target->url, &request, &reply, err);
		if (sent == SENT_OK)
			http_reply__done(&reply);
	}
out:
	free(bytes.data);
	batch_profiles__done(&profiles);
	return sent;
}

static void free_target(struct push_target *base)
{
	free(base);
}

int otlp_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
		     struct err *err)
{
	static const struct push_target_ops ops = { .send = send, .free = free_target };
	struct otlp_target *target = calloc(1, sizeof(*target));

	if (!target)
		return err__set(err, -ENOMEM, "out of memory");
	target->base.ops = &ops;
	target->sender = sender;
	snprintf(target->url, sizeof(target->url), "%s%s", url->server,
		 *url->path ? url->path : PATH);
	*ret = &target->base;
	return 0;
}
