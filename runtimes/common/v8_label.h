/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_V8_LABEL_H
#define BRAID_V8_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtimes/runtime.h"

/* V8's names of code, in readable form: hook `label` of Node.js, and of any program with V8. */
bool v8_label__make(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

/* Returns true if the name is V8's of a function: a kind, and the mark of a compiler. */
bool v8_label__is(const char *symbol);

/* Returns the path for a file's URL, and other texts unchanged. Changes @url in place. */
char *v8_label__path(char *url);

#endif
