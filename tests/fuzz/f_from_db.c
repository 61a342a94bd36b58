// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "core/profile/build.h"
#include "core/push/from_db_code.h"
#include "tests/fuzz/fuzz.h"

/* Reads stacks and frames as a database returns them. The first two bytes are the length of the
 * stacks. All stacks become a profile. */
bool target__run(const uint8_t *data, size_t size)
{
	const struct profile_filter filter = { .lines = true, .keep_vm = true };
	struct recorded recorded;
	struct from_db_code code;
	struct row_reader rows = {};
	struct profile *profile = NULL;
	struct err err;
	size_t half, n = 0;
	int ret = 0;

	if (size < 2)
		return false;
	half = data[0] | data[1] << 8;
	data += 2;
	size -= 2;
	half = half < size ? half : size;
	if (recorded__init(&recorded) || from_db_code__init(&code, &recorded) ||
	    recorded__add_event(&recorded, 1, "cpu", SINK_UNIT_SAMPLES))
		abort();
	rows = (struct row_reader) { .at = data, .end = data + half };
	while (!ret && row_reader__more(&rows))
		ret = from_db_code__read_stack(&code, &rows);
	rows = (struct row_reader) { .at = data + half, .end = data + size };
	while (!ret && row_reader__more(&rows))
		ret = from_db_code__read_frame(&code, &rows);
	free(from_db_code__frames(&code, &n));
	for (size_t i = 0; !ret && i < code.n_stacks; i++) {
		struct from_db_stack *stack = &code.stacks[i];
		struct recorded_stack *row;

		ret = from_db_code__make_nodes(&code, stack);
		if (!ret && !recorded__stack(&recorded,
					     &(struct sink_sample) { .event = 1,
								     .native = stack->native,
								     .runtime = stack->runtime },
					     &row))
			row->samples = row->value = 1;
	}
	if (!ret && build__profile(&recorded, "fuzz", &filter, &profile, NULL, &err))
		ret = -1;
	n = code.n_stacks;
	profile__free(profile);
	from_db_code__done(&code);
	recorded__done(&recorded);
	return !ret && n;
}

static void put_texts(struct row_writer *rows, const char *a, const char *b)
{
	row_writer__length(rows, 2);
	row_writer__text(rows, a);
	row_writer__text(rows, b);
}

/* Writes one frame with two names, called by itself. */
void target__seeds(void)
{
	struct row_writer rows = {};
	size_t half;

	row_writer__number(&rows, uint16_t, 0);
	row_writer__number(&rows, uint64_t, 7); /* stack, state, lock, syscall, age, natives */
	row_writer__number(&rows, uint8_t, 1);
	row_writer__number(&rows, uint8_t, 0);
	row_writer__number(&rows, uint16_t, 0);
	row_writer__number(&rows, uint8_t, 0);
	row_writer__number(&rows, uint16_t, 1);
	row_writer__length(&rows, 2);
	row_writer__number(&rows, uint64_t, 9);
	row_writer__number(&rows, uint64_t, 9);
	row_writer__length(&rows, 2);
	row_writer__number(&rows, uint16_t, 1);
	row_writer__number(&rows, uint16_t, 2);
	half = rows.len - 2;
	row_writer__number(&rows, uint64_t, 9);
	row_writer__text(&rows, "native");
	row_writer__text(&rows, "_[n]");
	row_writer__text(&rows, "libc.so.6");
	row_writer__number(&rows, uint64_t, 0);
	row_writer__number(&rows, uint8_t, 1);
	put_texts(&rows, "inlined", "made");
	put_texts(&rows, "_[i]", "_[m]");
	put_texts(&rows, "f", "g");
	put_texts(&rows, "f.c", "");
	row_writer__length(&rows, 2);
	row_writer__number(&rows, uint32_t, 1);
	row_writer__number(&rows, uint32_t, 2);
	rows.data[0] = half;
	rows.data[1] = half >> 8;
	fuzz__seed(rows.data, rows.len);
	row_writer__done(&rows);
}
