// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/anchors.h"
#include "runtimes/common/c_library.h"
#include "runtimes/common/untried.h"
#include "runtimes/perl/perl_build.h"
#include "runtimes/perl/perl_codes.h"
#include "runtimes/perl/perl_fit.h"
#include "runtimes/perl/perl_function_rules.h"
#include "runtimes/perl/perl_versions.h"
#include "runtimes/perl/perl_xsubs.h"
#include "runtimes/runtime.h"

/* Perl 5 on x86-64. */

#define VERSIONS    "5.30 to 5.44"
#define NATIVE_ONLY "Perl frames will be missing, native frames are shown"

struct runtime_image {
	struct perl_offsets offsets;
	struct perl_place place;
	struct runtime_range loops[PERL_LOOPS_MAX];
	size_t n_loops;
	unsigned int untried; /* minor version of the row; 0: it is the build's version */
	uint64_t run_vaddr;   /* perl_run, which executes the main program */
	uint64_t call_vaddr;  /* Perl_call_sv, by which C calls a subroutine */
};

struct runtime_session {
	struct perl_codes *codes;
	struct perl_xsubs *xsubs;
};

/* --- image --- */

static int perl__detect(const struct elf_file *file)
{
	return perl_build__is_perl(file);
}

static int refuse(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_REFUSED;
	snprintf(verdict->reason, sizeof(verdict->reason), "Perl %s: %s; " NATIVE_ONLY,
		 verdict->version, why);
	return 0;
}

static int degrade(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_DEGRADED;
	snprintf(verdict->reason, sizeof(verdict->reason), "Perl %s: %s", verdict->version, why);
	return 0;
}

static int evaluate(const struct perl_version *version, const struct runtime_image *image,
		    struct runtime_verdict *verdict)
{
	if (!image->n_loops)
		return degrade(verdict, "cannot find the run loop of this build, so Perl frames "
					"are not placed among native ones");
	if (image->untried) {
		char row[32];

		snprintf(row, sizeof(row), "Perl 5.%u", image->untried);
		untried__accept(verdict, row);
		return 0;
	}
	if (!version->verified)
		return degrade(
			verdict,
			"its layout was computed from sources, and not compared with a real build");
	verdict->support = RUNTIME_SUPPORTED;
	return 0;
}

/* Returns the reason why a build whose version has no row differs from the layout of @version;
 * NULL: the build has this layout. */
static const char *differs(const struct elf_file *file, const struct perl_version *version,
			   const struct perl_place *place, char *buf, size_t size)
{
	const char *part = perl_fit__file(file, version, place);
	char row[32];

	snprintf(row, sizeof(row), "5.%u", version->minor);
	if (part)
		untried__refuse(buf, size, row, part);
	return part ? buf : NULL;
}

static int perl__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			 struct runtime_verdict *ret_verdict)
{
	const struct perl_version *version;
	struct runtime_image *image;
	struct perl_number number;
	const char *why;
	char text[96];
	bool is_untried;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "(unknown)");
	if (perl_build__version(file, &number))
		return refuse(ret_verdict, "cannot determine the version of this build");
	snprintf(ret_verdict->version, sizeof(ret_verdict->version), "%u.%u.%u", number.major,
		 number.minor, number.patch);
	version = number.major == 5 ? perl_version__find(number.minor) : NULL;
	is_untried = !version && number.major == 5;
	if (is_untried)
		version = perl_version__older(number.minor);
	if (!version)
		return refuse(ret_verdict, "no walker for this version (" VERSIONS " only)");
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->offsets = version->offsets;
	image->untried = is_untried ? version->minor : 0;
	why = perl_build__place(file, version, &image->place);
	if (!why && is_untried)
		why = differs(file, version, &image->place, text, sizeof(text));
	if (why) {
		free(image);
		return refuse(ret_verdict, why);
	}
	image->n_loops = perl_build__loops(file, image->loops);
	if (elf_file__find_symbol(file, "perl_run", &image->run_vaddr, NULL))
		image->run_vaddr = 0;
	if (elf_file__find_symbol(file, "Perl_call_sv", &image->call_vaddr, NULL))
		image->call_vaddr = 0;
	*ret_image = image;
	return evaluate(version, image, ret_verdict);
}

static size_t perl__loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	*ret = image->loops;
	return image->n_loops;
}

static void perl__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static void perl__close(struct runtime_session *session)
{
	if (!session)
		return;
	perl_xsubs__free(session->xsubs);
	perl_codes__free(session->codes);
	free(session);
}

static int perl__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));

	(void)probes;
	if (session) {
		session->codes = perl_codes__new();
		session->xsubs = perl_xsubs__new();
	}
	if (!session || !session->codes || !session->xsubs) {
		perl__close(session);
		return err__set(err, -ENOMEM, "perl: out of memory");
	}
	*ret = session;
	return 0;
}

/* --- instance --- */

static void locate(const struct runtime_target *target, struct perl_proc_rec *rec)
{
	const struct perl_place *place = &target->image->place;
	uint64_t bias = place->state == PERL_STATE_GLOBAL ? target->bias : 0;

	rec->state = place->state;
	rec->state_at = target->bias + place->key_vaddr;
	if (place->state == PERL_STATE_KEY && place->first_vaddr)
		rec->first_at = target->bias + place->first_vaddr;
	rec->op = bias + place->op;
	rec->curcop = bias + place->curcop;
	rec->curstackinfo = bias + place->curstackinfo;
	rec->comppad = bias + place->comppad;
	rec->phase = place->phase ? bias + place->phase : 0;
}

/* Reads the key once by a system call. A page that was never written is not in memory, and BPF
 * cannot read it; the system call maps it. */
static void fetch_key(uint32_t pid, const struct perl_proc_rec *rec)
{
	uint64_t first;
	uint32_t key;

	if (rec->state != PERL_STATE_KEY)
		return;
	procfs__read_memory(pid, rec->state_at, &key, sizeof(key));
	if (rec->first_at)
		procfs__read_memory(pid, rec->first_at, &first, sizeof(first));
}

static int perl__attach(struct runtime_session *session, const struct runtime_target *target,
			void *ret_record, struct err *err)
{
	struct perl_proc_rec *rec = ret_record;
	const struct perl_place *place = &target->image->place;
	bool is_variable = place->state == PERL_STATE_GLOBAL;
	uint64_t vaddr = is_variable ? place->defstash : place->first_vaddr;
	int ret = 0;

	*rec = (struct perl_proc_rec) { .offsets = target->image->offsets };
	locate(target, rec);
	fetch_key(target->pid, rec);
	if (!is_variable)
		ret = c_library__find(target->pid, target->file, &rec->libc);
	if (ret)
		return err__set(err, ret, "perl: process %u: no walker for its C library",
				target->pid);
	if (target->image->untried)
		ret = perl_fit__process(target->pid, target->bias + vaddr, is_variable,
					place->defstash, &rec->offsets);
	if (ret == -EAGAIN)
		return err__set(err, ret, "%s", "");
	if (ret)
		return err__set(
			err, ret,
			"this version is newer than 5.%u, and its packages differ; " NATIVE_ONLY,
			target->image->untried);
	if (vaddr)
		ret = perl_xsubs__attach(session->xsubs, target->pid, target->space,
					 &(struct perl_stashes) { .at = target->bias + vaddr,
								  .defstash = place->defstash,
								  .is_pointer = is_variable,
								  .offsets = rec->offsets });
	return ret ? err__set(err, ret, "perl: out of memory") : 0;
}

static void perl__detach(struct runtime_session *session, uint32_t space)
{
	perl_xsubs__detach(session->xsubs, space);
}

/* --- records and names --- */

static void perl__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	perl_codes__forget(session->codes, listed);
}

static int perl__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			 size_t size)
{
	return perl_codes__add(session->codes, rec, size);
}

static bool has_main(const struct runtime_natives *natives)
{
	for (size_t i = 0; i < natives->n; i++)
		if (natives->list[i].function == natives->bias + natives->image->run_vaddr)
			return true;
	return false;
}

static bool has_loop(const struct runtime_natives *natives)
{
	for (size_t i = 0; i < natives->n; i++)
		if (natives->list[i].loop)
			return true;
	return false;
}

/* Returns true if a native frame inside of all loops is the C function that calls subroutines. */
static bool is_entering(const struct runtime_natives *natives)
{
	uint64_t call = natives->image->call_vaddr;

	for (size_t i = 0; call && i < natives->n && !natives->list[i].loop; i++)
		if (natives->list[i].function == natives->bias + call)
			return true;
	return false;
}

static size_t count_loops(const struct runtime_natives *natives)
{
	size_t n = 0;

	for (size_t i = 0; i < natives->n; i++)
		n += natives->list[i].loop && (!i || !natives->list[i - 1].loop);
	return n;
}

/* Places the innermost frames, up to their mark, inside of all native frames if their loop has not
 * begun. Returns their number with the mark; 0: they have a loop. */
static size_t place_entered(const struct runtime_natives *natives, struct runtime_pair *pairs,
			    size_t n)
{
	size_t marks = 0, end = 0;

	for (size_t i = 0; i < n; i++)
		marks += pairs[i].key == FRAME_LOOP_END;
	if (marks <= count_loops(natives) || !is_entering(natives) || !natives->list[0].cfa)
		return 0;
	while (pairs[end].key != FRAME_LOOP_END)
		pairs[end++].address = natives->list[0].cfa - 8;
	return end + 1;
}

/* Contexts have no link to their native frames, but those that end a loop are marked. The
 * interpreter has a main program also in threads of Perl, and in programs that embed Perl, where no
 * loop runs it. */
static size_t perl__anchors(struct runtime_session *session, const struct runtime_sample *sample,
			    struct runtime_pair *pairs, size_t n)
{
	struct runtime_natives natives = sample->natives(sample, true);
	uint64_t functions[RUNTIME_PAIRS_MAX] = {};
	bool complete = anchors__are_complete(sample);
	size_t entered;

	/* Without a loop, an embedding program does its own work. The contexts are left over, or
	 * belong to another thread that uses the same interpreter. */
	if (complete && (!natives.image || !has_loop(&natives)))
		return 0;
	if (complete && n >= 2 && perl_codes__is_main(session->codes, pairs[n - 2].key) &&
	    !has_main(&natives))
		n -= 2;
	entered = complete ? place_entered(&natives, pairs, n) : 0;
	n = anchors__match(pairs + entered, functions, n - entered, &natives, complete,
			   ANCHORS_LOOP_FIRST);
	if (!entered)
		return n;
	memmove(pairs + entered - 1, pairs + entered, n * sizeof(*pairs)); /* over the mark */
	return entered - 1 + n;
}

static int perl__symbolize(struct runtime_session *session, uint64_t key,
			   struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	int rc = perl_codes__symbolize(session->codes, key, ret);

	return rc ? rc : 1;
}

static const char *perl__native_name(struct runtime_session *session, uint32_t pid, uint64_t entry)
{
	return perl_xsubs__name(session->xsubs, pid, entry);
}

static const char *const maps[] = { "perl_states", "perl_procs", "perl_codes", NULL };

/* The function that calls a C function for a script: pp_hot.c. */
static const char *const callers[] = { "Perl_pp_entersub", NULL };

static const struct runtime_files files = {
	.detect = perl__detect,
	.prepare = perl__prepare,
	.free = perl__image_free,
	.loops = perl__loops,
};

static const struct runtime_walker walker = {
	.slot = WALKER_PERL,
	.program = "walk_perl",
	.maps = maps,
	.records = "perl_procs",
	.record_bytes = sizeof(struct perl_proc_rec),
	.codes = "perl_codes",
	.slot_map = "perl_states",
};

static const struct runtime_names names = {
	.on_code = perl__on_code,
	.forget_codes = perl__forget_codes,
	.anchors = perl__anchors,
	.symbolize = perl__symbolize,
	.native_name = perl__native_name,
};

const struct runtime runtime_perl = {
	.name = "perl",
	.suffix = "_[pl]",
	.versions = "Perl " VERSIONS,
	.files = &files,
	.walker = &walker,
	.names = &names,
	.function_rules = &perl_function_rules,
	.callers = callers,
	.open = perl__open,
	.close = perl__close,
	.attach = perl__attach,
	.detach = perl__detach,
};
