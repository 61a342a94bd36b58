/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAPPING_TIMES_H
#define BRAID_MAPPING_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/process.h"

/* Start and end times of the mappings of a process.
 *
 * A sample is processed later than it was taken, and another library may have replaced a library at
 * its addresses meanwhile. So a mapping that ends moves to the process's list of ended mappings,
 * with the time of its end. The mapping that takes its place begins at that time. The time is that
 * of the kernel's event of the new mapping: nothing runs where nothing is mapped. Without an event,
 * it is the time at which /proc/PID/maps was read.
 *
 *   mapped, born 0     no earlier mapping was recorded there
 *   mapped, born T     another one was there until T
 *   ended (born, T)    valid for samples with born <= time < T
 *
 * Libraries may come and go between two readings. So the events of files are stored as well. The
 * last event at an address before a sample identifies the file, whatever the lists contain. The
 * present and the ended mappings have the data of that file.
 *
 * The kernel half unwinds by the list that was published last. If a mapping covers a published one,
 * the kernel half may use the table of the old file from its event until the next publication. Such
 * a range is *unsure* for that time, and stacks are cut at frames in it. If the event was lost, the
 * range is unsure since the previous list was read. Samples of that time are not placed by the old
 * mapping there, nor by the new one. */

#define ENDED_MAPPINGS_MAX  256 /* per process; the ones that ended first are evicted */
#define UNSURE_RANGES_MAX   64
#define PENDING_EVENTS_MAX  16
#define RETAINED_EVENTS_MAX 1024 /* per process; the older half is evicted */

/* A mapping of code that the kernel reported. */
struct mapping_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start, end;
	uint64_t inode; /* 0: no file */
	uint64_t dev;
	uint64_t path;	 /* mapping_times__path_id(); 0: no file */
	uint64_t offset; /* position of `start` in the file */
};

/* Returns the mapping that held @address at @time_ns, or NULL. */
const struct mapped *mapping_times__find(const struct process *process, uint64_t address,
					 uint64_t time_ns);

/* Returns a mapping that held @address and ended last, or NULL. */
const struct mapped *mapping_times__find_ended(const struct process *process, uint64_t address);

/* Returns the latest end of an ended mapping in [@start, @end); 0: none has ended. */
uint64_t mapping_times__last_end(const struct process *process, uint64_t start, uint64_t end);

/* Returns a number for the span of time around @time_ns in which no mapping ended, according to
 * present data. The number may change when process->changed_ns does. */
uint64_t mapping_times__span(const struct process *process, uint64_t time_ns);

/* Returns a number for a path, which is never 0. */
uint64_t mapping_times__path_id(const char *path);

/* Returns true if a recorded mapping overlaps [@start, @end). @is_file: counts only mappings of
 * files. */
bool mapping_times__is_mapped(const struct process *process, uint64_t start, uint64_t end,
			      bool is_file);

/* Stores the event if it maps a file or replaces one. Events may come in any order. Returns 0 or
 * -ENOMEM. */
int mapping_times__remember(struct process *process, const struct mapping_event *event);

/* Discards the stored events, as events were lost. */
void mapping_times__on_lost(struct process *process);

/* Returns true if the event maps other memory over a recorded mapping. */
bool mapping_times__is_covered(const struct process *process, const struct mapping_event *event);

/* Ends the mappings that the event covers, at its time. Returns 0 or -ENOMEM. */
int mapping_times__cover(struct process *process, const struct mapping_event *event);

/* Sets the birth of a recorded mapping to the time of its event. Used if the mappings were read
 * before the event was processed. */
void mapping_times__correct(struct process *process, const struct mapping_event *event);

/* Stores the event for the next mapping_times__replace(): only the list that is read then shows the
 * present use of the memory. */
void mapping_times__note(struct process *process, const struct mapping_event *event);
bool mapping_times__has_notes(const struct process *process);

/* Ends the mappings of process->mapped that are missing in @list, which was read at @now_ns and is
 * about to replace them. Sets the birth of the mappings in @list. Returns 0 or -ENOMEM. */
int mapping_times__replace(struct process *process, struct mapped *list, size_t n, uint64_t now_ns);

/* Marks the present list as published by @now_ns. */
void mapping_times__on_published(struct process *process, uint64_t now_ns);

/* Return true if the kernel half may have used another mapping's table at @time_ns, for any address
 * or for @address. */
bool mapping_times__has_unsure(const struct process *process, uint64_t time_ns);
bool mapping_times__is_unsure(const struct process *process, uint64_t address, uint64_t time_ns);

/* Marks the images of ended mappings as used. */
void mapping_times__use_images(const struct process *process, uint64_t now_ns);

void mapping_times__free(struct mapping_times *times,
			 struct quota_account *account); /* NULL: fine */

#endif
