/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_ATTACH_H
#define BRAID_JVM_ATTACH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

/* A command to a running JVM by HotSpot's attach protocol (version 1, as jcmd uses it), without
 * a JDK. A helper process sends it, so that a JVM that hangs does not block the caller. The
 * helper takes the user and group of the JVM, and finds it by /proc/PID/root (another mount or
 * PID namespace, chroot). It leaves nothing behind, also if this process is killed.
 *
 * The first request to a JVM sends it SIGQUIT, but only if the JVM is seen to expect that. An
 * option that is not visible beforehand may disable attaching (-XX:+DisableAttachMechanism in a
 * file of options). The JVM then prints its threads' stacks, so that no request may follow after
 * -ENOTSUP. */
struct jvm_attach;

/* Requests that the JVM of process `pid` (as braid sees it; any of its threads) run a diagnostic
 * command, such as "Compiler.perfmap". The request fails after `timeout_ms`. Returns 0, -ENOMEM,
 * -EAGAIN or -EMFILE. */
int jvm_attach__start(uint32_t pid, const char *command, unsigned timeout_ms,
		      struct jvm_attach **ret);

/* Returns an fd that is readable once the request has ended. */
int jvm_attach__fd(const struct jvm_attach *attach);

/* Returns true if the request has ended, without waiting. Also true 2 s after the timeout if the
 * helper has sent nothing. */
bool jvm_attach__is_over(const struct jvm_attach *attach);

/* Waits for the end of the request and returns its result. A second call returns the same
 * result.
 *   0           the JVM ran the command. Java 17 also reports this if it cannot write its file.
 *   -ENOTSUP    the JVM takes no commands (attaching is disabled), or answers no request
 *   -EAGAIN     the JVM was still starting at the timeout; a later request may succeed
 *   -ETIMEDOUT  the JVM is stopped or hangs; it may still run the command when it goes on
 *   -EIO        the JVM refused, with its own words; or the answer is not from that JVM
 *   -EPERM, -ESRCH, -EINVAL (the command is too long)
 * The sentence in `err` includes the user's remedy. */
int jvm_attach__finish(struct jvm_attach *attach, struct err *err);
void jvm_attach__free(struct jvm_attach *attach); /* ends the request within 1 s; NULL is fine */

#endif
