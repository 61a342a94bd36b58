// SPDX-License-Identifier: GPL-2.0-or-later
/* jvm_facts PID [scopes]: prints the data that runtimes/jvm_*.c find in a running JVM, as lines of
 * tab-separated words. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/elf/elf_file.h"
#include "core/target/procfs.h"
#include "runtimes/jvm/jvm_blobs.h"
#include "runtimes/jvm/jvm_flags.h"
#include "runtimes/jvm/jvm_methods.h"
#include "runtimes/jvm/jvm_nmethod.h"
#include "runtimes/jvm/jvm_vm.h"

static int open_vm(uint32_t pid, struct jvm_vm **ret, struct err *err)
{
	struct procfs_mappings mappings = {};
	struct elf_file *file = NULL;
	int rc = procfs__mappings(pid, &mappings);

	for (size_t i = 0; !rc && i < mappings.n; i++) {
		const struct procfs_mapping *mapping = &mappings.list[i];
		const char *base = strrchr(mapping->path, '/');
		uint64_t vaddr;

		if (!base || strcmp(base, "/libjvm.so") != 0)
			continue;
		rc = elf_file__open(procfs__open_mapping(pid, mapping), mapping->path, &file, err);
		if (rc)
			break;
		if (!elf_file__offset_to_vaddr(file, mapping->offset, &vaddr))
			rc = -EBADMSG;
		else
			rc = jvm_vm__open(pid, mapping->start - vaddr, file, ret, err);
		break;
	}
	if (!rc && !file)
		rc = err__set(err, -ENOENT, "no libjvm.so in process %u", pid);
	elf_file__free(file);
	procfs_mappings__done(&mappings);
	return rc;
}

#define BYTECODES_MAX 4096 /* bytecodes whose lines are printed */

struct facts {
	struct jvm_vm *vm;
	struct jvm_methods *methods;
	bool with_scopes;
};

static bool scopes_equal(const struct jvm_scope *a, const struct jvm_scope *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].method != b[i].method || a[i].bci != b[i].bci)
			return false;
	return true;
}

/* Prints "scopes", the last offset into the code that has them as a return address, and for each
 * scope, innermost first, method, bytecode index, line. */
static void print_scopes(uint32_t offset, const struct jvm_scope *scopes, size_t n)
{
	printf("scopes\t%u", offset);
	for (size_t i = 0; i < n; i++)
		printf("\t%s@%d:%u", scopes[i].method ? scopes[i].method->name : "?",
		       (int)scopes[i].bci, jvm_method__line(scopes[i].method, scopes[i].bci));
	printf("\n");
}

static void print_all_scopes(struct jvm_nmethod *nmethod, uint32_t size)
{
	struct jvm_scope scopes[JVM_SCOPES_MAX], next[JVM_SCOPES_MAX];
	size_t n = 0, n_next;

	for (uint32_t at = 0; at < size; at++) {
		n_next = jvm_nmethod__scopes(nmethod, at, 0, next);
		if (at && (n != n_next || !scopes_equal(scopes, next, n)))
			print_scopes(at - 1, scopes, n);
		memcpy(scopes, next, n_next * sizeof(*next));
		n = n_next;
	}
	if (size)
		print_scopes(size - 1, scopes, n);
}

/* Prints "stub", the first and last address that have a name, and the name. */
static void print_stubs(const struct jvm_vm *vm, const struct jvm_blob *blob)
{
	const char *name, *known = NULL;
	uint64_t start = 0;

	for (uint64_t pc = blob->code; pc <= blob->end; pc++) {
		name = pc < blob->end ? jvm_vm__stub(vm, pc) : NULL;
		if (name == known)
			continue;
		if (known)
			printf("stub\t%" PRIx64 "\t%" PRIx64 "\t%s\n", start, pc - 1, known);
		known = name;
		start = pc;
	}
}

/* Prints "lines", the method, and each bytecode whose line differs from that of the previous one:
 * "BCI:LINE ..." */
static void print_lines(const struct jvm_method *method)
{
	uint32_t line, before = 0;

	printf("lines\t%s\t", method->name);
	for (uint32_t bci = 0; bci < BYTECODES_MAX; bci++, before = line) {
		line = jvm_method__line(method, bci);
		if (line != before)
			printf(" %u:%u", bci, line);
	}
	printf("\n");
}

/* Checks that code cannot be opened with the id of another compilation. */
static void check_stale(struct facts *facts, const struct jvm_blob *blob)
{
	struct jvm_nmethod *nmethod;
	int rc = jvm_nmethod__open(facts->vm, blob->address, blob->compile_id + 1, facts->methods,
				   &nmethod);

	if (rc != -ENOENT)
		printf("stale\t%" PRIx64 "\t%d\n", blob->address, rc);
	if (!rc)
		jvm_nmethod__free(nmethod);
}

static int print_blob(const struct jvm_blob *blob, void *arg)
{
	struct jvm_nmethod *nmethod;
	struct facts *facts = arg;
	int rc;

	printf("blob\t%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\t%s\n", blob->address, blob->code,
	       blob->end, blob->name);
	if (facts->with_scopes && strncmp(blob->name, "StubRoutines", 12) == 0)
		print_stubs(facts->vm, blob);
	if (strcmp(blob->name, "nmethod") != 0 && strcmp(blob->name, "native nmethod") != 0)
		return 0;
	rc = jvm_nmethod__open(facts->vm, blob->address, blob->compile_id, facts->methods,
			       &nmethod);
	if (rc) {
		printf("unreadable\t%" PRIx64 "\t%s\n", blob->address, strerror(-rc));
		return 0;
	}
	printf("nmethod\t%" PRIx64 "\t%u\t%s\t%s\n", blob->address, blob->compile_id,
	       jvm_nmethod__method(nmethod)->name,
	       jvm_nmethod__method(nmethod)->file ? jvm_nmethod__method(nmethod)->file : "-");
	if (facts->with_scopes) {
		print_lines(jvm_nmethod__method(nmethod));
		print_all_scopes(nmethod, blob->end - blob->code);
		check_stale(facts, blob);
	}
	jvm_nmethod__free(nmethod);
	return 0;
}

/* Prints "flag", its name, and 0, 1, or '?' if there is no flag of that name. */
static void print_flag(const struct jvm_vm *vm, const char *name)
{
	bool value;

	printf("flag\t%s\t%c\n", name, jvm_flags__bool(vm, name, &value) ? '?' : '0' + value);
}

static void print_vm(struct facts *facts)
{
	const struct jvm_vm *vm = facts->vm;
	const struct jvm_proc_rec *rec = jvm_vm__rec(vm);
	const struct jvm_offsets *offsets = &rec->offsets;

	printf("version\t%s\n", jvm_vm__version(vm));
	printf("offsets\t%u %u %u %u %u %u %u %u %u %u %u %u\n", offsets->blob_name,
	       offsets->blob_frame_size, offsets->blob_frame_complete,
	       offsets->frame_complete_is_i16, offsets->blob_code, offsets->code_is_offset,
	       offsets->nmethod_method, offsets->nmethod_compile_id, offsets->heap_block,
	       offsets->method_const_method, offsets->const_method_bytes,
	       offsets->const_method_code_size);
	print_flag(vm, "DisableAttachMechanism");
	print_flag(vm, "ReduceSignalUsage");
	print_flag(vm, "NoSuchFlag");
	printf("interpreter\t%llx\t%llx\n", rec->interpreter_start, rec->interpreter_end);
	printf("names\t%llx\t%llx\n", rec->nmethod_name, rec->native_nmethod_name);
	for (size_t i = 0; i < rec->n_heaps; i++) {
		const struct jvm_heap *heap = &rec->heaps[i];

		printf("heap\t%llx\t%llx\t%llx\t%u\n", heap->low, heap->high, heap->segmap,
		       heap->segment_log2);
		jvm_blobs__each(vm, i, SIZE_MAX, print_blob, facts);
	}
}

int main(int argc, char **argv)
{
	struct facts facts = { .with_scopes = argc == 3 };
	struct jvm_vm *vm;
	struct err err = {};
	int rc;

	if (argc != 2 && argc != 3)
		return 2;
	rc = open_vm(strtoul(argv[1], NULL, 10), &vm, &err);
	if (rc) {
		printf("failed\t%s\t%s\n", strerrorname_np(-rc), err.text);
		return 1;
	}
	facts.vm = vm;
	if (jvm_methods__new(vm, &facts.methods))
		return 1;
	print_vm(&facts);
	jvm_methods__free(facts.methods);
	jvm_vm__free(vm);
	return 0;
}
