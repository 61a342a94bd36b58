// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_probing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/jvm.h"
#include "core/base/util.h"
#include "runtimes/common/probing_usdt.h"
#include "runtimes/common/site_frames.h"
#include "runtimes/jvm/jvm_flags.h"
#include "runtimes/jvm/jvm_strings.h"
#include "runtimes/jvm/jvm_vm.h"

#define FLAG	 "DTraceMethodProbes"
#define INLINING "Inline"
#define VARIABLE "JAVA_TOOL_OPTIONS"

/* Arguments of both probes: thread, then address and length of class, name, signature
 * (SharedRuntime::dtrace_method_entry, src/hotspot/share/runtime/sharedRuntime.cpp). */
#define N_ARGS 7

struct jvm_probing {
	struct probing *probing;
	struct jvm_strings *strings;
	bool counts; /* the recording counts calls, so that overloaded methods are distinguished */
	struct probing_result result;
};

int jvm_probing__new(struct bpf_object *object, struct jvm_probing **ret, struct err *err)
{
	struct jvm_probing *probing = calloc(1, sizeof(*probing));
	int rc = -ENOMEM;

	if (probing)
		probing->strings = jvm_strings__new();
	if (!probing || !probing->strings)
		err__set(err, rc, "out of memory");
	else
		rc = probing__new(object, &probing->probing, err);
	if (rc) {
		jvm_probing__free(probing);
		return err__prefix(err, rc, "jvm");
	}
	*ret = probing;
	return 0;
}

void jvm_probing__free(struct jvm_probing *probing)
{
	if (!probing)
		return;
	probing__free(probing->probing);
	jvm_strings__free(probing->strings);
	free(probing);
}

void jvm_probing__detach(struct jvm_probing *probing, uint32_t pid)
{
	probing__detach(probing->probing, pid);
}

void jvm_probing__detach_all(struct jvm_probing *probing)
{
	if (probing)
		probing__detach_all(probing->probing);
}

/* --- sites --- */

/* Sets the anchor, the stack pointer of the Java code that calls the site's function. */
static int set_anchor(struct probing_site *site, int probe, const struct elf_file *file, void *ctx,
		      struct err *err)
{
	(void)probe, (void)ctx;
	return site_frame__end(file, site->point.pc_vaddr, &site->rec, err);
}

static const struct probing_usdt usdt = {
	.provider = "hotspot",
	.absent = "this JVM has no probes at calls and returns (they come with --enable-dtrace)",
	.walker = WALKER_JVM,
	.n_args = N_ARGS,
	.probes = { { "method__entry", "jvm_method_entry", PROBE_ENTRY },
		    { "method__return", "jvm_method_return", PROBE_RETURN } },
	.n_probes = 2,
	.settle = set_anchor,
};

static int find_sites(struct jvm_probing *probing, const struct elf_file *file, struct err *err)
{
	struct probing_result *result = &probing->result;
	struct usdt_sites found = {};

	if (!probing_result__is(result, file)) {
		result->rc = usdt__read(file, &found, &result->err);
		if (!result->rc)
			result->rc =
				probing_usdt__add(&usdt, probing->probing, file, &found, UINT32_MAX,
						  NULL, &result->sites, &result->err);
		usdt_sites__done(&found);
	}
	return probing_result__get(result, err);
}

/* --- the flag --- */

/* Checks the options that decide if the JVM's probes fire, and sets a note about them. If the
 * options are unreadable, the probes are used only on explicit request; the recording then shows
 * if they fire. */
static int check_flags(const struct runtime_target *target, enum runtime_source source,
		       struct runtime_probing *by, struct err *err)
{
	struct jvm_vm *vm;
	bool on = true, inlines = false;

	if (jvm_vm__open(target->pid, target->bias, target->file, &vm, err)) {
		snprintf(by->note, sizeof(by->note), "cannot check whether its probes fire");
		return source == RUNTIME_SOURCE_AUTO ? -ENOTSUP : 0;
	}
	jvm_flags__bool(vm, FLAG, &on);
	jvm_flags__bool(vm, INLINING, &inlines);
	jvm_vm__free(vm);
	if (!on)
		return err__set(err, -ENOTSUP,
				"jvm: its probes fire only if Java is started with -XX:+" FLAG
				", and this one was not. Start it so, or with `braid calls -- java "
				"...` (which makes code with many calls 15 to 20 times slower)");
	if (inlines)
		snprintf(by->note, sizeof(by->note),
			 "methods left by an exception may end too late, with the method that they "
			 "were inlined into. Start Java with -XX:-" INLINING
			 " as well to avoid it");
	return 0;
}

/* --- attaching --- */

void jvm_probing__expect(struct jvm_probing *probing, const struct runtime_target *target)
{
	struct runtime_probing by = { .source = "usdt" }, before;
	struct jvm_vm *vm = NULL;
	int rc;

	if (probing__renew(probing->probing, target, &before, NULL) ||
	    find_sites(probing, target->file, NULL))
		return;
	if (probing__attach(probing->probing, target, &probing->result.sites, &by, NULL))
		return;
	/* If the JVM has no Java thread yet, the probes will see all calls. */
	rc = jvm_vm__open(target->pid, target->bias, target->file, &vm, NULL);
	jvm_vm__free(vm);
	probing__seen_since(probing->probing, target->pid, rc == -EAGAIN ? 1 : now_ns());
}

int jvm_probing__attach(struct jvm_probing *probing, const struct runtime_target *target,
			enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	struct runtime_probing by = { .source = "usdt" };
	int rc = probing__renew(probing->probing, target, &by, err), result;

	if (rc < 0)
		return err__prefix(err, rc, "jvm");
	result = rc;
	rc = check_flags(target, source, &by, err);
	if (rc) {
		probing__detach(probing->probing, target->pid);
		return rc;
	}
	if (!result) {
		rc = find_sites(probing, target->file, err);
		if (!rc)
			rc = probing__attach(probing->probing, target, &probing->result.sites, &by,
					     err);
		if (rc)
			return err__prefix(err, rc, "jvm");
		probing__seen_since(probing->probing, target->pid, now_ns());
	}
	probing->counts = source == RUNTIME_SOURCE_CALLS;
	*ret = by;
	return 0;
}

/* --- commands --- */

/* Only the program `java` reads JDK_JAVA_OPTIONS, but every JVM reads JAVA_TOOL_OPTIONS. Without
 * inlining, each method has its own frame, and its probe also fires when an exception ends it.
 * The user's own options are not changed. */
void jvm_probing__prepare_command(char *const *command)
{
	const char *before = getenv(VARIABLE);

	(void)command;
	if (before && strstr(before, FLAG))
		return;
	probing__extend_environment(VARIABLE, ' ', "-XX:+" FLAG);
	if (!before || !strstr(before, INLINING))
		probing__extend_environment(VARIABLE, ' ', "-XX:-" INLINING);
}

/* --- records and names --- */

int jvm_probing__on_code(struct jvm_probing *probing, const struct rec_code_object *rec,
			 size_t size)
{
	if (size < REC_CODE_OBJECT_HEADER || rec->table_format != JVM_CODE_STRINGS)
		return -ENOENT;
	return jvm_strings__add(probing->strings, rec, size);
}

int jvm_probing__symbolize(struct jvm_probing *probing, uint64_t key, struct runtime_symbol *ret)
{
	*ret = (struct runtime_symbol) {};
	return jvm_strings__name(probing->strings, FRAME_KEY_CODE(key), probing->counts,
				 &ret->function);
}
