/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SENDER_H
#define BRAID_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/push/http.h"

/* Requests that are repeated as long as it makes sense. */

enum sent {
	SENT_OK,
	SENT_AGAIN,	/* not now: sender__wait, and once more */
	SENT_TOO_LARGE, /* 413, or what means the same: send less at a time */
	SENT_REFUSED,	/* this, and it would be again; the sentence has the server's words */
	SENT_DENIED,	/* all: no access, no such place, not the server that it should be */
	SENT_GAVE_UP,	/* the server did not answer for too long */
	SENT_STOPPED,	/* the user has had enough */
	SENT_FAILED,	/* here: no memory, a file that cannot be written */
};

struct sender {
	struct http *http;
	double max_wait_s; /* between two attempts, unless the server wants a longer time */
	double give_up_s;  /* since the server answered last; 0: never */
	bool (*stops)(void *ctx);
	/* What is the matter, and for how long nothing will be done. May be NULL. */
	void (*on_wait)(void *ctx, const char *why, double wait_s);
	void *ctx;
	/* What the server says in other words than its status; may be NULL. */
	enum sent (*classify)(const struct http_reply *reply, enum sent by_status);

	/* private */
	unsigned failures;	   /* one after the other */
	uint64_t failing_since_ns; /* CLOCK_MONOTONIC; 0: it is not */
	int64_t retry_after_s;
	char why[400];
};

/* One attempt: not SENT_GAVE_UP. Unless it is SENT_OK there is no reply. `what`: for sentences,
 * "http://host:80". */
enum sent sender__once(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err);

/* After SENT_AGAIN: SENT_OK when it is time for the next attempt, SENT_GAVE_UP or SENT_STOPPED. */
enum sent sender__wait(struct sender *sender, const char *what, struct err *err);

/* Both until there is a result: never SENT_AGAIN. */
enum sent sender__post(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err);

/* Does nothing for so long, or until the user has had enough: true. */
bool sender__sleep(const struct sender *sender, double seconds);

#endif
