// SPDX-License-Identifier: GPL-2.0-or-later
/* A Perl whose version has no row: the machine's own with its row hidden, and rows of other
 * versions. The layout of another row is accepted only if it matches the build. */
#include "runtimes/perl/perl_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/perl/perl_build.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

#define PERL "/usr/bin/perl"

extern const struct runtime runtime_perl;

static struct elf_file *file;
static const struct perl_version *own;

/* Returns the part in which a changed row differs; "": no difference. */
static const char *part_of(const struct perl_version *version)
{
	struct perl_place place;
	const char *why = perl_build__place(file, version, &place);

	return why ?: perl_fit__file(file, version, &place) ?: "";
}

static void test_file(void)
{
	struct perl_version row = *own;

	is_str(part_of(&row), "", "the build's own row");
	row.offsets.op_sort++;
	is_str(part_of(&row), "numbering of operations", "another number of sort");
	row = *own;
	row.offsets.op_leave[3] = 60000;
	is_str(part_of(&row), "numbering of operations", "a number behind all");
	row = *own;
	row.offsets.context += 8;
	is_str(part_of(&row), "size of a context", "a context of another size");
	row = *own;
	row.curcop += 8;
	is_str(part_of(&row), "interpreter", "a field that has moved");
	row = *own;
	row.comppad -= 8;
	is_str(part_of(&row), "interpreter", "another one");
	row = *own;
	row.curstackinfo += 8;
	ok(*part_of(&row), "the stack: %s", part_of(&row));
}

static struct runtime_verdict verdict_of(unsigned int newest)
{
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;

	perl_version__hide(newest);
	ok(!runtime_perl.files->prepare(file, &image, &verdict),
	   "prepared without rows behind 5.%u", newest);
	if (image)
		runtime_perl.files->free(image);
	perl_version__hide(own->minor + 100);
	return verdict;
}

static void test_verdict(const struct perl_version *before)
{
	struct runtime_verdict verdict = verdict_of(own->minor);

	is_int(verdict.support, RUNTIME_SUPPORTED, "with its row");
	verdict = verdict_of(30);
	is_int(verdict.support, RUNTIME_REFUSED, "only 5.30 is known: refused: %s", verdict.reason);
	verdict = verdict_of(before->minor);
	ok(verdict.support == RUNTIME_DEGRADED && strstr(verdict.reason, "not tried yet"),
	   "the row before: its file is the same: %s", verdict.reason);
}

/* Starts a Perl, which writes a line when its setup is complete. */
static pid_t start(void)
{
	int pipes[2];
	char byte;
	pid_t pid = pipe(pipes) ? -1 : fork();

	if (!pid) {
		dup2(pipes[1], 1);
		execl(PERL, PERL, "-e", "$| = 1; print 'x'; sleep 1000", NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (pid < 0 || read(pipes[0], &byte, 1) != 1)
		printf("Bail out! perl does not run\n");
	return pid;
}

static int fit(pid_t pid, const struct perl_version *version, uint64_t bias)
{
	struct perl_place place;
	bool is_variable;

	if (perl_build__place(file, version, &place))
		return -EINVAL;
	is_variable = place.state == PERL_STATE_GLOBAL;
	return perl_fit__process(pid, bias + (is_variable ? place.defstash : place.first_vaddr),
				 is_variable, place.defstash, &version->offsets);
}

static uint64_t find_bias(pid_t pid)
{
	struct procfs_mappings mappings = {};
	uint64_t bias = 0;

	if (procfs__mappings(pid, &mappings))
		return 0;
	for (size_t i = 0; !bias && i < mappings.n; i++)
		if (!mappings.list[i].anonymous && strstr(mappings.list[i].path, "/perl"))
			bias = mappings.list[i].start - mappings.list[i].offset;
	procfs_mappings__done(&mappings);
	return file->type == ET_EXEC ? 0 : bias;
}

static void test_process(const struct perl_version *before)
{
	pid_t pid = start();
	uint64_t bias = find_bias(pid);
	struct perl_version row = *own;

	is_int(fit(pid, own, bias), 0, "its own row: the package is main");
	if (before->offsets.aux != own->offsets.aux)
		is_int(fit(pid, before, bias), -ENOTSUP, "packages of the row before");
	row.offsets.aux += 8;
	is_int(fit(pid, &row, bias), -ENOTSUP, "names of packages that have moved");
	row = *own;
	row.defstash = own->curstackinfo;
	ok(fit(pid, &row, bias) < 0, "another field of the interpreter");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	struct perl_number number;
	struct err err = {};
	int fd = open(PERL, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || elf_file__open(fd, PERL, &file, &err) || perl_build__version(file, &number) ||
	    !(own = perl_version__find(number.minor))) {
		printf("1..0 # SKIP no Perl with a row\n");
		return 0;
	}
	test_file();
	test_verdict(perl_version__find(number.minor - 2));
	test_process(perl_version__find(number.minor - 2));
	elf_file__free(file);
	return tap__done();
}
