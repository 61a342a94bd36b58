// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "core/base/util.h"
#include "core/push/libraries.h"

#define TOKEN_BYTES_MAX	  8192
#define CONNECT_TIMEOUT_S 10
#define AGENT		  "braid"

struct http {
	struct http_opts opts;
	const struct libraries *lib;
	CURL *curl;
	char *bearer; /* a header line; NULL: none */
	char *user;   /* user:password; NULL: none */
	char error[CURL_ERROR_SIZE];
	unsigned char *zipped;
	size_t cap_zipped;
};

/* ---- setup ---- */

/* Reads one line of printable ASCII, so that no part of it can become another header. */
static int read_token(const char *path, char *buf, size_t size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	int code = errno;
	size_t len;

	close_fd(&fd);
	if (n < 0)
		return err__set(err, -code, "cannot read %s: %s", path, strerror(code));
	buf[n] = '\0';
	len = strcspn(buf, "\r\n");
	if (!len || len + strspn(buf + len, "\r\n") != (size_t)n) /* also if there is a NUL */
		return err__set(err, -EINVAL,
				"%s must contain exactly one line: a bearer token or user:password",
				path);
	buf[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (buf[i] < ' ' || buf[i] > '~')
			return err__set(err, -EINVAL,
					"%s contains characters that are not allowed in a token",
					path);
	return 0;
}

/* Sets the user and password if the token has a colon, which tokens of RFC 6750 never have. */
static int take_token(struct http *http, struct err *err)
{
	char token[TOKEN_BYTES_MAX];
	int ret = read_token(http->opts.token_file, token, sizeof(token), err);

	if (!ret && strchr(token, ':'))
		ret = (http->user = strdup(token)) ? 0 : -ENOMEM;
	else if (!ret && asprintf(&http->bearer, "Authorization: Bearer %s", token) < 0)
		ret = -ENOMEM;
	explicit_bzero(token, sizeof(token));
	return ret == -ENOMEM ? err__set(err, ret, "out of memory") : ret;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct http *http = ctx;

	(void)a, (void)b, (void)c, (void)d;
	return http->opts.stops && http->opts.stops(http->opts.ctx);
}

/* Returns true for a long answer that was cut: half of it is useless. */
static bool is_too_long(const struct http_reply *reply)
{
	return reply->cut && reply->max > HTTP_WORDS_MAX;
}

static size_t on_body(char *data, size_t one, size_t n, void *ctx)
{
	struct http_reply *reply = ctx;
	size_t room = reply->max - reply->len, take = min_of(n, room);

	(void)one;
	if (array__reserve(&reply->body, &reply->cap, reply->len + take + 1, 1))
		return 0;
	memcpy(reply->body + reply->len, data, take);
	reply->len += take;
	reply->body[reply->len] = '\0';
	reply->cut |= take < n;
	/* The text after an error's first words is read so that the connection stays usable. */
	return is_too_long(reply) ? 0 : n;
}

/* Parses Retry-After (RFC 9110, 10.2.3): seconds, or a date. */
static size_t on_header(char *data, size_t one, size_t n, void *ctx)
{
	static const char name[] = "Retry-After:";
	struct http_reply *reply = ctx;
	char text[64], *end;
	long seconds;
	time_t date;

	(void)one;
	if (n < sizeof(name) || n >= sizeof(text) || strncasecmp(data, name, sizeof(name) - 1) != 0)
		return n;
	memcpy(text, data + sizeof(name) - 1, n - (sizeof(name) - 1));
	text[n - (sizeof(name) - 1)] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	seconds = strtol(text, &end, 10);
	if (!*end && end != text && seconds >= 0) {
		reply->retry_after_s = seconds;
		return n;
	}
	date = libraries__get(NULL)->getdate(text, NULL);
	if (date != -1)
		reply->retry_after_s = max_of(date - time(NULL), 0);
	return n;
}

static void set_up(struct http *http)
{
	const struct libraries *lib = http->lib;
	CURL *curl = http->curl;

	lib->easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	lib->easy_setopt(curl, CURLOPT_USERAGENT, AGENT);
	lib->easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	lib->easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	lib->easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
	lib->easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(http->opts.timeout_s * 1000));
	lib->easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error);
	lib->easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	lib->easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	lib->easy_setopt(curl, CURLOPT_XFERINFODATA, http);
	lib->easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	lib->easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	if (http->opts.ca_file) {
		lib->easy_setopt(curl, CURLOPT_CAINFO, http->opts.ca_file);
		lib->easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (http->user) {
		lib->easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
		lib->easy_setopt(curl, CURLOPT_USERPWD, http->user);
	}
}

int http__new(const struct http_opts *opts, struct http **ret, struct err *err)
{
	struct http *http = calloc(1, sizeof(*http));
	int code;

	*ret = http;
	if (!http)
		return err__set(err, -ENOMEM, "out of memory");
	http->opts = *opts;
	http->lib = libraries__get(err);
	if (!http->lib)
		return -ELIBACC;
	if (opts->ca_file && access(opts->ca_file, R_OK))
		return err__set(err, -errno, "cannot read %s: %s", opts->ca_file, strerror(errno));
	code = opts->token_file ? take_token(http, err) : 0;
	if (code)
		return code;
	http->curl = http->lib->easy_init();
	if (!http->curl)
		return err__set(err, -ENOMEM, "out of memory");
	set_up(http);
	return 0;
}

void http__free(struct http *http)
{
	if (!http)
		return;
	if (http->curl)
		http->lib->easy_cleanup(http->curl);
	if (http->bearer)
		explicit_bzero(http->bearer, strlen(http->bearer));
	if (http->user)
		explicit_bzero(http->user, strlen(http->user));
	free(http->bearer);
	free(http->user);
	free(http->zipped);
	free(http);
}

/* ---- requests ---- */

/* Compresses quickly (level 1), as the result is sent only once. */
static int zip(struct http *http, const void *data, size_t len, size_t *ret_len)
{
	enum { GZIP = 16 };
	z_stream zip = {};
	int code = -ENOMEM;

	if (len > UINT32_MAX / 2 ||
	    deflateInit2(&zip, 1, Z_DEFLATED, MAX_WBITS + GZIP, MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY))
		return -ENOMEM;
	if (array__reserve(&http->zipped, &http->cap_zipped, deflateBound(&zip, len), 1))
		goto out;
	zip.next_in = (void *)data;
	zip.avail_in = len;
	zip.next_out = http->zipped;
	zip.avail_out = min_of(http->cap_zipped, (size_t)UINT32_MAX);
	if (deflate(&zip, Z_FINISH) == Z_STREAM_END)
		code = 0;
	*ret_len = zip.total_out;
out:
	deflateEnd(&zip);
	return code;
}

static int add_header(struct http *http, struct curl_slist **headers, const char *line)
{
	struct curl_slist *more = http->lib->slist_append(*headers, line);

	if (!more)
		return -ENOMEM;
	*headers = more;
	return 0;
}

static int make_headers(struct http *http, const struct http_request *request,
			struct curl_slist **ret)
{
	char type[100];
	int code = add_header(http, ret, "Expect:"); /* no extra round trip */

	snprintf(type, sizeof(type), "Content-Type: %s", request->content_type);
	if (!code && !request->part)
		code = add_header(http, ret, type);
	if (!code && !request->part && !request->is_gzip)
		code = add_header(http, ret, "Content-Encoding: gzip");
	if (!code && http->bearer)
		code = add_header(http, ret, http->bearer);
	return code;
}

static int set_body(struct http *http, const struct http_request *request, curl_mime **ret_mime)
{
	const struct libraries *lib = http->lib;
	const void *body = request->body;
	size_t len = request->len;
	curl_mimepart *part;

	if (request->part) {
		*ret_mime = lib->mime_init(http->curl);
		part = *ret_mime ? lib->mime_addpart(*ret_mime) : NULL;
		if (!part || lib->mime_name(part, request->part) ||
		    lib->mime_filename(part, request->part) || lib->mime_data(part, body, len))
			return -ENOMEM;
		lib->easy_setopt(http->curl, CURLOPT_MIMEPOST, *ret_mime);
		return 0;
	}
	if (!request->is_gzip) {
		if (zip(http, body, len, &len))
			return -ENOMEM;
		body = http->zipped;
	}
	lib->easy_setopt(http->curl, CURLOPT_POST, 1L);
	lib->easy_setopt(http->curl, CURLOPT_POSTFIELDS, body);
	lib->easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	return 0;
}

/* Returns true if another attempt would fail in the same way. */
static bool is_hopeless(CURLcode code)
{
	switch (code) {
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_URL_MALFORMAT:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return true;
	default:
		return false;
	}
}

static int perform(struct http *http, struct http_reply *reply)
{
	const struct libraries *lib = http->lib;
	CURLcode code;

	*http->error = '\0';
	code = lib->easy_perform(http->curl);
	if (code == CURLE_OUT_OF_MEMORY)
		return -ENOMEM;
	if (is_too_long(reply)) {
		snprintf(reply->why, sizeof(reply->why), "the answer is too long");
		reply->is_hopeless = true;
		return 0;
	}
	if (!code) {
		lib->easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &reply->status);
		return 0;
	}
	snprintf(reply->why, sizeof(reply->why), "%.250s",
		 *http->error ? http->error : lib->easy_strerror(code));
	reply->is_hopeless = is_hopeless(code);
	return 0;
}

int http__post(struct http *http, const struct http_request *request, struct http_reply *ret)
{
	const struct libraries *lib = http->lib;
	struct curl_slist *headers = NULL;
	curl_mime *mime = NULL;
	int code;

	*ret = (struct http_reply) { .retry_after_s = -1,
				     .max = request->reply_max ? request->reply_max
							       : HTTP_WORDS_MAX };
	lib->easy_setopt(http->curl, CURLOPT_URL, request->url);
	lib->easy_setopt(http->curl, CURLOPT_FRESH_CONNECT, request->once ? 1L : 0L);
	lib->easy_setopt(http->curl, CURLOPT_WRITEDATA, ret);
	lib->easy_setopt(http->curl, CURLOPT_HEADERDATA, ret);
	code = make_headers(http, request, &headers);
	if (!code)
		code = set_body(http, request, &mime);
	lib->easy_setopt(http->curl, CURLOPT_HTTPHEADER, headers);
	if (!code)
		code = perform(http, ret);
	lib->easy_setopt(http->curl, CURLOPT_HTTPHEADER, NULL);
	lib->easy_setopt(http->curl, CURLOPT_MIMEPOST, NULL);
	lib->slist_free_all(headers);
	lib->mime_free(mime);
	return code;
}

void http_reply__done(struct http_reply *reply)
{
	free(reply->body);
	*reply = (struct http_reply) {};
}
