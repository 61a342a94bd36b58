// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/waiting.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"

#define MAP	  "waiting"
#define READ_SIZE (512U << 10)

int waiting__put(const struct kernel_half *half, uint32_t tid, const struct waiting_start *start)
{
	struct waiting_rec rec = { .off_ns = start->since_ns,
				   .exec_ns = start->exec_ns,
				   .state = start->state };

	if (bpf_map_update_elem(kernel_half__map_fd(half, MAP), &tid, &rec, BPF_NOEXIST))
		return errno == EEXIST ? 0 : -errno;
	return 0;
}

bool waiting__get(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret)
{
	return !bpf_map_lookup_elem(kernel_half__map_fd(half, MAP), &tid, ret) && ret->off_ns;
}

bool waiting__take(const struct kernel_half *half, uint32_t tid, struct waiting_rec *ret)
{
	return !bpf_map_lookup_and_delete_elem(kernel_half__map_fd(half, MAP), &tid, ret) &&
	       ret->off_ns;
}

/* Reads all records. One read() returns as many whole records as fit into the kernel's buffer. */
static int read_all(int fd, char **ret_bytes, size_t *ret_n)
{
	size_t n_bytes = 0, cap = 0;
	char *bytes = NULL;
	ssize_t n;

	do {
		if (array__reserve(&bytes, &cap, n_bytes + READ_SIZE, 1)) {
			free(bytes);
			return -ENOMEM;
		}
		n = read(fd, bytes + n_bytes, READ_SIZE);
		n_bytes += max_of(n, 0);
	} while (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)));
	if (n < 0) {
		free(bytes);
		return -errno;
	}
	*ret_bytes = bytes;
	*ret_n = n_bytes;
	return 0;
}

/* a program of the kernel half that writes records of tasks */
struct waiting_lister {
	struct bpf_object *object;
	struct bpf_link *link;
};

void waiting_lister__free(struct waiting_lister *lister)
{
	if (!lister)
		return;
	bpf_link__destroy(lister->link);
	bpf_object__close(lister->object);
	free(lister);
}

#define PURPOSE "cannot list the waiting threads"

static int failed(int code, struct err *err)
{
	return err__set(err, code, PURPOSE ": %s", strerror(-code));
}

static int open_lister(const struct kernel_half *half, const char *program,
		       struct waiting_lister **ret, struct err *err)
{
	const char *const programs[] = { program, NULL };
	struct waiting_lister *lister = calloc(1, sizeof(*lister));
	int code = lister ? kernel_half__beside(half, programs, &lister->object) : -ENOMEM;

	if (code) {
		failed(code, err);
		goto out;
	}
	code = kernel_subset__load_object(lister->object, err);
	if (code) {
		err__prefix(err, code, PURPOSE);
		goto out;
	}
	lister->link = bpf_program__attach_iter(
		bpf_object__find_program_by_name(lister->object, program), NULL);
	if (!lister->link)
		code = failed(-errno, err);
out:
	if (code)
		waiting_lister__free(lister);
	else
		*ret = lister;
	return code;
}

/* Runs the program. The result consists of whole records. */
static int run_lister(const struct waiting_lister *lister, char **ret_bytes, size_t *ret_n,
		      struct err *err)
{
	int fd = bpf_iter_create(bpf_link__fd(lister->link));
	int code = fd < 0 ? -errno : read_all(fd, ret_bytes, ret_n);

	close_fd(&fd);
	return code ? failed(code, err) : 0;
}

static int iterate(const struct kernel_half *half, const char *program, char **ret_bytes,
		   size_t *ret_n, struct err *err)
{
	struct waiting_lister *lister;
	int ret = open_lister(half, program, &lister, err);

	if (ret)
		return ret;
	ret = run_lister(lister, ret_bytes, ret_n, err);
	waiting_lister__free(lister);
	return ret;
}

int waiting__note_rseq(const struct kernel_half *half, struct err *err)
{
	const struct chain_program older = { CHAIN_TRACEPOINT, "off_cpu_over" };
	char *bytes = NULL;
	size_t n;
	int ret;

	if (bpf_program__fd(kernel_half__program(half, &older)) < 0)
		return 0;
	ret = iterate(half, "off_cpu_note_rseq", &bytes, &n, err);
	free(bytes);
	return ret;
}

int waiting_lister__new(const struct kernel_half *half, struct waiting_lister **ret,
			struct err *err)
{
	return open_lister(half, "list_threads", ret, err);
}

int waiting_lister__list(const struct waiting_lister *lister, struct waiting_thread **ret_list,
			 size_t *ret_n, struct err *err)
{
	char *bytes = NULL;
	size_t n = 0;
	int ret = run_lister(lister, &bytes, &n, err);

	*ret_list = (struct waiting_thread *)bytes;
	*ret_n = n / sizeof(**ret_list);
	return ret;
}

int waiting__list(const struct kernel_half *half, struct waiting_thread **ret_list, size_t *ret_n,
		  struct err *err)
{
	struct waiting_lister *lister;
	int ret = waiting_lister__new(half, &lister, err);

	if (ret)
		return ret;
	ret = waiting_lister__list(lister, ret_list, ret_n, err);
	waiting_lister__free(lister);
	return ret;
}

int waiting__calls(struct kernel_half *half, bool taken, struct call_rec **ret_list, size_t *ret_n,
		   struct err *err)
{
	char *bytes = NULL;
	size_t n = 0;
	int ret;

	kernel_half__take_calls(half, taken);
	ret = iterate(half, "list_calls", &bytes, &n, err);
	*ret_list = (struct call_rec *)bytes;
	*ret_n = n / sizeof(**ret_list);
	return ret;
}
