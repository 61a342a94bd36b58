// SPDX-License-Identifier: GPL-2.0-or-later
/* Hand-made core files: damaged headers, damaged notes, and files that differ from the notes. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/base/util.h"
#include "core/files/memory_core.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define PAGE 4096

static unsigned char file_pages[2 * PAGE + 100];

static void make_mapped_file(void)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/mapped", workdir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (size_t i = 0; i < sizeof(file_pages); i++)
		file_pages[i] = 'a' + i % 23;
	if (write(fd, file_pages, sizeof(file_pages)) != sizeof(file_pages))
		exit(1);
	close(fd);
}

static struct memory *open_core(const char *name, struct err *err)
{
	struct memory *memory;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return memory__of_core(fd, path, &memory, err) ? NULL : memory;
}

struct synthetic { /* a hand-made core file: one segment of memory, and the note NT_FILE */
	Elf64_Ehdr head;
	Elf64_Phdr note, load;
	Elf64_Nhdr nt_file;
	char owner[8];
	uint64_t count, page, start, end, offset;
	char path[256];
} __attribute__((packed));

static struct synthetic make(const char *path)
{
	struct synthetic synthetic = {
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
				       ELFDATA2LSB },
			  .e_type = ET_CORE,
			  .e_machine = EM_X86_64,
			  .e_phoff = offsetof(struct synthetic, note),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.note = { .p_type = PT_NOTE,
			  .p_offset = offsetof(struct synthetic, nt_file),
			  .p_filesz =
				  sizeof(struct synthetic) - offsetof(struct synthetic, nt_file) },
		.load = { .p_type = PT_LOAD,
			  .p_vaddr = 0x10000,
			  .p_memsz = 2 * PAGE,
			  .p_filesz = 64 },
		.nt_file = { .n_namesz = 5,
			     .n_descsz =
				     sizeof(struct synthetic) - offsetof(struct synthetic, count),
			     .n_type = NT_FILE },
		.owner = "CORE",
		.count = 1,
		.page = PAGE,
		.start = 0x10000,
		.end = 0x10000 + 2 * PAGE,
	};

	snprintf(synthetic.path, sizeof(synthetic.path), "%s", path);
	return synthetic;
}

static struct memory *open_synthetic(const struct synthetic *synthetic, size_t size)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/made", workdir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (write(fd, synthetic, size) != (ssize_t)size)
		exit(1);
	close(fd);
	return open_core("made", NULL);
}

static void refuse(struct synthetic synthetic, size_t size, const char *what)
{
	struct memory *memory = open_synthetic(&synthetic, size);

	ok(!memory, "core: refused: %s", what);
	memory__free(memory);
}

/* Opens a core with damaged notes. The damage loses the notes' data on files, but none of the
 * memory in the core itself. */
static void accept_damaged(struct synthetic synthetic, size_t size, const char *what)
{
	struct memory *memory = open_synthetic(&synthetic, size);
	char bytes[64];

	if (!ok(memory, "core: accepted: %s", what))
		return;
	ok(memory__core(memory)->is_damaged, "core: known to be damaged: %s", what);
	ok(!memory__read(memory, 0x10000, bytes, 64) && !memcmp(bytes, &synthetic, 64),
	   "core: its own bytes: %s", what);
	is_int(memory__read(memory, 0x10000 + 100, bytes, 8), -EFAULT, "core: no file: %s", what);
	memory__free(memory);
}

#define DAMAGE(change, what)                                        \
	do {                                                        \
		struct synthetic synthetic = make("/mapped");       \
		change;                                             \
		accept_damaged(synthetic, sizeof(synthetic), what); \
	} while (0)

#define REFUSE(change, what)                                  \
	do {                                                  \
		struct synthetic synthetic = make("/mapped"); \
		change;                                       \
		refuse(synthetic, sizeof(synthetic), what);   \
	} while (0)

static void test_corrupt(void)
{
	static const size_t sizes[] = { 0, 4, sizeof(Elf64_Ehdr) - 1, sizeof(Elf64_Ehdr),
					offsetof(struct synthetic, load) + 8 };
	struct err err = {};
	char command[400];

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		refuse(make("/mapped"), sizes[i], "truncated");
	REFUSE(synthetic.head.e_ident[EI_CLASS] = ELFCLASS32, "32 bit");
	REFUSE(synthetic.head.e_type = ET_EXEC, "a program");
	REFUSE(synthetic.head.e_machine = EM_AARCH64, "another machine");
	REFUSE(synthetic.head.e_phnum = 0, "no segments");
	REFUSE(synthetic.head.e_phnum = 0xffff, "too many segments");
	REFUSE(synthetic.head.e_phentsize = 1, "segments of another size");
	REFUSE(synthetic.head.e_phoff = UINT64_MAX - 8, "segments far away");
	snprintf(command, sizeof(command), "mkfifo '%s/pipe'", workdir);
	ok(system(command) == 0 && !open_core("pipe", &err), "core: refused: a pipe");
	ok(strstr(err.text, "/pipe is not a regular file"), "core: the sentence names it: %s",
	   err.text);
	ok(!open_core("missing", NULL), "core: refused: no file");
}

static void test_damaged_notes(void)
{
	DAMAGE(synthetic.note.p_offset = INT64_MAX, "notes far away");
	DAMAGE(synthetic.nt_file.n_descsz = UINT32_MAX, "a note longer than all notes");
	DAMAGE(synthetic.nt_file.n_namesz = UINT32_MAX, "a name longer than all notes");
	DAMAGE(synthetic.count = 1 << 30, "more files than fit");
	DAMAGE(synthetic.count = UINT64_MAX / 24 + 2, "a number of files that wraps");
	DAMAGE(memset(synthetic.path, 'x', sizeof(synthetic.path)), "a name without an end");
	DAMAGE(synthetic.note.p_filesz = 65 << 20, "more notes than are read");
	accept_damaged(make("/mapped"), sizeof(struct synthetic) - 1, "truncated notes");
}

/* A malformed note follows NT_FILE. The files of NT_FILE are available, to all readers of the core
 * file. */
static void test_later_note(void)
{
	struct {
		struct synthetic synthetic;
		Elf64_Nhdr bad;
	} both = { .bad = { .n_namesz = 5, .n_descsz = UINT32_MAX, .n_type = NT_AUXV } };
	struct memory *memory;
	unsigned char bytes[8];
	char path[256];

	snprintf(path, sizeof(path), "%s/mapped", workdir);
	both.synthetic = make(path);
	both.synthetic.note.p_filesz += sizeof(both.bad);
	memory = open_synthetic(&both.synthetic, sizeof(both));
	if (!ok(memory, "core: a malformed later note: accepted"))
		return;
	ok(memory__core(memory)->is_damaged, "core: a malformed later note: known to be damaged");
	ok(!memory__read(memory, 0x10000 + 100, bytes, 8) && !memcmp(bytes, file_pages + 100, 8),
	   "core: a malformed later note: what precedes it counts");
	memory__free(memory);
}

/* Memory beyond the bytes in the core itself is read from a file, if it is a regular file. */
static void test_files(void)
{
	static const char *const hostile[] = {
		"pipe", "/dev/zero", "/dev/tty", ".", "missing", ""
	};
	unsigned char bytes[PAGE];
	struct memory *memory;
	struct synthetic synthetic;
	char path[256];

	snprintf(path, sizeof(path), "%s/mapped", workdir);
	synthetic = make(path);
	memory = open_synthetic(&synthetic, sizeof(synthetic));
	if (!ok(memory, "core: made by hand"))
		return;
	ok(!memory__read(memory, 0x10000, bytes, 64) && !memcmp(bytes, &synthetic, 64),
	   "core: its own bytes first");
	ok(!memory__read(memory, 0x10000 + 60, bytes, 100) &&
		   !memcmp(bytes, (char *)&synthetic + 60, 4) &&
		   !memcmp(bytes + 4, file_pages + 64, 96),
	   "core: a read of its own bytes and of a file's");
	is_int(memory__read(memory, 0x10000 + 2 * PAGE - 4, bytes, 8), -EFAULT,
	       "core: not beyond the segment");
	memory__free(memory);
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		snprintf(path, sizeof(path), "%s%s%s", hostile[i][0] == '/' ? "" : workdir,
			 hostile[i][0] == '/' ? "" : "/", hostile[i]);
		synthetic = make(path);
		memory = open_synthetic(&synthetic, sizeof(synthetic));
		alarm(5);
		is_int(memory__read(memory, 0x10000 + 100, bytes, 8), -EFAULT,
		       "core: no bytes of \"%s\"", hostile[i]);
		alarm(0);
		memory__free(memory);
	}
	synthetic = make(path);
	synthetic.load.p_vaddr = UINT64_MAX - 100;
	synthetic.load.p_offset = UINT64_MAX - 8;
	memory = open_synthetic(&synthetic, sizeof(synthetic));
	is_int(memory__read(memory, UINT64_MAX - 90, bytes, 8), -EFAULT, "core: offsets that wrap");
	memory__free(memory);
}

int main(void)
{
	workdir__make();
	make_mapped_file();
	test_corrupt();
	test_files();
	test_damaged_notes();
	test_later_note();
	return tap__done();
}
