// SPDX-License-Identifier: GPL-2.0-or-later
/* Fibers in a made-up process (the test itself): waiting fibers, fibers that a thread runs, and
 * invalid words. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/unwind_rule.h"
#include "runtimes/ruby/ruby_fibers.h"
#include "tests/tap.h"

#define PAGE   65536
#define FIBERS 4
#define ROUNDS 3000

/* Bytes; offsets in rb_fiber_t: ec, prev, status, context. */
enum { VM_SPACE = 64, THREAD_VM = 32, THREAD_EC = 48, EC_THREAD = 48 };
enum { FIBER_EC = 40, FIBER_PREV = 240, STATUS = 16, CONTEXT = 24 };
#define SUSPENDED 2

static struct {
	uint64_t *name;
} type = { (uint64_t *)"fiber" };

static char *page;
static uint64_t vm[256], thread[256], space[512], description[32], list[4];
static uint64_t fibers[FIBERS][64], stacks[FIBERS][64];
static struct ruby_reader reader;
static size_t n_tasks, n_words;
static uint64_t sp[16], pc[16];

static uint64_t at(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

static int on_task(void *ctx, const struct runtime_task *task)
{
	(void)ctx;
	if (n_tasks < 16 && task->regs) {
		sp[n_tasks] = task->regs[UNWIND_REG_RSP];
		pc[n_tasks] = task->regs[UNWIND_REG_PC];
	}
	n_tasks++;
	n_words += task->n_patches + strlen(task->name);
	return 0;
}

static bool tasks(void)
{
	bool whole = false;

	n_tasks = 0;
	is_int(ruby_fibers__list(&reader, on_task, NULL, &whole), 0, "listed");
	return whole;
}

static void build(void)
{
	memset(page, 0, PAGE);
	memset(vm, 0, sizeof(vm));
	memset(thread, 0, sizeof(thread));
	memset(space, 0, sizeof(space));
	memset(list, 0, sizeof(list));
	memset(fibers, 0, sizeof(fibers));
	vm[3] = at(thread);
	vm[VM_SPACE / 8] = at(space);
	list[0] = at(description);
	space[100] = at(list);
	description[5] = at(page) + 40;
	*(uint64_t *)page = at(description);
	thread[0] = at(thread);
	thread[THREAD_VM / 8] = at(vm);
	thread[THREAD_EC / 8] = at(fibers[0]) + FIBER_EC;
	for (int i = 0; i < FIBERS; i++) {
		const uint64_t object[] = { 0x0c, 0x1000, at(&type), 1, at(fibers[i]) };
		uint64_t *fiber = fibers[i];

		memcpy(page + 40 + i * sizeof(object), object, sizeof(object));
		fiber[FIBER_EC / 8] = at(stacks[i]);
		fiber[(FIBER_EC + EC_THREAD) / 8] = at(thread);
		fiber[(FIBER_PREV + STATUS) / 8] = SUSPENDED;
		fiber[(FIBER_PREV + CONTEXT) / 8] = at(&stacks[i][32]);
		stacks[i][32 + 6] = 0x5000 + i; /* return address */
	}
	fibers[0][FIBER_PREV / 8] = at(fibers[1]); /* fiber that resumed this one */
	reader = (struct ruby_reader) { .pid = getpid(),
					.rec.offsets = { .vm_objspace = VM_SPACE,
							 .thread_vm = THREAD_VM,
							 .thread_ec = THREAD_EC,
							 .ec_thread = EC_THREAD,
							 .fiber_ec = FIBER_EC,
							 .fiber_prev = FIBER_PREV },
					.threads = { .fiber_status = STATUS,
						     .fiber_context = CONTEXT },
					.vm_at = at(&vm[250]) };
	vm[250] = at(vm);
}

static void test_fibers(void)
{
	build();
	ok(tasks(), "all of them");
	is_int(n_tasks, 2, "but those that the thread is in");
	ok(pc[0] == 0x5002 && sp[0] == at(&stacks[2][32 + 7]), "where the first goes on");
	ok(pc[1] == 0x5003 && sp[1] == at(&stacks[3][32 + 7]), "and the other");
	fibers[2][(FIBER_PREV + STATUS) / 8] = SUSPENDED + 1;
	ok(tasks() && n_tasks == 1, "one that is over");
}

static void test_sense(void)
{
	build();
	fibers[1][FIBER_PREV / 8] = at(fibers[0]);
	ok(tasks() && n_tasks == 2, "fibers in a circle");
	build();
	fibers[2][(FIBER_EC + EC_THREAD) / 8] = at(fibers[3]);
	ok(tasks() && n_tasks == 1, "a fiber of what is no thread");
	build();
	fibers[2][(FIBER_PREV + CONTEXT) / 8] = 1ULL << 50;
	ok(tasks() && n_tasks == 1, "a stack far from its own");
	build();
	fibers[2][FIBER_EC / 8] = 0;
	ok(tasks() && n_tasks == 1, "no stack");
	build();
	vm[250] = at(&vm[250]);
	ok(!tasks() && !n_tasks, "a virtual machine that is none");
	reader.vm_at = 8;
	ok(!tasks() && !n_tasks, "or is not there");
}

/* On any data, the walk ends and reads only valid memory. */
static void test_random(void)
{
	uint64_t *const places[] = { vm, thread, fibers[0], fibers[1], fibers[2], fibers[3] };
	const uint64_t words[] = { at(vm),
				   at(thread),
				   at(fibers[0]),
				   at(fibers[3]),
				   at(stacks[2]),
				   at(description),
				   UINT64_MAX,
				   1ULL << 47,
				   8,
				   0,
				   at(page),
				   at(page) + PAGE };
	size_t most = 0;
	bool whole;

	srand(1);
	for (int i = 0; i < ROUNDS; i++) {
		build();
		for (int k = rand() % 8; k >= 0; k--)
			places[rand() % 6][rand() % 64] = words[rand() % 12];
		n_tasks = 0;
		ruby_fibers__list(&reader, on_task, NULL, &whole);
		most = n_tasks > most ? n_tasks : most;
	}
	ok(most <= FIBERS && n_words, "no more fibers than there are objects");
}

int main(void)
{
	page = aligned_alloc(PAGE, PAGE);
	if (!page)
		return 1;
	test_fibers();
	test_sense();
	test_random();
	free(page);
	return tap__done();
}
