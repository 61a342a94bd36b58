// SPDX-License-Identifier: GPL-2.0-or-later
/* A command, and the programs that it and its children execute.
 *
 * Tables, walkers and probes should be in place before a program runs. So each program is held at
 * its system calls (core/target/hold.h) while they are made. The command is held from its exec on.
 * Later programs are held from shortly after their exec, when the kernel half has reported it, and
 * only if their file is new. For a file that was read before, the preparation is faster than a
 * dynamic linker.
 *
 * A program that may execute another one (a shell, env, a version manager) is followed for a
 * minute: it stays traced, and stops only at its forks and its next exec. The executed program is
 * then held from its first instruction on. FORKS_MAX forks end this for all programs, and
 * HOLD_SIGNALS_MAX signals for the program that gets them. Three kinds of programs are never
 * followed: programs of a runtime, since braid is ready for them; debuggers and other tracers; and
 * programs with a sanitizer, which traces its own process.
 *
 * Sampling and the recording's time start at the command's exec. A hold ends at a stop of the
 * linker, never by the clock, but a signal or -d does not wait for it. */
#include "core/record/parts.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/priority.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/elf/elf_symbols.h"

#define LINK_POLL_MS 50 /* pause between checks of the ring and the clock while a linker works */
#define FOLLOW_NS    (60 * NSEC_PER_SEC)
#define FORKS_MAX    256   /* forks of followed programs; a stop takes under 100 us */
#define SYMBOLS_MAX  65536 /* symbols of a program that are read */
#define STOP_POLL_MS 20	   /* time for an executed program to stop */

static bool is_ending(const struct session *session)
{
	return stopper__has_signal(session->stopper) ||
	       (session->opts.duration_s > 0 &&
		now_ns() - session->start_ns >= session->opts.duration_s * 1e9);
}

static bool is_exec(const char *name)
{
	static const char *const names[] = { "execve",	    "execv",	   "execvp", "execvpe",
					     "execl",	    "execlp",	   "execle", "fexecve",
					     "posix_spawn", "posix_spawnp" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* Returns true for programs that trace others, since a traced process has one tracer only. */
static bool is_tracing(const char *name)
{
	static const char *const prefixes[] = { "__asan_", "__lsan_", "__msan_", "__tsan_",
						"__hwasan_" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return !strcmp(name, "ptrace");
}

struct imports {
	bool execute, trace;
};

static void read_imports(const struct elf_file *file, struct imports *ret)
{
	struct elf_symbols symbols = {};
	GElf_Sym symbol;
	const char *name;
	size_t i;

	elf_symbols__open(file, ".dynsym", &symbols);
	for (i = 0; i < min_of((size_t)symbols.n, (size_t)SYMBOLS_MAX); i++) {
		name = elf_symbols__get(&symbols, i, &symbol);
		if (!name || symbol.st_shndx != SHN_UNDEF)
			continue;
		ret->execute |= is_exec(name);
		ret->trace |= is_tracing(name);
	}
}

/* Returns true if the program executes other programs, and neither it nor one of its libraries
 * traces processes. */
static bool may_follow(const struct process *process, const struct image *program)
{
	const struct image *last = program;
	struct imports imports = {};

	read_imports(program->file, &imports);
	imports.trace |= !imports.execute;
	for (size_t i = 0; i < process->n_mapped && !imports.trace; i++) {
		const struct image *image = process->mapped[i].image;

		if (image && image->file && image != last && image != program)
			read_imports(image->file, &imports);
		last = image;
	}
	return !imports.trace;
}

/* Returns true if the program may execute another one. The program is mapped below its libraries.
 * The mappings of a program whose file was read before are not read. */
static bool is_launcher(const struct session *session, const struct process *process)
{
	const struct image *image = !process		? NULL
				    : process->n_mapped ? process->mapped[0].image
							: process->exe;

	if (!image || !image->file || process__is_ended(process) ||
	    privilege__missing(1U << PRIVILEGE_PROCESSES))
		return false;
	return session->opts.trigger || (!process__attached(process) && may_follow(process, image));
}

/* Lets a linked program run: traced up to its next exec, or untraced. */
static void let_run(struct session *session, struct hold *hold)
{
	struct process *process = tracker__find(session->tracker, hold->pid);

	if (process)
		process__let_run(process);
	if (hold->pid == session->command.child.pid && session->command.n_forks < FORKS_MAX)
		session->command.follow_until_ns = now_ns() + FOLLOW_NS;
	if (now_ns() < session->command.follow_until_ns && !is_ending(session) &&
	    is_launcher(session, process))
		hold__follow(hold, session->command.follow_until_ns);
	else
		hold__release(hold);
}

static int refresh(struct session *session, uint32_t pid, struct err *err)
{
	struct process *process = tracker__find(session->tracker, pid);

	return process && tracker__refresh(session->tracker, process)
		       ? err__set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* Waits until the command's libraries are mapped, or until waiting is useless: there is no
 * linker, or the recording ends. */
static int link_command(struct session *session, struct err *err)
{
	struct hold *hold = &session->command.child.hold;
	enum hold_state state = HOLD_EXECUTED;
	uint64_t consumed_ns = now_ns();
	int ret = 0;

	while (!ret && hold->pid && state != HOLD_LINKED && !is_ending(session)) {
		if (state == HOLD_EXECUTED && !hold__has_linker(hold))
			break;
		if (state == HOLD_EXECUTED)
			hold__go_on(hold);
		state = hold__wait(hold, session->command.child.signal_fd, LINK_POLL_MS);
		if (state == HOLD_RUNS && now_ns() < consumed_ns + LINK_POLL_MS * 1000000ULL)
			continue;
		ret = session__consume(session, err);
		consumed_ns = now_ns();
	}
	return ret ? ret : refresh(session, session->command.child.pid, err);
}

int session__start_command(struct session *session, struct err *err)
{
	struct child *child = &session->command.child;
	struct process *process;
	uint32_t id;
	int ret = child__exec(child, session->opts.command[0], stopper__fd(session->stopper), err);

	priority__raise(); /* the executed program must be found while it is linked */
	if (!ret)
		ret = session__consume(session, err);
	process = ret ? NULL : tracker__find(session->tracker, child->pid);
	if (process) /* the command may end before a sample, and yet have children */
		ret = capture__process_id(session->capture, process, &id, err);
	if (!ret)
		ret = session__begin(session, err);
	if (!ret)
		ret = link_command(session, err);
	if (!ret)
		ret = session__attach_in_targets(session, err);
	if (!ret)
		ret = session__commit(session, err);
	if (!ret) { /* after a failure, the command must not run on */
		session->command.holds[0] = child->hold;
		child->hold = (struct hold) {};
		let_run(session, &session->command.holds[0]);
	}
	return ret;
}

/* --- programs that are executed later --- */

static struct hold *free_hold(struct session *session)
{
	for (size_t i = 0; i < ARRAY_SIZE(session->command.holds); i++)
		if (!session->command.holds[i].pid)
			return &session->command.holds[i];
	return NULL;
}

/* Returns true if the libraries of each program must be read. A program whose file was read before
 * may map other libraries than before (LD_PRELOAD). They are needed for events with probes in
 * libraries. */
static bool needs_libraries(const struct session *session)
{
	return session->opts.trigger || event_list__has_mapped(&session->opts.events);
}

struct hold *session__hold(struct session *session, const struct rec_program *rec)
{
	struct hold *hold;
	size_t i;

	if (!session->opts.command || session->command.child.hold.pid ||
	    (rec->image && !needs_libraries(session)) ||
	    !tracker__find(session->tracker, rec->tgid) || is_ending(session))
		return NULL;
	for (i = 0; i < ARRAY_SIZE(session->command.holds); i++)
		if (session->command.holds[i].pid == (int)rec->tgid)
			return NULL;
	hold = free_hold(session);
	if (!hold || !hold__interrupt(hold, rec->tgid))
		return NULL;
	hold->is_child = (int)rec->tgid == session->command.child.pid;
	if (hold__wait(hold, session->command.child.signal_fd, STOP_POLL_MS) != HOLD_EXECUTED)
		return NULL;
	if (hold__has_run(hold))
		process__let_run(tracker__find(session->tracker, rec->tgid));
	else
		process__hold(tracker__find(session->tracker, rec->tgid));
	return hold;
}

static int see_libraries(struct session *session, struct hold *hold, struct err *err)
{
	int ret = refresh(session, hold->pid, err);

	if (!ret)
		ret = session__follow(session, err);
	if (!ret && session->opts.trigger) { /* the exec has removed its breakpoint */
		trigger__free(session->targets.trigger);
		session->targets.trigger = NULL;
		ret = trigger__attach(session->opts.trigger, session->half, session->tracker,
				      &session->targets.trigger, err);
	}
	let_run(session, hold);
	return ret;
}

/* Processes the record of the exec, which the kernel half has sent before the process stops. */
static int see_exec(struct session *session, struct hold *hold, struct err *err)
{
	struct process *process;
	int ret = session__consume(session, err);

	process = tracker__find(session->tracker, hold->pid);
	if (process)
		process__hold(process);
	if (!ret && process && process->exe && process->exe->is_plain && !needs_libraries(session))
		let_run(session, hold);
	else
		hold__go_on(hold);
	return ret;
}

/* Detaches from followed programs as soon as that disturbs nothing. */
static void end_following(struct session *session)
{
	session->command.follow_until_ns = now_ns();
	for (size_t i = 0; i < ARRAY_SIZE(session->command.holds); i++)
		session->command.holds[i].until_ns = session->command.follow_until_ns;
}

static void see_fork(struct session *session, struct hold *parent)
{
	struct hold *child = free_hold(session), none;

	if (++session->command.n_forks == FORKS_MAX)
		end_following(session);
	hold__adopt(child ? child : &none, parent->forked, parent->until_ns);
	if (!child)
		hold__release(&none);
	hold__follow(parent, parent->until_ns);
}

static int step_hold(struct session *session, struct hold *hold, bool *ret_stopped, struct err *err)
{
	enum hold_state state = hold__next(hold);
	int ret = 0;

	*ret_stopped |= state != HOLD_RUNS && state != HOLD_OVER;
	switch (state) {
	case HOLD_EXECUTED:
		ret = see_exec(session, hold, err);
		break;
	case HOLD_LINKED:
		ret = see_libraries(session, hold, err);
		break;
	case HOLD_FORKED:
		see_fork(session, hold);
		break;
	case HOLD_RUNS:
		hold__expire(hold);
		break;
	case HOLD_OVER:
		break;
	}
	return ret;
}

int session__follow_holds(struct session *session, struct err *err)
{
	struct signalfd_siginfo info;
	bool stopped = true;
	int ret = 0;

	if (session->command.child.signal_fd < 0)
		return 0;
	while (read(session->command.child.signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	/* A new process may have stopped before it got its place. */
	while (!ret && stopped) {
		stopped = false;
		for (size_t i = 0; !ret && i < ARRAY_SIZE(session->command.holds); i++)
			ret = step_hold(session, &session->command.holds[i], &stopped, err);
	}
	return ret;
}

void session__reap_command(struct session *session, uint32_t pid)
{
	struct session_command *command = &session->command;

	if ((int)pid == command->child.pid &&
	    waitpid(pid, &command->status, WNOHANG) == command->child.pid)
		command->child.pid = 0;
}

bool session__is_linking(const struct session *session)
{
	for (size_t i = 0; i < ARRAY_SIZE(session->command.holds); i++)
		if (session->command.holds[i].pid && !session->command.holds[i].is_following)
			return true;
	return false;
}

void session__release_holds(struct session *session)
{
	hold__release(&session->command.child.hold);
	for (size_t i = 0; i < ARRAY_SIZE(session->command.holds); i++)
		hold__release(&session->command.holds[i]);
}
