/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_JVM_IMAGE_H
#define BRAID_TESTS_JVM_IMAGE_H

/* A JVM's memory, as far as runtimes/jvm_*.c read it, inside the test process. It has tables under
 * the names that libjvm.so exports and one code heap. The heap has a compiled method, a freed one,
 * and stubs. The two methods of one class have the layout of four generations of HotSpot. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

enum layout { LAYOUT_17, LAYOUT_23, LAYOUT_25, LAYOUT_8, LAYOUTS };

#define ABSENT (-1)
/* An entry, as in libjvm.so. */
struct struct_entry {
	const char *type, *field, *kind;
	int32_t is_static;
	uint64_t offset;
	void *address;
};

struct type_entry {
	const char *name, *super;
	int32_t is_oop, is_integer, is_unsigned;
	uint64_t size;
};

struct int_entry {
	const char *name;
	int32_t value;
};

struct long_entry {
	const char *name;
	uint64_t value;
};

static struct struct_entry image_structs[80];
static struct type_entry image_types[40];
static struct int_entry image_ints[4];
static struct long_entry image_longs[2];

struct struct_entry *gHotSpotVMStructs = image_structs;
struct type_entry *gHotSpotVMTypes = image_types;
struct int_entry *gHotSpotVMIntConstants = image_ints;
struct long_entry *gHotSpotVMLongConstants = image_longs;

uint64_t gHotSpotVMStructEntryArrayStride = sizeof(struct struct_entry);
uint64_t gHotSpotVMStructEntryTypeNameOffset = offsetof(struct struct_entry, type);
uint64_t gHotSpotVMStructEntryFieldNameOffset = offsetof(struct struct_entry, field);
uint64_t gHotSpotVMStructEntryTypeStringOffset = offsetof(struct struct_entry, kind);
uint64_t gHotSpotVMStructEntryIsStaticOffset = offsetof(struct struct_entry, is_static);
uint64_t gHotSpotVMStructEntryOffsetOffset = offsetof(struct struct_entry, offset);
uint64_t gHotSpotVMStructEntryAddressOffset = offsetof(struct struct_entry, address);
uint64_t gHotSpotVMTypeEntryArrayStride = sizeof(struct type_entry);
uint64_t gHotSpotVMTypeEntryTypeNameOffset = offsetof(struct type_entry, name);
uint64_t gHotSpotVMTypeEntrySizeOffset = offsetof(struct type_entry, size);
uint64_t gHotSpotVMIntConstantEntryArrayStride = sizeof(struct int_entry);
uint64_t gHotSpotVMIntConstantEntryNameOffset = offsetof(struct int_entry, name);
uint64_t gHotSpotVMIntConstantEntryValueOffset = offsetof(struct int_entry, value);
uint64_t gHotSpotVMLongConstantEntryArrayStride = sizeof(struct long_entry);
uint64_t gHotSpotVMLongConstantEntryNameOffset = offsetof(struct long_entry, name);
uint64_t gHotSpotVMLongConstantEntryValueOffset = offsetof(struct long_entry, value);

/* --- layouts --- */

static const struct image_field {
	const char *type, *field, *kind;
	int at[LAYOUTS];
} image_fields[] = {
	{ "CodeBlob", "_name", "const char*", { 96, 8, 8, 8 } },
	{ "CodeBlob", "_size", "int", { 12, 24, 24, 16 } },
	{ "CodeBlob", "_frame_size", "int", { 28, 44, 44, 44 } },
	{ "CodeBlob", "_frame_complete_offset", "int", { 20, 28, ABSENT, 36 } },
	{ "CodeBlob", "_frame_complete_offset", "int16_t", { ABSENT, ABSENT, 54, ABSENT } },
	{ "CodeBlob", "_code_begin", "address", { 32, ABSENT, ABSENT, ABSENT } },
	{ "CodeBlob", "_code_offset", "u2", { ABSENT, 36, ABSENT, ABSENT } },
	{ "CodeBlob", "_code_offset", "int", { ABSENT, ABSENT, 36, 32 } },
	{ "CodeBlob", "_data_offset", "int", { 24, 40, 40, 40 } },
	{ "CodeBlob", "_mutable_data", "address", { ABSENT, ABSENT, 16, ABSENT } },
	{ "CodeBlob", "_mutable_data_size", "int", { ABSENT, ABSENT, 48, ABSENT } },
	{ "CodeBlob", "_relocation_size", "int", { ABSENT, ABSENT, 28, 24 } },
	{ "CompiledMethod", "_method", "Method*", { 112, ABSENT, ABSENT, ABSENT } },
	{ "CompiledMethod", "_scopes_data_begin", "address", { 120, ABSENT, ABSENT, ABSENT } },
	{ "nmethod", "_method", "Method*", { ABSENT, 80, 80, 64 } },
	{ "nmethod", "_compile_id", "int", { 304, 212, 212, 204 } },
	{ "nmethod", "_entry_bci", "int", { 192, 156, 156, 72 } },
	{ "nmethod", "_stub_offset", "int", { 252, 168, 168, 164 } },
	{ "nmethod", "_metadata_offset", "int", { 260, ABSENT, ABSENT, 172 } },
	{ "nmethod", "_metadata_offset", "u2", { ABSENT, 172, ABSENT, ABSENT } },
	{ "nmethod", "_dependencies_offset", "int", { 272, ABSENT, ABSENT, 184 } },
	{ "nmethod", "_scopes_pcs_offset", "int", { 268, 196, 196, 180 } },
	{ "nmethod", "_scopes_data_offset", "int", { ABSENT, 200, 200, 176 } },
	{ "nmethod", "_immutable_data", "address", { ABSENT, 96, 96, ABSENT } },
	{ "nmethod", "_immutable_data_size", "int", { ABSENT, 160, 160, ABSENT } },
	{ "HeapBlock::Header", "_length", "size_t", { 0, 0, ABSENT, 0 } },
	{ "HeapBlock::Header", "_length", "uint32_t", { ABSENT, ABSENT, 0, ABSENT } },
	{ "HeapBlock::Header", "_used", "bool", { 8, 8, 4, 8 } },
	{ "PcDesc", "_pc_offset", "int", { 0, 0, 0, 0 } },
	{ "PcDesc", "_scope_decode_offset", "int", { 4, 4, 4, 4 } },
	{ "GrowableArrayBase", "_len", "int", { 0, 0, 0, ABSENT } },
	{ "GrowableArray<int>", "_data", "int*", { 8, 8, 8, 24 } },
	{ "CodeHeap", "_memory", "VirtualSpace", { 8, 0, 0, 0 } },
	{ "CodeHeap", "_segmap", "VirtualSpace", { 72, 64, 64, 112 } },
	{ "CodeHeap", "_log2_segment_size", "int", { 136, 128, 128, 248 } },
	{ "VirtualSpace", "_low_boundary", "char*", { 0, 0, 0, 0 } },
	{ "VirtualSpace", "_high_boundary", "char*", { 8, 8, 8, 8 } },
	{ "StubQueue", "_stub_buffer", "address", { 8, 8, 8, 8 } },
	{ "StubQueue", "_buffer_limit", "int", { 20, 20, 20, 20 } },
	{ "StubQueue", "_queue_end", "int", { 24, 24, 24, 24 } },
	{ "Method", "_constMethod", "ConstMethod*", { 8, 8, 8, 8 } },
	{ "ConstMethod", "_constants", "ConstantPool*", { 8, 8, 8, 8 } },
	{ "ConstMethod", "_constMethod_size", "int", { 24, 24, 24, 24 } },
	{ "ConstMethod", "_flags", "u2", { 28, ABSENT, ABSENT, 28 } },
	{ "ConstMethod", "_flags._flags", "u4", { ABSENT, 28, 28, ABSENT } },
	{ "ConstMethod", "_code_size", "u2", { 32, 34, 34, 32 } },
	{ "ConstMethod", "_name_index", "u2", { 34, 36, 36, 34 } },
	{ "ConstantPool", "_tags", "Array<u1>*", { 8, 8, 8, 8 } },
	{ "ConstantPool", "_pool_holder", "InstanceKlass*", { 24, 24, 24, 24 } },
	{ "ConstantPool", "_length", "int", { 60, 60, 60, 60 } },
	{ "ConstantPool", "_source_file_name_index", "u2", { ABSENT, 54, 54, ABSENT } },
	{ "InstanceKlass", "_source_file_name_index", "u2", { 60, ABSENT, ABSENT, 258 } },
	{ "Array<u1>", "_data", "", { 4, 4, 4, 4 } },
	{ "Klass", "_name", "Symbol*", { 24, 24, 24, 16 } },
	{ "Symbol", "_length", "u2", { 4, 4, 4, 0 } },
	{ "Symbol", "_body", "", { 6, 6, 6, 8 } },
};

static const struct {
	const char *type;
	int size[LAYOUTS];
} image_sizes[] = {
	{ "CodeBlob", { 104, 64, 64, 64 } },
	{ "nmethod", { 352, 224, 224, 296 } },
	{ "HeapBlock", { 16, 16, 8, 16 } },
	{ "PcDesc", { 16, 16, 16, 16 } },
	{ "ConstMethod", { 48, 56, 56, 48 } },
	{ "ConstantPool", { 72, 72, 72, 80 } },
	{ "int", { 4, 4, 4, 4 } },
	{ "int16_t", { 2, 2, 2, 2 } },
	{ "uint32_t", { 4, 4, 4, 4 } },
	{ "size_t", { 8, 8, 8, 8 } },
	{ "bool", { 1, 1, 1, 1 } },
	{ "u2", { 2, 2, 2, 2 } },
	{ "u4", { 4, 4, 4, 4 } },
	{ "address", { 8, 8, 8, 8 } },
};

/* --- memory --- */

#define SEGMENTS     64
#define SEGMENT_LOG2 7
#define IMAGE_BYTES  (64 * 1024)

static struct image {
	enum layout layout;
	size_t used;
	uint8_t *heaps,
		*interpreter; /* the variables CodeCache::_heaps, AbstractInterpreter::_code */
	int32_t n_threads, major;
	const char *release;
	uint8_t *stub, *stub_return;
	uint8_t *code, *segmap;	    /* code heap */
	uint8_t *nmethod, *freed;   /* CodeBlobs */
	uint8_t *outer, *inner;	    /* Methods */
	uint8_t bytes[IMAGE_BYTES]; /* memory of the heaps and objects above */
} image;

static inline uint8_t *image__take(size_t size)
{
	uint8_t *at = image.bytes + image.used;

	image.used += (size + 15) / 16 * 16;
	if (image.used > IMAGE_BYTES)
		abort();
	return at;
}

static inline int image__size(const char *type)
{
	for (size_t i = 0; i < ARRAY_SIZE(image_sizes); i++)
		if (strcmp(image_sizes[i].type, type) == 0)
			return image_sizes[i].size[image.layout];
	return 8; /* size of a pointer */
}

/* Sets a field of @object; does nothing if the layout does not have the field. */
static inline void image__set(uint8_t *object, const char *type, const char *field, uint64_t value)
{
	for (size_t i = 0; i < ARRAY_SIZE(image_fields); i++) {
		const struct image_field *known = &image_fields[i];

		if (known->at[image.layout] != ABSENT && strcmp(known->type, type) == 0 &&
		    strcmp(known->field, field) == 0)
			memcpy(object + known->at[image.layout], &value, image__size(known->kind));
	}
}

#define SET(object, type, field, value) \
	image__set(object, type, field, (uint64_t)(uintptr_t)(value))

/* --- contents --- */

static inline void image__add_tables(void)
{
	const struct {
		const char *type, *field, *kind;
		void *address;
	} statics[] = {
		{ "CodeCache", image.layout == LAYOUT_8 ? "_heap" : "_heaps", "", &image.heaps },
		{ "AbstractInterpreter", "_code", "StubQueue*", &image.interpreter },
		{ "Threads", "_number_of_threads", "int", &image.n_threads },
		{ "Abstract_VM_Version", "_vm_major_version", "int", &image.major },
		{ "Abstract_VM_Version", "_s_vm_release", "const char*", &image.release },
		{ "StubRoutines", "_jint_fill", "address", &image.stub },
		{ "StubRoutines", "_call_stub_return_address", "address", &image.stub_return },
	};
	size_t n = 0;

	memset(image_structs, 0, sizeof(image_structs));
	for (size_t i = 0; i < ARRAY_SIZE(image_fields); i++)
		if (image_fields[i].at[image.layout] != ABSENT)
			image_structs[n++] = (struct struct_entry) {
				image_fields[i].type,
				image_fields[i].field,
				image_fields[i].kind[0] ? image_fields[i].kind : NULL,
				.offset = image_fields[i].at[image.layout],
			};
	for (size_t i = 0; i < ARRAY_SIZE(statics); i++)
		image_structs[n++] = (struct struct_entry) {
			statics[i].type, statics[i].field, statics[i].kind, 1, 0, statics[i].address
		};
	for (size_t i = 0; i < ARRAY_SIZE(image_sizes); i++)
		image_types[i] = (struct type_entry) { .name = image_sizes[i].type,
						       .size = image_sizes[i].size[image.layout] };
	image_ints[0] =
		(struct int_entry) { image.layout == LAYOUT_17 || image.layout == LAYOUT_8
					     ? "ConstMethod::_has_linenumber_table"
					     : "ConstMethodFlags::_misc_has_linenumber_table",
				     1 };
}

static inline uint8_t *image__symbol(const char *text)
{
	size_t body = image.layout == LAYOUT_8 ? 8 : 6;
	uint8_t *symbol = image__take(body + strlen(text));

	SET(symbol, "Symbol", "_length", strlen(text));
	memcpy(symbol + body, text, strlen(text));
	return symbol;
}

/* Makes a class. Constants 1 and 2 are the names of the methods, constant 3 is the file. */
static inline uint8_t *image__class(const char *name, const char *first, const char *second)
{
	const char *const texts[] = { NULL, first, second, "Image.java" };
	uint8_t *pool = image__take(image__size("ConstantPool") + sizeof(texts));
	uint8_t *tags = image__take(4 + ARRAY_SIZE(texts)), *holder = image__take(64);

	SET(holder, "Klass", "_name", image__symbol(name));
	SET(holder, "InstanceKlass", "_source_file_name_index", 3);
	SET(pool, "ConstantPool", "_pool_holder", holder);
	SET(pool, "ConstantPool", "_tags", tags);
	SET(pool, "ConstantPool", "_length", ARRAY_SIZE(texts));
	SET(pool, "ConstantPool", "_source_file_name_index", 3);
	for (size_t i = 1; i < ARRAY_SIZE(texts); i++) {
		uint8_t *symbol = image__symbol(texts[i]);

		memcpy(pool + image__size("ConstantPool") + i * 8, &symbol, sizeof(symbol));
		tags[4 + i] = 1;
	}
	return pool;
}

/* Returns true if compressed numbers contain no byte 0. */
static inline bool image__excludes_zero(void)
{
	return image.layout != LAYOUT_17 && image.layout != LAYOUT_8;
}

/* Makes a method of 8 bytes of bytecodes. Bytecodes from 4 on belong to line @line + 2. */
static inline uint8_t *image__method(uint8_t *pool, int name, int line)
{
	size_t fixed = image__size("ConstMethod"), x = image__excludes_zero();
	uint8_t *method = image__take(64), *made = image__take(fixed + 16);
	const uint8_t lines[] = { 0xff, 0 + x, 2 * line + x, 4 << 3 | 2, 0 };

	SET(method, "Method", "_constMethod", made);
	SET(made, "ConstMethod", "_constants", pool);
	SET(made, "ConstMethod", "_constMethod_size", fixed / 8 + 2);
	SET(made, "ConstMethod", "_flags", 1);
	SET(made, "ConstMethod", "_flags._flags", 1);
	SET(made, "ConstMethod", "_code_size", 8);
	SET(made, "ConstMethod", "_name_index", name);
	memcpy(made + fixed + 8, lines, sizeof(lines));
	return method;
}

/* Makes a block of @n segments from segment @first on, with a blob in it. */
static inline uint8_t *image__blob(size_t first, size_t n, const char *name)
{
	uint8_t *block = image.code + (first << SEGMENT_LOG2);
	uint8_t *blob = block + image__size("HeapBlock");
	size_t code = image__size("CodeBlob");

	for (size_t i = 0; i < n; i++)
		image.segmap[first + i] = i;
	SET(block, "HeapBlock::Header", "_length", n);
	SET(block, "HeapBlock::Header", "_used", 1);
	SET(blob, "CodeBlob", "_name", name);
	SET(blob, "CodeBlob", "_size", (n << SEGMENT_LOG2) - image__size("HeapBlock"));
	SET(blob, "CodeBlob", "_code_begin", blob + code);
	SET(blob, "CodeBlob", "_code_offset", code);
	return blob;
}

#define NMETHOD_ID	 7
#define NMETHOD_CODE	 384 /* bytes from the start of the nmethod */
#define NMETHOD_STUBS	 (NMETHOD_CODE + 64)
#define NMETHOD_DATA	 (NMETHOD_CODE + 96)
#define NMETHOD_PROLOGUE 8

/* Makes the compiled code of `outer`. `inner` is inlined up to byte 16 of the code, where it calls
 * another function. */
static inline uint8_t *image__nmethod(size_t first)
{
	static const int32_t pcs[][4] = { { -1, 0 }, { 16, 4 }, { 32, 1 }, { INT32_MAX, 0 } };
	uint8_t *blob = image__blob(first, 8, "nmethod"), *apart = image__take(256);
	uint8_t *data = image.layout == LAYOUT_25 ? image__take(64) : blob + NMETHOD_DATA;
	uint8_t x = image__excludes_zero();
	bool is_after = image.layout == LAYOUT_17 || image.layout == LAYOUT_8;
	const uint8_t scopes[] = { 0xff, 0 + x, 1 + x, 4 + 1 + x, 1 + x, 2 + x, 0 + 1 + x };
	uint8_t *scopes_at = is_after ? blob + NMETHOD_DATA + 24 : apart + 72;
	uint8_t *pcs_at = is_after ? scopes_at + 8 : apart + 8;

	SET(blob, "CodeBlob", "_code_begin", blob + NMETHOD_CODE);
	SET(blob, "CodeBlob", "_code_offset", NMETHOD_CODE);
	SET(blob, "CodeBlob", "_frame_complete_offset", NMETHOD_PROLOGUE);
	SET(blob, "CodeBlob", "_data_offset", NMETHOD_DATA);
	SET(blob, "CodeBlob", "_mutable_data", data);
	SET(blob, "CodeBlob", "_mutable_data_size", 24);
	SET(blob, "CodeBlob", "_relocation_size", 8);
	SET(blob, "CompiledMethod", "_method", image.outer);
	SET(blob, "CompiledMethod", "_scopes_data_begin", scopes_at);
	SET(blob, "nmethod", "_method", image.outer);
	SET(blob, "nmethod", "_compile_id", NMETHOD_ID);
	SET(blob, "nmethod", "_entry_bci", -1);
	SET(blob, "nmethod", "_stub_offset", NMETHOD_STUBS);
	SET(blob, "nmethod", "_metadata_offset", is_after ? NMETHOD_DATA + 8 : 8);
	SET(blob, "nmethod", "_scopes_pcs_offset", is_after ? pcs_at - blob : pcs_at - apart);
	SET(blob, "nmethod", "_dependencies_offset", pcs_at + sizeof(pcs) - blob);
	SET(blob, "nmethod", "_scopes_data_offset", scopes_at - (is_after ? blob : apart));
	SET(blob, "nmethod", "_immutable_data", apart);
	SET(blob, "nmethod", "_immutable_data_size", 128);
	memcpy(data + 8, &image.outer, 8);
	memcpy(data + 16, &image.inner, 8);
	memcpy(scopes_at, scopes, sizeof(scopes));
	memcpy(pcs_at, pcs, sizeof(pcs));
	return blob;
}

/* Writes the code of an interpreter that makes a frame and loads the address of the bytecode. */
static inline void image__interpret(uint8_t *code)
{
	static const uint8_t frame_8[] = "\x55\x48\x8b\xec\x41\x55\x68\0\0\0\0\x4c\x8b\x6b\x08"
					 "\x4d\x8d\x6d\x30\x53";
	static const uint8_t frame[] = "\x55\x48\x8b\xec\x41\x55\x48\x8b\x43\x08\x4c\x8d\x68\x38"
				       "\x48\x8b\x40\x08\x68\0\0\0\0\x53";
	bool is_8 = image.layout == LAYOUT_8;
	const uint8_t load[] = { 0x4c, 0x8b, 0x6d, is_8 ? -56 : -64 };

	if (is_8)
		memcpy(code, frame_8, sizeof(frame_8));
	else
		memcpy(code, frame, sizeof(frame));
	for (size_t at = 40; at < 240; at += sizeof(load))
		memcpy(code + at, load, sizeof(load));
}

static inline void image__build(enum layout layout)
{
	static const int majors[] = { 17, 23, 25, 25 }; /* JDK 8 has HotSpot 25 */
	static const char *const releases[] = { "17.0.1+5-Debian-1", "23+37-2369", "25.0.1-ea+8",
						"25.504-b01" };
	uint8_t *heap, *pool, *stubs, *code;
	uint64_t memory, segmap;

	memset(&image, 0, sizeof(image));
	image.layout = layout;
	image.major = majors[layout];
	image.release = releases[layout];
	image.n_threads = 5;
	image__add_tables();
	image.code = image__take(SEGMENTS << SEGMENT_LOG2);
	image.segmap = image__take(SEGMENTS);
	memset(image.segmap, 0xff, SEGMENTS);
	heap = image__take(256);
	memory = layout == LAYOUT_17 ? 8 : 0;
	segmap = memory + (layout == LAYOUT_8 ? 112 : 64);
	SET(heap + memory, "VirtualSpace", "_low_boundary", image.code);
	SET(heap + memory, "VirtualSpace", "_high_boundary",
	    image.code + (SEGMENTS << SEGMENT_LOG2));
	SET(heap + segmap, "VirtualSpace", "_low_boundary", image.segmap);
	SET(heap + segmap, "VirtualSpace", "_high_boundary", image.segmap + SEGMENTS);
	SET(heap, "CodeHeap", "_log2_segment_size", SEGMENT_LOG2);
	image.heaps = layout == LAYOUT_8 ? heap : image__take(16);
	if (layout != LAYOUT_8) {
		SET(image.heaps, "GrowableArrayBase", "_len", 1);
		SET(image.heaps, "GrowableArray<int>", "_data", image__take(8));
		memcpy(image.bytes + image.used - 16, &heap, sizeof(heap));
	}
	pool = image__class("demo/Image$$Lambda+0x00007f0012345678", "outer", "inner");
	image.outer = image__method(pool, 1, 10);
	image.inner = image__method(pool, 2, 30);
	stubs = image__blob(0, 2, "StubRoutines (1)");
	image.stub = stubs + image__size("CodeBlob") + 16;
	image.stub_return = image.stub + 32;
	image.nmethod = image__nmethod(2);
	image.freed = image__nmethod(10);
	SET(image.freed - image__size("HeapBlock"), "HeapBlock::Header", "_used", 0);
	image.interpreter = image__take(48);
	code = image__blob(18, 4, "Interpreter") + image__size("CodeBlob");
	image__interpret(code);
	SET(image.interpreter, "StubQueue", "_stub_buffer", code);
	SET(image.interpreter, "StubQueue", "_buffer_limit", 300);
	SET(image.interpreter, "StubQueue", "_queue_end", 290);
}

#endif
