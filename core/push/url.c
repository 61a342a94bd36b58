// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/url.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define FORM "FORMAT://HOST[:PORT][/PATH], with clickhouse, pyroscope or otlp for FORMAT"

/* the default ports of the servers */
static const struct scheme {
	const char *name;
	enum url_format format;
	bool secure;
	unsigned port;
} schemes[] = {
	{ "clickhouse", URL_CLICKHOUSE, false, 8123 },
	{ "clickhouse+http", URL_CLICKHOUSE, false, 8123 },
	{ "clickhouse+https", URL_CLICKHOUSE, true, 8443 },
	{ "pyroscope", URL_PYROSCOPE, false, 4040 },
	{ "pyroscope+http", URL_PYROSCOPE, false, 4040 },
	{ "pyroscope+https", URL_PYROSCOPE, true, 443 },
	{ "otlp", URL_OTLP, false, 4318 },
	{ "otlp+http", URL_OTLP, false, 4318 },
	{ "otlp+https", URL_OTLP, true, 4318 },
};

static const struct scheme *find_scheme(const char *text, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (strlen(schemes[i].name) == len && !strncmp(schemes[i].name, text, len))
			return &schemes[i];
	return NULL;
}

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Parses a name, an IPv4 address, or an IPv6 address in brackets, with an optional port. */
static int parse_host(const char *text, size_t len, const struct scheme *scheme, struct url *ret)
{
	size_t host = 0;
	char *end;

	if (len && *text == '[') {
		host = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
		if (host == 1 || host >= len || text[host++] != ']')
			return -EINVAL;
	} else {
		while (host < len && (is_alphanumeric(text[host]) || strchr(".-_", text[host])))
			host++;
	}
	if (!host || host > 255)
		return -EINVAL;
	if (host == len) {
		snprintf(ret->server, sizeof(ret->server), "http%s://%.*s:%u",
			 ret->secure ? "s" : "", (int)len, text, scheme->port);
		return 0;
	}
	if (text[host] != ':' || len - host > 6 || len == host + 1)
		return -EINVAL;
	if (strspn(text + host + 1, "0123456789") != len - host - 1 ||
	    strtoul(text + host + 1, &end, 10) > UINT16_MAX)
		return -EINVAL;
	snprintf(ret->server, sizeof(ret->server), "http%s://%.*s", ret->secure ? "s" : "",
		 (int)len, text);
	return 0;
}

static int parse_path(const char *path, struct url *ret)
{
	size_t len = strlen(path);

	while (len && path[len - 1] == '/')
		len--;
	if (len >= sizeof(ret->path))
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		if (!is_alphanumeric(path[i]) && !strchr("/.-_~%", path[i]))
			return -EINVAL;
	memcpy(ret->path, path, len);
	return 0;
}

int url__parse(const char *text, struct url *ret, struct err *err)
{
	const char *colon = strstr(text, "://"), *host = colon ? colon + 3 : text;
	const struct scheme *scheme = colon ? find_scheme(text, colon - text) : NULL;
	size_t len = strcspn(host, "/?#");

	*ret = (struct url) {};
	if (memchr(host, '@', len)) /* the URL is not shown, as it may contain a password */
		return err__set(
			err, -EINVAL,
			"a URL must not contain a user: all users of this machine can read command "
			"lines. Write user:password into a file and use --token-file");
	if (!scheme)
		return err__set(err, -EINVAL, "'%s' does not match " FORM, text);
	ret->format = scheme->format;
	ret->secure = scheme->secure;
	if (parse_host(host, len, scheme, ret) || parse_path(host + len, ret))
		return err__set(err, -EINVAL, "'%s' does not match " FORM "", text);
	return 0;
}

int url__encode(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text; text++) {
		if (n + 4 > size)
			return -ENAMETOOLONG;
		if (is_alphanumeric(*text) || strchr("-._~", *text))
			buf[n++] = *text;
		else
			n += sprintf(buf + n, "%%%02X", (uint8_t)*text);
	}
	buf[n] = '\0';
	return 0;
}
