/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SENDER_H
#define BRAID_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/push/http.h"

/* Requests that are repeated as long as they may succeed. */

enum sent {
	SENT_OK,
	SENT_AGAIN,	/* temporary: sender__wait(), then repeat */
	SENT_TOO_LARGE, /* 413, or an equivalent: send less at a time */
	SENT_REFUSED,	/* this request, permanently; the message quotes the server */
	SENT_DENIED,	/* all requests: no access, no such place, not the right server */
	SENT_GAVE_UP,	/* the server was unavailable for too long */
	SENT_STOPPED,	/* stopped by the user */
	SENT_FAILED,	/* a local error: no memory, a file that cannot be written */
};

struct sender {
	struct http *http;
	double max_wait_s; /* maximum between two attempts, unless the server requests more */
	double give_up_s;  /* timeout since the last answer; 0: none */
	bool (*stops)(void *ctx);
	/* Called before a wait with its reason and length. May be NULL. */
	void (*on_wait)(void *ctx, const char *why, double wait_s);
	void *ctx;
	/* Classifies replies beyond their status; may be NULL. */
	enum sent (*classify)(const struct http_reply *reply, enum sent by_status);

	/* private */
	unsigned failures;	   /* consecutive failures */
	uint64_t failing_since_ns; /* CLOCK_MONOTONIC; 0: no failure */
	int64_t retry_after_s;
	char why[400];
};

/* Makes one attempt; never returns SENT_GAVE_UP. There is a reply only with SENT_OK. @what names
 * the server in messages, as in "http://host:80". */
enum sent sender__once(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err);

/* Waits after SENT_AGAIN. Returns SENT_OK at the time of the next attempt, SENT_GAVE_UP or
 * SENT_STOPPED. */
enum sent sender__wait(struct sender *sender, const char *what, struct err *err);

/* Combines both until there is a result; never returns SENT_AGAIN. */
enum sent sender__post(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err);

/* Sleeps for @seconds, or until the user stops braid. Returns true in the second case. */
bool sender__sleep(const struct sender *sender, double seconds);

#endif
