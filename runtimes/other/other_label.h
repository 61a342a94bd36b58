/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OTHER_LABEL_H
#define BRAID_OTHER_LABEL_H

#include <stdbool.h>
#include <stddef.h>

#include "runtimes/runtime.h"

/* Parses the name @symbol of compiled code, as a runtime of other_rows.h writes it, into function,
 * file and line. The strings are in @symbol or @buf. Returns false if no form of a name fits. */
bool other_label__make(const char *symbol, char *buf, size_t size, struct runtime_label *ret);

#endif
