/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_H
#define BRAID_LOAD_H

#include "core/base/err.h"
#include "core/profile/build.h"

/* Recording -> merged profile of one event. Needs nothing but the file; the file is untrusted.
 *
 * -ENOENT no such file; -EBADMSG not a braid recording, of an unknown schema version, corrupt or
 * truncated; what build__profile returns; the sentence in `err` names the file. A recording whose
 * writer was killed is read up to its last commit. */
int load__profile(const char *path, const struct profile_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err);

/* The same of all its events: `ret` is what load__profile gives, `ret_others` are those of the
 * events that it is not of and that have samples, which the caller frees one by one and as a list.
 */
int load__profiles(const char *path, const struct profile_filter *filter, struct profile **ret,
		   struct profile ***ret_others, size_t *ret_n, struct err *err);

#endif
