// SPDX-License-Identifier: GPL-2.0-or-later
/* Detects the C library of a program and the place of a thread's values. Covers the machine's own
 * glibc and musl, dynamic and static, running programs, and code of neither library. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "runtimes/common/c_library.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define GLIBC_TID 720

static const char program[] = "#include <pthread.h>\n"
			      "#include <stdio.h>\n"
			      "int main(void) {\n"
			      "    pthread_key_t key; pthread_key_create(&key, 0);\n"
			      "    puts(pthread_getspecific(key) ? \"\" : \"x\"); fflush(stdout);\n"
			      "    getchar();\n"
			      "}\n";

static struct elf_file *open_elf(const char *name)
{
	struct elf_file *file = NULL;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	fd = open(path, O_RDONLY);
	return fd < 0 || elf_file__open(fd, path, &file, NULL) ? NULL : file;
}

/* Runs the program @name up to its main() and looks up the C library in it. */
static int find_in(const char *name, const struct elf_file *file, struct c_library *ret)
{
	int in[2], out[2], rc = -ESRCH;
	char path[256], byte;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	if (pipe(in) || pipe(out))
		return rc;
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execl(path, path, NULL);
		_exit(1);
	}
	if (pid > 0 && read(out[0], &byte, 1) == 1)
		rc = c_library__find(pid, file, ret);
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc;
}

static void test_program(const char *compile, bool is_musl)
{
	struct c_library in_file = {}, found = {};
	struct elf_file *file;
	char command[256];

	snprintf(command, sizeof(command), "%s -O2 -o program program.c -pthread", compile);
	if (!workdir__try("%s", command)) {
		tap__skip("not possible here", "%s", compile);
		return;
	}
	file = open_elf("program");
	ok(file && c_library__is_supported(file), "%s: is for a library that is known", compile);
	is_int(find_in("program", file, &found), 0, "%s: is found while it runs", compile);
	if (is_musl)
		ok((found.values == 128 && found.tid == 48) ||
			   (found.values == 136 && found.tid == 56),
		   "%s: values at %u, tid at %u", compile, found.values, found.tid);
	else
		ok(!found.values && found.tid == GLIBC_TID, "%s: is glibc", compile);
	if (strstr(compile, "-static"))
		is_int(c_library__of_musl(file, &in_file), is_musl ? 0 : -ENOENT,
		       "%s: by its own code", compile);
	elf_file__free(file);
}

static void test_other_library(void)
{
	struct elf_file *file = NULL;

	if (workdir__try(
		    "echo 'int f(void) { return 1; }' >other.c && "
		    "gcc -shared -fPIC -nostdlib -Wl,-soname,libc.so.0 -o libc.so.0 other.c && "
		    "echo 'int f(void); int g(void) { return f(); }' >user.c && "
		    "gcc -shared -fPIC -nostdlib -o user.so user.c libc.so.0"))
		file = open_elf("user.so");
	ok(file && !c_library__is_supported(file), "for another C library");
	elf_file__free(file);
}

/* Tests code of functions named pthread_getspecific. */
static void test_code(const char *what, const char *code, uint16_t values, uint16_t tid)
{
	struct c_library found = { 1, 1 };
	struct elf_file *file;
	char text[512];
	int rc = 0;

	snprintf(text, sizeof(text),
		 ".globl pthread_getspecific\n.type pthread_getspecific,@function\n"
		 "pthread_getspecific:\n%s\nret\n.size pthread_getspecific,.-pthread_getspecific\n",
		 code);
	workdir__write("code.s", text);
	file = workdir__try("gcc -shared -nostdlib -o code.so code.s") ? open_elf("code.so") : NULL;
	if (file)
		rc = c_library__of_musl(file, &found);
	if (values)
		ok(!rc && found.values == values && found.tid == tid, "%s", what);
	else
		ok(rc == -ENOENT && found.values == 1, "%s", what);
	elf_file__free(file);
}

#define SELF  "mov %fs:0,%rax\n"
#define VALUE "mov %edi,%edi\nmov (%rax,%rdi,8),%rax"

int main(void)
{
	workdir__make();
	workdir__write("program.c", program);
	test_program("gcc", false);
	test_program("gcc -static", false);
	test_program("musl-gcc", true);
	test_program("musl-gcc -static", true);
	test_other_library();
	test_code("1.2.2 and later", SELF "mov 0x80(%rax),%rax\n" VALUE, 128, 48);
	test_code("1.1.22 to 1.2.1", SELF "mov 0x88(%rax),%rax\n" VALUE, 136, 56);
	test_code("1.1.9 to 1.1.21", SELF "mov 0x98(%rax),%rax\n" VALUE, 152, 56);
	test_code("1.1.3 to 1.1.8", SELF "mov 0x90(%rax),%rax\n" VALUE, 144, 48);
	test_code("clang's",
		  "mov %edi,%eax\nmov %fs:0,%rcx\nmov 0x80(%rcx),%rcx\n"
		  "mov (%rcx,%rax,8),%rax",
		  128, 48);
	test_code("other registers",
		  SELF "mov %edi,%edi\nmov 0x80(%rax),%rdx\nmov (%rdx,%rdi,8),%rax", 128, 48);
	test_code("a version that is not known: its thread's id is not told",
		  SELF "mov 0xa0(%rax),%rax\n" VALUE, 160, 0);
	test_code("an offset that there cannot be", SELF "mov 0x10080(%rax),%rax\n" VALUE, 0, 0);
	test_code("an unaligned one", SELF "mov 0x81(%rax),%rax\n" VALUE, 0, 0);
	test_code("a negative one", SELF "mov -0x180(%rax),%rax\n" VALUE, 0, 0);
	test_code("no thread", "mov 0x80(%rax),%rax\n" VALUE, 0, 0);
	test_code("no array", SELF "mov 0x80(%rax),%rax", 0, 0);
	return tap__done();
}
