// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording.h"

#include <errno.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/base/intern.h"
#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/profile/profile.h"
#include "tests/tap.h"
#include "tests/unit/sqlite_text.h"
#include "tests/unit/workdir.h"

#define NOBODY 65534

static char path[100], journal[128], old[128];
static struct err err;
static struct ids *ids; /* IDs of the newest recording */

static struct recording *create(bool force)
{
	struct recording *recording = NULL;

	if (!ok(!recording__create(path, force, &recording, &err), "created"))
		tap__diag("%s", err.text);
	ids__free(ids);
	ids__new(recording__sink(recording), &ids, &err);
	return recording;
}

static void clean(void)
{
	workdir__run("chmod 755 . && rm -rf ./*");
}

/* Offers a context twice, and another one with the same attribute. */
static void write_context(uint32_t *ret_id)
{
	const struct sink_label label = { "http.route", "/a" };
	struct sink_context context = { "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331",
					&label, 1 };
	uint32_t again;

	ids__context(ids, &context, ret_id, &err);
	ids__context(ids, &context, &again, &err);
	is_int(again, *ret_id, "one context has one id");
	context.trace = context.span = NULL;
	ids__context(ids, &context, &again, &err);
	ids__attribute(ids, 2, &(struct sink_label) { "service.name", "old" }, &err);
	ids__attribute(ids, 2, &(struct sink_label) { "service.name", "new" }, &err);
}

static void write_stacks(void)
{
	struct sink_process process = { 77, 1, 123456, "app", "./app --x", "/a/b", "c" };
	struct ids_frame native = { .kind = KIND_NATIVE, .image = 1, .address = 0x1234 };
	struct ids_frame kernel = { .kind = KIND_KERNEL, .address = 0xffffffff81000000 };
	struct ids_frame loop = {
		.kind = KIND_NATIVE, .image = 1, .address = 0x1235, .loop = true
	};
	struct sink_location names[] = { { KIND_INLINED, "inner", "a.c", 7 },
					 { KIND_NATIVE, "outer", NULL, 0 } };
	struct sink_sample sample = { .time_ns = 5,
				      .flags = 1,
				      .event = 1,
				      .value = 2,
				      .weight = 3,
				      .total = 6,
				      .task = 7 + (1ULL << 32) };
	uint32_t id, frame, node;

	ids__event(ids, &(struct sink_event) { "cpu", "samples" }, &id, &err);
	ids__event(ids, &(struct sink_event) { "faults", "count" }, &id, &err);
	ids__process(ids, &process, &id, &err);
	ids__process(ids, &process, &id, &err);
	ids__thread(ids, 2, 78, "worker", &sample.thread, &err);
	ids__thread(ids, 2, 78, "renamed", &id, &err);
	ids__image(ids, "/bin/app", "abcd", &id, &err);
	ids__image(ids, "/bin/ap", "", &id, &err);
	ids__frame(ids, &native, &frame, NULL, &err);
	ids__locations(ids, frame, names, 2, &err);
	ids__node(ids, 0, frame, 16, &node, &err);
	ids__frame(ids, &kernel, &frame, NULL, &err);
	ids__node(ids, node, frame, SINK_NO_OFFSET, &sample.native, &err);
	ids__node(ids, node, frame, -8, &id, &err);
	ids__frame(ids, &loop, &frame, NULL, &err);
	ids__node_of(ids, &(struct sink_node) { 0, frame, SINK_APART, EVIDENCE_INFERRED }, &id,
		     &err);
	write_context(&sample.context);
	is_int(ids__sample(ids, &sample, &err), 0, "a sample");
}

static void test_rows(void)
{
	struct recording *recording = create(false);

	write_stacks();
	recording__kind(recording, KIND_NATIVE, "native", "_[n]", &err);
	ids__source(ids, &(struct sink_source) { 2, "python", "3.11", "walk", NULL }, &err);
	recording__meta(recording, "target", "first", &err);
	recording__meta(recording, "target", "second", &err);
	recording__counter(recording, "lost", 1, &err);
	recording__counter(recording, "repaired", 5, &err);
	recording__counter(recording, "none", 0, &err);
	is_int(access(path, F_OK), -1, "no file before a commit");
	is_int(recording__committed(recording), 0, "no sample in it");
	is_int(recording__commit(recording, &err), 0, "commit");
	is_int(recording__committed(recording), 1, "one is in it");
	is_int(access(journal, F_OK), -1, "no journal beside it");
	is_str(sqlite_text(path, "SELECT * FROM counter WHERE name = 'repaired'"), "repaired|5",
	       "a loss");
	recording__counter(recording, "repaired", 0, &err);
	ids__frame_is_loop(ids, 1, &err);
	ids__thread_is_called(ids, 1, "the worker", &err);
	is_str(sqlite_text(path, "SELECT count(*) FROM sample"), "1", "one after it");
	recording__counter(recording, "lost", 1ULL << 40, &err);
	is_int(recording__close(recording, &err), 0, "close");

	is_str(sqlite_text(path, "SELECT * FROM meta"), "target|second", "meta");
	is_str(sqlite_text(path, "SELECT * FROM counter"), "repaired|0 lost|1099511627776",
	       "counter: the loss is none");
	is_str(sqlite_text(path, "SELECT * FROM kind"), "1|native|_[n]", "kind");
	is_str(sqlite_text(path, "SELECT * FROM event"), "1|cpu|samples 2|faults|count", "event");
	is_str(sqlite_text(path, "SELECT * FROM process WHERE id = 2"),
	       "2|77|1|123456|app|./app --x|/a/b|c", "process");
	is_str(sqlite_text(path, "SELECT * FROM thread"), "1|2|78|the worker 2|2|78|renamed",
	       "thread");
	is_str(sqlite_text(path, "SELECT * FROM source"), "2|python|3.11|walk|-", "source");
	is_str(sqlite_text(path, "SELECT * FROM image"), "1|/bin/app|abcd 2|/bin/ap|", "image");
	is_str(sqlite_text(path, "SELECT * FROM function"), "1|inner|a.c 2|outer|-", "function");
	is_str(sqlite_text(path, "SELECT id, kind, image, process, printf('%x', address), loop "
				 "FROM frame"),
	       "1|1|1|-|1234|1 2|0|-|-|ffffffff81000000|- 3|1|1|-|1235|1", "frame");
	is_str(sqlite_text(path, "SELECT * FROM location"), "1|0|2|1|7 1|1|1|2|-", "location");
	is_str(sqlite_text(path, "SELECT * FROM node"),
	       "1|-|1|16|- 2|1|2|-|- 3|1|2|-8|- 4|-|3|-9223372036854775807|3", "node");
	is_str(sqlite_text(path, "SELECT * FROM sample"),
	       "1|5|1|1|0|2|-|1|2|3|6|-|-|1|0|-|0|4294967303|1", "sample");
	is_str(sqlite_text(path, "SELECT * FROM context"),
	       "1|0af7651916cd43dd8448eb211c80319c|b7ad6b7169203331 2|-|-", "context");
	is_str(sqlite_text(path, "SELECT * FROM label"), "1|http.route|/a 2|http.route|/a",
	       "label");
	is_str(sqlite_text(path, "SELECT * FROM attribute"), "2|service.name|new",
	       "attribute: the last one");
	is_str(sqlite_text(path, "PRAGMA application_id"), "1651663209", "application id");
	is_str(sqlite_text(path, "PRAGMA user_version"), "8", "version");
	is_str(sqlite_text(path, "PRAGMA integrity_check"), "ok", "SQLite finds it in order");
	is_int(workdir__count(), 1, "one file and nothing else");
	clean();
}

static int create_code(const char *at, bool force)
{
	struct recording *recording = NULL;
	int code = recording__create(at, force, &recording, &err);

	if (!code)
		recording__close(recording, NULL);
	else if (recording || !strstr(err.text, at))
		tap__diag("the sentence does not name %s: %s", at, err.text);
	return code;
}

/* Magic number at the start of a journal. */
#define MAGIC "'\\331\\325\\005\\371 \\241c\\327 %s'"

static void make_named(const char *target)
{
	struct recording *recording = create(false);

	recording__meta(recording, "target", target, &err);
	recording__close(recording, &err);
}

static void is_target(const char *at, const char *want, const char *what)
{
	is_str(sqlite_text(at, "SELECT value FROM meta"), want, "%s", what);
}

static void test_existing(void)
{
	struct recording *recording = create(false);

	recording__meta(recording, "target", "first", &err);
	recording__commit(recording, &err);
	is_int(create_code(path, true), -EBUSY, "not while another recorder writes it");
	recording__close(recording, &err);
	workdir__run("printf " MAGIC " > r.db-journal; chmod 644 r.db", "of the first");
	is_int(create_code(path, false), 0, "over a recording");
	is_str(sqlite_text(path, "SELECT count(*) FROM meta"), "0", "the new one is empty");
	ok(workdir__try("test $(stat -c %%a r.db) = 600"), "and for its owner only");
	workdir__run("grep -q first r.db.old-journal && rm r.db.old-journal");
	is_target(old, "first", "the old one is there, with its journal");
	workdir__run("printf " MAGIC " > r.db.old-journal", "left over");
	is_int(create_code(path, false), 0, "and over an older one");
	is_int(workdir__count(), 2, "with what was left over with that");
	is_str(sqlite_text(old, "SELECT count(*) FROM meta"), "0", "which is gone");
	clean();

	workdir__write("r.db", "precious\n");
	is_int(create_code(path, false), -EEXIST, "not over another file");
	workdir__run("grep -q precious r.db");
	is_int(create_code(path, true), 0, "unless forced");
	is_int(workdir__count(), 1, "it is replaced");
	clean();
	workdir__run("ln -s elsewhere r.db");
	is_int(create_code(path, true), -EEXIST, "not over a symbolic link, even if forced");
	clean();
	workdir__run("mkdir r.db");
	is_int(create_code(path, true), -EISDIR, "not over a directory");
	clean();
	workdir__run("mkfifo r.db");
	is_int(create_code(path, true), -EEXIST, "not over a FIFO");
	clean();
	if (!geteuid()) {
		is_int(create_code(path, false), 0, "a recording");
		workdir__run("chmod 1777 .; chown 65534 r.db; cp -p r.db r.db.copy");
		is_int(create_code(path, false), -EACCES,
		       "not over another user's where all may write");
		workdir__run("cmp r.db r.db.copy; chown 0 r.db; mv r.db.copy r.db.old");
		is_int(create_code(path, false), -EACCES, "nor with another user's as the old one");
		workdir__run("rm r.db.old");
		is_int(create_code(path, false), 0, "over one's own");
		workdir__run("chmod 700 .");
		clean();
	}
	is_int(create_code("/nowhere/r.db", false), -ENOENT,
	       "not in a directory that is not there");
	is_int(workdir__count(), 0, "no failure leaves anything");
}

/* Returns all files of the directory, with sizes, modes and inodes. */
static const char *listed(void)
{
	static char text[2][2000];
	static int turn;
	FILE *pipe = workdir__pipe("find . -mindepth 1 -printf '%%p %%y %%s %%m %%i\n' | sort");
	char *to = text[turn = !turn];

	to[fread(to, 1, sizeof(text[0]) - 1, pipe)] = '\0';
	pclose(pipe);
	return to;
}

/* Files that are not braid's, and that would be lost. */
static void test_foreign(void)
{
	static const char *const makes[] = { "echo precious >", "touch", "ln -s r.db", "mkdir",
					     "mkfifo" };
	static const char *const names[] = { "r.db.old", "r.db-journal", "r.db-wal",
					     "r.db.old-journal", "r.db.old-wal" };
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(makes); i++) {
		for (k = 0; k < ARRAY_SIZE(names); k++) {
			const char *before;
			int code;

			make_named("first");
			workdir__run("%s %s", makes[i], names[k]);
			before = listed();
			code = create_code(path, true);
			if (i == 1 && k == 1) /* file of a recorder that was killed at its start */
				is_int(code, 0, "an empty journal goes with its recording");
			else if (!ok(code == -EEXIST || code == -EISDIR, "%s %s: refused", makes[i],
				     names[k]) ||
				 strcmp(listed(), before))
				is_str(listed(), before, "nothing is changed");
			clean();
		}
	}
	workdir__run("printf " MAGIC " > r.db-journal", "of another");
	is_int(create_code(path, true), -EEXIST, "not beside a journal without its database");
	is_int(workdir__count(), 1, "it stays");
	clean();
}

/* Another program creates the journal while the recording is written. */
static void test_planted(void)
{
	struct recording *recording = create(false);

	recording__commit(recording, &err);
	workdir__write("r.db-journal", "precious\n");
	recording__meta(recording, "target", "first", &err);
	is_int(recording__commit(recording, &err), -EEXIST, "no commit over a foreign journal");
	recording__close(recording, NULL);
	workdir__run("grep -q precious r.db-journal");
	is_str(sqlite_text(path, "SELECT count(*) FROM meta"), "0", "the last one is there");
	clean();
}

static void test_sudo(void)
{
	if (geteuid()) {
		tap__skip("needs root", "a recording made by sudo");
		return;
	}
	setenv("SUDO_UID", "65534", 1);
	setenv("SUDO_GID", "65533", 1);
	make_named("first");
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	ok(workdir__try("test $(stat -c %%u:%%g:%%a r.db) = 65534:65533:600"),
	   "a recording is the user's who called sudo");
	clean();
}

static void test_failed_start(void)
{
	struct recording *recording;
	const char *before;

	make_named("first");
	make_named("second");
	workdir__run("printf " MAGIC " > r.db.old-journal", "of the first");
	workdir__run("printf " MAGIC " > r.db-journal", "of the second");
	before = listed();
	recording = create(false);
	recording__meta(recording, "target", "third", &err);
	recording__discard(recording);
	is_str(listed(), before, "a start that fails changes nothing");
	clean();
	workdir__write("r.db", "precious\n");
	before = listed();
	recording = create(true);
	recording__discard(recording);
	is_str(listed(), before, "nor does one that is forced");
	clean();
}

/* Runs @run in a child, so that limits and users do not stick. Returns its exit status. */
static int in_child(int (*run)(void))
{
	int status = -1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(run());
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int create_as_nobody(void)
{
	if (!geteuid() && setuid(NOBODY))
		return 99;
	return -create_code(path, false);
}

static int create_in_1000_bytes(void)
{
	struct rlimit limit = { 1000, 1000 };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	return -create_code(path, false);
}

/* The limit has room for the schema only. */
static int commit_in_few_bytes(void)
{
	struct rlimit limit = { 120000, 120000 };
	struct recording *recording = NULL;
	char name[3000] = "";
	uint32_t id, i;
	int code;

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	memset(name, 'x', sizeof(name) - 1);
	if (recording__create(path, false, &recording, &err) ||
	    ids__new(recording__sink(recording), &ids, &err))
		return 99;
	for (i = 0; i < 100; i++)
		ids__thread(ids, 0, i + 1, name, &id, &err);
	code = recording__commit(recording, &err);
	recording__discard(recording);
	return -code;
}

static void test_failed_create(void)
{
	workdir__run("chmod 555 .");
	is_int(in_child(create_as_nobody), EACCES, "not in a directory that is not ours");
	is_int(workdir__count(), 0, "nothing is left there");
	clean();
	is_int(in_child(create_in_1000_bytes), ENOSPC, "not on a full disk");
	is_int(workdir__count(), 0, "nothing is left there");
	recording__close(create(false), NULL);
	is_int(in_child(create_in_1000_bytes), ENOSPC, "nor over a recording");
	is_int(workdir__count(), 1, "the recording is where it was");
	make_named("second");
	is_int(in_child(commit_in_few_bytes), ENOSPC, "nor where the first commit has no room");
	is_target(path, "second", "the recording is where it was");
	is_str(sqlite_text(old, "SELECT count(*) FROM sample"), "0", "and so is the older one");
	is_int(workdir__count(), 2, "nothing is left there");
	clean();
}

static void test_names(void)
{
	struct recording *recording = NULL;

	is_int(chdir(workdir), 0, "in the directory");
	is_int(recording__create(":memory:", false, &recording, &err), 0,
	       "a name that means something else to SQLite");
	recording__meta(recording, "target", "x", &err);
	recording__close(recording, &err);
	is_str(sqlite_text("./:memory:", "SELECT value FROM meta"), "x", "is a file");
	clean();
}

static void test_reader(void)
{
	struct recording *recording = create(false);
	sqlite3 *reader;

	recording__commit(recording, &err);
	sqlite3_open(path, &reader);
	sqlite3_exec(reader, "BEGIN; SELECT * FROM sample", NULL, NULL, NULL);
	recording__meta(recording, "a", "1", &err);
	is_int(recording__commit(recording, &err), 0, "a commit that a reader holds up");
	recording__meta(recording, "b", "2", &err);
	is_int(recording__commit(recording, &err), 0, "and another one");
	is_str(sqlite_text(path, "SELECT count(*) FROM meta"), "error: database is locked",
	       "have begun, so that no other reader comes in between");
	sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL);
	recording__meta(recording, "c", "3", &err);
	is_int(recording__commit(recording, &err), 0, "the next one");
	is_str(sqlite_text(path, "SELECT * FROM meta"), "a|1 b|2 c|3", "has it all");
	sqlite3_close(reader);
	recording__close(recording, &err);
	clean();
}

static void test_bounds(void)
{
	const uint32_t n = 300000;
	struct recording *recording = create(false);
	struct intern intern;
	uint32_t i, id, *at;
	char name[16];

	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		ids__thread(ids, 0, i + 1, name, &id, &err);
	}
	recording__close(recording, &err);
	is_str(sqlite_text(path, "SELECT count(*), min(id), max(id) FROM thread "
				 "WHERE name = 't' || (tid - 1)"),
	       "300000|1|300000", "more threads than are remembered");
	clean();

	intern__init(&intern, 1000);
	for (i = 0; i < 100000; i++) {
		at = intern__at(&intern, i / 2 % 3000, i);
		if (!at || *at)
			break;
		*at = i + 1;
	}
	is_int(i, 100000, "pairs that are all new");
	ok(intern.cap <= 2048, "take no more room than is allowed");
	is_int(*intern__at(&intern, 99999 / 2 % 3000, 99999), 100000, "the last one is remembered");
	is_int(*intern__at(&intern, 0, 0), 0, "the first one is not");
	intern__done(&intern);
}

/* Each query of the documentation has results in a recording. */
static void test_docs(void)
{
	struct recording *recording = create(false);
	FILE *docs = fopen("docs/reference/recording.md", "r");
	char line[512], sql[4096] = "";
	bool inside = false;
	int n = 0;

	write_stacks();
	recording__close(recording, &err);
	while (docs && fgets(line, sizeof(line), docs)) {
		if (!strcmp(line, "```sql\n")) {
			inside = true;
			sql[0] = '\0';
		} else if (inside && !strcmp(line, "```\n")) {
			const char *found = sqlite_text(path, sql);

			inside = false;
			n++;
			if (!ok(*found && strncmp(found, "error", 5), "query %d of the docs", n))
				tap__diag("%s", found);
		} else if (inside) {
			strncat(sql, line, sizeof(sql) - strlen(sql) - 1);
		}
	}
	ok(n >= 5, "there were some");
	if (docs)
		fclose(docs);
	clean();
}

int main(void)
{
	workdir__make();
	chmod(workdir, 0755);
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	snprintf(old, sizeof(old), "%s.old", path);
	snprintf(journal, sizeof(journal), "%s-journal", path);
	test_rows();
	test_existing();
	test_foreign();
	test_failed_start();
	test_planted();
	test_sudo();
	test_failed_create();
	test_docs();
	test_names();
	test_reader();
	test_bounds();
	recording__close(NULL, NULL);
	ids__free(ids);
	return tap__done();
}
