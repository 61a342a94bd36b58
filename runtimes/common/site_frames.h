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

/* Computes the anchor of a call (design fact 5) from the stack pointer at a probe's site: from the
 * file's unwind rules, and from the calls between its functions. Reads the file only. */
struct site_frames {
	const struct elf_file *file; /* borrowed */
	struct unwind_table table;
	struct x86_functions functions;
};

/* Returns 0, or a negative errno with the message in @err. */
int site_frames__open(const struct elf_file *file, struct site_frames *ret, struct err *err);
void site_frames__done(struct site_frames *frames); /* idempotent */

/* Returns the function around the address by the frame descriptions, or NULL if there is none. */
const struct runtime_range *site_frames__function(const struct site_frames *frames, uint64_t vaddr);

/* Sets the record's anchor to the last word, or (`outside`) to the end, of the frame that the
 * address is in. Returns -ENOTSUP if the frame has no simple rule. */
int site_frames__own(const struct site_frames *frames, uint64_t vaddr, bool outside,
		     struct probe_rec *rec, struct err *err);

/* As site_frames__own() with `outside`, for a file without a struct site_frames: quicker for a
 * single lookup. */
int site_frame__end(const struct elf_file *file, uint64_t vaddr, struct probe_rec *rec,
		    struct err *err);

/* Sets the record's anchor to the stack pointer of the outermost function of the interpreter loop
 * (`loops`) where that function calls the next one. The address must be in that function, or in one
 * that it reaches by direct calls. All ways must have the same sum of frame sizes. Returns 0;
 * -ENOTSUP if that does not hold; -ENOENT if nothing calls the address's function directly. */
int site_frames__loop(const struct site_frames *frames, uint64_t vaddr,
		      const struct runtime_range *loops, size_t n_loops, struct probe_rec *rec,
		      struct err *err);

#endif
