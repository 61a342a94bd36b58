// SPDX-License-Identifier: GPL-2.0-or-later
/* Follows all control flow of a function from its entry and from its landing pads, instruction
 * by instruction.
 *
 *   part      The bytes that one frame description, or a symbol with a size, calls a function. The
 *             function's own part is first. A compiler moves cold code to a separate part, and a
 *             call at the end of a function becomes a jump to another function's part (a tail
 *             call). Both are followed.
 *   proof     Every reachable instruction is decoded, in a part whose bounds are proven. Every jump
 *             leads to the beginning of a decoded instruction. A jump through a table leads to all
 *             entries of the table, up to the bound before the jump. Flow ends at `ret`, at a trap,
 *             or after a call at the end of a part, which does not return. Code that no description
 *             and no symbol covers is followed as well.
 *   refusal   Anything else: a jump to an address from a register, bytes that are no instruction, a
 *             return address that the code writes itself. Jumps to other libraries are listed.
 *
 * Code that is not reached is not probed: it may be data. A return in another function's part
 * ends calls of that function as well, so it is @shared. */
#include "core/insn/function_returns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/cfi_reader.h"
#include "core/elf/plt.h"
#include "core/insn/insn_steps.h"

#define PARTS_MAX      32
#define PART_BYTES_MAX (512 << 10)
#define ALL_BYTES_MAX  (1 << 20)
#define LSDA_BYTES     (64 << 10) /* bytes of one part's language-specific data */
#define PADS_MAX       4096
#define TABLE_BACK     256 /* steps from a jump back to the load of its table's address */
#define BOUND_BACK     48  /* steps from a jump back to its bound */
#define CASES_MAX      4096
#define LABELS	       256

struct part {
	struct function_extent extent;
	struct insn_steps steps;
	bool *seen; /* visited, by step */
	bool own;   /* no other function ends here */
};

struct place {
	uint32_t part, step;
};

struct search {
	const struct function_map *map;
	const struct elf_file *file;
	struct function_returns *returns;
	bool through_stubs;
	uint64_t labels; /* address of an interpreter's table of labels; 0: not found */
	bool labels_visited;
	struct part parts[PARTS_MAX];
	size_t n_parts;
	uint64_t bytes;
	struct place *todo;
	size_t n_todo, cap_todo;
	struct err *why;
};

/* --- control flow --- */

#define REFUSE(search, ...) err__set((search)->why, -ENOTSUP, __VA_ARGS__)

static int add_part(struct search *search, const struct function_extent *extent, bool own,
		    struct part **ret_part)
{
	struct part *part = &search->parts[search->n_parts];
	uint64_t bytes = extent->end - extent->start;
	int ret;

	if (search->n_parts == PARTS_MAX || bytes > PART_BYTES_MAX ||
	    !fits_in(search->bytes, bytes, ALL_BYTES_MAX))
		return REFUSE(search, "it is too large to be analyzed");
	search->bytes += bytes;
	*part = (struct part) { .extent = *extent, .own = own };
	search->n_parts++;
	ret = insn_steps__read(&part->steps, search->file, extent->start, extent->end);
	if (ret == -ENOMEM)
		return ret;
	part->seen = calloc(part->steps.n + 1, sizeof(*part->seen));
	if (!part->seen)
		return -ENOMEM;
	if (own && function_map__has_entry(search->map, extent))
		part->own = false;
	*ret_part = part;
	return 0;
}

/* Adds the part that contains @vaddr, which no part contains yet. Code that the file does not
 * describe (internal functions of a stripped library without frame descriptions) is added from
 * @vaddr on. */
static int enter_part(struct search *search, uint64_t vaddr, bool own, struct part **ret_part)
{
	const struct function_extent *extent = function_map__find(search->map, vaddr);
	struct function_extent gap;

	if (extent)
		return add_part(search, extent, own && vaddr != extent->start, ret_part);
	if (!function_map__gap(search->map, vaddr, &gap))
		return REFUSE(search, "it jumps to 0x%llx, which is not code",
			      (unsigned long long)vaddr);
	for (size_t i = 0; i < search->n_parts; i++)
		if (search->parts[i].extent.start > vaddr)
			gap.end = min_of(gap.end, search->parts[i].extent.start);
	return add_part(search, &gap, false, ret_part);
}

/* Visits the instruction at @vaddr. @own: the flow comes from a part in which no other function
 * ends. A part that is entered at its beginning may be another function, whatever the value of
 * @own. */
static int visit(struct search *search, uint64_t vaddr, bool own)
{
	struct part *part = NULL;
	struct insn_step *step;
	size_t at;
	int ret = 0;

	for (size_t i = 0; i < search->n_parts && !part; i++)
		if (vaddr >= search->parts[i].extent.start && vaddr < search->parts[i].extent.end)
			part = &search->parts[i];
	if (!part)
		ret = enter_part(search, vaddr, own, &part);
	if (ret)
		return ret;
	step = insn_steps__at(&part->steps, vaddr);
	if (!step)
		return REFUSE(search, "it jumps into the middle of an instruction at 0x%llx",
			      (unsigned long long)vaddr);
	at = step - part->steps.list;
	if (part->seen[at])
		return 0;
	part->seen[at] = true;
	if (array__reserve(&search->todo, &search->cap_todo, search->n_todo + 1,
			   sizeof(*search->todo)))
		return -ENOMEM;
	search->todo[search->n_todo++] = (struct place) { part - search->parts, at };
	return 0;
}

/* Returns true if the code wrote the return address of the return @at. Such a return is a jump to
 * an arbitrary address. */
static bool writes_return(const struct part *part, size_t at)
{
	const struct insn_step *before = &part->steps.list[at] - 1;

	return at && before->vaddr + before->size == before[1].vaddr &&
	       (before->op == INSN_PUSH || (before->op == INSN_STORE && !before->value));
}

/* Returns true for a plain `ret`, also with a prefix for branch prediction or MPX. */
static bool is_near_return(const struct elf_file *file, const struct insn_step *step)
{
	uint8_t code[2] = {};

	if (step->size > sizeof(code) || elf_file__read(file, step->vaddr, code, step->size))
		return false;
	return step->size == 1 ? code[0] == 0xc3
			       : (code[0] == 0xf3 || code[0] == 0xf2) && code[1] == 0xc3;
}

static int take_return(struct search *search, const struct part *part, size_t at)
{
	const struct insn_step *step = &part->steps.list[at];
	struct function_returns *returns = search->returns;

	if (!is_near_return(search->file, step) || writes_return(part, at))
		return REFUSE(search, "it returns by other means than `ret`");
	if (returns->n == FUNCTION_RETURNS_MAX)
		return REFUSE(search, "it returns at more than %d places", FUNCTION_RETURNS_MAX);
	returns->list[returns->n++] = step->vaddr;
	returns->shared |= !part->own;
	return 0;
}

static int take_jump(struct search *search, const struct part *part, const struct insn_step *step)
{
	struct function_returns *returns = search->returns;

	if (returns->n_jumps == FUNCTION_RETURNS_MAX)
		return REFUSE(search, "it ends at more than %d places", FUNCTION_RETURNS_MAX);
	returns->jumps[returns->n_jumps++] = step->vaddr;
	returns->shared |= !part->own;
	return 0;
}

/* Follows an unconditional jump. */
static int follow_jump(struct search *search, const struct part *part, const struct insn_step *step)
{
	uint64_t to = step->target;

	if (!plt__is_stub(search->file, to))
		return visit(search, to, part->own);
	to = search->through_stubs ? plt__own_function(search->file, to) : 0;
	return to ? visit(search, to, false) : take_jump(search, part, step);
}

static bool is_in_parts(const struct search *search, uint64_t vaddr)
{
	for (size_t i = 0; i < search->n_parts; i++)
		if (insn_steps__at(&search->parts[i].steps, vaddr))
			return true;
	return false;
}

/* Returns case @i of a table of addresses (@wide) or of distances from the table; 0: unreadable. */
static uint64_t read_case(const struct search *search, uint64_t table, bool wide, size_t i)
{
	uint64_t address;
	int32_t distance;

	if (wide)
		return function_map__pointer(search->map, table + i * sizeof(address), &address)
			       ? address
			       : 0;
	return elf_file__read(search->file, table + i * sizeof(distance), &distance,
			      sizeof(distance))
		       ? 0
		       : table + distance;
}

/* Returns true if the first @n cases are addresses in functions, and at least one of them is in a
 * part found so far. */
static bool is_table(const struct search *search, uint64_t table, bool wide, size_t n)
{
	bool near = false;

	for (size_t i = 0; i < n; i++) {
		uint64_t to = read_case(search, table, wide, i);

		if (!to || !function_map__find(search->map, to))
			return false;
		near = near || is_in_parts(search, to);
	}
	return near;
}

/* Visits the cases of a table, which may be larger than the bound @n. Further cases count as long
 * as they are in parts found so far. */
static int visit_table(struct search *search, const struct part *part, uint64_t table, bool wide,
		       size_t n)
{
	bool own = part->own;
	int ret = 0;

	for (size_t i = 0; !ret && i < CASES_MAX; i++) {
		uint64_t to = read_case(search, table, wide, i);

		if (i >= n && (!to || !is_in_parts(search, to)))
			break;
		ret = visit(search, to, own);
	}
	return ret;
}

/* Returns true if all words of the table are addresses in parts found so far, and none is that of
 * the function's start. */
static bool is_label_table(const struct search *search, uint64_t table)
{
	for (size_t i = 0; i < LABELS; i++) {
		uint64_t to = read_case(search, table, true, i);

		if (to == search->parts[0].extent.start || !is_in_parts(search, to))
			return false;
	}
	return true;
}

/* Follows a jump by a table of labels. Interpreters jump with it from the code of one instruction
 * to the code of the next. A byte of the program is the index, so there are 256 labels. A jump
 * after the epilogue is a tail call instead. Returns 0, 1 if it
 * is another kind of jump, or a negative errno. */
static int take_labels(struct search *search, const struct part *part, size_t at)
{
	const struct insn_step *step = &part->steps.list[at], *before = step - !!at;

	if (before->op == INSN_POP || before->op == INSN_MOVE || before->op == INSN_LEAVE ||
	    before->op == INSN_LOAD)
		return 1;
	for (size_t i = 0; !search->labels && i < part->steps.n; i++)
		if (part->steps.list[i].op == INSN_TABLE &&
		    is_label_table(search, part->steps.list[i].target))
			search->labels = part->steps.list[i].target;
	if (!search->labels && step->target && is_label_table(search, step->target))
		search->labels = step->target;
	if (!search->labels)
		return 1;
	if (search->labels_visited)
		return 0;
	search->labels_visited = true;
	return visit_table(search, part, search->labels, true, LABELS);
}

/* Follows the jump of a compiler's switch: cmp $N,%a; ja ...; lea table(%rip),%b; movslq
 * (%b,%a,4),%a; add %b,%a; jmp *%a. At a fixed address it is jmp *table(,%a,8). */
static int take_table(struct search *search, const struct part *part, size_t at)
{
	const struct insn_step *step = &part->steps.list[at];
	size_t n = 0;
	int ret;

	for (size_t back = 1; back <= min_of(at, (size_t)BOUND_BACK) && !n; back++) {
		const struct insn_step *bound = step - back;

		if (bound->op == INSN_BOUND && bound->value >= 0 && bound->value < CASES_MAX)
			n = bound->value + 1;
		else if (bound->op == INSN_SWITCH)
			break;
	}
	if (n && step->target && is_table(search, step->target, true, n))
		return visit_table(search, part, step->target, true, n);
	for (size_t back = 1; n && !step->target && back <= min_of(at, (size_t)TABLE_BACK);
	     back++) {
		const struct insn_step *table = step - back;

		if (table->op == INSN_TABLE && !is_in_parts(search, table->target) &&
		    is_table(search, table->target, false, n))
			return visit_table(search, part, table->target, false, n);
	}
	ret = take_labels(search, part, at);
	if (ret <= 0)
		return ret;
	return REFUSE(search, "it jumps to a computed address, at 0x%llx",
		      (unsigned long long)step->vaddr);
}

/* Visits the next instruction. */
static int go_on(struct search *search, const struct part *part, size_t at)
{
	const struct insn_step *step = &part->steps.list[at];
	uint64_t next = step->vaddr + step->size;

	if (step->op == INSN_CALL && next >= part->extent.end)
		return 0; /* the call does not return, as no code follows it */
	return visit(search, next, part->own);
}

static int follow(struct search *search, const struct place *place)
{
	struct part *part = &search->parts[place->part];
	const struct insn_step *step = &part->steps.list[place->step];
	bool own = part->own;
	int ret;

	switch (step->op) {
	case INSN_RETURN:
		return take_return(search, part, place->step);
	case INSN_JUMP:
		return follow_jump(search, part, step);
	case INSN_BRANCH:
		ret = visit(search, step->target, own);
		return ret ? ret : go_on(search, part, place->step);
	case INSN_SWITCH:
		return take_table(search, part, place->step);
	case INSN_TAIL:
		return own ? take_jump(search, part, step)
			   : REFUSE(search, "it may jump to a function of another library");
	case INSN_SIGNAL:
		return REFUSE(search, "it is a signal handler's return");
	case INSN_STOP:
		return step->unknown ? REFUSE(search, "its bytes at 0x%llx are not an instruction",
					      (unsigned long long)step->vaddr)
				     : 0;
	default:
		return go_on(search, part, place->step);
	}
}

/* --- exception handlers --- */

/* Visits the landing pads in the call-site table of the LSDA that GCC and Clang emit (libstdc++'s
 * unwind-c's format). */
static int visit_pads(struct search *search, const struct part *part, uint8_t *data)
{
	const struct elf_file *file = search->file;
	struct cfi_reader in = { .at = data };
	uint64_t base = part->extent.start, bias = part->extent.lsda - (uintptr_t)data, pad;
	size_t size = LSDA_BYTES, n = 0;
	uint8_t encoding;
	int ret = 0;

	while (size && elf_file__read(file, part->extent.lsda, data, size))
		size /= 2; /* the end of the section is near */
	in.end = data + size;
	encoding = cfi_reader__uint(&in, 1);
	if (encoding != DW_EH_PE_omit)
		base = cfi_reader__address(&in, encoding, bias);
	if (cfi_reader__uint(&in, 1) != DW_EH_PE_omit)
		cfi_reader__uleb(&in);
	encoding = cfi_reader__uint(&in, 1);
	size = cfi_reader__uleb(&in);
	if (in.bad || size > (size_t)(in.end - in.at))
		return REFUSE(search, "its table of exception handlers is malformed");
	in.end = in.at + size;
	while (!ret && in.at < in.end && n++ < PADS_MAX) {
		cfi_reader__encoded(&in, encoding);
		cfi_reader__encoded(&in, encoding);
		pad = cfi_reader__encoded(&in, encoding);
		cfi_reader__uleb(&in);
		if (pad && !in.bad)
			ret = visit(search, base + pad, part->own);
	}
	if (!ret && (in.bad || in.at < in.end))
		return REFUSE(search, "its table of exception handlers is malformed");
	return ret;
}

static int visit_handlers(struct search *search, size_t at)
{
	const struct part *part = &search->parts[at];
	uint8_t *data;
	int ret;

	if (!part->extent.lsda)
		return 0;
	data = malloc(LSDA_BYTES);
	ret = data ? visit_pads(search, part, data) : -ENOMEM;
	free(data);
	return ret;
}

/* --- */

static int run(struct search *search)
{
	size_t handled = 0;
	int ret = 0;

	while (!ret && (search->n_todo || handled < search->n_parts)) {
		if (search->n_todo) {
			struct place place = search->todo[--search->n_todo];

			ret = follow(search, &place);
		} else {
			ret = visit_handlers(search, handled++);
		}
	}
	return ret;
}

static int search_all(struct search *search, uint64_t vaddr)
{
	const struct function_extent *extent = function_map__find(search->map, vaddr);
	struct part *part;
	int ret;

	if (!extent || extent->start != vaddr)
		return REFUSE(search, "the file does not contain its end");
	ret = add_part(search, extent, true, &part);
	if (!ret)
		ret = visit(search, vaddr, true);
	if (!ret)
		ret = run(search);
	return ret;
}

static struct search *search__new(const struct function_map *map, bool through_stubs,
				  struct function_returns *returns, struct err *why)
{
	struct search *search = calloc(1, sizeof(*search));

	*returns = (struct function_returns) {};
	if (search) {
		search->map = map;
		search->file = function_map__file(map);
		search->returns = returns;
		search->through_stubs = through_stubs;
		search->why = why;
	}
	return search;
}

static void search__free(struct search *search)
{
	if (!search)
		return;
	for (size_t i = 0; i < search->n_parts; i++) {
		insn_steps__done(&search->parts[i].steps);
		free(search->parts[i].seen);
	}
	free(search->todo);
	free(search);
}

int function_returns__find(const struct function_map *map, uint64_t vaddr, bool through_stubs,
			   struct function_returns *returns, struct err *why)
{
	struct search *search = search__new(map, through_stubs, returns, why);
	int ret = search ? search_all(search, vaddr) : -ENOMEM;

	if (!ret && !returns->n && !returns->n_jumps)
		ret = REFUSE(search, "it never returns");
	search__free(search);
	if (ret)
		returns->n = returns->n_jumps = 0;
	return ret == -ENOMEM ? err__set(why, ret, "out of memory") : ret;
}

static bool has_come_to(const struct search *search, uint64_t vaddr)
{
	for (size_t i = 0; i < search->n_parts; i++) {
		const struct part *part = &search->parts[i];
		const struct insn_step *step = insn_steps__at(&part->steps, vaddr);

		if (step && part->seen[step - part->steps.list])
			return true;
	}
	return false;
}

int function_returns__end_elsewhere(const struct function_map *map, uint64_t vaddr,
				    const uint64_t *others, size_t n)
{
	struct function_returns returns;
	struct err why;
	struct search *search = search__new(map, true, &returns, &why);
	int ret = search ? search_all(search, vaddr) : -ENOMEM;

	for (size_t i = 0; ret != -ENOMEM && search && i < n; i++)
		if (others[i] != vaddr && has_come_to(search, others[i]))
			ret = 1;
	if (!ret)
		ret = returns.n_jumps > 0;
	search__free(search);
	return ret;
}
