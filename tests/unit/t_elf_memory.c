// SPDX-License-Identifier: GPL-2.0-or-later
/* The C library of the test process, read from its memory, and headers that must not be trusted. */
#include "core/elf/elf_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/memory.h"
#include "core/base/quota.h"
#include "tests/tap.h"

static struct memory *self;

static bool read_self(void *ctx, uint64_t address, void *to, size_t size)
{
	(void)ctx;
	return !memory__read(self, address, to, size);
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(uint64_t *)ret = info->dlpi_addr;
	return 1;
}

static void test_libc(void)
{
	struct elf_memory memory = { .read = read_self };
	struct elf_file *file = NULL;
	uint64_t bias = 0, vaddr = 0, function = (uintptr_t)dlsym(RTLD_DEFAULT, "getppid");

	dl_iterate_phdr(find_libc, &memory.header);
	ok(elf_memory__has_code(&memory, function), "the image has the function");
	ok(!elf_memory__has_code(&memory, memory.header), "its header is no code");
	if (!is_int(elf_memory__copy(&memory, "libc", NULL, &file, &bias, NULL), 0, "is copied"))
		return;
	is_int(bias, memory.header, "with its bias");
	is_int(elf_file__find_symbol(file, "getppid", &vaddr, NULL), 0, "has its symbols");
	is_int(vaddr + bias, function, "at their addresses");
	ok(elf_file__section(file, ".eh_frame", NULL), "has call frame information");
	ok(file->build_id_len > 0, "and a build-id");
	ok(elf_memory__is_same(&memory, file), "the memory is what was copied");
	elf_file__free(file);
}

struct forged {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdrs[2];
};

static int copy_forged(struct forged *forged)
{
	struct elf_memory memory = { .read = read_self, .header = (uintptr_t)forged };
	struct elf_file *file;
	uint64_t bias;
	int rc = elf_memory__copy(&memory, "forged", NULL, &file, &bias, NULL);

	if (!rc)
		elf_file__free(file);
	return rc;
}

static void test_forged(void)
{
	static const struct forged good = { .ehdr = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
								   ELFDATA2LSB, EV_CURRENT },
						      .e_type = ET_DYN,
						      .e_machine = EM_X86_64,
						      .e_version = EV_CURRENT,
						      .e_phoff = sizeof(Elf64_Ehdr),
						      .e_ehsize = sizeof(Elf64_Ehdr),
						      .e_phentsize = sizeof(Elf64_Phdr),
						      .e_phnum = 2 },
					    .phdrs = { { .p_type = PT_LOAD,
							 .p_flags = PF_R | PF_X,
							 .p_filesz = 4096,
							 .p_memsz = 4096 },
						       { .p_type = PT_LOAD,
							 .p_flags = PF_R,
							 .p_offset = 4096,
							 .p_vaddr = 4096,
							 .p_filesz = 4096,
							 .p_memsz = 4096 } } };
	struct forged *forged =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*forged = good;
	is_int(copy_forged(forged), 0, "a header that makes sense");
	forged->phdrs[1].p_filesz = forged->phdrs[1].p_memsz = 1ULL << 40;
	is_int(copy_forged(forged), -EFBIG, "a segment of 1 TB");
	forged->phdrs[1].p_filesz = forged->phdrs[1].p_memsz = 100 << 20;
	is_int(copy_forged(forged), 0, "100 MB, most of which is not mapped, are zeroes");
	forged->phdrs[1].p_offset = UINT64_MAX - 4096;
	is_int(copy_forged(forged), -EBADMSG, "an offset that wraps");
	*forged = good;
	forged->phdrs[1].p_filesz = 8192;
	is_int(copy_forged(forged), -EBADMSG, "more in the file than in memory");
	*forged = good;
	forged->phdrs[0].p_offset = 1 << 20;
	is_int(copy_forged(forged), -EBADMSG, "no segment has the header");
	*forged = good;
	forged->ehdr.e_phnum = 60000;
	is_int(copy_forged(forged), -ENOEXEC, "60,000 segments");
	forged->ehdr.e_phnum = 2;
	forged->ehdr.e_phoff = 1ULL << 40;
	is_int(copy_forged(forged), -ENOEXEC, "program headers far away");
}

int main(void)
{
	if (memory__of_self(&self))
		return 1;
	test_libc();
	test_forged();
	memory__free(self);
	return tap__done();
}
