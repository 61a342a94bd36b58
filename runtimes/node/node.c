// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/process_words.h"
#include "core/target/procfs.h"
#include "runtimes/common/v8_code.h"
#include "runtimes/common/v8_label.h"
#include "runtimes/node/node_blob.h"
#include "runtimes/node/node_builtins.h"
#include "runtimes/node/node_codes.h"
#include "runtimes/node/node_function_rules.h"
#include "runtimes/node/node_idle.h"
#include "runtimes/runtime.h"

/* Node.js, and other programs that contain V8 and export its data for debuggers. JavaScript frames
 * are native frames, which V8 chains by frame pointers. The walker reads the function from each
 * frame. If the layout of V8's objects is unknown, names come from a perf map or a jitdump file.
 * V8 writes these only with an option at its start. */

/* A symbol of all versions from 18 to 26. */
#define V8_SYMBOL "v8dbg_APIObjectType"

#define V8_LINE_SKEW \
	0x40 /* size of an ELF header: src/diagnostics/perf-jit.cc, LogWriteDebugInfo */

#define BY_MAP	    "JavaScript is named by a perf map only (docs/runtimes/jit-code.md)"
#define INTERPRETED "interpreted functions have no names without --interpreted-frames-native-stack"
#define OPTIONS	    "--perf-basic-prof --interpreted-frames-native-stack"
#define NO_MAP	    "V8 writes no map of its code. Start it with NODE_OPTIONS='" OPTIONS "'"
#define NO_LENGTHS                                                                              \
	"this build has no symbol for the lengths of bytecodes (it is stripped), so frames of " \
	"Sparkplug's code have the line where their function begins; --no-sparkplug avoids them"

struct runtime_image {
	struct node_layout layout;
	struct node_builtins builtins;
	char unknown[80]; /* why the walker does not support the layout; "": it does */
};

struct runtime_session {
	struct node_codes *codes;
};

/* --- image --- */

static int node__detect(const struct elf_file *file)
{
	uint64_t vaddr;

	return !elf_file__find_symbol(file, V8_SYMBOL, &vaddr, NULL);
}

#define VERSION_BEFORE "/node-v"
#define VERSION_BUFFER_BYTES \
	(256 * 1024) /* bytes in memory at a time; .rodata has tens of megabytes */

/* Finds the version after the first VERSION_BEFORE in the text that a digit follows. Returns false
 * if there is none. */
static bool take_version(const char *text, size_t size, char ret[RUNTIME_VERSION_BYTES])
{
	const char *end = text + size;
	size_t n = 0;

	while ((text = memmem(text, end - text, VERSION_BEFORE, strlen(VERSION_BEFORE)))) {
		text += strlen(VERSION_BEFORE);
		if (text < end && isdigit((unsigned char)*text))
			break;
	}
	if (!text)
		return false;
	while (text + n < end && n < RUNTIME_VERSION_BYTES - 1 &&
	       (isdigit((unsigned char)text[n]) ||
		(text[n] == '.' && text + n + 1 < end && isdigit((unsigned char)text[n + 1]))))
		n++;
	snprintf(ret, RUNTIME_VERSION_BYTES, "%.*s", (int)n, text);
	return true;
}

/* Finds the version in a text such as
 * "https://nodejs.org/download/release/v20.19.2/node-v20.19.2.tar.gz". */
static int find_version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES])
{
	const size_t overlap = strlen(VERSION_BEFORE) + RUNTIME_VERSION_BYTES;
	char *buffer = malloc(VERSION_BUFFER_BYTES);
	bool found = false;

	if (!buffer)
		return -ENOMEM;
	snprintf(ret, RUNTIME_VERSION_BYTES, "(unknown)");
	for (size_t i = 0; !found && i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t at, left;

		for (at = 0; !found && at < segment->filesz; at += VERSION_BUFFER_BYTES - overlap) {
			left = min_of(segment->filesz - at, (uint64_t)VERSION_BUFFER_BYTES);
			if (elf_file__read(file, segment->vaddr + at, buffer, left))
				break;
			found = take_version(buffer, left, ret);
		}
	}
	free(buffer);
	return 0;
}

static void node__image_free(struct runtime_image *image)
{
	if (!image)
		return;
	node_builtins__done(&image->builtins);
	free(image);
}

static int node__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			 struct runtime_verdict *ret_verdict)
{
	struct runtime_image *image = calloc(1, sizeof(*image));
	struct node_proc_rec *rec;
	struct err err = {};
	int rc;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	if (!image)
		return -ENOMEM;
	rc = node_builtins__read(file, &image->builtins);
	if (!rc && !image->builtins.all.end)
		rc = node_blob__find(file, &image->builtins.all);
	rc = rc ? rc : find_version(file, ret_verdict->version);
	if (rc) {
		node__image_free(image);
		return rc;
	}
	if (node_layout__read(file, &image->layout, &err)) {
		ret_verdict->support = RUNTIME_DEGRADED;
		ret_verdict->map_only = true;
		ret_verdict->generated_keeps = V8_KEEPS;
		ret_verdict->generated_bytes = V8_GENERATED_BYTES;
		ret_verdict->map = "start it with NODE_OPTIONS='" OPTIONS "'";
		snprintf(image->unknown, sizeof(image->unknown), "%.79s", err.text);
		snprintf(ret_verdict->reason, sizeof(ret_verdict->reason), "%.120s; " BY_MAP,
			 err.text);
	} else if (!image->layout.n_bytecodes) {
		ret_verdict->support = RUNTIME_DEGRADED;
		snprintf(ret_verdict->reason, sizeof(ret_verdict->reason), NO_LENGTHS);
	}
	rec = &image->layout.rec;
	rec->blob_start = image->builtins.all.start;
	rec->blob_bytes = image->builtins.all.end - rec->blob_start;
	*ret_image = image;
	return 0;
}

static int node__pointer_code(const struct elf_file *file, uint64_t *ret_start, uint64_t *ret_end)
{
	struct node_builtins builtins = {};
	struct node_layout layout;
	int ret;

	if (!node_layout__read(file, &layout, NULL))
		return 0; /* bpf/node_unwind.bpf.c unwinds this version */
	ret = node_builtins__read(file, &builtins);
	if (!ret && !builtins.all.end)
		ret = node_blob__find(file, &builtins.all);
	*ret_start = builtins.all.start;
	*ret_end = builtins.all.end;
	node_builtins__done(&builtins);
	return ret;
}

/* V8 maps its builtins a second time, near compiled code. If the builtins are not mapped from the
 * file, because they are on huge pages, V8 copies them instead. */
static struct runtime_range node__copied_code(const struct runtime_image *image)
{
	return image->builtins.all;
}

static size_t node__loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	*ret = image->builtins.loops;
	return image->builtins.n_loops;
}

/* --- session --- */

static int node__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session = calloc(1, sizeof(*session));

	(void)probes;
	if (session)
		session->codes = node_codes__new();
	if (!session || !session->codes) {
		free(session);
		return err__set(err, -ENOMEM, "node: out of memory");
	}
	*ret = session;
	return 0;
}

static void node__close(struct runtime_session *session)
{
	if (!session)
		return;
	node_codes__free(session->codes);
	free(session);
}

/* --- instance --- */

static bool has_flag(uint32_t pid, const char *option)
{
	return process_words__have(pid, "NODE_OPTIONS=", option);
}

/* Attaches to a process whose compiled code is named by the map that the process writes. */
static int attach_map(uint32_t pid, const char *unknown, struct err *err)
{
	if (!has_flag(pid, "--perf-basic-prof") && !has_flag(pid, "--perf-prof") &&
	    !procfs__has_perf_map(pid)) {
		err__set(err, 0, "%s%s" NO_MAP, unknown, unknown[0] ? "; " : "");
		return 1;
	}
	if (!has_flag(pid, "--interpreted-frames-native-stack"))
		err__set(err, 0, INTERPRETED);
	return 0;
}

static int node__attach(struct runtime_session *session, const struct runtime_target *target,
			void *ret_record, struct err *err)
{
	const struct node_layout *layout = &target->image->layout;

	if (target->map)
		return attach_map(target->pid, target->image->unknown, err);
	memcpy(ret_record, &layout->rec, sizeof(layout->rec));
	if (node_codes__attach(session->codes, target->pid, target->space, layout))
		return err__set(err, -ENOMEM, "node: out of memory");
	return 0;
}

static void node__detach(struct runtime_session *session, uint32_t space)
{
	node_codes__detach(session->codes, space);
}

static void node__forget_codes(struct runtime_session *session, const struct u64map *listed)
{
	node_codes__forget(session->codes, listed);
}

static int node__on_code(struct runtime_session *session, const struct rec_code_object *rec,
			 size_t size)
{
	return node_codes__add(session->codes, rec, size);
}

static uint32_t node__count_stale(struct runtime_session *session, uint64_t key)
{
	return node_codes__count_stale(session->codes, key);
}

static int node__symbolize(struct runtime_session *session, uint64_t key,
			   struct runtime_symbol ret[RUNTIME_SYMBOLS_MAX])
{
	return node_codes__symbolize(session->codes, key, ret);
}

static const char *const maps[] = { "node_states", "node_procs", "node_codes", NULL };

static const struct runtime_files files = {
	.detect = node__detect,
	.prepare = node__prepare,
	.free = node__image_free,
	.loops = node__loops,
	.pointer_code = node__pointer_code,
	.copied_code = node__copied_code,
};

static const struct runtime_walker walker = {
	.slot = WALKER_NODE,
	.program = "walk_node",
	.maps = maps,
	.records = "node_procs",
	.record_bytes = sizeof(struct node_proc_rec),
	.codes = "node_codes",
	.slot_map = "node_states",
	.tableless = true,
};

static const struct runtime_names names = {
	.on_code = node__on_code,
	.forget_codes = node__forget_codes,
	.symbolize = node__symbolize,
	.count_stale = node__count_stale,
};

static const struct runtime_jit jit = {
	.code = "[JavaScript]",
	.frames = JIT_FRAMES_RUN,
	.label = v8_label__make,
	.jitdump_skew = V8_LINE_SKEW,
};

const struct runtime runtime_node = {
	.name = "node",
	.suffix = "_[j]",
	.versions = "Node.js 18 to 20 and 22 to 26; others with --perf-basic-prof or --perf-prof",
	.files = &files,
	.walker = &walker,
	.names = &names,
	.jit = &jit,
	.idle = node_idle,
	.function_rules = &node_function_rules,
	.open = node__open,
	.close = node__close,
	.attach = node__attach,
	.detach = node__detach,
};
