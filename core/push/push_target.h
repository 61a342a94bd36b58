/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_TARGET_H
#define BRAID_PUSH_TARGET_H

#include "core/push/push_recording.h"
#include "core/push/sender.h"
#include "core/push/url.h"

/* a kind of server that receives batches of samples */
struct push_target {
	const struct push_target_ops *ops;
};

struct push_target_ops {
	/* Called before the first batch of a recording; @recording lives until the next one begins.
	 * NULL: nothing to do. */
	enum sent (*begin)(struct push_target *target, struct push_recording *recording,
			   struct err *err);
	/* Sends a batch. SENT_OK: the server has it, and has it once as far as the protocol ensures
	 * that. SENT_TOO_LARGE: the caller divides the batch in two. Never SENT_AGAIN. */
	enum sent (*send)(struct push_target *target, const struct push_batch *batch,
			  struct err *err);
	void (*free)(struct push_target *target);
};

/* @sender must outlive the target. Returns 0, -EINVAL if the URL's path is unsuitable, or
 * -ENOMEM. */
int push_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
		     struct err *err);

int clickhouse_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
			   struct err *err);
int pyroscope_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
			  struct err *err);
int otlp_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
		     struct err *err);

#endif
