// SPDX-License-Identifier: GPL-2.0-or-later
/* Each thread has libbpf's last complaint about what it did itself, whatever others do. */
#include "core/kernel/libbpf_warning.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <string.h>

#include "core/kernel/kernel_part.h"
#include "tests/tap.h"

static char others[200];

/* Its complaint names the object. */
static void complain(const char *name)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);
	struct bpf_object *object = bpf_object__open_mem("no ELF file", 12, &opts);

	ok(!object, "%s is refused", name);
}

/* As one that measures what a probe costs, while a session goes on. */
static void *measure(void *arg)
{
	static const char *const none[] = { NULL };
	struct braid_bpf *skel = NULL;

	(void)arg;
	ok(!kernel_part__open(none, none, &skel, NULL), "a part is opened meanwhile");
	braid_bpf__destroy(skel);
	complain("others");
	snprintf(others, sizeof(others), "%s", libbpf_warning__last());
	return NULL;
}

int main(void)
{
	pthread_t thread;

	libbpf_warning__keep();
	is_str(libbpf_warning__last(), "", "no complaint at first");
	complain("ours");
	ok(strstr(libbpf_warning__last(), "ours"), "a complaint is kept: %s",
	   libbpf_warning__last());
	if (ok(!pthread_create(&thread, NULL, measure, NULL), "another thread"))
		pthread_join(thread, NULL);
	ok(strstr(others, "others"), "has its own: %s", others);
	ok(strstr(libbpf_warning__last(), "ours"), "and leaves ours");
	complain("later");
	ok(strstr(libbpf_warning__last(), "later"), "which goes on");
	return tap__done();
}
