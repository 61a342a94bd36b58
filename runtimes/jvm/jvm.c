// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/target/procfs.h"
#include "runtimes/common/anchors.h"
#include "runtimes/common/probing.h"
#include "runtimes/jvm/jvm_codes.h"
#include "runtimes/jvm/jvm_flags.h"
#include "runtimes/jvm/jvm_function_rules.h"
#include "runtimes/jvm/jvm_idle.h"
#include "runtimes/jvm/jvm_map.h"
#include "runtimes/jvm/jvm_probing.h"
#include "runtimes/jvm/jvm_threads.h"
#include "runtimes/jvm/jvm_virtual.h"
#include "runtimes/jvm/jvm_vm.h"
#include "runtimes/runtime.h"

/* HotSpot on x86-64. The tables that libjvm.so exports describe all layouts, so that there is no
 * table of versions here. */

#define TABLES	    "gHotSpotVMStructs"
#define NATIVE_ONLY "Java frames will be missing, native frames are shown"

/* The version, read from the file. Everything else is read from the running JVM. */
struct runtime_image {
	char version[RUNTIME_VERSION_BYTES];
};

struct runtime_session {
	struct jvm_codes *codes;
	struct jvm_map *map;
	struct thread_names *threads;
	struct jvm_probing *probing; /* NULL: probes are off */
	char left_out[JVM_VIRTUAL_NOTE_BYTES];
};

/* --- image --- */

static bool is_jvm_library(const struct elf_file *file)
{
	const char *slash = strrchr(file->path, '/');

	return strncmp(slash ? slash + 1 : file->path, "libjvm.so", strlen("libjvm.so")) == 0;
}

static bool has_tables(const struct elf_file *file)
{
	uint64_t vaddr;

	return !elf_file__find_symbol(file, TABLES, &vaddr, NULL);
}

static int jvm__detect(const struct elf_file *file)
{
	return is_jvm_library(file) || has_tables(file);
}

/* The launcher's library lies beside the JVM: lib/libjli.so and lib/server/libjvm.so; until JDK 8
 * lib/amd64/jli/libjli.so and lib/amd64/server/libjvm.so. */
static int jvm__loads(const struct elf_file *file, char *buf, size_t size)
{
	static const char LAUNCHER[] = "/libjli.so", OLDER[] = "/jli";
	size_t length = strlen(file->path), end = strlen(LAUNCHER);

	if (length < end || strcmp(file->path + length - end, LAUNCHER))
		return 0;
	length -= end;
	end = strlen(OLDER);
	if (length >= end && !strncmp(file->path + length - end, OLDER, end))
		length -= end;
	return (size_t)snprintf(buf, size, "%.*s/server/libjvm.so", (int)length, file->path) < size;
}

/* "... VM (17.0.15+6-Debian-1deb12u1) for linux-amd64 JRE (17.0.15+6-Debian-1deb12u1), built on":
 * src/hotspot/share/runtime/abstract_vm_version.cpp, internal_vm_info_string() */
static void find_version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES])
{
	static const char before[] = " JRE (";
	const Elf_Data *data = elf_file__section(file, ".rodata", NULL);
	const char *text, *end;
	size_t n = 0;

	snprintf(ret, RUNTIME_VERSION_BYTES, "(unknown)");
	text = data ? memmem(data->d_buf, data->d_size, before, strlen(before)) : NULL;
	if (!text)
		return;
	end = (const char *)data->d_buf + data->d_size;
	for (text += strlen(before); text + n < end && n < RUNTIME_VERSION_BYTES - 1; n++)
		if (!isdigit((unsigned char)text[n]) && !strchr(".+_", text[n]))
			break;
	if (n)
		snprintf(ret, RUNTIME_VERSION_BYTES, "%.*s", (int)n, text);
}

static int jvm__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			struct runtime_verdict *ret_verdict)
{
	struct runtime_image *image;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	find_version(file, ret_verdict->version);
	if (!has_tables(file)) {
		ret_verdict->support = RUNTIME_REFUSED;
		snprintf(ret_verdict->reason, sizeof(ret_verdict->reason),
			 "this JVM does not export " TABLES
			 ": it is not HotSpot (but OpenJ9?), or was stripped; " NATIVE_ONLY);
		return 0;
	}
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	memcpy(image->version, ret_verdict->version, sizeof(image->version));
	*ret_image = image;
	ret_verdict->support = RUNTIME_SUPPORTED;
	return 0;
}

static void jvm__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static const char *const probe_programs[] = { "jvm_method_entry", "jvm_method_return", NULL };
static const char *const probe_maps[] = { "jvm_strings", NULL };

static void jvm__close(struct runtime_session *session)
{
	if (!session)
		return;
	jvm_probing__free(session->probing);
	jvm_map__free(session->map);
	thread_names__free(session->threads);
	jvm_codes__free(session->codes);
	free(session);
}

static int jvm__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));
	int rc = 0;

	if (session) {
		session->codes = jvm_codes__new();
		session->map = jvm_map__new();
		session->threads =
			thread_names__new(jvm_threads__search, sizeof(struct jvm_threads));
	}
	if (!session || !session->codes || !session->map || !session->threads) {
		jvm__close(session);
		return err__set(err, -ENOMEM, "jvm: out of memory");
	}
	if (probes)
		rc = jvm_probing__new(probes, &session->probing, err);
	if (rc)
		jvm__close(session);
	else
		*ret = session;
	return rc;
}

/* --- instance --- */

#define STARTING_S 3.0

/* Returns true if process @pid started less than STARTING_S seconds ago. Inconsistent data may
 * then just be incomplete. */
static bool is_starting(uint32_t pid)
{
	struct procfs_info info;
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return !procfs__info(pid, &info, NULL) &&
	       now.tv_sec - (double)info.start_ticks / sysconf(_SC_CLK_TCK) < STARTING_S;
}

static int jvm__attach(struct runtime_session *session, const struct runtime_target *target,
		       void *ret_record, struct err *err)
{
	struct jvm_vm *vm;
	int rc = jvm_vm__open(target->pid, target->bias, target->file, &vm, err);

	if ((rc == -EBADMSG || rc == -EFAULT) && is_starting(target->pid))
		rc = -EAGAIN;
	if (rc)
		return err__prefix(err, rc, "jvm: process %u", target->pid);
	memcpy(ret_record, jvm_vm__rec(vm), sizeof(struct jvm_proc_rec));
	rc = jvm_codes__add_vm(session->codes, target->space, vm);
	if (!rc)
		rc = thread_names__attach(session->threads, target->pid, target->space,
					  &(struct jvm_threads) { .vm = vm });
	return rc ? err__set(err, rc, "jvm: out of memory") : 0;
}

static void jvm__detach(struct runtime_session *session, uint32_t space)
{
	thread_names__detach(session->threads, space);
	jvm_codes__forget_vm(session->codes, space);
}

static const char jvm_lock[] = "a monitor";

static void jvm__lock_holders(struct runtime_session *session, uint32_t pid,
			      struct runtime_waiter *waiters, size_t n)
{
	const struct jvm_vm *vm = jvm_codes__vm(session->codes, pid);

	for (size_t i = 0; vm && i < n; i++) {
		if (!waiters[i].lock)
			continue;
		waiters[i].what = jvm_lock;
		waiters[i].address = waiters[i].lock;
		waiters[i].holder = jvm_threads__holder(vm, waiters[i].lock);
	}
}

static int jvm__thread_name(struct runtime_session *session, uint32_t pid, uint32_t tid,
			    const char *kernel, char *buf, size_t size)
{
	return thread_names__get(session->threads, pid, tid, kernel, buf, size);
}

static void note_unnamed(const struct jvm_vm *vm, char note[JVM_VIRTUAL_NOTE_BYTES])
{
	size_t unnamed = jvm_threads__unnamed(vm), n = strlen(note);

	if (unnamed)
		snprintf(note + n, JVM_VIRTUAL_NOTE_BYTES - n,
			 "%sthe names of %zu thread%s are cut to 15 bytes, because the collector "
			 "moved them and left no trace (ZGC)",
			 n ? "; " : "", unnamed, unnamed == 1 ? "" : "s");
}

static int jvm__tasks(struct runtime_session *session, uint32_t pid, runtime_task_fn on_task,
		      void *ctx)
{
	const struct jvm_vm *vm = jvm_codes__vm(session->codes, pid);
	int rc;

	session->left_out[0] = '\0';
	if (!vm)
		return 0;
	rc = jvm_virtual__list(vm, on_task, ctx, session->left_out);
	if (!rc)
		note_unnamed(vm, session->left_out);
	return rc;
}

static const char *jvm__tasks_left_out(struct runtime_session *session)
{
	return session->left_out[0] ? session->left_out : NULL;
}

static void jvm__expect(struct runtime_session *session, const struct runtime_target *target)
{
	jvm_probing__expect(session->probing, target);
}

static int jvm__probe(struct runtime_session *session, const struct runtime_target *target,
		      enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	return jvm_probing__attach(session->probing, target, source, ret, err);
}

static void jvm__unprobe(struct runtime_session *session, uint32_t pid)
{
	jvm_probing__detach(session->probing, pid);
}

static void jvm__unprobe_all(struct runtime_session *session)
{
	jvm_probing__detach_all(session->probing);
}

/* --- records and names --- */

static void jvm__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	jvm_codes__forget(session->codes, listed);
}

static int jvm__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			size_t size)
{
	int rc = session->probing ? jvm_probing__on_code(session->probing, rec, size) : -ENOENT;

	return rc == -ENOENT ? jvm_codes__add(session->codes, rec, size) : rc;
}

/* Pairs Java frames with native frames. Java frames are native frames in HotSpot's machine code,
 * and the walker records the address of each. A probe is called by such a frame, or by its stub,
 * so that its address is near. */
static size_t jvm__anchors(struct runtime_session *session, const struct runtime_sample *sample,
			   struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives;

	(void)session;
	if (sample->probed) {
		natives = sample->natives(sample, false);
		anchors__outwards(pairs, n, &natives);
	}
	return n;
}

static void jvm__seen(struct runtime_session *session, uint64_t key)
{
	jvm_codes__seen(session->codes, key);
}

static bool jvm__infers_inlined(struct runtime_session *session, uint64_t key)
{
	return jvm_codes__infers_inlined(session->codes, key);
}

static uint32_t jvm__count_stale(struct runtime_session *session, uint64_t key)
{
	return jvm_codes__count_stale(session->codes, key);
}

static int jvm__symbolize(struct runtime_session *session, uint64_t key,
			  struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	int rc = session->probing ? jvm_probing__symbolize(session->probing, key, ret) : -ENOENT;

	if (rc == -ENOENT)
		return jvm_codes__symbolize(session->codes, key, ret);
	return rc ? rc : 1;
}

static int jvm__ask_map(struct runtime_session *session, uint32_t pid, struct err *err)
{
	const struct jvm_vm *vm = jvm_codes__vm(session->codes, pid);
	bool disabled = false;

	if (vm && !jvm_flags__bool(vm, "DisableAttachMechanism", &disabled) && disabled)
		return err__set(err, -ENOTSUP,
				"process %u accepts no commands (-XX:+DisableAttachMechanism): "
				"with --source map, its compiled code has no names. Use --source "
				"auto, which needs no command",
				pid);
	return jvm_map__ask(session->map, pid, err);
}

static int jvm__map_result(struct runtime_session *session, uint32_t pid, unsigned timeout_ms,
			   struct err *err)
{
	return jvm_map__result(session->map, pid, timeout_ms, err);
}

static const char *const maps[] = { "jvm_states", "jvm_procs", "jvm_codes", NULL };

/* src/hotspot/share/gc/shared/allocTracer.cpp, since JDK 10. The first one, (Klass *, HeapWord
 * *, size_t tlab_size, ...), is called when a thread gets its next piece of the heap (TLAB). The
 * second one, (Klass *, HeapWord *, size_t alloc_size, ...), is called for an object that is too
 * large for such a piece. Both are called whether or not tracing is on. */
static const struct runtime_allocates allocates[] = {
	{ "_ZN11AllocTracer27send_allocation_in_new_tlabE", 2, RUNTIME_ONCE, .prefix = true },
	{ "_ZN11AllocTracer28send_allocation_outside_tlabE", 2, RUNTIME_ONCE, .prefix = true },
	{}
};
static const struct runtime_allocator allocator = { .functions = allocates };

static const struct runtime_files files = {
	.detect = jvm__detect,
	.prepare = jvm__prepare,
	.loads = jvm__loads,
	.free = jvm__image_free,
};

static const struct runtime_walker walker = {
	.slot = WALKER_JVM,
	.program = "walk_jvm",
	.maps = maps,
	.records = "jvm_procs",
	.record_bytes = sizeof(struct jvm_proc_rec),
	.codes = "jvm_codes",
	.slot_map = "jvm_states",
	.tableless = true,
	.lock = jvm_lock,
};

static const struct runtime_names names = {
	.on_code = jvm__on_code,
	.forget_codes = jvm__forget_codes,
	.anchors = jvm__anchors,
	.seen = jvm__seen,
	.symbolize = jvm__symbolize,
	.infers_inlined = jvm__infers_inlined,
	.count_stale = jvm__count_stale,
	.thread_name = jvm__thread_name,
};

static const struct runtime_jit jit = {
	.code = "[JVM code]",
	.frames = JIT_FRAMES_RUN,
	.label = jvm_map__label,
	.ask_map = jvm__ask_map,
	.map_result = jvm__map_result,
};

static const struct runtime_probes probes = {
	.programs = probe_programs,
	.maps = probe_maps,
	.expect = jvm__expect,
	.probe = jvm__probe,
	.unprobe = jvm__unprobe,
	.unprobe_all = jvm__unprobe_all,
	.prepare_command = jvm_probing__prepare_command,
};

static const struct runtime_inspect inspect = {
	.lock_holders = jvm__lock_holders,
	.tasks = jvm__tasks,
	.task = "virtual thread",
	.tasks_left_out = jvm__tasks_left_out,
};

const struct runtime runtime_jvm = {
	.name = "jvm",
	.suffix = "_[j]",
	.versions = "HotSpot 8 to 28",
	.files = &files,
	.walker = &walker,
	.names = &names,
	.jit = &jit,
	.probes = &probes,
	.inspect = &inspect,
	.allocator = &allocator,
	.idle = jvm_idle,
	.function_rules = &jvm_function_rules,
	.open = jvm__open,
	.close = jvm__close,
	.attach = jvm__attach,
	.detach = jvm__detach,
};
