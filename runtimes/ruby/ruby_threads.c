// SPDX-License-Identifier: GPL-2.0-or-later
/* The virtual machine's rb_vm_t has pointers to threads at places that differ from build to
 * build. Threads are recognised by their content: a rb_thread_t points to the virtual machine,
 * and its execution context points to the thread. The threads of one ractor (2.7: all threads)
 * are in a circle of list nodes, with which rb_thread_t begins. The list's head is the only node
 * outside of a thread. */
#include "runtimes/ruby/ruby_threads.h"

#include <stdlib.h>

#include "core/base/util.h"

#define READS_MAX   100000 /* limit for one search; about 0.5 us each */
#define THREADS_MAX 10000
#define VM_WORDS    256 /* searched words of rb_vm_t; the pointers are in the first kilobyte */
#define ROOT_WORDS  128 /* searched words of rb_thread_t, which has 500 bytes */
#define WORD	    8

bool ruby_threads__is_one(struct ruby_reader *reader, uint64_t vm, uint64_t thread)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t ec;

	if (!ruby_value__is_object(thread) ||
	    ruby_reader__word(reader, thread + offsets->thread_vm) != vm)
		return false;
	ec = ruby_reader__word(reader, thread + offsets->thread_ec);
	return ec && ruby_reader__word(reader, ec + offsets->ec_thread) == thread;
}

uint64_t ruby_threads__first(struct ruby_reader *reader, uint64_t vm)
{
	uint64_t words[VM_WORDS];

	if (!vm || !ruby_reader__read(reader, vm, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < VM_WORDS; i++)
		if (ruby_threads__is_one(reader, vm, words[i]))
			return words[i];
	return 0;
}

uint64_t ruby_threads__vm(struct ruby_reader *reader)
{
	uint64_t vm = reader->vm_at;

	for (int i = 0; i < 2 && vm; i++) {
		vm = ruby_reader__word(reader, vm);
		if (ruby_threads__first(reader, vm))
			return vm;
	}
	return 0;
}

/* Returns the struct that has lock_tid. */
static uint64_t native_of(struct ruby_reader *reader, uint64_t thread)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;

	return offsets->lock_native ? ruby_reader__word(reader, thread + offsets->lock_native)
				    : thread;
}

uint64_t ruby_threads__fs_base(struct ruby_reader *reader, uint64_t thread)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t native = native_of(reader, thread);

	if (!native || !offsets->lock_tid)
		return 0;
	return ruby_reader__word(reader, native + offsets->lock_tid -
						 (offsets->lock_tid_is_pthread ? 0 : WORD));
}

uint32_t ruby_threads__tid(struct ruby_reader *reader, uint64_t thread)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t native = native_of(reader, thread), pthread;

	if (!native || !offsets->lock_tid)
		return 0;
	if (!offsets->lock_tid_is_pthread)
		return ruby_reader__word(reader, native + offsets->lock_tid);
	pthread = ruby_threads__fs_base(reader, thread);
	return pthread && reader->rec.libc.tid
		       ? ruby_reader__word(reader, pthread + reader->rec.libc.tid)
		       : 0;
}

/* --- names --- */

/* Finds the offset of root_fiber in rb_thread_t. It is the only fiber that the thread points to,
 * if the thread has ever used its fiber. Else it is at a fixed distance from the block that the
 * thread was started with, the only Proc in the struct. 0: neither is found, as in the main
 * thread of a program without fibers. */
static uint32_t find_root(struct ruby_reader *reader, uint64_t thread)
{
	const struct ruby_offsets *offsets = &reader->rec.offsets;
	uint64_t words[ROOT_WORDS];

	if (!ruby_reader__read(reader, thread, words, sizeof(words)))
		return 0;
	for (size_t i = offsets->thread_ec / WORD + 1; i < ROOT_WORDS; i++) {
		if (!ruby_value__is_object(words[i]))
			continue;
		if (ruby_reader__word(reader, words[i] + offsets->fiber_ec + offsets->ec_thread) ==
		    thread)
			return i * WORD;
		if (ruby_data__get(reader, words[i], "proc"))
			return i * WORD + reader->threads.proc;
	}
	return 0;
}

/* Returns the name of a thread, owned; NULL: none, as for the main thread. */
static char *read_name(struct ruby_reader *reader, uint64_t thread, uint64_t root)
{
	const struct ruby_thread_offsets *offsets = &reader->threads;
	char *name = NULL;

	for (size_t i = 0; !name && i < ARRAY_SIZE(offsets->name); i++)
		if (offsets->name[i])
			name = ruby_string__dup(
				reader,
				ruby_reader__word(reader, thread + root + offsets->name[i]));
	if (name && *name)
		return name;
	free(name);
	return ruby_proc__place(reader, ruby_reader__word(reader, thread + root - offsets->proc),
				false);
}

typedef int (*thread_fn)(struct ruby_reader *reader, uint64_t thread, struct thread_finds *finds);

/* Calls `on_thread` for each thread, until it returns anything but 0. Returns that value. */
static int each_thread(struct ruby_reader *reader, thread_fn on_thread, struct thread_finds *finds)
{
	uint64_t vm = ruby_threads__vm(reader);
	uint64_t first = vm ? ruby_threads__first(reader, vm) : 0, at = first;
	int ret = 0;

	for (int i = 0; at && !ret && i < THREADS_MAX; i++) {
		if (ruby_threads__is_one(reader, vm, at))
			ret = on_thread(reader, at, finds);
		at = ruby_reader__word(reader, at);
		if (at == first)
			break;
	}
	return ret;
}

static int see_root(struct ruby_reader *reader, uint64_t thread, struct thread_finds *finds)
{
	(void)finds;
	reader->root_at = find_root(reader, thread);
	return !!reader->root_at;
}

static int see_name(struct ruby_reader *reader, uint64_t thread, struct thread_finds *finds)
{
	uint32_t tid = ruby_threads__tid(reader, thread);
	char *name = tid ? read_name(reader, thread, reader->root_at) : NULL;

	return name ? thread_finds__add(finds, tid, name) : 0;
}

int ruby_threads__search(void *process, struct thread_finds *finds)
{
	struct ruby_reader *reader = process;

	reader->reads_left = READS_MAX;
	if (!reader->root_at)
		each_thread(reader, see_root, NULL);
	return reader->root_at ? each_thread(reader, see_name, finds) : 0;
}
