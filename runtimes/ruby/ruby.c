// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/anchors.h"
#include "runtimes/common/c_library.h"
#include "runtimes/common/probing.h"
#include "runtimes/ruby/ruby_build.h"
#include "runtimes/ruby/ruby_codes.h"
#include "runtimes/ruby/ruby_fibers.h"
#include "runtimes/ruby/ruby_function_rules.h"
#include "runtimes/ruby/ruby_idle.h"
#include "runtimes/ruby/ruby_probing.h"
#include "runtimes/ruby/ruby_threads.h"
#include "runtimes/ruby/ruby_versions.h"
#include "runtimes/runtime.h"

/* CRuby on x86-64 with glibc or musl. */

#define VERSIONS    "2.7 to 4.1"
#define NATIVE_ONLY "Ruby frames will be missing, native frames are shown"

struct runtime_image {
	struct ruby_offsets offsets;
	struct ruby_thread_offsets threads;
	struct ruby_state state;
	uint64_t vm_vaddr;	/* 0: unknown */
	uint64_t symbols_vaddr; /* 0: unknown */
	uint64_t zjit_vaddr;	/* 0: the build has no ZJIT */
	struct runtime_range loops[RUBY_LOOPS_MAX];
	size_t n_loops;
};

struct runtime_session {
	struct ruby_codes *codes;
	struct thread_names *threads;
	bool fibers_left_out;
	struct ruby_probing *probing; /* NULL: probes are off */
};

/* --- image --- */

static int ruby__detect(const struct elf_file *file)
{
	return ruby_build__is_ruby(file) || ruby_build__other(file);
}

static int refuse(struct runtime_verdict *verdict, const char *what, const char *why)
{
	verdict->support = RUNTIME_REFUSED;
	snprintf(verdict->reason, sizeof(verdict->reason), "%s: %s; " NATIVE_ONLY, what, why);
	return 0;
}

static int degrade(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_DEGRADED;
	snprintf(verdict->reason, sizeof(verdict->reason), "CRuby %s: %s", verdict->version, why);
	return 0;
}

static int judge(const struct ruby_version *version, const struct runtime_image *image,
		 struct runtime_verdict *verdict)
{
	if (!image->symbols_vaddr)
		return degrade(verdict, "cannot find the names of C methods in this build");
	if (!image->n_loops)
		return degrade(verdict, "cannot find the interpreter loop of this build, so Ruby "
					"frames are not placed among native ones");
	if (!version->verified)
		return degrade(
			verdict,
			"its layout was computed from sources, and not compared with a real build");
	verdict->support = RUNTIME_SUPPORTED;
	return 0;
}

static int ruby__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			 struct runtime_verdict *ret_verdict)
{
	const char *other = ruby_build__other(file);
	const struct ruby_version *version;
	struct runtime_image *image;
	struct ruby_number number;
	char what[64];

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "(unknown)");
	if (other)
		return refuse(ret_verdict, other, "only CRuby (MRI) can be walked");
	if (ruby_build__version(file, &number))
		return refuse(ret_verdict, "CRuby", "cannot determine the version of this build");
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "%u.%u.%u", number.major,
		 number.minor, number.teeny);
	snprintf(what, sizeof(what), "CRuby %s", ret_verdict->version);
	version = ruby_version__find(number.major, number.minor, number.teeny);
	if (!version)
		return refuse(ret_verdict, what, "no walker for this version (" VERSIONS " only)");
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->offsets = version->offsets;
	image->threads = version->threads;
	if (ruby_build__state(file, &number, &image->state)) {
		free(image);
		return refuse(ret_verdict, what, "cannot find the thread state of this build");
	}
	if (ruby_build__symbols(file, &image->symbols_vaddr))
		image->symbols_vaddr = 0;
	if (ruby_build__vm(file, &image->vm_vaddr))
		image->vm_vaddr = 0;
	if (ruby_build__zjit(file, &image->zjit_vaddr))
		image->zjit_vaddr = 0;
	image->n_loops = ruby_build__loops(file, image->loops);
	*ret_image = image;
	return judge(version, image, ret_verdict);
}

static size_t ruby__loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	*ret = image->loops;
	return image->n_loops;
}

static void ruby__image_free(struct runtime_image *image)
{
	free(image);
}

/* Returns a sentence if the command is JRuby's, else NULL. JRuby's start script runs
 * org.jruby.Main in a JVM, whose command line names it. */
static const char *ruby__elsewhere(const char *command)
{
	size_t program = strcspn(command, " ");
	bool java = program >= 4 && strncmp(command + program - 4, "java", 4) == 0;

	return java && (strstr(command, "org.jruby.") || strstr(command, "-Djruby."))
		       ? "this is JRuby, which runs on the JVM: only CRuby (MRI) can be walked; "
			 "its "
			 "native frames are shown"
		       : NULL;
}

/* --- session --- */

static const char *const probe_programs[] = { "ruby_method_entry", "ruby_method_return",
					      "ruby_cmethod_entry", "ruby_cmethod_return", NULL };

static void ruby__close(struct runtime_session *session)
{
	if (!session)
		return;
	ruby_probing__free(session->probing);
	thread_names__free(session->threads);
	ruby_codes__free(session->codes);
	free(session);
}

static int ruby__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));
	int code = 0;

	if (session) {
		session->codes = ruby_codes__new();
		session->threads =
			thread_names__new(ruby_threads__search, sizeof(struct ruby_reader));
	}
	if (!session || !session->codes || !session->threads) {
		ruby__close(session);
		return err__set(err, -ENOMEM, "ruby: out of memory");
	}
	if (probes)
		code = ruby_probing__new(probes, &session->probing, err);
	if (code)
		ruby__close(session);
	else
		*ret = session;
	return code;
}

/* --- instance --- */

static int locate(const struct runtime_target *target, struct ruby_proc_rec *rec)
{
	const struct ruby_state *state = &target->image->state;
	int rc;

	if (state->key_vaddr) {
		rec->state = RUBY_STATE_KEY;
		rec->state_at = target->bias + state->key_vaddr;
		return 0;
	}
	rc = x86_tls__locate(&state->tls, target->pid, target->bias, &rec->tls_module,
			     (uint64_t *)&rec->state_at);
	rec->state = rec->tls_module ? RUBY_STATE_TLS_OF_MODULE : RUBY_STATE_TLS;
	return rc;
}

static int ruby__attach(struct runtime_session *session, const struct runtime_target *target,
			void *ret_record, struct err *err)
{
	const struct runtime_image *image = target->image;
	struct ruby_proc_rec *rec = ret_record;
	struct ruby_reader reader;
	int rc;

	*rec = (struct ruby_proc_rec) { .offsets = image->offsets };
	if (image->symbols_vaddr)
		rec->symbols = target->bias + image->symbols_vaddr;
	if (image->zjit_vaddr)
		rec->zjit_at = target->bias + image->zjit_vaddr;
	if (image->n_loops) {
		rec->exec_start = target->bias + image->loops[0].start;
		rec->exec_end = target->bias + image->loops[0].end;
	}
	rc = c_library__find(target->pid, target->file, &rec->libc);
	if (rc)
		return err__set(err, rc, "ruby: process %u: no walker for its C library",
				target->pid);
	rc = locate(target, rec);
	if (rc)
		return err__set(err, rc, "ruby: process %u: no thread state yet", target->pid);
	reader = (struct ruby_reader) { .pid = target->pid,
					.rec = *rec,
					.threads = image->threads,
					.vm_at = image->vm_vaddr ? target->bias + image->vm_vaddr
								 : 0 };
	rc = thread_names__attach(session->threads, target->pid, target->space, &reader);
	return rc ? err__set(err, rc, "ruby: out of memory") : 0;
}

static void ruby__detach(struct runtime_session *session, uint32_t space)
{
	thread_names__detach(session->threads, space);
}

static int ruby__thread_name(struct runtime_session *session, uint32_t pid, uint32_t tid,
			     const char *kernel, char *buf, size_t size)
{
	return thread_names__get(session->threads, pid, tid, kernel, buf, size);
}

static int ruby__tasks(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
		       void *ctx)
{
	const struct ruby_reader *process = thread_names__process(session->threads, pid);
	bool is_whole = true;
	int rc = process ? ruby_fibers__list(process, on_task, ctx, &is_whole) : 0;

	session->fibers_left_out = !is_whole;
	return rc;
}

static const char *ruby__tasks_left_out(struct runtime_session *session)
{
	return session->fibers_left_out
		       ? "cannot search its heap, so some of its fibers are not listed"
		       : NULL;
}

static int ruby__probe(struct runtime_session *session, const struct runtime_target *target,
		       enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	return ruby_probing__attach(session->probing, target, source, ret, err);
}

static void ruby__unprobe(struct runtime_session *session, uint32_t pid)
{
	ruby_probing__detach(session->probing, pid);
}

static void ruby__unprobe_all(struct runtime_session *session)
{
	ruby_probing__detach_all(session->probing);
}

/* --- records and names --- */

static void ruby__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	ruby_codes__forget(session->codes, listed);
}

static int ruby__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			 size_t size)
{
	return ruby_codes__add(session->codes, rec, size);
}

/* Pairs control frames with native frames. Control frames do not refer to their native frames,
 * but those that end a loop are marked. A method in C is paired with the native frame of its C
 * function. Probes report addresses. The address of a loop may be the start of its part. */
static size_t ruby__anchors(struct runtime_session *session, const struct runtime_sample *sample,
			    struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives = sample->natives(sample, true);
	uint64_t functions[RUNTIME_PAIRS_MAX];

	if (sample->probed) {
		anchors__inwards(pairs, n, &natives);
		n = anchors__settle(pairs, n);
		anchors__rest(pairs, n, &natives);
		return n;
	}
	for (size_t i = 0; i < n; i++)
		functions[i] = FRAME_IS_MARK(pairs[i].key)
				       ? 0
				       : ruby_codes__native(session->codes, pairs[i].key);
	return anchors__match(pairs, functions, n, &natives, anchors__are_complete(sample),
			      ANCHORS_MARK_LAST);
}

static int ruby__symbolize(struct runtime_session *session, uint64_t key,
			   struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	int rc = ruby_codes__symbolize(session->codes, key, ret);

	return rc ? rc : 1;
}

static const char *ruby__native_name(struct runtime_session *session, uint32_t pid, uint64_t entry)
{
	return ruby_codes__native_name(session->codes, pid, entry);
}

static const char *const maps[] = { "ruby_states", "ruby_procs", "ruby_codes", NULL };

static const struct runtime_allocator allocator = {
	.why_not = "Ruby's probe at the creation of objects does not report their size. Use -e "
		   "alloc:malloc for data larger than a heap slot, -e alloc:mmap for the heap's "
		   "growth, or -e usdt:FILE:ruby:object__create to count objects",
};

static const struct runtime_files files = {
	.detect = ruby__detect,
	.prepare = ruby__prepare,
	.free = ruby__image_free,
	.loops = ruby__loops,
};

static const struct runtime_walker walker = {
	.slot = WALKER_RUBY,
	.program = "walk_ruby",
	.maps = maps,
	.records = "ruby_procs",
	.record_bytes = sizeof(struct ruby_proc_rec),
	.codes = "ruby_codes",
	.slot_map = "ruby_states",
	.lock = "the GVL",
};

static const struct runtime_names names = {
	.on_code = ruby__on_code,
	.forget_codes = ruby__forget_codes,
	.anchors = ruby__anchors,
	.symbolize = ruby__symbolize,
	.thread_name = ruby__thread_name,
	.native_name = ruby__native_name,
};

static const struct runtime_jit jit = {
	.code = "[JIT]",
};

static const struct runtime_probes probes = {
	.programs = probe_programs,
	.probe = ruby__probe,
	.unprobe = ruby__unprobe,
	.unprobe_all = ruby__unprobe_all,
	.prepare_command = ruby_probing__prepare_command,
};

static const struct runtime_inspect inspect = {
	.tasks = ruby__tasks,
	.task = "fiber",
	.tasks_left_out = ruby__tasks_left_out,
};

const struct runtime runtime_ruby = {
	.name = "ruby",
	.suffix = "_[rb]",
	.versions = "CRuby " VERSIONS,
	.files = &files,
	.walker = &walker,
	.names = &names,
	.jit = &jit,
	.probes = &probes,
	.inspect = &inspect,
	.allocator = &allocator,
	.idle = ruby_idle,
	.function_rules = &ruby_function_rules,
	.elsewhere = ruby__elsewhere,
	.open = ruby__open,
	.close = ruby__close,
	.attach = ruby__attach,
	.detach = ruby__detach,
};
