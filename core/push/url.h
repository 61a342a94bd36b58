/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_URL_H
#define BRAID_URL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"

/* Where recordings are sent: FORMAT://HOST[:PORT][/PATH], or FORMAT+https:// for TLS; FORMAT is
 * clickhouse, pyroscope or otlp. */

enum url_format { URL_CLICKHOUSE, URL_PYROSCOPE, URL_OTLP };

struct url {
	enum url_format format;
	bool secure;
	char server[300]; /* "http://host:8123", for requests */
	char path[200];	  /* "/a/b", or "" */
};

/* -EINVAL: it is none, or says too much (a password); the sentence says what it should be. */
int url__parse(const char *text, struct url *ret, struct err *err);

/* Percent-encodes all but unreserved characters: at most size - 1 bytes, else -ENAMETOOLONG. */
int url__encode(const char *text, char *buf, size_t size);

#endif
