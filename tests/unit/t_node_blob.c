// SPDX-License-Identifier: GPL-2.0-or-later
/* Files with a blob of V8, as V8's build embeds it, and the blob of Node. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "runtimes/node/node_blob.h"
#include "runtimes/node/node_builtins.h"
#include "tests/tap.h"

#include "tests/unit/workdir.h"

#define NODE	   "/usr/bin/node"
#define CODE_BYTES (300 << 10)
#define DATA_BYTES 5000
#define CODE_AT	   4096 /* in .text; a multiple of 64 */

static uint8_t code[CODE_BYTES], data[DATA_BYTES];
static struct err err;

/* Computes the checksum of RFC 1950, but from 0. */
static uint32_t adler(const uint8_t *bytes, size_t n)
{
	uint32_t a = 0, b = 0;

	for (size_t i = 0; i < n; i++) {
		a = (a + bytes[i]) % 65521;
		b = (b + a) % 65521;
	}
	return b << 16 | a;
}

static void fill(uint8_t *bytes, size_t n)
{
	uint32_t state = 1;

	for (size_t i = 0; i < n; i++) {
		state = state * 1664525 + 1013904223;
		bytes[i] = state >> 24;
	}
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	file = fopen(path, "w");

	if (file) {
		fwrite(bytes, n, 1, file);
		fclose(file);
	}
}

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && !elf_file__open(fd, path, &file, &err) ? file : NULL;
}

/* Returns the bytes of the range that is found in a program with the two pieces. */
static struct runtime_range find(uint64_t *ret_text)
{
	static const char source[] =
		".section .rodata\n.balign 64\n.space 104\n.incbin \"data.bin\"\n"
		".long 307200, 5000\n.text\n.globl _start\n.balign 64\n_start:\n"
		".space 4096, 0x90\n.incbin \"code.bin\"\n.space 512, 0x90\n";
	struct runtime_range found = {};
	struct elf_file *file;
	GElf_Shdr shdr = {};
	char path[256];

	write_file("code.bin", code, sizeof(code));
	write_file("data.bin", data, sizeof(data));
	write_file("blob.s", source, sizeof(source) - 1);
	workdir__run("as -o blob.o blob.s && ld -o blob blob.o");
	snprintf(path, sizeof(path), "%s/blob", workdir);
	file = open_file(path);
	if (!file || !elf_file__section(file, ".text", &shdr) || node_blob__find(file, &found))
		found = (struct runtime_range) {};
	*ret_text = shdr.sh_addr;
	elf_file__free(file);
	return found;
}

static void test_synthetic(void)
{
	uint64_t hashes[2], text;
	struct runtime_range found;

	fill(code, sizeof(code));
	fill(data, sizeof(data));
	hashes[1] = adler(code, sizeof(code));
	memcpy(data + 8, &hashes[1], sizeof(hashes[1]));
	hashes[0] = adler(data + 16, sizeof(data) - 16);
	memcpy(data, &hashes[0], sizeof(hashes[0]));
	found = find(&text);
	ok(found.start == text + CODE_AT && found.end == found.start + CODE_BYTES,
	   "the code with the checksum is found");
	code[CODE_BYTES / 2] ^= 1;
	found = find(&text);
	ok(!found.start && !found.end, "... none if a byte of it differs");
	code[CODE_BYTES / 2] ^= 1;
	data[DATA_BYTES / 2] ^= 1;
	found = find(&text);
	ok(!found.start && !found.end, "... or if a byte of its description does");
}

/* The symbols are the oracle. */
static void test_node(void)
{
	struct elf_file *file = open_file(NODE);
	struct node_builtins builtins = {};
	struct runtime_range found = {};

	if (!file || node_builtins__read(file, &builtins) || !builtins.all.end)
		tap__skip("no symbols", "Node's own");
	else
		ok(!node_blob__find(file, &found) && found.start <= builtins.all.start &&
			   found.end >= builtins.all.end &&
			   found.end - found.start < builtins.all.end - builtins.all.start + 8192,
		   "Node's own, where its symbols are");
	node_builtins__done(&builtins);
	elf_file__free(file);
}

int main(void)
{
	workdir__make();
	test_synthetic();
	test_node();
	return tap__done();
}
