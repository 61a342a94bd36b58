// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/target/process_words.h"
#include "core/target/procfs.h"
#include "runtimes/other/other_label.h"
#include "runtimes/other/other_rows.h"
#include "runtimes/other/other_rules.h"
#include "runtimes/runtime.h"

/* Runtimes that braid recognizes and does not walk. The source row of a process names its runtime
 * and says which frames are missing, and how a map can name them. */

struct runtime_image {
	const struct other_row *row;
};

/* --- image --- */

static int other__detect(const struct elf_file *file)
{
	return other_rules__find(file) != OTHER_NONE;
}

static void explain(const struct other_row *row, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", row->shown, row->map ? "; for names " : "",
		 row->map ? row->map : "");
}

static int other__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			  struct runtime_verdict *ret_verdict)
{
	const struct other_row *row = other_rows__get(other_rules__find(file));
	struct runtime_image *image = malloc(sizeof(*image));

	if (!image)
		return -ENOMEM;
	image->row = row;
	*ret_image = image;
	*ret_verdict = (struct runtime_verdict) {
		.support = RUNTIME_DEGRADED,
		.map_only = true,
		.map = row->map,
		.generated_keeps = row->keeps,
		.generated_bytes = row->generated_bytes,
	};
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "%s", row->name);
	snprintf(ret_verdict->reason, sizeof(ret_verdict->reason), "%s", row->shown);
	return 0;
}

static void other__image_free(struct runtime_image *image)
{
	free(image);
}

static const char *other__recognizes(size_t i, char *buf, size_t size)
{
	if (i >= OTHER_KINDS_N)
		return NULL;
	explain(other_rows__get(i), buf, size);
	return other_rows__get(i)->name;
}

/* --- instance --- */

static bool writes_map(uint32_t pid, const struct other_row *row)
{
	if (!row->map) /* a map that is there is not of this runtime */
		return false;
	for (size_t i = 0; i < OTHER_GIVEN_MAX && row->given[i]; i++)
		if (process_words__have(pid, "", row->given[i]))
			return true;
	return procfs__has_perf_map(pid);
}

static int other__attach(struct runtime_session *session, const struct runtime_target *target,
			 void *ret_record, struct err *err)
{
	const struct other_row *row = target->image->row;
	char text[RUNTIME_REASON_BYTES];

	(void)session;
	(void)ret_record;
	if (writes_map(target->pid, row)) {
		err__set(err, 0, "%s", row->missing ?: "compiled functions have names");
		return 0;
	}
	explain(row, text, sizeof(text));
	err__set(err, 0, "%s", text);
	return 1;
}

static const struct runtime_files files = {
	.detect = other__detect,
	.prepare = other__prepare,
	.free = other__image_free,
};

static const struct runtime_jit jit = {
	.label = other_label__make,
};

const struct runtime runtime_other = {
	.name = "other",
	.suffix = "_[j]",
	.versions = "recognized, not walked; named by a map that the runtime writes",
	.many = true,
	.files = &files,
	.jit = &jit,
	.recognizes = other__recognizes,
	.attach = other__attach,
};
