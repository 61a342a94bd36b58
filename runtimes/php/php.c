// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/anchors.h"
#include "runtimes/common/c_library.h"
#include "runtimes/common/untried.h"
#include "runtimes/php/php_build.h"
#include "runtimes/php/php_codes.h"
#include "runtimes/php/php_fit.h"
#include "runtimes/php/php_function_rules.h"
#include "runtimes/php/php_idle.h"
#include "runtimes/php/php_probing.h"
#include "runtimes/php/php_versions.h"
#include "runtimes/runtime.h"

/* PHP 8 on x86-64. */

#define VERSIONS    "8.0 to 8.6"
#define NATIVE_ONLY "PHP frames will be missing, native frames are shown"

struct runtime_image {
	struct php_offsets offsets;
	struct php_build build;
	unsigned int untried; /* minor version of the row; 0: it is the build's version */
};

struct runtime_session {
	struct php_codes *codes;
	struct php_probing *probing; /* NULL: no probes */
};

/* --- image --- */

/* Debian's php, php-fpm, and Apache's module are each a whole PHP. */
static int php__detect(const struct elf_file *file)
{
	uint64_t vaddr;

	return !elf_file__find_symbol(file, "execute_ex", &vaddr, NULL) &&
	       !elf_file__find_symbol(file, "std_object_handlers", &vaddr, NULL);
}

/* Returns the version's row, or the newest one if the version is newer than all rows. */
static const struct php_version *find_row(const char *version, bool *ret_untried)
{
	unsigned int major, minor;
	const struct php_version *row;

	*ret_untried = false;
	if (sscanf(version, "%u.%u.", &major, &minor) != 2 || major != 8)
		return NULL;
	row = php_version__find(minor);
	*ret_untried = !row;
	return row ?: php_version__older(minor);
}

static int refuse(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_REFUSED;
	snprintf(verdict->reason, sizeof(verdict->reason), "PHP %s: %s; " NATIVE_ONLY,
		 verdict->version, why);
	return 0;
}

static int degrade(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_DEGRADED;
	snprintf(verdict->reason, sizeof(verdict->reason), "PHP %s: %s", verdict->version, why);
	return 0;
}

/* Returns the reason why the build cannot be walked; NULL: the build can be walked. @buf holds the
 * text. */
static const char *read_build(const struct elf_file *file, struct runtime_image *image, char *buf,
			      size_t size)
{
	const char *why = php_build__read(file, &image->build), *part;
	char row[16];

	if (why || !image->untried)
		return why;
	part = php_fit__file(file, &image->build, &image->offsets);
	snprintf(row, sizeof(row), "8.%u", image->untried);
	if (part)
		untried__refuse(buf, size, row, part);
	return part ? buf : NULL;
}

static int php__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			struct runtime_verdict *ret_verdict)
{
	const struct php_version *version;
	struct runtime_image *image;
	char text[96], row[16];
	bool is_untried;
	const char *why;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "(unknown)");
	if (php_build__version(file, ret_verdict->version))
		return refuse(ret_verdict, "cannot determine the version of this build");
	version = find_row(ret_verdict->version, &is_untried);
	if (!version)
		return refuse(ret_verdict, "no walker for this version (" VERSIONS " only)");
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->offsets = version->offsets;
	image->untried = is_untried ? version->minor : 0;
	why = read_build(file, image, text, sizeof(text));
	if (why) {
		free(image);
		return refuse(ret_verdict, why);
	}
	*ret_image = image;
	if (!image->build.n_loops)
		return degrade(ret_verdict, "cannot find the run loop of this build, so PHP frames "
					    "are not placed among native ones");
	ret_verdict->support = RUNTIME_SUPPORTED;
	snprintf(row, sizeof(row), "PHP 8.%u", version->minor);
	if (is_untried)
		untried__accept(ret_verdict, row);
	return 0;
}

static size_t php__loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	*ret = image->build.loops;
	return image->build.n_loops;
}

static void php__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static const char *const probe_programs[] = { "php_entry", "php_return", NULL };

static void php__close(struct runtime_session *session)
{
	if (!session)
		return;
	php_probing__free(session->probing);
	php_codes__free(session->codes);
	free(session);
}

static int php__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));
	int rc = 0;

	if (session)
		session->codes = php_codes__new();
	if (!session || !session->codes) {
		php__close(session);
		return err__set(err, -ENOMEM, "php: out of memory");
	}
	if (probes)
		rc = php_probing__new(probes, &session->probing, err);
	if (rc)
		php__close(session);
	else
		*ret = session;
	return rc;
}

/* --- instance --- */

/* Returns 0, or an error if the process does not have the row's layout, or runs no script yet. */
static int check_untried(const struct runtime_target *target, struct err *err)
{
	const struct runtime_image *image = target->image;
	const char *part = "";
	char why[96], row[16];
	int ret = php_fit__process(target->pid, target->file, target->bias, &image->build,
				   &image->offsets, &part);

	if (!ret)
		return 0;
	if (ret == -EAGAIN)
		return err__set(err, ret, "%s", "");
	snprintf(row, sizeof(row), "8.%u", image->untried);
	untried__refuse(why, sizeof(why), row, part);
	return err__set(err, ret, "%s; " NATIVE_ONLY, why);
}

static int php__attach(struct runtime_session *session, const struct runtime_target *target,
		       void *ret_record, struct err *err)
{
	const struct php_build *build = &target->image->build;
	struct php_proc_rec *rec = ret_record;
	int ret;

	(void)session;
	if (build->key_vaddr && c_library__find(target->pid, target->file, &rec->libc))
		return err__set(err, -ENOTSUP, "php: process %u: no walker for its C library",
				target->pid);
	ret = target->image->untried ? check_untried(target, err) : 0;
	if (ret)
		return ret;
	rec->offsets = target->image->offsets;
	rec->globals = target->bias + build->globals_vaddr;
	rec->key_at = build->key_vaddr ? target->bias + build->key_vaddr : 0;
	for (size_t i = 0; i < build->n_loops; i++) {
		rec->loops[i][0] = target->bias + build->loops[i].start;
		rec->loops[i][1] = target->bias + build->loops[i].end;
	}
	rec->left = build->left;
	rec->returns = build->returns_vaddr ? target->bias + build->returns_vaddr : 0;
	if (build->frameless_vaddr) {
		rec->frameless = target->bias + build->frameless_vaddr;
		rec->frameless_handlers = target->bias + build->handlers_vaddr;
	}
	return 0;
}

static int php__probe(struct runtime_session *session, const struct runtime_target *target,
		      enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	(void)source;
	return php_probing__attach(session->probing, target, ret, err);
}

static void php__unprobe(struct runtime_session *session, uint32_t pid)
{
	php_probing__detach(session->probing, pid);
}

static void php__unprobe_all(struct runtime_session *session)
{
	php_probing__detach_all(session->probing);
}

/* --- records and names --- */

static void php__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	php_codes__forget(session->codes, listed);
}

static int php__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			size_t size)
{
	return php_codes__add(session->codes, rec, size);
}

static bool is_running(const struct runtime_natives *natives, uint64_t function)
{
	for (size_t i = 0; i < natives->n; i++)
		if (natives->list[i].function == function)
			return true;
	return false;
}

/* Removes a frameless call that its native frame does not confirm. If the native stack is
 * incomplete, only the innermost call is checked. */
static size_t drop_frameless(const struct php_codes *codes, const struct runtime_sample *sample,
			     const struct runtime_natives *natives, struct runtime_pair *pairs,
			     size_t n)
{
	size_t retained = 0;

	for (size_t i = 0; i < n; i++) {
		if (!FRAME_IS_MARK(pairs[i].key) && (!i || sample->native_complete) &&
		    php_codes__is_frameless(codes, pairs[i].key) &&
		    !is_running(natives, php_codes__handler(codes, pairs[i].key)))
			continue;
		pairs[retained++] = pairs[i];
	}
	return retained;
}

/* Frames have no link to their native frames, but those that end a loop are marked, and C functions
 * are recognized by their start. */
static size_t php__anchors(struct runtime_session *session, const struct runtime_sample *sample,
			   struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives = sample->natives(sample, true);
	uint64_t functions[RUNTIME_PAIRS_MAX];

	if (sample->probed) /* probes report addresses */
		return n;
	n = drop_frameless(session->codes, sample, &natives, pairs, n);
	for (size_t i = 0; i < n; i++)
		functions[i] = FRAME_IS_MARK(pairs[i].key)
				       ? 0
				       : php_codes__handler(session->codes, pairs[i].key);
	return anchors__match(pairs, functions, n, &natives, anchors__are_complete(sample),
			      ANCHORS_FRAME_FIRST);
}

static int php__symbolize(struct runtime_session *session, uint64_t key,
			  struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	int rc = php_codes__symbolize(session->codes, key, ret);

	return rc ? rc : 1;
}

static const char *php__native_name(struct runtime_session *session, uint32_t pid, uint64_t entry)
{
	return php_codes__native_name(session->codes, pid, entry);
}

static const char *const maps[] = { "php_states", "php_procs", "php_codes", NULL };

static const struct runtime_files files = {
	.detect = php__detect,
	.prepare = php__prepare,
	.free = php__image_free,
	.loops = php__loops,
};

static const struct runtime_walker walker = {
	.slot = WALKER_PHP,
	.program = "walk_php",
	.maps = maps,
	.records = "php_procs",
	.record_bytes = sizeof(struct php_proc_rec),
	.codes = "php_codes",
	.slot_map = "php_states",
	.tableless = true,
};

static const struct runtime_names names = {
	.on_code = php__on_code,
	.forget_codes = php__forget_codes,
	.anchors = php__anchors,
	.symbolize = php__symbolize,
	.native_name = php__native_name,
};

static const struct runtime_jit jit = {
	.code = "[JIT]",
	.frames = JIT_FRAMES_LOOP,
	.memory = "/dev/zero", /* opcache's shared memory: its buffer is a part of that */
};

static const struct runtime_probes probes = {
	.programs = probe_programs,
	.probe = php__probe,
	.unprobe = php__unprobe,
	.unprobe_all = php__unprobe_all,
	.prepare_command = php_probing__prepare_command,
};

const struct runtime runtime_php = {
	.name = "php",
	.suffix = "_[php]",
	.versions = "PHP " VERSIONS,
	.files = &files,
	.walker = &walker,
	.names = &names,
	.jit = &jit,
	.probes = &probes,
	.idle = php_idle,
	.function_rules = &php_function_rules,
	.open = php__open,
	.close = php__close,
	.attach = php__attach,
};
