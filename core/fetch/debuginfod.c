// SPDX-License-Identifier: GPL-2.0-or-later
/* libdebuginfod runs in a helper process. A request may take as long as a server likes, and
 * libdebuginfod uses the network. The helper therefore has none of braid's descriptors and shared
 * mappings.
 * An answer is a descriptor of the file in the cache of libdebuginfod. */
#include "core/fetch/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/files/target_helper.h"

#define LIBRARY		"libdebuginfod.so.1"
#define BUDGET_MS	30000
#define POLL_MS		100
#define SERVER_SILENT_S "5"	    /* unless DEBUGINFOD_TIMEOUT is set */
#define FILE_BYTES_MAX	(1UL << 30) /* unless DEBUGINFOD_MAXSIZE is set */
#define HELPER_ENDS_S	(2 * BUDGET_MS / 1000)

struct request {
	uint32_t len;
	uint8_t build_id[ELF_BUILD_ID_MAX];
};

struct library {
	void *(*begin)(void);
	int (*find)(void *client, const unsigned char *build_id, int len, char **ret_path);
	void (*report)(void *client, int (*on_progress)(void *client, long done, long size));
	void *client;
};

static struct {
	pid_t owner; /* process that started the helper; a process forked from it has no helper */
	pid_t pid;   /* 0: no helper runs */
	int fd;
	int64_t left_ms;
	const char *failure;
} helper;

bool debuginfod__is_enabled(void)
{
	const char *urls = secure_getenv("DEBUGINFOD_URLS");

	return urls && urls[strspn(urls, " \t")];
}

const char *debuginfod__failure(void)
{
	return helper.failure;
}

/* --- the helper's side --- */

static int braids_end;

/* Returns non-zero, which ends the request and removes its unfinished file, once braid has closed
 * its end. */
static int on_progress(void *client, long done, long size)
{
	struct pollfd polled = { .fd = braids_end };

	(void)client;
	(void)done;
	(void)size;
	return poll(&polled, 1, 0) > 0 && polled.revents & (POLLHUP | POLLERR);
}

/* Limits the size of a file. libdebuginfod compares DEBUGINFOD_MAXSIZE with the size that the
 * server states. RLIMIT_FSIZE limits a body without a stated size, or one that is inflated on
 * arrival. */
static void limit_file(void)
{
	const char *text = getenv("DEBUGINFOD_MAXSIZE");
	unsigned long bytes = text ? strtoul(text, NULL, 10) : 0;
	struct rlimit limit = { .rlim_cur = bytes ? bytes : FILE_BYTES_MAX };
	char digits[24];

	snprintf(digits, sizeof(digits), "%lu", FILE_BYTES_MAX);
	setenv("DEBUGINFOD_MAXSIZE", digits, 0);
	signal(SIGXFSZ, SIG_IGN);
	limit.rlim_max = limit.rlim_cur;
	setrlimit(RLIMIT_FSIZE, &limit);
}

/* Lets SIGALRM end the helper when on_progress() is not called, for example during the lookup of a
 * host name. */
static void end_by_alarm(void)
{
	sigset_t alarms;

	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	signal(SIGALRM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &alarms, NULL);
}

/* Loads libdebuginfod. Returns 0, -ELIBACC, -ELIBBAD or -ENOMEM. libdebuginfod itself returns
 * neither of the first two. */
static int load(struct library *library)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (!handle)
		return -ELIBACC;
	library->begin = (void *(*)(void))dlsym(handle, "debuginfod_begin");
	library->find = (int (*)(void *, const unsigned char *, int,
				 char **))dlsym(handle, "debuginfod_find_debuginfo");
	library->report = (void (*)(void *, int (*)(void *, long, long)))dlsym(
		handle, "debuginfod_set_progressfn");
	if (!library->begin || !library->find || !library->report)
		return -ELIBBAD;
	library->client = library->begin();
	if (!library->client)
		return -ENOMEM;
	library->report(library->client, on_progress);
	return 0;
}

static void __attribute__((noreturn)) run_helper(void *ctx, int fd)
{
	struct library library = {};
	struct request request;
	int code, ignored;

	(void)ctx;
	while ((code = open("/dev/null", O_RDWR)) >= 0 && code < STDERR_FILENO)
		; /* output of the library must not get into a file that it opens */
	setenv("DEBUGINFOD_TIMEOUT", SERVER_SILENT_S, 0);
	limit_file();
	end_by_alarm();
	braids_end = fd;
	code = load(&library);
	while (target_helper__receive(fd, &request, sizeof(request), &ignored) == sizeof(request)) {
		int found = code, reply;

		alarm(HELPER_ENDS_S);
		if (!code)
			found = library.find(library.client, request.build_id, request.len, NULL);
		alarm(0);
		reply = min_of(found, 0);
		if (target_helper__send(fd, &reply, sizeof(reply), found) < 0)
			break;
		close_fd(&found);
	}
	_exit(0);
}

/* --- braid's side --- */

static int start_helper(void)
{
	static const struct target_helper_program debuginfo = { .name = "braid-debuginfo",
								.run = run_helper,
								.cleans_up = true };

	if (helper.owner != getpid()) {
		helper.owner = getpid();
		helper.pid = 0;
		helper.failure = NULL;
		helper.left_ms = BUDGET_MS;
	}
	if (helper.pid || helper.failure)
		return helper.failure ? -EPIPE : 0;
	return target_helper__start(&debuginfo, &helper.pid, &helper.fd);
}

/* Closes the connection to the helper and makes all further requests fail with @why. The helper
 * then ends by itself, so that it can remove its unfinished file. */
static void give_up(const char *why)
{
	close(helper.fd);
	waitpid(helper.pid, NULL, WNOHANG);
	helper.pid = 0;
	helper.failure = why;
}

static int wait_answer(const struct debuginfod_wait *wait)
{
	struct pollfd polled = { .fd = helper.fd, .events = POLLIN };
	int n = 0;

	while (n <= 0 && helper.left_ms > 0) {
		uint64_t before = now_ns();

		if (wait->cancelled && wait->cancelled(wait->ctx))
			return -ECANCELED;
		n = poll(&polled, 1, POLL_MS);
		helper.left_ms -= (int64_t)((now_ns() - before) / 1000000);
	}
	return n > 0 ? 0 : -ETIMEDOUT;
}

/* Returns the reason why further requests are useless, or NULL if the servers answered. */
static const char *failure_of(int code)
{
	switch (code) {
	case 0:
	case -ENOENT:
	case -EFBIG:
		return NULL;
	case -ELIBACC:
	case -ELIBBAD:
		return LIBRARY " is not installed (Debian: libdebuginfod1)";
	case -ECANCELED:
		return "interrupted";
	case -ETIMEDOUT:
	case -ETIME:
		return "no answer in time";
	case -ECONNREFUSED:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
		return "the servers are unreachable";
	case -EACCES:
	case -EROFS:
		return "the cache is not writable";
	}
	return "the servers fail";
}

static int ask(const void *build_id, size_t len, const struct debuginfod_wait *wait, int *ret_fd)
{
	struct request request = { .len = len };
	const char *failure;
	int code, reply = -EIO;

	*ret_fd = -1;
	if (!len || len > sizeof(request.build_id))
		return -ENOENT;
	code = start_helper();
	if (code)
		return code;
	memcpy(request.build_id, build_id, len);
	code = target_helper__send(helper.fd, &request, sizeof(request), -1);
	code = code < 0 ? code : wait_answer(wait);
	if (!code &&
	    target_helper__receive(helper.fd, &reply, sizeof(reply), ret_fd) == sizeof(reply))
		code = reply;
	else if (!code)
		code = -EPIPE;
	failure = failure_of(code);
	if (failure)
		give_up(failure);
	if (!code && *ret_fd < 0)
		code = -ENOENT;
	if (code)
		close_fd(ret_fd);
	return code;
}

int debuginfod__open(void *wait, const void *build_id, size_t len, struct elf_file **ret)
{
	struct elf_file *debug = NULL;
	int fd, code = ask(build_id, len, wait, &fd);

	if (code)
		return code;
	code = elf_file__open(fd, "debuginfod", &debug, NULL);
	if (code)
		return code == -ENOMEM ? code : -ENOENT;
	if (debug->build_id_len != len || memcmp(debug->build_id, build_id, len) != 0) {
		elf_file__free(debug);
		return -ENOENT;
	}
	*ret = debug;
	return 0;
}
