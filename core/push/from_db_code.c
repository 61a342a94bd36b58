// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/from_db_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/push/clickhouse.h"
#include "core/push/clickhouse_rows.h"

/* Maximum numbers of frames of all stacks together, and of nodes of their trees: 10 and about 60
 * bytes each. */
#define FRAMES_MAX (1U << 24)
#define NODES_MAX  (1U << 23)

#define RANK_BYTES 16 /* distance of places on a stack, which may be any number */

int from_db_code__init(struct from_db_code *code, struct recorded *recorded)
{
	static const char *const known[KIND_RUNTIME] = { "kernel", "native", "inlined" };
	uint32_t id;
	int ret = 0;

	*code = (struct from_db_code) { .recorded = recorded,
					.images = strtab__new(),
					.functions = strtab__new(),
					.kinds = strtab__new() };
	intern__init(&code->function_index, RECORDED_NONE);
	intern__init(&code->node_index, RECORDED_NONE);
	if (!code->images || !code->functions || !code->kinds)
		return -ENOMEM;
	/* The id of a kind is its number + 1, as 0 is "". */
	for (int i = 0; !ret && i < KIND_RUNTIME; i++)
		ret = strtab__intern(code->kinds, known[i], &id);
	return ret;
}

void from_db_code__done(struct from_db_code *code)
{
	free(code->stacks);
	free(code->frame_ids);
	free(code->places);
	u64map__done(&code->stack_index);
	u64map__done(&code->frame_index);
	strtab__free(code->images);
	strtab__free(code->functions);
	strtab__free(code->kinds);
	intern__done(&code->function_index);
	intern__done(&code->node_index);
	*code = (struct from_db_code) {};
}

/* ---- stacks ---- */

static int read_frames(struct from_db_code *code, struct row_reader *rows,
		       struct from_db_stack *stack)
{
	size_t n = row_reader__length(rows, sizeof(*code->frame_ids));

	if (n > 2 * RECORDED_DEPTH_MAX || stack->n_native > n)
		return -EBADMSG;
	if (n > FRAMES_MAX - code->n_frames)
		return -E2BIG;
	if (array__reserve(&code->frame_ids, &code->cap_frame_ids, code->n_frames + n + 1,
			   sizeof(*code->frame_ids)) ||
	    array__reserve(&code->places, &code->cap_places, code->n_frames + n + 1,
			   sizeof(*code->places)))
		return -ENOMEM;
	stack->n = n;
	stack->frames = code->n_frames;
	for (size_t i = 0; i < n; i++)
		code->frame_ids[code->n_frames + i] = row_reader__number(rows, sizeof(uint64_t));
	if (row_reader__length(rows, sizeof(*code->places)) != n)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++)
		code->places[code->n_frames + i] = row_reader__number(rows, sizeof(uint16_t));
	return 0;
}

int from_db_code__read_stack(struct from_db_code *code, struct row_reader *rows)
{
	struct from_db_stack stack = {};
	uint64_t id = row_reader__number(rows, 8);
	int ret;

	stack.condition.state = row_reader__number(rows, 1);
	stack.condition.lock = row_reader__number(rows, 1);
	stack.condition.syscall = row_reader__number(rows, 2) - 1;
	stack.age = row_reader__number(rows, 1);
	stack.n_native = row_reader__number(rows, 2);
	ret = read_frames(code, rows, &stack);
	if (ret || rows->failed || (stack.age > RECORDED_AGES && stack.age != CLICKHOUSE_REST))
		return ret ? ret : -EBADMSG;
	if (u64map__get(&code->stack_index, id)) /* a duplicate: not merged yet, or on two shards */
		return 0;
	if (array__reserve(&code->stacks, &code->cap_stacks, code->n_stacks + 1, sizeof(stack)))
		return -ENOMEM;
	code->stacks[code->n_stacks++] = stack;
	code->n_frames += stack.n;
	return u64map__put(&code->stack_index, id, code->n_stacks);
}

uint64_t *from_db_code__frames(const struct from_db_code *code, size_t *ret_n)
{
	uint64_t *ids = calloc(code->n_frames + 1, sizeof(*ids));
	struct u64map seen = {};
	size_t n = 0;

	for (size_t i = 0; ids && i < code->n_frames; i++) {
		if (u64map__get(&seen, code->frame_ids[i]))
			continue;
		ids[n++] = code->frame_ids[i];
		if (u64map__put(&seen, code->frame_ids[i], 1)) {
			free(ids);
			ids = NULL;
		}
	}
	u64map__done(&seen);
	*ret_n = n;
	return ids;
}

/* ---- frames ---- */

struct texts {
	char **rows;
	size_t n;
};

static void texts_done(struct texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->rows[i]);
	free(texts->rows);
}

static int read_texts(struct row_reader *rows, struct texts *ret)
{
	size_t n = row_reader__length(rows, 1);

	*ret = (struct texts) {};
	if (n > RECORDED_LEVEL_MAX)
		return -EBADMSG;
	ret->rows = calloc(n + 1, sizeof(char *));
	if (!ret->rows)
		return -ENOMEM;
	while (ret->n < n && !rows->failed) {
		ret->rows[ret->n] = row_reader__text(rows);
		if (!ret->rows[ret->n])
			return rows->failed ? -EBADMSG : -ENOMEM;
		ret->n++;
	}
	return rows->failed ? -EBADMSG : 0;
}

/* *@ret is KINDS_MAX if the name is empty, or if there is no room. */
static int find_kind(struct from_db_code *code, const char *name, const char *suffix, uint8_t *ret)
{
	uint32_t id;

	if (strtab__intern(code->kinds, name, &id))
		return -ENOMEM;
	*ret = !id || id > KINDS_MAX ? KINDS_MAX : id - 1;
	if (*ret == KINDS_MAX || code->recorded->kind_names[*ret])
		return 0;
	return recorded__add_kind(code->recorded, *ret, name, suffix);
}

static int find_image(struct from_db_code *code, const char *name, uint32_t *ret)
{
	uint32_t known = strtab__count(code->images);

	if (strtab__intern(code->images, name, ret))
		return -ENOMEM;
	return *ret == known ? recorded__add_image(code->recorded, *ret, name, "") : 0;
}

static int find_function(struct from_db_code *code, const char *name, const char *file,
			 uint32_t *ret)
{
	uint32_t name_id, file_id, *place;

	if (strtab__intern(code->functions, name, &name_id) ||
	    strtab__intern(code->functions, file, &file_id))
		return -ENOMEM;
	place = intern__at(&code->function_index, name_id, file_id);
	if (!place)
		return -ENOMEM;
	*ret = *place;
	if (*place)
		return 0;
	*ret = *place = ++code->n_functions;
	return recorded__add_function(code->recorded, *ret, name, file);
}

/* the lists of a frame's locations */
enum { KINDS, SUFFIXES, FUNCTIONS, FILES, LISTS_N };

static int add_locations(struct from_db_code *code, struct row_reader *rows,
			 const struct texts lists[LISTS_N])
{
	size_t n = row_reader__length(rows, sizeof(uint32_t));
	uint32_t frame = code->recorded->frames.n - 1, function;
	uint8_t kind;
	int ret = 0;

	for (int i = 0; i < LISTS_N; i++)
		if (lists[i].n != n)
			return -EBADMSG;
	for (size_t i = 0; !ret && i < n; i++) {
		uint32_t line = row_reader__number(rows, sizeof(line));

		ret = find_kind(code, lists[KINDS].rows[i], lists[SUFFIXES].rows[i], &kind);
		if (!ret)
			ret = find_function(code, lists[FUNCTIONS].rows[i], lists[FILES].rows[i],
					    &function);
		if (!ret)
			ret = recorded__add_location(code->recorded, frame, kind, function, line);
	}
	return ret;
}

static int add_frame(struct from_db_code *code, uint64_t id, const char *const texts[3],
		     uint64_t address, uint8_t flags)
{
	struct sink_frame frame = { .address = address, .loop = flags & FRAME_IS_LOOP };
	uint32_t number = code->recorded->frames.n + 1;
	uint8_t kind;
	int ret = find_kind(code, texts[0], texts[1], &kind);

	frame.kind = kind;
	if (!ret && *texts[2])
		ret = find_image(code, texts[2], &frame.image);
	if (!ret)
		ret = recorded__add_frame(code->recorded, number, &frame, flags & FRAME_IS_NOWHERE);
	return ret ? ret : u64map__put(&code->frame_index, id, number);
}

int from_db_code__read_frame(struct from_db_code *code, struct row_reader *rows)
{
	uint64_t id = row_reader__number(rows, 8);
	bool known = u64map__get(&code->frame_index, id);
	struct texts lists[LISTS_N] = {};
	char *texts[3];
	uint64_t address;
	uint8_t flags;
	int ret;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		texts[i] = row_reader__text(rows);
	address = row_reader__number(rows, 8);
	flags = row_reader__number(rows, 1);
	ret = rows->failed ? -EBADMSG : 0;

	for (int i = 0; !ret && i < LISTS_N; i++)
		ret = read_texts(rows, &lists[i]);
	if (!ret && (!texts[0] || !texts[1] || !texts[2]))
		ret = -ENOMEM;
	if (!ret && !known)
		ret = add_frame(code, id, (const char *const *)texts, address, flags);
	if (!ret && !known)
		ret = add_locations(code, rows, lists);
	else if (!ret)
		for (size_t n = row_reader__length(rows, sizeof(uint32_t)); n > 0; n--)
			row_reader__number(rows, sizeof(uint32_t));
	for (int i = 0; i < LISTS_N; i++)
		texts_done(&lists[i]);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free(texts[i]);
	return ret ? ret : rows->failed ? -EBADMSG : 0;
}

/* ---- nodes ---- */

/* Creates nodes from the outermost of @n frames inwards. */
static int make_chain(struct from_db_code *code, size_t first, size_t n, uint32_t *ret)
{
	*ret = 0;
	if (n > RECORDED_DEPTH_MAX)
		return -EBADMSG;
	while (n-- > 0) {
		uint16_t place = code->places[first + n];
		bool inferred = place != STACK_PLACE_APART && place & STACK_PLACE_INFERRED;
		uint16_t rank = inferred ? place & ~STACK_PLACE_INFERRED : place;
		struct sink_node node = {
			.parent = *ret,
			.frame = u64map__get(&code->frame_index, code->frame_ids[first + n]),
			.offset = rank == STACK_PLACE_APART ? SINK_APART
				  : rank		    ? -(int64_t)rank * RANK_BYTES
							    : SINK_NO_OFFSET,
			.evidence = inferred ? EVIDENCE_INFERRED : EVIDENCE_RULE,
		};
		uint32_t *known = intern__at(&code->node_index,
					     (uint64_t)node.parent << 32 | node.frame, place);
		int code_of_row;

		if (!known)
			return -ENOMEM;
		*ret = *known;
		if (*known)
			continue;
		if (code->n_nodes == NODES_MAX)
			return -E2BIG;
		*ret = *known = ++code->n_nodes;
		code_of_row = recorded__add_node(code->recorded, *ret, &node);
		if (code_of_row)
			return code_of_row;
	}
	return 0;
}

int from_db_code__make_nodes(struct from_db_code *code, struct from_db_stack *stack)
{
	int ret;

	if (stack->native || stack->runtime)
		return 0;
	ret = make_chain(code, stack->frames, stack->n_native, &stack->native);
	return ret ? ret
		   : make_chain(code, stack->frames + stack->n_native, stack->n - stack->n_native,
				&stack->runtime);
}
