// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/image_names.h"

#include <errno.h>

static int read_names(struct image *image, const struct runtime *const *runtimes,
		      struct runtime_session *const *sessions)
{
	struct function_names *names = NULL;
	int i, ret = function_names__new(&names);

	for (i = 0; !ret && runtimes[i]; i++)
		if (sessions[i] && runtime__has(runtimes[i], files, function_names))
			ret = runtimes[i]->files->function_names(image->file, names);
	if (ret)
		function_names__free(names);
	else
		image->names = names;
	return ret;
}

int image_names__find(struct image *image, const struct runtime *const *runtimes,
		      struct runtime_session *const *sessions, uint64_t entry, const char **ret)
{
	int rc = image->names ? 0 : read_names(image, runtimes, sessions);

	*ret = rc ? NULL : function_names__find(image->names, entry);
	return rc;
}
