// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_probing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/insn/function_returns.h"
#include "core/target/procfs.h"
#include "runtimes/common/probing_usdt.h"
#include "runtimes/common/site_frames.h"
#include "runtimes/python/python_build.h"

#define LOOP "_PyEval_EvalFrameDefault"

struct python_probing {
	struct probing *probing;
	const struct bpf_program *usdt_entry, *usdt_return, *eval_entry, *eval_return;
	struct probing_result result;
	uint64_t known_line_semaphore; /* semaphore of python:line; 0: none */
};

int python_probing__new(struct bpf_object *object, struct python_probing **ret, struct err *err)
{
	struct python_probing *probing = calloc(1, sizeof(*probing));
	int rc;

	if (!probing)
		return err__set(err, -ENOMEM, "python: out of memory");
	rc = probing__new(object, &probing->probing, err);
	if (rc) {
		free(probing);
		return err__prefix(err, rc, "python");
	}
	probing->usdt_entry = probing__program(probing->probing, "python_usdt_entry");
	probing->usdt_return = probing__program(probing->probing, "python_usdt_return");
	probing->eval_entry = probing__program(probing->probing, "python_eval_entry");
	probing->eval_return = probing__program(probing->probing, "python_eval_return");
	*ret = probing;
	return 0;
}

void python_probing__free(struct python_probing *probing)
{
	if (!probing)
		return;
	probing__free(probing->probing);
	free(probing);
}

void python_probing__detach(struct python_probing *probing, uint32_t pid)
{
	probing__detach(probing->probing, pid);
}

void python_probing__detach_all(struct python_probing *probing)
{
	if (probing)
		probing__detach_all(probing->probing);
}

/* --- USDT --- */

/* The probe is in a function that the interpreter loop calls: where that function's frame ends,
 * the loop's begins, at the same address for as long as the loop runs. Or in the loop itself: then
 * the word below the end of its frame is as good. */
static int add_usdt(const struct python_probing *probing, const struct site_frames *frames,
		    const struct usdt_site *from, uint32_t role, struct probing_sites *sites,
		    struct err *err)
{
	struct runtime_range loops[PYTHON_LOOPS_MAX];
	size_t n = python_build__loops(frames->file, loops);
	struct probing_site *site;
	bool in_loop = false;
	int rc = probing_sites__add_usdt(sites, frames->file, from, role, 3, &site, err);

	if (rc)
		return rc;
	site->rec.runtime = WALKER_PYTHON;
	site->program = role == PROBE_ENTRY ? probing->usdt_entry : probing->usdt_return;
	for (size_t i = 0; i < n; i++)
		in_loop = in_loop ||
			  (from->pc_vaddr >= loops[i].start && from->pc_vaddr < loops[i].end);
	return site_frames__own(frames, from->pc_vaddr, !in_loop, &site->rec, err);
}

/* Sets both ends of the pair in probing->result. Returns 0, or -ENOENT if the file lacks them. */
static int find_usdt(struct python_probing *probing, const struct elf_file *file, struct err *err)
{
	struct site_frames frames = {};
	struct usdt_sites found = {};
	uint32_t roles = 0;
	int rc = usdt__read(file, &found, err);

	if (!rc && found.n)
		rc = site_frames__open(file, &frames, err);
	for (size_t i = 0; !rc && i < found.n; i++) {
		const struct usdt_site *site = &found.list[i];
		uint32_t role = strcmp(site->name, "function__entry") == 0    ? PROBE_ENTRY
				: strcmp(site->name, "function__return") == 0 ? PROBE_RETURN
									      : PROBE_OTHER;

		if (strcmp(site->provider, "python") != 0)
			continue;
		if (strcmp(site->name, "line") == 0)
			probing->known_line_semaphore = site->semaphore_vaddr;
		if (role == PROBE_OTHER)
			continue;
		rc = add_usdt(probing, &frames, site, role, &probing->result.sites, err);
		roles |= 1U << role;
	}
	usdt_sites__done(&found);
	site_frames__done(&frames);
	if (rc)
		return err__prefix(err, rc, "python");
	if (roles != (1U << PROBE_ENTRY | 1U << PROBE_RETURN))
		rc = err__set(err, -ENOENT,
			      "python: this build has no probes at calls and returns (they came "
			      "with --with-dtrace, up to 3.11)");
	return rc;
}

/* --- the loop's entry and return --- */

static void add_return(const struct python_probing *probing, const struct elf_file *file,
		       uint64_t vaddr, bool replaces, struct probing_sites *sites)
{
	/* The anchor is the place of the return address on the stack. At an entry and at a `ret`
	 * the stack pointer points to this place, and after the `ret` one word above. */
	sites->list[sites->n++] = (struct probing_site) {
		.rec = { .role = PROBE_RETURN,
			 .runtime = WALKER_PYTHON,
			 .anchor_offset = replaces ? -8 : 0 },
		.point = { .file = file, .pc_vaddr = vaddr, .retprobe = replaces },
		.program = probing->eval_return,
	};
}

/* The loop's `ret` instructions, if they are proven to be all. */
static int find_eval_returns(const struct python_probing *probing, const struct elf_file *file,
			     uint64_t vaddr, bool force, struct probing_sites *sites,
			     struct err *err)
{
	struct function_returns returns;
	struct function_map *map = NULL;
	struct err why = {};
	int rc = function_map__new(file, &map);

	if (!rc)
		rc = function_returns__find(map, vaddr, false, &returns, &why);
	function_map__free(map);
	if (rc == -ENOMEM)
		return err__set(err, rc, "out of memory");
	if (!rc && (returns.n_jumps || returns.shared || returns.n >= PROBING_SITES_MAX))
		rc = err__set(&why, -ENOTSUP,
			      "it ends in other functions, or shares its returns with them");
	for (size_t i = 0; !rc && i < returns.n; i++)
		add_return(probing, file, returns.list[i], false, sites);
	if (rc && force)
		add_return(probing, file, vaddr, true, sites);
	return rc && !force ? err__set(err, rc,
				       "cannot probe the returns of " LOOP
				       " (%s). --force replaces its return addresses",
				       why.text)
			    : 0;
}

/* PyObject *_PyEval_EvalFrameDefault(PyFrameObject *, int), from 3.9 on with a PyThreadState * in
 * front (Include/ceval.h, Include/cpython/ceval.h). */
static int find_eval(const struct python_probing *probing, const struct elf_file *file,
		     unsigned int minor, bool force, struct probing_sites *sites, struct err *err)
{
	const struct probe_arg frame = { .kind = PROBE_ARG_REGISTER,
					 .reg = minor >= 9 ? PROBE_RSI : PROBE_RDI,
					 .index_reg = PROBE_REG_NONE,
					 .size = 8 };
	uint64_t vaddr;

	if (minor < 6 || minor > 10)
		return err__set(err, -ENOTSUP,
				minor ? "from 3.11 on " LOOP " does not see calls from Python to "
					"Python"
				      : "its version is unknown");
	if (elf_file__find_symbol(file, LOOP, &vaddr, NULL))
		return err__set(err, -ENOENT, "its symbol " LOOP " was stripped");
	sites->list[0] = (struct probing_site) {
		.rec = { .role = PROBE_ENTRY, .runtime = WALKER_PYTHON, .n_args = 1 },
		.point = { .file = file, .pc_vaddr = vaddr },
		.program = probing->eval_entry,
	};
	sites->list[0].rec.args[0] = frame;
	sites->n = 1;
	return find_eval_returns(probing, file, vaddr, force, sites, err);
}

/* --- attaching --- */

/* 3.11's entry probe wakes only while somebody listens to python:line (Python/ceval.c,
 * OR_DTRACE_LINE). Its semaphore alone will do, without a probe at each line. */
static int wake_3_11(const struct python_probing *probing, enum runtime_source source,
		     struct probing_sites *sites, struct runtime_probing *by, struct err *err)
{
	if (source != RUNTIME_SOURCE_CALLS)
		return err__set(err, -ENOTSUP,
				"3.11's function__entry fires only while python:line is traced, "
				"which makes Python code 5 to 8 times slower. `braid calls` does "
				"that; --source walk needs no probes");
	if (!probing->known_line_semaphore)
		return err__set(err, -ENOTSUP, "python: 3.11 without a semaphore of python:line");
	snprintf(by->note, sizeof(by->note),
		 "its Python code runs 5 to 8 times slower meanwhile, because 3.11's "
		 "function__entry fires only while python:line is traced");
	sites->semaphore_vaddr = probing->known_line_semaphore;
	return 0;
}

static int attach_usdt(struct python_probing *probing, const struct runtime_target *target,
		       unsigned int minor, enum runtime_source source, struct runtime_probing *by,
		       struct err *err)
{
	struct probing_sites sites;
	int rc;

	if (minor >= 12 && minor <= 14)
		return err__set(err, -ENOTSUP,
				"python: 3.12 to 3.14 have no probes at calls and returns");
	if (!probing_result__is(&probing->result, target->file)) {
		probing->known_line_semaphore = 0;
		probing->result.rc = find_usdt(probing, target->file, &probing->result.err);
	}
	rc = probing_result__get(&probing->result, err);
	if (rc)
		return rc;
	sites = probing->result.sites;
	for (size_t i = 0; i < sites.n && minor && minor <= 10; i++)
		sites.list[i].rec.flags |= PROBE_OWN_ANCHOR;
	by->source = "usdt";
	if (minor == 11)
		rc = wake_3_11(probing, source, &sites, by, err);
	return rc ? rc : probing__attach(probing->probing, target, &sites, by, err);
}

/* Returns true if the process has code that switches stacks, or copies pieces of stacks. Addresses
 * do not distinguish frames of such threads. With return probes such a process crashes (seen with
 * ucontext): the kernel stores replaced return addresses in the order of stack addresses, and drops
 * the addresses that are stored below the one of a return. */
static bool switches_stacks(uint32_t pid)
{
	static const char *const names[] = { "greenlet", "gevent", "_continuation", "uwsgi" };
	struct procfs_mappings mappings = {};
	bool found = false;

	if (procfs__mappings(pid, &mappings))
		return false;
	for (size_t i = 0; i < mappings.n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			found = found || strstr(mappings.list[i].path, names[k]);
	procfs_mappings__done(&mappings);
	return found;
}

static int attach_eval(struct python_probing *probing, const struct runtime_target *target,
		       unsigned int minor, enum runtime_source source, struct runtime_probing *by,
		       struct err *err)
{
	struct probing_sites sites = {};
	int rc;

	/* Code objects are read by the walker's offsets. */
	if (!target->image || source == RUNTIME_SOURCE_AUTO)
		return err__set(err, -ENOTSUP, LOOP " is probed in versions with a walker only");
	if (switches_stacks(target->pid))
		return err__set(
			err, -ENOTSUP,
			"it has greenlets (or the like), whose calls probes cannot distinguish");
	by->source = "uprobe";
	rc = find_eval(probing, target->file, minor, target->force, &sites, err);
	if (!rc && sites.list[1].point.retprobe)
		snprintf(by->note, sizeof(by->note),
			 "--force: return addresses are replaced: an exception, a longjmp or a "
			 "switch of stacks aborts the process; the kernel sees "
			 "those of 64 nested calls, deeper ones are inferred from the next call");
	return rc ? rc : probing__attach(probing->probing, target, &sites, by, err);
}

int python_probing__attach(struct python_probing *probing, const struct runtime_target *target,
			   unsigned int minor, enum runtime_source source,
			   struct runtime_probing *ret, struct err *err)
{
	struct err why_usdt = {}, why_eval = {};
	struct runtime_probing by = {};
	int rc = probing__renew(probing->probing, target, ret, err);

	if (rc)
		return rc < 0 ? err__prefix(err, rc, "python") : 0;
	rc = attach_usdt(probing, target, minor, source, &by, &why_usdt);
	if (rc) {
		by = (struct runtime_probing) {};
		rc = attach_eval(probing, target, minor, source, &by, &why_eval);
	}
	if (rc)
		return err__set(err, rc, "%s; %s", why_usdt.text, why_eval.text);
	*ret = by;
	return 0;
}
