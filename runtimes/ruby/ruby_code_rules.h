/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RUBY_CODE_RULES_H
#define BRAID_RUBY_CODE_RULES_H

#include "runtimes/code_rules.h"

extern const struct code_rules ruby_code_rules;

#endif
