// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_functions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/base/util.h"
#include "runtimes/node/node_text.h"

#define ANONYMOUS     "(anonymous)" /* also the name of a file's code outside of functions */
#define TABLE_MAX     (4U << 20)
#define BYTECODES_MAX (4U << 20)
#define LOCALS_MAX    (1U << 16)

struct node_function {
	UT_hash_handle hh;
	struct node_function_key key;
	const struct node_layout *layout;
	struct node_script *script; /* NULL: it has none, as builtins */
	char *name;
	int32_t start;			 /* position of its parameters in the script; -1: unknown */
	struct node_positions positions; /* table for its bytecodes */
	uint8_t *bytecodes;
	size_t n_bytecodes;
	uint32_t refs;
	size_t charged; /* bytes, of the allowance */
};

struct node_functions {
	struct node_function *by_key;
	struct node_scripts *scripts;
	struct allowance *allowance;
};

struct node_functions *node_functions__new(struct allowance *allowance)
{
	struct node_functions *functions = calloc(1, sizeof(*functions));

	if (functions)
		functions->scripts = node_scripts__new(allowance);
	if (functions && !functions->scripts) {
		free(functions);
		functions = NULL;
	}
	if (functions)
		functions->allowance = allowance;
	return functions;
}

static void function__free(struct node_functions *functions, struct node_function *function)
{
	allowance__drop(functions->allowance, function->charged);
	node_scripts__put(functions->scripts, function->script);
	free(function->name);
	free(function->positions.table);
	free(function->bytecodes);
	free(function);
}

void node_functions__free(struct node_functions *functions)
{
	struct node_function *function, *next;

	if (!functions)
		return;
	HASH_ITER (hh, functions->by_key, function, next) {
		HASH_DEL(functions->by_key, function);
		function__free(functions, function);
	}
	node_scripts__free(functions->scripts);
	free(functions);
}

/* --- names --- */

static int scope_word(const struct node_heap *heap, uint64_t scope, uint64_t i, uint64_t *ret)
{
	return node_heap__word(heap, scope, 8 + 8 * i, ret);
}

/* The places of the words of a ScopeInfo, by number. */
struct scope {
	uint32_t flags;
	uint64_t name; /* the function's name; the words after it depend on the flags */
	uint64_t inferred;
	uint64_t start;
};

static int scope__read(const struct node_heap *heap, uint64_t object, struct scope *ret)
{
	const struct node_layout *layout = heap->layout;
	uint64_t flags, locals, n;

	if (!node_heap__is(heap, object, layout->rec.text.type_scope_info) ||
	    scope_word(heap, object, 0, &flags) ||
	    scope_word(heap, object, layout->rec.text.scope_n_locals, &locals) ||
	    !NODE_IS_SMI(locals) || NODE_SMI(locals) > LOCALS_MAX)
		return -EBADMSG;
	n = NODE_SMI(locals);
	ret->flags = layout->rec.text.scope_flags_is_smi ? NODE_SMI(flags) : (uint32_t)flags;
	ret->name = node_scope__name(&layout->rec.text, ret->flags, n);
	ret->inferred = ret->name + (ret->flags & NODE_SCOPE_FUNCTION_VARIABLE ? 2 : 0);
	ret->start = layout->scope_start
			     ? layout->scope_start
			     : ret->inferred + (ret->flags & NODE_SCOPE_HAS_INFERRED_NAME ? 1 : 0);
	return 0;
}

/* Stores the text in *@ret if it is not empty. Returns 0 or -ENOMEM. */
static int take_text(const struct node_heap *heap, uint64_t string, char **ret)
{
	int rc = node_heap__text(heap, string, ret);

	if (!rc && !(*ret)[0]) {
		free(*ret);
		*ret = NULL;
	}
	return rc == -ENOMEM ? rc : 0;
}

/* Reads the name from the source, or the name that V8 derived from an assignment, as V8's own
 * profiles do (SharedFunctionInfo::DebugNameCStr). */
static int read_scope(struct node_function *function, const struct node_heap *heap)
{
	struct scope scope;
	uint64_t word;
	int rc = 0;

	if (scope__read(heap, function->key.name, &scope))
		return 0;
	if (scope.flags & NODE_SCOPE_FUNCTION_VARIABLE &&
	    !scope_word(heap, function->key.name, scope.name, &word))
		rc = take_text(heap, word, &function->name);
	if (!rc && !function->name && scope.flags & NODE_SCOPE_HAS_INFERRED_NAME &&
	    !scope_word(heap, function->key.name, scope.inferred, &word))
		rc = take_text(heap, word, &function->name);
	if (!scope_word(heap, function->key.name, scope.start, &word) && NODE_IS_SMI(word))
		function->start = NODE_SMI(word);
	return rc;
}

static int read_name(struct node_function *function, const struct node_heap *heap)
{
	int rc = take_text(heap, function->key.name,
			   &function->name); /* for a function without a scope */

	if (!rc && !function->name)
		rc = read_scope(function, heap);
	if (!rc && !function->name) {
		function->name = strdup(ANONYMOUS);
		rc = function->name ? 0 : -ENOMEM;
	}
	return rc;
}

/* --- bytecodes --- */

/* Finds the bytecodes of a SharedFunctionInfo. Its field has the bytecodes themselves, an object
 * that refers to them (InterpreterData), or Sparkplug's code, which refers to one of these. */
static int find_bytecodes(const struct node_heap *heap, uint64_t sfi, uint64_t *ret)
{
	const struct node_layout *layout = heap->layout;
	uint64_t object;

	if (node_heap__word(heap, sfi, layout->rec.sfi_data, &object))
		return -EFAULT;
	if (node_heap__is(heap, object, layout->type_code) &&
	    node_heap__word(heap, object, layout->code_deopt, &object))
		return -EFAULT;
	*ret = object;
	if (node_heap__is(heap, object, layout->rec.type_bytecodes))
		return 0;
	if (node_heap__word(heap, object, 8, ret) ||
	    !node_heap__is(heap, *ret, layout->rec.type_bytecodes))
		return -EBADMSG;
	return 0;
}

/* Reads the function's bytecodes. Without bytecodes, each instruction has the function's line.
 * Returns 0 or -ENOMEM. */
static int read_bytecodes(struct node_function *function, const struct node_heap *heap)
{
	const struct node_layout *layout = heap->layout;
	uint64_t object, table, length;
	uint32_t n;
	int rc;

	if (find_bytecodes(heap, function->key.sfi, &object) ||
	    node_heap__word(heap, object, layout->array_length, &length) ||
	    node_heap__word(heap, object, layout->bytecode_positions, &table))
		return 0;
	rc = node_heap__array(heap, table, 1, TABLE_MAX, (void **)&function->positions.table,
			      &function->positions.size);
	function->positions.with_bits = layout->positions_with_bits;
	n = NODE_SMI(length);
	if (rc || !n || n > BYTECODES_MAX)
		return rc == -ENOMEM ? rc : 0;
	function->bytecodes = malloc(n);
	if (!function->bytecodes)
		return -ENOMEM;
	if (node_heap__bytes(heap, object, layout->bytecode_data, function->bytecodes, n))
		return 0;
	function->n_bytecodes = n;
	return 0;
}

/* --- functions --- */

int node_function_key__read(const struct node_heap *heap, uint64_t sfi,
			    struct node_function_key *ret)
{
	const struct node_proc_rec *rec = &heap->layout->rec;
	uint32_t literal;

	*ret = (struct node_function_key) { .sfi = sfi };
	if (!node_heap__is(heap, sfi, rec->type_sfi) ||
	    node_heap__word(heap, sfi, rec->sfi_name, &ret->name) ||
	    node_heap__word(heap, sfi, rec->sfi_script, &ret->script) ||
	    node_heap__bytes(heap, sfi, rec->sfi_literal, &literal, sizeof(literal)))
		return -EBADMSG;
	ret->literal = literal;
	if (node_heap__is(heap, ret->script, rec->type_script) &&
	    (node_heap__word(heap, ret->script, rec->script_id, &ret->script_id) ||
	     node_heap__word(heap, ret->script, rec->script_source, &ret->source)))
		return -EBADMSG;
	ret->texts = node_text__hash(heap, ret->name, ret->script_id ? ret->script : 0);
	return 0;
}

struct node_function_key node_function_key__of(const struct node_function_id *id)
{
	return (struct node_function_key) { .sfi = id->sfi,
					    .name = id->name,
					    .script = id->script,
					    .script_id = id->script_id,
					    .source = id->source,
					    .texts = id->texts,
					    .literal = id->literal };
}

bool node_function_key__holds(const struct node_heap *heap, const struct node_function_key *key)
{
	struct node_function_key now;

	return !node_function_key__read(heap, key->sfi, &now) && !memcmp(&now, key, sizeof(now));
}

/* Reads a function between two checks that the object is still that function. `*ret` is NULL if the
 * garbage collector has moved it in between. */
static int function__read(struct node_functions *functions, const struct node_heap *heap,
			  const struct node_function_key *key, struct node_function **ret)
{
	struct node_function *function = calloc(1, sizeof(*function));
	int rc;

	if (!function)
		return -ENOMEM;
	function->key = *key;
	function->layout = heap->layout;
	function->start = -1;
	rc = node_function_key__holds(heap, key) ? 0 : -EBADMSG;
	if (!rc)
		rc = node_scripts__get(functions->scripts, heap, key->script, &function->script);
	rc = rc ? rc : read_name(function, heap);
	rc = rc ? rc : read_bytecodes(function, heap);
	if (!rc && !node_function_key__holds(heap, key))
		rc = -EBADMSG;
	function->charged = sizeof(*function) + function->positions.size + function->n_bytecodes;
	if (!rc && !allowance__keep(functions->allowance, function->charged))
		rc = -EBADMSG;
	if (rc) {
		function->charged = 0;
		function__free(functions, function);
	} else {
		*ret = function;
	}
	return rc;
}

int node_functions__get(struct node_functions *functions, const struct node_heap *heap,
			const struct node_function_key *key, struct node_function **ret)
{
	struct node_function *found;
	int rc;

	*ret = NULL;
	HASH_FIND(hh, functions->by_key, key, sizeof(*key), found);
	if (!found) {
		rc = function__read(functions, heap, key, &found);
		if (rc)
			return rc == -ENOMEM ? rc : 0;
		HASH_ADD(hh, functions->by_key, key, sizeof(*key), found);
		if (!found->hh.tbl) {
			function__free(functions, found);
			return -ENOMEM;
		}
	}
	found->refs++;
	*ret = found;
	return 0;
}

void node_functions__put(struct node_functions *functions, struct node_function *function)
{
	if (!function || --function->refs)
		return;
	HASH_DEL(functions->by_key, function);
	function__free(functions, function);
}

const char *node_function__name(const struct node_function *function)
{
	return function->name;
}

const char *node_function__file(const struct node_function *function)
{
	return function->script ? node_script__file(function->script) : NULL;
}

/* --- lines --- */

uint32_t node_function__line_at(const struct node_function *function, int32_t position)
{
	if (!function->script)
		return 0;
	return node_script__line(function->script, position >= 0 ? position : function->start);
}

static uint32_t line_of_bytecode(const struct node_function *function, uint32_t offset)
{
	uint64_t position;

	if (offset >= function->n_bytecodes ||
	    !node_positions__find(&function->positions, offset, &position) ||
	    NODE_POSITION_IS_EXTERNAL(position))
		return node_function__line_at(function, -1);
	return node_function__line_at(function, NODE_POSITION_OFFSET(position));
}

/* @index is the frame's: it counts from the tagged address of the BytecodeArray. */
uint32_t node_function__line(const struct node_function *function, uint32_t index)
{
	uint32_t header = function->layout->bytecode_data - NODE_TAG;

	return line_of_bytecode(
		function, index == NODE_NO_OFFSET || index < header ? UINT32_MAX : index - header);
}

uint32_t node_function__baseline_line(const struct node_function *function, const uint8_t *table,
				      size_t size, uint32_t offset)
{
	const struct node_bytecodes bytecodes = { .code = function->bytecodes,
						  .n = function->n_bytecodes,
						  .sizes = function->layout->bytecode_sizes,
						  .n_sizes = function->layout->n_bytecodes };
	uint32_t at;

	if (!node_positions__bytecode(table, size, &bytecodes, offset, &at))
		at = UINT32_MAX;
	return line_of_bytecode(function, at);
}
