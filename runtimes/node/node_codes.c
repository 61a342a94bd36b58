// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_codes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "runtimes/common/numbered_codes.h"
#include "runtimes/node/node_compiled.h"

#define UNKNOWN "[unknown JavaScript function]" /* it was moved or freed before it was read */
#define STUB	"[V8 code]"			/* for regular expressions, WebAssembly, ... */

/* Limits for names: bytes read a second, bytes read after a pause, bytes stored. */
#define READ_RATE	 (16ULL << 20) /* for one process */
#define READ_BURST	 (80ULL << 20)
#define RETAINED_MAX	 (48U << 20)
#define READ_RATE_ALL	 (32ULL << 20) /* for all processes */
#define READ_BURST_ALL	 (160ULL << 20)
#define RETAINED_MAX_ALL (128U << 20)

struct instance {
	struct node_layout layout;
	struct node_heap heap;
	struct node_functions *functions;
	struct allowance allowance;
	uint32_t space; /* 0: detached */
	size_t n_codes;
	struct instance *next;
};

struct code {
	struct instance *instance;
	uint8_t kind;
	struct node_function *function; /* NULL: unknown */
	struct node_compiled *compiled; /* NULL: none, or unknown */
};

struct node_codes {
	struct numbered_codes by_number;
	struct instance *instances;
	struct allowance allowance;
};

static void instance__free(struct instance *instance)
{
	node_functions__free(instance->functions);
	free(instance);
}

struct node_codes *node_codes__new(void)
{
	struct node_codes *codes = calloc(1, sizeof(*codes));

	if (codes)
		codes->allowance = (struct allowance) { .rate = READ_RATE_ALL,
							.burst = READ_BURST_ALL,
							.charged_max = RETAINED_MAX_ALL };
	return codes;
}

static void code__free(void *of)
{
	struct code *code = of;

	node_compiled__free(code->compiled);
	node_functions__put(code->instance->functions, code->function);
	code->instance->n_codes--;
	free(code);
}

void node_codes__free(struct node_codes *codes)
{
	struct instance *instance;
	if (!codes)
		return;
	numbered_codes__done(&codes->by_number, code__free);
	while ((instance = codes->instances)) {
		codes->instances = instance->next;
		instance__free(instance);
	}
	free(codes);
}

int node_codes__attach(struct node_codes *codes, uint32_t pid, uint32_t space,
		       const struct node_layout *layout)
{
	struct instance *instance = calloc(1, sizeof(*instance));

	if (instance)
		instance->functions = node_functions__new(&instance->allowance);
	if (!instance || !instance->functions) {
		free(instance);
		return -ENOMEM;
	}
	instance->layout = *layout;
	instance->allowance = (struct allowance) { .of_all = &codes->allowance,
						   .rate = READ_RATE,
						   .burst = READ_BURST,
						   .charged_max = RETAINED_MAX };
	instance->heap = (struct node_heap) { .pid = pid,
					      .layout = &instance->layout,
					      .allowance = &instance->allowance };
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

static struct instance *instance__find(const struct node_codes *codes, uint32_t space)
{
	struct instance *instance = codes->instances;

	while (instance && instance->space != space)
		instance = instance->next;
	return instance;
}

/* --- announced codes --- */

static int code__read(struct code *code, const struct instance *instance,
		      const struct node_code *sent)
{
	const struct node_function_key key = node_function_key__of(&sent->function);
	int rc;

	if (code->kind != NODE_FUNCTION && code->kind != NODE_CODE)
		return 0;
	rc = node_functions__get(instance->functions, &instance->heap, &key, &code->function);
	if (rc || !code->function || code->kind != NODE_CODE)
		return rc;
	rc = node_compiled__open(&instance->heap, instance->functions, sent, code->function,
				 &code->compiled);
	/* The code of a function that is garbage may be garbage, too. */
	if (code->compiled && !node_function_key__holds(&instance->heap, &key)) {
		node_compiled__free(code->compiled);
		code->compiled = NULL;
	}
	return rc;
}

int node_codes__add(struct node_codes *codes, const struct rec_code_object *rec, size_t size)
{
	struct instance *instance;
	struct node_code sent;
	struct code *code;
	int rc;

	if (size < REC_CODE_OBJECT_HEADER + sizeof(sent))
		return -EBADMSG;
	memcpy(&sent, rec->name, sizeof(sent));
	instance = sent.space ? instance__find(codes, sent.space) : NULL;
	if (!instance || numbered_codes__find(&codes->by_number, rec->code))
		return -EBADMSG;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->instance = instance;
	instance->n_codes++;
	code->kind = rec->table_format;
	rc = code__read(code, instance, &sent);
	if (!rc)
		return numbered_codes__put(&codes->by_number, rec->code, code, code__free);
	code__free(code);
	return -ENOMEM;
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

void node_codes__forget(struct node_codes *codes, const struct u64map *listed)
{
	struct instance *instance, *next;

	numbered_codes__forget(&codes->by_number, listed, code__free);
	LL_FOREACH_SAFE(codes->instances, instance, next)
	{
		if (instance->space || instance->n_codes)
			continue;
		LL_DELETE(codes->instances, instance);
		instance__free(instance);
	}
}

size_t node_codes__charged(const struct node_codes *codes)
{
	return codes->allowance.charged;
}

uint32_t node_codes__count_stale(const struct node_codes *codes, uint64_t key)
{
	const struct code *code = numbered_codes__of_key(&codes->by_number, key);
	struct node_scope scopes[RUNTIME_SYMBOLS_MAX];
	uint32_t stale = 0;
	size_t n, i;

	if (!code || code->kind == NODE_STUB)
		return 0;
	if (!code->compiled)
		return !code->function;
	if (!node_compiled__lacks_functions(code->compiled))
		return 0;
	n = node_compiled__scopes(code->compiled, FRAME_KEY_INDEX(key), scopes);
	for (i = 0; i < n; i++)
		stale += !scopes[i].function;
	return stale;
}

int node_codes__symbolize(struct node_codes *codes, uint64_t key,
			  struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	const struct code *code = numbered_codes__of_key(&codes->by_number, key);
	struct node_scope scopes[RUNTIME_SYMBOLS_MAX];
	uint32_t index = FRAME_KEY_INDEX(key);
	size_t n, i;

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
