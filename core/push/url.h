/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_URL_H
#define BRAID_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

/* The destination of recordings: FORMAT://HOST[:PORT][/PATH], or FORMAT+https:// for TLS; FORMAT is
 * clickhouse, pyroscope or otlp. */

enum url_format { URL_CLICKHOUSE, URL_PYROSCOPE, URL_OTLP };

struct url {
	enum url_format format;
	bool secure;
	char server[300]; /* "http://host:8123", for requests */
	char path[200];	  /* "/a/b", or "" */
};

/* Returns 0, or -EINVAL if @text is invalid or contains a password; the message describes the
 * syntax. */
int url__parse(const char *text, struct url *ret, struct err *err);

/* Percent-encodes all but unreserved characters. Returns 0, or -ENAMETOOLONG if the result exceeds
 * @size - 1 bytes. */
int url__encode(const char *text, char *buf, size_t size);

#endif
