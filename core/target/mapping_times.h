/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_MAPPING_TIMES_H
#define BRAID_MAPPING_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/target/process.h"

/* When the mappings of a process began and ended.
 *
 * A sample is looked at later than it was taken, and a library may have left its addresses to
 * another one meanwhile. So a mapping that ends is not forgotten: it goes to the process's list of
 * ended ones, with the time of its end, and the mapping that takes its place begins at that time.
 * The time is that of the kernel's event of the new mapping: nothing runs where nothing is mapped.
 * Where no event has come, it is the time at which /proc/PID/maps was read.
 *
 *   mapped, born 0     no other mapping is known to have been there before
 *   mapped, born T     another one was there until T
 *   ended (born, T)    holds for samples with born <= time < T
 *
 * Libraries may come and go between two readings. So the events of files are kept as well. The last
 * one at an address before a sample says which file was there, whatever the lists say, and the
 * mappings that are known, now or ended, say what is known of that file.
 *
 * The kernel half unwinds by the list that was published last. From the event of a mapping that
 * covers a published one to the publication of the new list, it may have used the table of the old
 * file. Such a range is *unsure* for that time, and stacks are cut at frames in it. If the event
 * was lost, the range is unsure since the list that was read before, and no sample of that time is
 * placed by the old mapping there, nor by the new one. */

#define ENDED_MAPPINGS_MAX 256 /* of one process; the first to end give way */
#define UNSURE_RANGES_MAX  64
#define NOTED_EVENTS_MAX   16
#define KEPT_EVENTS_MAX	   1024 /* of one process; the first half gives way */

/* A mapping of code that the kernel has reported. */
struct mapping_event {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t start, end;
	uint64_t inode; /* 0: no file */
	uint64_t dev;
	uint64_t path;	 /* mapping_times__path_id(); 0: no file */
	uint64_t offset; /* of `start` in the file */
};

/* Returns the mapping that held @address at @time_ns, or NULL. */
const struct mapped *mapping_times__find(const struct process *process, uint64_t address,
					 uint64_t time_ns);

/* Returns a mapping that held @address and ended last, or NULL. */
const struct mapped *mapping_times__find_ended(const struct process *process, uint64_t address);

/* Returns when the last mapping in [@start, @end) ended that has ended; 0: none has. */
uint64_t mapping_times__last_end(const struct process *process, uint64_t start, uint64_t end);

/* Returns a number for the span of time around @time_ns in which no mapping ended, so far as is
 * known by now. It may change when process->changed_ns does. */
uint64_t mapping_times__span(const struct process *process, uint64_t time_ns);

/* Returns a number for a path, which is never 0. */
uint64_t mapping_times__path_id(const char *path);

/* Returns true if a known mapping overlaps [@start, @end). @is_file: only one of a file counts. */
bool mapping_times__is_mapped(const struct process *process, uint64_t start, uint64_t end,
			      bool is_file);

/* Keeps the event, if it is of a file or takes the place of one. Events may come in any order.
 * -ENOMEM. */
int mapping_times__remember(struct process *process, const struct mapping_event *event);

/* Events were lost: those that are kept say nothing any more. */
void mapping_times__on_lost(struct process *process);

/* Does the event map other memory over what is known to be mapped? */
bool mapping_times__is_covered(const struct process *process, const struct mapping_event *event);

/* Ends what the event covers, at its time. -ENOMEM. */
int mapping_times__cover(struct process *process, const struct mapping_event *event);

/* The event of a mapping that is known already, as the mappings were read before the event was:
 * sets the time at which it took the place of another one. */
void mapping_times__correct(struct process *process, const struct mapping_event *event);

/* Keeps the event for the next mapping_times__replace(), where only the list that is read then can
 * tell what has become of the memory. */
void mapping_times__note(struct process *process, const struct mapping_event *event);
bool mapping_times__has_notes(const struct process *process);

/* Ends those of process->mapped that are missing in the list @list, which was read at @now_ns and
 * is about to take its place, and sets when those of the list have begun. -ENOMEM. */
int mapping_times__replace(struct process *process, struct mapped *list, size_t n, uint64_t now_ns);

/* The list as it is now was published by @now_ns. */
void mapping_times__on_published(struct process *process, uint64_t now_ns);

/* May the kernel half have used another mapping's table for some address at that time, or for this
 * address? */
bool mapping_times__has_unsure(const struct process *process, uint64_t time_ns);
bool mapping_times__is_unsure(const struct process *process, uint64_t address, uint64_t time_ns);

/* Marks the images of those that have ended as used. */
void mapping_times__use_images(const struct process *process, uint64_t now_ns);

void mapping_times__free(struct mapping_times *times,
			 struct quota_account *account); /* NULL: fine */

#endif
