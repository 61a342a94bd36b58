/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_ATTACH_H
#define BRAID_JVM_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* HotSpot's attach protocol (version 1), as jcmd speaks it: a command to a running JVM, without a
 * JDK. Asynchronous: a helper process does it, so that a JVM that hangs costs nobody anything. It
 * takes the user and group of the JVM, finds it by /proc/PID/root (another mount or PID namespace,
 * chroot), and leaves nothing behind, also if this process is killed.
 *
 * A JVM that was never asked is sent SIGQUIT, but only if it is seen to expect that. Where
 * attaching is disabled by what cannot be seen beforehand (-XX:+DisableAttachMechanism in a file of
 * options), this makes it print its threads' stacks: after -ENOTSUP do not ask again. */
struct jvm_attach;

/* Begins to ask the JVM of process `pid` (as braid sees it; of any of its threads) to run a
 * diagnostic command, "Compiler.perfmap". Gives up after `timeout_ms`. -ENOMEM, -EAGAIN, -EMFILE.
 */
int jvm_attach__start(uint32_t pid, const char *command, unsigned timeout_ms,
		      struct jvm_attach **ret);

/* Readable once it is over. */
int jvm_attach__fd(const struct jvm_attach *attach);

/* Without waiting. Also true where nothing was heard of the helper for 2 s after its time. */
bool jvm_attach__is_over(const struct jvm_attach *attach);

/* How it went; waits for the end. The same again when called again.
 *   0           the JVM ran the command. Java 17 says so also where it could not write its file.
 *   -ENOTSUP    it takes no commands (attaching is disabled), or answers no request
 *   -EAGAIN     it was still starting at the end of the time: may be asked later
 *   -ETIMEDOUT  it is stopped or hangs; what was asked may still be done when it goes on
 *   -EIO        it refused, with its own words; or what answers is not that JVM
 *   -EPERM, -ESRCH, -EINVAL (the command is too long)
 * The sentence in `err` has what the user can do. */
int jvm_attach__finish(struct jvm_attach *attach, struct err *err);
void jvm_attach__free(struct jvm_attach *attach); /* ends it, within 1 s; NULL is fine */

#endif
