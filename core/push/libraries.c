// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/libraries.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

#include "core/base/util.h"

#define CURL_LIBRARY   "libcurl.so.4"
#define CRYPTO_LIBRARY "libcrypto.so.3"

static struct libraries libraries;

#define FUNCTION(member, symbol)                                             \
	{                                                                    \
		.name = #symbol, .place = offsetof(struct libraries, member) \
	}

struct function {
	const char *name;
	size_t place; /* offset of the pointer in struct libraries */
};

static const struct function curl_functions[] = {
	FUNCTION(global_init, curl_global_init),       FUNCTION(easy_init, curl_easy_init),
	FUNCTION(easy_cleanup, curl_easy_cleanup),     FUNCTION(easy_setopt, curl_easy_setopt),
	FUNCTION(easy_getinfo, curl_easy_getinfo),     FUNCTION(easy_perform, curl_easy_perform),
	FUNCTION(easy_strerror, curl_easy_strerror),   FUNCTION(slist_append, curl_slist_append),
	FUNCTION(slist_free_all, curl_slist_free_all), FUNCTION(mime_init, curl_mime_init),
	FUNCTION(mime_free, curl_mime_free),	       FUNCTION(mime_addpart, curl_mime_addpart),
	FUNCTION(mime_name, curl_mime_name),	       FUNCTION(mime_filename, curl_mime_filename),
	FUNCTION(mime_data, curl_mime_data),	       FUNCTION(getdate, curl_getdate),
};

static const struct function crypto_functions[] = {
	FUNCTION(md_new, EVP_MD_CTX_new),	FUNCTION(md_free, EVP_MD_CTX_free),
	FUNCTION(md_init, EVP_DigestInit_ex),	FUNCTION(md_update, EVP_DigestUpdate),
	FUNCTION(md_final, EVP_DigestFinal_ex), FUNCTION(sha256, EVP_sha256),
};

static int load(const char *library, const char *package, const struct function *functions,
		size_t n, struct err *err)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle)
		return err__set(err, -ELIBACC, "cannot load %s: the library is missing. Install %s",
				library, package);
	for (size_t i = 0; i < n; i++) {
		void **place = (void **)((char *)&libraries + functions[i].place);

		*place = dlsym(handle, functions[i].name);
		if (!*place)
			return err__set(err, -ELIBBAD,
					"cannot use %s: it lacks %s. Install a newer version",
					library, functions[i].name);
	}
	return 0;
}

const struct libraries *libraries__get(struct err *err)
{
	static bool loaded;

	if (loaded)
		return &libraries;
	if (load(CURL_LIBRARY, "libcurl4", curl_functions, ARRAY_SIZE(curl_functions), err) ||
	    load(CRYPTO_LIBRARY, "libssl3", crypto_functions, ARRAY_SIZE(crypto_functions), err))
		return NULL;
	if (libraries.global_init(CURL_GLOBAL_DEFAULT)) {
		err__set(err, -ENOMEM, "cannot initialize libcurl");
		return NULL;
	}
	loaded = true;
	return &libraries;
}
