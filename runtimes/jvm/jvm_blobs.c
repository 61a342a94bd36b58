// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_blobs.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"

#define BLOCK_BYTES  32	  /* limit for the header before a blob */
#define HOPS_MAX     4096 /* back to a blob's first segment; each 254 segments or fewer */
#define SEGMENT_FREE 0xff

static uint64_t load(const uint8_t *bytes, size_t offset, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, bytes + offset, size);
	return value;
}

int jvm_blobs__read(const struct jvm_vm *vm, uint64_t address, struct jvm_blob *ret)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(vm)->offsets;
	uint8_t bytes[JVM_BLOB_BYTES] = {};
	uint64_t size_at, size;
	int rc = jvm_vm__field(vm, "CodeBlob", "_size", &size_at);

	if (rc || size_at > JVM_BLOB_BYTES - 4)
		return rc ? rc : -EBADMSG;
	rc = jvm_vm__size(vm, "CodeBlob", &size);
	if (rc)
		return rc;
	/* The blob may be the last one in readable memory. */
	if (jvm_vm__read(vm, address, bytes, JVM_BLOB_BYTES))
		rc = jvm_vm__read(vm, address, bytes, min_of(size, sizeof(bytes)));
	if (rc)
		return rc;
	ret->address = address;
	ret->code = load(bytes, offsets->blob_code,
			 offsets->code_is_offset ? offsets->code_is_offset : 8);
	if (offsets->code_is_offset)
		ret->code += address;
	ret->end = address + load(bytes, size_at, 4);
	ret->name_address = load(bytes, offsets->blob_name, 8);
	ret->method = load(bytes, offsets->nmethod_method, 8);
	ret->compile_id = load(bytes, offsets->nmethod_compile_id, 4);
	jvm_vm__text(vm, ret->name_address, ret->name, sizeof(ret->name));
	return 0;
}

int jvm_blobs__find(const struct jvm_vm *vm, uint64_t pc, struct jvm_blob *ret)
{
	const struct jvm_proc_rec *rec = jvm_vm__rec(vm);
	const struct jvm_heap *heap = NULL;
	uint64_t segment;
	uint8_t tag = 0;
	int rc;

	for (size_t i = 0; i < rec->n_heaps; i++)
		if (pc >= rec->heaps[i].low && pc < rec->heaps[i].high)
			heap = &rec->heaps[i];
	if (!heap)
		return -ENOENT;
	segment = (pc - heap->low) >> heap->segment_log2;
	for (size_t i = 0; i < HOPS_MAX; i++) {
		rc = jvm_vm__read(vm, heap->segmap + segment, &tag, sizeof(tag));
		if (rc)
			return rc;
		if (!tag)
			return jvm_blobs__read(vm,
					       heap->low + (segment << heap->segment_log2) +
						       rec->offsets.heap_block,
					       ret);
		if (tag == SEGMENT_FREE || tag > segment)
			return -ENOENT;
		segment -= tag;
	}
	return -ENOENT;
}

/* A block of a heap, HeapBlock::Header. */
struct block_layout {
	uint64_t length, length_bytes, used, size;
};

static int block_layout__get(const struct jvm_vm *vm, struct block_layout *ret)
{
	static const char TYPE[] = "HeapBlock::Header";
	int rc = jvm_vm__field(vm, TYPE, "_length", &ret->length);

	if (!rc)
		rc = jvm_vm__field_size(vm, TYPE, "_length", &ret->length_bytes);
	if (!rc)
		rc = jvm_vm__field(vm, TYPE, "_used", &ret->used);
	ret->size = jvm_vm__rec(vm)->offsets.heap_block;
	if (!rc && (ret->size > BLOCK_BYTES || ret->length_bytes > 8 || ret->length > 24 ||
		    ret->used >= BLOCK_BYTES))
		rc = -EBADMSG;
	return rc;
}

int jvm_blobs__each(const struct jvm_vm *vm, size_t i, size_t max,
		    int (*visit)(const struct jvm_blob *blob, void *arg), void *arg)
{
	const struct jvm_heap *heap = &jvm_vm__rec(vm)->heaps[i];
	uint64_t n = (heap->high - heap->low) >> heap->segment_log2, length;
	uint8_t bytes[BLOCK_BYTES] = {}, tag;
	struct block_layout layout;
	struct jvm_blob blob;
	int rc = block_layout__get(vm, &layout);

	for (uint64_t at = 0; !rc && at < n && max; at += length, max--) {
		uint64_t address = heap->low + (at << heap->segment_log2);

		/* After the last block, no segment is the first one of a block. */
		if (jvm_vm__read(vm, heap->segmap + at, &tag, sizeof(tag)) || tag ||
		    jvm_vm__read(vm, address, bytes, layout.size))
			break;
		length = load(bytes, layout.length, layout.length_bytes);
		if (!length || length > n - at)
			break;
		if (!bytes[layout.used] || jvm_blobs__read(vm, address + layout.size, &blob))
			continue;
		rc = visit(&blob, arg);
	}
	return rc;
}
