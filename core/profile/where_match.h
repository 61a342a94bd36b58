/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WHERE_MATCH_H
#define BRAID_WHERE_MATCH_H

#include "core/profile/recorded.h"
#include "core/profile/where_tree.h"

/* The expression of --where for a recording. A regular expression is extended (POSIX). */

/* Compiles the regular expressions of the tree, which where_tree__free() frees. Returns 0, -EINVAL
 * with a message, or -ENOMEM. */
int where_match__prepare(struct where_node *node, struct err *err);

/* Returns true if the expression contains parts of request contexts. */
bool where_match__needs_contexts(const struct where_node *node);

/* Returns true if the expression selects the sample. */
bool where_match__has(const struct where_node *node, const struct recorded *recorded,
		      const struct sink_sample *sample);

#endif
