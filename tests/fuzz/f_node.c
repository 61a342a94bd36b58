// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/base/util.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/node_synthetic.h"

#define EDITS_MAX 32

/* a change of a word of the heap */
struct edit {
	uint16_t at;
	uint8_t size_log2, kind;
	int32_t value;
};

enum edit_kind {
	EDIT_VALUE,
	EDIT_SMI,
	EDIT_OBJECT, /* the word at that place, as an object */
	EDIT_KINDS_N
};

static void apply(const struct edit *edit)
{
	size_t size = 1U << (edit->size_log2 & 3), room = HEAP_WORDS * 8 - 8;
	uint64_t value = (uint64_t)(int64_t)edit->value;

	if (edit->kind % EDIT_KINDS_N == EDIT_SMI)
		value = SMI(edit->value);
	else if (edit->kind % EDIT_KINDS_N == EDIT_OBJECT)
		value = TAGGED(&heap_words[(uint32_t)edit->value % HEAP_WORDS]);
	memcpy((char *)heap_words + edit->at % room, &value, size);
}

static bool is_named(struct node_codes *codes, uint32_t number, uint32_t index)
{
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX];
	int n = node_codes__symbolize(codes, FRAME_KEY(number, index), symbols);
	bool lines = n > 0;

	for (int i = 0; i < n; i++) {
		if (symbols[i].file && !symbols[i].file[0])
			fuzz__die("an empty file name");
		lines = lines && symbols[i].function[0] && symbols[i].line;
	}
	return lines;
}

/* Accepts an input if all three functions still have names after at least one edit. */
bool target__run(const uint8_t *data, size_t size)
{
	struct program program;
	struct node_code code;
	struct edit edit;
	bool named = true;
	size_t i, n = min_of(size / sizeof(edit), (size_t)EDITS_MAX);

	if (make_program(&program))
		fuzz__die("no program");
	for (i = 0; i < n; i++) {
		memcpy(&edit, data + i * sizeof(edit), sizeof(edit));
		apply(&edit);
	}
	code = sent(program.one);
	announce(program.codes, 1, NODE_FUNCTION, &code);
	code = sent_code(&program, program.optimized);
	announce(program.codes, 2, NODE_CODE, &code);
	code = sent_code(&program, program.baseline);
	announce(program.codes, 3, NODE_CODE, &code);
	for (i = 1; i <= 3; i++)
		named = is_named(program.codes, i, i == 1 ? 65 : 20) && named;
	node_codes__free(program.codes);
	return named && n;
}

void target__seeds(void)
{
	const struct edit edits[] = { { HEAP_WORDS * 8 - 64, 3, EDIT_VALUE, 1 },
				      { HEAP_WORDS * 8 - 64, 3, EDIT_OBJECT, 1 } };

	fuzz__seed(edits, sizeof(edits[0]));
	fuzz__seed(edits, sizeof(edits));
}
