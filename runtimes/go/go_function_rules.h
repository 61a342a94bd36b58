/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_FUNCTION_RULES_H
#define BRAID_GO_FUNCTION_RULES_H

#include "runtimes/function_rules.h"

extern const struct function_rules go_function_rules;

#endif
