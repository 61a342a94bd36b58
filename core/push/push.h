/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PUSH_H
#define BRAID_PUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/push/http.h"
#include "core/push/sender.h"
#include "core/push/url.h"

/* Sends finished recordings to a server: a file, or the files that a rotating recorder leaves in a
 * directory. Each sample arrives at least once, and counts once if the server can detect
 * repetitions. */

#define PUSH_BATCH_DEFAULT 65536 /* maximum number of samples in one request */

struct push_opts {
	const char *source; /* a recording, or a directory of NAME.db */
	const char *state;  /* file; NULL: a hidden one beside the recordings */
	struct url url;
	const char *service, *host;   /* NULL: as recorded */
	bool watch;		      /* continues with new files in the directory */
	uint32_t batch;		      /* a power of two */
	struct http_opts http;	      /* its `stops` applies to all waits */
	double max_wait_s, give_up_s; /* as in struct sender */

	/* Notices for the user, with the `ctx` of `http`. Texts may contain any bytes. */
	void (*on_wait)(void *ctx, const char *why, double wait_s);
	void (*on_pushed)(void *ctx, const char *name, uint64_t samples);
	/* A recording is left out, and the others follow. */
	void (*on_refused)(void *ctx, const char *name, const char *why);
	/* @n recordings were removed before all their samples were sent. */
	void (*on_removed)(void *ctx, uint64_t n);
	/* No recordings are there yet. */
	void (*on_idle)(void *ctx);
};

struct push_result {
	uint64_t recordings, samples; /* sent */
	uint64_t refused, removed;    /* recordings */
	bool stopped;		      /* stopped by the user */
};

/* Returns 0 with the numbers in *@ret, or a negative errno with a message. Acknowledged samples
 * stay recorded in the state. The errors are -ENOENT, -EBADMSG (no recordings), -EBUSY (another
 * process uses the state), -EINVAL, and errors of files. -ETIMEDOUT means that the server was
 * unavailable for too long, and -EREMOTEIO that it refuses everything. */
int push__run(const struct push_opts *opts, struct push_result *ret, struct err *err);

#endif
