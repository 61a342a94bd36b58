/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_FUNCTION_RULES_H
#define BRAID_RUBY_FUNCTION_RULES_H

#include "runtimes/function_rules.h"

extern const struct function_rules ruby_function_rules;

#endif
