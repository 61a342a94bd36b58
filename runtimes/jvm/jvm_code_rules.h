/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_CODE_RULES_H
#define BRAID_JVM_CODE_RULES_H

#include "runtimes/code_rules.h"

extern const struct code_rules jvm_code_rules;

#endif
