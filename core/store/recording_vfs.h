/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_VFS_H
#define BRAID_RECORDING_VFS_H

/* The view that SQLite has of recordings' files, for sqlite3_open_v2(). Any user who may write to a
 * recording's directory could put a journal there at any time. SQLite would roll it back into the
 * recording, remove it, and remove a third file that the journal names.
 *
 * So this VFS accepts a journal only from the user or the recording's owner, and only in the form
 * that braid writes. A new journal replaces no file, no other file is ever removed, and there are
 * no write-ahead logs. */

/* Returns the name of the VFS. NULL: out of memory. */
const char *recording_vfs__name(void);

#endif
