// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/sender.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/base/util.h"

#define FIRST_WAIT_S	  1.0
#define RETRY_AFTER_MAX_S 3600
#define SLICE_NS	  (NSEC_PER_SEC / 20)

static bool stops(const struct sender *sender)
{
	return sender->stops && sender->stops(sender->ctx);
}

bool sender__sleep(const struct sender *sender, double seconds)
{
	uint64_t end = now_ns() + seconds * NSEC_PER_SEC, now;

	while (!stops(sender) && (now = now_ns()) < end) {
		struct timespec slice = { .tv_nsec = min_of(end - now, SLICE_NS) };

		nanosleep(&slice, NULL);
	}
	return stops(sender);
}

/* Copies the first line of the server's message, cut to @size. The output code escapes it. */
static void quote(const struct http_reply *reply, char *buf, size_t size)
{
	const char *text = reply->body ? reply->body : "";
	size_t len;

	text += strspn(text, " \t\r\n");
	len = min_of(strcspn(text, "\r\n"), size - 1);
	memcpy(buf, text, len);
	buf[len] = '\0';
}

static enum sent of_status(long status)
{
	if (status >= 200 && status < 300)
		return SENT_OK;
	if (status == 413)
		return SENT_TOO_LARGE;
	if (!status || status >= 500 || status == 429 || status == 408)
		return SENT_AGAIN;
	return status < 400 || status == 401 || (status >= 403 && status <= 405) ? SENT_DENIED
										 : SENT_REFUSED;
}

static enum sent classify(const struct sender *sender, const struct http_reply *reply)
{
	enum sent sent = of_status(reply->status);

	if (!reply->status && reply->is_hopeless)
		return SENT_DENIED;
	if (reply->status && sender->classify)
		return sender->classify(reply, sent);
	return sent;
}

static void tell(struct sender *sender, const char *what, const struct http_reply *reply)
{
	char words[250];

	quote(reply, words, sizeof(words));
	if (!reply->status)
		snprintf(sender->why, sizeof(sender->why), "%.100s: %.250s", what, reply->why);
	else if (reply->status >= 300 && reply->status < 400)
		snprintf(sender->why, sizeof(sender->why),
			 "%.100s answers with a redirection (%ld), which braid does not follow. "
			 "Give the final URL",
			 what, reply->status);
	else
		snprintf(sender->why, sizeof(sender->why), "%.100s answers %ld%s%.250s", what,
			 reply->status, *words ? ": " : "", words);
}

enum sent sender__once(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err)
{
	enum sent sent;

	if (stops(sender))
		return SENT_STOPPED;
	if (http__post(sender->http, request, ret)) {
		err__set(err, -ENOMEM, "out of memory");
		http_reply__done(ret);
		return SENT_FAILED;
	}
	if (stops(sender)) {
		http_reply__done(ret);
		return SENT_STOPPED;
	}
	sent = classify(sender, ret);
	if (sent == SENT_OK) {
		sender->failures = 0;
		sender->failing_since_ns = 0;
		return sent;
	}
	tell(sender, what, ret);
	err__set(err, -EREMOTEIO, "%s", sender->why);
	sender->retry_after_s = ret->retry_after_s;
	http_reply__done(ret);
	return sent;
}

/* Returns the wait before the next attempt: doubled each time, and shortened at random, so that
 * many clients of a server do not return at once. */
static double backoff(const struct sender *sender)
{
	double wait =
		min_of(FIRST_WAIT_S * exp2(min_of(sender->failures, 20U)), sender->max_wait_s);
	uint32_t chance = 0;

	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
		chance = 0;
	return wait * (1 - chance / (2.0 * UINT32_MAX));
}

enum sent sender__wait(struct sender *sender, const char *what, struct err *err)
{
	double wait = sender->retry_after_s >= 0
			      ? (double)min_of(sender->retry_after_s, (int64_t)RETRY_AFTER_MAX_S)
			      : backoff(sender);
	uint64_t now = now_ns();

	if (!sender->failing_since_ns)
		sender->failing_since_ns = now;
	if (sender->give_up_s &&
	    (now - sender->failing_since_ns) / 1e9 + wait > sender->give_up_s) {
		err__set(err, -ETIMEDOUT, "%s; gave up after %.0f s and %u attempt%s (%s)",
			 sender->why, (now - sender->failing_since_ns) / 1e9, sender->failures + 1,
			 sender->failures ? "s" : "", what);
		return SENT_GAVE_UP;
	}
	sender->failures++;
	if (sender->on_wait)
		sender->on_wait(sender->ctx, sender->why, wait);
	return sender__sleep(sender, wait) ? SENT_STOPPED : SENT_OK;
}

enum sent sender__post(struct sender *sender, const char *what, const struct http_request *request,
		       struct http_reply *ret, struct err *err)
{
	for (;;) {
		enum sent sent = sender__once(sender, what, request, ret, err);

		if (sent == SENT_AGAIN)
			sent = sender__wait(sender, what, err);
		else
			return sent;
		if (sent != SENT_OK)
			return sent;
	}
}
