// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_objects.h"

#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/code_object_text.h"

/* Include/object.h, Include/cpython/object.h; the same in all versions, but for the head of all
 * objects, which is 16 bytes longer without the GIL */
#define OBJECT_BYTES	  16
#define OBJECT_TYPE	  8
#define TYPE_NAME	  24
#define TYPE_BASICSIZE	  32
#define TYPE_FLAGS	  168
#define TYPE_BASE	  256
#define TYPE_DICTOFFSET	  288
#define FLAG_MANAGED	  (1 << 4) /* Py_TPFLAGS_MANAGED_DICT, from 3.11 on */
#define FLAG_INLINE	  (1 << 2) /* Py_TPFLAGS_INLINE_VALUES, from 3.13 on */
#define MODULE_DICT	  16	   /* Objects/moduleobject.c: md_dict */
#define DICT_KEYS	  32	   /* Include/cpython/dictobject.h: ma_keys, ma_values */
#define MANAGED_DICT	  (-24)	   /* Include/internal/pycore_object.h, before the object ... */
#define MANAGED_DICT_FREE (-8)	   /* ... and without the GIL */
#define MANAGED_VALUES	  (-32)	   /* 3.11 only */
#define INT_SIZE	  16
#define INT_DIGITS	  24
#define INT_DIGIT_BITS	  30
#define STR_LENGTH	  16 /* and hash, state */
#define ENTRIES_MAX	  65536
#define LOG2_ENTRIES_MAX  20
#define BASES_MAX	  16

static unsigned field(const struct python_reader *reader, unsigned offset)
{
	return offset + reader->version->offsets.object_bytes - OBJECT_BYTES;
}

uint64_t python_object__field(struct python_reader *reader, uint64_t object, unsigned offset)
{
	return python_reader__at(reader, object + field(reader, offset));
}

/* Copies bytes of one block. */
static bool read_block(struct python_reader *reader, uint64_t at, void *to, size_t size)
{
	uint64_t start = at & ~(PYTHON_BLOCK_BYTES - 1ULL);
	size_t slot = at / PYTHON_BLOCK_BYTES % PYTHON_BLOCKS;
	struct python_cache *cache = reader->cache;

	if (!start)
		return false;
	if (cache->at[slot] != start) {
		cache->at[slot] = 0;
		if (!procfs__read_memory(reader->pid, start, cache->blocks[slot],
					 PYTHON_BLOCK_BYTES))
			return false;
		cache->at[slot] = start;
	}
	memcpy(to, cache->blocks[slot] + (at - start), size);
	return true;
}

bool python_reader__bytes(struct python_reader *reader, uint64_t at, void *to, size_t size)
{
	if (!reader->reads_left || !at)
		return false;
	reader->reads_left--;
	if (!reader->cache || size > PYTHON_BLOCK_BYTES)
		return procfs__read_memory(reader->pid, at, to, size);
	for (size_t done = 0, part; done < size; done += part) {
		part = min_of(size - done,
			      PYTHON_BLOCK_BYTES - (size_t)((at + done) % PYTHON_BLOCK_BYTES));
		if (!read_block(reader, at + done, (char *)to + done, part))
			return false;
	}
	return true;
}

bool python_reader__word(struct python_reader *reader, uint64_t at, uint64_t *ret)
{
	return python_reader__bytes(reader, at, ret, sizeof(*ret));
}

uint64_t python_reader__at(struct python_reader *reader, uint64_t at)
{
	uint64_t word;

	return python_reader__word(reader, at, &word) ? word : 0;
}

bool python_reader__text_is(struct python_reader *reader, uint64_t at, const char *want)
{
	char text[64];
	size_t size = strlen(want) + 1;

	return size <= sizeof(text) && python_reader__bytes(reader, at, text, size) &&
	       !memcmp(text, want, size);
}

/* --- types --- */

uint64_t python_object__type(struct python_reader *reader, uint64_t object)
{
	return object & 7 ? 0 : python_reader__at(reader, object + field(reader, OBJECT_TYPE));
}

bool python_object__is(struct python_reader *reader, uint64_t object, const char *type_name)
{
	uint64_t type = python_object__type(reader, object);

	return type &&
	       python_reader__text_is(reader,
				      python_reader__at(reader, type + field(reader, TYPE_NAME)),
				      type_name);
}

bool python_object__is_a(struct python_reader *reader, uint64_t object, const char *type_name)
{
	uint64_t type = python_object__type(reader, object);

	for (int i = 0; i < BASES_MAX && type; i++) {
		if (python_reader__text_is(
			    reader, python_reader__at(reader, type + field(reader, TYPE_NAME)),
			    type_name))
			return true;
		type = python_reader__at(reader, type + field(reader, TYPE_BASE));
	}
	return false;
}

uint64_t python_object__bytes(struct python_reader *reader, uint64_t object)
{
	return python_reader__at(reader, python_object__type(reader, object) +
						 field(reader, TYPE_BASICSIZE));
}

/* --- strings and numbers --- */

struct str {
	uint64_t length, hash;
	uint32_t state, pad; /* interned:2 kind:3 compact:1 ascii:1 */
};

static bool read_str(struct python_reader *reader, uint64_t at, struct str *ret, unsigned *ret_kind,
		     uint64_t *ret_data)
{
	const struct python_offsets *offsets = &reader->version->offsets;

	if (!python_reader__bytes(reader, at + field(reader, STR_LENGTH), ret, sizeof(*ret)))
		return false;
	ret->state >>= offsets->unicode_shift & 31;
	*ret_kind = ret->state >> 2 & 7;
	*ret_data = at + (ret->state & 1 << 6 ? offsets->unicode_ascii_data
					      : offsets->unicode_compact_data);
	return ret->state & 1 << 5 && (*ret_kind == 1 || *ret_kind == 2 || *ret_kind == 4);
}

bool python_str__is(struct python_reader *reader, uint64_t at, const char *want)
{
	size_t len = strlen(want);
	struct str str;
	uint64_t data;
	unsigned kind;
	char text[64];

	return len <= sizeof(text) && read_str(reader, at, &str, &kind, &data) && kind == 1 &&
	       str.length == len && python_reader__bytes(reader, data, text, len) &&
	       !memcmp(text, want, len);
}

char *python_str__dup(struct python_reader *reader, uint64_t object)
{
	char text[CODE_OBJECT_TEXT_BYTES];
	struct str str;
	uint64_t data;
	unsigned kind;
	size_t size;

	if (!read_str(reader, object, &str, &kind, &data))
		return NULL;
	size = min_of(str.length, (uint64_t)sizeof(text) / kind) * kind;
	if (size && !python_reader__bytes(reader, data, text, size))
		return NULL;
	return code_object_text__dup(text, size, kind, str.length);
}

bool python_int__get(struct python_reader *reader, uint64_t object, uint64_t *ret)
{
	uint64_t size;
	uint32_t digits[2] = { 0 };

	/* ob_size; from 3.12 on lv_tag: the number of digits lies above three bits */
	if (!python_reader__word(reader, object + field(reader, INT_SIZE), &size))
		return false;
	if (reader->version->minor >= 12)
		size = size & 3 ? 0 : size >> 3;
	if (size < 1 || size > 2 ||
	    !python_reader__bytes(reader, object + field(reader, INT_DIGITS), digits, 4 * size))
		return false;
	*ret = digits[0] | (uint64_t)digits[1] << INT_DIGIT_BITS;
	return true;
}

/* --- tables of keys --- */

struct keys { /* PyDictKeysObject */
	uint64_t entries, n;
	unsigned entry_size, key; /* offset of a key in its entry; the value follows */
};

/* Objects/dict-common.h up to 3.10: refcount, size, lookup function, usable, number of entries. */
static bool open_old_keys(struct python_reader *reader, uint64_t at, struct keys *ret)
{
	uint64_t words[5], width;

	if (!python_reader__bytes(reader, at, words, sizeof(words)) || !words[1] ||
	    words[1] > 1ULL << LOG2_ENTRIES_MAX)
		return false;
	width = words[1] <= 0xff ? 1 : words[1] <= 0xffff ? 2 : 4;
	*ret = (struct keys) { .entries = at + sizeof(words) + words[1] * width,
			       .n = words[4],
			       .entry_size = 24,
			       .key = 8 };
	return true;
}

/* Include/internal/pycore_dict.h from 3.11 on. */
static bool open_keys(struct python_reader *reader, uint64_t at, struct keys *ret)
{
	struct {
		uint64_t refcount;
		uint8_t log2_size, log2_index_bytes, kind, pad;
		uint32_t version;
		uint64_t usable, n;
	} head;

	if (reader->version->minor <= 10) {
		if (!open_old_keys(reader, at, ret))
			return false;
	} else {
		if (!python_reader__bytes(reader, at, &head, sizeof(head)) || head.kind > 2 ||
		    head.log2_index_bytes > LOG2_ENTRIES_MAX + 2)
			return false;
		*ret = (struct keys) { .entries =
					       at + sizeof(head) + (1ULL << head.log2_index_bytes),
				       .n = head.n,
				       .entry_size = head.kind ? 16 : 24,
				       .key = head.kind ? 0 : 8 };
	}
	return ret->n <= ENTRIES_MAX;
}

/* Returns the index of the entry with the key @want, and sets *@ret_value to the entry's value; -1:
 * there is no such entry. */
static int64_t find_key(struct python_reader *reader, const struct keys *keys, const char *want,
			uint64_t *ret_value)
{
	uint64_t pair[2];

	for (uint64_t i = 0; i < keys->n; i++) {
		if (!python_reader__bytes(reader, keys->entries + i * keys->entry_size + keys->key,
					  pair, sizeof(pair)))
			return -1;
		if (!pair[0] || !python_str__is(reader, pair[0], want))
			continue;
		*ret_value = pair[1];
		return i;
	}
	return -1;
}

/* Returns value number @i of a separate table of values. Up to 3.12 the table has only values; from
 * 3.13 on it begins with a head of 8 bytes. */
static uint64_t value_of(struct python_reader *reader, uint64_t values, uint64_t i)
{
	uint64_t value = 0;

	if (reader->version->minor >= 13)
		values += 8;
	return python_reader__word(reader, values + 8 * i, &value) ? value : 0;
}

uint64_t python_dict__get(struct python_reader *reader, uint64_t dict, const char *key)
{
	uint64_t tables[2], value = 0; /* keys; values, if they are not in there, too */
	struct keys keys;
	int64_t i;

	if (!python_reader__bytes(reader, dict + field(reader, DICT_KEYS), tables,
				  sizeof(tables)) ||
	    !open_keys(reader, tables[0], &keys))
		return 0;
	i = find_key(reader, &keys, key, &value);
	if (i < 0)
		return 0;
	return tables[1] ? value_of(reader, tables[1], i) : value;
}

uint64_t python_module__get(struct python_reader *reader, uint64_t module, const char *key)
{
	uint64_t dict;

	return python_reader__word(reader, module + field(reader, MODULE_DICT), &dict)
		       ? python_dict__get(reader, dict, key)
		       : 0;
}

int python_dict__values(struct python_reader *reader, uint64_t dict, python_value_fn on_value,
			void *ctx)
{
	uint64_t tables[2], pair[2];
	struct keys keys;
	int ret = 0;

	if (!python_reader__bytes(reader, dict + field(reader, DICT_KEYS), tables,
				  sizeof(tables)) ||
	    tables[1] || !open_keys(reader, tables[0], &keys))
		return 0;
	for (uint64_t i = 0; i < keys.n && ret >= 0; i++)
		if (python_reader__bytes(reader, keys.entries + i * keys.entry_size + keys.key,
					 pair, sizeof(pair)) &&
		    pair[0] && pair[1])
			ret = on_value(ctx, pair[1]);
	return ret < 0 ? ret : 0;
}

/* --- attributes --- */

/* Returns the offset of PyHeapTypeObject.ht_cached_keys, the keys of the objects' attributes. */
static unsigned cached_keys(unsigned minor)
{
	static const uint16_t offsets[] = { [8] = 872,	[9] = 864,  [10] = 872, [11] = 872,
					    [12] = 880, [13] = 880, [14] = 880, [15] = 888 };

	return minor < ARRAY_SIZE(offsets) ? offsets[minor] : 0;
}

/* By keys that are the type's, and values of the object's own. */
static uint64_t split_get(struct python_reader *reader, uint64_t type, uint64_t values,
			  const char *key)
{
	struct keys keys;
	uint64_t at, value;
	int64_t i;

	if (!python_reader__word(reader, type + field(reader, cached_keys(reader->version->minor)),
				 &at) ||
	    !open_keys(reader, at, &keys))
		return 0;
	i = find_key(reader, &keys, key, &value);
	return i < 0 ? 0 : value_of(reader, values, i);
}

/* Reads an attribute of an object with inline values. 3.11 has two words before an object, values
 * and dict. 3.12 has one word, which is odd if it points to values. From 3.13 on the values follow
 * the object, as long as there is no dict. */
static uint64_t managed_get(struct python_reader *reader, uint64_t object, uint64_t type,
			    uint64_t flags, const char *key)
{
	unsigned minor = reader->version->minor;
	uint64_t dict, values = 0, size;
	bool is_free = reader->version->offsets.object_bytes > OBJECT_BYTES;

	if (!python_reader__word(reader, object + (is_free ? MANAGED_DICT_FREE : MANAGED_DICT),
				 &dict))
		return 0;
	if (minor == 11) {
		if (!python_reader__word(reader, object + MANAGED_VALUES, &values))
			return 0;
	} else if (minor == 12) {
		values = dict & 1 ? dict + 1 : 0;
	} else if (!dict && flags & FLAG_INLINE) {
		if (!python_reader__word(reader, type + field(reader, TYPE_BASICSIZE), &size) ||
		    size > 65536)
			return 0;
		values = object + size;
	}
	return values ? split_get(reader, type, values, key) : python_dict__get(reader, dict, key);
}

uint64_t python_object__get(struct python_reader *reader, uint64_t object, const char *key)
{
	uint64_t type, flags, offset, dict;

	if (!python_reader__word(reader, object + field(reader, OBJECT_TYPE), &type) ||
	    !python_reader__word(reader, type + field(reader, TYPE_FLAGS), &flags))
		return 0;
	if (reader->version->minor >= 11 && flags & FLAG_MANAGED)
		return managed_get(reader, object, type, flags, key);
	if (!python_reader__word(reader, type + field(reader, TYPE_DICTOFFSET), &offset) ||
	    !offset || offset > 65536 || !python_reader__word(reader, object + offset, &dict))
		return 0;
	return python_dict__get(reader, dict, key);
}
