// SPDX-License-Identifier: GPL-2.0
#include "bpf/perl_context.bpf.h"

/* Walks Perl's context stacks of the interrupted thread, innermost first: subroutines, formats,
 * evals, required files, sort blocks and code in patterns. Loops and plain blocks have contexts,
 * too, and are skipped. The interpreter has several context stacks, each in a "stackinfo". The
 * first one is the main program's. Each call by the interpreter itself begins a new one (tied
 * variables, overloaded operators, destructors, comparisons of sort, signal handlers).
 *
 * A context has no line of its own. The innermost context runs the statement PL_curcop. Each
 * context contains its caller's statement: the one that was current when the context began.
 *
 * Calls from Perl to Perl do not nest natively. One Perl_runops_standard runs them all, up to a
 * subroutine that C has called (call_sv). Such a subroutine has no operation to return to (retop,
 * cop.h), and ends the loop. */

#define CONTEXTS_MAX	  (1 << 14) /* with blocks and loops, of all stackinfos */
#define CONTEXTS_PER_STEP 2

/* --- frames --- */

/* Returns the file of the statement in state->cop. In a Perl without threads, a statement refers to
 * a glob instead of a text. The glob's name is "_<" and the file. */
static __noinline __u64 statement__file(struct perl_state *state)
{
	__u64 file = (__u64)state->statement.file[1] << 32 | state->statement.file[0], body, name;

	if (state->proc.state != PERL_STATE_GLOBAL || !file)
		return file;
	if (read_user(&body, sizeof(body), file) ||
	    read_user(&name, sizeof(name), body + GLOB_NAME))
		return 0;
	return name + HEK_BYTES + 2;
}

static __noinline int statement__load(struct perl_state *state)
{
	if (!state->cop ||
	    read_user(&state->statement, sizeof(state->statement), state->cop + COP_LINE))
		__builtin_memset(&state->statement, 0, sizeof(state->statement));
	return 0;
}

/* Loads only the line of the statement, which costs less than loading the file, too. A subroutine
 * has its own file. */
static __noinline int line__load(struct perl_state *state)
{
	__u32 space = state->call.key.space;
	__u64 hash = (state->cop + space) * 0x9e3779b97f4a7c15ULL; /* 2^64 / golden ratio */
	struct perl_line *line = &state->lines[hash >> (64 - PERL_LINES_LOG2) & (PERL_LINES - 1)];

	if (state->cop && line->cop == state->cop && line->space == space &&
	    code_object__is_fresh(state->call.now_ns, state->call.replaces, line->since_ns,
				  line->checked_ns)) {
		state->statement.line = line->line;
		return 0;
	}
	statement__load(state);
	if (line->cop != state->cop || line->space != space || line->line != state->statement.line)
		line->since_ns = state->call.now_ns;
	line->cop = state->statement.line ? state->cop : 0;
	line->checked_ns = state->call.now_ns;
	line->space = space;
	line->line = state->statement.line;
	return 0;
}

/* Returns the line of a subroutine's first statement; 0: unknown. */
static __noinline __u32 sub__line(struct perl_state *state, __u64 cv)
{
	__u32 type, line;

	if (read_sub(&state->call, cv) ||
	    read_user(&type, sizeof(type), state->call.body.start + OP_TYPE) ||
	    (type & OP_TYPE_MASK) != state->proc.offsets.op_nextstate ||
	    read_user(&line, sizeof(line), state->call.body.start + COP_LINE))
		return 0;
	return line;
}

static __noinline int push(struct perl_state *state, struct scratch *scratch, __u32 kind,
			   __u64 address)
{
	__u32 code;

	if (!scratch)
		return 0;
	code = code__number(&state->call, state->slots, address, kind);
	if (!code)
		count(COUNT_WALK_CODE);
	scratch__push(scratch, FRAME_KEY(code, state->statement.line), 0);
	state->n++;
	return 0;
}

/* Pushes a subroutine's frame. Directly after the entry of a subroutine, the current statement is
 * still the caller's, unless the subroutine calls itself by this very statement. Only the next
 * outer subroutine shows the difference. */
static __always_inline void push_sub(struct perl_state *state, struct scratch *scratch, __u64 cv,
				     __u64 oldcop)
{
	if (state->first_cv == cv && state->first_word < SAMPLE_WORDS_MAX) {
		__u64 *key = &scratch->words[state->first_word & (SAMPLE_WORDS_MAX - 1)];

		*key = FRAME_KEY(FRAME_KEY_CODE(*key), state->first_line);
	}
	state->first_cv = 0;
	line__load(state);
	if (!state->n && state->cop == oldcop) {
		state->first_cv = cv;
		state->first_word = scratch->n_words;
		state->first_line = state->statement.line;
		state->statement.line = sub__line(state, cv);
	}
	push(state, scratch, PERL_CODE_SUB, cv);
}

static __always_inline void push_other(struct perl_state *state, struct scratch *scratch,
				       __u32 kind)
{
	state->first_cv = 0;
	statement__load(state);
	push(state, scratch, kind, statement__file(state));
}

static __always_inline void push_mark(struct scratch *scratch)
{
	scratch__push(scratch, FRAME_LOOP_END, 0);
}

/* --- the current operation --- */

static __noinline int operation__load(struct perl_state *state)
{
	__u64 words[OP_WORDS], op;

	state->idle = 0;
	state->op_type = OP_UNKNOWN;
	if (read_user(&op, sizeof(op), state->base + state->proc.op))
		return 0;
	state->idle = !op;
	if (!op || read_user(words, sizeof(words), op))
		return 0;
	state->op_next = words[0];
	state->op_type = words[OP_TYPE / 8] & OP_TYPE_MASK;
	return 0;
}

/* Skips the innermost context, which has no frame: it is being entered, or already left. The
 * caller's statement @oldcop is valid only if it is already left. */
static __always_inline void leave(struct perl_state *state, __u64 oldcop)
{
	const __u16 *ops = state->proc.offsets.op_leave;
	__u32 op = state->op_type;

	if (state->innermost && (op == ops[0] || op == ops[1] || op == ops[2] || op == ops[3]))
		state->cop = oldcop;
}

/* Returns 1 if the context is complete. si_cxsubix is set when a context gets its content, and
 * reset before the content is removed (cx_pushsub, cx_popsub and others of inline.h). */
static __always_inline int context__is_initialized(const struct perl_state *state)
{
	return state->index <= state->sub_index;
}

/* Returns 1 if C code is calling a subroutine. The current operation is then one that call_sv has
 * made, with neither a type nor a next operation (perl.c). */
static __always_inline int operation__is_of_c(const struct perl_state *state)
{
	return !state->op_type && !state->op_next;
}

/* Returns 1 if this subroutine runs. pp_entersub (pp_hot.c) makes the context of its callee in
 * several steps. Fields that it has not written yet are those of an earlier call. The operation to
 * return to, @retop, is among the last, but it is the same for all calls by C. The last step makes
 * the subroutine's pad the current one. Until then the current pad is the caller's, which is
 * @previous in the context, and the frame is left out. */
static __noinline int sub__runs(struct perl_state *state, __u64 cv, __u64 retop, __u64 previous)
{
	__u64 comppad, pads, pad;

	if (!operation__is_of_c(state) &&
	    (state->op_type != state->proc.offsets.op_entersub || state->op_next == retop))
		return 1;
	return !read_user(&comppad, sizeof(comppad), state->base + state->proc.comppad) &&
	       comppad != previous && !read_sub(&state->call, cv) &&
	       !read_user(&pads, sizeof(pads), state->call.body.padlist + PADLIST_PADS) &&
	       !read_user(&pad, sizeof(pad), pads + 8ULL * state->call.body.depth) &&
	       pad == comppad;
}

/* Returns 1 if the loop of a repeated call by C has ended, or sort has not begun one yet. The
 * context of such calls (comparisons of sort, blocks of List::Util) remains while C's own code
 * runs. */
static __always_inline int loop__is_over(const struct perl_state *state, __u64 retop)
{
	return state->innermost && !retop &&
	       (state->idle ||
		(state->type == INFO_SORT && state->op_type == state->proc.offsets.op_sort));
}

static __always_inline void walk_sub(struct perl_state *state, struct scratch *scratch, __u64 at,
				     __u32 type)
{
	__u64 oldcop = context__word(state, at + CONTEXT_OLDCOP);
	__u64 retop = context__word(state, at + CONTEXT_RETOP);
	__u64 cv = context__word(state, at + state->proc.offsets.context_sub + 8);

	if (!context__is_initialized(state) || !cv) {
		leave(state, oldcop);
		return;
	}
	if (loop__is_over(state, retop)) {
		if (state->type != INFO_SORT) /* restored already, S_sortcv of pp_sort.c */
			state->cop = oldcop;
		return;
	}
	if (state->innermost && (type & CONTEXT_TYPE) == CONTEXT_SUB &&
	    !sub__runs(state, cv, retop,
		       context__word(state, at + state->proc.offsets.context_sub)))
		return;
	if ((type & CONTEXT_TYPE) == CONTEXT_SUB && type & CONTEXT_RE_FAKE)
		push_other(state, scratch, PERL_CODE_PATTERN);
	else
		push_sub(state, scratch, cv, oldcop);
	if (!retop)
		push_mark(scratch);
	state->cop = oldcop;
}

/* Pushes the frame of an eval. An eval of a text by C code (eval_sv) has no operation to return to,
 * so it is the outermost frame of its interpreter loop. C code may also call a sub within an eval
 * that catches errors (call_sv with G_EVAL). Such an eval has no operation to return to either, but
 * is no frame of the loop: the loop runs inside the eval. */
static __always_inline void walk_eval(struct perl_state *state, struct scratch *scratch, __u64 at,
				      __u32 type)
{
	const struct perl_offsets *offsets = &state->proc.offsets;
	__u64 oldcop = context__word(state, at + CONTEXT_OLDCOP);

	if (!context__is_initialized(state)) {
		leave(state, oldcop);
		return;
	}
	if (type & offsets->evals_try) /* Perl's `caller` shows no frame for it either */
		return;
	if (type & offsets->evals_block) {
		push_other(state, scratch, PERL_CODE_EVAL_BLOCK);
	} else {
		push_other(state, scratch,
			   context__word(state, at + offsets->context_sub) ? PERL_CODE_REQUIRE
									   : PERL_CODE_EVAL_TEXT);
		if (!context__word(state, at + CONTEXT_RETOP))
			push_mark(scratch);
	}
	state->cop = oldcop;
}

static __always_inline void walk_sort(struct perl_state *state, struct scratch *scratch, __u64 at)
{
	if (state->type != INFO_SORT || state->index)
		return;
	if (loop__is_over(state, 0))
		return;
	push_other(state, scratch, PERL_CODE_SORT_BLOCK);
	push_mark(scratch);
	state->cop = context__word(state, at + CONTEXT_OLDCOP);
}

/* --- the walk --- */

/* Ends the walk after the outermost context. There is a main program only while it is executed. */
static __always_inline int walk__end(struct perl_state *state, struct scratch *scratch)
{
	__u32 phase;

	if (read_user(&phase, sizeof(phase), state->base + state->proc.phase)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	if (phase == PHASE_RUN) {
		push_other(state, scratch, PERL_CODE_MAIN);
		push_mark(scratch);
	}
	state->complete = 1;
	return 1;
}

static __always_inline int info__next(struct perl_state *state, struct scratch *scratch)
{
	state->innermost = 0;
	if (!state->previous)
		return walk__end(state, scratch);
	if (info__load(state, state->previous)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	return 0;
}

/* Walks one context. Returns 0 if there is more to walk. */
static __always_inline int walk_context(struct perl_state *state, struct scratch *scratch)
{
	__u32 type;
	__u64 at;

	if (state->index < 0)
		return info__next(state, scratch);
	if (state->n >= RUNTIME_FRAMES_MAX - 1) { /* the main program is a frame, too */
		state->truncated = 1;
		return 1;
	}
	if (context__load(state, &at)) {
		count(COUNT_WALK_READ);
		return 1;
	}
	type = context__word(state, at) & 0xff;
	switch (type & CONTEXT_TYPE) {
	case CONTEXT_SUB:
	case CONTEXT_FORMAT:
		walk_sub(state, scratch, at, type);
		break;
	case CONTEXT_EVAL:
		walk_eval(state, scratch, at, type);
		break;
	case CONTEXT_NULL:
		walk_sort(state, scratch, at);
	}
	state->innermost = 0;
	state->index--;
	return 0;
}

static long walk_step(__u32 index, void *unused)
{
	struct perl_state *state = state__get();
	struct scratch *scratch = scratch__get();
	__u32 i;

	(void)index, (void)unused;
	if (!state || !scratch)
		return 1;
	for (i = 0; i < CONTEXTS_PER_STEP; i++)
		if (walk_context(state, scratch))
			return 1;
	return 0;
}

/* Stores the address of the thread's interpreter in *ret_base. Returns 1 if there is none. */
static __always_inline int read_interpreter(const struct perl_proc_rec *proc, __u64 *ret_base)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 fsbase = arch__thread_pointer(task), first;
	__u32 key;

	*ret_base = 0;
	if (proc->state == PERL_STATE_GLOBAL)
		return 0;
	if (read_user(&key, sizeof(key), proc->state_at))
		return -1;
	/* Before the first interpreter exists there is no key either, and key 0 belongs to another
	 * library (perl.c, S_init_tls_and_interp). */
	if (!key && proc->first_at && (read_user(&first, sizeof(first), proc->first_at) || !first))
		return 1;
	if (read_specific(&proc->libc, fsbase, key, ret_base))
		return -1;
	return !*ret_base;
}

static __always_inline int walk__start(struct perl_state *state, struct perl_proc_rec *proc)
{
	__u64 info;
	int ret = read_interpreter(proc, &state->base);

	if (ret > 0)
		return -1; /* not a thread of Perl */
	if (ret || read_user(&state->cop, sizeof(state->cop), state->base + proc->curcop) ||
	    read_user(&info, sizeof(info), state->base + proc->curstackinfo) ||
	    (info && info__load(state, info))) {
		count(COUNT_WALK_NO_STATE);
		return -1;
	}
	operation__load(state);
	state->innermost = 1;
	state->first_cv = 0;
	state->n = state->complete = state->truncated = 0;
	return info ? 0 : -1; /* the interpreter is incomplete: in construction or destruction */
}

static __always_inline void walk(struct scratch *scratch, struct perl_state *state,
				 struct perl_proc_rec *proc)
{
	struct rec_sample *sample = &scratch->sample;
	__u32 first_word = scratch->n_words;

	state->proc = *proc;
	state->call.now_ns = sample->time_ns;
	state->call.replaces = process__replaces(sample->time_ns, proc->replaced_ns);
	state->call.tgid = sample->tgid;
	state->call.key.space = scratch->proc.space;
	state->call.offsets = proc->offsets;
	if (walk__start(state, proc))
		return;
	if (bpf_loop(CONTEXTS_MAX / CONTEXTS_PER_STEP, walk_step, NULL, 0) >=
	    CONTEXTS_MAX / CONTEXTS_PER_STEP)
		state->truncated = 1;
	scratch__walked(scratch, WALKER_PERL, first_word, state->complete, state->truncated);
}

SEC("?perf_event")
int walk_perl(void *ctx)
{
	struct scratch *scratch = scratch__get();
	struct perl_state *state = state__get();
	struct perl_proc_rec *proc;

	if (!scratch || !state) {
		scratch__abandon();
		return 0;
	}
	proc = bpf_map_lookup_elem(&perl_procs, &scratch->proc.space);
	if (proc)
		walk(scratch, state, proc);
	else
		count(COUNT_WALK_NO_STATE);
	scratch__next(ctx, scratch);
	return 0;
}
