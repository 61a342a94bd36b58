// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "runtimes/jvm/jvm_process.h"

#define TICK_MS	     10
#define ARGUMENT_MAX 1024      /* AttachOperation::arg_length_max, attachListener.hpp */
#define REPLY_MAX    (1 << 20) /* bytes read */
#define REPLY_BYTES  512       /* bytes evaluated */
#define NAME_BYTES   32
#define SOCKET_NAME  ".java_pid%u"
#define TRIGGER_NAME ".attach_pid%u"

/* The state of a request. */
struct dialog {
	const struct jvm_request *request;
	struct jvm_process jvm;
	int tmp_fd; /* the JVM's /tmp; O_PATH */
	bool has_file, has_signalled, is_connected;
	struct jvm_phase phase;
	struct err *err;
};

/* Waits until @fd is ready or @most_ms have passed. Returns 0, -ECANCELED, or -ETIMEDOUT at the
 * request's timeout. */
static int wait_tick(const struct jvm_request *request, int fd, short events, int most_ms)
{
	struct pollfd polled[] = { { .fd = request->caller_fd, .events = POLLIN | POLLRDHUP },
				   { .fd = fd, .events = events } };
	struct timespec now;
	int64_t left_ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	left_ms = ((int64_t)request->end_ns - now.tv_sec * (int64_t)NSEC_PER_SEC - now.tv_nsec) /
		  1000000;
	if (left_ms <= 0)
		return -ETIMEDOUT;
	if (poll(polled, 2, min_of(left_ms, most_ms)) < 0 && errno != EINTR)
		return -errno;
	return polled[0].revents ? -ECANCELED : 0;
}

static int refuse(struct dialog *dialog, const char *name, const char *why)
{
	return err__set(dialog->err, -EIO, "PID %u: /tmp/%s in its root directory %s",
			dialog->jvm.pid, name, why);
}

static int see_phase(struct dialog *dialog)
{
	if (jvm_process__phase(&dialog->jvm, &dialog->phase))
		return err__set(dialog->err, -ESRCH, "PID %u has ended", dialog->jvm.pid);
	return 0;
}

/* Checks that the JVM itself serves the socket, and not a process that has replaced it. */
static int check_peer(struct dialog *dialog, int fd, const char *name)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return err__set(dialog->err, -errno, "SO_PEERCRED: %s", strerror(errno));
	if (peer.pid != (pid_t)dialog->jvm.pid)
		return refuse(dialog, name, "is served by another process");
	return 0;
}

/* Connects to the JVM's socket. Everybody can write to /tmp, so that symbolic links are not
 * followed. Returns an fd; -ENOENT if there is no socket, or no process serves it; or another
 * error. */
static int open_socket(struct dialog *dialog)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char name[NAME_BYTES];
	struct stat st;
	int file, fd = -1, ret = 0;

	snprintf(name, sizeof(name), SOCKET_NAME, dialog->jvm.ns_pid);
	file = openat(dialog->tmp_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return errno == ENOENT ? -ENOENT : refuse(dialog, name, strerror(errno));
	if (fstat(file, &st) || !S_ISSOCK(st.st_mode) || st.st_uid != dialog->jvm.uid) {
		ret = refuse(dialog, name, "is not the JVM's socket. Remove it");
		goto out;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		ret = err__set(dialog->err, -errno, "socket: %s", strerror(errno));
	else if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		/* If refused, the socket belongs to a process that had this pid before. */
		ret = errno == ECONNREFUSED ? -ENOENT
		      : errno == EAGAIN	    ? -EAGAIN
					    : refuse(dialog, name, strerror(errno));
	else
		ret = check_peer(dialog, fd, name);
out:
	close(file);
	if (ret)
		close_fd(&fd);
	return ret ? ret : fd;
}

/* Creates the file that changes the meaning of SIGQUIT for the JVM, from "dump your threads" to
 * "open your socket". */
static int make_trigger(struct dialog *dialog)
{
	char name[NAME_BYTES];
	struct stat st;
	int fd;

	snprintf(name, sizeof(name), TRIGGER_NAME, dialog->jvm.ns_pid);
	fd = openat(dialog->tmp_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	dialog->has_file = fd >= 0;
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno != EEXIST)
		return refuse(dialog, name, strerror(errno));
	if (fstatat(dialog->tmp_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
	    st.st_uid != dialog->jvm.uid)
		return refuse(dialog, name, "is not a regular file of the JVM's user. Remove it");
	return 0; /* another tool sends a request now, or was killed while it did */
}

static void remove_trigger(struct dialog *dialog)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), TRIGGER_NAME, dialog->jvm.ns_pid);
	if (dialog->has_file)
		unlinkat(dialog->tmp_fd, name, 0);
	dialog->has_file = false;
}

/* Sends SIGQUIT once. The signal kills a process that does not expect it. It is sent only to a
 * process that catches it and has HotSpot's thread for it. Without that thread, as with -Xrs,
 * the socket exists from the start, or never. */
static int signal_jvm(struct dialog *dialog)
{
	const struct jvm_phase *phase = &dialog->phase;
	const struct jvm_process *jvm = &dialog->jvm;
	int ret;

	if (dialog->has_signalled || !phase->catches_quit || !phase->has_dispatcher ||
	    !phase->is_started)
		return 0;
	ret = make_trigger(dialog);
	if (ret)
		return ret;
	if (syscall(SYS_pidfd_send_signal, jvm->proc_fd, SIGQUIT, NULL, 0))
		return err__set(dialog->err, errno == ESRCH ? -ESRCH : -EPERM,
				"PID %u: cannot send a signal: %s", jvm->pid, strerror(errno));
	dialog->has_signalled = true;
	return 0;
}

static int explain_timeout(struct dialog *dialog)
{
	uint32_t pid = dialog->jvm.pid;

	if (see_phase(dialog))
		return -ESRCH;
	if (dialog->phase.is_stopped)
		return err__set(dialog->err, -ETIMEDOUT,
				"PID %u: the JVM is stopped (continue it with kill -CONT %u)", pid,
				pid);
	if (dialog->is_connected || dialog->phase.has_quit_pending)
		return err__set(dialog->err, -ETIMEDOUT, "PID %u: the JVM does not respond", pid);
	if (dialog->has_signalled)
		return err__set(dialog->err, -ENOTSUP,
				"PID %u: the JVM did not open its attach socket: it hangs, or runs "
				"with -XX:+DisableAttachMechanism",
				pid);
	if (dialog->phase.is_started)
		return err__set(dialog->err, -ENOTSUP,
				"PID %u: the JVM ignores SIGQUIT (-Xrs), and has no attach socket",
				pid);
	return err__set(dialog->err, -EAGAIN,
			"PID %u: the JVM is starting and accepts no commands yet", pid);
}

/* Returns a connected socket, or an error. */
static int reach(struct dialog *dialog)
{
	int fd, ret = 0;

	if (jvm_process__is_attach_disabled(&dialog->jvm))
		return err__set(dialog->err, -ENOTSUP,
				"PID %u: the JVM accepts no commands: it runs with "
				"-XX:+DisableAttachMechanism",
				dialog->jvm.pid);
	while (!ret) {
		ret = see_phase(dialog);
		if (ret)
			break;
		fd = dialog->phase.is_stopped ? -EAGAIN : open_socket(dialog);
		if (fd >= 0)
			return fd;
		if (fd == -ENOENT)
			ret = signal_jvm(dialog);
		else if (fd != -EAGAIN)
			ret = fd;
		if (!ret)
			ret = wait_tick(dialog->request, -1, 0, TICK_MS);
	}
	return ret == -ETIMEDOUT ? explain_timeout(dialog) : ret;
}

/* Sends a request of protocol version 1, which all JVMs support: version, command, three
 * arguments, each with its NUL. */
static int send_request(struct dialog *dialog, int fd)
{
	const char *command = dialog->request->command;
	char text[ARGUMENT_MAX + 32];
	int len = snprintf(text, sizeof(text), "1%cjcmd%c%s%c%c%c", 0, 0, command, 0, 0, 0);

	if (send(fd, text, len, MSG_NOSIGNAL) != len)
		return err__set(dialog->err, -EIO, "PID %u: cannot send to the JVM: %s",
				dialog->jvm.pid, strerror(errno));
	return 0;
}

/* Reads the whole reply, whose end shows that the JVM is done. @reply_start is its beginning, as a
 * string. */
static int read_reply(struct dialog *dialog, int fd, char reply_start[REPLY_BYTES])
{
	size_t total = 0, n_start = 0;
	char buf[4096];
	ssize_t n;
	int ret;

	while (total <= REPLY_MAX) {
		n = recv(fd, buf, sizeof(buf), 0);
		if (n < 0 && errno == EAGAIN) {
			ret = wait_tick(dialog->request, fd, POLLIN, INT32_MAX);
			if (ret)
				return ret;
			continue;
		}
		if (n <= 0) /* an error: the JVM closed before it had read the whole request */
			break;
		memcpy(reply_start + n_start, buf, min_of((size_t)n, REPLY_BYTES - 1 - n_start));
		n_start = min_of(n_start + n, (size_t)REPLY_BYTES - 1);
		total += n;
	}
	reply_start[n_start] = '\0';
	if (total > REPLY_MAX)
		return err__set(dialog->err, -EIO, "PID %u: the JVM's answer is too long",
				dialog->jvm.pid);
	return 0;
}

/* Evaluates a reply: "RESULT\n", then words. Java 25 reports success before it begins, and an
 * exception later. */
static int evaluate_reply(struct dialog *dialog, char *reply)
{
	const char *command = dialog->request->command;
	uint32_t pid = dialog->jvm.pid;
	char *words;
	long result = strtol(reply, &words, 10);

	if (!reply[0] && see_phase(dialog))
		return -ESRCH;
	if (!reply[0])
		return err__set(dialog->err, -EIO, "PID %u: the JVM closed without an answer", pid);
	if (words == reply || *words != '\n') {
		reply[strcspn(reply, "\n")] = '\0';
		escape__printable(reply);
		return err__set(dialog->err, -EIO,
				"PID %u: this is not the answer of a JVM: \"%.60s\"", pid, reply);
	}
	words++;
	words[strcspn(words, "\n")] = '\0';
	escape__printable(words);
	if (!result && strncmp(words, "java.lang.", 10) != 0 && strncmp(words, "Warning: ", 9) != 0)
		return 0;
	return err__set(dialog->err, -EIO, "PID %u: the JVM refused %s: %.200s%s", pid, command,
			words[0] ? words : "it gives no reason",
			strstr(words, "Unknown diagnostic command")
				? " (this version of Java does not have it)"
				: "");
}

static int converse(struct dialog *dialog, int fd)
{
	char reply[REPLY_BYTES];
	int ret = send_request(dialog, fd);

	dialog->is_connected = true;
	if (!ret)
		ret = read_reply(dialog, fd, reply);
	if (ret == -ETIMEDOUT)
		return explain_timeout(dialog);
	return ret ? ret : evaluate_reply(dialog, reply);
}

int jvm_request__run(const struct jvm_request *request, struct err *err)
{
	struct dialog dialog = { .request = request, .tmp_fd = -1, .err = err };
	int fd = -1, ret;

	if (strlen(request->command) > ARGUMENT_MAX)
		return err__set(err, -EINVAL, "the command is too long for a JVM");
	ret = jvm_process__open(request->pid, &dialog.jvm, err);
	if (ret)
		return ret;
	ret = jvm_process__become_user(&dialog.jvm, err);
	if (!ret) {
		dialog.tmp_fd = openat(dialog.jvm.root_fd, "tmp",
				       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		ret = dialog.tmp_fd < 0 ? refuse(&dialog, "", strerror(errno)) : 0;
	}
	if (!ret)
		fd = ret = reach(&dialog);
	remove_trigger(&dialog);
	if (fd >= 0)
		ret = converse(&dialog, fd);
	close_fd(&fd);
	close_fd(&dialog.tmp_fd);
	jvm_process__close(&dialog.jvm);
	return ret;
}
