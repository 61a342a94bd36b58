// SPDX-License-Identifier: GPL-2.0-or-later
/* The file that -o names: replaced only when all output is written. */
#include "core/cli/output_file.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/out/output.h"
#include "core/store/recording.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define NOBODY 65534

static struct err err;

static void clean(void)
{
	workdir__run("chmod 755 . && rm -rf ./* ./.braid*");
}

static int write_to(const struct output_place *place, const char *text, int code)
{
	struct output_file file;
	int ret = output_file__open(place, &file, &err);

	if (ret)
		return ret;
	fputs(text, file.stream);
	return output_file__close(&file, code);
}

static int write_text(const char *path, bool force, const char *text, int code)
{
	return write_to(&(struct output_place) { path, true, force, 0 }, text, code);
}

static int check(const char *path)
{
	return output_file__check(&(struct output_place) { path, true, false, 0 }, &err);
}

static void has(const char *name, const char *want, const char *what)
{
	size_t len;
	char *text = (char *)workdir__read(name, &len);

	text[len] = '\0';
	is_str(text, want, "%s", what);
	free(text);
}

static unsigned int mode_of(const char *path)
{
	struct stat st = {};

	stat(path, &st);
	return st.st_mode & 07777;
}

static void test_files(void)
{
	struct stat st = {};

	umask(027);
	is_int(write_text("new", false, "one", 0), 0, "a new file");
	has("new", "one", "has it all");
	is_int(mode_of("new"), 0640, "with the mode that new files have");
	chmod("new", 0604);
	if (!geteuid())
		ok(!chown("new", NOBODY, NOBODY), "another one's");
	is_int(write_text("./new", false, "two", 0), 0, "again");
	has("new", "two", "replaced");
	is_int(mode_of("new"), 0604, "with the mode that it had");
	stat("new", &st);
	is_int(st.st_uid, geteuid() ? geteuid() : NOBODY, "and the owner");
	is_int(write_text("new", false, "three", -ENOSPC), -ENOSPC, "a writer that fails");
	has("new", "two", "leaves it as it was");
	is_int(write_text("none", false, "three", -ENOMEM), -ENOMEM, "or nothing");
	is_int(workdir__count(), 1, "and nothing beside it");
	is_int(write_text("/no/such/place", false, "", 0), -ENOENT, "no such directory");
	is_int(write_text("new/none", false, "", 0), -ENOTDIR, "a file is no directory");
	is_int(check("none"), 0, "a look");
	is_int(check("no/none"), -ENOENT, "tells what writing would");
	is_int(workdir__count(), 1, "and leaves nothing");
	clean();
}

static void test_links(void)
{
	struct stat st;

	workdir__run("mkdir a && echo old > a/file && ln -s a/file link && ln -s none lost");
	is_int(write_text("link", false, "new", 0), 0, "a link");
	ok(!lstat("link", &st) && S_ISLNK(st.st_mode), "stays");
	has("a/file", "new", "what it leads to is replaced");
	is_int(write_text("lost", false, "new", 0), -ENOENT, "not by a link that leads nowhere");
	is_int(write_text("lost", true, "new", 0), -ENOENT, "even if forced");
	is_int(write_text("a", true, "new", 0), -EISDIR, "not over a directory, even if forced");
	clean();
}

static void test_refused(void)
{
	struct recording *recording = NULL;

	recording__create("r.db", false, &recording, &err);
	recording__close(recording, &err);
	workdir__run("cp r.db copy; ln -s r.db link; mkfifo fifo");
	is_int(write_text("r.db", false, "text", 0), -EEXIST, "not over a recording");
	is_int(write_text("link", false, "text", 0), -EEXIST, "nor by a link");
	is_int(check("r.db"), -EEXIST, "which a look tells");
	workdir__run("cmp r.db copy");
	is_int(write_text("r.db", true, "text", 0), 0, "unless forced");
	has("r.db", "text", "then it is replaced");
	workdir__run("cat fifo > read &");
	is_int(write_text("fifo", false, "text", 0), 0, "into a FIFO");
	workdir__run(
		"test -p fifo; for i in $(seq 500); do test -s read && break; sleep 0.01; done");
	has("read", "text", "which is written to");
	is_int(write_text("/dev/null", false, "text", 0), 0, "into a device of characters");
	clean();
}

/* Runs @run in a child, so that limits and users do not stick. Returns the status of wait(). */
static int in_child(int (*run)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(run());
	waitpid(pid, &status, 0);
	return status;
}

static int write_much(void)
{
	struct rlimit limit = { 1000, 1000 };
	char text[3000] = "";

	memset(text, 'x', sizeof(text) - 1);
	setrlimit(RLIMIT_FSIZE, &limit);
	return -write_text("old", false, text, 0);
}

static int be_interrupted(void)
{
	struct output_file file;

	signal(SIGINT, SIG_DFL); /* shells ignore it in background jobs */
	if (output_file__open(&(struct output_place) { "old", true, false, 0 }, &file, &err))
		return 1;
	fputs("half", file.stream);
	fflush(file.stream);
	raise(SIGINT);
	return 2;
}

static int ignore_interrupt(void)
{
	struct output_file file;

	signal(SIGINT, SIG_IGN);
	if (output_file__open(&(struct output_place) { "other", true, false, 0 }, &file, &err))
		return 1;
	fputs("whole", file.stream);
	raise(SIGINT);
	return output_file__close(&file, 0) ? 2 : 0;
}

static int write_to_stdout(void)
{
	return !freopen("out", "a", stdout) || write_text("/dev/stdout", false, "text", 0);
}

static int write_as_nobody(void)
{
	if (!geteuid() && setuid(NOBODY))
		return 99;
	return -write_text("old", false, "new", 0);
}

static void test_failures(void)
{
	workdir__run("echo old > old");
	is_int(WEXITSTATUS(in_child(write_much)), EFBIG, "a file that may not grow");
	has("old", "old\n", "what was there stays");
	is_int(WTERMSIG(in_child(be_interrupted)), SIGINT, "interrupted");
	has("old", "old\n", "what was there stays");
	is_int(workdir__count(), 1, "and nothing beside it");
	is_int(in_child(ignore_interrupt), 0, "a signal that is ignored");
	has("other", "whole", "changes nothing");
	workdir__run("rm other; printf 'more ' > out");
	is_int(in_child(write_to_stdout), 0, "a name of standard output");
	has("out", "more text", "is standard output");
	workdir__run("rm out; chmod 666 old; chmod 555 .");
	is_int(WEXITSTATUS(in_child(write_as_nobody)), EACCES,
	       "not in a directory that is not ours");
	workdir__run("chmod 777 .; chmod 444 old");
	is_int(WEXITSTATUS(in_child(write_as_nobody)), EACCES,
	       "nor a file that may not be written");
	has("old", "old\n", "what was there stays");
	is_int(workdir__count(), 1, "and nothing beside it");
	clean();
}

static int write_own(bool force)
{
	return write_to(&(struct output_place) { "own.html", false, force, 0600 }, "new", 0);
}

/* A name that braid chose itself. */
static void test_own_name(void)
{
	FILE *page;

	workdir__run("echo precious > victim; ln -s victim own.html");
	is_int(write_own(false), -EEXIST, "own name: a link is not followed");
	is_int(write_own(true), -EEXIST, "own name: even if forced");
	has("victim", "precious\n", "own name: what it leads to stays");
	workdir__run("rm own.html; ln -s none own.html");
	is_int(write_own(true), -EEXIST, "own name: nor one that leads nowhere");
	workdir__run("rm own.html; mkfifo own.html");
	is_int(write_own(true), -EEXIST, "own name: not into a FIFO");
	workdir__run("rm own.html; echo precious > own.html");
	is_int(write_own(false), -EEXIST, "own name: not over another's file");
	has("own.html", "precious\n", "own name: which stays");
	is_int(write_own(true), 0, "own name: unless forced");
	has("own.html", "new", "own name: then it is replaced");
	page = fopen("own.html", "w");
	fputs(OUTPUT_HTML_BEGIN "<title>", page);
	fclose(page);
	chmod("own.html", 0644);
	is_int(write_own(false), 0, "own name: over a page of braid");
	has("own.html", "new", "own name: which is replaced");
	is_int(mode_of("own.html"), 0600, "own name: no more open than the recording");
	workdir__run("rm own.html");
	umask(0);
	is_int(write_own(false), 0, "own name: nothing there");
	is_int(mode_of("own.html"), 0600, "own name: with the recording's permissions");
	clean();
}

/* Another program creates the file between the check and the end. */
static void test_own_race(void)
{
	const struct output_place place = { "own.html", false, false, 0600 };
	struct output_file file;

	is_int(output_file__open(&place, &file, &err), 0, "race: begun");
	workdir__run("echo precious > own.html");
	is_int(output_file__close(&file, 0), -EEXIST, "race: the name is taken meanwhile");
	has("own.html", "precious\n", "race: by a file that stays");
	workdir__run("rm own.html");
	is_int(write_to(&place, OUTPUT_HTML_BEGIN, 0), 0, "race: a page");
	is_int(output_file__open(&place, &file, &err), 0, "race: begun over it");
	workdir__run("echo precious > other; mv other own.html");
	is_int(output_file__close(&file, 0), -EEXIST, "race: replaced meanwhile");
	has("own.html", "precious\n", "race: by a file that stays");
	is_int(workdir__count(), 1, "race: nothing beside it");
	clean();
}

/* Files that another user may have put into a world-writable directory. */
static void test_foreign(void)
{
	if (geteuid()) {
		tap__skip("needs root", "foreign: another user's files");
		return;
	}
	workdir__run("mkdir -m 755 all own; chmod 1777 all; echo precious > victim; cd all;"
		     "ln -s ../victim link; ln -s ../victim ours; echo theirs > file; mkfifo fifo;"
		     "ln -s link chain; chown -h 65534 link file fifo");
	is_int(write_text("all/link", true, "new", 0), -EACCES, "foreign: a link");
	is_int(write_text("all/chain", true, "new", 0), -EACCES, "foreign: a link to it");
	is_int(write_text("all/fifo", true, "new", 0), -EACCES, "foreign: a FIFO");
	is_int(write_text("all/file", false, "new", 0), -EACCES, "foreign: a file");
	has("victim", "precious\n", "foreign: nothing has changed");
	is_int(write_text("all/file", true, "new", 0), 0, "foreign: a file, if forced");
	is_int(mode_of("all/file"), 0600, "foreign: is replaced by one for nobody else");
	is_int(write_text("all/ours", false, "new", 0), 0, "foreign: a link of one's own");
	has("victim", "new", "foreign: is followed");
	workdir__run("ln -s ../victim own/link; chown -h 65534 own/link");
	is_int(write_text("own/link", false, "newer", 0), 0,
	       "foreign: where nobody else may write, links are one's own");
	clean();
}

int main(void)
{
	workdir__make();
	if (chdir(workdir))
		return 1;
	test_own_name();
	test_own_race();
	test_foreign();
	umask(027);
	test_files();
	test_links();
	test_refused();
	test_failures();
	return tap__done();
}
