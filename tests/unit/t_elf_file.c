// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>

#include "core/elf/elf_file.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static const char source[] = "int table[1000] = { 1, 2, 3 };\n"
			     "int zeros[1000];\n"
			     "int twice(int x) { return 2 * x; }\n"
			     "int main(int argc, char **argv) { (void)argv; return twice(argc) + "
			     "table[0] + zeros[0]; }\n";

static struct elf_file *open_ok(const char *name)
{
	struct elf_file *file = NULL;
	struct err err = { "" };
	int rc = elf_file__open(workdir__open(name), name, &file, &err);

	is_int(rc, 0, "open %s", name);
	if (rc) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return file;
}

/* Oracle: readelf -lW. */
static void test_segments(const char *name)
{
	uint64_t offset, vaddr, filesz, memsz, got;
	struct elf_file *file = open_ok(name);
	int n = 0, wrong = 0;
	char flags[32], line[256];
	FILE *pipe = workdir__pipe("readelf -lW %s", name);

	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line,
			   " LOAD %" SCNx64 " %" SCNx64 " %*x %" SCNx64 " %" SCNx64 " %31[^0]",
			   &offset, &vaddr, &filesz, &memsz, flags) != 5)
			continue;
		const struct elf_segment *segment = &file->segments[n++];

		wrong += segment->offset != offset || segment->vaddr != vaddr ||
			 segment->filesz != filesz || segment->memsz != memsz ||
			 segment->exec != (strchr(flags, 'E') != NULL);
		if (!filesz)
			continue;
		wrong += !elf_file__offset_to_vaddr(file, offset + filesz - 1, &got) ||
			 got != vaddr + filesz - 1;
	}
	pclose(pipe);
	ok(n > 1, "%s has segments", name);
	is_int(file->n_segments, n, "number of segments");
	is_int(wrong, 0, "segments as readelf has them");
	got = 77;
	ok(!elf_file__offset_to_vaddr(file, 1ULL << 40, &got) && got == 77, "offset beyond");
	elf_file__free(file);
}

/* Oracle: readelf -n. */
static void test_build_id(const char *name, bool want)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "", expect[256] = "";
	struct elf_file *file = open_ok(name);
	FILE *pipe = workdir__pipe("readelf -n %s | sed -n 's/.*Build ID: //p'", "plain");

	if (!fgets(expect, sizeof(expect), pipe))
		ok(false, "readelf tells the build-id");
	pclose(pipe);
	expect[strcspn(expect, "\n")] = '\0';
	for (size_t i = 0; i < file->build_id_len; i++)
		sprintf(hex + 2 * i, "%02x", file->build_id[i]);
	is_str(hex, want ? expect : "", "build-id of %s", name);
	elf_file__free(file);
}

/* Oracles: nm -S, objcopy -O binary. */
static void test_contents(void)
{
	struct elf_file *file = open_ok("plain");
	uint64_t vaddr = 0, size = 0, want_vaddr = 0, want_size = 0;
	unsigned char *text, buf[64];
	GElf_Shdr shdr;
	Elf_Data *data;
	size_t len;
	FILE *pipe;

	pipe = workdir__pipe("nm -S plain | grep ' twice$'");
	ok(fscanf(pipe, "%" SCNx64 " %" SCNx64, &want_vaddr, &want_size) == 2, "nm knows twice");
	pclose(pipe);
	is_int(elf_file__find_symbol(file, "twice", &vaddr, &size), 0, "find_symbol");
	is_int(vaddr, want_vaddr, "address");
	is_int(size, want_size, "size");
	is_int(elf_file__find_symbol(file, "twic", &vaddr, NULL), -ENOENT, "no prefix match");
	is_int(elf_file__find_symbol(file, "__libc_start_main", &vaddr, NULL), -ENOENT,
	       "undefined");

	workdir__run("objcopy -O binary -j .text plain text.bin");
	text = workdir__read("text.bin", &len);
	data = elf_file__section(file, ".text", &shdr);
	ok(data && data->d_size == len && !memcmp(data->d_buf, text, len), ".text");
	is_int(elf_file__read(file, shdr.sh_addr + 3, buf, sizeof(buf)), 0, "read");
	ok(!memcmp(buf, text + 3, sizeof(buf)), "what was read");
	free(text);
	ok(!elf_file__section(file, ".bss", NULL), "no data for .bss");
	ok(!elf_file__section(file, ".none", NULL), "no such section");

	is_int(elf_file__find_symbol(file, "zeros", &vaddr, NULL), 0, "find zeros");
	is_int(elf_file__read(file, vaddr + 64, buf, 4), -EFAULT, "memory that no file holds");
	is_int(elf_file__read(file, UINT64_MAX - 2, buf, 8), -EFAULT, "end of the address space");
	is_int(elf_file__read(file, 1ULL << 40, buf, 1), -EFAULT, "unmapped");
	elf_file__free(file);
}

static void test_compressed(void)
{
	struct elf_file *file;
	unsigned char *want;
	GElf_Shdr shdr;
	Elf_Data *data;
	size_t len;

	workdir__run("objcopy --compress-debug-sections=zlib plain packed");
	workdir__run("objcopy -O binary --set-section-flags .debug_info=alloc -j .debug_info plain "
		     "info.bin");
	want = workdir__read("info.bin", &len);
	file = open_ok("packed");
	for (int i = 0; i < 2; i++) {
		data = elf_file__section(file, ".debug_info", &shdr);
		ok(data && data->d_size == len && !memcmp(data->d_buf, want, len),
		   "decompressed, time %d", i + 1);
	}
	free(want);
	elf_file__free(file);
}

static void test_memory(void)
{
	struct elf_file *file = NULL;
	uint64_t vaddr;
	size_t len;
	unsigned char *image = workdir__read("packed", &len);
	GElf_Shdr frames = {}, symbols = {}, generated = {};

	is_int(elf_file__open_memory(image, len, "[x]", &file, NULL), 0, "memory image");
	is_int(file->fd, -1, "has no descriptor");
	is_str(file->path, "[x]", "path");
	is_int(elf_file__find_symbol(file, "twice", &vaddr, NULL), 0, "symbol in it");
	ok(elf_file__section(file, ".debug_info", NULL), "compressed section in it");
	ok(!file->generated, "its own section headers are used");
	elf_file__section(file, ".eh_frame", &frames);
	elf_file__section(file, ".dynsym", &symbols);
	elf_file__free(file);

	/* A header without a section table, as sstrip leaves it. */
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)image;
	ehdr->e_shoff = 0;
	ehdr->e_shnum = ehdr->e_shstrndx = 0;
	is_int(elf_file__open_memory(image, len, "[y]", &file, NULL), 0, "no section headers");
	ok(file->build_id_len > 0, "build-id from the program headers");
	ok(file->generated && elf_file__section(file, ".text", NULL),
	   "code by the program headers");
	ok(elf_file__section(file, ".eh_frame", &generated) &&
		   generated.sh_addr == frames.sh_addr && generated.sh_size == frames.sh_size,
	   "call frame information by PT_GNU_EH_FRAME");
	ok(elf_file__section(file, ".dynsym", &generated) && generated.sh_addr == symbols.sh_addr &&
		   generated.sh_size == symbols.sh_size,
	   "symbols by PT_DYNAMIC, as many as there are");
	elf_file__free(file);
	free(image);
	elf_file__free(NULL);
}

/* Other names end with the requested name, and precede and follow it. A linker that does not merge
 * the ends of names leaves such names. */
static void test_shared_ends(void)
{
	static const char others[][9] = { "a_twicex", "z_twicex" };
	uint64_t vaddr = 0, want = 1;
	struct elf_file *file = NULL;
	unsigned char *image, *at;
	FILE *pipe;
	size_t len;

	workdir__write("ends.c", "int a_twicex, z_twicex; int o_twice = 3; int main(void) { return "
				 "a_twicex + z_twicex + o_twice; }\n");
	workdir__run("gcc -o ends ends.c && objcopy --redefine-sym o_twice=twice ends");
	pipe = workdir__pipe("nm ends | grep ' twice$'");
	ok(fscanf(pipe, "%" SCNx64, &want) == 1, "nm knows it");
	pclose(pipe);
	image = workdir__read("ends", &len);
	for (size_t i = 0; i < 2; i++) {
		at = memmem(image, len, others[i], 9);
		ok(at, "%s is there", others[i]);
		if (at)
			strcpy((char *)at, "x_twice");
	}
	is_int(elf_file__open_memory(image, len, "[z]", &file, NULL), 0, "names with one end");
	is_int(elf_file__find_symbol(file, "twice", &vaddr, NULL), 0, "found among them");
	is_int(vaddr, want, "the right one");
	is_int(elf_file__find_symbol(file, "wice", &vaddr, NULL), -ENOENT, "no end of a name");
	elf_file__free(file);
	free(image);
}

static void check_refused(const char *what, const void *data, size_t len, int want)
{
	struct elf_file *file = (void *)&file, *before = file;
	struct err err = { "" };

	is_int(elf_file__open_memory(data, len, "bad", &file, &err), want, "%s", what);
	ok(file == before && !strncmp(err.text, "bad: ", 5), "%s: message, result untouched", what);
}

static void test_refusals(void)
{
	struct elf_file *file = NULL;
	size_t len;
	unsigned char *image = workdir__read("plain", &len);
	Elf64_Ehdr *ehdr = (Elf64_Ehdr *)image;
	Elf64_Phdr *phdr = (Elf64_Phdr *)(image + ehdr->e_phoff);
	Elf64_Ehdr good = *ehdr;
	int fd;

	check_refused("empty", image, 0, -ENOEXEC);
	check_refused("text", "#!/bin/sh\necho not an ELF file\n", 31, -ENOEXEC);
	check_refused("cut header", image, 40, -EBADMSG);
	check_refused("cut program headers", image, sizeof(good) + 10, -EBADMSG);
	ehdr->e_machine = EM_AARCH64;
	check_refused("other machine", image, len, -ENOTSUP);
	*ehdr = good;
	ehdr->e_ident[EI_CLASS] = ELFCLASS32;
	check_refused("32 bits", image, len, -ENOTSUP);
	*ehdr = good;
	ehdr->e_type = ET_REL;
	check_refused("object file", image, len, -ENOTSUP);
	*ehdr = good;
	while (phdr->p_type != PT_LOAD)
		phdr++;
	phdr->p_memsz = phdr->p_filesz = UINT64_MAX - 100;
	phdr->p_vaddr = 4096;
	check_refused("segment beyond the address space", image, len, -EBADMSG);
	free(image);

	fd = open(workdir, O_RDONLY | O_DIRECTORY);
	is_int(elf_file__open(fd, workdir, &file, NULL), -ENOEXEC, "directory");
	is_int(fcntl(fd, F_GETFD), -1, "descriptor is closed on failure");
}

int main(void)
{
	workdir__make();
	workdir__write("a.c", source);
	workdir__run("gcc -g -O1 -Wl,--build-id a.c -o plain");
	workdir__run("gcc -O1 -no-pie -Wl,--build-id=none a.c -o nopie");
	workdir__run("strip -o stripped plain");
	test_segments("plain");
	test_segments("nopie");
	test_build_id("plain", true);
	test_build_id("stripped", true);
	test_build_id("nopie", false);
	test_contents();
	test_compressed();
	test_memory();
	test_shared_ends();
	test_refusals();
	return tap__done();
}
