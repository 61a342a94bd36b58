/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_THREAD_CONTEXT_H
#define BRAID_THREAD_CONTEXT_H

#include "bpf/context.h"
#include "core/elf/thread_variable.h"
#include "core/target/process.h"

/* The thread-local variable through which a tracer publishes the request context of each thread
 * (bpf/context.h). */
#define THREAD_CONTEXT_VARIABLE "otel_thread_ctx_v1"

/* Finds the place of the variable in the threads of @process. Returns 0; -ENOENT: the process has
 * no such variable, or publishes its contexts in another form; -EAGAIN: the dynamic linker has not
 * set the place yet. */
int thread_context__find(const struct process *process, struct context_rec *ret);

#endif
