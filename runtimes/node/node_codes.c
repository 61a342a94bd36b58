// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "runtimes/node/node_compiled.h"

#define UNKNOWN "[unknown JavaScript function]" /* it was moved or freed before it was read */
#define STUB	"[V8 code]"			/* of regular expressions, WebAssembly, ... */

struct instance {
	struct node_layout layout;
	struct node_heap heap;
	struct node_functions *functions;
	uint32_t space; /* 0: forgotten */
	struct instance *next;
};

struct code {
	UT_hash_handle hh;
	uint32_t number;
	uint8_t kind;
	const struct node_function *function; /* NULL: not known */
	struct node_compiled *compiled;	      /* NULL: none, or not known */
};

struct node_codes {
	struct code *by_number;
	struct instance *instances;
};

struct node_codes *node_codes__new(void)
{
	return calloc(1, sizeof(struct node_codes));
}

static void code__free(struct code *code)
{
	node_compiled__free(code->compiled);
	free(code);
}

void node_codes__free(struct node_codes *codes)
{
	struct instance *instance;
	struct code *code, *next;

	if (!codes)
		return;
	HASH_ITER (hh, codes->by_number, code, next) {
		HASH_DEL(codes->by_number, code);
		code__free(code);
	}
	while ((instance = codes->instances)) {
		codes->instances = instance->next;
		node_functions__free(instance->functions);
		free(instance);
	}
	free(codes);
}

int node_codes__attach(struct node_codes *codes, uint32_t pid, uint32_t space,
		       const struct node_layout *layout)
{
	struct instance *instance = calloc(1, sizeof(*instance));

	if (instance)
		instance->functions = node_functions__new();
	if (!instance || !instance->functions) {
		free(instance);
		return -ENOMEM;
	}
	instance->layout = *layout;
	instance->heap = (struct node_heap) { .pid = pid, .layout = &instance->layout };
	instance->space = space;
	instance->next = codes->instances;
	codes->instances = instance;
	return 0;
}

void node_codes__detach(struct node_codes *codes, uint32_t space)
{
	struct instance *instance;

	for (instance = codes->instances; instance; instance = instance->next)
		if (instance->space == space)
			instance->space = 0;
}

static const struct instance *instance__find(const struct node_codes *codes, uint32_t space)
{
	const struct instance *instance = codes->instances;

	while (instance && instance->space != space)
		instance = instance->next;
	return instance;
}

/* --- what is announced --- */

static int code__read(struct code *code, const struct instance *instance,
		      const struct node_code *told)
{
	const struct node_function_key key = { told->sfi, told->name, told->script };
	int rc;

	if (code->kind != NODE_FUNCTION && code->kind != NODE_CODE)
		return 0;
	rc = node_functions__get(instance->functions, &instance->heap, &key, &code->function);
	if (rc || !code->function || code->kind != NODE_CODE)
		return rc;
	return node_compiled__open(&instance->heap, instance->functions, told, code->function,
				   &code->compiled);
}

int node_codes__add(struct node_codes *codes, const struct rec_code *rec, size_t size)
{
	const struct instance *instance;
	struct node_code told;
	struct code *code;
	int rc;

	if (size < REC_CODE_HEADER + sizeof(told))
		return -EBADMSG;
	memcpy(&told, rec->name, sizeof(told));
	instance = told.space ? instance__find(codes, told.space) : NULL;
	HASH_FIND(hh, codes->by_number, &rec->code, sizeof(rec->code), code);
	if (!instance || code)
		return -EBADMSG;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->number = rec->code;
	code->kind = rec->table_format;
	rc = code__read(code, instance, &told);
	if (!rc)
		HASH_ADD(hh, codes->by_number, number, sizeof(code->number), code);
	if (rc || !code->hh.tbl) {
		code__free(code);
		return -ENOMEM;
	}
	return 0;
}

/* --- names --- */

static struct runtime_symbol symbol_of(const struct node_function *function, uint32_t line)
{
	if (!function)
		return (struct runtime_symbol) { .function = UNKNOWN };
	return (struct runtime_symbol) { .function = node_function__name(function),
					 .file = node_function__file(function),
					 .line = line };
}

int node_codes__symbolize(struct node_codes *codes, uint64_t key,
			  struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	uint32_t number = FRAME_KEY_CODE(key), index = FRAME_KEY_INDEX(key);
	struct node_scope scopes[RUNTIME_SYMBOLS_MAX];
	struct code *code;
	size_t n, i;

	HASH_FIND(hh, codes->by_number, &number, sizeof(number), code);
	if (!code)
		return -ENOENT;
	if (code->kind == NODE_STUB) {
		ret[0] = (struct runtime_symbol) { .function = STUB };
		return 1;
	}
	if (!code->compiled) {
		ret[0] = symbol_of(code->function,
				   !code->function ? 0
						   : node_function__line(code->function,
									 code->kind == NODE_CODE
										 ? NODE_NO_OFFSET
										 : index));
		return 1;
	}
	n = node_compiled__scopes(code->compiled, index, scopes);
	for (i = 0; i < n; i++)
		ret[i] = symbol_of(scopes[i].function, scopes[i].line);
	return n;
}
