/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HTTP_H
#define BRAID_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* POST requests to one server. Redirections are not followed. */

struct http_opts {
	const char *ca_file;	/* certificates that are trusted instead of the system's; or NULL */
	const char *token_file; /* user:password, or a bearer's token; NULL: neither */
	double timeout_s;	/* of a request as a whole */
	bool (*stops)(void *ctx); /* has the user had enough? */
	void *ctx;
};

struct http;

/* -EACCES and others: the token's file cannot be read, -EINVAL: it does not hold a token. Call
 * http__free in any case. */
int http__new(const struct http_opts *opts, struct http **ret, struct err *err);
void http__free(struct http *http); /* NULL is fine */

struct http_request {
	const char *url;
	const char *content_type;
	const void *body;
	size_t len;
	bool is_gzip;	  /* of the body, which else is compressed on the way */
	const char *part; /* the body is a file of that name in a multipart/form-data; NULL: it is
			     the body */
	bool once; /* it counts twice if it comes twice: libcurl would repeat what it has sent over
		    * a connection that was kept, where no answer came */
	size_t reply_max; /* bytes; longer replies are an error; 0: HTTP_WORDS_MAX, and cut */
};

#define HTTP_WORDS_MAX 4096

struct http_reply {
	long status;	       /* 0: none came */
	bool is_hopeless;      /* none came, and none will: certificate, name of the file, ... */
	int64_t retry_after_s; /* -1: the server did not say */
	char why[300];	       /* that none came */
	char *body;	       /* any bytes, then a NUL; the caller frees it by http_reply__done */
	size_t len, cap;
	size_t max; /* private */
	bool cut;   /* private */
};

/* 0: see `ret->status`; -ENOMEM. */
int http__post(struct http *http, const struct http_request *request, struct http_reply *ret);
void http_reply__done(struct http_reply *reply);

#endif
