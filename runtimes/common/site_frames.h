/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SITE_FRAMES_H
#define BRAID_SITE_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/probe_rec.h"
#include "core/base/err.h"
#include "core/unwind/unwind_table.h"
#include "runtimes/common/x86_code.h"
#include "runtimes/runtime.h"

/* Where the anchor of a call is (design fact 5), told from the stack pointer at a probe's site: by
 * the file's unwind rules, and by which functions call which. No process is looked at. */
struct site_frames {
	const struct elf_file *file; /* borrowed */
	struct unwind_table table;
	struct x86_functions functions;
};

/* 0, or a negative errno with the sentence. */
int site_frames__open(const struct elf_file *file, struct site_frames *ret, struct err *err);
void site_frames__done(struct site_frames *frames); /* idempotent */

/* The function that the address is in, as frame descriptions tell it; NULL: none. */
const struct runtime_range *site_frames__function(const struct site_frames *frames, uint64_t vaddr);

/* Sets the record's anchor to the last word, or (`outside`) to the end, of the frame that the
 * address is in. -ENOTSUP: no simple rule. */
int site_frames__own(const struct site_frames *frames, uint64_t vaddr, bool outside,
		     struct probe_rec *rec, struct err *err);

/* As that with `outside`, of a file that is not opened so: quicker, where nothing else is asked. */
int site_frame__end(const struct elf_file *file, uint64_t vaddr, struct probe_rec *rec,
		    struct err *err);

/* Sets the record's anchor to the stack pointer of the outermost of the interpreter loop's
 * functions (`loops`) where it calls the next: the address is in that function itself, or in one
 * that it comes to by direct calls alone, always by the same way as far as frames' sizes go.
 * -ENOTSUP: it does not, or not always. -ENOENT: nothing calls the address's function directly. */
int site_frames__loop(const struct site_frames *frames, uint64_t vaddr,
		      const struct runtime_range *loops, size_t n_loops, struct probe_rec *rec,
		      struct err *err);

#endif
