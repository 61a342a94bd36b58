/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_H
#define BRAID_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/push/http.h"
#include "core/push/sender.h"
#include "core/push/url.h"

/* Sends finished recordings to a server: a file, or what a rotating recorder leaves in a directory.
 * Each sample arrives at least once, and counts once where the server can tell. */

#define PUSH_BATCH_DEFAULT 65536 /* samples, as many as one request has at most */

struct push_opts {
	const char *source; /* a recording, or a directory of NAME.db */
	const char *state;  /* file; NULL: a hidden one beside the recordings */
	struct url url;
	const char *service, *host;   /* NULL: as recorded */
	bool watch;		      /* goes on with what comes into the directory */
	uint32_t batch;		      /* a power of two */
	struct http_opts http;	      /* its `stops` is for all that waits */
	double max_wait_s, give_up_s; /* as in struct sender */

	/* For who tells the user; `ctx` is that of `http`. Texts may hold anything. */
	void (*on_wait)(void *ctx, const char *why, double wait_s);
	void (*on_pushed)(void *ctx, const char *name, uint64_t samples);
	/* It is left out, and others go on. */
	void (*on_refused)(void *ctx, const char *name, const char *why);
	/* So many recordings were removed before they were sent as a whole. */
	void (*on_removed)(void *ctx, uint64_t n);
	/* There is nothing to be sent yet. */
	void (*on_idle)(void *ctx);
};

struct push_result {
	uint64_t recordings, samples; /* sent */
	uint64_t refused, removed;    /* recordings */
	bool stopped;		      /* the user had enough */
};

/* 0: as told by `ret`; else a negative errno with the sentence in `err`, and what was acknowledged
 * is kept: -ENOENT, -EBADMSG (no recordings there), -EBUSY (another one is at it), -ETIMEDOUT (the
 * server was gone for too long), -EREMOTEIO (it takes nothing from us), -EINVAL, errors of files.
 */
int push__run(const struct push_opts *opts, struct push_result *ret, struct err *err);

#endif
