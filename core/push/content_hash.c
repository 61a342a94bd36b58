// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/content_hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/push/libraries.h"

int content_hash__of(const char *salt, const void *data, size_t len,
		     uint8_t ret[CONTENT_HASH_BYTES])
{
	const struct libraries *lib = libraries__get(NULL);
	EVP_MD_CTX *ctx = lib ? lib->md_new() : NULL;
	bool done = ctx && lib->md_init(ctx, lib->sha256(), NULL) &&
		    lib->md_update(ctx, salt, strlen(salt)) && lib->md_update(ctx, data, len) &&
		    lib->md_final(ctx, ret, NULL);

	if (ctx)
		lib->md_free(ctx);
	return done ? 0 : -ENOMEM;
}

int content_hash__id(const char *salt, const void *data, size_t len, uint64_t *ret)
{
	uint8_t hash[CONTENT_HASH_BYTES];
	int code = content_hash__of(salt, data, len, hash);

	if (code)
		return code;
	memcpy(ret, hash, sizeof(*ret));
	*ret += !*ret;
	return 0;
}

static int hash_fd(const struct libraries *lib, EVP_MD_CTX *ctx, int fd,
		   uint8_t ret[CONTENT_HASH_BYTES])
{
	char buf[1 << 16];
	ssize_t n;

	if (!lib->md_init(ctx, lib->sha256(), NULL))
		return -ENOMEM;
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (!lib->md_update(ctx, buf, n))
			return -ENOMEM;
	if (n < 0)
		return -errno;
	return lib->md_final(ctx, ret, NULL) ? 0 : -ENOMEM;
}

int content_hash__file(const char *path, char ret[CONTENT_HASH_TEXT], struct err *err)
{
	const struct libraries *lib = libraries__get(err);
	EVP_MD_CTX *ctx = lib ? lib->md_new() : NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), code = -errno;
	uint8_t hash[CONTENT_HASH_BYTES];

	if (!lib)
		code = -ELIBACC;
	else if (fd >= 0)
		code = ctx ? hash_fd(lib, ctx, fd, hash) : -ENOMEM;
	if (ctx)
		lib->md_free(ctx);
	close_fd(&fd);
	if (code)
		return lib ? err__set(err, code, "cannot read %s: %s", path, strerror(-code))
			   : code;
	for (size_t i = 0; 2 * i + 1 < CONTENT_HASH_TEXT; i++)
		sprintf(ret + 2 * i, "%02x", hash[i]);
	return 0;
}
