/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_LABEL_H
#define BRAID_NODE_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtimes/runtime.h"

/* V8's names of code, in readable form: hook `label` of runtimes/node/node.c. */
bool node_label__make(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

/* A path for a file's URL; others as they are. In place. */
char *node_label__path(char *url);

#endif
