/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_METRICS_H
#define BRAID_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/service/recording_dir.h"

/* What braid itself does and costs, as text in the OpenMetrics format, where others can read it: in
 * a file, or from a local socket that answers GET. docs/reference/continuous.md lists the metrics.
 */
struct metrics;

#define METRICS_SOCKET "unix:" /* what a place begins with that is a socket */

struct metrics_loss {
	const char *reason;
	uint64_t count;
};

/* As they are now; cumulative ones since the session's beginning. */
struct metrics_values {
	uint64_t samples, samples_complete;
	const struct metrics_loss *losses;
	size_t n_losses;
	double cpu_s, running_s;
	uint64_t processes; /* that are profiled */
	uint64_t table_bytes;
	uint64_t files, files_released; /* of code: that are known, and are known no more */
	uint32_t frequency_hz;
	bool probes_given_up;		       /* to keep --max-overhead */
	const struct recording_dir_stats *dir; /* NULL: there is none */
};

/* Takes the place: "unix:PATH" or a file. What is no such file of braid's, and a socket that
 * somebody listens to, is refused: -EEXIST, -EADDRINUSE. */
int metrics__open(const char *place, struct metrics **ret, struct err *err);

/* From now on these are what is read there. A file that cannot be written now may be next time:
 * that is no error, and the first time of several in a row `ret_note` says so, and the first time
 * that it can be written again. -ENOMEM. */
int metrics__publish(struct metrics *metrics, const struct metrics_values *values,
		     struct err *ret_note);

/* The socket is gone, a file stays. NULL is fine. */
void metrics__free(struct metrics *metrics);

/* The text alone, for the caller to free; NULL: out of memory. */
char *metrics__text(const struct metrics_values *values);

#endif
