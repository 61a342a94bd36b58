// SPDX-License-Identifier: GPL-2.0-or-later
/* Naming: turns recorded frames into functions, files and lines.
 *
 * Problem. A frame gets its number when its first sample is captured. Its name needs symbol tables,
 * debug information, a runtime's tables or a map of the process. These take milliseconds to
 * seconds, and the ring buffer must not wait for them. So frames are queued here, and named once a
 * second and at the end. A name is written once and never changes.
 *
 * Each kind of frame (enum pending_kind) has one function of the table in run(). It writes the
 * frame's locations, or adds the frame to the queue again. Frames are queued again in three cases:
 *   - a runtime has not received the code object yet (another CPU may announce it after its use);
 *   - the user stopped the recording: sampling ends first, and names are found afterwards;
 *   - the lookup was interrupted.
 * The last run queues nothing: a frame without a name gets its place, "[libc.so.6+0x1234]".
 *
 * Native code is named by the first of these sources that has an answer:
 *   1. tables of a runtime in the file (Go), as frames of the runtime;
 *   2. symbols and debug information, with inlined functions; names from debug servers may replace
 *      them at the end (fetched_names);
 *   3. a map of the process, for code that a runtime compiled in advance into the file;
 *   4. tables that name functions without a symbol, then the runtime's own table of native methods:
 *      only for the function whose frame description begins there;
 *   5. the file and the offset.
 *
 * Lifetimes. A frame refers to an image, which outlives the queue, and to the serial number of the
 * process in which it was sampled. That process may end before its frames are named.
 * naming__process_ended() names the frames that need its maps first. For other frames the number is
 * looked up again, and sources 3 and 4 are skipped if the process is gone. */
#include "core/capture/naming.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/capture/fetched_names.h"
#include "core/capture/jit_label.h"
#include "core/elf/demangle.h"
#include "core/elf/kallsyms.h"
#include "core/profile/profile.h"
#include "core/target/compiled_code.h"
#include "core/target/image_names.h"

#define SYMBOL_BYTES 512 /* the kernel's KSYM_NAME_LEN */

enum pending_kind {
	PENDING_KERNEL,
	PENDING_NATIVE,
	PENDING_ANONYMOUS,
	PENDING_JIT,
	PENDING_RUNTIME,
	PENDING_LOCK
};

struct pending {
	enum pending_kind kind;
	uint32_t frame;
	int runtime;
	uint64_t address;
	struct image *image;
	char path[192];
	uint32_t serial; /* PENDING_NATIVE: process in which the code was seen, at ... */
	uint64_t seen_at;
};

struct naming {
	struct naming_opts opts;
	struct kallsyms *kallsyms; /* NULL: hidden, or not read yet */
	bool kallsyms_read;
	struct kernel_texts texts;
	uint64_t kernel_unnamed; /* addresses */
	struct pending *pending;
	size_t n, cap;
	bool last; /* in run(): frames without a name now will never have one */
	struct fetched_names fetched;
};

int naming__new(const struct naming_opts *opts, struct naming **ret, struct err *err)
{
	struct naming *naming = calloc(1, sizeof(*naming));

	if (!naming)
		return err__set(err, -ENOMEM, "out of memory");
	naming->opts = *opts;
	*ret = naming;
	return 0;
}

void naming__free(struct naming *naming)
{
	if (!naming)
		return;
	kallsyms__free(naming->kallsyms);
	fetched_names__done(&naming->fetched);
	free(naming->pending);
	free(naming);
}

uint64_t naming__kernel_unnamed(const struct naming *naming)
{
	return naming->kernel_unnamed;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int add(struct naming *naming, const struct pending *pending)
{
	int ret = array__reserve(&naming->pending, &naming->cap, naming->n + 1,
				 sizeof(*naming->pending));

	if (!ret)
		naming->pending[naming->n++] = *pending;
	return ret;
}

int naming__add_kernel(struct naming *naming, uint32_t frame, uint64_t address)
{
	return add(naming, &(struct pending) {
				   .kind = PENDING_KERNEL, .frame = frame, .address = address });
}

int naming__add_native(struct naming *naming, uint32_t frame, const struct place *place,
		       uint32_t serial)
{
	return add(naming, &(struct pending) { .kind = PENDING_NATIVE,
					       .frame = frame,
					       .address = place->vaddr,
					       .image = place->image,
					       .serial = serial,
					       .seen_at = place->address });
}

int naming__add_anonymous(struct naming *naming, uint32_t frame, const char *path, uint64_t offset)
{
	struct pending pending = { .kind = PENDING_ANONYMOUS, .frame = frame, .address = offset };

	snprintf(pending.path, sizeof(pending.path), "%s", base_name(path));
	return add(naming, &pending);
}

int naming__add_jit(struct naming *naming, uint32_t frame, const char *name)
{
	struct pending pending = { .kind = PENDING_JIT, .frame = frame };

	snprintf(pending.path, sizeof(pending.path), "%s", name);
	return add(naming, &pending);
}

int naming__add_lock(struct naming *naming, uint32_t frame, const char *name)
{
	struct pending pending = { .kind = PENDING_LOCK, .frame = frame };

	snprintf(pending.path, sizeof(pending.path), "%s", name);
	return add(naming, &pending);
}

int naming__add_runtime(struct naming *naming, uint32_t frame, int runtime, uint64_t key)
{
	return add(naming, &(struct pending) { .kind = PENDING_RUNTIME,
					       .frame = frame,
					       .runtime = runtime,
					       .address = key });
}

static int name_one(struct naming *naming, uint32_t frame, int kind, const char *function,
		    const char *file, uint32_t line, struct err *err)
{
	struct sink_location location = { kind, function, file, line };

	return ids__locations(naming->opts.ids, frame, &location, 1, err);
}

/* Reads the kernel's symbols when they are first needed: that takes 0.1 s, and a program that only
 * computes needs none. Without symbols, kernel frames are shown by address. */
static int read_kallsyms(struct naming *naming)
{
	int ret = kallsyms__load(naming->opts.kallsyms_path, &naming->kallsyms, NULL);

	naming->kallsyms_read = ret != -ENOMEM;
	naming->texts = kernel_texts__of(naming->kallsyms);
	return naming->kallsyms_read ? 0 : ret;
}

int naming__kernel_frames(struct naming *naming, const struct rec_sample *rec,
			  const uint64_t *words, uint64_t *ret, size_t *ret_n)
{
	bool needed = kernel_frames__are_cut(rec) && !naming->kallsyms_read;
	int code = needed ? read_kallsyms(naming) : 0;

	*ret_n = code ? 0 : kernel_frames__of(&naming->texts, rec, words, ret);
	return code;
}

/* names of the words that are not addresses: enum block_kind */
static const char *const block_kinds[BLOCK_KINDS_N] = {
	[BLOCK_READ] = "[read]",
	[BLOCK_WRITE] = "[synchronous write]",
	[BLOCK_WRITE_BACK] = "[write-back]",
	[BLOCK_FLUSH] = "[flush]",
	[BLOCK_DISCARD] = "[discard]",
	[BLOCK_OTHER] = "[other request]",
};

static int name_kernel(struct naming *naming, const struct pending *pending, struct err *err)
{
	const char *name = NULL, *module;
	char text[SYMBOL_BYTES];

	if (pending->address < BLOCK_KINDS_N && block_kinds[pending->address])
		return name_one(naming, pending->frame, KIND_KERNEL, block_kinds[pending->address],
				NULL, 0, err);
	if (!naming->kallsyms_read && read_kallsyms(naming))
		return err__set(err, -ENOMEM, "out of memory");
	if (naming->kallsyms)
		name = kallsyms__find(naming->kallsyms, pending->address, &module);
	naming->kernel_unnamed += !naming->kallsyms;
	if (name)
		snprintf(text, sizeof(text), "%.*s", (int)symbol_name__length(name), name);
	else
		snprintf(text, sizeof(text), "[kernel+0x%" PRIx64 "]", pending->address);
	return name_one(naming, pending->frame, KIND_KERNEL, text, NULL, 0, err);
}

/* Returns true if a runtime may name code of the image in the map of a process. */
static bool has_map_names(const struct naming *naming, const struct pending *pending)
{
	for (int i = 0; naming->opts.runtimes[i]; i++)
		if (runtime__has(naming->opts.runtimes[i], jit, label) &&
		    pending->image->runtimes[i].detected)
			return true;
	return false;
}

/* Names code that a runtime compiled ahead of time, in an image without symbols. The name comes
 * from the map of the process where the code was seen, while that process exists. Returns -ENOENT
 * if there is none. */
static int name_by_map(struct naming *naming, const struct pending *pending, struct err *err)
{
	const struct captured *seen_in = captured__find(naming->opts.set, pending->serial);
	struct runtime_label label;
	struct jit_symbol symbol;
	char buf[JIT_NAME_BYTES + JIT_PATH_BYTES];
	int i;

	if (!has_map_names(naming, pending) || !seen_in ||
	    !compiled_code__image_symbol(seen_in->process, pending->seen_at, &symbol))
		return -ENOENT;
	i = jit_label__of(seen_in->process, &symbol, buf, sizeof(buf), &label);
	if (i < 0)
		return -ENOENT;
	return name_one(naming, pending->frame, KIND_RUNTIME + i, label.symbol.function, NULL, 0,
			err);
}

static int name_by_place(struct naming *naming, const struct pending *pending, uint64_t start,
			 struct err *err)
{
	char text[320];

	snprintf(text, sizeof(text), "[%.256s+0x%" PRIx64 "]",
		 base_name(pending->image->file->path), start);
	return name_one(naming, pending->frame, KIND_NATIVE, text, NULL, 0, err);
}

/* Returns the name that a runtime gives to the function at @start. The runtime is one of the
 * process where the function was seen, while that process exists. */
static const char *native_name(const struct naming *naming, const struct pending *pending,
			       uint64_t start)
{
	const struct captured *seen_in = captured__find(naming->opts.set, pending->serial);
	const struct runtime *const *runtimes = naming->opts.runtimes;
	const char *name = NULL;

	for (int i = 0; seen_in && !name && runtimes[i]; i++)
		if (naming->opts.sessions[i] && runtime__has(runtimes[i], names, native_name))
			name = runtimes[i]->names->native_name(
				naming->opts.sessions[i], seen_in->process->pid,
				pending->seen_at - (pending->address - start));
	return name;
}

/* Names a frame without a symbol by its function, from the image itself or its frame
 * descriptions. */
static int name_by_function(struct naming *naming, const struct pending *pending, struct err *err)
{
	uint64_t start = pending->address;
	const char *name = NULL;
	int ret = symbols__function_start(pending->image->symbols, pending->address, &start);

	if (!ret)
		ret = image_names__find(pending->image, naming->opts.runtimes,
					naming->opts.sessions, start, &name);
	if (ret == -ENOMEM)
		return err__set(err, ret, "out of memory");
	if (!ret && !name)
		name = native_name(naming, pending, start);
	pending->image->nameless += !name;
	return name ? name_one(naming, pending->frame, KIND_NATIVE, name, NULL, 0, err)
		    : name_by_place(naming, pending, start, err);
}

static int write_symbols(struct naming *naming, uint32_t frame, int kind,
			 const struct runtime_symbol *symbols, int n, struct err *err)
{
	struct sink_location locations[RUNTIME_SYMBOLS_MAX];

	for (int i = 0; i < n; i++)
		locations[i] = (struct sink_location) { kind, symbols[i].function, symbols[i].file,
							symbols[i].line };
	return ids__locations(naming->opts.ids, frame, locations, n, err);
}

/* Names a frame by the image's own tables, read by one of its runtimes. Returns 1 if there is no
 * name. */
static int name_by_runtime(struct naming *naming, const struct pending *pending, struct err *err)
{
	const struct runtime *const *runtimes = naming->opts.runtimes;
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX];
	int n = 0, i;

	for (i = 0; !n && runtimes[i]; i++)
		if (runtime__has(runtimes[i], files, resolve) && pending->image->runtimes[i].image)
			n = runtimes[i]->files->resolve(pending->image->runtimes[i].image,
							pending->address, symbols);
	if (n < 0)
		return err__set(err, n, "out of memory");
	return n ? write_symbols(naming, pending->frame, KIND_RUNTIME + i - 1, symbols, n, err) : 1;
}

static int add_again(struct naming *naming, const struct pending *pending, struct err *err)
{
	return add(naming, pending) ? err__set(err, -ENOMEM, "out of memory") : 0;
}

static int name_native(struct naming *naming, const struct pending *pending, struct err *err)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n, ret;

	/* While samples are still recorded, a later run can name the frame after the stop. */
	if (stop__is_due() && !naming->last)
		return add_again(naming, pending, err);
	if (stop__is_due() || (naming->opts.hurries && naming->opts.hurries(naming->opts.ctx)))
		return name_by_place(naming, pending, pending->address, err);
	pending->image->places++;
	ret = name_by_runtime(naming, pending, err);
	if (ret <= 0)
		return ret;
	n = symbols__resolve(pending->image->symbols, pending->address, frames, SYMBOL_INLINES_MAX);
	if (n == -EINTR)
		return naming->last ? name_by_place(naming, pending, pending->address, err)
				    : add_again(naming, pending, err);
	if (n == -ENOMEM ||
	    fetched_names__add(&naming->fetched, pending->frame, pending->image, pending->address))
		return err__set(err, -ENOMEM, "out of memory");
	if (n > 0)
		return symbol_frames__write(naming->opts.ids, pending->frame, frames, n, err);
	ret = name_by_map(naming, pending, err);
	return ret == -ENOENT ? name_by_function(naming, pending, err) : ret;
}

static int name_anonymous(struct naming *naming, const struct pending *pending, struct err *err)
{
	char text[120], area[sizeof(pending->path)];
	size_t len;

	snprintf(area, sizeof(area), "%s", pending->path[0] ? pending->path : "anon");
	len = strcspn(area, "]");
	area[len] = '\0'; /* "[stack]" -> "stack" */
	snprintf(text, sizeof(text), "[%s+0x%" PRIx64 "]", area + (area[0] == '['),
		 pending->address);
	return name_one(naming, pending->frame, KIND_NATIVE, text, NULL, 0, err);
}

static int name_jit(struct naming *naming, const struct pending *pending, struct err *err)
{
	return name_one(naming, pending->frame, KIND_NATIVE, pending->path, NULL, 0, err);
}

static int name_lock(struct naming *naming, const struct pending *pending, struct err *err)
{
	return name_one(naming, pending->frame, KIND_KERNEL, pending->path, NULL, 0, err);
}

static int name_runtime(struct naming *naming, const struct pending *pending, struct err *err)
{
	const struct runtime *runtime = naming->opts.runtimes[pending->runtime];
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX];
	int kind = KIND_RUNTIME + pending->runtime, n;

	n = runtime->names->symbolize(naming->opts.sessions[pending->runtime], pending->address,
				      symbols);
	if (n == -ENOMEM)
		return err__set(err, n, "out of memory");
	if (n == -ENOENT && !naming->last)
		return add(naming, pending);
	if (n <= 0)
		return name_one(naming, pending->frame, kind, "[unknown]", NULL, 0, err);
	return write_symbols(naming, pending->frame, kind, symbols, n, err);
}

/* Names pending frames: all, or only those that the maps of process @serial may name if that is not
 * 0. */
static int run(struct naming *naming, uint32_t serial, struct err *err)
{
	static int (*const names[])(struct naming *, const struct pending *, struct err *) = {
		[PENDING_KERNEL] = name_kernel,	      [PENDING_NATIVE] = name_native,
		[PENDING_ANONYMOUS] = name_anonymous, [PENDING_JIT] = name_jit,
		[PENDING_RUNTIME] = name_runtime,     [PENDING_LOCK] = name_lock,
	};
	size_t n = naming->n, i;
	int ret = 0;

	for (i = 0; !ret && i < n; i++) {
		struct pending pending = naming->pending[i]; /* a copy, as the array may move */

		if (serial && (pending.kind != PENDING_NATIVE || pending.serial != serial ||
			       !has_map_names(naming, &pending)))
			ret = add(naming, &pending);
		else
			ret = names[pending.kind](naming, &pending, err);
	}
	naming->n -= n;
	if (naming->n)
		memmove(naming->pending, naming->pending + n, naming->n * sizeof(*naming->pending));
	return ret;
}

int naming__run(struct naming *naming, bool last, struct err *err)
{
	naming->last = last;
	return run(naming, 0, err);
}

void naming__renew(struct naming *naming)
{
	naming->n = 0;
	naming->kernel_unnamed = 0;
	fetched_names__done(&naming->fetched);
}

int naming__process_ended(struct naming *naming, uint32_t serial, struct err *err)
{
	return run(naming, serial, err);
}

int naming__fetch(struct naming *naming, struct fetched_names_stats *ret, struct err *err)
{
	struct debuginfod_wait wait = { naming->opts.hurries, naming->opts.ctx };

	if (naming->fetched.n && naming->opts.on_fetch)
		naming->opts.on_fetch(naming->opts.ctx);
	return fetched_names__run(&naming->fetched, naming->opts.ids, &wait, ret, err);
}
