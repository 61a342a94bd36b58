/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_OBJECT_BPF_H
#define BRAID_RUBY_OBJECT_BPF_H

#include "bpf/ruby.h"
#include "bpf/thread_local.bpf.h"

/* CRuby's objects: strings, arrays, symbols, classes. */

/* Equal in 2.7 to 4.0 */
#define ISEQ_BODY	  16 /* rb_iseq_t.body */
#define ISEQ_EVAL	  6  /* rb_iseq_constant_body.type; parent_iseq is before local_iseq */
#define EVAL_LEVELS_MAX	  8
#define BODY_SIZE	  4  /* rb_iseq_constant_body.iseq_size */
#define BODY_ENCODED	  8  /* .iseq_encoded */
#define BODY_PATH	  64 /* .location.pathobj */
#define BODY_LABEL	  80 /* .location.label */
#define VALUE_BYTES	  8
#define METHOD_WORDS	  5   /* rb_method_entry_t: flags, defined_class, def, called_id, owner */
#define SVAR_ME		  1   /* struct vm_svar.cref_or_me, in words */
#define DEFINITION_BODY	  8   /* rb_method_definition_t.body; the function of a C method */
#define DEFINITION_ID	  32  /* .original_id */
#define SYMBOLS_IDS	  16  /* rb_symbols_t.ids */
#define IDS_PER_ARRAY	  512 /* ID_ENTRY_UNIT; two words each: string, symbol */
#define ID_LIST_DATA	  32  /* 4.1: such an array is RTypedData.data, ... */
#define ID_LIST_STRING	  24  /* ... a struct of a count, a capacity, and pairs of symbol, string */
#define ID_SCOPE	  0xe /* bits of an ID; 0: local */
#define ID_SERIAL_SHIFT	  4
#define ARRAY_EMBEDDED	  16	 /* RArray: elements if FLAG_EMBEDDED is set */
#define ARRAY_POINTER	  32	 /* else */
#define FLAG_EMBEDDED	  0x2000 /* RARRAY_EMBED_FLAG; for strings RSTRING_NOEMBED */
#define TYPE_MASK	  0x1f
#define TYPE_CLASS	  0x02
#define TYPE_MODULE	  0x03
#define TYPE_STRING	  0x05
#define TYPE_ARRAY	  0x07
#define TYPE_DATA	  0x0c
#define TYPE_IMEMO	  0x1a
#define TYPE_ICLASS	  0x1c
#define IMEMO_TYPE(flags) ((flags) >> 12 & 15)
#define IMEMO_SVAR	  2
#define IMEMO_METHOD	  6

/* struct st_table, read from num_entries on; struct st_table_entry */
#define ST_TABLE_HEAD	 16
#define ST_TABLE_ENTRIES 48
#define ST_ENTRY_WORDS	 3 /* hash, key, record */
#define ST_ENTRIES_MAX	 8 /* entries that are read; a class's names are put in first */

#define BODY_WORDS 32 /* a power of two; the first BODY_BYTES are read */
#define BODY_BYTES 192

/* The code that a number stands for, with the values by which it is recognised. */
struct ruby_entry {
	__u32 code; /* first: runtime.codes */
	__u32 size;
	__u64 start, label, path, definition, owner;
	__u64 texts; /* hash of the label and the path */
	__u64 since_ns, checked_ns;
};

/* A frame's code. It is too large for a program's stack, and so is in map memory. */
struct ruby_call {
	__u64 iseq;   /* 0: a method in C */
	__u64 method; /* the method entry of the frame's environment, or 0 */
	__u64 now_ns;
	__u32 space, tgid;
	__u32 by_block; /* the frame is that of a method defined by a block */
	__u32 code;	/* result: the number; 0: unreadable */
	__u64 start;	/* result: address of the instructions */
	/* results: times of the first report with this content, and of the last comparison */
	__u64 since_ns, checked_ns;
	__u32 size;	/* result: size of the instructions, in words */
	__u32 replaces; /* the process has replaced code recently */
	__u32 probed;	/* at a probe, at which each call would pay for a comparison */
	__u32 pad;
	struct ruby_entry entry;
	__u64 words[BODY_WORDS]; /* data that is being read */
};

/* Returns true unless the value is a small number, nil, true, false or a symbol. */
static __always_inline int is_object(__u64 value)
{
	return value > 8 && !(value & 7);
}

/* --- texts --- */

/* Finds the bytes of a String. Returns their number, or -1. */
static __noinline int string__find(const struct ruby_offsets *offsets, __u64 string,
				   __u64 *ret_from)
{
	__u64 words[4]; /* flags, class, length, pointer */
	__u64 from, length;

	if (!offsets || !is_object(string) || read_user(words, sizeof(words), string) ||
	    (words[0] & TYPE_MASK) != TYPE_STRING)
		return -1;
	from = words[3];
	length = words[2];
	if (!(words[0] & FLAG_EMBEDDED)) {
		from = string + offsets->string_embedded;
		if (!offsets->string_has_length)
			length = words[0] >> 14 & 31;
	}
	*ret_from = from;
	return length > 0xffff ? 0xffff : length;
}

/* Copies the first @size of the @length bytes at @from; a negative @length copies nothing. Returns
 * @length, or -1. */
static __noinline int string__copy(__u64 from, int length, char *to, __u64 size)
{
	__u64 bytes = length < 0 ? 0 : length; /* 64 bits: older verifiers lose the bounds of 32 */

	if (bytes > size)
		bytes = size;
	barrier_var(bytes);
	if (bytes > CODE_OBJECT_TEXT_BYTES)
		bytes = CODE_OBJECT_TEXT_BYTES;
	return length < 0 || read_user(to, bytes, from) ? -1 : length;
}

static __always_inline __u64 hash__add(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 29); /* 2^64 / golden ratio */
}

#define STRING_HASHED_WORDS 8

/* Adds a String's length and its last 64 bytes to @hash. */
static __noinline __u64 string__hash(const struct ruby_offsets *offsets, __u64 string, __u64 hash)
{
	__u64 words[STRING_HASHED_WORDS] = {}, from = 0, bytes;
	int length = string__find(offsets, string, &from), i;

	bytes = length < 0 ? 0 : length;
	if (bytes > sizeof(words))
		from += bytes - sizeof(words);
	barrier_var(bytes); /* else the verifier sees the bound of a copy only */
	if (bytes > sizeof(words))
		bytes = sizeof(words);
	if (read_user(words, bytes, from))
		return hash;
	hash = hash__add(hash, length);
	for (i = 0; i < STRING_HASHED_WORDS; i++)
		hash = hash__add(hash, words[i]);
	return hash;
}

/* Finds and copies the bytes of a String. Returns its length, or -1. */
static __always_inline int string__read(const struct ruby_offsets *offsets, __u64 string, char *to,
					__u64 size)
{
	__u64 from = 0;
	int length = string__find(offsets, string, &from);

	return string__copy(from, length, to, size);
}

static __noinline __u64 array__at(__u64 array, __u32 index)
{
	__u64 flags, from = array + ARRAY_EMBEDDED, value;

	if (!is_object(array) || read_user(&flags, sizeof(flags), array) ||
	    (flags & TYPE_MASK) != TYPE_ARRAY)
		return 0;
	if (!(flags & FLAG_EMBEDDED) && read_user(&from, sizeof(from), array + ARRAY_POINTER))
		return 0;
	return read_user(&value, sizeof(value), from + VALUE_BYTES * index) ? 0 : value;
}

static __always_inline __u64 value__flags(__u64 value)
{
	__u64 flags;

	return is_object(value) && !read_user(&flags, sizeof(flags), value) ? flags : 0;
}

/* Returns the string of the entry @nth of a list of symbols, or 0. */
static __always_inline __u64 id_list__string(__u64 list, __u64 nth)
{
	__u64 from, value, n;

	if ((value__flags(list) & TYPE_MASK) != TYPE_DATA)
		return array__at(list, 2 * nth);
	if (read_user(&from, sizeof(from), list + ID_LIST_DATA) || read_user(&n, sizeof(n), from) ||
	    nth >= n ||
	    read_user(&value, sizeof(value), from + ID_LIST_STRING + 2 * VALUE_BYTES * nth))
		return 0;
	return value;
}

/* Returns the String that an ID stands for (get_id_serial_entry, symbol.c). */
static __noinline __u64 id__string(const struct ruby_proc_rec *proc, __u64 id)
{
	__u32 serial;
	__u64 ids;

	if (!proc || !proc->symbols || read_user(&ids, sizeof(ids), proc->symbols + SYMBOLS_IDS))
		return 0;
	serial = id > proc->offsets.last_op_id ? id >> ID_SERIAL_SHIFT : id;
	return id_list__string(array__at(ids, serial / IDS_PER_ARRAY), serial % IDS_PER_ARRAY);
}

/* --- owners of methods --- */

/* Returns a value that a class up to 3.1 has under a hidden name. It is found by its type, as
 * names differ from build to build. The class path is the only string, the attached object is
 * the first value. */
static __noinline __u64 class__hidden(const struct ruby_offsets *offsets, struct ruby_call *call,
				      __u64 class, int string)
{
	__u64 head[5]; /* st_table: num_entries, bins, entries_start, entries_bound, entries */
	__u64 table;
	__u32 i;

	if (!offsets || !call || read_user(&table, sizeof(table), class + offsets->class_ext) ||
	    read_user(&table, sizeof(table), table + offsets->class_iv_table) || !table ||
	    read_user(head, sizeof(head), table + ST_TABLE_HEAD) ||
	    read_user(call->words, ST_ENTRIES_MAX * ST_ENTRY_WORDS * 8, head[4]))
		return 0;
	for (i = 0; i < ST_ENTRIES_MAX; i++) {
		__u64 key = call->words[ST_ENTRY_WORDS * i + 1];
		__u64 value = call->words[ST_ENTRY_WORDS * i + 2];

		if (i >= head[3])
			break;
		if (key <= offsets->last_op_id || key & ID_SCOPE)
			continue;
		if (!string || (value__flags(value) & TYPE_MASK) == TYPE_STRING)
			return value;
	}
	return 0;
}

static __always_inline __u64 class__field(const struct ruby_offsets *offsets, __u64 class,
					  __u16 field)
{
	__u64 value;

	return read_user(&value, sizeof(value), class + offsets->class_ext + field) ? 0 : value;
}

/* Returns the first of a class's instance variables in 3.2, which the class gets at its start. */
static __always_inline __u64 class__first_iv(const struct ruby_offsets *offsets, __u64 class,
					     int string)
{
	__u64 value;

	if (read_user(&value, sizeof(value), class + offsets->class_ivs) ||
	    read_user(&value, sizeof(value), value))
		return 0;
	return !string || (value__flags(value) & TYPE_MASK) == TYPE_STRING ? value : 0;
}

/* Returns the path of a class (a String), or the object that a singleton class is attached to. */
static __noinline __u64 class__get(const struct ruby_offsets *offsets, struct ruby_call *call,
				   __u64 class, int path)
{
	if (!offsets)
		return 0;
	if (offsets->class_ivs)
		return class__first_iv(offsets, class, path);
	if (offsets->class_iv_table)
		return class__hidden(offsets, call, class, path);
	return class__field(offsets, class, path ? offsets->class_path : offsets->class_attached);
}

#define CLASS_STEPS_MAX 8

static __always_inline __u64 class__super(const struct ruby_offsets *offsets, __u64 class)
{
	__u64 super;

	return is_object(class) && !read_user(&super, sizeof(super), class + offsets->class_super)
		       ? super
		       : 0;
}

/* Returns the first class from `class` on, upwards, that is neither a singleton class nor a
 * placeholder for an included module. */
static __noinline __u64 class__real(const struct ruby_offsets *offsets, __u64 class)
{
	__u64 flags;
	__u32 i;

	for (i = 0; offsets && i < CLASS_STEPS_MAX; i++) {
		flags = value__flags(class);
		if ((flags & TYPE_MASK) == TYPE_CLASS &&
		    !(flags >> (offsets->singleton_bit & 63) & 1))
			return class;
		class = class__super(offsets, class);
	}
	return 0;
}

/* Returns the module whose code made a refinement: the refinement's second instance variable,
 * __defined_at__, after __refined_class__. */
static __noinline __u64 refinement__within(const struct ruby_offsets *offsets, __u64 class)
{
	__u64 at = 0, value;

	if (!offsets)
		return 0;
	if (offsets->class_iv_table) {
		if (read_user(&at, sizeof(at), class + offsets->class_ext) ||
		    read_user(&at, sizeof(at), at + offsets->class_iv_table) ||
		    read_user(&at, sizeof(at), at + ST_TABLE_ENTRIES))
			return 0;
		at += 8 * (ST_ENTRY_WORDS + 2);
	} else { /* from 3.3 on, the first field of rb_classext_t */
		if (read_user(&at, sizeof(at),
			      class + (offsets->class_ivs ? offsets->class_ivs
							  : offsets->class_ext)))
			return 0;
		at += VALUE_BYTES;
	}
	return read_user(&value, sizeof(value), at) ? 0 : value;
}

/* Reads the owner of a method: fills in the table's owner fields. */
static __noinline int owner__read(const struct ruby_offsets *offsets, struct ruby_call *call,
				  __u64 class, struct ruby_code_table *ret)
{
	__u64 words[2]; /* flags, class */
	__u64 type, above = 0;
	int len, within;

	if (!offsets || !call || !ret || !is_object(class) ||
	    read_user(words, sizeof(words), class))
		return 0;
	if ((words[0] & TYPE_MASK) == TYPE_ICLASS) {
		class = words[1];
		if (!is_object(class) || read_user(words, sizeof(words), class))
			return 0;
	}
	type = words[0] & TYPE_MASK;
	if (type != TYPE_CLASS && type != TYPE_MODULE)
		return 0;
	ret->owner = RUBY_OWNER_CLASS;
	if (type == TYPE_CLASS && words[0] >> (offsets->singleton_bit & 63) & 1) {
		above = class__super(offsets, class);
		class = class__get(offsets, call, class, 0);
		type = value__flags(class) & TYPE_MASK;
		ret->owner = RUBY_OWNER_CLASS_ITSELF;
		if (type != TYPE_CLASS && type != TYPE_MODULE) {
			ret->owner = RUBY_OWNER_OBJECT;
			class = class__real(offsets, above);
		}
		above = 0;
	} else if (type == TYPE_MODULE) {
		above = class__super(offsets, class);
	}
	ret->is_module = type == TYPE_MODULE;
	len = string__read(offsets, class__get(offsets, call, class, 1), ret->owner_name,
			   RUBY_OWNER_BYTES);
	/* A refinement has the class that it refines as its superclass (rb_mod_refine, eval.c). */
	if (len < 0 && above && (value__flags(above) & TYPE_MASK) == TYPE_CLASS) {
		ret->is_refinement = 1;
		len = string__read(offsets, class__get(offsets, call, above, 1), ret->owner_name,
				   RUBY_WITHIN_AT);
		within = string__read(
			offsets, class__get(offsets, call, refinement__within(offsets, class), 1),
			ret->owner_name + RUBY_WITHIN_AT, RUBY_OWNER_BYTES - RUBY_WITHIN_AT);
		ret->within_len = within < 0 ? 0 : within;
	}
	ret->owner_len = len < 0 ? 0 : len;
	return 0;
}

#endif
