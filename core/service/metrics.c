// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/service/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file_beside.h"
#include "core/base/util.h"
#include "core/service/metrics_socket.h"

/* First line of a file of braid's metrics. */
#define FIRST_LINE "# HELP braid_samples "

struct metrics {
	char *file;		       /* NULL: a socket */
	struct metrics_socket *socket; /* NULL: a file */
	bool fails;		       /* the last write of the file failed */
};

/* --- the text: https://github.com/prometheus/OpenMetrics, version 1.0 --- */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(FILE *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, "counter", help);
	fprintf(out, "%s_total %" PRIu64 "\n", name, value);
}

static void gauge(FILE *out, const char *name, const char *help, uint64_t value)
{
	head(out, name, "gauge", help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

/* Writes the text as the value of a label. */
static void put_label(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fputc(*text, out);
	}
}

static void put_losses(FILE *out, const struct metrics_values *values)
{
	head(out, "braid_losses", "counter",
	     "Samples, stacks and names that recordings lack, by reason");
	for (size_t i = 0; i < values->n_losses; i++) {
		fputs("braid_losses_total{reason=\"", out);
		put_label(out, values->losses[i].reason);
		fprintf(out, "\"} %" PRIu64 "\n", values->losses[i].count);
	}
}

static uint64_t memory_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	uint64_t pages = 0;

	if (file && fscanf(file, "%*s %" SCNu64, &pages) != 1)
		pages = 0;
	if (file)
		fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

static void put_files(FILE *out, const struct recording_dir_stats *files)
{
	counter(out, "braid_recordings_finished", "Finished recordings since the start",
		files->finished);
	head(out, "braid_recordings_removed", "counter",
	     "Removed recordings, by reason: too many of them, or a full disk");
	fprintf(out, "braid_recordings_removed_total{reason=\"keep\"} %" PRIu64 "\n",
		files->dropped);
	fprintf(out, "braid_recordings_removed_total{reason=\"disk full\"} %" PRIu64 "\n",
		files->dropped_full);
	gauge(out, "braid_recordings", "Finished recordings in the directory", files->files);
	gauge(out, "braid_recordings_bytes", "Disk space of all recordings in the directory",
	      files->bytes + files->bytes_now);
}

char *metrics__text(const struct metrics_values *values)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	counter(out, "braid_samples", "Recorded samples", values->samples);
	counter(out, "braid_samples_complete", "Recorded samples with a complete stack",
		values->samples_complete);
	put_losses(out, values);
	head(out, "braid_cpu_seconds", "counter", "CPU time used by braid");
	fprintf(out, "braid_cpu_seconds_total %.6f\n", values->cpu_s);
	gauge(out, "braid_memory_bytes", "Resident memory of braid", memory_bytes());
	gauge(out, "braid_unwind_table_bytes", "Kernel memory of unwind tables",
	      values->table_bytes);
	gauge(out, "braid_code_files", "Programs and libraries in memory", values->files);
	counter(out, "braid_code_files_released",
		"Programs and libraries released because no process maps them any more",
		values->files_released);
	gauge(out, "braid_processes", "Profiled processes", values->processes);
	gauge(out, "braid_frequency_hertz", "Requested samples per second and CPU",
	      values->frequency_hz);
	gauge(out, "braid_probes_given_up", "1 if probes were detached because of --max-overhead",
	      values->probes_given_up);
	head(out, "braid_running_seconds", "gauge", "Time since braid began to sample");
	fprintf(out, "braid_running_seconds %.3f\n", values->running_s);
	if (values->dir)
		put_files(out, values->dir);
	fputs("# EOF\n", out);
	if (fclose(out)) {
		free(text);
		text = NULL;
	}
	return text;
}

/* --- a file --- */

/* Returns 0 if the file does not exist, is empty, or was written by braid. */
static int check_file(const char *path, struct err *err)
{
	char begin[sizeof(FIRST_LINE)] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT
			       ? 0
			       : err__set(err, -errno, "cannot open %s: %s", path, strerror(errno));
	n = fstat(fd, &st) || !S_ISREG(st.st_mode) ? -1 : read(fd, begin, sizeof(begin) - 1);
	close_fd(&fd);
	if (n < 0 || (st.st_size && strcmp(begin, FIRST_LINE) != 0))
		return err__set(err, -EEXIST,
				"cannot write metrics to %s: the file exists and has none of "
				"braid's. Choose another file",
				path);
	return 0;
}

/* Writes the file for all users to read: collectors of metrics run as other users, and the text
 * contains no data of the profiled processes. */
static int write_file(const char *path, const char *text)
{
	struct file_beside file;
	size_t size = strlen(text);
	int ret = file_beside__create(path, &file);
	ssize_t written = ret ? 0 : write(file.fd, text, size);

	if (!ret && written >= 0 && written < (ssize_t)size)
		ret = -ENOSPC;
	else if (!ret && (written < 0 || fchmod(file.fd, 0644)))
		ret = -errno;
	if (!ret)
		ret = file_beside__replace(&file, path);
	file_beside__done(&file);
	return ret;
}

/* --- both --- */

/* Publishes initial values, so that an unwritable place is detected at once. */
static int begin(struct metrics *metrics, struct err *err)
{
	char *text = metrics__text(&(struct metrics_values) {});
	int code = text ? 0 : -ENOMEM;

	if (!code && metrics->socket) {
		metrics_socket__publish(metrics->socket, text);
		return 0;
	}
	if (!code)
		code = write_file(metrics->file, text);
	free(text);
	return code ? err__set(err, code, "cannot write %s: %s",
			       metrics->file ? metrics->file : "metrics", strerror(-code))
		    : 0;
}

int metrics__open(const char *place, struct metrics **ret, struct err *err)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));
	size_t len = strlen(METRICS_SOCKET);
	int code;

	if (!metrics)
		return err__set(err, -ENOMEM, "out of memory");
	if (!strncmp(place, METRICS_SOCKET, len)) {
		code = metrics_socket__open(place + len, &metrics->socket, err);
	} else {
		code = check_file(place, err);
		metrics->file = code ? NULL : strdup(place);
		if (!code && !metrics->file)
			code = err__set(err, -ENOMEM, "out of memory");
	}
	if (!code)
		code = begin(metrics, err);
	if (code)
		metrics__free(metrics);
	else
		*ret = metrics;
	return code;
}

int metrics__publish(struct metrics *metrics, const struct metrics_values *values,
		     struct err *ret_note)
{
	char *text = metrics__text(values);
	int code;

	if (!text)
		return -ENOMEM;
	if (metrics->socket) {
		metrics_socket__publish(metrics->socket, text);
		return 0;
	}
	code = write_file(metrics->file, text);
	free(text);
	if (code && !metrics->fails)
		err__set(ret_note, code,
			 "cannot write metrics to %s: %s. The recording continues, and braid tries "
			 "again each second",
			 metrics->file, strerror(-code));
	else if (!code && metrics->fails)
		err__set(ret_note, 0, "metrics are being written to %s again", metrics->file);
	metrics->fails = code;
	return 0;
}

void metrics__free(struct metrics *metrics)
{
	if (!metrics)
		return;
	metrics_socket__free(metrics->socket);
	free(metrics->file);
	free(metrics);
}
