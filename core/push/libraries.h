/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LIBRARIES_H
#define BRAID_LIBRARIES_H

#define CURL_DISABLE_TYPECHECK /* libcurl's macros are for calls by name */
#include <curl/curl.h>
#include <openssl/evp.h>

#include "core/base/err.h"

/* The functions of libcurl and libcrypto that braid uses, loaded when they are first needed. With
 * their dependencies both are about thirty libraries, which no recorder should load at its start
 * (docs/decisions/0042-libcurl-when-needed.md). */
struct libraries {
	CURLcode (*global_init)(long flags);
	CURL *(*easy_init)(void);
	void (*easy_cleanup)(CURL *curl);
	CURLcode (*easy_setopt)(CURL *curl, CURLoption option, ...);
	CURLcode (*easy_getinfo)(CURL *curl, CURLINFO info, ...);
	CURLcode (*easy_perform)(CURL *curl);
	const char *(*easy_strerror)(CURLcode code);
	struct curl_slist *(*slist_append)(struct curl_slist *list, const char *text);
	void (*slist_free_all)(struct curl_slist *list);
	curl_mime *(*mime_init)(CURL *curl);
	void (*mime_free)(curl_mime *mime);
	curl_mimepart *(*mime_addpart)(curl_mime *mime);
	CURLcode (*mime_name)(curl_mimepart *part, const char *name);
	CURLcode (*mime_filename)(curl_mimepart *part, const char *name);
	CURLcode (*mime_data)(curl_mimepart *part, const char *data, size_t size);
	time_t (*getdate)(const char *text, const time_t *unused);
	EVP_MD_CTX *(*md_new)(void);
	void (*md_free)(EVP_MD_CTX *ctx);
	int (*md_init)(EVP_MD_CTX *ctx, const EVP_MD *type, ENGINE *engine);
	int (*md_update)(EVP_MD_CTX *ctx, const void *data, size_t size);
	int (*md_final)(EVP_MD_CTX *ctx, unsigned char *ret, unsigned int *ret_size);
	const EVP_MD *(*sha256)(void);
};

/* Returns the functions, borrowed; NULL: a library is missing, with a message in @err. */
const struct libraries *libraries__get(struct err *err);

#endif
