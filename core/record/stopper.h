/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STOPPER_H
#define BRAID_STOPPER_H

#include <signal.h>
#include <stdbool.h>

#include "core/base/err.h"

/* SIGINT, SIGTERM and SIGHUP: the user wants the recording to end. They are waited for in a thread,
 * as the recorder may be busy for seconds with what it has been sent already. */
struct stopper;

/* Is called at the first signal, in that thread. */
typedef void (*stopper_fn)(void *ctx);

/* From now on the signals are blocked, here and in threads that begin later, and kept. */
int stopper__new(struct stopper **ret, struct err *err);

/* Waits for them, also for those that have come already. Once; `stopper` must not fork any more. */
int stopper__watch(struct stopper *stopper, stopper_fn on_signal, void *ctx, struct err *err);
void stopper__free(struct stopper *stopper); /* signals are as before; NULL is fine */

bool stopper__has_signal(const struct stopper *stopper);

/* At a second signal, not at once after the first, since one wish may come as two (timeout(1) sends
 * to the process and to its group): what takes long is to be left out. */
bool stopper__hurries(const struct stopper *stopper);

/* Signals that were blocked before there was a stopper. Borrowed. */
const sigset_t *stopper__users_mask(const struct stopper *stopper);

int stopper__fd(const struct stopper *stopper); /* to poll: readable once there is a signal */

#endif
