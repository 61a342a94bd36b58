// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_scripts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "core/base/util.h"
#include "runtimes/common/v8_label.h"

#define SOURCE_CHARS_MAX (32U << 20)
#define LINES_MAX	 (4U << 20)

#define LINE_SEPARATOR	    0x2028
#define PARAGRAPH_SEPARATOR 0x2029

/* The identity of a script, since objects move, and others take their places. */
struct script_key {
	uint64_t script, source, name, id;
};

struct node_script {
	UT_hash_handle hh;
	struct script_key key;
	char *file;	/* NULL: it has no name */
	uint32_t *ends; /* position of the last character of each line */
	size_t n_ends, cap_ends;
	uint32_t first; /* number of its first line, less 1 */
	uint32_t refs;
	size_t charged; /* bytes, of the allowance */
};

struct node_scripts {
	struct node_script *by_key;
	struct allowance *allowance;
};

struct node_scripts *node_scripts__new(struct allowance *allowance)
{
	struct node_scripts *scripts = calloc(1, sizeof(*scripts));

	if (scripts)
		scripts->allowance = allowance;
	return scripts;
}

static void script__free(struct node_scripts *scripts, struct node_script *script)
{
	allowance__drop(scripts->allowance, script->charged);
	free(script->file);
	free(script->ends);
	free(script);
}

void node_scripts__free(struct node_scripts *scripts)
{
	struct node_script *script, *next;

	if (!scripts)
		return;
	HASH_ITER (hh, scripts->by_key, script, next) {
		HASH_DEL(scripts->by_key, script);
		script__free(scripts, script);
	}
	free(scripts);
}

/* --- lines --- */

static int add_end(struct node_script *script, uint32_t position)
{
	if (script->n_ends == LINES_MAX)
		return -EBADMSG;
	if (array__reserve(&script->ends, &script->cap_ends, script->n_ends + 1,
			   sizeof(*script->ends)))
		return -ENOMEM;
	script->ends[script->n_ends++] = position;
	return 0;
}

struct source {
	struct node_script *script;
	uint32_t at;
	bool after_cr; /* the last character was CR: an LF that follows belongs to the same end of
			  line */
};

/* Finds ends of lines as V8 does: String::CalculateLineEnds, src/objects/string.cc. */
static int take_char(struct source *source, uint32_t c)
{
	bool after_cr = source->after_cr;
	uint32_t at = source->at++;
	int rc = 0;

	source->after_cr = c == '\r';
	if (after_cr && c != '\n')
		rc = add_end(source->script, at - 1);
	if (!rc && (c == '\n' || c == LINE_SEPARATOR || c == PARAGRAPH_SEPARATOR))
		rc = add_end(source->script, at);
	return rc;
}

static int take_chars(void *ctx, const void *chars, size_t n, unsigned int width)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++)
		rc = take_char(ctx, width == 1 ? ((const uint8_t *)chars)[i]
					       : ((const uint16_t *)chars)[i]);
	return rc;
}

/* Finds the ends of lines in the source, if V8 has not computed them yet. */
static int read_source(struct node_script *script, const struct node_heap *heap)
{
	struct source source = { .script = script };
	int rc = node_heap__chars(heap, script->key.source, SOURCE_CHARS_MAX, take_chars, &source);

	return rc ? rc : add_end(script, source.at);
}

static int read_ends(struct node_script *script, const struct node_heap *heap)
{
	uint64_t ends, *elements;
	int rc;

	if (node_heap__word(heap, script->key.script, heap->layout->script_line_ends, &ends) ||
	    !node_heap__is(heap, ends, heap->layout->type_fixed_array))
		return -ENOENT;
	rc = node_heap__array(heap, ends, sizeof(*elements), LINES_MAX, (void **)&elements,
			      &script->n_ends);
	if (rc)
		return rc;
	script->ends = calloc(script->n_ends + 1, sizeof(*script->ends));
	for (size_t i = 0; script->ends && i < script->n_ends; i++)
		script->ends[i] = NODE_SMI(elements[i]);
	free(elements);
	script->cap_ends = script->n_ends;
	return script->ends ? 0 : -ENOMEM;
}

/* Reads the ends of lines. A broken table counts as none. */
static int read_lines(struct node_script *script, const struct node_heap *heap)
{
	uint64_t first;
	int rc = read_ends(script, heap);

	if (rc && rc != -ENOMEM)
		rc = read_source(script, heap);
	if (rc)
		script->n_ends = 0;
	if (!node_heap__word(heap, script->key.script, heap->layout->script_line_offset, &first) &&
	    NODE_IS_SMI(first))
		script->first = NODE_SMI(first);
	return rc == -ENOMEM ? rc : 0;
}

/* --- scripts --- */

static int read_key(const struct node_heap *heap, uint64_t script, struct script_key *ret)
{
	const struct node_layout *layout = heap->layout;

	if (!node_heap__is(heap, script, layout->rec.type_script))
		return -EBADMSG;
	ret->script = script;
	return node_heap__word(heap, script, layout->rec.script_source, &ret->source) ||
			       node_heap__word(heap, script, layout->rec.text.script_name,
					       &ret->name) ||
			       node_heap__word(heap, script, layout->rec.script_id, &ret->id)
		       ? -EFAULT
		       : 0;
}

/* Returns true if the object is still the same script. */
static bool is_current(const struct node_heap *heap, const struct script_key *key)
{
	struct script_key now = {};

	return !read_key(heap, key->script, &now) && !memcmp(&now, key, sizeof(now));
}

/* Stores the script, and its lines if the allowance is large enough for them. */
static void keep(struct node_scripts *scripts, struct node_script *script)
{
	size_t bytes = sizeof(*script), lines = script->n_ends * sizeof(*script->ends);
	uint32_t *ends = realloc(script->ends, max_of(lines, (size_t)1));

	script->ends = ends ?: script->ends;
	if (allowance__keep(scripts->allowance, bytes + lines)) {
		script->charged = bytes + lines;
		return;
	}
	free(script->ends);
	script->ends = NULL;
	script->n_ends = script->cap_ends = 0;
}

static int script__read(struct node_scripts *scripts, const struct node_heap *heap,
			const struct script_key *key, struct node_script **ret)
{
	struct node_script *script = calloc(1, sizeof(*script));
	char *name;
	int rc;

	if (!script)
		return -ENOMEM;
	script->key = *key;
	rc = node_heap__text(heap, key->name, &name);
	script->file = rc || !name[0] ? NULL : strdup(v8_label__path(name));
	if (rc != -ENOMEM)
		rc = !rc && name[0] && !script->file ? -ENOMEM : read_lines(script, heap);
	free(name);
	if (!rc && !is_current(heap, key))
		rc = -EBADMSG;
	if (rc) {
		script__free(scripts, script);
		return rc;
	}
	keep(scripts, script);
	*ret = script;
	return 0;
}

int node_scripts__get(struct node_scripts *scripts, const struct node_heap *heap, uint64_t script,
		      struct node_script **ret)
{
	struct script_key key = {};
	struct node_script *found;
	int rc;

	*ret = NULL;
	if (read_key(heap, script, &key))
		return 0;
	HASH_FIND(hh, scripts->by_key, &key, sizeof(key), found);
	if (!found) {
		rc = script__read(scripts, heap, &key, &found);
		if (rc)
			return rc == -ENOMEM ? rc : 0;
		HASH_ADD(hh, scripts->by_key, key, sizeof(key), found);
		if (!found->hh.tbl) {
			script__free(scripts, found);
			return -ENOMEM;
		}
	}
	found->refs++;
	*ret = found;
	return 0;
}

void node_scripts__put(struct node_scripts *scripts, struct node_script *script)
{
	if (!script || --script->refs)
		return;
	HASH_DEL(scripts->by_key, script);
	script__free(scripts, script);
}

const char *node_script__file(const struct node_script *script)
{
	return script->file;
}

uint32_t node_script__line(const struct node_script *script, int32_t position)
{
	size_t lo = 0, hi = script->n_ends, mid;

	if (position < 0 || !hi || (uint32_t)position > script->ends[hi - 1])
		return 0;
	while (lo < hi) {
		mid = (lo + hi) / 2;
		if (script->ends[mid] < (uint32_t)position)
			lo = mid + 1;
		else
			hi = mid;
	}
	return script->first + lo + 1;
}
