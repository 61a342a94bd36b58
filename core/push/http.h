/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HTTP_H
#define BRAID_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* POST requests to one server. Redirections are not followed. */

struct http_opts {
	const char *ca_file;	  /* trusted certificates instead of the system's; or NULL */
	const char *token_file;	  /* file with user:password, or with a bearer token; NULL: none */
	double timeout_s;	  /* timeout of a whole request */
	bool (*stops)(void *ctx); /* returns true if the user stops braid */
	void *ctx;
};

struct http;

/* Returns 0; -EACCES and other errors if the token's file is unreadable; or -EINVAL if it does not
 * contain a token. The caller must call http__free() also on failure. */
int http__new(const struct http_opts *opts, struct http **ret, struct err *err);
void http__free(struct http *http); /* NULL is fine */

struct http_request {
	const char *url;
	const char *content_type;
	const void *body;
	size_t len;
	bool is_gzip;	  /* the body is compressed; other bodies are compressed on the way */
	const char *part; /* name of the body as a file in a multipart/form-data; NULL: the body
			   * itself */
	bool once; /* a repeated request would count twice: libcurl repeats requests over a cached
		    * connection if no answer arrived */
	size_t reply_max; /* bytes; longer replies are an error; 0: HTTP_WORDS_MAX, and longer ones
			   * are cut */
};

#define HTTP_WORDS_MAX 4096

struct http_reply {
	long status;	       /* 0: no reply */
	bool is_hopeless;      /* a repetition would fail: certificate, file name, ... */
	int64_t retry_after_s; /* -1: not in the reply */
	char why[300];	       /* reason for a missing reply */
	char *body;	       /* any bytes, then a NUL; freed by http_reply__done() */
	size_t len, cap;
	size_t max; /* private */
	bool cut;   /* private */
};

/* Sends a request. Returns 0, see ret->status; or -ENOMEM. */
int http__post(struct http *http, const struct http_request *request, struct http_reply *ret);
void http_reply__done(struct http_reply *reply);

#endif
