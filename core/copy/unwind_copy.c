// SPDX-License-Identifier: GPL-2.0-or-later
/* The second unwinder: libunwind over a copy of a thread's stack.
 *
 * The kernel half sends the registers and the stack where its table ends: at a library that was
 * just loaded, or a rule that it cannot express. This file unwinds that stack later, from the files
 * alone. libunwind supports such "remote" unwinding by callbacks. It reads the same information
 * independently, so the tests use it as an oracle. Three points need care:
 *
 * - libunwind finds call frame information by callbacks into memory of the process, which does not
 *   exist here. core/copy/unwind_copy_image.c rewrites each requested entry into one buffer at
 *   addresses that no process has (TEXT_BASE), and explains the reason.
 * - Without information libunwind would guess, so the callback reports an invalid address instead.
 *   In code without an image, step_frame_pointer() follows the frame pointer, with the right CFA,
 *   and marks the frame as inferred.
 * - libunwind has no bound of its own. FRAME_READS_MAX limits the reads of a frame. LOWERED_MAX
 *   limits the steps to a frame that is not above its inner frame, as in functions that switched to
 *   a higher stack. */
#include "core/copy/unwind_copy.h"

#include <errno.h>
#include <libunwind-x86_64.h>
#include <string.h>

#include "core/base/util.h"
#include "core/copy/unwind_copy_image.h"

/* exported by libunwind for perf, without a declaration */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* Address at which libunwind reads the rewritten call frame information; no address of a process.
 */
#define TEXT_BASE (1ULL << 62)

/* Limit of the words that one frame may read. DWARF expressions can loop. */
#define FRAME_READS_MAX 100000

#define LOWERED_MAX 16 /* steps to a lower stack */

struct unwind_copy {
	unw_addr_space_t as;
	unwind_copy_find_fn find;
	void *find_ctx;
	struct unwind_image *images;
	size_t n_images, cap_images;
	struct unwind_text text;
	/* the run in progress */
	const struct unwind_copy_input *input;
	uint64_t regs[UNWIND_REGS];
	unsigned int n_reads;
	bool no_image;		/* the last step failed because no image contains the code */
	unsigned int n_lowered; /* steps to a lower stack */
	bool no_memory;
};

/* --- images --- */

static struct unwind_image *find_mapped(struct unwind_copy *copy, uint64_t ip)
{
	for (size_t i = 0; i < copy->n_images; i++) {
		struct unwind_image *image = &copy->images[i];

		if (image->mapped && ip >= image->start && ip < image->end)
			return image;
	}
	return NULL;
}

static struct unwind_image *find_existing(struct unwind_copy *copy, const struct elf_file *file,
					  uint64_t bias)
{
	for (size_t i = 0; i < copy->n_images; i++) {
		struct unwind_image *image = &copy->images[i];

		if (image->file == file && image->bias == bias)
			return image;
	}
	return NULL;
}

static int get_image(struct unwind_copy *copy, uint64_t ip, struct unwind_image **ret)
{
	struct unwind_image *image = find_mapped(copy, ip);
	struct unwind_copy_place place = {};
	const struct elf_file *file;
	int rc = 0;

	if (image)
		goto out;
	file = copy->find(copy->find_ctx, ip, &place);
	if (!file)
		return -ENOENT;
	image = find_existing(copy, file, place.bias);
	if (image) {
		image->mapped = true;
		goto out;
	}
	rc = array__reserve(&copy->images, &copy->cap_images, copy->n_images + 1,
			    sizeof(*copy->images));
	if (rc)
		return rc;
	image = &copy->images[copy->n_images];
	rc = unwind_image__init(image, file, place.bias);
	if (rc)
		return rc;
	image->own_start = place.own_start + place.bias;
	image->own_end = place.own_end + place.bias;
	copy->n_images++;
out:
	if (!rc)
		*ret = image;
	return rc;
}

/* --- callbacks of libunwind --- */

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi,
			  int need_unwind_info, void *arg)
{
	unw_dyn_info_t di = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };
	struct unwind_copy *copy = arg;
	struct unwind_image *image;
	size_t text_at;
	int rc;

	rc = get_image(copy, ip, &image);
	copy->no_image = rc == -ENOENT;
	if (!rc && ip >= image->own_start && ip < image->own_end)
		rc = -ENOENT;
	if (!rc)
		rc = unwind_image__describe(image, ip, &copy->text, &text_at);
	if (rc) {
		copy->no_memory = rc == -ENOMEM;
		/* With UNW_ENOINFO libunwind would follow rbp, but with a wrong CFA. */
		return -UNW_EINVALIDIP;
	}
	di.start_ip = image->start;
	di.end_ip = image->end;
	di.u.rti.segbase = TEXT_BASE + text_at;
	di.u.rti.table_data = di.u.rti.segbase;
	di.u.rti.table_len = 1; /* words: one entry */
	rc = UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need_unwind_info, arg);
	return rc == -UNW_ENOINFO ? -UNW_EINVALIDIP : rc;
}

static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as, (void)pi, (void)arg;
}

static int get_dyn_info_list_addr(unw_addr_space_t as, unw_word_t *dil_addr, void *arg)
{
	(void)as, (void)dil_addr, (void)arg;
	return -UNW_ENOINFO;
}

static bool read_word(const void *bytes, uint64_t start, size_t size, uint64_t addr,
		      uint64_t *ret_word)
{
	if (size < sizeof(*ret_word) || addr < start || addr - start > size - sizeof(*ret_word))
		return false;
	memcpy(ret_word, (const char *)bytes + (addr - start), sizeof(*ret_word));
	return true;
}

static bool read_stack(const struct unwind_copy *copy, uint64_t addr, uint64_t *ret_word)
{
	const struct unwind_copy_input *input = copy->input;

	return read_word(input->stack, input->stack_start, input->stack_size, addr, ret_word);
}

/* Reads a word of the rewritten information or of the stack copy. Does not read the files: the
 * process may have other bytes in their place. A return address that is not on the stack is not
 * valid. */
static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *valp, int write, void *arg)
{
	struct unwind_copy *copy = arg;

	(void)as;
	if (write || copy->n_reads++ >= FRAME_READS_MAX)
		return -UNW_EINVAL;
	if (read_word(copy->text.bytes, TEXT_BASE, copy->text.n, addr, valp) ||
	    read_stack(copy, addr, valp))
		return 0;
	return -UNW_EINVAL;
}

/* Reads a register. libunwind uses DWARF's register numbers. */
static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *valp, int write, void *arg)
{
	const struct unwind_copy *copy = arg;

	(void)as;
	if (write || reg < 0 || reg >= UNWIND_REGS)
		return -UNW_EBADREG;
	*valp = copy->regs[reg];
	return 0;
}

static int access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *valp, int write,
			void *arg)
{
	(void)as, (void)reg, (void)valp, (void)write, (void)arg;
	return -UNW_EBADREG;
}

static int resume(unw_addr_space_t as, unw_cursor_t *cursor, void *arg)
{
	(void)as, (void)cursor, (void)arg;
	return -UNW_EINVAL;
}

/* --- life --- */

int unwind_copy__new(unwind_copy_find_fn find, void *ctx, struct unwind_copy **ret)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = get_dyn_info_list_addr,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = access_fpreg,
		.resume = resume,
	};
	struct unwind_copy *copy = calloc(1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	copy->find = find;
	copy->find_ctx = ctx;
	copy->as = unw_create_addr_space(&accessors, 0);
	if (!copy->as) {
		free(copy);
		return -ENOMEM;
	}
	/* Its cache does not distinguish a return address from an interrupted address, for which
	 * other rules may apply. It saves little (1.4 us a frame without it, 0.6 us with it). */
	unw_set_caching_policy(copy->as, UNW_CACHE_NONE);
	*ret = copy;
	return 0;
}

void unwind_copy__free(struct unwind_copy *copy)
{
	if (!copy)
		return;
	for (size_t i = 0; i < copy->n_images; i++)
		unwind_image__done(&copy->images[i]);
	free(copy->images);
	free(copy->text.bytes);
	unw_destroy_addr_space(copy->as);
	free(copy);
}

void unwind_copy__flush(struct unwind_copy *copy)
{
	for (size_t i = 0; i < copy->n_images; i++)
		copy->images[i].mapped = false;
}

/* --- the run --- */

/* Leaves code without call frame information as if it had a frame pointer. Restarts the cursor in
 * the caller, one byte before the return address. libunwind uses the address of a cursor's first
 * frame unchanged, and not as an address after a call. */
static int step_frame_pointer(struct unwind_copy *copy, unw_cursor_t *cursor, uint64_t *ret_ip)
{
	uint64_t rbp, sp, caller_rbp, ip;

	if (unw_get_reg(cursor, UNW_X86_64_RBP, &rbp) || unw_get_reg(cursor, UNW_REG_SP, &sp))
		return -EINVAL;
	if (rbp < sp || !read_stack(copy, rbp, &caller_rbp) || !read_stack(copy, rbp + 8, &ip))
		return -EFAULT;
	for (int reg = 0; reg < UNWIND_REGS; reg++) {
		uint64_t value;

		copy->regs[reg] = unw_get_reg(cursor, reg, &value) ? 0 : value;
	}
	copy->regs[UNWIND_REG_RBP] = caller_rbp;
	copy->regs[UNWIND_REG_RSP] = rbp + 16;
	copy->regs[UNW_X86_64_RIP] = ip - 1;
	if (unw_init_remote(cursor, copy->as, copy))
		return -EINVAL;
	*ret_ip = ip;
	return 1;
}

/* Steps to the caller, as unw_step(). Returns a positive value if there is a caller, 0 if the
 * return address is undefined, or a negative errno. */
static int step(struct unwind_copy *copy, unw_cursor_t *cursor, uint64_t *ret_ip, uint64_t *ret_sp,
		bool *ret_inferred)
{
	uint64_t before, after;
	int rc;

	copy->n_reads = 0;
	copy->no_image = false;
	*ret_inferred = false;
	if (unw_get_reg(cursor, UNW_REG_SP, &before))
		return -EINVAL;
	rc = unw_step(cursor);
	if (rc > 0) {
		rc = unw_get_reg(cursor, UNW_REG_IP, ret_ip) ? -EINVAL : 1;
	} else if (copy->no_image) {
		rc = step_frame_pointer(copy, cursor, ret_ip);
		*ret_inferred = true;
	}
	if (rc <= 0)
		return rc;
	if (unw_get_reg(cursor, UNW_REG_SP, &after))
		return -EINVAL;
	/* A signal may have arrived on another stack, and code may have switched to another stack.
	 * unw_is_signal_frame() describes the frame that was left, not the frame that was reached.
	 */
	if (after <= before && unw_is_signal_frame(cursor) <= 0 &&
	    (after == before || *ret_inferred || copy->n_lowered++ >= LOWERED_MAX))
		return -ELOOP;
	*ret_sp = after;
	return *ret_ip ? 1 : -ENOENT;
}

int unwind_copy__run(struct unwind_copy *copy, const struct unwind_copy_input *input,
		     struct unwind_copy_frame *ret_frames, size_t max, bool *ret_complete)
{
	unw_cursor_t cursor;
	bool exact = true, inferred = false, any = false;
	uint64_t ip, sp;
	size_t n = 0;
	int rc;

	copy->input = input;
	copy->no_memory = false;
	copy->n_lowered = 0;
	memcpy(copy->regs, input->regs, sizeof(copy->regs));
	ip = copy->regs[UNW_X86_64_RIP];
	rc = unw_init_remote(&cursor, copy->as, copy) ? -EINVAL : 1;
	while (rc > 0 && n < max) {
		ret_frames[n++] = (struct unwind_copy_frame) { .ip = ip,
							       .exact = exact,
							       .inferred = inferred };
		any |= inferred;
		rc = step(copy, &cursor, &ip, &sp, &inferred);
		exact = unw_is_signal_frame(&cursor) > 0; /* describes the frame that was left */
		ret_frames[n - 1].exact |= exact;
		if (rc > 0)
			ret_frames[n - 1].cfa = sp;
	}
	copy->input = NULL;
	if (copy->no_memory)
		return -ENOMEM;
	*ret_complete = rc == 0 && !any;
	return n;
}
