// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/uprobe_multi.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/util.h"

/* From include/uapi/linux/bpf.h at Linux 6.12, as the build's headers may be older. */
#define TRACE_UPROBE_MULTI 48
#define AT_RETURN	   1 /* BPF_F_UPROBE_MULTI_RETURN */

struct link_create {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, pad;
};

static int create(struct link_create *attr)
{
	int fd = syscall(SYS_bpf, BPF_LINK_CREATE, attr, sizeof(*attr));

	return fd < 0 ? -errno : fd;
}

static int load_nothing(void)
{
	/* r0 = 0; exit */
	static const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = TRACE_UPROBE_MULTI);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "multi", "GPL", code, ARRAY_SIZE(code), &opts);
}

/* Probes for support. A kernel with uprobe_multi rejects the path, which is not a regular file,
 * with EBADF. A kernel that treats a PID as that of one thread accepts the PID -1 and then rejects
 * the path. A kernel with correct PIDs rejects -1 first, with EINVAL. (libbpf uses the same
 * test.) */
static bool ask(void)
{
	uint64_t offset = 0;
	struct link_create attr = { .attach_type = TRACE_UPROBE_MULTI,
				    .path = (uintptr_t) "/",
				    .offsets = (uintptr_t)&offset,
				    .cnt = 1 };
	int fd = load_nothing();
	bool works;

	if (fd < 0)
		return false;
	attr.prog_fd = fd;
	works = create(&attr) == -EBADF;
	attr.pid = -1;
	works = works && create(&attr) == -EINVAL;
	close(fd);
	return works;
}

bool uprobe_multi__works(void)
{
	static int known; /* 1: no, 2: yes */

	if (!known)
		known = 1 + ask();
	return known == 2;
}

int uprobe_multi__set(struct bpf_program *program)
{
	return bpf_program__set_expected_attach_type(program, TRACE_UPROBE_MULTI);
}

bool uprobe_multi__is_set(const struct bpf_program *program)
{
	return bpf_program__expected_attach_type(program) == TRACE_UPROBE_MULTI;
}

int uprobe_multi__attach(const struct bpf_program *program, const char *path, pid_t pid,
			 const struct uprobe_multi_places *places)
{
	struct link_create attr = { .prog_fd = bpf_program__fd(program),
				    .attach_type = TRACE_UPROBE_MULTI,
				    .path = (uintptr_t)path,
				    .offsets = (uintptr_t)places->offsets,
				    .ref_ctr_offsets = (uintptr_t)places->semaphores,
				    .cookies = (uintptr_t)places->cookies,
				    .cnt = places->n,
				    .multi_flags = places->at_return ? AT_RETURN : 0,
				    .pid = pid > 0 ? pid : 0 };

	return create(&attr);
}
