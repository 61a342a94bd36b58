// SPDX-License-Identifier: GPL-2.0-or-later
/* threading._active has an entry for each thread that Python code runs in (Lib/threading.py): its
 * Thread, with _name and _native_id. The way there: interpreter, its modules, "threading",
 * "_active". */
#include "runtimes/python/python_threads.h"

#include <stdlib.h>

#include "runtimes/python/python_objects.h"

#define READS_MAX	 200000 /* for one search, about 0.5 us each */
#define INTERPRETERS_MAX 256
#define THREADS_SINCE	 8 /* Thread._native_id */

struct search {
	struct thread_finds *finds;
	struct python_reader reader;
};

static int take_thread(void *ctx, uint64_t object)
{
	struct search *search = ctx;
	struct python_reader *reader = &search->reader;
	uint64_t id;
	char *name;

	if (!python_int__get(reader, python_object__get(reader, object, "_native_id"), &id) ||
	    id > INT32_MAX)
		return 0;
	name = python_str__dup(reader, python_object__get(reader, object, "_name"));
	return name ? thread_finds__add(search->finds, id, name) : 0;
}

/* The list of interpreters has the newest in front: the main one is the last. */
int python_threads__search(void *process, struct thread_finds *finds)
{
	const struct python_threads *threads = process;
	struct search search = {
		finds,
		{ .pid = threads->pid, .version = &threads->version, .reads_left = READS_MAX }
	};
	struct python_reader *reader = &search.reader;
	uint64_t interpreter, modules, module;
	int ret = 0;

	if (threads->version.minor < THREADS_SINCE || !threads->version.modules ||
	    !python_reader__word(reader, threads->interpreters, &interpreter))
		return 0;
	for (int i = 0; i < INTERPRETERS_MAX && interpreter && ret >= 0; i++) {
		if (!python_reader__word(reader, interpreter + threads->version.modules, &modules))
			break;
		module = python_dict__get(reader, modules, "threading");
		if (module)
			ret = python_dict__values(reader,
						  python_module__get(reader, module, "_active"),
						  take_thread, &search);
		if (!python_reader__word(reader, interpreter + threads->version.offsets.interp_next,
					 &interpreter))
			break;
	}
	return ret;
}
