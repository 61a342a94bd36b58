// SPDX-License-Identifier: GPL-2.0-or-later
/* Records a bundle of the corpus: record [OPTIONS] OUT IMAGES COMMAND...
 *
 * The command describes its stacks in the file $BRAID_TELL, and then enters the marker (stops.h).
 * At the marker the whole command is stopped. Its description selects the threads:
 *
 *   case NAME            begins a case, of the thread that is at the marker
 *   thread TID           ... for another thread of the process
 *   FUNCTION\tFILE\tLINE its frames (expect.h), outermost first
 *   or                   begins another stack that it may have
 *   or cut               ... or a part of one, if braid flags the walk as broken off
 *   called FUNCTION\t...  a native frame that it has, as far as the program can see them
 *   nothing              the stack cannot be described
 *   steps N MAX          N further cases, each after up to MAX more instructions
 *   later N US           N further cases, each after running for up to US microseconds
 *
 * A command that describes nothing is stopped at any point, and its first thread is recorded:
 *
 *   --of PROGRAM         of the first of its processes that runs this program
 *   --later N US         N times, each after running for up to US microseconds
 *   --steps N MAX        at each of them N further cases, each after up to MAX more instructions
 *
 * OUT.bundle receives the data of the process that braid's walkers and unwinder read, and a bit
 * more. OUT.txt receives the description, and the native stack that libdwfl finds. `replay
 * --accept` checks both and adds braid's result. */
#include <ctype.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "tests/replay/note.h"
#include "tests/replay/stops.h"

#define TELL_BYTES     (1 << 20)
#define CASES_MAX      64
#define RETURN_ADDRESS 16 /* its column in DWARF */
#define STEPS_SEED     12 /* the same stops each time, if the target is the same */

struct pace { /* n more cases, each after at most max steps */
	unsigned n, max;
};

struct described { /* a case */
	char name[PACK_NAME_BYTES];
	pid_t tid;
	char *frames; /* its lines; NULL: none */
	char *called;
	bool nothing;
	struct pace steps, later; /* in instructions; in microseconds */
};

struct recorder {
	struct stops *stops;
	struct note *note; /* NULL: no case yet */
	pid_t pid;	   /* process of these cases */
	const char *images;
	FILE *text;
	struct described described[CASES_MAX];
	size_t n_described;
	struct described by_options; /* case of the options */
	const char *program; /* program of the process; NULL: the command describes its stacks */
};

/* --- the command's description --- */

static char *read_described(pid_t pid, const char *name)
{
	char path[4096], *text;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	text = fd < 0 ? NULL : malloc(TELL_BYTES);
	if (text)
		n = read(fd, text, TELL_BYTES - 1);
	if (fd >= 0 && ftruncate(fd, 0))
		n = -1;
	close_fd(&fd);
	if (n <= 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

static void add_line(char **text, const char *line)
{
	char *longer = NULL;

	if (asprintf(&longer, "%s%s\n", *text ? *text : "", line) < 0)
		abort();
	free(*text);
	*text = longer;
}

static void parse_described(struct recorder *recorder, char *text, pid_t tid)
{
	struct described *described = NULL;

	recorder->n_described = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (!strncmp(line, "case ", 5) && recorder->n_described < CASES_MAX) {
			described = &recorder->described[recorder->n_described++];
			*described = (struct described) { .tid = tid };
			snprintf(described->name, sizeof(described->name), "%s", line + 5);
		} else if (!described || sscanf(line, "thread %d", &described->tid) == 1 ||
			   sscanf(line, "steps %u %u", &described->steps.n,
				  &described->steps.max) == 2 ||
			   sscanf(line, "later %u %u", &described->later.n,
				  &described->later.max) == 2) {
			continue;
		} else if (!strcmp(line, "nothing")) {
			described->nothing = true;
		} else if (!strncmp(line, "called ", 7)) {
			add_line(&described->called, line + 7);
		} else {
			add_line(&described->frames, !strcmp(line, "or")       ? "-- or"
						     : !strcmp(line, "or cut") ? "-- or cut"
									       : line);
		}
	}
}

/* --- libdwfl's stack --- */

static int no_debuginfo(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			const char *path, const char *link, GElf_Word crc, char **ret_path)
{
	(void)module, (void)userdata, (void)name, (void)base;
	(void)path, (void)link, (void)crc, (void)ret_path;
	return -1;
}

static int add_unwound(Dwfl_Frame *frame, void *ctx)
{
	struct unwound *unwound = ctx;
	Dwarf_Addr pc;

	if (unwound->n == UNWOUND_MAX || !dwfl_frame_pc(frame, &pc, NULL))
		return DWARF_CB_ABORT;
	unwound->ips[unwound->n++] = pc;
	return DWARF_CB_OK;
}

/* Returns true if the frame description at @pc marks an outermost function. If libdwfl loses a
 * register, it also ends without an error. */
static bool is_outermost(Dwfl *dwfl, Dwarf_Addr pc)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	Dwarf_Op mem[3], *ops;
	Dwarf_Frame *frame;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	size_t n = 1;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return false;
	if (dwarf_frame_register(frame, RETURN_ADDRESS, mem, &ops, &n))
		n = 1;
	free(frame);
	return !n && ops == mem;
}

static void unwind(pid_t pid, pid_t tid, struct unwound *ret)
{
	static const Dwfl_Callbacks callbacks = { .find_elf = dwfl_linux_proc_find_elf,
						  .find_debuginfo = no_debuginfo };
	Dwfl *dwfl = dwfl_begin(&callbacks);

	ret->n = 0;
	dwfl_linux_proc_report(dwfl, pid);
	dwfl_report_end(dwfl, NULL, NULL);
	dwfl_linux_proc_attach(dwfl, pid, true);
	ret->complete = dwfl_getthread_frames(dwfl, tid, add_unwound, ret) == 0 && ret->n &&
			is_outermost(dwfl, ret->ips[ret->n - 1]);
	dwfl_end(dwfl);
}

/* --- */

static int record_case(struct recorder *recorder, const struct described *described,
		       const char *name, bool moved)
{
	static struct unwound unwound;
	struct host_thread thread;
	struct err err = {};
	int code;

	if (!stops__thread(recorder->pid, described->tid, &thread)) {
		fprintf(stderr, "%s: thread %d is gone\n", name, described->tid);
		return -ESRCH;
	}
	unwind(recorder->pid, described->tid, &unwound);
	code = note__case(recorder->note, name, &thread, &unwound, &err);
	if (code) {
		fprintf(stderr, "%s: %s\n", name, err.text);
		return code;
	}
	fprintf(recorder->text, "== %s\n-- told%s\n%s", name, described->nothing ? " nothing" : "",
		described->frames ? described->frames : "");
	if (described->called)
		fprintf(recorder->text, "-- called%s\n%s", moved ? " part" : "", described->called);
	note__print_unwound(recorder->note, &unwound, recorder->text);
	note__print_merged(recorder->note, recorder->text);
	return 0;
}

static int record_steps(struct recorder *recorder, const struct described *described,
			const char *base)
{
	char name[PACK_NAME_BYTES + 32];
	int code = 0;

	for (unsigned i = 0; !code && i < described->steps.n; i++) {
		if (!stops__step(recorder->stops, described->tid,
				 1 + rand() % described->steps.max))
			break;
		snprintf(name, sizeof(name), "%s, step %u", base, i + 1);
		code = record_case(recorder, described, name, true);
	}
	return code;
}

static int record_described(struct recorder *recorder, const struct described *described)
{
	char name[PACK_NAME_BYTES + 32];
	int code = 0;

	if (strcmp(described->name, "-") != 0)
		code = record_case(recorder, described, described->name, false);
	if (!code)
		code = record_steps(recorder, described, described->name);
	for (unsigned i = 0; !code && i < described->later.n; i++) {
		if (!stops__run_for(recorder->stops, 100 + rand() % described->later.max))
			break;
		snprintf(name, sizeof(name), "%s, later %u", described->name, i + 1);
		code = record_case(recorder, described, name, true);
	}
	return code;
}

static int on_marker(struct recorder *recorder, pid_t pid, pid_t tid, const char *tell)
{
	char *text = read_described(pid, tell);
	int code = 0;

	if (!text)
		return 0; /* another call of getppid */
	if (!recorder->note) {
		recorder->pid = pid;
		code = note__new(pid, &recorder->note);
	}
	if (pid != recorder->pid) {
		fprintf(stderr, "a bundle is of one process\n");
		code = -EINVAL;
	}
	parse_described(recorder, text, tid);
	for (size_t i = 0; !code && i < recorder->n_described; i++)
		code = record_described(recorder, &recorder->described[i]);
	for (size_t i = 0; i < recorder->n_described; i++) {
		free(recorder->described[i].frames);
		free(recorder->described[i].called);
	}
	free(text);
	return code;
}

/* --- commands without a description --- */

static int record_untold(struct recorder *recorder)
{
	struct described *described = &recorder->by_options;
	char name[64];
	int code = 0;

	for (unsigned i = 0; !code && i < described->later.n;) {
		if (!stops__run_for(recorder->stops, 100 + rand() % described->later.max)) {
			/* Any call of getppid is as good a stop. */
			if (stops__next(recorder->stops, &described->tid, &described->tid) <= 0)
				break;
		}
		described->tid = stops__find(recorder->stops, recorder->program);
		if (!described->tid || (recorder->note && described->tid != recorder->pid))
			continue;
		recorder->pid = described->tid;
		if (!recorder->note)
			code = note__new(recorder->pid, &recorder->note);
		snprintf(name, sizeof(name), "%s %u", recorder->program, ++i);
		if (!code)
			code = record_case(recorder, described, name, true);
		if (!code)
			code = record_steps(recorder, described, name);
	}
	return code;
}

static bool parse_options(struct recorder *recorder, int argc, char **argv)
{
	static const struct option options[] = { { "of", required_argument, NULL, 'o' },
						 { "later", required_argument, NULL, 'l' },
						 { "steps", required_argument, NULL, 's' },
						 {} };
	struct described *by_options = &recorder->by_options;
	int option;

	by_options->nothing = true;
	while ((option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
		struct pace *pace = option == 'l' ? &by_options->later : &by_options->steps;

		if (option == 'o') {
			recorder->program = optarg;
			continue;
		}
		if (option == '?' || optind == argc)
			return false;
		pace->n = strtoul(optarg, NULL, 10);
		pace->max = strtoul(argv[optind++], NULL, 10);
		if (!pace->max)
			return false;
	}
	return argc - optind >= 3;
}

int main(int argc, char **argv)
{
	char path[4096], tell[64];
	struct recorder recorder = {};
	struct err err = {};
	pid_t pid, tid;
	int code;

	if (!parse_options(&recorder, argc, argv)) {
		fprintf(stderr, "usage: record [--of PROGRAM --later N US [--steps N MAX]] OUT "
				"IMAGES COMMAND...\n");
		return 2;
	}
	argv += optind - 1;
	srand(STEPS_SEED);
	snprintf(tell, sizeof(tell), "/tmp/braid-tell-%d", getpid());
	setenv("BRAID_TELL", tell, 1);
	recorder.images = argv[2];
	snprintf(path, sizeof(path), "%s.txt", argv[1]);
	recorder.text = fopen(path, "we");
	code = recorder.text ? stops__start(argv + 3, &recorder.stops, &err) : -errno;
	if (!code && recorder.program)
		code = record_untold(&recorder);
	while (!code && !recorder.program && stops__next(recorder.stops, &pid, &tid) > 0)
		code = on_marker(&recorder, pid, tid, tell);
	if (!code && !recorder.note)
		code = err__set(&err, -ENOENT, "the command has told nothing");
	snprintf(path, sizeof(path), "%s.bundle", argv[1]);
	if (!code)
		code = note__write(recorder.note, path, recorder.images, &err);
	stops__end(recorder.stops);
	note__free(recorder.note);
	if (recorder.text && fclose(recorder.text) && !code)
		code = -EIO;
	if (code)
		fprintf(stderr, "record: %s: %s\n", argv[1],
			err.text[0] ? err.text : strerror(-code));
	return code ? 1 : 0;
}
