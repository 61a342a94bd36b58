// SPDX-License-Identifier: GPL-2.0-or-later
/* HotSpot's probes on the host: names without an end mark, calls and returns of frames that move,
 * and of inlined methods. */
#include "tests/unit/shadow_host.h"

#include "bpf/jvm_probes.bpf.c"

#define MEMORY	0x10000ULL
#define NOWHERE 0x100ULL
#define STACK	0x7fff00000000ULL
#define CODE	0x7f0010000000ULL

/* Sites; each cookie is a number of this list. */
enum { ENTRY, RETURN };

static char memory[1 << 15], frames[1 << 17]; /* `frames` ends at STACK */
static uint64_t used;

struct method {
	struct jvm_text class, name, signature;
};

static struct jvm_text text(const char *chars)
{
	struct jvm_text text = { .address = MEMORY + used, .len = strlen(chars) };

	memcpy(memory + used, chars, text.len);
	memcpy(memory + used + text.len, "#", 1); /* the next byte belongs to other data */
	used += text.len + 1;
	return text;
}

static struct method method(const char *class, const char *name, const char *signature)
{
	return (struct method) { text(class), text(name), text(signature) };
}

/* Sets sites as in libjvm.so of OpenJDK 17: -8@%rax 8@%rdx -4@%ecx 8@%rsi -4@%edi 8@%r8 -4@%r9d.
 * The function of the site has a frame of 48 bytes. */
static void set_sites(uint64_t since_ns)
{
#define ARG(number, bytes, sign)                                                            \
	{                                                                                   \
		.kind = PROBE_ARG_REGISTER, .reg = number, .size = bytes, .is_signed = sign \
	}
	static const struct probe_arg args[PROBE_ARGS_MAX] = {
		ARG(PROBE_RAX, 8, 1), ARG(PROBE_RDX, 8, 0), ARG(PROBE_RCX, 4, 1),
		ARG(PROBE_RSI, 8, 0), ARG(PROBE_RDI, 4, 1), ARG(PROBE_R8, 8, 0),
		ARG(PROBE_R9, 4, 1),
	};

	for (uint32_t site = ENTRY; site <= RETURN; site++) {
		struct probe_rec rec = { .runtime = WALKER_JVM,
					 .anchor_offset = 48,
					 .space = SPACE,
					 .since_ns = since_ns };

		memcpy(rec.args, args, sizeof(args));
		bpf_map_update_elem(&probe_recs, &site, &rec, 0);
	}
}

/* Hits @site. @sp is the stack pointer of the Java code, @place the address of its call. */
static void hit(uint32_t site, const struct method *of, uint64_t sp, uint64_t place)
{
	struct pt_regs regs = {
		.rsp = sp - 48,
		.rdx = of->class.address,
		.rcx = of->class.len | 0xabcdULL << 32,
		.rsi = of->name.address,
		.rdi = of->name.len,
		.r8 = of->signature.address,
		.r9 = of->signature.len,
	};
	uint64_t pc = CODE + place;

	memcpy(frames + sizeof(frames) - (STACK - sp) - 8, &pc, sizeof(pc));
	host.cookie = site;
	if (site == ENTRY)
		jvm_method_entry(&regs);
	else
		jvm_method_return(&regs);
}

static struct shadow *stack_of_thread(void)
{
	return shadow__find(SHADOW_OWNER(host.task.pid, WALKER_JVM, SHADOW_OF_THREAD));
}

/* Starts another thread, of which no state exists. */
static void start(void)
{
	shadow_on_exit(&host.task);
	host.task.pid++;
	used = 0;
	memset(memory, 0, sizeof(memory));
	host.jiffies += 100;
	host.now_ns += 100 * JVM_RECHECK_NS;
}

static bool rec_is(const char *class, const char *name, const char *signature)
{
	return last_rec.file_kind == CODE_OBJECT_TEXT_UTF8 && last_rec.file_len == strlen(class) &&
	       !memcmp(last_rec.file, class, strlen(class)) &&
	       last_rec.name_kind == CODE_OBJECT_TEXT_UTF8 && last_rec.name_len == strlen(name) &&
	       !memcmp(last_rec.name, name, strlen(name)) &&
	       last_rec.table_size == strlen(signature) &&
	       !memcmp(last_rec.table, signature, strlen(signature));
}

static void test_names(void)
{
	struct method length, wait, wait_long, far, near;
	uint32_t before = n_codes, code;
	struct shadow *shadow;
	char class[2000];

	start();
	length = method("java/lang/String", "length", "()I");
	wait = method("java/lang/Object", "wait", "()V");
	wait_long = wait;
	wait_long.signature = text("(J)V");
	hit(ENTRY, &length, STACK - 1000, 1);
	shadow = stack_of_thread();
	ok(shadow && shadow->depth == 1 && shadow->entries[0].code == last_rec.code &&
		   rec_is("java/lang/String", "length", "()I") && last_rec.walker == WALKER_JVM &&
		   last_rec.table_format == JVM_CODE_STRINGS && last_rec.tgid == 1000,
	   "class, name and signature, which no NUL ends");
	hit(ENTRY, &wait, STACK - 1100, 1);
	hit(ENTRY, &wait_long, STACK - 1200, 1);
	ok(shadow->depth == 3 && shadow->entries[1].code != shadow->entries[2].code &&
		   rec_is("java/lang/Object", "wait", "(J)V"),
	   "methods that differ by their signatures only");
	hit(ENTRY, &length, STACK - 1300, 2);
	ok(shadow->entries[3].code == shadow->entries[0].code && n_codes == before + 3,
	   "the same method");
	/* Two names with the same first 1,900 bytes, one after the other in the same place. */
	memset(class, 'x', sizeof(class));
	strcpy(class + 1900, "/Near");
	near = method(class, "f", "()V");
	hit(ENTRY, &near, STACK - 1400, 1);
	code = shadow->entries[4].code;
	ok(code && last_rec.file_len == 1905 && last_rec.file[CODE_OBJECT_TEXT_BYTES - 1] == 'x',
	   "a long name, cut");
	far = near;
	memcpy(memory + (far.class.address - MEMORY) + 1900, "/Afar", 5);
	hit(ENTRY, &far, STACK - 1500, 1);
	is_int(shadow->entries[5].code, code, "taken to be the same for a while");
	host.jiffies += 100;
	host.now_ns += 100 * JVM_RECHECK_NS;
	hit(ENTRY, &far, STACK - 1600, 1);
	ok(shadow->entries[6].code != code && n_codes == before + 5,
	   "memory that was used again for another name");
}

static void test_lost_names(void)
{
	struct method one, nowhere;
	struct shadow *shadow;

	start();
	one = method("A", "f", "()V");
	nowhere = one;
	nowhere.name.address = NOWHERE;
	hit(ENTRY, &nowhere, STACK - 1000, 1);
	shadow = stack_of_thread();
	ok(shadow->depth == 1 && !shadow->entries[0].code && counted(COUNT_PROBE_READ) == 1,
	   "a name that cannot be read");
	hit(RETURN, &nowhere, STACK - 1000, 2);
	is_int(shadow->depth, 0, "its return");
	one.class.len = -1;
	hit(ENTRY, &one, STACK - 1000, 1);
	ok(shadow->depth == 1 && !shadow->entries[0].code, "a length that makes no sense");
	one.class.len = 1;
	host.ring_full = true;
	hit(ENTRY, &one, STACK - 1100, 1);
	ok(shadow->depth == 2 && counted(COUNT_CODE_LOST) == 1, "no room to send a name");
	host.ring_full = false;
	one = method("B", "f", "()V");
	hit(ENTRY, &one, STACK - 1200, 1);
	ok(rec_is("B", "f", "()V"), "the next one");
	host.cookie = 99;
	jvm_method_return(&(struct pt_regs) { 0 });
	is_int(counted(COUNT_PROBE_UNKNOWN), 1, "a site without a record");
}

/* The interpreter aligns its stack, and has the result on the stack at a return. */
static void test_interpreted(void)
{
	struct method f, g;
	struct shadow *shadow;
	uint64_t unmatched = counted(COUNT_SHADOW_UNMATCHED);

	start();
	f = method("A", "f", "()V");
	g = method("A", "g", "()J");
	hit(RETURN, &g, STACK - 900, 9);
	is_int(counted(COUNT_SHADOW_UNMATCHED), unmatched + 1, "a return before any call");
	hit(ENTRY, &f, STACK - 1000, 1);
	shadow = stack_of_thread();
	hit(ENTRY, &g, STACK - 1104, 1);
	hit(ENTRY, &f, STACK - 1208, 1);
	hit(RETURN, &f, STACK - 1208 + 8, 2);
	hit(RETURN, &g, STACK - 1104 - 24, 2);
	is_int(shadow->depth, 1, "returns with results on the stack");
	hit(ENTRY, &g, STACK - 1104, 1);
	hit(ENTRY, &g, STACK - 1208, 1);
	hit(ENTRY, &g, STACK - 1312, 1);
	hit(RETURN, &g, STACK - 1208 - 16, 2);
	ok(shadow->depth == 2 && counted(COUNT_SHADOW_LOST_RETURN) == 1,
	   "of a recursion the call that is meant");
}

/* A compiled frame replaces the interpreter's frame, and the reverse, while calls are active. */
static void test_moved(void)
{
	uint64_t lost = counted(COUNT_SHADOW_LOST_RETURN);
	struct method loop, leaf;
	struct shadow *shadow;

	start();
	loop = method("A", "loop", "()V");
	leaf = method("A", "leaf", "()V");
	hit(ENTRY, &loop, STACK - 1000, 1);
	shadow = stack_of_thread();
	hit(ENTRY, &leaf, STACK - 900, 100);
	ok(shadow->depth == 2, "a call from a compiled frame further out than that before");
	hit(RETURN, &leaf, STACK - 900, 101);
	hit(ENTRY, &leaf, STACK - 1200, 1);
	hit(RETURN, &leaf, STACK - 1200, 2);
	hit(RETURN, &loop, STACK - 900, 102);
	ok(!shadow->depth && counted(COUNT_SHADOW_LOST_RETURN) == lost,
	   "the end of a call whose frame has moved outwards");
	hit(ENTRY, &loop, STACK - 1000, 100);
	hit(ENTRY, &leaf, STACK - 1000, 101);
	hit(RETURN, &leaf, STACK - 1304, 2);
	hit(RETURN, &loop, STACK - 1104, 2);
	ok(!shadow->depth && counted(COUNT_SHADOW_LOST_RETURN) == lost,
	   "of two that were one frame");
	hit(ENTRY, &loop, STACK - 20000, 1);
	hit(ENTRY, &leaf, STACK - 20200, 1);
	hit(ENTRY, &leaf, STACK - 1000, 1);
	ok(shadow->depth == 1 && counted(COUNT_SHADOW_LOST_RETURN) == lost + 2,
	   "too far below to be alive");
}

/* C1 reports no end of an inlined method if an exception leaves it. */
static void test_inlined(void)
{
	uint64_t lost = counted(COUNT_SHADOW_LOST_RETURN), sp = STACK - 1000;
	struct method land, fall, assist;
	struct shadow *shadow;

	start();
	land = method("A", "land", "()V");
	fall = method("A", "fall", "()V");
	assist = method("A", "assist", "()V");
	hit(ENTRY, &land, sp, 100);
	shadow = stack_of_thread();
	hit(ENTRY, &fall, sp, 101);
	hit(ENTRY, &fall, sp, 102);
	is_int(shadow->depth, 3, "a method inlined into itself");
	hit(ENTRY, &assist, sp, 103);
	hit(RETURN, &assist, sp, 104);
	hit(RETURN, &land, sp, 105);
	ok(!shadow->depth && counted(COUNT_SHADOW_LOST_RETURN) == lost + 2,
	   "all ends with what it was inlined into");
	hit(ENTRY, &land, sp, 100);
	for (int i = 0; i < 100; i++) {
		hit(ENTRY, &fall, sp, 101);
		hit(ENTRY, &fall, sp, 102);
	}
	ok(shadow->depth == 3 && counted(COUNT_SHADOW_LOST_RETURN) == lost + 2 + 99 * 2,
	   "the same places again: what began there before is over");
	hit(ENTRY, &land, sp - 96, 100);
	hit(ENTRY, &fall, sp - 96, 101);
	hit(RETURN, &fall, sp, 106);
	ok(shadow->depth == 2 && counted(COUNT_SHADOW_LOST_RETURN) == lost + 2 + 99 * 2 + 2,
	   "a return further out");
	for (int i = 0; i < 5; i++)
		hit(ENTRY, &assist, sp, 110 + i);
	hit(ENTRY, &fall, sp, 101);
	is_int(shadow->depth, 2, "a place that many others were told after");
}

/* Calls deeper than a shadow stack, also without reports of their ends. */
static void test_deep(void)
{
	struct method f, g;
	struct shadow *shadow;
	uint64_t unmatched;
	int i;

	start();
	f = method("A", "f", "()V");
	g = method("A", "g", "()V");
	hit(ENTRY, &g, STACK - 1000, 1);
	shadow = stack_of_thread();
	for (i = 1; i <= 1200; i++)
		hit(ENTRY, &f, STACK - 1000 - 64 * i, 1);
	ok(shadow->depth == SHADOW_DEPTH_MAX && shadow->overflow == 1201 - SHADOW_DEPTH_MAX,
	   "more calls than entries");
	unmatched = counted(COUNT_SHADOW_UNMATCHED);
	for (i = 1200; i > 100; i--)
		hit(RETURN, &f, STACK - 1000 - 64 * i, 2);
	ok(shadow->depth == 101 && !shadow->overflow &&
		   counted(COUNT_SHADOW_UNMATCHED) == unmatched,
	   "their returns");
	for (i = 101; i <= 1200; i++)
		hit(ENTRY, &f, STACK - 1000 - 64 * i, 1);
	hit(RETURN, &f, STACK - 1000 - 64 * 300, 2);
	ok(shadow->depth == 300 && !shadow->overflow, "the return of one further out");
	for (i = 300; i <= 1200; i++)
		hit(ENTRY, &f, STACK - 1000 - 64 * i, 1);
	hit(ENTRY, &g, STACK - 1000 - 64 * 400, 1);
	ok(!shadow->overflow && shadow->depth == 400 + 1 + JVM_SLACK / 64 + 1,
	   "a call further out: far ones are over");
	hit(RETURN, &g, STACK - 1000, 2);
	is_int(shadow->depth, 0, "a return ends all inner calls");
}

/* Tests which stacks lack their outer part, and the frames of a sample. */
static void test_samples(void)
{
	struct method f;

	start();
	f = method("A", "f", "()V");
	set_sites(1);
	host.task.start_time = 1;
	hit(ENTRY, &f, STACK - 1000, 1);
	hit(ENTRY, &f, STACK - 1100, 1);
	shadow__sample(STACK - 900);
	ok(host.sample.head.sections[0].n == 2 &&
		   !(host.sample.head.flags & SAMPLE_RUNTIME_BROKEN) &&
		   host.sample.head.sections[0].walker == WALKER_JVM &&
		   host.sample.words[0] ==
			   FRAME_KEY(stack_of_thread()->entries[1].code, JVM_NO_BCI) &&
		   host.sample.words[1] == STACK - 1100,
	   "calls whose frames may have moved above the stack pointer");
	set_sites(5000);
	host.task.start_time = 4999;
	start();
	hit(ENTRY, &f, STACK - 1000, 1);
	ok(stack_of_thread()->flags & SHADOW_PARTIAL, "a thread from before the probes");
	host.task.start_time = 5000;
	start();
	hit(ENTRY, &f, STACK - 1000, 1);
	ok(!(stack_of_thread()->flags & SHADOW_PARTIAL), "and one that they saw begin");
	set_sites(0);
	start();
	hit(ENTRY, &f, STACK - 1000, 1);
	ok(stack_of_thread()->flags & SHADOW_PARTIAL, "it is not known yet");
}

int main(void)
{
	shadow__open();
	HOST_HASH(jvm_strings, 1024);
	host__add_range(MEMORY, memory, sizeof(memory));
	host__add_range(STACK - sizeof(frames), frames, sizeof(frames));
	set_sites(0);
	test_names();
	test_lost_names();
	test_interpreted();
	test_moved();
	test_inlined();
	test_deep();
	test_samples();
	host__done();
	return tap__done();
}
