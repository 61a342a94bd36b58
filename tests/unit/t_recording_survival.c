// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "core/capture/ids.h"
#include "core/profile/profile.h"
#include "core/store/load.h"
#include "tests/tap.h"
#include "tests/unit/sqlite_text.h"
#include "tests/unit/workdir.h"

/* The contents of a recording after the recorder's death, on a full disk, and for readers without
 * rights. */

#define NOBODY	  65534
#define PER_BATCH 50
#define DEPTH	  40

/* memory shared with children */
static struct shared {
	uint64_t begun, committed; /* number of samples */
	int code;
} * shared;

static char path[100];
static struct err err;
static struct ids *ids; /* IDs of the recording that is written */

/* Writes samples whose stacks all differ, so that all trees grow. */
static int write_batch(void)
{
	struct sink_sample sample = {
		.thread = 1, .event = 1, .value = 1, .weight = 1, .total = 1
	};
	int i, level, code = 0;
	uint32_t frame;

	for (i = 0; !code && i < PER_BATCH; i++) {
		sample.native = 0;
		for (level = 0; !code && level < DEPTH; level++) {
			struct ids_frame place = {
				.kind = KIND_NATIVE,
				.address = level + (level < DEPTH / 2 ? 0 : shared->begun * DEPTH)
			};

			code = ids__frame(ids, &place, &frame, NULL, &err);
			if (!code)
				code = ids__node(ids, sample.native, frame, 8 * level,
						 &sample.native, &err);
		}
		shared->begun++;
		if (!code)
			code = ids__sample(ids, &sample, &err);
	}
	return code;
}

static int create(const char *at, struct recording **ret)
{
	int code = recording__create(at, false, ret, &err);

	ids__free(ids);
	ids = NULL;
	return code ? code : ids__new(recording__sink(*ret), &ids, &err);
}

static int record(const char *at, int batches)
{
	struct recording *recording = NULL;
	int code = create(at, &recording);

	memset(shared, 0, sizeof(*shared));
	while (!code && batches--) {
		code = write_batch();
		if (!code)
			code = recording__commit(recording, &err);
		if (!code)
			shared->committed = shared->begun;
	}
	recording__close(recording, NULL);
	shared->code = code;
	return code;
}

/* Returns the number of samples in the file, or a negative errno. All samples must have their
 * stacks. */
static int64_t load_samples(const char *at)
{
	struct profile_filter filter = { 0 };
	struct profile *profile = NULL;
	int64_t samples;
	int code = load__profile(at, &filter, &profile, NULL, &err);

	if (code) {
		tap__diag("%s", err.text);
		return code;
	}
	samples = profile->total;
	if (profile->nodes[0].self)
		samples = -1000; /* stacks without frames */
	profile__free(profile);
	return samples;
}

static pid_t start(void (*run)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		run();
		_exit(0);
	}
	return pid;
}

static void record_forever(void)
{
	record(path, -1);
}

static void record_traced(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	record_forever();
}

/* Returns whether the child, at the entry of a system call, is about to change a file or a
 * directory. */
static bool is_change(pid_t pid)
{
	long number = ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.orig_rax), NULL);

	return number == SYS_pwrite64 || number == SYS_write || number == SYS_ftruncate ||
	       number == SYS_fdatasync || number == SYS_fsync || number == SYS_unlink;
}

/* Kills a recorder before change @n after its first commit. */
static bool kill_before(int n)
{
	int status, at_entry = 0;
	pid_t pid = start(record_traced);
	bool stopped;

	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	do {
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
		stopped = waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
		at_entry ^= 1;
		n -= stopped && at_entry && shared->committed && is_change(pid);
	} while (stopped && n);
	kill(pid, SIGKILL);
	if (stopped)
		waitpid(pid, &status, 0);
	return stopped;
}

static void test_killed(void)
{
	int round, wrong = 0, journals = 0;

	for (round = 1; round <= 40; round++) {
		struct shared after;
		int64_t samples;
		char *journal;

		memset(shared, 0, sizeof(*shared));
		wrong += !kill_before(7 * round);
		after = *shared;
		if (asprintf(&journal, "%s-journal", path) < 0)
			exit(1);
		journals += !access(journal, F_OK);
		free(journal);
		samples = load_samples(path);
		if (samples < (int64_t)after.committed || samples > (int64_t)after.begun) {
			tap__diag("round %d: %lld samples, %llu committed, %llu begun", round,
				  (long long)samples, (unsigned long long)after.committed,
				  (unsigned long long)after.begun);
			wrong++;
		}
		if (strcmp(sqlite_text(path, "PRAGMA integrity_check"), "ok"))
			wrong++;
		workdir__run("rm -f r.db*");
	}
	is_int(wrong, 0, "recorders killed before any change leave all that they committed");
	ok(journals, "%d of %d left a journal", journals, round - 1);
}

static void record_limited(void)
{
	struct rlimit limit = { 1 << 20, 1 << 20 };

	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	record(path, -1);
}

static void test_full(void)
{
	int status;

	waitpid(start(record_limited), &status, 0);
	is_int(shared->code, -ENOSPC, "a file that cannot grow ends the recording");
	ok(shared->committed > 0, "after some commits");
	is_int(load_samples(path), shared->committed, "all of which can be read");
	is_str(sqlite_text(path, "PRAGMA integrity_check"), "ok", "SQLite finds it in order");
	workdir__run("test \"$(ls)\" = r.db && rm r.db");
}

static void record_on_small_disk(void)
{
	char at[128];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("braid-test", workdir, "tmpfs", 0, "size=512k"))
		return;
	snprintf(at, sizeof(at), "%s/full.db", workdir);
	record(at, -1);
	shared->begun = load_samples(at);
}

static void test_full_disk(void)
{
	int status;

	if (geteuid()) {
		tap__skip("needs root to mount", "a full disk");
		return;
	}
	shared->code = 0;
	waitpid(start(record_on_small_disk), &status, 0);
	if (!shared->code) {
		tap__skip("cannot mount a tmpfs", "a full disk");
		return;
	}
	is_int(shared->code, -ENOSPC, "a full disk ends the recording");
	ok(shared->committed > 0, "after some commits");
	is_int(shared->begun, shared->committed, "all of which can be read");
}

static void test_copy(void)
{
	struct recording *recording = NULL;
	char copy[128];

	snprintf(copy, sizeof(copy), "%s/copy.db", workdir);
	memset(shared, 0, sizeof(*shared));
	create(path, &recording);
	write_batch();
	recording__commit(recording, &err);
	write_batch();
	workdir__run("cp r.db copy.db && test \"$(ls)\" = \"$(printf 'copy.db\\nr.db')\"");
	is_int(load_samples(copy), PER_BATCH, "a copy of the one file, made while recording");
	is_int(load_samples(path), PER_BATCH, "the file itself, while recording");
	recording__close(recording, &err);
	is_int(load_samples(path), 2 * PER_BATCH, "and afterwards");
	workdir__run("rm *.db");
}

/* Makes the file of a recorder that dies while SQLite writes it. SQLite is made to write changes
 * before the commit, and the file and its journal are copied at that moment. */
static void make_torn(bool spill)
{
	sqlite3 *db;

	record(path, 40);
	sqlite3_open(path, &db);
	sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA cache_size = 5;", NULL, NULL, NULL);
	if (!spill)
		sqlite3_exec(db, "PRAGMA cache_spill = OFF", NULL, NULL, NULL);
	sqlite3_exec(db, "BEGIN; UPDATE node SET frame = 0, parent = NULL; DELETE FROM sample;",
		     NULL, NULL, NULL);
	workdir__run("mkdir d && cp r.db r.db-journal d");
	sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(db);
	workdir__run("%s r.db d/r.db", spill ? "! cmp -s" : "cmp");
}

static void load_as_nobody(void)
{
	char at[128];

	snprintf(at, sizeof(at), "%s/d/r.db", workdir);
	if (!geteuid() && setuid(NOBODY))
		shared->code = -99;
	else
		shared->code = load_samples(at);
}

static void load_in_child(void)
{
	int status;

	shared->code = -ECHILD;
	waitpid(start(load_as_nobody), &status, 0);
}

static void test_journal(void)
{
	char at[128];

	snprintf(at, sizeof(at), "%s/d/r.db", workdir);
	make_torn(true);
	is_int(load_samples(at), 40 * PER_BATCH, "a torn file is restored from its journal");
	workdir__run("rm -r *");

	make_torn(false);
	workdir__run("chmod 444 d/* && chmod 555 d");
	load_in_child();
	is_int(shared->code, 40 * PER_BATCH, "a whole one needs no right to write");
	workdir__run("chmod 755 d && rm -r *");

	make_torn(true);
	workdir__run("chmod 444 d/* && chmod 555 d");
	load_in_child();
	ok(shared->code == -EBADMSG || shared->code >= 0, "a torn one without that does no harm");
	workdir__run("chmod 755 d && rm -r *");
}

/* A journal that names a third file, which SQLite would remove after it restored the first one.
 * Reading a recording of another user must not do that. */
static void test_hostile_journal(void)
{
	char at[128], name[160], victim[128];
	uint32_t words[3] = {}, sum = 0;
	FILE *journal;

	make_torn(true);
	workdir__write("victim", "precious\n");
	snprintf(at, sizeof(at), "%s/d/r.db", workdir);
	snprintf(name, sizeof(name), "%s-journal", at);
	snprintf(victim, sizeof(victim), "%s/victim", workdir);
	for (const char *c = victim; *c; c++)
		sum += *c;
	words[0] = htobe32(0x40000000 / 4096 + 1); /* page with SQLite's locks */
	words[1] = htobe32(strlen(victim));
	words[2] = htobe32(sum);
	journal = fopen(name, "a");
	fwrite(&words[0], 4, 1, journal);
	fwrite(victim, 1, strlen(victim), journal);
	fwrite(&words[1], 8, 1, journal);
	fwrite("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 1, 8, journal);
	fclose(journal);
	workdir__run("cp -a d before");
	load_samples(at);
	ok(!access(victim, F_OK), "a journal removes no third file");
	ok(workdir__try("diff -r d before"), "and is not used");
	workdir__run("rm -r *");
}

/* SQLite would create files beside a file that claims a write-ahead log. */
static void test_wal(void)
{
	record(path, 1);
	workdir__run("printf '\\002\\002' | dd of=r.db bs=1 seek=18 conv=notrunc status=none");
	is_int(load_samples(path), PER_BATCH, "a file that speaks of a write-ahead log");
	workdir__run("test \"$(ls)\" = r.db && echo foreign > r.db-wal");
	is_int(load_samples(path), PER_BATCH, "and one that has one, which is not read");
	ok(workdir__try(
		   "test \"$(ls)\" = \"$(printf 'r.db\\nr.db-wal')\" && grep -q foreign *-wal"),
	   "nothing is changed");
	workdir__run("rm -r *");
}

static void test_moved(void)
{
	struct recording *recording = NULL;

	create(path, &recording);
	recording__commit(recording, &err);
	workdir__run("mv r.db moved.db");
	write_batch();
	is_int(recording__commit(recording, &err), -ESTALE, "a file that was moved");
	ok(strstr(err.text, "moved or removed"), "is said to be");
	recording__close(recording, NULL);
	workdir__run("rm moved.db && test -z \"$(ls -A)\"");
}

int main(void)
{
	workdir__make();
	chmod(workdir, 0755);
	snprintf(path, sizeof(path), "%s/r.db", workdir);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return 1;
	test_killed();
	test_full();
	test_full_disk();
	test_copy();
	test_journal();
	test_hostile_journal();
	test_wal();
	test_moved();
	return tap__done();
}
