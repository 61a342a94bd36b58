/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_FUNCTION_RULES_H
#define BRAID_JVM_FUNCTION_RULES_H

#include "runtimes/function_rules.h"

extern const struct function_rules jvm_function_rules;

#endif
