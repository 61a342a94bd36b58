// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_strings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "bpf/jvm.h"
#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"
#include "runtimes/jvm/jvm_names.h"

/* The methods with one name. */
struct overloads {
	UT_hash_handle hh;
	char *name;	 /* with the class */
	char *signature; /* signature of the first method */
	bool several;	 /* other methods have other signatures */
};

struct method {
	UT_hash_handle hh;
	uint32_t code;
	struct overloads *overloads;
	char *signature;
};

struct jvm_strings {
	struct method *by_code;
	struct overloads *by_name;
	char *text; /* the text returned last */
};

struct jvm_strings *jvm_strings__new(void)
{
	return calloc(1, sizeof(struct jvm_strings));
}

static void overloads__free(struct overloads *overloads)
{
	if (!overloads)
		return;
	free(overloads->name);
	free(overloads->signature);
	free(overloads);
}

static void method__free(struct method *method)
{
	if (!method)
		return;
	free(method->signature);
	free(method);
}

void jvm_strings__free(struct jvm_strings *strings)
{
	struct overloads *overloads, *next_overloads;
	struct method *method, *next;

	if (!strings)
		return;
	HASH_ITER (hh, strings->by_code, method, next) {
		HASH_DEL(strings->by_code, method);
		method__free(method);
	}
	HASH_ITER (hh, strings->by_name, overloads, next_overloads) {
		HASH_DEL(strings->by_name, overloads);
		overloads__free(overloads);
	}
	free(strings->text);
	free(strings);
}

/* Takes `name`. NULL: out of memory. */
static struct overloads *overloads__get(struct jvm_strings *strings, char *name,
					const char *signature)
{
	struct overloads *overloads;

	HASH_FIND_STR(strings->by_name, name, overloads);
	if (overloads) {
		free(name);
		overloads->several = overloads->several || strcmp(overloads->signature, signature);
		return overloads;
	}
	overloads = calloc(1, sizeof(*overloads));
	if (!overloads) {
		free(name);
		return NULL;
	}
	overloads->name = name;
	overloads->signature = strdup(signature);
	if (overloads->signature)
		HASH_ADD_KEYPTR(hh, strings->by_name, name, strlen(name), overloads);
	if (overloads->hh.tbl)
		return overloads;
	overloads__free(overloads);
	return NULL;
}

/* Returns NULL if out of memory. */
static char *dup_text(const char *text, unsigned int kind, size_t len)
{
	return kind ? code_object_text__dup(text, CODE_OBJECT_TEXT_BYTES, kind, len)
		    : strdup("[unreadable]");
}

/* Returns NULL if out of memory. */
static char *method_name(const struct rec_code_object *rec)
{
	char *class_name = dup_text(rec->file, rec->file_kind, rec->file_len);
	char *name = dup_text(rec->name, rec->name_kind, rec->name_len);
	char *joined = class_name && name ? jvm_name__method(class_name, name) : NULL;

	free(class_name);
	free(name);
	return joined;
}

int jvm_strings__add(struct jvm_strings *strings, const struct rec_code_object *rec, size_t size)
{
	struct method *method;
	char *name;

	if (size < REC_CODE_OBJECT_HEADER + 3 * CODE_OBJECT_TEXT_BYTES ||
	    !code_object_text__valid(rec->name_kind) || !code_object_text__valid(rec->file_kind))
		return -EBADMSG;
	HASH_FIND(hh, strings->by_code, &rec->code, sizeof(rec->code), method);
	if (method)
		return -EBADMSG;
	method = calloc(1, sizeof(*method));
	name = method_name(rec);
	if (!method || !name)
		goto out_of_memory;
	method->code = rec->code;
	method->signature =
		dup_text((const char *)rec->table, CODE_OBJECT_TEXT_UTF8, rec->table_size);
	if (!method->signature)
		goto out_of_memory;
	method->overloads = overloads__get(strings, name, method->signature);
	name = NULL;
	if (method->overloads)
		HASH_ADD(hh, strings->by_code, code, sizeof(method->code), method);
	if (method->overloads && method->hh.tbl)
		return 0;
out_of_memory:
	free(name);
	method__free(method);
	return -ENOMEM;
}

int jvm_strings__name(struct jvm_strings *strings, uint32_t code, bool apart, const char **ret)
{
	char *signature;
	struct method *method;

	HASH_FIND(hh, strings->by_code, &code, sizeof(code), method);
	if (!method)
		return -ENOENT;
	*ret = method->overloads->name;
	if (!apart || !method->overloads->several)
		return 0;
	free(strings->text);
	strings->text = NULL;
	signature = jvm_name__signature(method->signature);
	if (!signature || asprintf(&strings->text, "%s%s", method->overloads->name, signature) < 0)
		strings->text = NULL;
	free(signature);
	*ret = strings->text;
	return strings->text ? 0 : -ENOMEM;
}
