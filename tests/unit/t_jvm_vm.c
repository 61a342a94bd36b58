// SPDX-License-Identifier: GPL-2.0-or-later
/* Reading a JVM from a made-up one in the test process (jvm_image.h). Covers four generations of
 * layouts, a starting JVM, incomplete tables, freed code and methods, and invalid memory.
 * tests/long/jvm_tables.t has real ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/elf_file.h"
#include "runtimes/jvm/jvm_blobs.h"
#include "runtimes/jvm/jvm_methods.h"
#include "runtimes/jvm/jvm_nmethod.h"
#include "runtimes/jvm/jvm_vm.h"
#include "tests/tap.h"
#include "tests/unit/jvm_image.h"

#define ROUNDS 3000

static const char *const layouts[] = { "17", "23", "25", "8" };

static struct elf_file *file;
static uint64_t bias;

static void open_self(void)
{
	uint64_t vaddr = 0;

	if (elf_file__open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "libjvm.so", &file,
			   NULL) ||
	    elf_file__find_symbol(file, "gHotSpotVMStructs", &vaddr, NULL))
		exit(1);
	bias = (uint64_t)(uintptr_t)&gHotSpotVMStructs - vaddr;
}

static int open_vm(struct jvm_vm **ret, struct err *err)
{
	return jvm_vm__open(getpid(), bias, file, ret, err);
}

static uint64_t address_of(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* --- complete data --- */

static int note_name(const struct jvm_blob *blob, void *arg)
{
	char *names = arg;

	strcat(strcat(names, blob->name), ",");
	return 0;
}

static void check_vm(const struct jvm_vm *vm, enum layout layout)
{
	const struct jvm_proc_rec *rec = jvm_vm__rec(vm);
	const struct jvm_offsets *offsets = &rec->offsets;
	static const char *const versions[] = { "17.0.1+5", "23+37", "25.0.1-ea+8", "25.504-b01" };
	char names[256] = "";
	struct jvm_blob blob;

	is_str(jvm_vm__version(vm), versions[layout], "version");
	is_int(rec->n_heaps, 1, "one heap");
	ok(rec->heaps[0].low == address_of(image.code) &&
		   rec->heaps[0].high == rec->heaps[0].low + (SEGMENTS << SEGMENT_LOG2) &&
		   rec->heaps[0].segmap == address_of(image.segmap) &&
		   rec->heaps[0].segment_log2 == SEGMENT_LOG2,
	   "its place");
	is_int(jvm_vm__major(vm), layout == LAYOUT_8 ? 8 : image.major, "major version");
	is_int(rec->bcp_words, layout == LAYOUT_8 ? 7 : 8, "where frames have the bytecode");
	is_int(rec->interpreter_end - rec->interpreter_start, 300, "the interpreter");
	is_int(offsets->code_is_offset,
	       layout == LAYOUT_17   ? 0
	       : layout == LAYOUT_23 ? 2
				     : 4,
	       "kind of the code's start");
	is_int(offsets->frame_complete_is_i16, layout == LAYOUT_25, "kind of the prologue's size");
	ok(rec->nmethod_name && !rec->native_nmethod_name, "address of nmethods' name");
	jvm_blobs__each(vm, 0, SIZE_MAX, note_name, names);
	is_str(names, "StubRoutines (1),nmethod,Interpreter,", "blobs");
	is_int(jvm_blobs__find(vm, address_of(image.nmethod) + 500, &blob), 0, "a blob by a pc");
	ok(blob.address == address_of(image.nmethod) && blob.compile_id == NMETHOD_ID, "that one");
	is_int(jvm_blobs__find(vm, address_of(image.segmap) - 1, &blob), -ENOENT, "no blob");
	is_int(jvm_blobs__find(vm, address_of(image.segmap), &blob), -ENOENT, "outside");
	is_str(jvm_vm__stub(vm, address_of(image.stub) + 31), "jint_fill", "a stub");
	is_str(jvm_vm__stub(vm, address_of(image.stub_return)), "call_stub", "the next one");
	ok(!jvm_vm__stub(vm, address_of(image.stub) - 1), "before the first one");
	ok(!jvm_vm__stub(vm, address_of(image.nmethod)), "in another blob");
}

static void check_nmethod(const struct jvm_vm *vm, struct jvm_methods *methods)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	struct jvm_nmethod *nmethod = NULL;

	is_int(jvm_nmethod__open(vm, address_of(image.nmethod), NMETHOD_ID, methods, &nmethod), 0,
	       "an nmethod");
	if (!nmethod)
		return;
	is_str(jvm_nmethod__method(nmethod)->name, "demo.Image$$Lambda.outer", "its method");
	is_str(jvm_nmethod__method(nmethod)->file, "Image.java", "the file");
	is_int(jvm_nmethod__scopes(nmethod, 16, false, scopes), 2, "scopes of a return address");
	is_str(scopes[0].method->name, "demo.Image$$Lambda.inner", "the inlined method");
	is_int(jvm_method__line(scopes[0].method, scopes[0].bci), 30, "its line");
	ok(scopes[1].method == jvm_nmethod__method(nmethod) && scopes[1].bci == 4, "the caller");
	is_int(jvm_method__line(scopes[1].method, 4), 12, "its line");
	is_int(jvm_nmethod__scopes(nmethod, 16, true, scopes), 1, "the instruction there");
	ok(scopes[0].bci == 4, "is of the outer method");
	is_int(jvm_nmethod__scopes(nmethod, NMETHOD_PROLOGUE - 1, true, scopes), 1, "the prologue");
	ok(scopes[0].bci == 0, "is the method's entry");
	is_int(jvm_nmethod__scopes(nmethod, 60, true, scopes), 1, "behind all places");
	ok(scopes[0].bci == 4, "is the last one");
	is_int(jvm_nmethod__scopes(nmethod, 70, true, scopes), 1, "a stub of it");
	ok(scopes[0].bci == JVM_NO_BCI && scopes[0].method, "has no place");
	jvm_nmethod__free(nmethod);
	is_int(jvm_nmethod__open(vm, address_of(image.nmethod), NMETHOD_ID + 1, methods, &nmethod),
	       -ENOENT, "an nmethod of another compilation");
	is_int(jvm_nmethod__open(vm, address_of(image.freed), NMETHOD_ID, methods, &nmethod),
	       -ENOENT, "an nmethod that was freed");
}

/* Tests the limit of the memory that braid caches for a process. */
static void check_limit(const struct jvm_vm *vm)
{
	struct allowance allowance = { .charged_max = SIZE_MAX };
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	struct jvm_methods *methods = NULL;
	struct jvm_nmethod *nmethod = NULL;
	size_t charged;

	for (int i = 0; i < 3; i++) {
		if (jvm_methods__new(vm, &methods))
			return;
		jvm_methods__limit(methods, &allowance);
		if (jvm_nmethod__open(vm, address_of(image.nmethod), NMETHOD_ID, methods, &nmethod))
			nmethod = NULL;
		charged = allowance.charged;
		if (i < 2)
			is_int(jvm_nmethod__scopes(nmethod, 16, false, scopes), i ? 1 : 2,
			       i ? "a byte too much: only the method" : "all scopes");
		else
			ok(!nmethod, "no room at all: nothing");
		allowance.charged_max = i ? 1 : charged - 1;
		jvm_nmethod__free(nmethod);
		jvm_methods__free(methods);
		is_int(allowance.charged, 0, "nothing is kept in the end");
	}
}

/* Another class uses the memory of the method's class. */
static void check_methods(struct jvm_methods *methods)
{
	const struct jvm_method *before = jvm_methods__get(methods, address_of(image.inner)), *now;
	uint64_t old = 0, new = 0;
	uint8_t *pool = image__class("Other", "changed", "inner");

	memcpy(&old, image.inner + 8, sizeof(old)); /* _constMethod, in every layout */
	memcpy(image.inner, image__method(pool, 1, 40), 64);
	memcpy(&new, image.inner + 8, sizeof(new));
	ok(!jvm_methods__get_sampled(methods, address_of(image.inner), old),
	   "a sample of the one before has no name of the new one");
	ok(jvm_methods__get_sampled(methods, address_of(image.inner), new), "its own sample has");
	now = jvm_methods__get(methods, address_of(image.inner));
	ok(now && before && now != before, "a method in the place of another one");
	is_str(now->name, "Other.changed", "is known by its own name");
	is_str(before->name, "demo.Image$$Lambda.inner", "and the other one still");
	ok(now == jvm_methods__get(methods, address_of(image.inner)), "it is read once");
	memset(image.inner, 0, 64);
	ok(now == jvm_methods__get(methods, address_of(image.inner)), "and serves when it is gone");
	ok(!jvm_methods__get(methods, address_of(image.inner) + 8), "what is none");
}

static void check_layout(enum layout layout)
{
	struct jvm_methods *methods = NULL;
	struct jvm_vm *vm = NULL;
	struct err err = {};

	tap__diag("layout of JDK %s", layouts[layout]);
	image__build(layout);
	is_int(open_vm(&vm, &err), 0, "opens %s", err.text);
	if (!vm)
		return;
	check_vm(vm, layout);
	is_int(jvm_methods__new(vm, &methods), 0, "methods");
	check_nmethod(vm, methods);
	check_limit(vm);
	check_methods(methods);
	jvm_methods__free(methods);
	jvm_vm__free(vm);
}

/* --- missing data --- */

static void check_start(void)
{
	struct jvm_vm *vm;

	image__build(LAYOUT_25);
	image.n_threads = 0;
	is_int(open_vm(&vm, NULL), -EAGAIN, "without a thread");
	image.n_threads = 1;
	SET(image.interpreter, "StubQueue", "_queue_end", 20);
	is_int(open_vm(&vm, NULL), -EAGAIN, "with its first thread, and half of an interpreter");
	SET(image.interpreter, "StubQueue", "_queue_end", 290);
	is_int(open_vm(&vm, NULL), 0, "with its first thread, and the whole interpreter");
	jvm_vm__free(vm);
	image__build(LAYOUT_25);
	image.interpreter = NULL;
	is_int(open_vm(&vm, NULL), -EAGAIN, "without an interpreter");
	image__build(LAYOUT_25);
	memset(image.heaps, 0, 4);
	is_int(open_vm(&vm, NULL), -EAGAIN, "without code heaps");
	gHotSpotVMStructEntryOffsetOffset = 0;
	is_int(open_vm(&vm, NULL), -EAGAIN, "before its constructors have run");
	gHotSpotVMStructEntryOffsetOffset = offsetof(struct struct_entry, offset);
	gHotSpotVMTypeEntryArrayStride = 0;
	is_int(open_vm(&vm, NULL), -EAGAIN, "the same with the other tables");
	gHotSpotVMTypeEntryArrayStride = sizeof(struct type_entry);
}

static void refuses(const char *says, const char *name)
{
	struct err err = {};
	struct jvm_vm *vm;

	is_int(open_vm(&vm, &err), -ENOTSUP, "%s", name);
	ok(strstr(err.text, says), "is told: %s", err.text);
}

/* Interpreters with frames of an unknown form, and a JVM before JDK 8. */
static void check_unknown(void)
{
	uint8_t *code;

	image__build(LAYOUT_25);
	memcpy(&code, image.interpreter + 8, sizeof(code));
	for (size_t at = 40; at < 240; at += 4)
		code[at + 3] = -72;
	refuses("JDK 25 makes frames of an unknown layout", "another place of the bytecode");
	image__build(LAYOUT_25);
	memcpy(&code, image.interpreter + 8, sizeof(code));
	for (size_t at = 140; at < 240; at += 4)
		code[at + 3] = -56;
	refuses("JDK 25 makes frames of an unknown layout", "two places");
	image__build(LAYOUT_25);
	memcpy(&code, image.interpreter + 8, sizeof(code));
	memmove(code + 8, code + 6, 22); /* push 0, a second time */
	memcpy(code + 6, "\x6a\0", 2);
	refuses("JDK 25 makes frames of an unknown layout", "another place of the method");
	image__build(LAYOUT_25);
	memcpy(&code, image.interpreter + 8, sizeof(code));
	memset(code, 0x90, 40);
	refuses("JDK 25 makes frames of an unknown layout", "no code that makes frames");
	image__build(LAYOUT_8);
	image.major = 24;
	refuses("HotSpot 24 is not supported", "JDK 7");
}

/* Reading works without any one field, or the error names the missing field. */
static void check_lacks(enum layout layout)
{
	size_t n = 0, n_refused = 0, wrong = 0;
	struct jvm_methods *methods;
	struct jvm_vm *vm;

	for (size_t i = 0; i == 0 || i < n; i++) {
		struct err err = {};
		int rc;

		image__build(layout);
		for (n = 0; image_structs[n].type; n++)
			;
		image_structs[i].field = "_unknown";
		rc = open_vm(&vm, &err);
		n_refused += rc == -ENOTSUP;
		wrong += rc && (rc != -ENOTSUP || !strstr(err.text, "does not describe "));
		if (rc)
			continue;
		rc = jvm_methods__new(vm, &methods);
		wrong += rc && rc != -ENOTSUP;
		if (!rc)
			jvm_methods__free(methods);
		jvm_vm__free(vm);
	}
	ok(!wrong && n_refused > 15, "layout of %s: %zu of %zu fields are needed at once",
	   layouts[layout], n_refused, n);
}

/* --- invalid data --- */

static uint64_t random_u64(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ULL + 1442695040888963407ULL;
	return state >> 11 ^ state << 40;
}

struct user {
	struct jvm_vm *vm;
	struct jvm_methods *methods;
	size_t n_opened, n_nmethods, n_scopes;
};

static int use_blob(const struct jvm_blob *blob, void *arg)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX];
	struct jvm_nmethod *nmethod;
	struct user *user = arg;

	jvm_vm__stub(user->vm, blob->code + 20);
	if (jvm_nmethod__open(user->vm, blob->address, blob->compile_id, user->methods, &nmethod))
		return 0;
	for (uint32_t pc = 0; pc < 80; pc += 4) {
		size_t n = jvm_nmethod__scopes(nmethod, pc, pc & 4, scopes);

		for (size_t i = 0; i < n; i++)
			jvm_method__line(scopes[i].method, scopes[i].bci);
		user->n_scopes += n;
	}
	user->n_nmethods++;
	jvm_nmethod__free(nmethod);
	return 0;
}

/* Replaces random words with a number, a near address or a far address. */
static void spoil(void)
{
	for (size_t n = random_u64() % 8; n; n--) {
		size_t at = random_u64() % (image.used - 8), size = 1 << random_u64() % 4;
		uint64_t values[] = { random_u64(), random_u64() % 256, 0, UINT64_MAX,
				      address_of(image.bytes) + random_u64() % image.used };

		memcpy(image.bytes + at, &values[random_u64() % ARRAY_SIZE(values)], size);
	}
	if (random_u64() % 4 == 0)
		image_structs[random_u64() % 60].offset = random_u64() % 600;
	if (random_u64() % 16 == 0)
		image_structs[random_u64() % 60].offset = random_u64();
	if (random_u64() % 16 == 0)
		image_types[random_u64() % 14].size =
			random_u64() % 2 ? random_u64() : random_u64() % 500;
	if (random_u64() % 16 == 0)
		image_structs[random_u64() % 60].kind = (const char *)(uintptr_t)random_u64();
}

static void set_field(const char *type, const char *field, uint64_t offset)
{
	for (struct struct_entry *entry = image_structs; entry->type; entry++)
		if (!strcmp(entry->type, type) && !strcmp(entry->field, field))
			entry->offset = offset;
}

static void set_size(const char *type, uint64_t size)
{
	for (struct type_entry *entry = image_types; entry->name; entry++)
		if (!strcmp(entry->name, type))
			entry->size = size;
}

/* Fields of a place in the code that are outside it, or that end before they begin. */
static void check_places(void)
{
	static const struct {
		uint64_t size, offset;
	} cases[] = { { 0, -4 }, { 0, 0 }, { 8, -1 }, { 3, -4 }, { 8, 5 }, { 8, UINT64_MAX / 2 } };
	struct jvm_nmethod *nmethod;
	struct user user = {};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		image__build(LAYOUT_25);
		set_size("PcDesc", cases[i].size);
		set_field("PcDesc", "_pc_offset", cases[i].offset);
		set_field("PcDesc", "_scope_decode_offset", cases[i].offset);
		if (open_vm(&user.vm, NULL) || jvm_methods__new(user.vm, &user.methods))
			exit(1);
		is_int(jvm_nmethod__open(user.vm, address_of(image.nmethod), NMETHOD_ID,
					 user.methods, &nmethod),
		       -EBADMSG, "places of %d bytes, fields at %d", (int)cases[i].size,
		       (int)cases[i].offset);
		jvm_methods__free(user.methods);
		jvm_vm__free(user.vm);
	}
}

static void check_nonsense(void)
{
	struct user user = {};

	for (size_t round = 0; round < ROUNDS; round++) {
		image__build(round % LAYOUTS);
		spoil();
		if (open_vm(&user.vm, NULL))
			continue;
		user.n_opened++;
		if (jvm_methods__new(user.vm, &user.methods) == 0) {
			for (size_t i = 0; i < jvm_vm__rec(user.vm)->n_heaps; i++)
				jvm_blobs__each(user.vm, i, 100, use_blob, &user);
			jvm_methods__free(user.methods);
		}
		jvm_vm__free(user.vm);
	}
	ok(user.n_opened > ROUNDS / 2 && user.n_nmethods > ROUNDS / 2,
	   "%d spoilt ones: %zu opened, %zu nmethods, %zu scopes", ROUNDS, user.n_opened,
	   user.n_nmethods, user.n_scopes);
}

int main(void)
{
	open_self();
	for (enum layout layout = 0; layout < LAYOUTS; layout++)
		check_layout(layout);
	check_start();
	check_unknown();
	for (enum layout layout = 0; layout < LAYOUTS; layout++)
		check_lacks(layout);
	check_places();
	check_nonsense();
	elf_file__free(file);
	return tap__done();
}
