/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NODE_CODE_RULES_H
#define BRAID_NODE_CODE_RULES_H

#include "runtimes/code_rules.h"

extern const struct code_rules node_code_rules;

#endif
