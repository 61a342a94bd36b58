/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_VFS_H
#define BRAID_RECORDING_VFS_H

/* How SQLite sees the files of recordings, for sqlite3_open_v2. Whoever may write to a recording's
 * directory could put a journal there at any time. SQLite would roll it back into the recording,
 * remove it, and remove a third file that it names. So here a journal is none unless it is the
 * user's own, or the recording's owner's, and as braid writes them, a new one replaces nothing,
 * nothing else is ever removed, and there are no write-ahead logs. */

/* NULL: out of memory. */
const char *recording_vfs__name(void);

#endif
