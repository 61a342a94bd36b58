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
#include "runtimes/common/untried.h"
#include "runtimes/python/python_build.h"
#include "runtimes/python/python_codes.h"
#include "runtimes/python/python_fit.h"
#include "runtimes/python/python_function_rules.h"
#include "runtimes/python/python_idle.h"
#include "runtimes/python/python_locks.h"
#include "runtimes/python/python_probing.h"
#include "runtimes/python/python_tables.h"
#include "runtimes/python/python_tasks.h"
#include "runtimes/python/python_threads.h"
#include "runtimes/python/python_versions.h"
#include "runtimes/runtime.h"

/* CPython on x86-64 with glibc or musl. */

#define VERSIONS    "3.6 to 3.15"
#define NATIVE_ONLY "Python frames will be missing, native frames are shown"

#define TSS_KEYS_MAX 1024 /* glibc's PTHREAD_KEYS_MAX; musl has less */

/* Two mutexes of 40 bytes, two condition variables of 48, and the bytes between them. */
#define GIL_3_6_BYTES_MAX 1024

struct runtime_image {
	struct python_version version;
	uint64_t key_vaddr;	     /* a Py_tss_t; 3.6: an int */
	struct x86_tls tls;	     /* from 3.15 on */
	uint64_t interpreters_vaddr; /* the pointer to the first interpreter; 0: unknown */
	uint64_t gil_vaddr;	     /* 0: unknown, or found by the interpreter */
	uint64_t gil_holder, gil_locked;
	uint32_t gil_bytes;
	uint16_t gil_conds[2];
	struct runtime_range loops[PYTHON_LOOPS_MAX];
	size_t n_loops;
	bool tail_calls; /* the loop's frame is in two parts, the inner one an instruction's */
	bool compiles;	 /* ... or one of compiled code, or in three */
	bool untried;	 /* the row is another version's, or the build a pre-release */
};

struct runtime_session {
	struct python_codes *codes;
	struct thread_names *threads;
	struct python_probing *probing; /* NULL: no probes */
	bool has_parts;			/* a process has a loop in parts */
	bool tasks_cut;			/* the last list of tasks is incomplete */
};

/* --- image --- */

static bool has_symbol(const struct elf_file *file, const char *name)
{
	uint64_t vaddr;

	return elf_file__find_symbol(file, name, &vaddr, NULL) == 0;
}

static int python__detect(const struct elf_file *file)
{
	return has_symbol(file, "_PyRuntime") || has_symbol(file, "Py_GetVersion") ||
	       has_symbol(file, "_PyEval_EvalFrameDefault");
}

static int refuse(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_REFUSED;
	snprintf(verdict->reason, sizeof(verdict->reason), "CPython %s: %s; " NATIVE_ONLY,
		 verdict->version, why);
	return 0;
}

/* The version's row, or NULL and the refusal in `verdict`. */
static const struct python_version *choose_version(const struct elf_file *file,
						   struct runtime_verdict *verdict,
						   uint32_t *ret_hex, bool *ret_untried)
{
	const struct python_version *row;

	if (python_build__version(file, ret_hex)) {
		snprintf(verdict->version, sizeof(verdict->version), "(unknown)");
		refuse(verdict, "cannot determine the version of this build");
		return NULL;
	}
	python_build__format(*ret_hex, verdict->version, sizeof(verdict->version));
	row = PYTHON_MAJOR(*ret_hex) == 3 ? python_version__find(PYTHON_MINOR(*ret_hex)) : NULL;
	*ret_untried = !row || PYTHON_LEVEL(*ret_hex) != PYTHON_LEVEL_FINAL;
	if (!row && PYTHON_MAJOR(*ret_hex) == 3)
		row = python_version__older(PYTHON_MINOR(*ret_hex));
	if (!row || (PYTHON_MINOR(*ret_hex) != row->minor && !python_version__is_described(row)))
		refuse(verdict, "no walker for this version (" VERSIONS " only)");
	else if (*ret_untried && !python_version__is_described(row))
		refuse(verdict, "no walker for pre-releases. Use a final release");
	else
		return row;
	return NULL;
}

/* 3.6: variables of Python/ceval_gil.h. Those of the compiler's own order lie side by side. */
static void locate_lock_3_6(const struct elf_file *file, struct runtime_image *image)
{
	static const char *const waited[] = { "gil_cond", "switch_cond", "gil_mutex",
					      "switch_mutex" };
	uint64_t holder, locked, vaddr[4], size, start = UINT64_MAX, end = 0;

	if (elf_file__find_symbol(file, "gil_last_holder", &holder, NULL) ||
	    elf_file__find_symbol(file, "gil_locked", &locked, NULL))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(waited); i++) {
		if (elf_file__find_symbol(file, waited[i], &vaddr[i], &size))
			return;
		start = min_of(start, vaddr[i]);
		end = max_of(end, vaddr[i] + size);
	}
	if (end - start > GIL_3_6_BYTES_MAX)
		return;
	image->gil_vaddr = start;
	image->gil_holder = holder - start;
	image->gil_locked = locked - start;
	image->gil_bytes = end - start;
	for (int i = 0; i < 2; i++)
		image->gil_conds[i] = vaddr[i] - start;
}

/* 3.6 has no _PyRuntime: its state is in local symbols. Where these were stripped, other
 * interpreters than the thread's first one will not be seen, nor the lock. */
static const char *locate_3_6(const struct elf_file *file, struct runtime_image *image)
{
	if (elf_file__find_symbol(file, "autoTLSkey", &image->key_vaddr, NULL) &&
	    python_build__key(file, 0, 0, 0, &image->key_vaddr))
		return "cannot find the thread key of this build";
	elf_file__find_symbol(file, "interp_head", &image->interpreters_vaddr, NULL);
	locate_lock_3_6(file, image);
	return NULL;
}

/* NULL, or why not. */
static const char *locate(const struct elf_file *file, uint32_t hex, struct runtime_image *image)
{
	struct python_version *version = &image->version;
	uint64_t runtime, size;
	const char *why;

	if (version->state == PYTHON_STATE_PLAIN_KEY)
		return locate_3_6(file, image);
	if (elf_file__find_symbol(file, "_PyRuntime", &runtime, &size))
		return "its symbol _PyRuntime was stripped";
	if (python_version__is_described(version)) {
		why = python_version__read(file, runtime, hex, version);
		if (why)
			return why;
	}
	if (version->state == PYTHON_STATE_TLS
		    ? python_build__tls(file, &image->tls)
		    : python_build__key(file, runtime, size, runtime + version->tss,
					&image->key_vaddr))
		return "cannot find the thread state of this build";
	image->interpreters_vaddr = runtime + version->interpreters;
	/* The members before gilstate have the same sizes in all patch releases. */
	if (version->gil)
		image->gil_vaddr = image->key_vaddr - version->tss + version->gil;
	image->gil_holder = PYTHON_GIL_HOLDER;
	image->gil_locked = PYTHON_GIL_LOCKED;
	image->gil_bytes = PYTHON_GIL_BYTES;
	memcpy(image->gil_conds, (uint16_t[])PYTHON_GIL_CONDS, sizeof(image->gil_conds));
	return NULL;
}

static void format_row(const struct runtime_image *image, char *buf, size_t size)
{
	snprintf(buf, size, "CPython 3.%u", image->version.minor);
}

/* Returns the reason why an untested version of CPython does not have the layout of its row. NULL:
 * no difference was found. */
static const char *differs(const struct runtime_image *image, char *buf, size_t size)
{
	const char *part = python_fit__offsets(&image->version);
	char row[32];

	format_row(image, row, sizeof(row));
	if (part)
		untried__refuse(buf, size, row, part);
	return part ? buf : NULL;
}

static int python__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			   struct runtime_verdict *ret_verdict)
{
	const struct python_version *version;
	struct runtime_image *image;
	bool is_untried;
	const char *why;
	char text[96];
	uint32_t hex;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	version = choose_version(file, ret_verdict, &hex, &is_untried);
	if (!version)
		return 0;
	if (has_symbol(file, "_Py_AddToAllObjects"))
		return refuse(ret_verdict, "built with --with-trace-refs, which moves all fields");
	if (!c_library__is_supported(file))
		return refuse(ret_verdict, "no walker for its C library");
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->version = *version;
	image->untried = is_untried;
	why = locate(file, hex, image);
	if (!why && is_untried)
		why = differs(image, text, sizeof(text));
	if (why) {
		free(image);
		return refuse(ret_verdict, why);
	}
	image->n_loops = python_build__loops(file, image->loops);
	image->tail_calls = python_build__tail_calls(file);
	image->compiles = python_build__compiles(file);
	ret_verdict->support = RUNTIME_SUPPORTED;
	if (is_untried) {
		format_row(image, text, sizeof(text));
		untried__accept(ret_verdict, text);
	}
	*ret_image = image;
	return 0;
}

static size_t python__loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	*ret = image->loops;
	return image->n_loops;
}

static bool python__compiles(const struct runtime_image *image)
{
	return image->compiles;
}

static void python__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static const char *const probe_programs[] = { "python_usdt_entry", "python_usdt_return",
					      "python_eval_entry", "python_eval_return", NULL };

static void python__close(struct runtime_session *session)
{
	if (!session)
		return;
	python_probing__free(session->probing);
	thread_names__free(session->threads);
	python_codes__free(session->codes);
	free(session);
}

static int python__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));
	int code = 0;

	if (session)
		session->codes = python_codes__new();
	if (session)
		session->threads =
			thread_names__new(python_threads__search, sizeof(struct python_threads));
	if (!session || !session->codes || !session->threads) {
		python__close(session);
		return err__set(err, -ENOMEM, "python: out of memory");
	}
	if (probes)
		code = python_probing__new(probes, &session->probing, err);
	if (code)
		python__close(session);
	else
		*ret = session;
	return code;
}

/* --- instance --- */

/* Returns -EAGAIN if there is no thread key. While a program is loaded, the last page of its data
 * has bytes of the file behind the data. The kernel or the dynamic linker clears them. */
static int check_key(uint32_t pid, const struct python_proc_rec *rec)
{
	uint32_t tss[2]; /* is_initialized, key; 3.6: key, something else */

	if (!procfs__read_memory(pid, rec->state_at, tss, sizeof(tss)))
		return 0; /* exiting, or not ours to read: left to the kernel half */
	if (rec->state == PYTHON_STATE_PLAIN_KEY)
		return tss[0] != UINT32_MAX && tss[0] >= TSS_KEYS_MAX ? -EAGAIN : 0;
	if (tss[0] > 1 || (tss[0] && tss[1] >= TSS_KEYS_MAX))
		return -EAGAIN;
	return 0;
}

static int locate_tls(const struct runtime_target *target, struct python_proc_rec *rec)
{
	int rc = x86_tls__locate(&target->image->tls, target->pid, target->bias, &rec->tls_module,
				 (uint64_t *)&rec->state_at);

	if (rec->tls_module)
		rec->state = PYTHON_STATE_TLS_OF_MODULE;
	return rc;
}

/* 0, or the error of a process whose layout is not the row's, or cannot be checked yet. */
static int check_untried(const struct runtime_target *target, uint64_t interpreters,
			 struct err *err)
{
	const char *part = "";
	char why[96], row[32];
	int ret = python_fit__process(target->pid, target->file, target->bias, interpreters,
				      &target->image->version, &part);

	if (!ret)
		return 0;
	if (ret == -EAGAIN)
		return err__set(err, ret, "%s", "");
	format_row(target->image, row, sizeof(row));
	untried__refuse(why, sizeof(why), row, part);
	return err__set(err, ret, "%s; " NATIVE_ONLY, why);
}

static int python__attach(struct runtime_session *session, const struct runtime_target *target,
			  void *ret_record, struct err *err)
{
	const struct runtime_image *image = target->image;
	struct python_proc_rec *rec = ret_record;
	int rc;

	*rec = (struct python_proc_rec) {
		.offsets = image->version.offsets,
		.state = image->version.state,
		.state_at = target->bias + image->key_vaddr,
		.gil_holder = image->gil_holder,
		.gil_locked = image->gil_locked,
		.gil_bytes = image->gil_bytes,
	};
	memcpy(rec->gil_conds, image->gil_conds, sizeof(rec->gil_conds));
	for (size_t i = 0; i < image->n_loops; i++)
		rec->loops[i] =
			(struct python_loop) { target->bias + image->loops[i].start,
					       image->loops[i].end - image->loops[i].start };
	session->has_parts = session->has_parts || image->tail_calls || image->compiles;
	rc = c_library__find(target->pid, target->file, &rec->libc);
	if (rc)
		return err__set(err, rc, "python: process %u: no walker for its C library",
				target->pid);
	if (image->interpreters_vaddr)
		rec->interpreters = target->bias + image->interpreters_vaddr;
	if (image->gil_vaddr)
		rec->gil = target->bias + image->gil_vaddr;
	rc = rec->state == PYTHON_STATE_TLS ? locate_tls(target, rec) : check_key(target->pid, rec);
	if (rc)
		return err__set(err, rc, "python: process %u: no thread state at %#llx",
				target->pid, (unsigned long long)rec->state_at);
	rc = image->untried ? check_untried(target, rec->interpreters, err) : 0;
	if (rc)
		return rc;
	if (rec->interpreters)
		rc = thread_names__attach(session->threads, target->pid, target->space,
					  &(struct python_threads) { .pid = target->pid,
								     .version = image->version,
								     .interpreters =
									     rec->interpreters });
	return rc ? err__set(err, rc, "python: out of memory") : 0;
}

static void python__detach(struct runtime_session *session, uint32_t space)
{
	thread_names__detach(session->threads, space);
}

static int python__thread_name(struct runtime_session *session, uint32_t pid, uint32_t tid,
			       const char *kernel, char *buf, size_t size)
{
	return thread_names__get(session->threads, pid, tid, kernel, buf, size);
}

static int python__tasks(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
			 void *ctx)
{
	struct python_threads *process = thread_names__process(session->threads, pid);

	session->tasks_cut = false;
	return process ? python_tasks__list(process, &session->tasks_cut, on_task, ctx) : 0;
}

static const char *python__tasks_left_out(struct runtime_session *session)
{
	return session->tasks_cut ? "the first 200,000 tasks of asyncio are shown" : NULL;
}

static int python__sample(struct runtime_session *session, uint32_t pid, uint32_t most,
			  runtime_task_fn on_task, void *ctx, struct err *err)
{
	struct python_threads *process = thread_names__process(session->threads, pid);

	(void)err;
	return process ? python_tasks__sample(process, most, on_task, ctx) : 0;
}

static bool python__is_parked(struct runtime_session *session, uint32_t pid,
			      const struct runtime_task *task)
{
	struct python_threads *process = thread_names__process(session->threads, pid);

	(void)task;
	return process && python_tasks__is_unchanged(process);
}

static void python__lock_holders(struct runtime_session *session, uint32_t pid,
				 struct runtime_waiter *waiters, size_t n)
{
	const struct python_threads *process = thread_names__process(session->threads, pid);

	if (process)
		python_locks__find(process, waiters, n);
}

static int python__probe(struct runtime_session *session, const struct runtime_target *target,
			 enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	uint32_t hex = 0;

	if (!target->image && (python_build__version(target->file, &hex) || PYTHON_MAJOR(hex) != 3))
		return err__set(err, -ENOTSUP, "python: only probes of CPython 3 are supported");
	return python_probing__attach(
		session->probing, target,
		target->image ? target->image->version.minor : PYTHON_MINOR(hex), source, ret, err);
}

static void python__unprobe(struct runtime_session *session, uint32_t pid)
{
	python_probing__detach(session->probing, pid);
}

static void python__unprobe_all(struct runtime_session *session)
{
	python_probing__detach_all(session->probing);
}

/* --- records and names --- */

/* From 3.11 on a loop runs frames until one of them calls C. The walker finds an address in the
 * loop's native frame: the C frame (3.11), or the shim (from 3.12 on). Before 3.11, each loop runs
 * one frame object without a link to its loop, so that frames and loops are paired by their order.
 */
static size_t python__anchors(struct runtime_session *session, const struct runtime_sample *sample,
			      struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives;

	n = anchors__settle(pairs, n);
	if (!n || (pairs[n - 1].address && !sample->probed && !session->has_parts))
		return n;
	natives = sample->natives(sample, false);
	if (!natives.image || natives.image->version.offsets.chain != PYTHON_CHAIN_OBJECTS) {
		anchors__rest(pairs, n, &natives);
		if (natives.image && (natives.image->tail_calls || natives.image->compiles))
			anchors__inside(pairs, n, &natives, natives.image->tail_calls);
		return n;
	}
	if (sample->native_complete)
		n = anchors__prune(pairs, n, &natives);
	anchors__pair(pairs, n, &natives, anchors__are_complete(sample));
	return n;
}

static void python__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	python_codes__forget(session->codes, listed);
}

static int python__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			   size_t size)
{
	return python_codes__add(session->codes, rec, size);
}

static int python__symbolize(struct runtime_session *session, uint64_t key,
			     struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	int rc = python_codes__symbolize(session->codes, key, ret);

	return rc ? rc : 1;
}

static const char *const python_maps[] = { "python_states", "python_procs", "python_codes", NULL };

/* Objects/obmalloc.c: pymalloc, for the object and memory domains (the raw domain is malloc's),
 * with the allocator's context as first argument. The exported PyObject_Malloc only jumps there,
 * and an interpreter built with LTO calls pymalloc directly. */
static const struct runtime_allocates allocates[] = {
	{ "_PyObject_Malloc", 1, RUNTIME_ONCE, .nests = true },
	{ "_PyObject_Calloc", 1, 2, .nests = true },
	{ "_PyObject_Realloc", 2, RUNTIME_ONCE, .nests = true, .frees = 2 },
	{}
};
static const struct runtime_frees frees[] = { { "_PyObject_Free", .address = 1 }, {} };
static const struct runtime_allocator allocator = { .functions = allocates, .frees = frees };

/* Objects/methodobject.c and Objects/descrobject.c (CPython 3.8 to 3.14), Objects/call.c
 * (3.6, 3.7). Compilers add ".lto_priv.0" and the like. */
static const char *const callers[] = {
	"cfunction_vectorcall_@(NOARGS|O|FASTCALL|FASTCALL_KEYWORDS|FASTCALL_KEYWORDS_METHOD)*",
	"cfunction_call",
	"cfunction_call.*",
	"method_vectorcall_@(NOARGS|O|FASTCALL|FASTCALL_KEYWORDS|FASTCALL_KEYWORDS_METHOD|"
	"VARARGS|VARARGS_KEYWORDS)*",
	"_PyMethodDef_RawFastCall@(Keywords|Dict)*",
	"_PyCFunction_FastCall@(Keywords|Dict)*",
	NULL
};

static const struct runtime_files files = {
	.detect = python__detect,
	.prepare = python__prepare,
	.free = python__image_free,
	.loops = python__loops,
	.function_names = python_tables__read,
};

static const struct runtime_walker walker = {
	.slot = WALKER_PYTHON,
	.program = "walk_python",
	.maps = python_maps,
	.records = "python_procs",
	.record_bytes = sizeof(struct python_proc_rec),
	.copies = WALKER_COPIES_MAX,
	.codes = "python_codes",
	.slot_map = "python_states",
	.lock = "the GIL",
};

static const struct runtime_names names = {
	.on_code = python__on_code,
	.forget_codes = python__forget_codes,
	.anchors = python__anchors,
	.symbolize = python__symbolize,
	.thread_name = python__thread_name,
};

static const struct runtime_jit jit = {
	.code = "[JIT]",
	.frames = JIT_FRAMES_LOOP,
	.compiles = python__compiles,
	.label = python_codes__label,
};

static const struct runtime_probes probes = {
	.programs = probe_programs,
	.calls_note = "a generator or coroutine counts a call each time that it is resumed",
	.probe = python__probe,
	.unprobe = python__unprobe,
	.unprobe_all = python__unprobe_all,
};

static const struct runtime_inspect inspect = {
	.lock_holders = python__lock_holders,
	.tasks = python__tasks,
	.tasks_left_out = python__tasks_left_out,
};

static const struct runtime_parked parked = {
	.many = "tasks",
	.sample = python__sample,
	.is_parked = python__is_parked,
};

const struct runtime runtime_python = {
	.name = "python",
	.suffix = "_[py]",
	.versions = "CPython " VERSIONS ", free-threaded builds too",
	.files = &files,
	.walker = &walker,
	.names = &names,
	.jit = &jit,
	.probes = &probes,
	.inspect = &inspect,
	.parked = &parked,
	.allocator = &allocator,
	.idle = python_idle,
	.function_rules = &python_function_rules,
	.callers = callers,
	.open = python__open,
	.close = python__close,
	.attach = python__attach,
	.detach = python__detach,
};
