// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_probing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/probing_usdt.h"
#include "runtimes/common/site_frames.h"
#include "runtimes/ruby/ruby_build.h"

#define HOOK	  "braid_hook"
#define HOOK_LINE "TracePoint.new(:call, :return) {}.enable"
#define UNSAFE	  "methods in C are left out, as Ruby 3.0 and 3.1 crash when they are traced"

enum { METHOD_ENTRY, METHOD_RETURN, CMETHOD_ENTRY, CMETHOD_RETURN, N_PROBES };

/* Arguments of all probes: class, method, file, line (probes.d). */
#define N_ARGS 4

#define OF_METHODS (1U << METHOD_ENTRY | 1U << METHOD_RETURN)

struct ruby_probing {
	struct probing *probing;
	struct probing_result result;
	bool known_unsafe; /* methods in C are left out */
};

int ruby_probing__new(struct bpf_object *object, struct ruby_probing **ret, struct err *err)
{
	struct ruby_probing *probing = calloc(1, sizeof(*probing));
	int rc;

	if (!probing)
		return err__set(err, -ENOMEM, "ruby: out of memory");
	rc = probing__new(object, &probing->probing, err);
	if (rc) {
		free(probing);
		return err__prefix(err, rc, "ruby");
	}
	*ret = probing;
	return 0;
}

void ruby_probing__free(struct ruby_probing *probing)
{
	if (!probing)
		return;
	probing__free(probing->probing);
	free(probing);
}

void ruby_probing__detach(struct ruby_probing *probing, uint32_t pid)
{
	probing__detach(probing->probing, pid);
}

void ruby_probing__detach_all(struct ruby_probing *probing)
{
	if (probing)
		probing__detach_all(probing->probing);
}

/* --- sites --- */

static bool is_in_row(const struct probe_rec *rec)
{
	static const uint8_t sizes[N_ARGS] = { 8, 8, 8, 4 };

	for (int i = 0; i < N_ARGS; i++) {
		const struct probe_arg *arg = &rec->args[i];

		if (arg->kind != PROBE_ARG_MEMORY || arg->reg != rec->args[0].reg ||
		    arg->index_reg != PROBE_REG_NONE || arg->size != sizes[i] ||
		    arg->value != rec->args[0].value + 8 * i)
			return false;
	}
	return true;
}

/* Returns true if probes at methods in C are unsafe. `alias`, `undef`, `**` and `lambda` are
 * methods in C of a class (RubyVM::FrozenCore, Init_VM, vm.c) whose name 3.0 and 3.1 do not
 * mark. The name is gone after the first garbage collection. The process then crashes when it
 * reports one of these methods to a hook for methods in C.
 *
 * This was observed with 3.0.7 and 3.1.2: raised semaphores suffice, without any probe. It was not
 * observed with 2.7.4, nor with 3.2 and later. */
static bool is_unsafe(const struct elf_file *file)
{
	struct ruby_number number;

	return ruby_build__version(file, &number) || (number.major == 3 && number.minor <= 1);
}

static const struct probing_usdt usdt;

struct site_search {
	const struct site_frames *frames;
	const struct usdt_sites *found;
	struct runtime_range loops[RUBY_LOOPS_MAX];
	size_t n_loops;
};

/* Returns true if the function has this probe, too. */
static bool has_probe(const struct usdt_sites *sites, int probe,
		      const struct runtime_range *function)
{
	for (size_t i = 0; function && i < sites->n; i++)
		if (probing_usdt__probe(&usdt, &sites->list[i]) == probe &&
		    sites->list[i].pc_vaddr >= function->start &&
		    sites->list[i].pc_vaddr < function->end)
			return true;
	return false;
}

/* Sets the anchor of a site. The anchor of a method in C is the frame that calls the method's
 * function; both probes are in that frame's function. If the function has only the return, that
 * return reports methods that an exception has left, in any frame. The anchor of a method in
 * Ruby is the loop that runs it. But 2.7 has one pair of probes around the loop, for methods
 * that are defined by blocks (invoke_bmethod, vm.c). */
static int set_anchor(struct probing_site *site, int probe, const struct site_search *search,
		      struct err *err)
{
	uint64_t vaddr = site->point.pc_vaddr;
	const struct runtime_range *function = site_frames__function(search->frames, vaddr);
	int rc;

	if (probe == CMETHOD_RETURN && !has_probe(search->found, CMETHOD_ENTRY, function)) {
		site->rec.flags |= PROBE_UNWINDS;
		return 0;
	}
	if (probe == CMETHOD_ENTRY || probe == CMETHOD_RETURN)
		return site_frames__own(search->frames, vaddr, false, &site->rec, err);
	rc = site_frames__loop(search->frames, vaddr, search->loops, search->n_loops, &site->rec,
			       err);
	if (rc == -ENOENT && has_probe(search->found, METHOD_ENTRY, function) &&
	    has_probe(search->found, METHOD_RETURN, function))
		rc = site_frames__own(search->frames, vaddr, false, &site->rec, err);
	return rc;
}

static int settle(struct probing_site *site, int probe, const struct elf_file *file, void *ctx,
		  struct err *err)
{
	(void)file;
	if (is_in_row(&site->rec))
		site->rec.flags |= PROBE_ARGS_IN_ROW;
	return set_anchor(site, probe, ctx, err);
}

static const struct probing_usdt usdt = {
	.provider = "ruby",
	.absent = "this build has no probes at calls and returns (they come with --enable-dtrace)",
	.walker = WALKER_RUBY,
	.n_args = N_ARGS,
	.probes = { [METHOD_ENTRY] = { "method__entry", "ruby_method_entry", PROBE_ENTRY },
		    [METHOD_RETURN] = { "method__return", "ruby_method_return", PROBE_RETURN },
		    [CMETHOD_ENTRY] = { "cmethod__entry", "ruby_cmethod_entry", PROBE_ENTRY },
		    [CMETHOD_RETURN] = { "cmethod__return", "ruby_cmethod_return", PROBE_RETURN } },
	.n_probes = N_PROBES,
	.settle = settle,
};

static int find_sites(struct ruby_probing *probing, const struct elf_file *file, struct err *err)
{
	struct site_frames frames = {};
	struct usdt_sites found = {};
	struct site_search search = { .frames = &frames, .found = &found };
	int rc = usdt__read(file, &found, err);

	probing->known_unsafe = is_unsafe(file);
	if (!rc)
		rc = site_frames__open(file, &frames, err);
	if (!rc) {
		search.n_loops = ruby_build__loops(file, search.loops);
		rc = probing_usdt__add(&usdt, probing->probing, file, &found,
				       probing->known_unsafe ? OF_METHODS : UINT32_MAX, &search,
				       &probing->result.sites, err);
	}
	usdt_sites__done(&found);
	site_frames__done(&frames);
	return rc;
}

/* --- probes that fire --- */

/* RUBY_EVENT_CALL | RUBY_EVENT_RETURN, include/ruby/internal/event.h */
#define EVENTS 0x18

/* Returns true if the process's probes at methods fire. Up to 3.2, a variable has the events for
 * which the process has hooks. */
static bool has_hook(const struct runtime_target *target)
{
	uint64_t vaddr;
	uint32_t events;

	return !elf_file__find_symbol(target->file, "ruby_vm_event_flags", &vaddr, NULL) &&
	       procfs__read_memory(target->pid, target->bias + vaddr, &events, sizeof(events)) &&
	       (events & EVENTS) == EVENTS;
}

/* Returns true if the process was started with the hook. */
static bool will_have_hook(uint32_t pid)
{
	char *options = probing__environment(pid, "RUBYOPT");
	bool found = options && strstr(options, HOOK);

	free(options);
	return found;
}

int ruby_probing__attach(struct ruby_probing *probing, const struct runtime_target *target,
			 enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	struct runtime_probing by = { .source = "usdt" };
	bool hooked;
	int rc = probing__renew(probing->probing, target, ret, err);

	if (rc)
		return rc < 0 ? err__prefix(err, rc, "ruby") : 0;
	if (!probing_result__is(&probing->result, target->file))
		probing->result.rc = find_sites(probing, target->file, &probing->result.err);
	rc = probing_result__get(&probing->result, err);
	if (rc)
		return err__prefix(err, rc, "ruby");
	hooked = has_hook(target) || will_have_hook(target->pid);
	/* Methods in C alone are recorded only on explicit request. */
	if (!hooked && (probing->known_unsafe || source == RUNTIME_SOURCE_AUTO))
		return err__set(err, -ENOTSUP,
				"ruby: methods in Ruby are seen only while the process has a hook "
				"for calls and returns, and this one has none. Run `" HOOK_LINE
				"` in it, or start it with `braid calls -- COMMAND`%s",
				probing->known_unsafe ? "; " UNSAFE : "");
	if (!hooked)
		snprintf(by.note, sizeof(by.note),
			 "methods in C only. For those in Ruby, run `" HOOK_LINE
			 "` in the process, or start it with `braid calls -- COMMAND`");
	else if (probing->known_unsafe)
		snprintf(by.note, sizeof(by.note), UNSAFE);
	rc = probing__attach(probing->probing, target, &probing->result.sites, &by, err);
	if (rc)
		return err__prefix(err, rc, "ruby");
	*ret = by;
	return 0;
}

/* --- commands --- */

/* Finds the directory of the hook: beside the installed program, or in the build's directory. */
static int find_hook(char ret_directory[PATH_MAX])
{
	static const char *const places[] = { "../share/braid", "share/braid" };
	char program[PATH_MAX], path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	char *slash;

	if (len < 0)
		return -errno;
	program[len] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s/" HOOK ".rb", program, places[i]);

		if (n >= (int)sizeof(path) || access(path, R_OK) || !realpath(path, ret_directory))
			continue;
		*strrchr(ret_directory, '/') = '\0';
		return 0;
	}
	return -ENOENT;
}

/* Returns true if the command enters an environment in which braid's files may be missing or
 * unreadable. */
static bool goes_elsewhere(const char *program)
{
	static const char *const names[] = { "chroot",	    "nsenter", "unshare",    "bwrap",
					     "docker",	    "podman",  "lxc-attach", "machinectl",
					     "systemd-run", "su",      "runuser",    "setpriv",
					     "sudo" };
	const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Ruby splits RUBYOPT at all blanks. If the path has a blank, the hook is passed by its name and
 * a search path. A file that is not found would prevent Ruby's start. */
void ruby_probing__prepare_command(char *const *command)
{
	char directory[PATH_MAX], option[PATH_MAX + 32];
	int n;

	if (goes_elsewhere(command[0]) || find_hook(directory))
		return;
	n = snprintf(option, sizeof(option), "-r%s/" HOOK ".rb", directory);
	if (n >= (int)sizeof(option))
		return;
	if (!strpbrk(directory, " \t"))
		probing__extend_environment("RUBYOPT", ' ', option);
	else if (!strchr(directory, ':') && !probing__extend_environment("RUBYLIB", ':', directory))
		probing__extend_environment("RUBYOPT", ' ', "-r" HOOK);
}
