/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_FIBERS_H
#define BRAID_RUBY_FIBERS_H

#include <stdbool.h>

#include "runtimes/ruby/ruby_objects.h"
#include "runtimes/runtime.h"

/* Lists the waiting fibers whose frames do not show in their thread's stack, as runtime.tasks
 * does. Sets `ret_is_whole` if none are missing. */
int ruby_fibers__list(const struct ruby_reader *process, runtime_task_fn on_task, void *ctx,
		      bool *ret_is_whole);

#endif
