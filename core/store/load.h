/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_H
#define BRAID_LOAD_H

#include "core/base/err.h"
#include "core/profile/build.h"

/* Recording -> merged profile of one event. Needs nothing but the file; the file is untrusted. A
 * directory that braid fills stands for all finished recordings in it, as one; those that cannot be
 * read are left out (profile_filter.on_skipped).
 *
 * -ENOENT no such file; -EBADMSG not a braid recording, of an unknown schema version, corrupt or
 * truncated; what build__profile returns; the sentence in `err` names the file. A recording whose
 * writer was killed is read up to its last commit. */
int load__profile(const char *path, const struct profile_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err);

/* The same of all its events, as build__profiles. */
int load__profiles(const char *path, const struct profile_filter *filter, struct profile **ret,
		   struct profile ***ret_others, size_t *ret_n, struct err *err);

/* A recording whose samples are taken one after the other, in the order in which they were
 * recorded. The file stays open, and what is read is one commit of it. Errors as load__profile. */
struct load_samples;

/* Reads all but the samples. Call load_samples__close in any case. */
int load_samples__open(const char *path, struct load_samples **ret, struct err *err);
void load_samples__close(struct load_samples *samples); /* NULL is fine */

/* What the recording has, without any samples; the caller may add some. Borrowed. */
struct recorded *load_samples__recorded(struct load_samples *samples);

/* 1: there is one; 0: there are no more. What it refers to may not exist. */
int load_samples__next(struct load_samples *samples, struct sink_sample *ret, struct err *err);

#endif
