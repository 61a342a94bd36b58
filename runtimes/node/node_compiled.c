// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_compiled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define POSITIONS_MAX (16U << 20) /* bytes */
#define DEOPT_MAX     65536	  /* elements; a few dozens are usual, and entries of code follow */
#define LITERALS_MAX  65536
#define INLINED_MAX   4096
#define INLININGS_MAX 65536 /* V8 numbers them by 16 bits */

/* InliningPosition (deps/v8/src/codegen/source-position.h) as laid out in memory. */
struct inlining {
	uint64_t position; /* the place of the inlined call, a SourcePosition */
	int32_t function;  /* index among the inlined functions */
	int32_t pad;
};
_Static_assert(sizeof(struct inlining) == 16, "as V8's");

struct node_compiled {
	const struct node_function *function;
	bool baseline;
	struct node_positions
		positions; /* for baseline code: the table of node_positions__bytecode */
	struct node_functions *functions;
	struct node_function **inlined; /* NULL: could not be read */
	size_t n_inlined;
	bool lacks_functions; /* some scope has no function */
	struct inlining *inlinings;
	size_t n_inlinings;
	struct allowance *allowance;
	size_t charged; /* bytes, of the allowance */
};

void node_compiled__free(struct node_compiled *compiled)
{
	if (!compiled)
		return;
	for (size_t i = 0; i < compiled->n_inlined; i++)
		node_functions__put(compiled->functions, compiled->inlined[i]);
	allowance__drop(compiled->allowance, compiled->charged);
	free(compiled->positions.table);
	free(compiled->inlined);
	free(compiled->inlinings);
	free(compiled);
}

/* Reads the words of a Code object, if it is still the announced one. */
static int read_code(const struct node_heap *heap, const struct node_code *code,
		     uint8_t ret[NODE_CODE_BYTES])
{
	const struct node_proc_rec *rec = &heap->layout->rec;
	uint64_t start = code->code - NODE_TAG + rec->stream_header;
	uint64_t deopt;
	uint32_t size;

	if (!node_heap__is(heap, code->code, heap->layout->type_code) ||
	    node_heap__bytes(heap, code->code, 0, ret, NODE_CODE_BYTES))
		return -EBADMSG;
	if (rec->code_start)
		memcpy(&start, ret + rec->code_start, sizeof(start));
	memcpy(&size, ret + rec->code_size, sizeof(size));
	memcpy(&deopt, ret + rec->code_deopt, sizeof(deopt));
	return start == code->start && size == code->size && deopt == code->deopt ? 0 : -EBADMSG;
}

static uint64_t code_word(const uint8_t code[NODE_CODE_BYTES], uint32_t offset)
{
	uint64_t word;

	memcpy(&word, code + offset, sizeof(word));
	return word;
}

/* --- deoptimization data of optimized code --- */

/* Reads the inlined functions, with which the literals begin; they may be weak references. Returns
 * 0 or -ENOMEM. Unreadable functions are NULL. */
static int read_inlined(struct node_compiled *compiled, const struct node_heap *heap,
			struct node_functions *functions, uint64_t literals, size_t n)
{
	struct node_function_key key;
	uint64_t *words;
	size_t n_words, i;
	int rc = node_heap__array(heap, literals, sizeof(*words), LITERALS_MAX, (void **)&words,
				  &n_words);

	if (rc)
		return rc == -ENOMEM ? rc : 0;
	n = min_of(n, n_words);
	compiled->inlined = calloc(n + 1, sizeof(*compiled->inlined));
	if (!compiled->inlined)
		rc = -ENOMEM;
	for (i = 0; !rc && i < n; i++)
		if (!node_function_key__read(heap, (words[i] & ~3ULL) | NODE_TAG, &key))
			rc = node_functions__get(functions, heap, &key, &compiled->inlined[i]);
	compiled->n_inlined = compiled->inlined ? n : 0;
	free(words);
	return rc;
}

/* Reads the function that the code belongs to. */
static int read_owner(const struct node_heap *heap, const uint64_t *words, uint64_t *ret)
{
	const struct node_layout *layout = heap->layout;

	*ret = words[layout->deopt_function];
	return layout->wrapped_function ? node_heap__word(heap, *ret, layout->wrapped_function, ret)
					: 0;
}

static int read_deopt(struct node_compiled *compiled, const struct node_heap *heap,
		      struct node_functions *functions, uint64_t sfi, const uint64_t *words)
{
	const struct node_layout *layout = heap->layout;
	uint64_t owner, n = words[layout->deopt_n_inlined];
	size_t bytes;
	int rc;

	if (read_owner(heap, words, &owner) || owner != sfi || !NODE_IS_SMI(n) ||
	    NODE_SMI(n) > INLINED_MAX)
		return -EBADMSG;
	if (!NODE_SMI(n))
		return 0;
	rc = read_inlined(compiled, heap, functions, words[layout->deopt_literals], NODE_SMI(n));
	if (!rc)
		rc = node_heap__array(heap, words[layout->deopt_inlinings], 1,
				      INLININGS_MAX * sizeof(struct inlining),
				      (void **)&compiled->inlinings, &bytes);
	if (!rc)
		compiled->n_inlinings = bytes / sizeof(struct inlining);
	return rc;
}

static int read_optimized(struct node_compiled *compiled, const struct node_heap *heap,
			  struct node_functions *functions, uint64_t sfi,
			  const uint8_t code[NODE_CODE_BYTES])
{
	const struct node_layout *layout = heap->layout;
	uint64_t *words;
	size_t n;
	int rc = node_heap__array(heap, code_word(code, layout->code_deopt), sizeof(*words),
				  DEOPT_MAX, (void **)&words, &n);

	if (rc)
		return rc;
	rc = n <= max_of(max_of(layout->deopt_function, layout->deopt_inlinings),
			 max_of(layout->deopt_literals, layout->deopt_n_inlined))
		     ? -EBADMSG
		     : read_deopt(compiled, heap, functions, sfi, words);
	free(words);
	return rc;
}

/* --- code --- */

static int compiled__read(struct node_compiled *compiled, const struct node_heap *heap,
			  struct node_functions *functions, const struct node_code *code)
{
	const struct node_layout *layout = heap->layout;
	uint8_t words[NODE_CODE_BYTES];
	uint32_t flags;
	int rc = read_code(heap, code, words);

	if (rc)
		return rc;
	memcpy(&flags, words + layout->rec.code_flags, sizeof(flags));
	compiled->baseline = (flags & layout->rec.kind_mask) == layout->rec.kind_baseline;
	rc = node_heap__array(heap, code_word(words, layout->code_positions), 1, POSITIONS_MAX,
			      (void **)&compiled->positions.table, &compiled->positions.size);
	compiled->positions.with_bits = layout->positions_with_bits;
	if (!rc && !compiled->baseline)
		rc = read_optimized(compiled, heap, functions, code->function.sfi, words);
	return rc ? rc : read_code(heap, code, words); /* unchanged during all reads */
}

/* Returns the function of an inlining; NULL: unreadable. */
static const struct node_function *function_of(const struct node_compiled *compiled,
					       const struct inlining *inlining)
{
	if (inlining->function < 0)
		return compiled->function;
	return (size_t)inlining->function < compiled->n_inlined
		       ? compiled->inlined[inlining->function]
		       : NULL;
}

static bool lacks_functions(const struct node_compiled *compiled)
{
	bool lacks = !compiled->function;

	for (size_t i = 0; !lacks && i < compiled->n_inlinings; i++)
		lacks = !function_of(compiled, &compiled->inlinings[i]);
	return lacks;
}

static bool keep(struct node_compiled *compiled)
{
	size_t bytes = sizeof(*compiled) + compiled->positions.size +
		       compiled->n_inlined * sizeof(*compiled->inlined) +
		       compiled->n_inlinings * sizeof(*compiled->inlinings);

	if (!allowance__keep(compiled->allowance, bytes))
		return false;
	compiled->charged = bytes;
	return true;
}

int node_compiled__open(const struct node_heap *heap, struct node_functions *functions,
			const struct node_code *code, const struct node_function *function,
			struct node_compiled **ret)
{
	struct node_compiled *compiled = calloc(1, sizeof(*compiled));
	int rc;

	*ret = NULL;
	if (!compiled)
		return -ENOMEM;
	compiled->function = function;
	compiled->functions = functions;
	compiled->allowance = heap->allowance;
	rc = compiled__read(compiled, heap, functions, code);
	compiled->lacks_functions = lacks_functions(compiled);
	if (!rc && !keep(compiled))
		rc = -EBADMSG;
	if (!rc) {
		*ret = compiled;
		return 0;
	}
	node_compiled__free(compiled);
	return rc == -ENOMEM ? rc : 0;
}

/* --- places --- */

static struct node_scope scope_at(const struct node_function *function, uint64_t position)
{
	bool known = function && !NODE_POSITION_IS_EXTERNAL(position);

	return (struct node_scope) {
		.function = function,
		.line = known ? node_function__line_at(function, NODE_POSITION_OFFSET(position)) : 0
	};
}

size_t node_compiled__scopes(const struct node_compiled *compiled, uint32_t offset,
			     struct node_scope ret[RUNTIME_SYMBOLS_MAX])
{
	const struct inlining *inlining;
	int32_t id, last = INT32_MAX;
	uint64_t position;
	size_t n = 0;

	if (compiled->baseline) {
		ret[0].function = compiled->function;
		ret[0].line =
			node_function__baseline_line(compiled->function, compiled->positions.table,
						     compiled->positions.size, offset);
		return 1;
	}
	if (!node_positions__find(&compiled->positions, offset, &position))
		position = 0;
	/* A function is inlined only into one with a lower number. */
	for (id = NODE_POSITION_INLINING(position);
	     id >= 0 && id < last && (size_t)id < compiled->n_inlinings &&
	     n < RUNTIME_SYMBOLS_MAX - 1;
	     id = NODE_POSITION_INLINING(position)) {
		inlining = &compiled->inlinings[id];
		ret[n++] = scope_at(function_of(compiled, inlining), position);
		position = inlining->position;
		last = id;
	}
	ret[n++] = scope_at(compiled->function, position);
	return n;
}

bool node_compiled__lacks_functions(const struct node_compiled *compiled)
{
	return compiled->lacks_functions;
}
