/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_PROBES_BPF_H
#define BRAID_PYTHON_PROBES_BPF_H

/* Numbers of functions at probes. */

#include "bpf/cache.bpf.h"
#include "bpf/probe.bpf.h"
#include "bpf/python_code.bpf.h"
#include "bpf/texts.bpf.h"

/* --- functions of USDT probes --- */

static __noinline int text__send(const struct text_key *key, __u32 code)
{
	struct rec_code_object *rec;

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec) - CODE_OBJECT_TABLE_BYTES, 0);
	if (!rec)
		return -1;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = task__pid(bpf_get_current_task_btf());
	rec->walker = WALKER_PYTHON;
	rec->first_line = key->line;
	text__copy(rec->name, key->name, &rec->name_kind, &rec->name_len);
	text__copy(rec->file, key->file, &rec->file_kind, &rec->file_len);
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

__weak __noinline __u32 text__intern(const struct text_key *of, __u64 now_ns)
{
	struct text_entry entry = {};
	struct text_key copy, *key = &copy; /* Linux 6.1 accepts no argument as a map's key */
	__u32 code;

	if (!of)
		return 0;
	copy = *of;
	code = text__find(key, now_ns, &entry);
	if (code || !entry.hash)
		return code;
	entry.code = code_object__new();
	/* Code that was not sent is not cached: the next call tries again. */
	if (text__send(key, entry.code) || bpf_map_update_elem(&texts, key, &entry, BPF_ANY))
		count(COUNT_CODE_LOST);
	return entry.code;
}

/* --- code objects, numbered together with the walker --- */

static __noinline int object__send(const struct python_offsets *offsets,
				   const struct code_fields *fields, __u32 code, __u64 address)
{
	__u64 table = fields->line_table + offsets->object_bytes, size;
	struct rec_code_object *rec;

	rec = bpf_ringbuf_reserve(&ring, sizeof(*rec), 0);
	if (!rec)
		return -1;
	__builtin_memset(rec, 0, REC_CODE_OBJECT_HEADER);
	rec->type = REC_CODE_OBJECT;
	rec->code = code;
	rec->tgid = task__pid(bpf_get_current_task_btf());
	rec->walker = WALKER_PYTHON;
	rec->address = address;
	rec->table_address = table + PYTHON_BYTES_DATA;
	rec->table_format = offsets->line_format;
	rec->first_line = fields->first_line;
	code__set_text(text__read(offsets, fields->name, rec->name), &rec->name_kind,
		       &rec->name_len);
	code__set_text(text__read(offsets, fields->file, rec->file), &rec->file_kind,
		       &rec->file_len);
	read_user(&rec->table_size, sizeof(rec->table_size), table + PYTHON_BYTES_SIZE);
	size = rec->table_size;
	if (size > CODE_OBJECT_TABLE_BYTES)
		size = CODE_OBJECT_TABLE_BYTES;
	if (read_user(rec->table, size, rec->table_address))
		rec->table_size = 0; /* then only the first line is used */
	bpf_ringbuf_submit(rec, ring__flags());
	return 0;
}

_Static_assert(PYTHON_CODE_BYTES <= 8 * SHADOW_WORDS, "code objects in struct shadow");

__weak __noinline __u32 object__intern(struct shadow *shadow, __u64 address, __u64 now_ns)
{
	__u32 space = shadow ? shadow->space : 0; /* on the stack: a key for Linux 6.1 */
	const struct python_proc_rec *proc = bpf_map_lookup_elem(&python_procs, &space);
	struct code_key key = { .address = address, .space = space };
	struct code_entry *existing, entry = { .checked_ns = now_ns };
	const struct python_offsets *offsets;
	struct code_fields fields = {};
	__u64 *words, name = 0, file = 0;

	if (!shadow)
		return 0;
	words = shadow->words;
	existing = bpf_map_lookup_elem(&python_codes, &key);
	if (existing && now_ns - existing->checked_ns < CODE_OBJECT_RECHECK_NS)
		return existing->code;
	if (!proc) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	offsets = &proc->offsets;
	if (read_user(words, PYTHON_CODE_BYTES, address + offsets->code_base)) {
		count(COUNT_PROBE_READ);
		return 0;
	}
	object__fields(words, offsets, &fields);
	if (!fields.version) {
		name = text__identity(offsets, fields.name);
		file = text__identity(offsets, fields.file);
		if (!name) {
			count(COUNT_PROBE_READ);
			return 0;
		}
	}
	entry.identity =
		hash__add(fields__identity(&fields), fields.version ? 0 : texts__hash(name, file));
	if (existing && existing->identity == entry.identity) {
		existing->checked_ns = now_ns;
		return existing->code;
	}
	entry.code = code_object__new();
	if (object__send(offsets, &fields, entry.code, address) ||
	    bpf_map_update_elem(&python_codes, &key, &entry, BPF_ANY))
		count(COUNT_CODE_LOST);
	return entry.code;
}

/* --- both, at less cost if this thread has cached the function --- */

/* The slow paths. They are two functions, because Linux 6.1 adds the stacks of all functions on a
 * possible path of a program. */
__weak __noinline __u32 text__learn(struct shadow *shadow, __u64 name, __u64 file, __u32 line)
{
	struct text_key key = { .name = name, .file = file, .line = line };
	__u32 code;

	if (!shadow)
		return 0;
	key.space = shadow->space;
	code = text__intern(&key, bpf_ktime_get_ns());
	cache__set(shadow, name, file, line, code);
	return code;
}

__weak __noinline __u32 object__learn(struct shadow *shadow, __u64 address)
{
	__u32 code;

	if (!shadow)
		return 0;
	code = object__intern(shadow, address, bpf_ktime_get_ns());
	cache__set(shadow, address, 0, 0, code);
	return code;
}

/* Both return numbers of functions, by their strings or their code objects. */
static __always_inline __u32 text__number(struct shadow *shadow, __u64 name, __u64 file, __u32 line)
{
	const struct shadow_cache *cache = cache__at(shadow, name, file, line);

	return cache__is(cache, name, file, line) ? cache->code
						  : text__learn(shadow, name, file, line);
}

static __always_inline __u32 object__number(struct shadow *shadow, __u64 address)
{
	const struct shadow_cache *cache = cache__at(shadow, address, 0, 0);

	return cache__is(cache, address, 0, 0) ? cache->code : object__learn(shadow, address);
}

#endif
