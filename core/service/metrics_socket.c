// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/service/metrics_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"

#define REQUEST_BYTES 8192 /* including all headers */
#define WAIT_MS	      1000 /* for the whole request, and again for sending the answer */
#define BACKLOG	      8
#define FOREVER	      UINT64_MAX
#define NAME_BYTES    32
#define LOCK_TRIES    100 /* 1 s in total */
#define LOCK_TRY_US   10000

struct metrics_socket {
	struct sockaddr_un address;
	struct stat created; /* the socket's file in its directory */
	int fd, stop_fd;
	pthread_t thread;
	bool runs;
	pthread_mutex_t lock;
	char *text; /* protected by `lock` */
};

/* --- one reader --- */

/* Waits for @events. Returns false at @end_ns or at the end of the thread. */
static bool wait_for(const struct metrics_socket *metrics, int fd, short events, uint64_t end_ns)
{
	struct pollfd polled[] = { { .fd = fd, .events = events },
				   { .fd = metrics->stop_fd, .events = POLLIN } };
	uint64_t now = now_ns();
	int timeout_ms =
		end_ns == FOREVER ? -1 : (int)((end_ns - min_of(now, end_ns)) / 1000000) + 1;

	return now < end_ns && poll(polled, 2, timeout_ms) > 0 && !polled[1].revents &&
	       polled[0].revents;
}

/* Reads a request up to the empty line. NULL: it did not arrive in time. */
static const char *read_request(const struct metrics_socket *metrics, int fd,
				char buf[REQUEST_BYTES])
{
	uint64_t end_ns = now_ns() + WAIT_MS * 1000000ULL;
	size_t n = 0;
	ssize_t got;

	while (n < REQUEST_BYTES - 1 && wait_for(metrics, fd, POLLIN, end_ns)) {
		got = recv(fd, buf + n, REQUEST_BYTES - 1 - n, MSG_DONTWAIT);
		if (got <= 0)
			return NULL;
		n += got;
		buf[n] = '\0';
		if (strstr(buf, "\r\n\r\n"))
			return buf;
	}
	return NULL;
}

static void send_all(const struct metrics_socket *metrics, int fd, const char *text, size_t size)
{
	uint64_t end_ns = now_ns() + WAIT_MS * 1000000ULL;
	ssize_t sent;

	while (size && wait_for(metrics, fd, POLLOUT, end_ns)) {
		sent = send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0)
			return;
		text += sent;
		size -= sent;
	}
}

/* Returns the answer with the present text, or an error for a bad request. Owned by the caller;
 * NULL: out of memory. */
static char *answer(struct metrics_socket *metrics, const char *request)
{
	bool get = request && !strncmp(request, "GET ", 4);
	char *copy = NULL, *ret;

	if (get) {
		pthread_mutex_lock(&metrics->lock);
		copy = strdup(metrics->text ? metrics->text : "# EOF\n");
		pthread_mutex_unlock(&metrics->lock);
		if (!copy)
			return NULL;
	}
	if (asprintf(&ret,
		     "HTTP/1.1 %s\r\n"
		     "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
		     "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
		     get ? "200 OK" : "405 Method Not Allowed", copy ? strlen(copy) : 0,
		     copy ? copy : "") < 0)
		ret = NULL;
	free(copy);
	return ret;
}

static void serve(struct metrics_socket *metrics, int fd)
{
	char buf[REQUEST_BYTES];
	const char *request = read_request(metrics, fd, buf);
	char *text = request ? answer(metrics, request) : NULL;

	if (text)
		send_all(metrics, fd, text, strlen(text));
	free(text);
}

static void *run(void *arg)
{
	struct metrics_socket *metrics = arg;
	int fd;

	privilege__drop_all();
	while (wait_for(metrics, metrics->fd, POLLIN, FOREVER)) {
		fd = accept4(metrics->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(metrics, fd);
		close_fd(&fd);
	}
	return NULL;
}

/* --- the socket --- */

/* Returns true if the socket is the user's own and no process listens to it. */
static bool is_dead(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;
	bool dead;

	dead = fd >= 0 && !lstat(address->sun_path, &st) && S_ISSOCK(st.st_mode) &&
	       st.st_uid == geteuid() &&
	       connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
	       errno == ECONNREFUSED;
	close_fd(&fd);
	return dead;
}

/* Binds the socket to an unused name in the directory @dir_fd, so that the path stays short. The
 * mode of the socket's file is that of the descriptor. */
static int bind_beside(struct metrics_socket *metrics, int dir_fd, char name[NAME_BYTES])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t number;

	metrics->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	metrics->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (metrics->fd < 0 || metrics->stop_fd < 0 || fchmod(metrics->fd, 0600) ||
	    getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	snprintf(name, NAME_BYTES, ".braid-%016llx", (unsigned long long)number);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", dir_fd, name);
	return bind(metrics->fd, (const struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

/* Returns a descriptor that holds the lock of the directory, or a negative errno. Another user may
 * hold the lock for any time. */
static int lock_directory(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), tries = LOCK_TRIES;

	if (fd < 0)
		return -errno;
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (!--tries) {
			close_fd(&fd);
			return -EADDRINUSE;
		}
		usleep(LOCK_TRY_US);
	}
	return fd;
}

/* Replaces a dead socket under the lock of the directory. Without the lock, each of several new
 * processes may find the old socket dead. The last one would then take the name from one that
 * already listens. */
static int replace_dead(const struct metrics_socket *metrics, const char *dir, int dir_fd,
			const char *name, const char *own_name)
{
	int lock_fd = lock_directory(dir), ret = 0;
	struct stat st;

	if (lock_fd < 0)
		return lock_fd;
	if (!fstatat(dir_fd, own_name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISSOCK(st.st_mode))
		ret = -ENOTSOCK;
	else if (!is_dead(&metrics->address))
		ret = -EADDRINUSE;
	else if (renameat(dir_fd, name, dir_fd, own_name))
		ret = -errno;
	close_fd(&lock_fd);
	return ret;
}

/* Creates the socket. It listens before it gets its name, as another process might otherwise find
 * it dead. */
static int listen_there(struct metrics_socket *metrics)
{
	char dir[sizeof(metrics->address.sun_path) + 2], name[NAME_BYTES] = "";
	const char *path = metrics->address.sun_path, *slash = strrchr(path, '/');
	const char *own_name = slash ? slash + 1 : path;
	int dir_fd, ret;

	if (!*own_name)
		return -EISDIR;
	snprintf(dir, sizeof(dir), "%.*s.", (int)(own_name - path), path);
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return -errno;
	ret = bind_beside(metrics, dir_fd, name);
	if (ret) {
		close_fd(&dir_fd);
		return ret;
	}
	if (fstatat(dir_fd, name, &metrics->created, AT_SYMLINK_NOFOLLOW) ||
	    listen(metrics->fd, BACKLOG))
		ret = -errno;
	else if (renameat2(dir_fd, name, dir_fd, own_name, RENAME_NOREPLACE))
		ret = errno == EEXIST ? replace_dead(metrics, dir, dir_fd, name, own_name) : -errno;
	if (ret)
		unlinkat(dir_fd, name, 0);
	close_fd(&dir_fd);
	return ret;
}

/* Starts the thread with all signals blocked: they are for the thread that waits for them. */
static int start(struct metrics_socket *metrics)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&metrics->thread, NULL, run, metrics);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	metrics->runs = !ret;
	return -ret;
}

int metrics_socket__open(const char *path, struct metrics_socket **ret, struct err *err)
{
	struct metrics_socket *metrics = calloc(1, sizeof(*metrics));
	int code;

	if (!metrics)
		return err__set(err, -ENOMEM, "out of memory");
	metrics->fd = metrics->stop_fd = -1;
	metrics->address.sun_family = AF_UNIX;
	pthread_mutex_init(&metrics->lock, NULL);
	if (strlen(path) >= sizeof(metrics->address.sun_path) || !*path) {
		metrics_socket__free(metrics);
		return err__set(err, -EINVAL,
				"cannot listen to '%s': a socket's path has 1 to %zu bytes. Choose "
				"another path",
				path, sizeof(metrics->address.sun_path) - 1);
	}
	strcpy(metrics->address.sun_path, path);
	code = listen_there(metrics);
	if (!code)
		code = start(metrics);
	if (code) {
		err__set(err, code, "cannot listen to %s: %s", path,
			 code == -ENOTSOCK ? "it exists and is not a socket. Choose another path"
					   : strerror(-code));
		metrics_socket__free(metrics);
		return code;
	}
	*ret = metrics;
	return 0;
}

void metrics_socket__publish(struct metrics_socket *metrics, char *text)
{
	char *old;

	pthread_mutex_lock(&metrics->lock);
	old = metrics->text;
	metrics->text = text;
	pthread_mutex_unlock(&metrics->lock);
	free(old);
}

void metrics_socket__free(struct metrics_socket *metrics)
{
	struct stat st;

	if (!metrics)
		return;
	if (metrics->runs) {
		eventfd_write(metrics->stop_fd, 1);
		pthread_join(metrics->thread, NULL);
	}
	if (metrics->created.st_ino && !lstat(metrics->address.sun_path, &st) &&
	    st.st_ino == metrics->created.st_ino && st.st_dev == metrics->created.st_dev)
		unlink(metrics->address.sun_path);
	close_fd(&metrics->fd);
	close_fd(&metrics->stop_fd);
	pthread_mutex_destroy(&metrics->lock);
	free(metrics->text);
	free(metrics);
}
