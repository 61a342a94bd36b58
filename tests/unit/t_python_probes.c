// SPDX-License-Identifier: GPL-2.0-or-later
/* CPython's probes on the host: arguments, names, and calls that began before the probes were
 * attached. */
#include "runtimes/python/python_versions.h"

#include "tests/unit/shadow_host.h"

#define MEMORY	0x10000ULL
#define NOWHERE 0x100ULL
#define STACK	0x7fff00000000ULL
#define THREAD	(MEMORY + 0x8000)
#define KEY	3

/* Sites; each cookie is a number of this list. */
enum { USDT_ENTRY, USDT_RETURN, EVAL_ENTRY, EVAL_RETURN };

static char memory[1 << 16];
static const struct python_offsets *offsets;
static uint64_t used;

static void put(uint64_t at, uint64_t value)
{
	memcpy(memory + (at - MEMORY), &value, sizeof(value));
}

static uint64_t take(size_t size)
{
	uint64_t at = MEMORY + used;

	used += (size + 15) & ~15ULL;
	return at;
}

static uint64_t text(const char *chars)
{
	uint64_t at = take(strlen(chars) + 1);

	strcpy(memory + (at - MEMORY), chars);
	return at;
}

/* Makes a str object: ASCII or, if @utf8, one whose UTF-8 is elsewhere. */
static uint64_t str(const char *chars, uint64_t utf8)
{
	uint64_t at = take(80 + strlen(chars) + 1);

	put(at + 16, strlen(chars));
	put(at + 24, 1234);
	put(at + 32, 1 << 2 | 1 << 5 | (utf8 ? 0 : 1 << 6));
	put(at + 56, utf8);
	strcpy(memory + (at - MEMORY) + (utf8 ? 72 : 48), chars);
	return at;
}

static uint64_t code(uint64_t name, uint64_t file, uint32_t line)
{
	uint64_t at = take(offsets->code_base + PYTHON_CODE_BYTES);

	put(at + offsets->code_first_line, line);
	put(at + offsets->code_file, file);
	put(at + offsets->code_name, name);
	put(at + offsets->code_line_table, MEMORY);
	return at;
}

static uint64_t frame(uint64_t back, uint64_t of_code, uint32_t last)
{
	uint64_t at = take(128);

	put(at + 24, back);
	put(at + 32, of_code);
	put(at + offsets->frame_instr, last);
	return at;
}

/* Makes the thread run the frame @running. */
static void set_frame(uint64_t running)
{
	uint64_t tstate = MEMORY + 0x7000, tss = MEMORY + 0x7800;

	put(tstate + offsets->tstate_frame, running);
	put(tstate + offsets->tstate_thread_id, THREAD);
	put(tss, 1 | (uint64_t)KEY << 32);
	put(THREAD + PTHREAD_SPECIFIC_FIRST + 16 * KEY + 8, tstate);
	host.task.thread.fsbase = THREAD;
}

static void set_site(uint32_t site, int32_t anchor_offset, const struct probe_arg *args)
{
	struct probe_rec rec = { .runtime = WALKER_PYTHON,
				 .anchor_offset = anchor_offset,
				 .space = SPACE };

	if (args)
		memcpy(rec.args, args, sizeof(rec.args));
	bpf_map_update_elem(&probe_recs, &site, &rec, 0);
}

static void set_sites(void)
{
	static const struct probe_arg usdt[PROBE_ARGS_MAX] = {
		{ .kind = PROBE_ARG_REGISTER, .reg = PROBE_R13, .size = 8 },
		{ .kind = PROBE_ARG_MEMORY,
		  .reg = PROBE_RBX,
		  .index_reg = PROBE_RCX,
		  .scale_log2 = 3,
		  .value = -16,
		  .size = 8 },
		{ .kind = PROBE_ARG_REGISTER, .reg = PROBE_RAX, .size = 4, .is_signed = 1 },
	};
	static const struct probe_arg eval[PROBE_ARGS_MAX] = {
		{ .kind = PROBE_ARG_REGISTER, .reg = PROBE_RSI, .size = 8 },
	};

	set_site(USDT_ENTRY, 32, usdt);
	set_site(USDT_RETURN, 48, usdt);
	set_site(EVAL_ENTRY, 0, eval);
	set_site(EVAL_RETURN, -8, NULL);
}

static struct shadow *stack_of_thread(void)
{
	return shadow__find(SHADOW_OWNER(host.task.pid, WALKER_PYTHON, SHADOW_OF_THREAD));
}

static void usdt(uint32_t site, uint64_t sp, uint64_t name, uint64_t file, uint32_t line)
{
	uint64_t slot = MEMORY + 0x6000;
	struct pt_regs regs = { .rsp = sp, .r13 = file, .rax = line | 0xabcd00000000 };

	put(slot, name);
	regs.rcx = 5;
	regs.rbx = slot + 16 - 5 * 8;
	host.cookie = site;
	if (site == USDT_ENTRY)
		python_usdt_entry(&regs);
	else
		python_usdt_return(&regs);
}

static void eval(uint32_t site, uint64_t sp, uint64_t of_frame)
{
	struct pt_regs regs = { .rsp = sp, .rsi = of_frame };

	host.cookie = site;
	if (site == EVAL_ENTRY)
		python_eval_entry(&regs);
	else
		python_eval_return(&regs);
}

/* Starts another thread, of which no state exists. */
static void start(int minor)
{
	struct python_proc_rec proc = { .state = PYTHON_STATE_KEY, .state_at = MEMORY + 0x7800 };
	static const uint32_t space = SPACE;

	shadow_on_exit(&host.task);
	host.task.pid++;
	used = 16;
	memset(memory, 0, sizeof(memory));
	proc.offsets = python_version__find(minor)->offsets;
	bpf_map_update_elem(&python_procs, &space, &proc, 0);
	offsets = &python_version__find(minor)->offsets;
	host.jiffies += 100;
	host.now_ns += 100 * CODE_OBJECT_RECHECK_NS;
}

static void test_usdt(void)
{
	uint64_t name, other, file;
	struct shadow *shadow;

	start(9);
	name = text("spam");
	other = text("eggs");
	file = text("/tmp/menu.py");
	set_frame(frame(0, 0, 0));
	usdt(USDT_ENTRY, STACK, name, file, 12);
	shadow = stack_of_thread();
	ok(shadow && shadow->depth == 1 && !(shadow->flags & SHADOW_PARTIAL) &&
		   shadow->entries[0].anchor == STACK + 32 && shadow->entries[0].match == name &&
		   shadow->entries[0].index == 12,
	   "the arguments of a call, by register and from memory");
	ok(last_rec.code == shadow->entries[0].code &&
		   last_rec.name_kind == CODE_OBJECT_TEXT_UTF8 && last_rec.name_len == 4 &&
		   !strcmp(last_rec.name, "spam") && last_rec.file_len == 12 &&
		   !strcmp(last_rec.file, "/tmp/menu.py") && last_rec.first_line == 12 &&
		   last_rec.walker == WALKER_PYTHON && last_rec.tgid == 1000,
	   "the function's names are sent");
	usdt(USDT_ENTRY, STACK - 1024, other, file, 20);
	usdt(USDT_RETURN, STACK - 1024 - 16, other, file, 21);
	is_int(shadow->depth, 1, "a return");
	usdt(USDT_RETURN, STACK - 1024 - 16, other, file, 21);
	is_int(shadow->depth, 1, "a return too many");
	usdt(USDT_RETURN, STACK - 16, name, file, 21);
	is_int(shadow->depth, 0, "the outer return");
}

static void test_reuse(void)
{
	uint32_t before = n_codes, first, second;
	uint64_t name, file;
	struct shadow *shadow;

	start(9);
	name = text("first");
	file = text("a.py");
	usdt(USDT_ENTRY, STACK, name, file, 1);
	shadow = stack_of_thread();
	first = shadow->entries[0].code;
	usdt(USDT_ENTRY, STACK - 100, name, file, 1);
	is_int(shadow->entries[1].code, first, "the same function");
	usdt(USDT_ENTRY, STACK - 200, name, file, 2);
	ok(shadow->entries[2].code != first && n_codes == before + 2, "another line");
	strcpy(memory + (name - MEMORY), "other");
	host.jiffies += 100;
	host.now_ns += 100 * CODE_OBJECT_RECHECK_NS;
	usdt(USDT_ENTRY, STACK - 300, name, file, 1);
	second = shadow->entries[3].code;
	ok(second != first && n_codes == before + 3 && !strcmp(last_rec.name, "other"),
	   "memory that was reused for another name");
	host.ring_full = true;
	usdt(USDT_ENTRY, STACK - 400, name, file, 3);
	ok(counted(COUNT_CODE_LOST) == 1 && shadow->depth == 5, "no room to send a name");
	host.ring_full = false;
	usdt(USDT_ENTRY, STACK - 500, NOWHERE, file, 3);
	ok(shadow->depth == 6 && !shadow->entries[5].code, "a name that cannot be read");
	host.cookie = 99;
	python_usdt_return(&(struct pt_regs) { 0 });
	is_int(counted(COUNT_PROBE_UNKNOWN), 1, "a site without a record");
}

/* Three calls are active when a fourth one is seen. */
static void test_seed(void)
{
	uint64_t file, names[3], frames[3], running = 0, utf8;
	struct shadow *shadow;

	start(9);
	file = str("late.py", 0);
	utf8 = text("na\xc3\xafve");
	names[0] = str("<module>", 0);
	names[1] = str("na?ve", utf8);
	names[2] = str("inner", 0);
	for (int i = 0; i < 3; i++)
		running = frames[i] = frame(running, code(names[i], file, 10 * (i + 1)), 6 * i);
	set_frame(frame(running, 0, 0));
	usdt(USDT_ENTRY, STACK, text("seen"), file + 48, 50);
	shadow = stack_of_thread();
	ok(shadow->depth == 4 && !(shadow->flags & SHADOW_PARTIAL) &&
		   shadow->entries[0].match == names[0] + 48 && shadow->entries[1].match == utf8 &&
		   shadow->entries[2].index == 30 && shadow->entries[2].flags & ENTRY_SEEDED &&
		   !shadow->entries[2].anchor,
	   "USDT: calls from before");
	usdt(USDT_RETURN, STACK - 16, shadow->entries[3].match, file + 48, 51);
	usdt(USDT_RETURN, STACK + 600, names[2] + 48, file + 48, 31);
	usdt(USDT_RETURN, STACK + 1600, utf8, file + 48, 21);
	is_int(shadow->depth, 1, "and their returns");

	start(10);
	file = str("late.py", 0);
	running = 0;
	for (int i = 0; i < 3; i++) {
		names[i] = str("f", 0);
		running = frames[i] = frame(running, code(names[i], file, 10 * (i + 1)), 6 * i);
	}
	eval(EVAL_ENTRY, STACK, frame(frames[2], code(names[2], file, 30), 8));
	shadow = stack_of_thread();
	ok(shadow->depth == 4 && shadow->entries[1].match == frames[1] && shadow->entries[2].code &&
		   last_rec.table_format == offsets->line_format,
	   "interpreter loop: calls from before");
	shadow__sample(STACK - 100);
	ok(host.sample.head.sections[0].n == 4 &&
		   !(host.sample.head.flags & SAMPLE_RUNTIME_BROKEN) &&
		   FRAME_KEY_INDEX(host.sample.words[0]) == 16 &&
		   FRAME_KEY_INDEX(host.sample.words[2]) == 24,
	   "a sample has the instructions that the frames are at, in bytes");
	eval(EVAL_RETURN, STACK + 8, 0);
	is_int(shadow->depth, 3, "a return");
	eval(EVAL_ENTRY, STACK + 500, frame(frames[0], code(names[2], file, 30), 0));
	ok(shadow->depth == 2 && shadow->entries[1].anchor == STACK + 500,
	   "the caller of the next call proves that two of them are over");
}

static void test_broken_seed(void)
{
	struct shadow *shadow;

	start(9);
	eval(EVAL_ENTRY, STACK, frame(NOWHERE, 0, 0));
	shadow = stack_of_thread();
	ok(shadow->depth == 1 && shadow->flags & SHADOW_PARTIAL && !shadow->entries[0].code,
	   "a caller that cannot be read");
	shadow__sample(STACK - 8);
	ok(host.sample.head.flags & SAMPLE_RUNTIME_BROKEN, "the sample says so");
	start(11);
	usdt(USDT_ENTRY, STACK, text("f"), text("f.py"), 1);
	ok(stack_of_thread()->flags & SHADOW_PARTIAL && stack_of_thread()->depth == 1,
	   "a version whose earlier calls cannot be found");
}

/* More calls than a shadow stack holds. */
static void test_deep_seed(void)
{
	uint64_t running = 0, of_code, last = 0;
	struct shadow *shadow;

	start(9);
	of_code = code(str("deep", 0), str("deep.py", 0), 1);
	for (int i = 0; i < 150; i++)
		running = frame(running, of_code, 0);
	last = running;
	eval(EVAL_ENTRY, STACK, frame(running, of_code, 0));
	shadow = stack_of_thread();
	ok(shadow->depth == 151 && shadow->entries[149].match == last, "150 calls from before");
	put(MEMORY + 16, 0); /* a cycle */
	start(9);
	of_code = code(str("deep", 0), str("deep.py", 0), 1);
	running = frame(0, of_code, 0);
	put(running + 24, running);
	eval(EVAL_ENTRY, STACK, frame(running, of_code, 0));
	shadow = stack_of_thread();
	ok(shadow->depth == SHADOW_DEPTH_MAX && shadow->flags & SHADOW_PARTIAL &&
		   shadow->overflow > SHADOW_DEPTH_MAX,
	   "callers without end");
}

int main(void)
{
	shadow__open();
	host__add_range(MEMORY, memory, sizeof(memory));
	set_sites();
	test_usdt();
	test_reuse();
	test_seed();
	test_broken_seed();
	test_deep_seed();
	host__done();
	return tap__done();
}
