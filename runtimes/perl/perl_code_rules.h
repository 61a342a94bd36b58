/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PERL_CODE_RULES_H
#define BRAID_PERL_CODE_RULES_H

#include "runtimes/code_rules.h"

extern const struct code_rules perl_code_rules;

#endif
