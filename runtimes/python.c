// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <bpf/bpf.h>

#include "core/elf_symbols.h"
#include "core/util.h"
#include "runtimes/python_codes.h"
#include "runtimes/python_versions.h"
#include "runtimes/runtime.h"

/* CPython on x86-64 with glibc. */

#define NATIVE_ONLY "Python frames will be missing, native frames are shown"

/* PTHREAD_KEYS_MAX, which is what glibc allows */
#define TSS_KEYS_MAX 1024

/* Where the machine code of PyGILState_GetThisThreadState is looked at. */
#define STUB_BYTES_MIN 16
#define STUB_BYTES_MAX 128

struct runtime_image {
	const struct python_version *version;
	uint64_t tss_vaddr; /* of a Py_tss_t */
};

struct runtime_session {
	int procs_fd; /* borrowed from the BPF object */
	struct python_codes *codes;
};

/* --- image --- */

static bool has_symbol(const struct elf_file *file, const char *name)
{
	uint64_t vaddr;

	return elf_file__find_symbol(file, name, &vaddr, NULL) == 0;
}

static bool table_has_interpreter(const struct elf_file *file, const char *section)
{
	struct elf_symbols symbols;
	GElf_Sym sym;

	if (!elf_symbols__open(file, section, &symbols))
		return false;
	for (size_t i = 0; i < symbols.n; i++) {
		const char *name = elf_symbols__get(&symbols, i, &sym);

		if (!name || sym.st_shndx == SHN_UNDEF)
			continue;
		if (strcmp(name, "_PyRuntime") == 0 || strcmp(name, "Py_GetVersion") == 0 ||
		    strcmp(name, "_PyEval_EvalFrameDefault") == 0)
			return true;
	}
	return false;
}

static int python__detect(const struct elf_file *file)
{
	return table_has_interpreter(file, ".dynsym") || table_has_interpreter(file, ".symtab");
}

/* Major and minor from a file name like python3.9 or libpython3.9.so.1.0. */
static void version_from_path(const char *path, char *to, size_t size)
{
	const char *slash = strrchr(path, '/');
	const char *at = strstr(slash ? slash : path, "python");
	unsigned int major, minor;

	if (at && sscanf(at, "python%1u.%2u", &major, &minor) == 2)
		snprintf(to, size, "%u.%u", major, minor);
	else
		snprintf(to, size, "3.10 or older");
}

/* Py_Version is PY_VERSION_HEX: major, minor, micro (8 bits each), level and serial (4 each). */
static void format_version(uint64_t version, char *to, size_t size)
{
	unsigned int level = version >> 4 & 0xf, serial = version & 0xf;
	int n = snprintf(to, size, "%u.%u.%u", (unsigned int)(version >> 24 & 0xff),
			 (unsigned int)(version >> 16 & 0xff), (unsigned int)(version >> 8 & 0xff));

	if (level != 0xf)
		snprintf(to + n, size - n, "%s%u",
			 level == 0xa	? "a"
			 : level == 0xb ? "b"
			 : level == 0xc ? "rc"
					: "?",
			 serial);
}

static int read_version(const struct elf_file *file, uint64_t *ret)
{
	uint64_t vaddr;
	int rc = elf_file__find_symbol(file, "Py_Version", &vaddr, NULL);

	return rc ? rc : elf_file__read(file, vaddr, ret, sizeof(*ret));
}

/* Thread-specific data is found by the layout of glibc's struct pthread. */
static bool needs_glibc(const struct elf_file *file)
{
	static const char name[] = "libc.so.6";
	const Elf_Data *strings = elf_file__section(file, ".dynstr", NULL);

	return !strings || memmem(strings->d_buf, strings->d_size, name, sizeof(name));
}

/* Does this build's own code take the thread state from the Py_tss_t at `tss`? Compilers write its
 * address, or that of its key, in one of three ways: relative to the next instruction, absolute, or
 * as an offset from _PyRuntime, whose address is in a register. Looking for these 32 bits at each
 * byte spares a disassembler; that they are there by chance is out of the question. */
static bool stub_uses(const struct elf_file *file, uint64_t runtime, uint64_t tss)
{
	uint8_t stub[STUB_BYTES_MAX];
	uint64_t vaddr, size;
	uint32_t value;

	if (elf_file__find_symbol(file, "PyGILState_GetThisThreadState", &vaddr, &size) ||
	    size < STUB_BYTES_MIN)
		return false;
	size = min_of(size, sizeof(stub));
	if (elf_file__read(file, vaddr, stub, size))
		return false;
	for (size_t i = 0; i + sizeof(value) <= size; i++) {
		uint32_t next = (uint32_t)vaddr + i + sizeof(value);

		memcpy(&value, stub + i, sizeof(value));
		for (uint64_t at = tss; at <= tss + 4; at += 4)
			if (value == (uint32_t)at - next || value == (uint32_t)at ||
			    value == (uint32_t)(at - runtime))
				return true;
	}
	return false;
}

static int refuse(struct runtime_verdict *verdict, const char *why)
{
	verdict->support = RUNTIME_REFUSED;
	snprintf(verdict->reason, sizeof(verdict->reason), "CPython %s: %s; " NATIVE_ONLY,
		 verdict->version, why);
	return 0;
}

/* The version's row, or NULL and the refusal in `verdict`. */
static const struct python_version *choose_version(const struct elf_file *file,
						   struct runtime_verdict *verdict)
{
	const struct python_version *row;
	uint64_t version;

	if (read_version(file, &version)) { /* 3.11 is the first to tell */
		version_from_path(file->path, verdict->version, sizeof(verdict->version));
		refuse(verdict, "no walker for this version yet (3.11 only)");
		return NULL;
	}
	format_version(version, verdict->version, sizeof(verdict->version));
	row = version >> 24 == 3 ? python_version__find(version >> 16 & 0xff) : NULL;
	if (!row)
		refuse(verdict, "no walker for this version yet (3.11 only)");
	else if ((version >> 4 & 0xf) != 0xf)
		refuse(verdict, "no walker for pre-releases, use a final release");
	else
		return row;
	return NULL;
}

static int python__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			   struct runtime_verdict *ret_verdict)
{
	const struct python_version *version;
	struct runtime_image *image;
	uint64_t runtime;

	memset(ret_verdict, 0, sizeof(*ret_verdict));
	version = choose_version(file, ret_verdict);
	if (!version)
		return 0;
	if (elf_file__find_symbol(file, "_PyRuntime", &runtime, NULL))
		return refuse(ret_verdict, "its symbol _PyRuntime was stripped");
	if (has_symbol(file, "_Py_AddToAllObjects"))
		return refuse(ret_verdict, "built with --with-trace-refs, which moves all fields");
	if (!needs_glibc(file))
		return refuse(ret_verdict, "no walker for C libraries other than glibc");
	if (!stub_uses(file, runtime, runtime + version->runtime_tss))
		return refuse(ret_verdict, "cannot confirm where this build keeps its thread key");
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->version = version;
	image->tss_vaddr = runtime + version->runtime_tss;
	ret_verdict->support = RUNTIME_SUPPORTED;
	*ret_image = image;
	return 0;
}

static void python__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static void python__close(struct runtime_session *session)
{
	if (!session)
		return;
	python_codes__free(session->codes);
	free(session);
}

static int python__open(struct bpf_object *object, struct runtime_session **ret, struct err *err)
{
	struct runtime_session *session;
	int fd = bpf_object__find_map_fd_by_name(object, "python_procs");

	if (fd < 0)
		return err__set(err, fd, "python: BPF map python_procs: %s", strerror(-fd));
	session = calloc(1, sizeof(*session));
	if (session)
		session->codes = python_codes__new();
	if (!session || !session->codes) {
		python__close(session);
		return err__set(err, -ENOMEM, "python: out of memory");
	}
	session->procs_fd = fd;
	*ret = session;
	return 0;
}

/* --- instance --- */

/* -EINVAL if what is there is no Py_tss_t. */
static int check_key(uint32_t pid, const struct python_proc_rec *rec)
{
	uint32_t tss[2]; /* is_initialized, key */
	struct iovec local = { .iov_base = tss, .iov_len = sizeof(tss) };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)rec->tss_address,
				.iov_len = sizeof(tss) };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(tss))
		return 0; /* exiting, or not ours to read: left to the kernel half */
	if (tss[0] > 1 || (tss[0] && tss[1] >= TSS_KEYS_MAX))
		return -EINVAL;
	return 0;
}

static int python__attach(struct runtime_session *session, const struct runtime_target *target,
			  struct err *err)
{
	struct python_proc_rec rec = {
		.offsets = target->image->version->offsets,
		.tss_address = target->bias + target->image->tss_vaddr,
	};
	int rc = check_key(target->pid, &rec);

	if (rc)
		return err__set(err, rc, "python: process %u: no thread key at %#llx", target->pid,
				(unsigned long long)rec.tss_address);
	if (bpf_map_update_elem(session->procs_fd, &target->space, &rec, BPF_ANY)) {
		rc = -errno;
		return err__set(err, rc, "python: process %u: BPF map python_procs: %s",
				target->pid, strerror(-rc));
	}
	return 0;
}

static void python__detach(struct runtime_session *session, uint32_t space)
{
	bpf_map_delete_elem(session->procs_fd, &space);
}

/* --- records and names --- */

static int python__on_code(struct runtime_session *session, const struct rec_code *rec, size_t size)
{
	return python_codes__add(session->codes, rec, size);
}

static int python__symbolize(struct runtime_session *session, uint64_t key,
			     struct runtime_symbol *ret)
{
	return python_codes__symbolize(session->codes, key, ret);
}

static const char *const python_maps[] = { "python_states", "python_procs", "python_codes", NULL };

const struct runtime runtime_python = {
	.name = "python",
	.suffix = "_[py]",
	.versions = "CPython 3.11",
	.walker = WALKER_PYTHON,
	.program = "walk_python",
	.maps = python_maps,
	.cpu_map = "python_states",
	.detect = python__detect,
	.prepare = python__prepare,
	.image_free = python__image_free,
	.open = python__open,
	.close = python__close,
	.attach = python__attach,
	.detach = python__detach,
	.on_code = python__on_code,
	.symbolize = python__symbolize,
};
