// SPDX-License-Identifier: GPL-2.0-or-later
/* Each thread stores the first of libbpf's warnings about its own load, with the verifier's reason.
 */
#include "core/kernel/libbpf_warning.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>

#include "core/kernel/kernel_subset.h"
#include "tests/tap.h"

static char others[400], shown[4000];

/* Makes libbpf print a warning that names the object. */
static void complain(const char *name)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);
	struct bpf_object *object = bpf_object__open_mem("no ELF file", 12, &opts);

	ok(!object, "%s is refused", name);
}

/* A thread that measures the cost of a probe while a session runs. */
static void *measure(void *arg)
{
	static const char *const none[] = { NULL };
	struct braid_bpf *skel = NULL;

	(void)arg;
	ok(!kernel_subset__open(none, none, &skel, NULL), "a part is opened meanwhile");
	braid_bpf__destroy(skel);
	complain("others");
	snprintf(others, sizeof(others), "%s", libbpf_warning__first());
	return NULL;
}

/* Warns as libbpf does. */
static void warn(const char *fmt, ...)
{
	libbpf_print_fn_t print = libbpf_set_print(NULL);
	va_list args;

	libbpf_set_print(print);
	va_start(args, fmt);
	print(LIBBPF_WARN, fmt, args);
	va_end(args);
}

static void show(const char *text)
{
	strncat(shown, text, sizeof(shown) - strlen(shown) - 1);
}

#define FAILED "libbpf: prog '%s': BPF program load failed: Invalid argument\n"
#define LOG                                                                           \
	"libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\nValidating hook() func#3...\n" \
	"12: <invalid BPF map reference>\nBPF map 'jvm_procs' is referenced but wasn't created\n"
#define STATS "processed 113 insns (limit 1000000) max_states_per_insn 0\n"
#define END   "-- END PROG LOAD LOG --\n"

static void check_verifier(void)
{
	static const char *const first =
		"libbpf: prog 'unwind_stack': BPF program load failed: Invalid argument; the "
		"verifier: BPF map 'jvm_procs' is referenced but wasn't created";

	libbpf_warning__show(show);
	libbpf_warning__begin();
	warn(FAILED, "unwind_stack");
	warn(LOG STATS END, "unwind_stack");
	warn("libbpf: prog '%s': failed to load: -22\n", "unwind_stack");
	warn("libbpf: failed to load object '%s'\n", "braid_bpf");
	is_str(libbpf_warning__first(), first, "the first warning, and the verifier's last line");
	ok(strstr(shown, "Validating hook() func#3...\n12: <invalid") &&
		   strstr(shown, "failed to load object 'braid_bpf'\n"),
	   "all of the warnings are shown to who wants them");
	libbpf_warning__show(NULL);
	shown[0] = '\0';
	libbpf_warning__begin();
	is_str(libbpf_warning__first(), "", "the next load begins without a warning");
	warn(FAILED, "unwind_stack");
	warn(LOG END, "unwind_stack");
	is_str(libbpf_warning__first(), first, "a log without statistics");
	is_str(shown, "", "nobody wants to be shown them any more");
	libbpf_warning__begin();
	warn(FAILED, "unwind_stack");
	warn("libbpf: prog '%s': -- BEGIN PROG LOAD LOG --\ncut", "unwind_stack");
	is_str(libbpf_warning__first(),
	       "libbpf: prog 'unwind_stack': BPF program load failed: Invalid argument",
	       "no reason is taken from a log without an end");
}

int main(void)
{
	pthread_t thread;

	libbpf_warning__keep();
	is_str(libbpf_warning__first(), "", "no complaint at first");
	complain("ours");
	ok(strstr(libbpf_warning__first(), "ours"), "a complaint is kept: %s",
	   libbpf_warning__first());
	if (ok(!pthread_create(&thread, NULL, measure, NULL), "another thread"))
		pthread_join(thread, NULL);
	ok(strstr(others, "others"), "has its own: %s", others);
	ok(strstr(libbpf_warning__first(), "ours"), "and leaves ours");
	complain("later");
	ok(strstr(libbpf_warning__first(), "ours"), "a later one does not take its place");
	check_verifier();
	return tap__done();
}
