// SPDX-License-Identifier: GPL-2.0-or-later
/* Qualified names from source files, compared with the names that each CPython on this machine
 * gives to its standard library (tests/tools/dump_qualnames.py). Also hand-written, broken and
 * excessive sources, and files as another process sees them. BRAID_QUALNAME_STEP=1 tests the whole
 * library. */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/util.h"
#include "runtimes/python/python_qualname.h"
#include "runtimes/python/python_scan.h"
#include "tests/tap.h"
#include "tests/unit/pythons.h"
#include "tests/unit/workdir.h"

#define DUMP	  "tests/tools/dump_qualnames.py"
#define CASES	  "tests/unit/python_qualname_cases.py"
#define WRONG_MAX 20 /* number of errors printed in full */
#define STEP	  "8"
#define BIG	  (8 * 1024 * 1024)
#define SMALL	  "class A:\n  def f(): pass\n"

struct totals {
	size_t queried, unknown, wrong;
};

/* Makes a cache that accepts new files, as most files here are younger than the test. */
static struct python_sources *new_sources(void)
{
	struct python_sources *sources = python_sources__new();

	if (!sources)
		exit(1);
	python_sources__take_any_age(sources);
	return sources;
}

/* Since 3.12 comprehensions other than generators are part of the surrounding code (PEP 709), which
 * changes the names of functions inside. */
static void drop_inlined(char *name)
{
	static const char *const inlined[] = { "<listcomp>.", "<setcomp>.", "<dictcomp>." };

	for (size_t i = 0; i < ARRAY_SIZE(inlined); i++)
		for (char *at; (at = strstr(name, inlined[i]));)
			memmove(at, at + strlen(inlined[i]), strlen(at + strlen(inlined[i])) + 1);
}

static void check_line(struct python_sources *sources, unsigned int minor, char *text,
		       struct totals *totals)
{
	char *save = NULL, *path = strtok_r(text, "\t", &save), *line = strtok_r(NULL, "\t", &save);
	char *name = strtok_r(NULL, "\t", &save), *want = strtok_r(NULL, "\n", &save), got[1024];
	const char *answer;

	totals->queried++;
	if (!want) {
		totals->wrong++;
		return;
	}
	answer = python_sources__qualname(sources, getpid(), path, name, atoi(line));
	if (!answer) {
		totals->unknown++;
		if (getenv("BRAID_TEST_VERBOSE"))
			fprintf(stderr, "# %s:%s: %s: unknown\n", path, line, want);
		return;
	}
	snprintf(got, sizeof(got), "%s", answer);
	if (minor >= 12) {
		drop_inlined(got);
		drop_inlined(want);
	}
	if (strcmp(got, want) && totals->wrong++ < WRONG_MAX)
		fprintf(stderr, "# %s:%s: %s, not %s\n", path, line, got, want);
}

static void check_dump(const struct python *python, const char *arguments, struct totals *totals)
{
	struct python_sources *sources = new_sources();
	char command[1024], *text = NULL;
	size_t cap = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s -I -W ignore " DUMP " %s", python->command,
		 arguments);
	pipe = popen(command, "r");
	while (pipe && getline(&text, &cap, pipe) > 0)
		check_line(sources, python->minor, text, totals);
	free(text);
	is_int(pipe ? pclose(pipe) : -1, 0, "%s: dumps its names", python->command);
	python_sources__free(sources);
}

static void check_python(const struct python *python)
{
	struct totals library = { 0 }, cases = { 0 };
	const char *step = getenv("BRAID_QUALNAME_STEP");
	char arguments[512], *path = realpath(CASES, NULL);

	snprintf(arguments, sizeof(arguments), "source '%s'", path);
	free(path);
	check_dump(python, arguments, &cases);
	is_int(cases.wrong, 0, "%s: %zu code objects by hand, %zu not known", python->command,
	       cases.queried, cases.unknown);
	ok(cases.queried > 50 && cases.unknown < 15, "%s: most are", python->command);
	snprintf(arguments, sizeof(arguments), "library %s", step ? step : STEP);
	check_dump(python, arguments, &library);
	is_int(library.wrong, 0, "%s: %zu code objects of the library", python->command,
	       library.queried);
	ok(library.queried > 1000 && library.unknown * 200 < library.queried,
	   "%s: %zu are not known", python->command, library.unknown);
}

/* --- hand-written sources --- */

/* Compares CASES with the names that it contains; see there. */
static void check_cases(void)
{
	struct python_sources *sources = new_sources();
	char text[512], name[64], want[256], *path = realpath(CASES, NULL);
	FILE *file = fopen(CASES, "r");
	uint32_t line = 0;

	while (file && ++line && fgets(text, sizeof(text), file)) {
		for (char *at = line > 3 ? strstr(text, "#: ") : NULL; at; at = strstr(at, "#: ")) {
			const char *got;

			at += 3;
			if (sscanf(at, "%63s %255s", name, want) != 2)
				continue;
			got = python_sources__qualname(sources, getpid(), path, name, line);
			is_str(got ? got : "-", want, "line %u: %s", line, name);
		}
	}
	ok(file && line > 50, "cases read");
	if (file)
		fclose(file);
	free(path);
	python_sources__free(sources);
}

struct row {
	const char *what, *source, *name;
	uint32_t line;
	const char *want;
};

static const struct row rows[] = {
	{ "empty", "", "f", 1, NULL },
	{ "comment", "# def f(): pass", "f", 1, NULL },
	{ "module", "x = 1\n", "<module>", 1, NULL },
	{ "no newline at the end", "class A:\n  def f(): pass", "f", 2, "A.f" },
	{ "byte order mark",
	  "\xef\xbb\xbf"
	  "class A:\n  def f(): pass",
	  "f", 2, "A.f" },
	{ "carriage returns", "class A:\r\n  x = '''\r\n'''\r  def f(): pass\r", "f", 4, "A.f" },
	{ "tabs", "class A:\n\tx = 1\n        def f(): pass", "f", 3, "A.f" },
	{ "tabs after blanks", "class A:\n    \tx = 1\n\tdef f(): pass", "f", 3, "A.f" },
	{ "form feed", "class A:\n  x = 1\n    \f  def f(): pass", "f", 3, "A.f" },
	{ "comment less indented", "class A:\n  x = 1\n# 1\n\n  def f(): pass", "f", 5, "A.f" },
	{ "bracket less indented", "class A:\n  x = (\n1)\n  def f(): pass", "f", 4, "A.f" },
	{ "string less indented", "class A:\n  x = '''\n1'''\n  def f(): pass", "f", 4, "A.f" },
	{ "joined less indented", "class A:\n  x = \\\n1\n  def f(): pass", "f", 4, "A.f" },
	{ "joined string", "class A:\n  x = 'a\\\nb'\n  def f(): pass", "f", 4, "A.f" },
	{ "dedent", "class A:\n  class B:\n    x = 1\n  def f(): pass", "f", 4, "A.f" },
	{ "dedent by two", "class A:\n  class B:\n    x = 1\ndef f(): pass", "f", 4, "f" },
	{ "not ASCII", "class \xc3\xa4:\n  def f(): pass", "f", 2, "\xc3\xa4.f" },
	{ "last line of a string", "def f():\n  def g():\n    '''\n'''", "g", 4, "f.<locals>.g" },
	{ "last line of an f-string", "def f():\n  def g():\n    f'''\n'''", "g", 4,
	  "f.<locals>.g" },
	{ "after the last line", "def f():\n  def g():\n    x\n  x", "g", 4, NULL },
	{ "attribute of a keyword's form", "def f(): x.for_ = lambda_\ndef g(): pass", "g", 2,
	  "g" },
	{ "same name and line", "class A: f = lambda: 1; g = lambda: 2", "<lambda>", 1,
	  "A.<lambda>" },
	{ "differs", "f = lambda: lambda: 1", "<lambda>", 1, NULL },
	{ "soft keywords", "match = lambda case: case\ntype = [_ for _ in match]", "<listcomp>", 2,
	  "<listcomp>" },

	{ "open bracket", "def f(): pass\nx = (", "f", 1, NULL },
	{ "closing bracket", "def f(): pass\n)", "f", 1, NULL },
	{ "other bracket", "def f(): pass\n(]", "f", 1, NULL },
	{ "open string", "def f(): pass\nx = 'a\n", "f", 1, NULL },
	{ "open triple string", "def f(): pass\nx = '''a''\n", "f", 1, NULL },
	{ "string ends after a backslash", "def f(): pass\nx = '\\", "f", 1, NULL },
	{ "open field", "def f(): pass\nx = f'{a'", "f", 1, NULL },
	{ "open format", "def f(): pass\nx = f'{a:'", "f", 1, NULL },
	{ "brace in a text", "def f(): pass\nx = f'}'", "f", 1, NULL },
	{ "open name of a character", "def f(): pass\nx = f'\\N{a", "f", 1, NULL },
	{ "definition without a name", "def f(): pass\ndef (): pass", "f", 1, NULL },
	{ "definition without a colon", "def f(): pass\ndef g()\n  pass", "f", 1, NULL },
	{ "lambda without a colon", "def f(): pass\nx = lambda", "f", 1, NULL },
	{ "lambda without a body", "def f(): pass\n(lambda)", "f", 1, NULL },
	{ "lambda's parameter with for", "def f(): pass\n(lambda for x in y)", "f", 1, NULL },
};

/* Copies the source without a zero byte after it, so that ASan reports reads beyond it. */
static char *memdup_or_exit(const char *source, size_t size)
{
	char *exact = malloc(size ? size : 1);

	if (!exact)
		exit(1);
	return memcpy(exact, source, size);
}

static const char *find(const char *source, size_t size, const char *name, uint32_t line, char *buf,
			size_t buf_size)
{
	char *exact = memdup_or_exit(source, size);
	struct python_blocks blocks = { 0 };
	const char *answer;

	python_scan__blocks(exact, size, &blocks);
	free(exact);
	answer = python_blocks__qualname(&blocks, name, line, buf, buf_size);
	python_blocks__done(&blocks);
	return answer;
}

static void check_rows(void)
{
	char buf[64];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];

		is_str(find(row->source, strlen(row->source), row->name, row->line, buf,
			    sizeof(buf)),
		       row->want, "%s", row->what);
	}
	is_str(find("def f(): pass\n\0", 15, "f", 1, buf, sizeof(buf)), NULL, "zero byte");
	is_str(find("class A: x = lambda: 1", 22, "<lambda>", 1, buf, 11), "A.<lambda>", "fits");
	is_str(find("class A: x = lambda: 1", 22, "<lambda>", 1, buf, 10), NULL, "does not fit");
}

/* --- excess --- */

struct text {
	char *text;
	size_t size;
	FILE *file;
};

static void text__open(struct text *text)
{
	text->file = open_memstream(&text->text, &text->size);
	if (!text->file)
		exit(1);
}

static bool text__has(struct text *text, const char *name)
{
	bool found;
	char buf[64];

	if (fclose(text->file))
		exit(1);
	found = find(text->text, text->size, name, 1, buf, sizeof(buf));
	free(text->text);
	return found;
}

/* Returns whether the lambda in line 1 is found if line 2 has @n copies of @before and @after
 * around "1". */
static bool bears(const char *before, const char *after, size_t n)
{
	struct text text;

	text__open(&text);
	fputs("x = lambda: 1\ny = ", text.file);
	for (size_t i = 0; i < n; i++)
		fputs(before, text.file);
	fputs("1", text.file);
	for (size_t i = 0; i < n; i++)
		fputs(after, text.file);
	return text__has(&text, "<lambda>");
}

/* Tests @n nested classes. */
static bool bears_classes(int n)
{
	struct text text;

	text__open(&text);
	for (int i = 0; i < n; i++)
		fprintf(text.file, "%*sclass %s:\n", i, "", i ? "Inner" : "Outer");
	fprintf(text.file, "%*sx", n, "");
	return text__has(&text, "Outer");
}

static void check_excess(void)
{
	ok(bears("(", ")", 200), "200 brackets");
	ok(!bears("[", "]", 10000), "10,000 brackets");
	ok(bears("lambda: ", "", 200), "200 lambdas");
	ok(!bears("lambda: ", "", 10000), "10,000 lambdas");
	ok(!bears("f'{x:{", "", 10000), "10,000 fields");
	ok(bears("(lambda: 1),", "", 60000), "60,000 lambdas side by side");
	ok(!bears("(lambda: 1),", "", 70000), "70,000 lambdas side by side");
	ok(bears("[[x for x in y] for y in ", "]", 100), "100 comprehensions");
	ok(bears_classes(99), "99 classes");
	ok(!bears_classes(1000), "1000 classes");
}

/* The memory ends with the text. */
static void check_end(void)
{
	static const char *const texts[] = { "\\\n", "\\\r", "x\n\\\r\n", "@", "f'{", "'\\" };
	size_t page = sysconf(_SC_PAGESIZE), n = 0;
	char *end =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (end == MAP_FAILED || mprotect(end + page, page, PROT_NONE) != 0)
		exit(1);
	end += page;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct python_blocks blocks = { 0 };
		size_t len = strlen(texts[i]);

		memcpy(end - len, texts[i], len);
		if (python_scan__blocks(end - len, len, &blocks) == 0)
			python_blocks__done(&blocks);
		n++;
	}
	is_int(n, ARRAY_SIZE(texts), "texts that end where a line begins");
	munmap(end - page, 2 * page);
}

/* --- files --- */

static pid_t spawn(const char *root, const char *directory)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	if (pipe(ready))
		exit(1);
	pid = fork();
	if (pid == 0) {
		if (root && chroot(root) && (unshare(CLONE_NEWUSER) || chroot(root)))
			_exit(1);
		if (chdir(directory) || write(ready[1], "!", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

static void reap(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static const char *ask(struct python_sources *sources, pid_t pid, const char *fmt, const char *a)
{
	char path[256];

	snprintf(path, sizeof(path), fmt, a);
	return python_sources__qualname(sources, pid, path, "f", 2);
}

static void check_paths(struct python_sources *sources)
{
	pid_t pid = spawn(NULL, workdir);

	workdir__run(
		"mkdir -p root/sub && mkfifo fifo && ln -s root/sub/a.py link.py && ln -s l l");
	workdir__write("root/sub/a.py", SMALL);
	workdir__run("truncate -s %d zero.py", BIG);
	workdir__run("(cat root/sub/a.py; head -c %zu zero.py | tr '\\0' '\\n') >full.py",
		     BIG - strlen(SMALL));
	workdir__run("(cat full.py; echo) >big.py");
	is_str(ask(sources, getpid(), "%s/root/sub/a.py", workdir), "A.f", "absolute path");
	is_str(ask(sources, getpid(), "%s/link.py", workdir), "A.f", "symbolic link");
	is_str(ask(sources, pid, "root/sub/a.py", ""), "A.f", "relative path");
	is_str(ask(sources, pid, "root/../link.py", ""), "A.f", "relative path with ..");
	is_str(ask(sources, getpid(), "root/sub/a.py", ""), NULL, "relative to somewhere else");
	is_str(ask(sources, pid, "full.py", ""), "A.f", "file of 8 MiB");
	is_str(ask(sources, pid, "big.py", ""), NULL, "file of more");
	is_str(ask(sources, pid, "zero.py", ""), NULL, "zero bytes");
	is_str(ask(sources, pid, "fifo", ""), NULL, "FIFO");
	is_str(ask(sources, pid, "l", ""), NULL, "loop");
	is_str(ask(sources, pid, "root", ""), NULL, "directory");
	is_str(ask(sources, pid, "root/sub/a.py/f.py", ""), NULL, "file in a file");
	is_str(ask(sources, pid, "/dev/zero", ""), NULL, "device");
	is_str(ask(sources, pid, "<string>", ""), NULL, "no file");
	is_str(ask(sources, pid, "", ""), NULL, "no name");
	workdir__write("root/sub/a.py", "class Other:\n  def f(): pass\n");
	is_str(ask(sources, pid, "root/sub/a.py", ""), "Other.f", "changed file");
	reap(pid);
	is_str(ask(sources, pid, "%s/root/sub/a.py", workdir), NULL, "no such process");
}

static void check_chroot(struct python_sources *sources)
{
	char root[128];
	pid_t pid;

	snprintf(root, sizeof(root), "%s/root", workdir);
	workdir__run("ln -s /sub/a.py root/link.py && ln -s ../../../sub root/up");
	pid = spawn(root, "/sub");
	if (pid < 0) {
		tap__skip("may not chroot", "files of a process with another root");
		return;
	}
	is_str(ask(sources, pid, "/sub/a.py", ""), "Other.f", "path below another root");
	is_str(ask(sources, pid, "/link.py", ""), "Other.f", "absolute link below another root");
	is_str(ask(sources, pid, "/up/a.py", ""), "Other.f", "link to above another root");
	is_str(ask(sources, pid, "a.py", ""), "Other.f", "relative path below another root");
	is_str(ask(sources, pid, "%s/root/sub/a.py", workdir), NULL, "path outside of it");
	reap(pid);
}

static void check_files(void)
{
	struct python_sources *sources = new_sources();

	workdir__make();
	check_paths(sources);
	check_chroot(sources);
	python_sources__free(sources);
	python_sources__free(NULL);
}

/* Returns a process that executed a program after all files here were made. With @fork_child it is
 * a child of the program without an exec. The caller must reap *@ret_pid. */
static pid_t spawn_program(bool fork_child, pid_t *ret_pid)
{
	static const char script[] =
		"my $fork = shift; my $pid = $fork ? fork : $$; if (!$pid) { sleep 1 while 1 } "
		"$| = 1; print \"$pid\\n\"; sleep 1 while getppid != 1";
	int out[2];
	pid_t reported = -1;
	FILE *in;

	usleep(50000);
	if (pipe(out))
		exit(1);
	*ret_pid = fork();
	if (!*ret_pid) {
		dup2(out[1], 1);
		execlp("perl", "perl", "-e", script, fork_child ? "1" : "0", "s.py", NULL);
		_exit(1);
	}
	close(out[1]);
	in = fdopen(out[0], "r");
	if (!in || fscanf(in, "%d", &reported) != 1)
		reported = -1;
	fclose(in);
	return reported;
}

/* A file that changed after the program began may not be the imported one. */
static void check_age(void)
{
	struct python_sources *sources = python_sources__new();
	pid_t pid, forked, parent, orphan;
	char path[128];

	snprintf(path, sizeof(path), "%s/aged.py", workdir);
	workdir__write("aged.py", SMALL);
	pid = spawn_program(false, &parent);
	forked = spawn_program(true, &orphan);
	is_str(ask(sources, pid, "%s", path), "A.f", "a file older than the program");
	is_str(ask(sources, forked, "%s", path), "A.f", "and than the parent's program");
	workdir__run("touch -d '1 day ago' aged.py");
	is_str(ask(sources, pid, "%s", path), NULL, "changed, with its time set back");
	is_str(ask(sources, forked, "%s", path), NULL, "changed since the parent's exec");
	reap(parent);
	reap(orphan);
	is_str(ask(sources, forked, "%s", path), NULL, "nobody knows when the program began");
	kill(forked, SIGKILL);
	pid = spawn_program(false, &parent);
	is_str(ask(sources, pid, "%s", path), "A.f", "a later program has imported the new one");
	is_str(ask(sources, getpid(), "%s", path), NULL, "an earlier one maybe not");
	reap(parent);
	python_sources__free(sources);
}

/* exec() runs text under any name; a relative name belongs to a script only. */
static void check_script(void)
{
	struct python_sources *sources = python_sources__new();
	char cwd[256];
	pid_t parent, pid;

	workdir__write("s.py", SMALL);
	workdir__write("t.py", SMALL);
	if (!getcwd(cwd, sizeof(cwd)) || chdir(workdir))
		exit(1);
	pid = spawn_program(false, &parent);
	is_str(ask(sources, pid, "s.py", ""), "A.f", "the script of the command line");
	is_str(ask(sources, pid, "t.py", ""), NULL, "another relative name");
	reap(parent);
	if (chdir(cwd))
		exit(1);
	python_sources__free(sources);
}

int main(void)
{
	struct pythons pythons;

	check_cases();
	check_rows();
	check_excess();
	check_end();
	check_files();
	check_age();
	check_script();
	pythons__find(&pythons);
	for (size_t i = 0; i < pythons.n; i++)
		check_python(&pythons.list[i]);
	if (!pythons.n)
		tap__skip("no CPython found", "qualified names of a standard library");
	return tap__done();
}
