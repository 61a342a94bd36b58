/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_METRICS_H
#define BRAID_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/service/recording_dir.h"

/* Metrics of braid's own activity and cost, as text in the OpenMetrics format. They are in a file,
 * or returned by a local socket that answers GET. docs/reference/continuous.md lists the metrics.
 */
struct metrics;

#define METRICS_SOCKET "unix:" /* prefix of a place that is a socket */

struct metrics_loss {
	const char *reason;
	uint64_t count;
};

/* Present values; cumulative ones count since the session's beginning. */
struct metrics_values {
	uint64_t samples, samples_complete;
	const struct metrics_loss *losses;
	size_t n_losses;
	double cpu_s, running_s;
	uint64_t processes; /* processes that are profiled */
	uint64_t table_bytes;
	uint64_t files, files_released; /* files of code: present ones, and released ones */
	uint32_t frequency_hz;
	bool probes_given_up;		       /* to stay within --max-overhead */
	const struct recording_dir_stats *dir; /* NULL: no directory */
};

/* Opens the place: "unix:PATH" or a file. Returns 0; -EEXIST: the file exists and was not written
 * by braid; -EADDRINUSE: another process listens to the socket. */
int metrics__open(const char *place, struct metrics **ret, struct err *err);

/* Publishes the values. A file that cannot be written now is tried again at the next call, and is
 * not an error. @ret_note reports the first failure of several in a row, and the first success
 * after that. Returns 0 or -ENOMEM. */
int metrics__publish(struct metrics *metrics, const struct metrics_values *values,
		     struct err *ret_note);

/* Removes the socket; a file stays. NULL is fine. */
void metrics__free(struct metrics *metrics);

/* Returns the text. The caller must free it. NULL: out of memory. */
char *metrics__text(const struct metrics_values *values);

#endif
