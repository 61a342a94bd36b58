// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recording_seed.h"

#define FILE_FORMATS_AT 18 /* offset in the database header: write and read version */

/* Makes a profile or an error of a recording. WAL mode is never used, as it would leave other files
 * beside it. f_recording_rows.c tests the rows of a sound file. */
bool target__run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + 1);
	bool loaded;

	if (!copy)
		return false;
	memcpy(copy, data, size);
	if (size > FILE_FORMATS_AT + 1)
		copy[FILE_FORMATS_AT] = copy[FILE_FORMATS_AT + 1] = 1;
	loaded = recording_seed__load(fuzz__file(copy, size), NULL);
	fuzz__file(NULL, 0);
	free(copy);
	return loaded;
}

void target__seeds(void)
{
	size_t size;
	uint8_t *data = recording_seed__make(&size);

	fuzz__seed(data, size);
	free(data);
}
