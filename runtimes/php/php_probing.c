// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_probing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/target/procfs.h"
#include "runtimes/common/probing_usdt.h"
#include "runtimes/common/site_frames.h"

#define VARIABLE "USE_ZEND_DTRACE"

/* The functions with the probes (Zend/zend_dtrace.c): around execute_ex, and around C functions. */
enum { AROUND_LOOP, AROUND_C, N_FUNCTIONS };

static const char *const functions[N_FUNCTIONS] = {
	[AROUND_LOOP] = "dtrace_execute_ex",
	[AROUND_C] = "dtrace_execute_internal",
};

struct php_probing {
	struct probing *probing;
	struct probing_result result;
};

int php_probing__new(struct bpf_object *object, struct php_probing **ret, struct err *err)
{
	struct php_probing *probing = calloc(1, sizeof(*probing));
	int rc;

	if (!probing)
		return err__set(err, -ENOMEM, "php: out of memory");
	rc = probing__new(object, &probing->probing, err);
	if (rc) {
		free(probing);
		return err__prefix(err, rc, "php");
	}
	*ret = probing;
	return 0;
}

void php_probing__free(struct php_probing *probing)
{
	if (!probing)
		return;
	probing__free(probing->probing);
	free(probing);
}

void php_probing__detach(struct php_probing *probing, uint32_t pid)
{
	probing__detach(probing->probing, pid);
}

void php_probing__detach_all(struct php_probing *probing)
{
	if (probing)
		probing__detach_all(probing->probing);
}

/* --- sites --- */

/* Returns the number of the function around the address, or -1. */
static int function_at(const struct elf_file *file, uint64_t address)
{
	uint64_t vaddr, size;

	for (int i = 0; i < N_FUNCTIONS; i++)
		if (!elf_file__find_symbol(file, functions[i], &vaddr, &size) &&
		    address - vaddr < size)
			return i;
	return -1;
}

/* Sets a site's anchor. A function that execute_ex runs has its anchor in the last word of
 * execute_ex's frame: the return address, since no argument is passed on the stack. The stack
 * pointer must be the same at all sites of the function. A C function has its anchor in the frame
 * of its caller. */
static int set_anchor(struct probing_site *site, int probe, const struct elf_file *file, void *ctx,
		      struct err *err)
{
	int32_t *ends =
		ctx; /* bytes of the functions' frames, from the stack pointer; 0: not read yet */
	uint64_t vaddr = site->point.pc_vaddr;
	int function = function_at(file, vaddr);
	int rc = site_frame__end(file, vaddr, &site->rec, err);

	(void)probe;
	if (rc)
		return rc;
	if (function < 0 || site->rec.flags & PROBE_ANCHOR_AT_RBP ||
	    (ends[function] && ends[function] != site->rec.anchor_offset))
		return err__set(err, -ENOTSUP, "cannot determine the stack frame at the probe");
	ends[function] = site->rec.anchor_offset;
	site->rec.anchor_offset = function == AROUND_LOOP ? -8 : ends[function] - 8;
	return 0;
}

static const struct probing_usdt usdt = {
	.provider = "php",
	.absent = "this build has no probes at calls and returns (they come with --enable-dtrace)",
	.walker = WALKER_PHP,
	.probes = { { "execute__entry", "php_entry", PROBE_ENTRY },
		    { "execute__return", "php_return", PROBE_RETURN } },
	.n_probes = 2,
	.settle = set_anchor,
};

static int find_sites(struct php_probing *probing, const struct elf_file *file, struct err *err)
{
	int32_t ends[N_FUNCTIONS] = {};
	struct usdt_sites found = {};
	int rc = usdt__read(file, &found, err);

	if (!rc)
		rc = probing_usdt__add(&usdt, probing->probing, file, &found, UINT32_MAX, ends,
				       &probing->result.sites, err);
	usdt_sites__done(&found);
	return rc;
}

/* --- attaching --- */

/* Returns true if PHP calls functions through those with the probes. PHP decides that at its start
 * (zend_startup, Zend/zend.c), which may still be ahead. Extensions may call them, too. */
static bool fires(const struct runtime_target *target)
{
	uint64_t variable, function, value;
	char *setting;
	bool requested;

	if (!elf_file__find_symbol(target->file, "zend_execute_ex", &variable, NULL) &&
	    !elf_file__find_symbol(target->file, functions[AROUND_LOOP], &function, NULL) &&
	    procfs__read_memory(target->pid, target->bias + variable, &value, sizeof(value)) &&
	    value == target->bias + function)
		return true;
	setting = probing__environment(target->pid, VARIABLE);
	requested = setting && atol(setting);
	free(setting);
	return requested;
}

int php_probing__attach(struct php_probing *probing, const struct runtime_target *target,
			struct runtime_probing *ret, struct err *err)
{
	struct runtime_probing by = { .source = "usdt" };
	int rc = probing__renew(probing->probing, target, ret, err);

	if (rc)
		return rc < 0 ? err__prefix(err, rc, "php") : 0;
	if (!target->image)
		return err__set(err, -ENOTSUP,
				"php: probes need the walker's layouts, and the walker does not "
				"support this version");
	if (!probing_result__is(&probing->result, target->file))
		probing->result.rc = find_sites(probing, target->file, &probing->result.err);
	rc = probing_result__get(&probing->result, err);
	if (rc)
		return err__prefix(err, rc, "php");
	if (!fires(target))
		return err__set(err, -ENOTSUP,
				"php: its probes fire only if PHP is started with " VARIABLE
				"=1 in its environment, and this one was not. Start it so, or with "
				"`braid calls -- php ...`");
	rc = probing__attach(probing->probing, target, &probing->result.sites, &by, err);
	if (rc)
		return err__prefix(err, rc, "php");
	*ret = by;
	return 0;
}

void php_probing__prepare_command(char *const *command)
{
	(void)command;
	setenv(VARIABLE, "1", 0);
}
