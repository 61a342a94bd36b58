// SPDX-License-Identifier: GPL-2.0-or-later
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
#include "tests/fuzz/fuzz.h"
#include "tests/unit/jvm_image.h"

#define EDITS_MAX 32
#define BLOBS_MAX 100

/* A change of the made-up JVM's memory, or of one of the tables that describe it. */
struct edit {
	uint16_t at;
	uint8_t size_log2;
	uint8_t kind;
	int32_t value;
};

enum edit_kind {
	EDIT_VALUE,   /* value in the memory */
	EDIT_ADDRESS, /* value in the memory: an address in it */
	EDIT_OFFSET,  /* offset of a field */
	EDIT_SIZE,    /* size of a type */
	EDIT_KINDS_N
};

/* Makes a file with those symbols of this program that a JVM has, too. It has no others, as symbols
 * are looked up one after the other. */
static const struct elf_file *make_file(uint64_t *ret_bias)
{
	static struct elf_file *file;
	static uint64_t bias;
	uint64_t vaddr = 0;
	char flags[256];
	uint8_t *data;
	size_t size;

	if (!file) {
		snprintf(flags, sizeof(flags),
			 "$(nm /proc/%d/exe | sed -n "
			 "'s/^\\([0-9a-f]*\\) . \\(gHotSpot.*\\)/-Wl,--defsym=\\2=0x\\1/p')",
			 getpid());
		data = fuzz__compile(flags, "int main(void) { return 0; }\n", &size);
		if (elf_file__open_memory(data, size, "libjvm.so", &file, NULL) ||
		    elf_file__find_symbol(file, "gHotSpotVMStructs", &vaddr, NULL))
			fuzz__die("the target does not find its own tables");
		free(data);
		bias = (uint64_t)(uintptr_t)&gHotSpotVMStructs - vaddr;
	}
	*ret_bias = bias;
	return file;
}

static void apply(const struct edit *edit)
{
	size_t size = 1 << edit->size_log2 % 4, at = edit->at % (image.used - sizeof(uint64_t));
	uint64_t value = edit->value;

	switch (edit->kind % EDIT_KINDS_N) {
	case EDIT_OFFSET:
		if (image_structs[edit->at % ARRAY_SIZE(image_structs)].type)
			image_structs[edit->at % ARRAY_SIZE(image_structs)].offset = value;
		break;
	case EDIT_SIZE:
		if (image_types[edit->at % ARRAY_SIZE(image_types)].name)
			image_types[edit->at % ARRAY_SIZE(image_types)].size = value;
		break;
	case EDIT_ADDRESS:
		value = (uint64_t)(uintptr_t)image.bytes + edit->value;
		/* fall through */
	default:
		memcpy(image.bytes + at, &value, size);
		break;
	}
}

struct user {
	struct jvm_vm *vm;
	struct jvm_methods *methods;
	size_t n_lines;
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
			user->n_lines += jvm_method__line(scopes[i].method, scopes[i].bci) > 0;
	}
	jvm_nmethod__free(nmethod);
	return 0;
}

/* Reads the memory of a JVM, in which any value may be wrong. The first byte selects the
 * generation, and changes follow. */
bool target__run(const uint8_t *data, size_t size)
{
	struct user user = {};
	struct edit edit;
	const struct elf_file *file;
	uint64_t bias;

	if (!size)
		return false;
	image__build(data[0] % LAYOUTS);
	data++;
	size--;
	for (size_t i = 0; i < EDITS_MAX && (i + 1) * sizeof(edit) <= size; i++) {
		memcpy(&edit, data + i * sizeof(edit), sizeof(edit));
		apply(&edit);
	}
	file = make_file(&bias);
	if (jvm_vm__open(getpid(), bias, file, &user.vm, NULL))
		return false;
	if (jvm_methods__new(user.vm, &user.methods) == 0) {
		for (size_t i = 0; i < jvm_vm__rec(user.vm)->n_heaps; i++)
			jvm_blobs__each(user.vm, i, BLOBS_MAX, use_blob, &user);
		jvm_methods__free(user.methods);
	}
	jvm_vm__free(user.vm);
	return user.n_lines > 0;
}

/* Writes seeds with changes of a type that does not exist, which the fuzzer then varies. */
void target__seeds(void)
{
	uint8_t seed[1 + 4 * sizeof(struct edit)];

	for (uint8_t layout = 0; layout < LAYOUTS; layout++) {
		const struct edit edit = { .at = ARRAY_SIZE(image_types) - 1, .kind = EDIT_SIZE };

		seed[0] = layout;
		for (size_t at = 1; at < sizeof(seed); at += sizeof(edit))
			memcpy(seed + at, &edit, sizeof(edit));
		fuzz__seed(seed, sizeof(seed));
	}
}
