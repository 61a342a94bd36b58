// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/c_library.h"

#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/x86_code.h"

/* struct pthread (nptl/descr.h), all versions: pid_t tid, behind 704 bytes of header and the two
 * pointers of a list. */
static const struct c_library glibc = { .tid = 720 };

/* Offsets in musl's struct pthread (src/internal/pthread_impl.h). The offset of `tsd` identifies
 * the version, and thereby the offset of `tid`. */
static const struct c_library musls[] = {
	{ .values = 128, .tid = 48 }, /* from 1.2.2 on, without canary2 */
	{ .values = 136, .tid = 56 }, /* 1.1.22 to 1.2.1 */
	{ .values = 152, .tid = 56 }, /* 1.1.9 to 1.1.21 */
	{ .values = 144, .tid = 48 }, /* 1.1.3 to 1.1.8 */
};

#define VALUES_MIN 64 /* after the members whose offsets assembly uses */
#define VALUES_MAX 1024

/* --- musl --- */

/* Returns the offset of tsd, or 0 if the function is not musl's pthread_getspecific. That is
 * `return self->tsd[k]`: mov %fs:0,%A; mov tsd(%A),%B; mov (%B,%k,8),%rax. */
static uint32_t values_at(const struct x86_stub *stub)
{
	int self = -1, array = -1; /* registers */
	uint32_t found = 0;

	for (size_t i = 0; i + 4 <= stub->size; i++) {
		const uint8_t *code = stub->code + i;

		if (x86_stub__has(stub, i, "\x64\x48\x8b", 3) && (code[3] & 0xc7) == 0x04 &&
		    x86_stub__has(stub, i + 4, "\x25\0\0\0\0", 5)) {
			self = code[3] >> 3;
			i += 8;
		} else if (self >= 0 && code[0] == 0x48 && code[1] == 0x8b &&
			   (code[2] & 0xc7) == (0x80 | self) && i + 7 <= stub->size) {
			found = x86_stub__value(stub, i + 3);
			array = code[2] >> 3 & 7;
			self = -1;
		} else if (array >= 0 && code[0] == 0x48 && code[1] == 0x8b && code[2] == 0x04 &&
			   code[3] >> 6 == 3 && (code[3] & 7) == array) {
			return found;
		}
	}
	return 0;
}

int c_library__of_musl(const struct elf_file *file, struct c_library *ret)
{
	struct x86_stub stub;
	uint32_t values;

	if (x86_stub__read(file, "pthread_getspecific", &stub))
		return -ENOENT;
	values = values_at(&stub);
	if (values < VALUES_MIN || values > VALUES_MAX || values % 8)
		return -ENOENT;
	*ret = (struct c_library) { .values = values };
	for (size_t i = 0; i < ARRAY_SIZE(musls); i++)
		if (musls[i].values == values)
			ret->tid = musls[i].tid;
	return 0;
}

/* Returns true if the file has a name that musl installs, or that distributions use. */
static bool may_be_musl(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "ld-musl-", 8) || !strncmp(name, "libc.musl-", 10) ||
	       !strcmp(name, "libc.so");
}

static int read_mapping(uint32_t pid, const struct procfs_mapping *mapping, struct c_library *ret)
{
	struct elf_file *file;
	int fd = procfs__open_mapping(pid, mapping), rc;

	if (fd < 0)
		return fd;
	rc = elf_file__open(fd, mapping->path, &file, NULL);
	if (rc)
		return rc;
	rc = c_library__of_musl(file, ret);
	elf_file__free(file);
	return rc;
}

/* --- files and processes --- */

/* Returns true if the file needs a library with that name. */
static bool needs(const Elf_Data *strings, const char *name)
{
	return memmem(strings->d_buf, strings->d_size, name, strlen(name) + 1);
}

bool c_library__is_supported(const struct elf_file *file)
{
	const Elf_Data *strings = elf_file__section(file, ".dynstr", NULL);

	return !strings || needs(strings, "libc.so.6") || needs(strings, "libc.so") ||
	       needs(strings, "libc.musl-x86_64.so.1");
}

int c_library__find(uint32_t pid, const struct elf_file *file, struct c_library *ret)
{
	struct procfs_mappings mappings = {};
	bool is_there = false;
	int rc = -ENOENT;

	if (procfs__mappings(pid, &mappings))
		mappings.n = 0; /* exiting */
	for (size_t i = 0; i < mappings.n && rc; i++) {
		if (mappings.list[i].anonymous || !may_be_musl(mappings.list[i].path))
			continue;
		is_there = true;
		rc = read_mapping(pid, &mappings.list[i], ret);
	}
	procfs_mappings__done(&mappings);
	if (!rc)
		return 0;
	if (is_there)
		return -ENOTSUP;
	if (c_library__of_musl(file, ret))
		*ret = glibc;
	return 0;
}
