// SPDX-License-Identifier: GPL-2.0-or-later
/* Stacks of virtual threads in a made-up JVM's heap, in the test process: frames of two chunks in
 * one list, and invalid chunks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/elf/elf_file.h"
#include "runtimes/jvm/jvm_frozen.h"
#include "tests/tap.h"
#include "tests/unit/jvm_image.h"

#define ROUNDS 20000
#define WORDS  64
#define CLASS  0x1234560

struct synthetic_chunk { /* layout as in jvm_chunks below */
	uint64_t mark, class, parent;
	int32_t size, sp, bottom, unused;
	uint64_t pc, words[WORDS];
};

static struct elf_file *file;
static struct jvm_vm *vm;
static struct jvm_objects objects;
static struct jvm_chunks chunks;
static struct synthetic_chunk inner, outer;
static uint64_t compiled, interpreted;

static void open_vm(void)
{
	uint64_t vaddr = 0, bias;
	struct err err = {};

	image__build(LAYOUT_25);
	SET(image.nmethod, "CodeBlob", "_frame_size", 4);
	if (elf_file__open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "libjvm.so", &file,
			   NULL) ||
	    elf_file__find_symbol(file, "gHotSpotVMStructs", &vaddr, NULL))
		exit(1);
	bias = (uint64_t)(uintptr_t)&gHotSpotVMStructs - vaddr;
	if (jvm_vm__open(getpid(), bias, file, &vm, &err)) {
		tap__diag("%s", err.text);
		exit(1);
	}
	compiled = (uint64_t)(uintptr_t)image.nmethod + NMETHOD_CODE + 16;
	interpreted = jvm_vm__rec(vm)->interpreter_start + 16;
	objects = (struct jvm_objects) { .vm = vm };
	chunks = (struct jvm_chunks) { .objects = &objects,
				       .class = CLASS,
				       .parent = offsetof(struct synthetic_chunk, parent),
				       .size = offsetof(struct synthetic_chunk, size),
				       .sp = offsetof(struct synthetic_chunk, sp),
				       .bottom = offsetof(struct synthetic_chunk, bottom),
				       .pc = offsetof(struct synthetic_chunk, pc),
				       .stack = offsetof(struct synthetic_chunk, words) };
}

/* Builds two compiled frames in the inner chunk, and an interpreted one with two locals in the
 * outer chunk. */
static void build(void)
{
	inner = (struct synthetic_chunk) { .class = CLASS,
					   .parent = (uint64_t)(uintptr_t)&outer,
					   .size = 16,
					   .sp = 6,
					   .bottom = 14,
					   .pc = compiled };
	inner.words[4] = 0x7777; /* rbp of the innermost frame */
	inner.words[9] = compiled;
	outer = (struct synthetic_chunk) {
		.class = CLASS, .size = 24, .sp = 4, .bottom = 18, .pc = interpreted
	};
	outer.words[2] = 12 - 2; /* distance to rbp, at word 12 */
	outer.words[12 - 1] = 5; /* distance from rbp to the caller's stack pointer */
	outer.words[12 - 7] = 5; /* index of the first local */
	outer.words[13] = compiled;
}

static int read_stack(struct jvm_frozen *frozen)
{
	return jvm_frozen__read(&chunks, (uint64_t)(uintptr_t)&inner, frozen);
}

/* Returns the word @n behind the innermost frame's stack pointer. */
static uint64_t word_at(const struct jvm_frozen *frozen, size_t n)
{
	size_t first = (frozen->sp - frozen->words[0].address) / 8;

	return first + n < frozen->n ? frozen->words[first + n].word : 0;
}

static void test_frames(void)
{
	struct jvm_frozen frozen = {};

	build();
	is_int(read_stack(&frozen), 0, "two chunks");
	ok(frozen.pc == compiled && frozen.fp == 0x7777 && !frozen.is_cut, "the innermost frame");
	ok(word_at(&frozen, 3) == compiled, "returns to the second");
	ok(word_at(&frozen, 7) == interpreted, "that to the first of the next chunk");
	ok(word_at(&frozen, 6) == frozen.sp + (8 + 12 - 4) * 8, "whose rbp is an address");
	ok(word_at(&frozen, 8 + 11 - 4) == frozen.sp + (8 + 17 - 4) * 8,
	   "and so is its caller's stack pointer");
	inner.sp = 14;
	is_int(read_stack(&frozen), 0, "a chunk without frames");
	ok(frozen.pc == interpreted, "is passed over");
	outer.sp = 18;
	ok(!read_stack(&frozen) && !frozen.n, "no frames at all");
	jvm_frozen__done(&frozen);
}

static int broken(int32_t *field, int32_t value)
{
	struct jvm_frozen frozen = {};
	int ret;

	*field = value;
	ret = read_stack(&frozen);
	jvm_frozen__done(&frozen);
	build();
	return ret;
}

static void test_sense(void)
{
	struct jvm_frozen frozen = {};
	static const uint64_t distances[] = { UINT64_MAX - 2, 1ULL << 63, 22, 21 };

	build();
	is_int(broken(&inner.size, INT32_MAX), -EBADMSG, "a huge chunk");
	is_int(broken(&inner.size, -1), -EBADMSG, "one below nothing");
	is_int(broken(&inner.bottom, 17), -EBADMSG, "frames behind its end");
	is_int(broken(&inner.sp, 1), -EBADMSG, "no room for the innermost rbp");
	is_int(broken(&outer.sp, 17), -EBADMSG, "no room for an interpreted frame");
	for (size_t i = 0; i < ARRAY_SIZE(distances); i++) {
		outer.words[2] = distances[i];
		is_int(read_stack(&frozen), -EBADMSG, "rbp outside of the chunk");
	}
	build();
	inner.words[9] = 0x1000;
	is_int(read_stack(&frozen), -EBADMSG, "a frame of no code");
	build();
	inner.parent = 0x1000;
	is_int(read_stack(&frozen), -EBADMSG, "a chunk that is not there");
	build();
	outer.class ++;
	is_int(read_stack(&frozen), -EBADMSG, "or is another object");
	build();
	outer.parent = (uint64_t)(uintptr_t)&inner;
	ok(!read_stack(&frozen) && frozen.is_cut && frozen.n, "a circle of chunks is cut");
	inner.sp = outer.sp = 18;
	ok(!read_stack(&frozen) && frozen.is_cut && !frozen.n, "one of empty ones, too");
	jvm_frozen__done(&frozen);
}

static uint64_t random_word(void)
{
	switch (rand() % 6) {
	case 0:
		return compiled;
	case 1:
		return interpreted;
	case 2:
		return -(uint64_t)(rand() % 40);
	case 3:
		return (uint64_t)rand() << 33 | (uint64_t)rand();
	default:
		return rand() % 40;
	}
}

/* Random changes, under the sanitizers. */
static void test_random(void)
{
	struct jvm_frozen frozen = {};
	size_t read = 0, beyond = 0;

	srand(1);
	for (int i = 0; i < ROUNDS; i++) {
		build();
		for (int k = 0; k < 8; k++) {
			inner.words[rand() % 24] = random_word();
			outer.words[rand() % 24] = random_word();
		}
		inner.pc = rand() % 2 ? interpreted : compiled;
		inner.sp = rand() % 16;
		outer.sp = rand() % 20;
		if (read_stack(&frozen))
			continue;
		read++;
		beyond += frozen.n > 2 * WORDS + 256;
	}
	ok(read > 0, "some random chunks have stacks");
	is_int(beyond, 0, "none of which is longer than its chunks");
	jvm_frozen__done(&frozen);
}

int main(void)
{
	open_vm();
	test_frames();
	test_sense();
	test_random();
	jvm_vm__free(vm);
	elf_file__free(file);
	return tap__done();
}
