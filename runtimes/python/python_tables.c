// SPDX-License-Identifier: GPL-2.0-or-later
/* Tables are recognized by their contents, since a stripped file has no other sign of them. Every
 * word of a structure must be valid for its field, down to the ends of all arrays that it points
 * to. A single invalid word rejects the structure. So a name is exact, or there is none. */
#include "runtimes/python/python_tables.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_words.h"
#include "runtimes/python/python_build.h"
#include "runtimes/python/python_slots.h"

#define NAME_CHARS_MAX	 200
#define DOC_CHARS_MAX	 (1 << 16)
#define ENTRIES_MAX	 4096 /* in one array */
#define OBJECT_BYTES_MAX (1 << 24)

/* Limit of array entries that are read in a file; CPython itself needs about 40,000. A hostile file
 * may have an array at each of its words. */
#define WORK_MAX (1 << 20)

/* Include/cpython/object.h: struct _typeobject */
#define TYPE_NAME	 24
#define TYPE_BASICSIZE	 32
#define TYPE_ITEMSIZE	 40
#define TYPE_VECTORCALL	 56 /* an offset; up to 3.7 tp_print */
#define TYPE_ASYNC	 80
#define TYPE_NUMBER	 96
#define TYPE_SEQUENCE	 104
#define TYPE_MAPPING	 112
#define TYPE_BUFFER	 160
#define TYPE_FLAGS	 168
#define TYPE_DOC	 176
#define TYPE_WEAKLIST	 208 /* an offset */
#define TYPE_METHODS	 232
#define TYPE_MEMBERS	 240
#define TYPE_GETSET	 248
#define TYPE_BASE	 256
#define TYPE_DICT	 264
#define TYPE_DICTOFFSET	 288
#define TYPE_BASES	 336 /* and MRO, cache, subclasses, list of weak references */
#define TYPE_DEL	 376
#define TYPE_VERSION_TAG 384

/* Include/moduleobject.h: struct PyModuleDef */
#define MODULE_NAME	40
#define MODULE_DOC	48
#define MODULE_SIZE	56
#define MODULE_METHODS	64
#define MODULE_SLOTS	72
#define MODULE_TRAVERSE 80
#define MODULE_CLEAR	88
#define MODULE_FREE	96

/* Include/object.h: PyType_Spec */
#define SPEC_SIZES 8 /* basicsize, itemsize */
#define SPEC_FLAGS 16
#define SPEC_SLOTS 24

/* Include/typeslots.h */
#define SLOT_DOC     56
#define SLOT_METHODS 64
#define SLOT_GETSET  73
#define SLOT_LAST    90

/* Include/methodobject.h: METH_... */
#define METH_CALL 0x38f /* flags of the calling convention */
#define METH_KIND 0x70	/* CLASS, STATIC, COEXIST */

struct search {
	const struct elf_words *words;
	struct function_names *names;
	int minor; /* if the file is CPython itself; 0: another file */
	int work_left;
};

static uint64_t word(const struct search *search, uint64_t at)
{
	uint64_t value;

	return elf_words__get(search->words, at, &value) ? value : 0;
}

static bool has(const struct search *search, uint64_t at, size_t size)
{
	uint64_t value;

	return at <= UINT64_MAX - size && elf_words__get(search->words, at, &value) &&
	       elf_words__get(search->words, at + size - 8, &value);
}

/* A Python name, perhaps with dots in it; NULL: none. */
static const char *name_at(const struct search *search, uint64_t at)
{
	const char *text = elf_words__text(search->words, at, NAME_CHARS_MAX);
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	size_t n = text ? strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_.-")
			: 0;

	return n && !text[n] && strchr(letters, *text) ? text : NULL;
}

static bool is_function(const struct search *search, uint64_t value)
{
	return !value || value == ELF_WORD_IMPORT || elf_words__is_code(search->words, value);
}

static bool is_data(const struct search *search, uint64_t value)
{
	return !value || value == ELF_WORD_IMPORT || has(search, value, 8);
}

static bool is_doc(const struct search *search, uint64_t value)
{
	return !value || elf_words__text(search->words, value, DOC_CHARS_MAX);
}

static int add(const struct search *search, uint64_t function, const char *of, const char *name,
	       const char *more)
{
	if (!function || function == ELF_WORD_IMPORT)
		return 0;
	return function_names__add(search->names, function, "%s.%s%s", of, name, more);
}

/* --- arrays: the number of their entries, or -1 --- */

static bool is_method_flags(uint64_t flags)
{
	static const uint16_t calls[] = { 0x1,	0x3,  0x4,  0x8, /* VARARGS, KEYWORDS, NOARGS, O */
					  0x80, 0x82, 0x282 };	 /* FASTCALL, KEYWORDS, METHOD */

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == (flags & METH_CALL) && !(flags & ~(METH_CALL | METH_KIND)))
			return true;
	return false;
}

/* PyMethodDef: name, function, flags, doc */
static int count_methods(struct search *search, uint64_t at)
{
	for (int n = 0; n < ENTRIES_MAX && search->work_left-- > 0; n++, at += 32) {
		if (!has(search, at, 8))
			return -1;
		if (!word(search, at))
			return n;
		if (!has(search, at, 32) || !name_at(search, word(search, at)) ||
		    !word(search, at + 8) || !is_function(search, word(search, at + 8)) ||
		    !is_method_flags(word(search, at + 16)) ||
		    !is_doc(search, word(search, at + 24)))
			return -1;
	}
	return -1;
}

/* PyGetSetDef: name, get, set, doc, closure */
static int count_getset(struct search *search, uint64_t at)
{
	for (int n = 0; n < ENTRIES_MAX && search->work_left-- > 0; n++, at += 40) {
		if (!has(search, at, 8))
			return -1;
		if (!word(search, at))
			return n;
		if (!has(search, at, 40) || !name_at(search, word(search, at)) ||
		    !is_function(search, word(search, at + 8)) ||
		    !is_function(search, word(search, at + 16)) ||
		    !is_doc(search, word(search, at + 24)))
			return -1;
	}
	return -1;
}

static bool is_slot(struct search *search, uint64_t number, uint64_t value)
{
	if (number == SLOT_DOC)
		return is_doc(search, value);
	if (number == SLOT_METHODS)
		return value && count_methods(search, value) >= 0;
	if (number == SLOT_GETSET)
		return value && count_getset(search, value) >= 0;
	for (unsigned i = 0; i < python_slots_n; i++)
		if (python_slots[i].number == number)
			return is_function(search, value);
	return number <= SLOT_LAST && is_data(search, value);
}

/* PyType_Slot: number, pointer */
static int count_slots(struct search *search, uint64_t at)
{
	for (int n = 0; n < ENTRIES_MAX && search->work_left-- > 0; n++, at += 16) {
		if (!has(search, at, 16))
			return -1;
		if (!word(search, at))
			return word(search, at + 8) ? -1 : n;
		if (!is_slot(search, word(search, at), word(search, at + 8)))
			return -1;
	}
	return -1;
}

/* PyModuleDef_Slot: number (create, exec; later ones have numbers for values), value */
static int count_module_slots(struct search *search, uint64_t at)
{
	for (int n = 0; n < ENTRIES_MAX && search->work_left-- > 0; n++, at += 16) {
		if (!has(search, at, 16))
			return -1;
		if (!word(search, at))
			return word(search, at + 8) ? -1 : n;
		if (word(search, at) > 16 ||
		    (word(search, at) <= 2 && !is_function(search, word(search, at + 8))))
			return -1;
	}
	return -1;
}

/* --- arrays --- */

static int add_methods(struct search *search, const char *of, uint64_t at)
{
	int n = at ? count_methods(search, at) : 0, rc = 0;

	for (int i = 0; i < n && !rc; i++, at += 32)
		rc = add(search, word(search, at + 8), of, name_at(search, word(search, at)), "");
	return rc;
}

static int add_getset(struct search *search, const char *of, uint64_t at)
{
	int n = at ? count_getset(search, at) : 0, rc = 0;

	for (int i = 0; i < n && !rc; i++, at += 40) {
		const char *name = name_at(search, word(search, at));

		rc = add(search, word(search, at + 8), of, name, ".__get__");
		if (!rc)
			rc = add(search, word(search, at + 16), of, name, ".__set__");
	}
	return rc;
}

static int add_slots(struct search *search, const char *of, uint64_t at)
{
	int n = count_slots(search, at), rc = 0;

	for (int i = 0; i < n && !rc; i++, at += 16) {
		uint64_t number = word(search, at), value = word(search, at + 8);

		if (number == SLOT_METHODS)
			rc = add_methods(search, of, value);
		else if (number == SLOT_GETSET)
			rc = add_getset(search, of, value);
		for (unsigned k = 0; k < python_slots_n && !rc; k++)
			if (python_slots[k].number == number)
				rc = add(search, value, of, python_slots[k].name, "");
	}
	return rc;
}

/* --- structures --- */

/* Returns true for the reference count of a static object: 1, or the immortals'
 * of 3.11, 3.12, 3.14.
 */
static bool is_refcount(uint64_t value)
{
	uint32_t low = value;

	return value == 1 || value == 999999999 || low == UINT32_MAX || low == UINT32_MAX >> 2 ||
	       low == 3U << 30;
}

static int try_module(struct search *search, uint64_t at)
{
	const char *name = name_at(search, word(search, at + MODULE_NAME));
	uint64_t methods, slots;
	int rc, n = 0;

	if (!name || !has(search, at, MODULE_FREE + 8) || !is_refcount(word(search, at)))
		return 0;
	for (size_t i = 8; i < MODULE_NAME; i += 8)
		if (word(search, at + i))
			return 0;
	methods = word(search, at + MODULE_METHODS);
	slots = word(search, at + MODULE_SLOTS);
	if (!is_doc(search, word(search, at + MODULE_DOC)) ||
	    word(search, at + MODULE_SIZE) + 1 > OBJECT_BYTES_MAX ||
	    (methods && count_methods(search, methods) < 0) ||
	    (slots && (n = count_module_slots(search, slots)) < 0))
		return 0;
	for (size_t i = MODULE_TRAVERSE; i <= MODULE_FREE; i += 8)
		if (!is_function(search, word(search, at + i)))
			return 0;
	rc = add_methods(search, name, methods);
	for (int i = 0; i < n && !rc; i++)
		if (word(search, slots + 16 * i) <= 2)
			rc = add(search, word(search, slots + 16 * i + 8), name,
				 word(search, slots + 16 * i) == 1 ? "m_create" : "m_exec", "");
	if (!rc)
		rc = add(search, word(search, at + MODULE_TRAVERSE), name, "m_traverse", "");
	if (!rc)
		rc = add(search, word(search, at + MODULE_CLEAR), name, "m_clear", "");
	return rc ? rc : add(search, word(search, at + MODULE_FREE), name, "m_free", "");
}

static int try_spec(struct search *search, uint64_t at)
{
	const char *name = name_at(search, word(search, at));
	uint64_t sizes, slots;

	if (!name || !has(search, at, SPEC_SLOTS + 8))
		return 0;
	sizes = word(search, at + SPEC_SIZES);
	slots = word(search, at + SPEC_SLOTS);
	if ((uint32_t)sizes > OBJECT_BYTES_MAX || sizes >> 32 > OBJECT_BYTES_MAX ||
	    word(search, at + SPEC_FLAGS) > UINT32_MAX || !slots || slots == ELF_WORD_IMPORT ||
	    count_slots(search, slots) < 1)
		return 0;
	return add_slots(search, name, slots);
}

static bool has_slot(const struct search *search, const struct python_slot *slot)
{
	return !slot->since || search->minor >= slot->since;
}

/* Where a type has its structures of functions, in the order of the groups. */
static const uint16_t group_offsets[PYTHON_SLOT_GROUPS] = {
	0, TYPE_ASYNC, TYPE_NUMBER, TYPE_SEQUENCE, TYPE_MAPPING, TYPE_BUFFER
};

/* Returns true if all functions of the type are valid; `ret_groups`: addresses of its slots. */
static bool has_functions(struct search *search, uint64_t at,
			  uint64_t ret_groups[PYTHON_SLOT_GROUPS])
{
	search->work_left -= (int)python_slots_n;
	for (int i = 0; i < PYTHON_SLOT_GROUPS; i++) {
		ret_groups[i] = i ? word(search, at + group_offsets[i]) : at;
		if (ret_groups[i] == ELF_WORD_IMPORT)
			ret_groups[i] = 0;
	}
	for (unsigned i = 0; i < python_slots_n; i++) {
		const struct python_slot *slot = &python_slots[i];
		uint64_t group = ret_groups[slot->group];

		if (group && has_slot(search, slot) &&
		    (!has(search, group + slot->offset, 8) ||
		     !is_function(search, word(search, group + slot->offset))))
			return false;
	}
	return true;
}

static bool is_small(uint64_t value)
{
	return value + 64 <= OBJECT_BYTES_MAX; /* offsets may be negative */
}

static bool is_type(struct search *search, uint64_t at)
{
	uint64_t vectorcall = word(search, at + TYPE_VECTORCALL);
	uint64_t methods = word(search, at + TYPE_METHODS);
	uint64_t getset = word(search, at + TYPE_GETSET);

	if (!is_refcount(word(search, at)) || !is_data(search, word(search, at + 8)) ||
	    word(search, at + 16) || word(search, at + TYPE_BASICSIZE) > OBJECT_BYTES_MAX ||
	    word(search, at + TYPE_ITEMSIZE) > OBJECT_BYTES_MAX ||
	    (!is_small(vectorcall) && !elf_words__is_code(search->words, vectorcall)) ||
	    word(search, at + TYPE_FLAGS) > UINT32_MAX ||
	    !is_doc(search, word(search, at + TYPE_DOC)) ||
	    !is_small(word(search, at + TYPE_WEAKLIST)) ||
	    !is_small(word(search, at + TYPE_DICTOFFSET)) ||
	    !is_data(search, word(search, at + TYPE_MEMBERS)) ||
	    !is_data(search, word(search, at + TYPE_BASE)) || word(search, at + TYPE_DICT))
		return false;
	for (size_t i = TYPE_BASES; i < TYPE_DEL; i += 8)
		if (word(search, at + i))
			return false;
	return (!methods || count_methods(search, methods) >= 0) &&
	       (!getset || count_getset(search, getset) >= 0);
}

static int try_type(struct search *search, uint64_t at)
{
	const char *name = name_at(search, word(search, at + TYPE_NAME));
	uint64_t groups[PYTHON_SLOT_GROUPS];
	int rc = 0;

	if (!name || !has(search, at, TYPE_VERSION_TAG + 8) || !is_type(search, at) ||
	    !has_functions(search, at, groups))
		return 0;
	for (unsigned i = 0; i < python_slots_n && !rc; i++) {
		const struct python_slot *slot = &python_slots[i];

		if (groups[slot->group] && has_slot(search, slot))
			rc = add(search, word(search, groups[slot->group] + slot->offset), name,
				 slot->name, "");
	}
	if (!rc)
		rc = add_methods(search, name, word(search, at + TYPE_METHODS));
	return rc ? rc : add_getset(search, name, word(search, at + TYPE_GETSET));
}

static bool is_of_python(const struct elf_file *file)
{
	static const char *const symbols[] = { "PyModuleDef_Init", "PyModule_Create2" };
	const Elf_Data *strings = elf_file__section(file, ".dynstr", NULL);

	for (size_t i = 0; strings && i < ARRAY_SIZE(symbols); i++)
		if (memmem(strings->d_buf, strings->d_size, symbols[i], strlen(symbols[i]) + 1))
			return true;
	return false;
}

int python_tables__read(const struct elf_file *file, struct function_names *names)
{
	struct search search = { .names = names, .work_left = WORK_MAX };
	struct elf_words *words;
	uint64_t start, at;
	uint32_t hex;
	size_t n;
	int rc;

	if (!is_of_python(file))
		return 0;
	rc = elf_words__open(file, &words);
	if (rc)
		return rc == -ENOMEM ? rc : 0;
	search.words = words;
	if (!python_build__version(file, &hex) && hex >> 24 == 3)
		search.minor = hex >> 16 & 0xff;
	for (size_t i = 0; !rc && elf_words__writable(words, i, &start, &n); i++)
		for (at = start; !rc && search.work_left > 0 && at < start + 8 * n; at += 8) {
			rc = try_module(&search, at);
			if (!rc)
				rc = try_spec(&search, at);
			if (!rc)
				rc = try_type(&search, at);
		}
	elf_words__free(words);
	return rc;
}
