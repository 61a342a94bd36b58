/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STOPPER_H
#define BRAID_STOPPER_H

#include <signal.h>
#include <stdbool.h>

#include "core/base/err.h"

/* SIGINT, SIGTERM and SIGHUP end the recording. A thread waits for them, since the recorder may be
 * busy for seconds with records that have already arrived. */
struct stopper;

/* Is called at the first signal, in that thread. */
typedef void (*stopper_fn)(void *ctx);

/* Blocks the signals in this thread and in threads that begin later; the stopper's thread receives
 * them. */
int stopper__new(struct stopper **ret, struct err *err);

/* Starts the thread that waits for the signals, including signals that have already arrived. May be
 * called once. The process must not fork any more. */
int stopper__watch(struct stopper *stopper, stopper_fn on_signal, void *ctx, struct err *err);
void stopper__free(struct stopper *stopper); /* signals are as before; NULL is fine */

bool stopper__has_signal(const struct stopper *stopper);

/* Returns true after a second signal: slow work is to be skipped. A signal directly after the first
 * does not count, since timeout(1) sends one to the process and one to its group. */
bool stopper__hurries(const struct stopper *stopper);

/* Returns the set of signals that were blocked before the stopper. Borrowed. */
const sigset_t *stopper__users_mask(const struct stopper *stopper);

int stopper__fd(const struct stopper *stopper); /* to poll: readable once there is a signal */

#endif
