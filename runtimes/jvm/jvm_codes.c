// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_codes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "core/target/procfs.h"
#include "runtimes/common/numbered_codes.h"
#include "runtimes/jvm/jvm_flags.h"
#include "runtimes/jvm/jvm_nmethod.h"

#define FREED	   "[freed Java method]"
#define UNREADABLE "[unreadable Java method]"
#define REPLACED   "[replaced Java method]"
#define UNNAMED	   "[JVM code]"
#define NAME_BYTES 64 /* limit for the name of a blob */

_Static_assert(JVM_SCOPES_MAX <= RUNTIME_SYMBOLS_MAX, "all scopes of a place find room");

/* Limits in bytes for cached methods and compiled code, for one process and for all. Reading
 * needs no limit in time: the bytes read for one object are bounded, and samples bound the
 * number of objects. */
#define RETAINED_MAX	 (64U << 20)
#define RETAINED_MAX_ALL (160U << 20)

struct instance {
	struct jvm_vm *vm;
	struct jvm_methods *methods;
	struct allowance allowance;
	uint32_t space; /* 0: detached */
	size_t n_codes;
	bool describes_all, knows_flag; /* DebugNonSafepoints is set; it has been read */
	struct instance *next;
};

/* A sampled place in a compiled method. */
struct place {
	uint32_t index, n;
	bool infers_inlined;
	struct jvm_scope *scopes;
	struct place *next;
};

struct code {
	uint8_t kind;
	uint64_t start; /* start of the instructions */
	struct instance *instance;
	const struct jvm_method *method; /* JVM_CODE_METHOD; NULL: unreadable */
	struct jvm_nmethod *nmethod;	 /* JVM_CODE_NMETHOD; NULL: freed before it was read */
	struct place *places;
	char name[NAME_BYTES]; /* JVM_CODE_BLOB */
};

struct jvm_codes {
	struct numbered_codes by_number;
	struct instance *instances;
	struct allowance allowance;
};

static void instance__free(struct instance *instance)
{
	jvm_methods__free(instance->methods);
	jvm_vm__free(instance->vm);
	free(instance);
}

struct jvm_codes *jvm_codes__new(void)
{
	struct jvm_codes *codes = calloc(1, sizeof(*codes));

	if (codes)
		codes->allowance.charged_max = RETAINED_MAX_ALL;
	return codes;
}

static void code__free(void *of)
{
	struct code *code = of;
	struct place *place;

	if (!code)
		return;
	while ((place = code->places)) {
		code->places = place->next;
		free(place->scopes);
		free(place);
	}
	jvm_nmethod__free(code->nmethod);
	code->instance->n_codes--;
	free(code);
}

void jvm_codes__free(struct jvm_codes *codes)
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

int jvm_codes__add_vm(struct jvm_codes *codes, uint32_t space, struct jvm_vm *vm)
{
	struct instance *instance = calloc(1, sizeof(*instance));

	if (!instance || jvm_methods__new(vm, &instance->methods)) {
		free(instance);
		jvm_vm__free(vm);
		return -ENOMEM;
	}
	instance->allowance =
		(struct allowance) { .of_all = &codes->allowance, .charged_max = RETAINED_MAX };
	jvm_methods__limit(instance->methods, &instance->allowance);
	instance->vm = vm;
	instance->space = space;
	instance->next = codes->instances;
	codes->instances = instance;
	return 0;
}

static struct instance *instance__find(const struct jvm_codes *codes, uint32_t space)
{
	struct instance *instance = codes->instances;

	while (instance && instance->space != space)
		instance = instance->next;
	return instance;
}

const struct jvm_vm *jvm_codes__vm(const struct jvm_codes *codes, uint32_t pid)
{
	const struct instance *instance = codes->instances;

	while (instance && (!instance->space || jvm_vm__pid(instance->vm) != pid))
		instance = instance->next;
	return instance ? instance->vm : NULL;
}

void jvm_codes__forget_vm(struct jvm_codes *codes, uint32_t space)
{
	struct instance *instance = instance__find(codes, space);

	if (instance)
		instance->space = 0;
}

/* Reads CodeBlob::_name, a C string in libjvm or on the heap. */
static void read_name(struct code *code, uint64_t blob)
{
	uint64_t field, address;
	char text[NAME_BYTES] = "";
	size_t i;

	if (jvm_vm__field(code->instance->vm, "CodeBlob", "_name", &field) ||
	    jvm_vm__read(code->instance->vm, blob + field, &address, sizeof(address)))
		return;
	for (i = 0; i < sizeof(text) - 1; i++)
		if (jvm_vm__read(code->instance->vm, address + i, text + i, 1) || !text[i])
			break;
	memcpy(code->name, text, sizeof(text) - 1);
}

int jvm_codes__add(struct jvm_codes *codes, const struct rec_code_object *rec, size_t size)
{
	struct instance *instance;
	struct code *code;
	int rc = 0;

	if (size < REC_CODE_OBJECT_HEADER)
		return -EBADMSG;
	instance = instance__find(codes, rec->table_size);
	if (!instance || numbered_codes__find(&codes->by_number, rec->code))
		return -EBADMSG;
	code = calloc(1, sizeof(*code));
	if (!code)
		return -ENOMEM;
	code->kind = rec->table_format;
	code->start = rec->table_address;
	code->instance = instance;
	instance->n_codes++;
	if (code->kind == JVM_CODE_METHOD)
		code->method = jvm_methods__get_sampled(instance->methods, rec->address,
							rec->table_address);
	else if (code->kind == JVM_CODE_NMETHOD)
		rc = jvm_nmethod__open(instance->vm, rec->address, rec->first_line,
				       instance->methods, &code->nmethod);
	else if (rec->address)
		read_name(code, rec->address);
	else
		snprintf(code->name, sizeof(code->name), "Interpreter");
	if (rc != -ENOMEM)
		return numbered_codes__put(&codes->by_number, rec->code, code, code__free);
	code__free(code);
	return rc;
}

static struct code *code__find(const struct jvm_codes *codes, uint64_t key)
{
	return numbered_codes__of_key(&codes->by_number, key);
}

/* Returns the JVM's option DebugNonSafepoints. An unreadable option counts as not set. Recorded
 * processes have no options. */
static bool instance__describes_all(struct instance *instance)
{
	bool set = false;

	if (!instance->knows_flag && !procfs__is_recorded())
		instance->describes_all =
			!jvm_flags__bool(instance->vm, "DebugNonSafepoints", &set) && set;
	instance->knows_flag = true;
	return instance->describes_all;
}

/* Finds a place and moves it to the front of the list, which is ordered by the last sample. */
static struct place *place__find(struct code *code, uint32_t index)
{
	struct place *place = NULL;

	for (struct place **link = &code->places; *link; link = &(*link)->next) {
		if ((*link)->index != index)
			continue;
		place = *link;
		*link = place->next;
		place->next = code->places;
		code->places = place;
		break;
	}
	return place;
}

/* Returns the place with this index, read at first use; NULL: out of memory. */
static const struct place *place__get(struct code *code, uint32_t index)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	struct place *place = place__find(code, index);
	uint32_t offset = index & ~JVM_EXACT;
	bool exact = index & JVM_EXACT;

	if (place)
		return place;
	place = calloc(1, sizeof(*place));
	if (!place)
		return NULL;
	place->index = index;
	place->n = jvm_nmethod__scopes(code->nmethod, offset, exact, scopes);
	place->infers_inlined =
		place->n > 1 &&
		jvm_nmethod__infers_inlined(code->nmethod, offset, exact,
					    instance__describes_all(code->instance));
	place->scopes = calloc(place->n, sizeof(*scopes));
	if (!place->scopes) {
		free(place);
		return NULL;
	}
	memcpy(place->scopes, scopes, place->n * sizeof(*scopes));
	place->next = code->places;
	code->places = place;
	return place;
}

void jvm_codes__seen(struct jvm_codes *codes, uint64_t key)
{
	struct code *code = code__find(codes, key);

	if (code && code->nmethod)
		place__get(code, FRAME_KEY_INDEX(key));
}

bool jvm_codes__infers_inlined(struct jvm_codes *codes, uint64_t key)
{
	struct code *code = code__find(codes, key);
	const struct place *place =
		code && code->nmethod ? place__get(code, FRAME_KEY_INDEX(key)) : NULL;

	return place && place->infers_inlined;
}

static struct runtime_symbol name_method(const struct jvm_method *method, uint32_t bci)
{
	if (!method)
		return (struct runtime_symbol) { .function = UNREADABLE };
	return (struct runtime_symbol) { .function = method->name,
					 .file = method->file,
					 .line = bci == JVM_NO_BCI
							 ? 0
							 : jvm_method__line(method, bci) };
}

void jvm_codes__forget(struct jvm_codes *codes, const struct u64map *listed)
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

uint32_t jvm_codes__count_stale(struct jvm_codes *codes, uint64_t key)
{
	struct code *code = code__find(codes, key);
	const struct place *place;
	uint32_t stale = 0, i;

	if (!code)
		return 0;
	if (code->kind == JVM_CODE_METHOD)
		return !code->method;
	if (code->kind != JVM_CODE_NMETHOD)
		return 0;
	place = code->nmethod ? place__get(code, FRAME_KEY_INDEX(key)) : NULL;
	if (!place)
		return !code->nmethod;
	for (i = 0; i < place->n; i++)
		stale += !place->scopes[i].method;
	return stale;
}

int jvm_codes__symbolize(struct jvm_codes *codes, uint64_t key,
			 struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	struct code *code = code__find(codes, key);
	uint32_t index = FRAME_KEY_INDEX(key), i;
	const struct place *place;
	const char *name;

	if (!code)
		return -ENOENT;
	if (code->kind == JVM_CODE_METHOD) {
		if (!code->method)
			ret[0] = (struct runtime_symbol) { .function = REPLACED };
		else
			ret[0] = name_method(code->method, index);
		return 1;
	}
	if (code->kind != JVM_CODE_NMETHOD) {
		name = jvm_vm__stub(code->instance->vm, code->start + (index & ~JVM_EXACT));
		name = name ? name : code->name[0] ? code->name : UNNAMED;
		ret[0] = (struct runtime_symbol) { .function = name };
		return 1;
	}
	if (!code->nmethod) {
		ret[0] = (struct runtime_symbol) { .function = FREED };
		return 1;
	}
	place = place__get(code, index);
	if (!place)
		return -ENOMEM;
	for (i = 0; i < place->n; i++)
		ret[i] = name_method(place->scopes[i].method, place->scopes[i].bci);
	return place->n;
}
