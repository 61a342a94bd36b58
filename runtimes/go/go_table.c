// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_words.h"

/* src/debug/gosym/pclntab.go: go116magic, go118magic, go120magic. */
static const uint32_t magics[GO_LAYOUTS_N] = {
	[GO_116] = 0xfffffffa,
	[GO_118] = 0xfffffff0,
	[GO_120] = 0xfffffff1,
};

#define FUNCTIONS_MAX	    (1U << 24)
#define TEXT_MAX	    65536 /* bytes of a name; instances of generic functions have long ones */
#define HEADER_BYTES	    80
#define HEADER_TEXT	    24
#define TRIED_MAX	    16 /* possible headers in a file; checking each may read the whole file */
#define SAMPLED_MAX	    64	  /* functions that is_sound() checks, spread over the table */
#define FUNCTION_VALUES_MAX 64	  /* kinds of values of a function; Go has 4 */
#define VALUES_MAX	    65536 /* changes of one value within a function */
#define SEGMENT_MAX	    (1ULL << 30)
#define ALIGNMENT	    8 /* bytes, of the header; the linker aligns to 32 */

/* Offsets of minpc and text in struct moduledata, src/runtime/symtab.go. */
#define MODULE_MIN_PC 160
#define MODULE_TEXT   176

/* Offsets of the fields of struct _func (src/runtime/runtime2.go) from Go 1.18 on, where the field
 * `entry` has 4 bytes. Earlier versions have 8 bytes there. */
enum {
	FUNCTION_NAME = 4,
	FUNCTION_SP = 16,
	FUNCTION_FILE = 20,
	FUNCTION_LINE = 24,
	FUNCTION_N_VALUES = 28,
	FUNCTION_UNIT = 32,
	FUNCTION_BYTES = 40, /* its last byte is the number of data */
};

static bool read_at(const struct go_table *table, size_t at, void *ret, size_t size)
{
	if (at > table->size || size > table->size - at)
		return false;
	memcpy(ret, table->bytes + at, size);
	return true;
}

bool go_table__u32(const struct go_table *table, size_t at, uint32_t *ret)
{
	return read_at(table, at, ret, sizeof(*ret));
}

const char *go_table__text(const struct go_table *table, size_t from, int64_t offset)
{
	size_t at = from + offset;

	if (offset < 0 || at < from || at >= table->size)
		return NULL;
	return memchr(table->bytes + at, 0, min_of(table->size - at, (size_t)TEXT_MAX))
		       ? (const char *)table->bytes + at
		       : NULL;
}

/* --- the header --- */

static bool is_code(const struct elf_file *file, uint64_t vaddr)
{
	for (size_t i = 0; i < file->n_segments; i++)
		if (file->segments[i].exec && vaddr >= file->segments[i].vaddr &&
		    vaddr - file->segments[i].vaddr < file->segments[i].filesz)
			return true;
	return false;
}

static const uint8_t header_rest[] = { 0, 0, 1, 8 };

/* struct pcHeader of src/runtime/symtab.go: magic, 0, 0, 1, 8, then words. */
static bool read_header(struct go_table *table, uint64_t words[9])
{
	uint32_t magic;
	int i = 0;

	if (!go_table__u32(table, 0, &magic) || !read_at(table, 8, words, 9 * sizeof(*words)) ||
	    memcmp(table->bytes + 4, header_rest, sizeof(header_rest)) != 0)
		return false;
	while (i < GO_LAYOUTS_N && magics[i] != magic)
		i++;
	table->layout = i;
	return i < GO_LAYOUTS_N;
}

/* Reads the address from the relocations, for position-independent files. */
static bool relocated(const struct elf_file *file, uint64_t vaddr, uint64_t *ret)
{
	struct elf_words *words;
	bool found;

	if (file->type != ET_DYN || elf_words__open(file, &words))
		return false;
	found = elf_words__get(words, vaddr, ret);
	elf_words__free(words);
	return found;
}

bool go_table__module_words(const struct elf_file *file, const struct go_table *table,
			    size_t offset, uint64_t *ret, size_t n_ret)
{
	uint64_t at, n, word;
	struct elf_words *words;
	bool found = false;

	if (elf_words__open(file, &words))
		return false;
	for (size_t i = 0; !found && elf_words__writable(words, i, &at, &n); i++)
		for (; !found && n && !quota__look_at(n); n--, at += 8) {
			found = elf_words__get(words, at, &word) && word == table->vaddr &&
				elf_words__get(words, at + 8, &word) &&
				word == table->vaddr + table->names_at;
			for (size_t k = 0; found && k < n_ret; k++)
				if (!elf_words__get(words, at + offset + 8 * k, &ret[k]))
					ret[k] = 0;
		}
	elf_words__free(words);
	return found;
}

/* Returns the text address of struct moduledata, or 0 if the first function does not start at its
 * minpc: then the structure is of an unknown version. */
static uint64_t module_text(const struct elf_file *file, const struct go_table *table)
{
	uint64_t words[(MODULE_TEXT - MODULE_MIN_PC) / 8 + 1];
	uint64_t min_pc, *text = &words[ARRAY_SIZE(words) - 1];
	uint32_t first;

	if (!go_table__module_words(file, table, MODULE_MIN_PC, words, ARRAY_SIZE(words)))
		return 0;
	min_pc = words[0];
	return go_table__u32(table, table->functions_at, &first) && *text + first == min_pc ? *text
											    : 0;
}

/* The address that entries count from: in the header, of a file that may be loaded anywhere by its
 * relocations. From Go 1.26 on only the runtime's own data has it. */
static bool find_text(const struct elf_file *file, struct go_table *table)
{
	if (!table->text && !relocated(file, table->vaddr + HEADER_TEXT, &table->text))
		table->text = 0;
	if (!table->text)
		table->text = module_text(file, table);
	return table->text != 0;
}

/* Returns true if values of the function that change with the place end within the function. */
static bool ends_inside(const struct go_table *table, const struct go_function *function,
			uint32_t offset)
{
	struct go_values values = go_values__of(table, function, offset);
	size_t n = 0;

	while (n < VALUES_MAX && go_values__next(&values))
		n++;
	return !offset || (n && n < VALUES_MAX && values.until <= function->end);
}

/* As above, for all its values. */
static bool is_covered(const struct go_table *table, const struct go_function *function)
{
	uint32_t offset;

	for (unsigned int i = 0; i < function->n_values; i++)
		if (go_function__values(table, function, i, &offset) &&
		    !ends_inside(table, function, offset))
			return false;
	return ends_inside(table, function, function->sp) &&
	       ends_inside(table, function, function->file) &&
	       ends_inside(table, function, function->line);
}

/* Checks the layout of the magic number against the table, with functions from all over the table:
 * names must be texts, and values must change only within their function. Most functions must use
 * the stack and have data for the garbage collector. A release that moves a field without a new
 * magic number fails this check. */
static bool is_sound(const struct go_table *table)
{
	size_t step = max_of(table->n_functions / SAMPLED_MAX, (size_t)1);
	struct go_function function;
	size_t n = 0, n_data = 0, n_stack = 0;

	for (size_t i = 0; i < table->n_functions; i += step) {
		if (!go_table__function(table, i, &function) || !function.name[0] ||
		    function.n_values > FUNCTION_VALUES_MAX || !is_covered(table, &function))
			return false;
		n++;
		n_data += function.n_data > 0;
		n_stack += function.sp > 0;
	}
	return 2 * n_data >= n && 2 * n_stack >= n;
}

static bool is_table(const struct elf_file *file, struct go_table *table)
{
	struct go_function first, last;
	uint64_t words[9];
	int text;

	if (!read_header(table, words))
		return false;
	text = table->layout >= GO_118;
	table->n_functions = words[0];
	table->text = text ? words[2] : 0;
	table->names_at = words[2 + text];
	table->units_at = words[3 + text];
	table->files_at = words[4 + text];
	table->values_at = words[5 + text];
	table->functions_at = words[6 + text];
	if (!table->n_functions || table->n_functions > FUNCTIONS_MAX ||
	    table->names_at >= table->size || table->units_at >= table->size ||
	    table->files_at >= table->size || table->values_at >= table->size ||
	    table->functions_at >= table->size)
		return false;
	if (text && !find_text(file, table))
		return false;
	return go_table__function(table, 0, &first) &&
	       go_table__function(table, table->n_functions - 1, &last) &&
	       is_code(file, first.start) && is_code(file, last.start) && is_sound(table);
}

/* --- where it is --- */

static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

/* Returns true if the file has the linker's note with the build id: type 4, name "Go". */
static bool has_note(const struct elf_file *file)
{
	static const uint8_t name_size[] = { 4, 0, 0, 0 };
	uint8_t note[4096];
	size_t n = 0;
	GElf_Phdr phdr;

	if (elf_getphdrnum(file->elf, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(file->elf, i, &phdr) || phdr.p_type != PT_NOTE ||
		    elf_file__read(file, phdr.p_vaddr, note, min_of(phdr.p_filesz, sizeof(note))))
			continue;
		for (size_t at = 0; at + 16 <= min_of(phdr.p_filesz, sizeof(note)); at += 4)
			if (!memcmp(note + at, name_size, sizeof(name_size)) &&
			    !memcmp(note + at + 12, "Go\0", 4))
				return true;
	}
	return false;
}

bool go_table__is_likely(const struct elf_file *file)
{
	size_t n_sections = 0;

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (elf_file__section(file, sections[i], NULL))
			return true;
	return file->generated || elf_getshdrnum(file->elf, &n_sections) || !n_sections ||
	       has_note(file) || elf_file__section(file, ".go.buildinfo", NULL);
}

static bool is_magic(const uint8_t *at)
{
	uint32_t magic;

	if (memcmp(at + sizeof(magic), header_rest, sizeof(header_rest)) != 0)
		return false;
	memcpy(&magic, at, sizeof(magic));
	for (int i = 0; i < GO_LAYOUTS_N; i++)
		if (magics[i] == magic)
			return true;
	return false;
}

/* Does the header make sense in a table of that size? */
static bool is_plausible(const uint8_t *header, uint64_t size)
{
	struct go_table table = { .bytes = header, .size = HEADER_BYTES };
	uint64_t words[9];
	int text;

	if (!read_header(&table, words))
		return false;
	text = table.layout >= GO_118;
	for (int i = 2; i <= 6; i++)
		if (words[i + text] >= size)
			return false;
	return words[0] && words[0] <= FUNCTIONS_MAX;
}

/* All from @vaddr on, of which a header was found there. */
static int load_table(const struct elf_file *file, uint64_t vaddr, uint64_t size,
		      struct go_table *ret)
{
	int rc = quota__charge(file->account, QUOTA_RETAINED, size);
	uint8_t *bytes;

	if (rc)
		return rc;
	bytes = malloc(size);
	*ret = (struct go_table) { .bytes = bytes,
				   .size = size,
				   .vaddr = vaddr,
				   .owned = bytes,
				   .account = quota__hold(file->account) };
	rc = bytes ? elf_file__read(file, vaddr, bytes, size) : -ENOMEM;
	if (!rc && is_table(file, ret))
		return 0;
	go_table__done(ret);
	return rc ? rc : -ENOENT;
}

/* Searches [@at, @at + @n) of the segment, whose bytes are in the block. */
static int scan_block(const struct elf_file *file, const struct elf_segment *segment,
		      const uint8_t *block, uint64_t at, size_t n, int *tried, struct go_table *ret)
{
	int rc = -ENOENT;

	for (size_t i = 0; i + HEADER_BYTES <= n && rc == -ENOENT; i += ALIGNMENT) {
		if (!is_magic(block + i) || !is_plausible(block + i, segment->filesz - at - i))
			continue;
		rc = ++*tried > TRIED_MAX ? quota__refuse(file->account)
					  : load_table(file, segment->vaddr + at + i,
						       segment->filesz - at - i, ret);
	}
	return rc;
}

/* By blocks, which overlap by a header, and without the holes. */
static int scan_segment(const struct elf_file *file, const struct elf_segment *segment, int *tried,
			struct go_table *ret)
{
	uint64_t at = -segment->vaddr % ALIGNMENT;
	uint8_t *block = malloc(QUOTA_BLOCK);
	int rc = block ? -ENOENT : -ENOMEM;

	while (rc == -ENOENT && fits_in(at, HEADER_BYTES, segment->filesz)) {
		uint64_t data = quota__skip_hole(file->fd, segment->offset + at,
						 segment->offset + segment->filesz);
		uint64_t skip = (data - (segment->offset + at)) & ~(uint64_t)(ALIGNMENT - 1);
		size_t n = min_of(segment->filesz - at, (uint64_t)QUOTA_BLOCK);

		/* A header may begin before the hole's end, as its first bytes are zeroes in none.
		 */
		if (skip) {
			at += skip;
			continue;
		}
		rc = elf_file__read(file, segment->vaddr + at, block, n);
		if (!rc)
			rc = scan_block(file, segment, block, at, n, tried, ret);
		at += n - HEADER_BYTES + ALIGNMENT;
		at -= (at + segment->vaddr) % ALIGNMENT;
	}
	free(block);
	return rc == -EFAULT ? -ENOENT : rc;
}

int go_table__open(const struct elf_file *file, struct go_table *ret)
{
	const Elf_Data *data;
	int code = -ENOENT, tried = 0;
	GElf_Shdr shdr;

	*ret = (struct go_table) {};
	if (!go_table__is_likely(file))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		data = elf_file__section(file, sections[i], &shdr);
		if (!data)
			continue;
		*ret = (struct go_table) { .bytes = data->d_buf,
					   .size = data->d_size,
					   .vaddr = shdr.sh_addr };
		return is_table(file, ret) ? 0 : -ENOENT;
	}
	/* Its section has gone into another one, as the linker does it where a file may be loaded
	 * anywhere, or there are no sections. */
	for (size_t i = 0; code == -ENOENT && i < file->n_segments; i++)
		if (!file->segments[i].exec && file->segments[i].filesz <= SEGMENT_MAX)
			code = scan_segment(file, &file->segments[i], &tried, ret);
	return code;
}

void go_table__done(struct go_table *table)
{
	if (table->owned)
		quota__give_back(table->account, table->size);
	quota__close(table->account);
	free(table->owned);
	*table = (struct go_table) {};
}

/* --- functions --- */

static size_t entry_bytes(const struct go_table *table)
{
	return table->layout == GO_116 ? 8 : 4;
}

/* The i-th of the pairs of an address and an offset; there is one address more. */
static bool read_entry(const struct go_table *table, size_t i, uint64_t *ret)
{
	uint64_t value = 0;

	if (!read_at(table, table->functions_at + i * 2 * entry_bytes(table), &value,
		     entry_bytes(table)))
		return false;
	*ret = table->text + value;
	return true;
}

bool go_table__function(const struct go_table *table, size_t i, struct go_function *ret)
{
	size_t wide = entry_bytes(table) - 4, at, bytes = FUNCTION_BYTES + wide;
	uint64_t offset = 0;
	uint32_t name;

	if (table->layout >= GO_120)
		bytes += 4; /* the line where it starts */
	if (i >= table->n_functions || !read_entry(table, i, &ret->start) ||
	    !read_entry(table, i + 1, &ret->end) || ret->end <= ret->start ||
	    !read_at(table, table->functions_at + (2 * i + 1) * entry_bytes(table), &offset,
		     entry_bytes(table)))
		return false;
	at = table->functions_at + offset + wide;
	if (offset > table->size || !go_table__u32(table, at + FUNCTION_NAME, &name) ||
	    !go_table__u32(table, at + FUNCTION_SP, &ret->sp) ||
	    !go_table__u32(table, at + FUNCTION_FILE, &ret->file) ||
	    !go_table__u32(table, at + FUNCTION_LINE, &ret->line) ||
	    !go_table__u32(table, at + FUNCTION_N_VALUES, &ret->n_values) ||
	    !go_table__u32(table, at + FUNCTION_UNIT, &ret->unit) ||
	    !read_at(table, at - wide + bytes - 1, &ret->n_data, 1))
		return false;
	ret->data_at = at - wide + bytes;
	ret->name = go_table__text(table, table->names_at, (int32_t)name);
	return ret->name != NULL;
}

bool go_table__find(const struct go_table *table, uint64_t vaddr, struct go_function *ret)
{
	size_t lo = 0, hi = table->n_functions;
	uint64_t start;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (!read_entry(table, mid, &start))
			return false;
		if (start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && go_table__function(table, lo - 1, ret) && vaddr < ret->end;
}

const char *go_table__file(const struct go_table *table, const struct go_function *function,
			   int32_t number)
{
	uint32_t offset;

	if (number < 0 || function->unit == UINT32_MAX ||
	    !go_table__u32(table, table->units_at + 4 * ((size_t)function->unit + (uint32_t)number),
			   &offset) ||
	    offset == UINT32_MAX)
		return NULL;
	return go_table__text(table, table->files_at, offset);
}

bool go_function__values(const struct go_table *table, const struct go_function *function,
			 unsigned int i, uint32_t *ret)
{
	return i < function->n_values && go_table__u32(table, function->data_at + 4 * i, ret) &&
	       *ret;
}

bool go_function__data(const struct go_table *table, const struct go_function *function,
		       unsigned int i, uint64_t *ret)
{
	size_t at = function->data_at + 4 * (size_t)function->n_values, size = 4;

	if (table->layout == GO_116) {
		size = 8;
		at = (at + 7) & ~(size_t)7;
	}
	*ret = 0;
	return i < function->n_data && read_at(table, at + size * i, ret, size) &&
	       (table->layout == GO_116 ? *ret != 0 : *ret != UINT32_MAX);
}

/* --- values --- */

static bool read_number(struct go_values *values, uint32_t *ret)
{
	*ret = 0;
	for (int shift = 0; shift < 32 && values->at < values->end; shift += 7) {
		uint8_t byte = *values->at++;

		*ret |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

struct go_values go_values__of(const struct go_table *table, const struct go_function *function,
			       uint32_t offset)
{
	struct go_values values = { .start = function->start,
				    .until = function->start,
				    .value = -1,
				    .end = table->bytes + table->size };

	values.at = offset && offset < table->size - table->values_at
			    ? table->bytes + table->values_at + offset
			    : values.end;
	return values;
}

bool go_values__next(struct go_values *values)
{
	uint32_t change, length;

	if (!read_number(values, &change) || (!change && values->begun) ||
	    !read_number(values, &length)) {
		values->at = values->end;
		return false;
	}
	values->begun = true;
	/* As Go's own step() (runtime/symtab.go) it wraps around, in a malformed table. */
	values->value = (int32_t)((uint32_t)values->value + (-(change & 1) ^ change >> 1));
	values->start = values->until;
	values->until += length;
	return true;
}

int32_t go_values__at(const struct go_table *table, const struct go_function *function,
		      uint32_t offset, uint64_t vaddr)
{
	struct go_values values = go_values__of(table, function, offset);

	for (uint64_t i = 0; go_values__next(&values) && !quota__look_at(i); i++)
		if (vaddr >= values.start && vaddr < values.until)
			return values.value;
	return -1;
}
