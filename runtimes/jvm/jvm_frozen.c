// SPDX-License-Identifier: GPL-2.0-or-later
/* Sources: oops/stackChunkOop.hpp, runtime/stackChunkFrameStream.inline.hpp and, in cpu/x86,
 * stackChunkFrameStream_x86.inline.hpp and frame_x86.hpp. Frames lie in a chunk as on a stack.
 * Since a chunk may move, an address in an interpreted frame is stored as a distance in words. */
#include "runtimes/jvm/jvm_frozen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_blobs.h"
#include "runtimes/jvm/jvm_classes.h"

#define STACK	     0x6b7261696400000ULL /* an address that no process has */
#define CHUNKS_MAX   1024
#define WORDS_MAX    (1U << 17) /* a megabyte of stack */
#define WORD	     8
/* Words of 0 around the frames, since the unwinder reads ahead and behind. */
#define WORDS_BEFORE 8
#define WORDS_AFTER  64

/* Words of an interpreted frame, as distances from its rbp. The first two hold such distances. */
#define SENDER_SP (-1)
#define LOCALS	  (-7)
#define RETURN	  1 /* return address */
#define LINK	  2 /* words at the end of every frame: the caller's rbp, the return address */

int jvm_chunks__find(const struct jvm_objects *objects, struct jvm_chunks *ret)
{
	struct jvm_class class = { .name = "jdk/internal/vm/StackChunk" };
	int32_t layout;
	uint64_t at;
	int rc = jvm_classes__find(&objects->symbols, &class, 1);

	*ret = (struct jvm_chunks) { .objects = objects, .class = class.address };
	if (rc || !class.address)
		return rc ?: -ENOENT;
	rc = jvm_objects__field(objects, class.address, "parent", "Ljdk/internal/vm/StackChunk;",
				&ret->parent);
	if (!rc)
		rc = jvm_objects__field(objects, class.address, "size", "I", &ret->size);
	if (!rc)
		rc = jvm_objects__field(objects, class.address, "sp", "I", &ret->sp);
	if (!rc && jvm_objects__field(objects, class.address, "bottom", "I", &ret->bottom)) {
		ret->bottom_is_after = true;
		rc = jvm_objects__field(objects, class.address, "argsize", "I", &ret->bottom);
	}
	if (!rc)
		rc = jvm_objects__injected(objects, class.address, "pc", &ret->pc);
	if (!rc)
		rc = jvm_vm__field(objects->vm, "Klass", "_layout_helper", &at);
	if (!rc)
		rc = jvm_vm__read(objects->vm, class.address + at, &layout, sizeof(layout));
	if (rc)
		return rc == -ENOENT ? -ENOTSUP : rc;
	ret->stack = layout & ~(WORD - 1); /* for an instance, its size and a flag */
	return 0;
}

/* --- a chunk --- */

struct chunk {
	const struct jvm_vm *vm;
	uint64_t *words;  /* the chunk's stack; owned */
	uint32_t sp, end; /* range of the frames; `end`: as `bottom` in struct jvm_chunks */
	uint32_t size;
	uint64_t pc;
	uint64_t start; /* address of the words in the copied stack */
};

static int chunk__read(const struct jvm_chunks *chunks, uint64_t at, struct chunk *ret)
{
	const struct jvm_vm *vm = chunks->objects->vm;
	uint32_t bottom;

	*ret = (struct chunk) { .vm = vm };
	if (jvm_objects__class_of(chunks->objects, at) != chunks->class)
		return -EBADMSG;
	if (jvm_vm__read(vm, at + chunks->size, &ret->size, sizeof(ret->size)) ||
	    jvm_vm__read(vm, at + chunks->sp, &ret->sp, sizeof(ret->sp)) ||
	    jvm_vm__read(vm, at + chunks->pc, &ret->pc, sizeof(ret->pc)) ||
	    jvm_vm__read(vm, at + chunks->bottom, &bottom, sizeof(bottom)))
		return -EFAULT;
	ret->end = chunks->bottom_is_after ? ret->size - bottom : bottom;
	if (ret->size > WORDS_MAX || ret->end > ret->size)
		return -EBADMSG;
	if (ret->sp >= ret->end)
		return 0; /* no frames */
	if (ret->sp < LINK)
		return -EBADMSG;
	ret->words = calloc(ret->size + 1, sizeof(*ret->words));
	if (!ret->words)
		return -ENOMEM;
	return jvm_vm__read(vm, at + chunks->stack + (ret->sp - LINK) * (uint64_t)WORD,
			    ret->words + ret->sp - LINK, (ret->size - ret->sp + LINK) * WORD);
}

static bool is_interpreted(const struct chunk *chunk, uint64_t pc)
{
	const struct jvm_proc_rec *rec = jvm_vm__rec(chunk->vm);

	return pc >= rec->interpreter_start && pc < rec->interpreter_end;
}

static uint64_t address_in(const struct chunk *chunk, uint64_t i)
{
	return chunk->start + i * WORD;
}

/* Returns rbp of the interpreted frame whose stack pointer is `sp`, as an index; 0: invalid. */
static uint64_t frame_pointer(const struct chunk *chunk, uint64_t sp)
{
	uint64_t fp = sp - LINK + chunk->words[sp - LINK];

	return fp >= sp && fp >= -LOCALS && fp < chunk->size - RETURN ? fp : 0;
}

/* Returns the frame size of the code at `pc`, in words; 0: its frames have no fixed size. */
static uint32_t frame_size(const struct chunk *chunk, uint64_t pc)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(chunk->vm)->offsets;
	struct jvm_blob blob;
	int32_t size;

	if (jvm_blobs__find(chunk->vm, pc, &blob) ||
	    jvm_vm__read(chunk->vm, blob.address + offsets->blob_frame_size, &size, sizeof(size)))
		return 0;
	return size >= LINK ? size : 0;
}

/* Replaces distances by addresses, from the innermost frame to the outermost. `ret_end` is the
 * index after the outermost frame's return address. Returns 0 or -EBADMSG. */
static int chunk__settle(struct chunk *chunk, uint64_t *ret_end, uint64_t **ret_sender_sp)
{
	uint64_t sp = chunk->sp, unextended = sp, pc = chunk->pc, fp, *words = chunk->words;

	*ret_sender_sp = NULL;
	for (;;) {
		if (is_interpreted(chunk, pc)) {
			fp = frame_pointer(chunk, sp);
			if (!fp)
				return -EBADMSG;
			unextended = fp + words[fp + SENDER_SP];
			words[sp - LINK] = address_in(chunk, fp);
			words[fp + SENDER_SP] = address_in(chunk, unextended);
			*ret_sender_sp = &words[fp + SENDER_SP];
			sp = fp + LINK;
			if (fp + words[fp + LOCALS] + 1 >= chunk->end)
				break;
		} else {
			sp = unextended + frame_size(chunk, pc);
			if (sp == unextended)
				return -EBADMSG;
			*ret_sender_sp = NULL;
			unextended = sp;
			if (sp >= chunk->end)
				break;
		}
		if (sp > chunk->size || unextended < sp || unextended >= chunk->size)
			return -EBADMSG;
		pc = words[sp - 1];
	}
	*ret_end = sp;
	return sp > chunk->size ? -EBADMSG : 0;
}

/* --- all of them --- */

static int add(struct jvm_frozen *frozen, const uint64_t *words, size_t n)
{
	if (array__reserve(&frozen->words, &frozen->cap, frozen->n + n, sizeof(*frozen->words)))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++, frozen->n++)
		frozen->words[frozen->n] =
			(struct memory_patch) { STACK + frozen->n * WORD, words ? words[i] : 0 };
	return 0;
}

/* Appends the frames of a chunk. `last_sender_sp` is the index of the word for the sender's
 * stack pointer if the outermost frame so far is interpreted, else 0; updated. */
static int add_chunk(struct jvm_frozen *frozen, struct chunk *chunk, uint64_t *last_sender_sp)
{
	uint64_t stack_end = STACK + frozen->n * WORD, end, fp, *sender_sp;
	int rc;

	chunk->start = stack_end - chunk->sp * (uint64_t)WORD;
	rc = chunk__settle(chunk, &end, &sender_sp);
	if (rc)
		return rc;
	fp = chunk->words[chunk->sp - LINK];
	if (frozen->pc) { /* the frames so far return to this chunk */
		frozen->words[frozen->n - LINK].word = fp;
		frozen->words[frozen->n - 1].word = chunk->pc;
		if (*last_sender_sp)
			frozen->words[*last_sender_sp].word = stack_end;
	} else {
		frozen->pc = chunk->pc;
		frozen->sp = stack_end;
		frozen->fp = fp;
	}
	*last_sender_sp =
		sender_sp ? frozen->n + (uint64_t)(sender_sp - chunk->words) - chunk->sp : 0;
	return add(frozen, chunk->words + chunk->sp, end - chunk->sp);
}

/* Returns an address in the code cache that has no code. bpf/jvm_frames.bpf.h expects the return
 * addresses of Java code in that cache. The outermost frame's return address is set when the
 * frame is thawed, and may be anything until then. */
static uint64_t nowhere(const struct jvm_vm *vm)
{
	return jvm_vm__rec(vm)->heaps[0].high - 16;
}

int jvm_frozen__read(const struct jvm_chunks *chunks, uint64_t at, struct jvm_frozen *ret)
{
	uint64_t last_sender_sp = 0, parent;
	struct chunk chunk;
	int rc;

	ret->n = 0;
	ret->pc = 0;
	ret->is_cut = false;
	rc = add(ret, NULL, WORDS_BEFORE);
	for (int i = 0; !rc && at && !ret->is_cut; i++) {
		rc = chunk__read(chunks, at, &chunk);
		if (!rc && chunk.words)
			rc = add_chunk(ret, &chunk, &last_sender_sp);
		free(chunk.words);
		if (!rc)
			rc = jvm_objects__ref(chunks->objects, at + chunks->parent, &parent);
		at = rc ? 0 : parent;
		ret->is_cut = at && (ret->n > WORDS_MAX || i + 1 == CHUNKS_MAX);
	}
	if (!rc && ret->pc)
		ret->words[ret->n - 1].word = nowhere(chunks->objects->vm);
	if (!rc)
		rc = add(ret, NULL, WORDS_AFTER);
	if (rc || !ret->pc)
		ret->n = 0;
	return rc;
}

void jvm_frozen__done(struct jvm_frozen *frozen)
{
	free(frozen->words);
	*frozen = (struct jvm_frozen) {};
}
