// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_fit.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_words.h"
#include "core/target/procfs.h"
#include "runtimes/common/x86_code.h"

/* --- the file --- */

#define OP_NAME_MAX 32

/* Compares the numbers of operations with PL_op_name, an array of pointers to names. */
static bool has_operations(const struct elf_file *file, const struct perl_offsets *offsets)
{
	const struct {
		uint16_t number;
		const char *name;
	} operations[] = {
		{ offsets->op_entersub, "entersub" },  { offsets->op_nextstate, "nextstate" },
		{ offsets->op_sort, "sort" },	       { offsets->op_leave[0], "leavesub" },
		{ offsets->op_leave[1], "return" },    { offsets->op_leave[2], "leavetry" },
		{ offsets->op_leave[3], "leaveeval" },
	};
	struct elf_words *words;
	uint64_t names, size, at;
	bool fits = true;

	if (elf_file__find_symbol(file, "PL_op_name", &names, &size) ||
	    elf_words__open(file, &words))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(operations) && fits; i++) {
		uint64_t entry = operations[i].number * sizeof(at);
		const char *name = NULL;

		if (fits_in(entry, sizeof(at), size) && elf_words__get(words, names + entry, &at))
			name = elf_words__text(words, at, OP_NAME_MAX);
		fits = name && !strcmp(name, operations[i].name);
	}
	elf_words__free(words);
	return fits;
}

/* Finds the size of PERL_CONTEXT by which Perl_dowantarray multiplies an index:
 *   imul $SIZE,%reg,%reg
 *   lea (%index,%index,2),%t; lea (%index,%t,4),%i; ... 8 bytes each: 13 * 8 = 104 */
static bool has_context_size(const struct elf_file *file, uint16_t size)
{
	struct x86_stub stub;

	if (x86_stub__read(file, "Perl_dowantarray", &stub))
		return false;
	for (size_t i = 0; i + 8 <= stub.size; i++) {
		const uint8_t *code = stub.code + i;

		if (code[0] == 0x48 && code[1] == 0x6b && code[2] >= 0xc0)
			return code[3] == size;
		if (code[0] == 0x48 && code[1] == 0x8d && (code[2] & 0xc7) == 0x04 &&
		    (code[3] & 0xc0) == 0x40 && (code[3] >> 3 & 7) == (code[3] & 7) &&
		    code[4] == 0x48 && code[5] == 0x8d && (code[6] & 0xc7) == 0x04 &&
		    (code[7] & 0xc0) == 0x80)
			return size == 13 * 8;
	}
	return false;
}

const char *perl_fit__file(const struct elf_file *file, const struct perl_version *version,
			   const struct perl_place *place)
{
	if (!has_operations(file, &version->offsets))
		return "numbering of operations";
	if (!has_context_size(file, version->offsets.context))
		return "size of a context";
	if (place->state == PERL_STATE_GLOBAL)
		return NULL;
	if (!perl_build__reads_first(file, "Perl_ckwarn", version->curcop) ||
	    !perl_build__reads_first(file, "Perl_pad_alloc", version->comppad))
		return "interpreter";
	return place->first_vaddr ? NULL : "interpreter (which cannot be found)";
}

/* --- a process --- */

#define KEY_IN_HEK 8 /* after the hash and the length, 4 bytes each */

static bool read_word(uint32_t pid, uint64_t at, uint64_t *ret)
{
	return at && procfs__read_memory(pid, at, ret, sizeof(*ret)) && *ret;
}

/* Reads the address of the name (a HEK) of the package at @stash. */
static bool find_name(uint32_t pid, uint64_t stash, const struct perl_offsets *offsets,
		      uint64_t *ret)
{
	uint64_t body, aux;
	int32_t count;

	if (!offsets->aux || !read_word(pid, stash, &body))
		return false;
	aux = body + offsets->aux;
	if (!procfs__read_memory(pid, aux + offsets->aux_name_count, &count, sizeof(count)) ||
	    !read_word(pid, aux + offsets->aux_name, ret))
		return false;
	return !count || read_word(pid, *ret, ret); /* an array of names, the first one counts */
}

int perl_fit__process(uint32_t pid, uint64_t interpreter, bool is_variable, uint64_t defstash,
		      const struct perl_offsets *offsets)
{
	static const char expected[] = "main";
	char name[sizeof(expected)];
	uint64_t stash, hek;
	uint32_t len;

	if (!read_word(pid, interpreter, &stash) ||
	    (!is_variable && !read_word(pid, stash + defstash, &stash)))
		return -EAGAIN;
	if (!find_name(pid, stash, offsets, &hek) ||
	    !procfs__read_memory(pid, hek + 4, &len, sizeof(len)) || len != strlen(expected) ||
	    !procfs__read_memory(pid, hek + KEY_IN_HEK, name, sizeof(name)))
		return -ENOTSUP;
	return memcmp(name, expected, sizeof(expected)) == 0 ? 0 : -ENOTSUP;
}
